"""What a fit says of itself to people with a table, and which columns matter to it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from iclda import SupervisedLDA, save_model
from iclda.methods import CHOSEN_BY_NAME, find_method
from iclda.model_files import model_details
from iclda.tabular import read_table
from iclda.tabular.fit import FitReport, fit_table
from iclda.tabular.summaries import (
    _error_line,
    fit_summary,
    importance_lines,
    standardized_coefficients,
)


def rows(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(120) % n_classes
    X = rng.normal(size=(120, 3)) * [1, 100, 0.01]
    X[:, 1] += 250 * y
    X[:, 2] += 0.02 * (y == 1)
    return pd.DataFrame(X, columns=["noise", "large", "small"]), np.array(
        ["a", "b", "c"]
    )[y]


def test_two_classes_have_the_log_odds_of_the_second_per_deviation_within_classes():
    X, y = rows(2)
    model = SupervisedLDA().fit(X, y)
    (found,) = standardized_coefficients(model)
    assert (found["title"], found["low"], found["high"]) == ("log odds of b", "a", "b")
    assert list(found["coefficients"])[-1] == "noise"
    spread = np.sqrt(np.diag(model.covariance_))
    expected = dict(zip(X.columns, model.coef_[0] * spread, strict=True))
    assert_allclose(
        [found["coefficients"][name] for name in expected], list(expected.values())
    )


def test_units_of_columns_do_not_matter():
    X, y = rows(3)
    plain = standardized_coefficients(SupervisedLDA().fit(X, y))
    scaled = standardized_coefficients(
        make_pipeline(
            StandardScaler().set_output(transform="pandas"), SupervisedLDA()
        ).fit(X, y)
    )
    for ours, theirs in zip(plain, scaled, strict=True):
        assert list(ours["coefficients"]) == list(theirs["coefficients"])
        assert_allclose(
            list(ours["coefficients"].values()), list(theirs["coefficients"].values())
        )


def test_several_classes_have_discriminants_by_the_share_of_what_they_separate():
    found = standardized_coefficients(SupervisedLDA().fit(*rows(3)))
    assert [each["title"] for each in found] == ["discriminant 1", "discriminant 2"]
    assert found[0]["share"] > found[1]["share"]
    assert_allclose(sum(each["share"] for each in found), 1)
    assert next(iter(found[0]["coefficients"])) == "large"
    assert next(iter(found[1]["coefficients"])) == "small"
    line = importance_lines(found, {})[2]
    assert line.startswith("  discriminant 1, from ")
    assert "of what separates the classes: large " in line
    sign = 1 if found[0]["coefficients"]["large"] > 0 else -1
    # "large" grows from a to c.
    assert (found[0]["low"], found[0]["high"])[::sign] == (
        "a",
        "c",
    )


def test_that_nothing_was_learned_comes_first_and_nothing_is_praised(tmp_path):
    rng = np.random.default_rng(0)
    # Every labeled row occurs in both classes: the columns say nothing about them.
    X = np.vstack(
        [np.repeat(rng.normal(size=(20, 4)), 2, axis=0), rng.normal(size=(60, 4))]
    )
    labels = [*["a", "b"] * 20, *[None] * 60]
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(kind=labels)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    model, report = fit_table(read_table(tmp_path / "noise.csv", target="kind"))
    save_model(model, tmp_path / "m.skops", about=report.to_json())
    lines = fit_summary(model_details(tmp_path / "m.skops"))
    assert lines[0].endswith("fitted to 40 labeled and 60 unlabeled rows.")
    assert lines[1].startswith("The rows were read as a table")
    assert lines[2].startswith("Expect ")
    assert lines[3].startswith(
        "Warning: 40 labels cannot show that anything was learned: "
    )
    assert lines[3].endswith("About 270 would show an error 5 percentage points lower.")
    said = "\n".join(lines)
    assert said.count("was learned") == 1
    assert "Chose" not in said
    assert "likelihood" not in said.replace("It maximizes the likelihood", "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            0.30,
            "32 % of the time: 25 labels are too few to be sure that this model is "
            "better.",
        ),
        (
            0.34,
            "32 % of the time, and this model looks no better.",
        ),
    ],
)
def test_an_error_above_the_base_rate_is_not_put_down_to_few_labels(error, words):
    estimate = {"error": error, "text": "some of new rows wrong", "n_rows": 25}
    rows = {"labeled": {"NA": 68, "yes": 32}, "n_unlabeled": 0, "empty_cells": {}}
    texts = {"command": "", "target": "", "notes": (), "warnings": ()}
    report = FitReport(**rows, **texts, sources=(), error=estimate, learned="unclear")
    beginning = "Expect some of new rows wrong. Always predicting 'NA' is wrong"
    assert _error_line(report) == f"{beginning} {words}"


@pytest.mark.parametrize(
    ("method", "decides"),
    [("ensemble", "the members above decide"), ("sklearn-forest", "the trees decide")],
)
def test_a_model_without_coefficients_says_what_decides(tmp_path, method, decides):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["p", "q"])
    kinds = np.where(frame["p"] > 0, "a", "b").astype(object)
    frame["kind"] = np.where(np.arange(60) < 30, kinds, None)
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", target="kind")
    model, report = fit_table(table, find_method(method, CHOSEN_BY_NAME))
    save_model(model, tmp_path / "m.skops", about=report.to_json())
    details = model_details(tmp_path / "m.skops")
    axes = standardized_coefficients(model)
    assert axes == []
    assert decides in importance_lines(axes, details)[1]
    members = [line for line in fit_summary(details) if line.startswith("Its members")]
    assert bool(members) == (method == "ensemble")
