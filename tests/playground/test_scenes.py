"""Fits of a scene are the library's own; one that cannot be fitted gets a sentence."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the playground needs iclda[playground]")

import iclda
from iclda import playground
from iclda.methods import METHODS
from iclda.playground.scenes import GRID_CELLS, fit_scene, read_scene
from iclda.playground.toys import LARGEST_COORDINATE, PROBLEMS, draw_toy_scene

TOYS = {toy.name: toy for toy in PROBLEMS}
CHOICES = {
    "methods": [method.name for method in METHODS],
    "shown": "iclda",
    "shrinkage": 0,
    "dragged": False,
}


def scene(toy="three", n_unlabeled=120, **changes):
    return {**draw_toy_scene(TOYS[toy], 0, n_unlabeled), **CHOICES, **changes}


def rows_of(sent):
    labeled = np.array(sent["labeled"])
    unlabeled = np.array(sent["unlabeled"])
    y = np.concatenate([labeled[:, 2], np.full(len(unlabeled), -1)]).astype(int)
    return np.concatenate([labeled[:, :2], unlabeled[:, :2]]), y


@pytest.mark.parametrize("toy", ["between", "four"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_numbers_are_those_of_the_classifier(toy, method):
    sent = scene(toy, shown=method.name)
    found = json.loads(json.dumps(fit_scene(read_scene(sent)), allow_nan=False))
    fit = found["fits"][method.name]
    X, y = rows_of(sent)
    classifier = getattr(iclda, method.class_name)().fit(X, y)
    scores = np.array(fit["scores"])
    by_scores = np.column_stack([X, np.ones(len(X))]) @ scores.T
    assert found["classes"] == classifier.classes_.tolist()
    shares = np.exp(by_scores - by_scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, classifier.predict_proba(X), atol=1e-6)
    is_labeled = y >= 0
    likelihood = classifier.log_likelihood(X[is_labeled], y[is_labeled]).mean()
    assert fit["likelihood"] == pytest.approx(likelihood, abs=1e-6)
    bounds = classifier.gain_bounds(X, y)
    assert fit["bounds"]["worst"] == pytest.approx(bounds.worst, abs=1e-6)
    assert fit["bounds"]["best"] == pytest.approx(bounds.best, abs=1e-6)
    assert fit["bounds"]["is_safe"] == bounds.is_safe
    truths = np.array(sent["unlabeled"])[:, 2]
    is_wrong = classifier.predict(X[~is_labeled]) != truths
    assert fit["wrong"] == pytest.approx(is_wrong.mean(), abs=1.5 / len(truths))


def test_labels_of_the_unlabeled_points_are_those_of_the_method_that_is_shown():
    sent = scene()
    X, y = rows_of(sent)
    em = iclda.ExpectationMaximizationLDA().fit(X, y)
    expected = {
        "iclda": iclda.ImplicitlyConstrainedLDA().fit(X, y).responsibilities_,
        "em": em.predict_proba(X[y < 0]),
    }
    for name, shares in expected.items():
        fits = fit_scene(read_scene({**sent, "shown": name}))["fits"]
        np.testing.assert_allclose(fits[name]["shares"], shares, atol=1e-3)
        assert [other for other, fit in fits.items() if "shares" in fit] == [name]
    fits = fit_scene(read_scene({**sent, "shown": "self-learning"}))["fits"]
    assert np.unique(fits["self-learning"]["shares"]).tolist() == [0, 1]


def test_auto_is_fitted_at_rest_and_drawn_from_posteriors_on_a_grid():
    sent = scene("between", methods=["auto", "supervised"], shown="auto")
    found = json.loads(json.dumps(fit_scene(read_scene(sent)), allow_nan=False))
    fit = found["fits"]["auto"]
    X, y = rows_of(sent)
    classifier = iclda.AutoLDA(random_state=0).fit(X, y)
    truths = np.array(sent["unlabeled"])[:, 2]
    wrong = np.mean(classifier.predict(X[y < 0]) != truths)
    assert fit["wrong"] == pytest.approx(wrong, abs=1.5 / len(truths))
    assert len(fit["shares"]) == len(truths)
    # The first cell is in the upper left corner, the last one in the lower right one.
    assert len(fit["grid"]) == GRID_CELLS**2
    edge = LARGEST_COORDINATE * (1 - 1 / GRID_CELLS)
    corners = classifier.predict_proba([[-edge, edge], [edge, -edge]])
    np.testing.assert_allclose([fit["grid"][0], fit["grid"][-1]], corners, atol=1e-3)
    dragged = fit_scene(read_scene({**sent, "dragged": True}))["fits"]
    assert list(dragged["auto"]) == ["waits"]
    assert "scores" in dragged["supervised"]


@pytest.mark.parametrize(
    ("labeled", "message"),
    [
        ([], r"There are no labeled points\. .* add points of two classes\."),
        ([[0, 0, 1]], r"All labeled points are of class B\. Add points of another .*"),
    ],
)
def test_without_points_of_two_classes_a_message_says_what_to_do(labeled, message):
    found = fit_scene(read_scene(scene(labeled=labeled)))
    assert found["fits"] == {}
    assert re.fullmatch(message, found["message"])


def test_a_method_that_cannot_be_fitted_says_why_and_the_others_are_fitted():
    # There is no spread within classes.
    labeled = [[0, 0, 0], [2, 1, 1]]
    fits = fit_scene(read_scene(scene(labeled=labeled)))["fits"]
    assert "shrinkage" in fits["moment"]["error"]
    assert "scores" in fits["em"]
    assert fits["em"]["bounds"] is None
    assert "shrinkage" in fits["em"]["no_bounds"]
    shrunk = fit_scene(read_scene(scene(labeled=labeled, shrinkage=0.1)))["fits"]
    assert not [name for name, fit in shrunk.items() if "error" in fit]


def test_notes_of_a_fit_name_the_coordinates():
    # All points are on a vertical line.
    labeled = [[1, 0, 0], [1, 1, 0], [1, 3, 1], [1, 4, 1]]
    unlabeled = [[1, 2, 0], [1, 5, None]]
    fits = fit_scene(read_scene(scene(labeled=labeled, unlabeled=unlabeled)))["fits"]
    for fit in fits.values():
        assert "column 'x' is constant" in " ".join(fit["notes"])


def test_without_unlabeled_points_all_methods_are_supervised():
    fits = fit_scene(read_scene(scene(unlabeled=[])))["fits"]
    likelihoods = [fit["likelihood"] for name, fit in fits.items() if name != "moment"]
    np.testing.assert_allclose(likelihoods, fits["supervised"]["likelihood"], atol=1e-9)
    assert fits["iclda"]["wrong"] is None
    assert fits["iclda"]["shares"] == []
    notes = [note for fit in fits.values() for note in fit["notes"]]
    assert not any("no unlabeled rows" in note for note in notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unlabeled": [[0, float("inf"), 0]]}, "infinity"),
        ({"labeled": [[float("nan"), 1, 0], [0, 0, 1]]}, "NaN"),
        ({"shrinkage": 1}, "shrinkage"),
    ],
)
def test_what_no_method_can_be_fitted_to_gets_a_sentence(changes, message):
    fits = fit_scene(read_scene(scene(**changes)))["fits"]
    assert all(message in fit["error"] for fit in fits.values())


@pytest.mark.parametrize("scale", [1e-160, 1e150])
def test_coordinates_of_any_size_get_fits_or_a_sentence(scale):
    sent = draw_toy_scene(TOYS["between"], 0, 30)
    labeled = [[x * scale, y * scale, c] for x, y, c in sent["labeled"]]
    unlabeled = [[x * scale, y * scale, c] for x, y, c in sent["unlabeled"]]
    found = fit_scene(read_scene(scene(labeled=labeled, unlabeled=unlabeled)))
    json.dumps(found, allow_nan=False)
    assert all("error" in fit or "scores" in fit for fit in found["fits"].values())


def test_the_page_opens_with_draws_in_which_clusters_help_and_mislead():
    page = (Path(playground.__file__).parent / "static" / "main.js").read_text()
    seed = int(re.search(r"seed = (\d+);", page)[1])
    n_used = int(re.search(r"USED = (\d+);", page)[1])
    wrong = {}
    for toy in ("between", "across"):
        sent = draw_toy_scene(TOYS[toy], seed)
        sent["unlabeled"] = sent["unlabeled"][:n_used]
        fits = fit_scene(read_scene({**CHOICES, **sent}))["fits"]
        wrong[toy] = {name: fit["wrong"] for name, fit in fits.items()}
    helped = wrong["between"]
    misled = wrong["across"]
    assert max(helped["iclda"], helped["em"]) < helped["supervised"] - 0.04
    assert misled["em"] > misled["supervised"] + 0.04
    assert misled["iclda"] < misled["supervised"] + 0.01
