"""The benchmarks of features and of asking run what they compare."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import bench_ask
import bench_features
from feature_sets import KEPT, TUNED, find_sets, parts_of

N_CLASSES = 3


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(90) % N_CLASSES
    X = 3 * rng.standard_normal((N_CLASSES, 70))[y] + rng.standard_normal((90, 70))
    return X, y


def test_no_set_is_both_tuned_on_and_kept_apart():
    assert not set(TUNED) & set(KEPT)
    paths = [Path(f"{name}.npz") for name in (*KEPT, *TUNED, "of-a-user")]
    parts = dict(parts_of(paths))
    assert [path.stem for path in parts["Tuned on"]] == list(TUNED)
    assert [path.stem for path in parts["Kept apart"]] == [*KEPT, "of-a-user"]
    # The set of the package is that of the clothes.
    assert list(parts_of([None])) == [("Kept apart", [None])]


def test_sets_are_found_by_name_and_no_set_counts_twice(tmp_path):
    for name in ("fashion_efflite0", "fashion_efflite0_1280", "other"):
        (tmp_path / f"{name}.npz").touch()
    found = [path.stem for path in find_sets(tmp_path)]
    assert found == ["fashion_efflite0", "other"]
    assert [path.stem for path in find_sets(tmp_path, ["other"])] == ["other"]
    assert find_sets(None) == [None]
    with pytest.raises(SystemExit, match=r"has no another, third: it must hold \.npz"):
        find_sets(tmp_path, ["third", "other", "another"])
    with pytest.raises(SystemExit, match=r"nowhere has no set: it must hold \.npz"):
        find_sets(tmp_path / "nowhere")


def test_every_method_labels_the_pool_and_inductive_ones_new_rows(rows):
    X, y = rows
    labels = np.where(np.arange(60) < 12, y[:60], -1)
    methods = bench_features.predictors(labels, y[:60])
    assert {"AutoLDA", "PT-MAP, true sizes", "alpha-TIM"} <= set(methods)
    for predict in methods.values():
        of_pool, of_new = predict(X[:60], labels, X[60:])
        assert np.mean(of_pool == y[:60]) > 0.9
        assert of_new is None or np.mean(of_new == y[60:]) > 0.9


@pytest.mark.parametrize("strategy", [*bench_ask.STRATEGIES, *bench_ask.COMPARED])
def test_every_strategy_adds_rows_to_those_before(strategy, rows):
    X, y = rows
    first = bench_ask.choose(strategy, X, y, 6, np.zeros(0, dtype=int), 0)
    second = bench_ask.choose(strategy, X, y, 15, first, 0)
    assert len(set(first)) == 6
    assert len(set(second)) == 15
    assert strategy == "k-means" or set(first) <= set(second)


def test_one_draw_has_no_standard_error(capsys):
    values = np.arange(12.0).reshape(1, 3, 1, 4)
    bench_ask.print_table("Error", ["random"], values)
    bench_ask.print_table("Error", ["random"], values[:, :1])
    several, single = capsys.readouterr().out.split("random")[1:]
    assert several.split()[:3] == ["4.0", "+-", "2.3"]
    assert single.split() == ["0.0", "1.0", "2.0", "3.0"]


def test_scikit_activeml_is_optional(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert bench_ask.strategies_of(True) == bench_ask.COMPARED
    assert "scikit-activeml is not installed" in capsys.readouterr().out
