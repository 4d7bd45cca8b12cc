"""What each experiment fits on a split, and what it measures.

``FITS`` has the function of every experiment. It takes a split and a method of
``questions.toml``, and returns the values of the stored row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from iclda import AutoLDA
from iclda._core import Array
from iclda.methods import COMPARED, find_method
from iclda.model_selection import SemiSupervisedKFold, semi_supervised_scorer
from iclda.studies.engine import rng_of
from iclda.studies.paper.design import PUBLISHED_EM
from iclda.studies.paper.fits import fit_method

from .maxima import find_maxima, objective_of, prove_maxima
from .plan import N_GRID_SHARES
from .problems import Split

# Random starts from which maxima are sought, besides the supervised fit ...
_MAX_STARTS = 16
# ... and fewer with many features: starts times features stay near this number ...
_STARTS_TIMES_FEATURES = 300
# ... but there are at least this many.
_MIN_STARTS = 4
# Maxima count as one if their objectives per labeled row differ by less.
_SAME_OBJECTIVE = 1e-5
# A row belongs to a class in part if its share is above this.
_MIN_SHARE = 1e-3
# Random directions along which the width of the attainable set is measured.
_N_DIRECTIONS = 200
# Weights of the unlabeled rows in EM, among which cross-validation chooses.
_EM_WEIGHTS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
# A search with more unknowns takes minutes, and is left out.
_MAX_UNKNOWNS = 300
# A search with class proportions is left out above this number.
_MAX_UNKNOWNS_IN_PROPORTIONS = 40
# What ``AutoLDA`` chooses from, the first of those that do about as well.
_AUTO_METHODS = (
    "average",
    "self-training",
    "pessimistic",
    "supervised",
    "em",
    "iclda",
    "self-learning",
    "moment",
)
# ``AutoLDA`` takes seconds with fewer columns than this, and is left out with more.
_AUTO_COLUMNS = 32


# Counterexamples and maxima.


def _fit_example(split: Split, method: str) -> dict[str, Any]:
    """Compute the objective on a grid over all labelings, and its maxima."""
    n_unlabeled = len(split.rows.X_unlabeled)
    axes = [np.linspace(0, 1, N_GRID_SHARES)] * n_unlabeled
    shares = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    grid = objective_of(split.rows, shares.reshape(-1, n_unlabeled))[0]
    return {
        "grid": json.dumps(grid.round(6).tolist()),
        "maxima": json.dumps(prove_maxima(split.rows)),
    }


def _fit_maxima(split: Split, method: str) -> dict[str, Any]:
    """Count maxima and measure the models there; or measure the fit of the search."""
    if method == "default":
        model = split.fit(find_method("iclda").classifier(seed=split.rows.seed))
        kind = _kind_of_optimum(model)
        return {**split.measure(model), **kind, "maxima": model.n_optima_}

    n_starts = max(_MIN_STARTS, _STARTS_TIMES_FEATURES // split.rows.X.shape[1])
    ends = find_maxima(split.rows, min(_MAX_STARTS, n_starts))
    if not ends:
        return {"maxima": 0}
    objectives = np.array([objective for objective, _ in ends])
    is_next = np.diff(np.sort(objectives)) > _SAME_OBJECTIVE
    values: dict[str, Any] = {"maxima": 1 + int(is_next.sum())}
    chosen = {
        "start": 0,
        "best": int(objectives.argmax()),
        "worst": int(objectives.argmin()),
    }
    for name, index in chosen.items():
        _, model = ends[index]
        measured = split.measure(model)
        values |= {f"{measure}_{name}": value for measure, value in measured.items()}
    return values


def _kind_of_optimum(model: Any) -> dict[str, Any]:
    """Say whether labels are hard, tied or interior; count the fractional rows.

    (K - 1) (d + 1) rows that belong to two classes suffice for any point of the
    attainable set. Two classes that share more rows are tied.
    """
    is_in_class = np.asarray(model.responsibilities_) > _MIN_SHARE
    n_classes = is_in_class.shape[1]
    bound = (n_classes - 1) * (model.rank_ + 1)
    n_shared = is_in_class.T.astype(int) @ is_in_class
    is_tied = n_shared[np.triu_indices(n_classes, 1)] > bound
    if is_tied.all():
        kind = "interior"
    elif is_tied.any():
        kind = "tied"
    else:
        kind = "hard"
    n_fractional = int((is_in_class.sum(axis=1) > 1).sum())
    return {"kind": kind, "fractional": n_fractional, "bound": bound}


# Widths of the constraints.


def width_ratio(along: Array, weight: float) -> float:
    """Return the largest class sum along a direction over what the moments allow.

    A class of the weight r has a sum b of at most sqrt(r (1 - r)) standard deviations
    if the covariance within classes is to be positive. It is largest if the class has
    all rows above a threshold, and one of them in part.
    """
    along = np.sort(along - along.mean())[::-1] / along.std()
    sums = np.concatenate([[0], np.cumsum(along)]) / len(along)
    reached = np.interp(weight * len(along), np.arange(len(sums)), sums)
    return float(reached / np.sqrt(weight * (1 - weight)))


def _fit_constrained(split: Split, method: str) -> dict[str, Any]:
    """Measure widths; or a method, and how far it lies outside the attainable set."""
    rows = split.rows
    problem = rows.problem
    z = problem.whitening.points(problem.frame.apply(rows.rows))
    if method == "widths":
        return _widths(split, z)
    model = fit_method(find_method(method, COMPARED).paper_name, rows)
    values = split.measure(model)
    if method == "moment-likelihood":
        means = problem.whitening.points(model.means)
        weight = float(model.class_weights[0])
        between = means[0] - means[1]
        used = np.sqrt(weight * (1 - weight)) * float(np.linalg.norm(between))
        values["excess"] = used / width_ratio(z @ between, weight)
    return values


def _widths(split: Split, z: Array) -> dict[str, Any]:
    """Measure the attainable set at equal class weights along several directions."""
    rows = split.rows
    rng = rng_of(rows.seed, "directions")
    directions = rng.standard_normal((_N_DIRECTIONS, z.shape[1]))
    codes = np.concatenate([rows.codes, rows.codes_unlabeled])
    between = z[codes == 1].mean(axis=0) - z[codes == 0].mean(axis=0)
    principal = [width_ratio(column, 0.5) for column in z.T]
    random = [width_ratio(z @ direction, 0.5) for direction in directions]
    return {
        "width": float(np.mean(random)),
        "width_between": width_ratio(z @ between, 0.5),
        "narrowest": min(principal),
        "widest": max(principal),
        "rank": z.shape[1],
    }


# Safety, EM, proportions, and all methods.


def _fit_safely(split: Split, method: str) -> dict[str, Any]:
    """Also compare the training likelihood with that of supervised LDA.

    ``gain`` is the mean difference with the true labels, ``worst`` its lower bound.
    """
    rows = split.rows
    # All methods shrink alike, as much as EM does by default.
    em = find_method("em").classifier(shrinkage="auto").set_params(max_iter=1)
    shrinkage = split.fit(em).shrinkage_

    def fit(name: str) -> Any:
        classifier = find_method(name).classifier(shrinkage=shrinkage, seed=rows.seed)
        return split.fit(classifier)

    model = fit(method)
    values = split.measure(model)
    if method == "supervised":
        return values
    bounds = model.gain_bounds(rows.rows, rows.y)
    supervised = fit("supervised")
    truth = np.concatenate([rows.codes, rows.codes_unlabeled])
    gains = model._model_.gaussians.log_joint(rows.rows)
    gains = gains - supervised._model_.gaussians.log_joint(rows.rows)
    values["gain"] = float(gains[np.arange(len(truth)), truth].mean())
    return {**values, "worst": bounds.worst, "disagreement": bounds.disagreement}


def _fit_em(split: Split, method: str) -> dict[str, Any]:
    """Fit a method of the paper, or EM with a weight of unlabeled rows (em x 0.1)."""
    name, _, weight_text = method.partition(" x ")
    if not weight_text:
        is_published = method == "em as published"
        paper_name = PUBLISHED_EM if is_published else find_method(method).paper_name
        return split.measure(fit_method(paper_name, split.rows))
    classifier = find_method(name).classifier()
    if weight_text == "cv":
        weight = _cross_validated_weight(classifier, split)
    else:
        weight = float(weight_text)
    fitted = split.fit(classifier.set_params(unlabeled_weight=weight))
    return {**split.measure(fitted), "weight": weight}


def _cross_validated_weight(classifier: Any, split: Split) -> float:
    rows = split.rows
    n_folds = min(5, int(np.bincount(rows.codes).min()))
    search = GridSearchCV(
        classifier,
        {"unlabeled_weight": _EM_WEIGHTS},
        refit=False,
        scoring=semi_supervised_scorer("neg_brier_score"),
        cv=SemiSupervisedKFold(n_folds, n_repeats=2, random_state=rows.seed),
    )
    search.fit(rows.rows, rows.y)
    return float(search.best_params_["unlabeled_weight"])


def _fit_shrunk(split: Split, method: str, proportions: Any = None) -> Any:
    """Fit a method with automatic shrinkage; None if that takes minutes."""
    if split.n_unknowns > _MAX_UNKNOWNS and method in ("iclda", "pessimistic"):
        return None
    classifier = find_method(method, COMPARED).classifier(
        shrinkage="auto", proportions=proportions, seed=split.rows.seed
    )
    if method == "iclda":
        classifier.set_params(n_starts=8)
    return split.fit(classifier)


def _fit_in_proportions(split: Split, method: str) -> dict[str, Any]:
    """Fit a method with class proportions, and measure how far predicted ones are off.

    The source of the proportions follows the name of the method: ``true``, ``auto``,
    ``labeled``, or nothing for a fit without proportions.
    """
    name, _, source = method.partition(" ")
    if name == "iclda" and split.n_unknowns > _MAX_UNKNOWNS_IN_PROPORTIONS:
        return {}
    proportions = split.true_shares if source == "true" else source or None
    model = _fit_shrunk(split, name, proportions)
    predicted = model.predict_proba(split.rows.X_unlabeled).mean(axis=0)
    off = float(np.abs(predicted - split.true_shares).sum() / 2)
    return {**split.measure(model), "off": off}


def _fit_any(split: Split, method: str) -> dict[str, Any]:
    """Fit any method; ``seen`` is what can be seen before methods are compared."""
    if method == "seen":
        return _seen_before(split)
    rows = split.rows
    if method == "auto":
        if rows.X.shape[1] >= _AUTO_COLUMNS:
            return {}
        methods = [*_AUTO_METHODS]
        model = split.fit(AutoLDA(methods=methods, random_state=rows.seed))
        return {**split.measure(model), "chosen": model.method_}
    needs_more_labels = method in ("sklearn-lda", "sklearn-self-training")
    if needs_more_labels and len(rows.X) == rows.n_classes:
        return {}
    model = _fit_shrunk(split, method)
    return {} if model is None else split.measure(model)


def _seen_before(split: Split) -> dict[str, Any]:
    """Return sizes, doubt of the supervised fit, and kurtosis of the columns."""
    rows = split.rows
    model = _fit_shrunk(split, "supervised")
    centered = rows.rows - rows.rows.mean(axis=0)
    variances = np.maximum((centered**2).mean(axis=0), 1e-12)
    kurtosis = (centered**4).mean(axis=0) / variances**2
    probabilities = model.predict_proba(rows.X_unlabeled)
    return {
        "labels of a class": len(rows.X) / rows.n_classes,
        "labels a feature": len(rows.X) / rows.X.shape[1],
        "features": rows.X.shape[1],
        "doubt": float(1 - probabilities.max(axis=1).mean()),
        "kurtosis": float(np.median(np.abs(kurtosis - 3))),
    }


FITS: dict[str, Callable[[Split, str], dict[str, Any]]] = {
    "example": _fit_example,
    "maxima": _fit_maxima,
    "constraints": _fit_constrained,
    "safety": _fit_safely,
    "em": _fit_em,
    "proportions": _fit_in_proportions,
    "methods": _fit_any,
    "auto": _fit_any,
}
