"""The experiments on the open questions: counterexamples, widths, splits, maxima."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclda import ImplicitlyConstrainedLDA
from iclda.datasets import load_benchmark
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import Cell
from research.fits import width_ratio
from research.maxima import find_maxima, objective_of, prove_maxima
from research.plan import EXPERIMENTS, PLAN
from research.problems import example_rows, load_tables
from research.questions import answer_cell, plan_cells

pytestmark = pytest.mark.slow


def exact_slope(g):
    """Derivative of the objective of the smallest counterexample, as a fraction."""
    # Weights of both classes.
    a, b = 3 - g, 1 + g
    mean_a = 10 * (1 - g) / a
    mean_b = 10 * g / b
    turn_a = Fraction(-20) / a**2
    turn_b = Fraction(10) / b**2
    variance = (102 - a * mean_a**2 - b * mean_b**2) / 4
    weighted = (
        -(mean_a**2) + 2 * a * mean_a * turn_a + mean_b**2 + 2 * b * mean_b * turn_b
    )
    bend = -weighted / 4
    spread = 2 + 2 * mean_a**2 + mean_b**2
    opening = 4 * mean_a * turn_a + 2 * mean_b * turn_b
    slope = -2 / a + 1 / b - Fraction(3, 2) * bend / variance
    return slope - opening / (2 * variance) + spread * bend / (2 * variance**2)


def test_four_points_have_two_maxima():
    """The derivative, a fraction at fractions, changes from plus to minus twice."""
    places = [Fraction(3, 10), Fraction(2, 5), Fraction(1, 2), Fraction(13, 20)]
    assert [exact_slope(place) > 0 for place in places] == [True, False, True, False]
    assert exact_slope(Fraction(1, 3)) == 0
    shares = np.array([[float(place)] for place in places])
    slopes = objective_of(example_rows("smallest"), shares)[1]
    assert_allclose(
        slopes[:, 0], [float(exact_slope(place)) for place in places], atol=1e-9
    )
    low, high = sorted(prove_maxima(example_rows("smallest")), key=lambda m: m["value"])
    assert_allclose(low["shares"], [1 / 3], atol=1e-5)
    assert 0.5 < high["shares"][0] < 0.65
    assert max(low["bend"][0], high["bend"][0]) < -0.05


def test_of_four_hard_labelings_of_the_deep_example_two_are_maxima():
    rows = example_rows("deep")
    found = {}
    for shares in product([0.0, 1.0], repeat=2):
        values, slopes, gaps = objective_of(rows, np.array([shares]))
        is_maximum = bool((slopes[0] * np.where(shares, 1, -1) > 0).all())
        assert is_maximum == (gaps[0] < 1e-12)
        if is_maximum:
            found[shares] = values[0], slopes[0]
    assert found.keys() == {(1, 0), (1, 1)}
    assert_allclose(found[1, 0][1], [428 / 25, -292 / 25])
    assert_allclose(found[1, 1][1], [373 / 40, 9 / 200])
    assert found[1, 0][0] - found[1, 1][0] > 2.7
    assert sorted(map(tuple, (m["shares"] for m in prove_maxima(rows)))) == [
        (1, 0),
        (1, 1),
    ]
    fit = ImplicitlyConstrainedLDA().fit(rows.rows, rows.y)
    assert fit.gap_ < 1e-9
    assert_allclose(4 * fit.objective_, found[1, 0][0])


def test_local_ascents_find_both_maxima():
    values = [4 * value for value, _ in find_maxima(example_rows("deep"), 16)]
    assert_allclose([min(values), max(values)], [-9.522431, -6.778710], atol=1e-4)


def test_width_over_that_of_the_moments():
    assert width_ratio(np.repeat([-1.0, 1.0], 50), 0.5) == pytest.approx(1)
    normal = np.random.default_rng(0).standard_normal(200_000)
    assert width_ratio(normal, 0.5) == pytest.approx(np.sqrt(2 / np.pi), abs=0.01)
    rows = np.random.default_rng(1).exponential(size=9)
    z = (rows - rows.mean()) / rows.std()
    largest = max(z[list(chosen)].sum() / 9 for chosen in combinations(range(9), 3))
    assert width_ratio(rows, 3 / 9) == pytest.approx(largest / np.sqrt(2 / 9))


def coded(name):
    return CodedSet.of(load_benchmark(name))


def one(experiment, dataset, part, method, repeat=0, sets=None):
    cell = Cell(experiment, dataset, repeat, part)
    [row] = answer_cell(cell, sets or {"Haberman": coded("Haberman")}, [method], seed=0)
    assert row.failure is None, row.failure
    return row


def test_splits_have_the_labels_that_were_asked_for():
    row = one("methods", "Haberman", 50, "seen")
    assert (row.n_labeled, row.n_test) == (50, 61)
    assert row.n_labeled + row.n_unlabeled + row.n_test == 305
    assert row.values["labels a feature"] == pytest.approx(50 / 3)
    assert one("proportions", "Haberman", 8, "em").n_labeled == 16
    assert one("constraints", "Haberman", 200, "widths").n_labeled == 10
    assert one("methods", "Haberman", 1, "average").n_labeled == 2


def test_a_cell_depends_on_nothing_but_seed_and_name():
    first, again = (one("safety", "Haberman", 200, "iclda") for _ in range(2))
    assert first.values == again.values
    assert one("safety", "Haberman", 200, "iclda", repeat=1).values != first.values


def test_the_worst_case_bounds_the_gain():
    for method in ("em", "self-learning", "iclda"):
        values = one("safety", "Haberman", 400, method).values
        assert values["worst"] <= values["gain"] + 1e-12


def test_maxima_of_a_drawn_problem():
    starts = one("maxima", "labels 4", 0, "starts").values
    default = one("maxima", "labels 4", 0, "default").values
    assert starts["maxima"] >= 1
    ends = [starts[f"nll_labeled_{end}"] for end in ("best", "start", "worst")]
    assert ends == sorted(ends)
    assert default["nll_labeled"] <= ends[0] + 1e-5
    assert default["kind"] in ("hard", "interior")
    assert (
        default["kind"] == "interior" or default["fractional"] <= default["bound"] == 6
    )


def test_true_proportions_are_kept():
    assert one("proportions", "Haberman", 2, "em true").values["off"] < 0.2
    assert one("em", "Haberman", 200, "em x cv").values["weight"] <= 1


def test_every_experiment_has_cells_and_quick_ones_are_among_them():
    sets = load_tables(None, None)
    assert len(sets) >= 9 + len(PLAN["tables"]) >= 30
    for name in EXPERIMENTS:
        cells, quick = (
            plan_cells(name, sets, is_quick=is_quick) for is_quick in (False, True)
        )
        assert quick
        assert set(quick) <= set(cells)


def test_features_of_a_folder_take_part(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.eye(6), y=np.arange(6) % 2)
    assert load_tables(None, tmp_path)["mine"].X.shape == (6, 6)
    np.savez(tmp_path / "other.npz", Z=np.eye(6))
    with pytest.raises(ValueError, match=r"other\.npz must hold X and y, and holds Z"):
        load_tables(None, tmp_path)
    absent = tmp_path / "empty"
    with pytest.raises(ValueError, match=r"empty is not a folder, and has no \.npz"):
        load_tables(None, absent)
