"""The open questions of the paper: experiments whose stored rows answer them.

An experiment is a row of ``QUESTIONS``: its data sets, its parts (numbers of labels), its methods
and the function that fits a method. ``report`` draws the answers from the rows.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import AnyArray, Array
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.attainable import gap, hold_all
from ..._core.solvers.continuation import Effort, Follower
from ..._progress import Advance
from ..._rows.backends import MANY_FEATURES
from ...datasets import (
    BENCHMARKS,
    Dataset,
    checksum,
    find_benchmark,
    load_benchmark,
    load_fashion_features,
    make_gaussians,
    make_violated_gaussians,
)
from ...methods import BASELINES, COMPARED, FITTED, find_method
from .. import paper, record_fit, rng_of, run_missing
from ..measures import compute_measures, paper_measures
from ..paper.run import CellRows, CodedSet, fit_method, note_run, predict_rows
from ..store import STORE, Cell, FitResult, Store, cells_of

KIND = "questions"  # of stores
MOST_ROWS = 1000  # unlabeled rows, and test rows, of a cell
N_STARTS = 16  # random hyperplanes from which maxima are looked for, beside the supervised fit
_FEWEST_STARTS, _STARTS_X_FEATURES = 4, 300  # fewer starts with many features
_FIRST_TAU = 0.01  # of a path, over the spread of the gradient: lower than that of the search
_SAME_VALUE = 1e-5  # maxima whose objectives per labeled row differ by less count as one
_N_DIRECTIONS = 200  # random directions along which widths are measured
WEIGHTS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)  # of unlabeled rows in EM
_SLOW = 150  # unknowns of a search, above which every start takes seconds
_FEATURE_LABELS = (1, 2, 4, 8, 16, 32)  # of every class
LABELS = (1, 5, 10, 20, 50, 200)  # in all, at least one of every class


@dataclass(frozen=True)
class Settings:
    """Settings of a run; ``features`` is a folder of .npz files with X and y."""

    out: Path
    seed: int = 0
    jobs: int = 1
    data_dir: Path | None = None
    features: Path | None = None
    command: str = ""
    is_quick: bool = False


@dataclass(frozen=True)
class Split:
    """Training and test rows of a cell."""

    rows: CellRows
    X_test: Array
    codes_test: AnyArray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of labeled, unlabeled and test rows."""
        return len(self.rows.X), len(self.rows.X_unlabeled), len(self.X_test)

    def fit(self, classifier: Any) -> Any:
        return classifier.fit(self.rows.rows, self.rows.y)

    def measure(self, model: Any) -> dict[str, float]:
        """Error and losses of a fitted classifier, or of Gaussians."""
        model = getattr(model, "_gaussians_", model)
        predictions = predict_rows(model, self.X_test, self.codes_test, self.rows)
        return compute_measures(predictions, paper_measures())

    @cached_property
    def true_shares(self) -> Array:
        counts = np.bincount(self.rows.codes_unlabeled, minlength=self.rows.n_classes)
        return np.asarray(counts / counts.sum())


# Data sets.


def _digits(*kept: int) -> CodedSet:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    is_kept = np.isin(y, kept or range(10))
    X, y = X[is_kept], np.unique(y[is_kept], return_inverse=True)[1]
    return CodedSet(X[:, X.std(axis=0) > 0], y)


def _clothes(*kept: str) -> CodedSet:
    X, y = load_fashion_features()
    is_kept = np.isin(y, kept or y)
    return CodedSet(X[is_kept], np.unique(y[is_kept], return_inverse=True)[1])


def _bundled(name: str) -> CodedSet:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return CodedSet(X, (y > np.median(y)).astype(int) if name == "diabetes" else y)


def _made(name: str, **shape: Any) -> CodedSet:
    from sklearn import datasets

    return CodedSet(*getattr(datasets, f"make_{name}")(n_samples=1200, random_state=0, **shape))


def draw_family(
    rng: np.random.Generator,
    n: int,
    d: int = 5,
    separation: float = 2.0,
    share: float = 0.5,
    classes: int = 2,
    tails: str = "normal",
) -> tuple[Array, AnyArray]:
    """Draw rows whose classes lie ``separation`` apart; class 0 has the share ``share``."""
    rest = (1 - share) / (classes - 1)
    codes = rng.choice(classes, n, p=[share] + [rest] * (classes - 1))
    noise = {
        "normal": rng.standard_normal,
        "uniform": lambda size: np.sqrt(3) * rng.uniform(-1, 1, size),
        "exponential": lambda size: rng.exponential(size=size) - 1,
        "Student, 3": lambda size: rng.standard_t(3, size) / np.sqrt(3),
    }[tails]((n, d))
    if classes == 2:
        noise[:, 0] += separation * codes
    else:
        noise += separation / np.sqrt(2) * np.eye(classes, d)[codes]
    return noise, codes


def _family(**shape: Any) -> CodedSet:
    return CodedSet(*draw_family(np.random.default_rng(0), 1200, **shape))


def _toy(make: Callable[..., Any]) -> CodedSet:
    return CodedSet(*make(1200, np.random.default_rng(0), 0.8))


# Tables beside the benchmark sets.
_TABLES: dict[str, Callable[[], CodedSet]] = {
    "iris": partial(_bundled, "iris"),
    "wine": partial(_bundled, "wine"),
    "diabetes": partial(_bundled, "diabetes"),
    "digits": _digits,
    "clothes": _clothes,
    "digits 3, 8": partial(_digits, 3, 8),
    "shirts, coats": partial(_clothes, "shirt", "coat"),
    "digits 4, 9": partial(_digits, 4, 9),
    "sneakers, boots": partial(_clothes, "sneaker", "ankle-boot"),
    "digits 1, 7, 8": partial(_digits, 1, 7, 8),
    "two Gaussians": partial(_toy, make_gaussians),
    "across clusters": partial(_toy, make_violated_gaussians),
    "moons": partial(_made, "moons", noise=0.25),
    "circles": partial(_made, "circles", noise=0.15, factor=0.5),
    "5 Gaussians of 10": partial(_family, d=10, classes=5, share=0.2, separation=3),
    "heavy tails": partial(_family, d=6, tails="Student, 3"),
    "exponential": partial(_family, d=8, tails="exponential"),
    "uniform": partial(_family, d=8, tails="uniform", separation=3),
    "one of ten": partial(_family, d=8, share=0.9, separation=2.5),
    "30 columns": partial(_family, d=30, separation=2.5),
    "2 clusters a class": partial(_made, "classification", class_sep=1.2),
    "noisy labels": partial(_made, "classification", flip_y=0.15, n_clusters_per_class=1),
    "3 classes of 40": partial(
        _made, "classification", n_features=40, n_informative=10, n_classes=3
    ),
}
_FEATURE_SETS = ("digits 3, 8", "shirts, coats", "digits", "clothes")


def load_tables(settings: Settings) -> dict[str, Dataset]:
    """Load all tables: benchmark sets that are at hand, then further tables and features."""
    names = [name for name in BENCHMARKS if find_benchmark(name, settings.data_dir) is not None]
    loaded = {name: load_benchmark(name, settings.data_dir) for name in names}
    for name, make in _TABLES.items():
        loaded[name] = _dataset(name, make(), "made by iclda, or of scikit-learn")
    if settings.features is not None:
        loaded |= {path.stem: _read_features(path) for path in _feature_files(settings.features)}
    return loaded


def _dataset(name: str, data: CodedSet, origin: str) -> Dataset:
    y = data.codes.astype(str)
    return Dataset(name, data.X, y, (), origin, checksum(data.X, y))


def _feature_files(folder: Path) -> list[Path]:
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise ValueError(f"{folder} has no .npz file with features X and classes y.")
    return paths


def _read_features(path: Path) -> Dataset:
    with np.load(path) as stored:
        if not {"X", "y"} <= set(stored.files):
            raise ValueError(f"{path} must hold X and y, and holds {', '.join(stored.files)}.")
        codes = np.unique(stored["y"], return_inverse=True)[1]
        return _dataset(path.stem, CodedSet(stored["X"].astype(float), codes), str(path))


# Splits.


def _split_table(cell: Cell, sets: Mapping[str, CodedSet], seed: int, n_labeled: int) -> Split:
    """Test a fifth of the rows, label some of the others, at least one or two of every class."""
    data = sets[cell.dataset]
    rng = rng_of(seed, cell.dataset, cell.repeat)  # the same in all experiments
    order = rng.permutation(len(data.codes))
    n_test = min(MOST_ROWS, len(order) // 5)
    test, train = order[:n_test], order[n_test:]
    least = 1 if n_labeled < 2 * data.n_classes else 2
    first = np.concatenate([train[data.codes[train] == c][:least] for c in range(data.n_classes)])
    rest = train[~np.isin(train, first)]
    labeled = np.concatenate([first, rest[: max(0, n_labeled - len(first))]])
    free = rest[~np.isin(rest, labeled)][:MOST_ROWS]
    X = data.X
    if X.shape[1] < MANY_FEATURES:  # features of a network share one unit
        used = np.concatenate([labeled, free])
        X = (X - X[used].mean(axis=0)) / np.maximum(X[used].std(axis=0), 1e-12)
    rows = CellRows(
        X[labeled], data.codes[labeled], X[free], data.codes[free], data.n_classes, seed
    )
    return Split(rows, X[test], data.codes[test])


def _split_by_share(cell: Cell, sets: Mapping[str, CodedSet], seed: int) -> Split:
    """``part`` is the number of labels in percent of the number of features."""
    data = sets[cell.dataset]
    least = paper.n_labeled_of(0) if cell.part >= 200 else 2 * data.n_classes
    n_labeled = max(round(cell.part * data.X.shape[1] / 100), least)
    return _split_table(cell, sets, seed, n_labeled)


def _split_by_class(cell: Cell, sets: Mapping[str, CodedSet], seed: int) -> Split:
    """``part`` is the mean number of labels of a class."""
    return _split_table(cell, sets, seed, cell.part * sets[cell.dataset].n_classes)


def _split_by_labels(cell: Cell, sets: Mapping[str, CodedSet], seed: int) -> Split:
    """``part`` is the number of labels."""
    return _split_table(cell, sets, seed, max(cell.part, sets[cell.dataset].n_classes))


_BASE = {"labels": 10, "unlabeled": 100}
FAMILIES: dict[str, Sequence[Any]] = {
    "labels": (4, 6, 20, 40, 80),
    "d": (1, 2, 10, 20),
    "unlabeled": (5, 20, 500),
    "separation": (0, 1, 4, 6),
    "share": (0.7, 0.8, 0.9),
    "tails": ("uniform", "exponential", "Student, 3"),
    "classes": (3, 5),
}


def _family_names(is_quick: bool) -> list[str]:
    """``base``, and one name for each change of one setting of it."""
    known = {"labels": (4,), "classes": (3,)} if is_quick else FAMILIES
    return ["base", *(f"{name} {value}" for name, values in known.items() for value in values)]


def _split_family(cell: Cell, sets: Mapping[str, CodedSet], seed: int) -> Split:
    """Draw a problem of a family, or split a benchmark set."""
    if cell.dataset in sets:
        return _split_by_share(cell, sets, seed)
    shape: dict[str, Any] = dict(_BASE)
    name, _, text = cell.dataset.partition(" ")
    if text:
        shape[name] = type(FAMILIES[name][0])(text)
    n_labeled, n_unlabeled = shape.pop("labels"), shape.pop("unlabeled")
    n_classes = shape.get("classes", 2)
    if n_classes > 2:
        shape["share"], n_labeled = 1 / n_classes, n_labeled * n_classes // 2
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat)
    X, codes = draw_family(rng, n_labeled + n_unlabeled + MOST_ROWS, **shape)
    first = np.concatenate([np.flatnonzero(codes == c)[:2] for c in range(n_classes)])
    order = np.concatenate([first, np.setdiff1d(np.arange(len(X)), first)])
    labeled, free, test = np.split(order, [n_labeled, n_labeled + n_unlabeled])
    rows = CellRows(X[labeled], codes[labeled], X[free], codes[free], n_classes, seed)
    return Split(rows, X[test], codes[test])


# Where the maxima lie.


def find_maxima(rows: CellRows, n_starts: int) -> list[tuple[float, Any]]:
    """Objective per labeled row and model at the end of every start that reaches a maximum.

    The first start is the supervised fit, others are random hyperplanes of random sharpness. Paths
    start at a low tau, so that each leads to a maximum near its start, and not to the best one.
    """
    problem, held = rows.problem, hold_all(rows.problem)
    likelihood = problem.likelihood
    follower, rng = Follower(likelihood, held), rng_of(rows.seed, "starts")
    shape = problem.labeled_point.shape
    equal = follower.state(np.zeros(shape), 1.0)
    tau = _FIRST_TAU * max(held.spread(equal.gradient), 1e-3 * likelihood.weight)
    random = [np.exp(rng.uniform(-1, 3)) * rng.standard_normal(shape) for _ in range(n_starts)]
    ends = []
    for scores in [np.maximum(start_scores(problem), -1e6), *random]:
        state = follower.state(scores, tau)
        effort = Effort(tol=1e-6 * likelihood.weight, max_iter=200)
        path = follower.follow(state, effort) if likelihood.is_bounded(state.point) else None
        if path is not None and path.is_bounded and path.gap <= effort.tol:
            rule = problem.rule_of(path.state.label_scores, is_soft=True)
            model = problem.model_of(path.state.point, rule)
            ends.append((path.state.value / likelihood.weight, model))
        elif not ends:
            break  # the supervised start has no maximum to compare with
    return ends


def _fit_maxima(split: Split, method: str) -> dict[str, Any]:
    if method == "default":
        model = split.fit(find_method("iclda").classifier(seed=split.rows.seed))
        return {**split.measure(model), **_places(model), "maxima": model.n_optima_}
    n_starts = min(N_STARTS, max(_FEWEST_STARTS, _STARTS_X_FEATURES // split.rows.X.shape[1]))
    ends = find_maxima(split.rows, n_starts)
    if not ends:
        return {"maxima": 0}
    values = np.array([value for value, _ in ends])
    distinct = 1 + int((np.diff(np.sort(values)) > _SAME_VALUE).sum())
    found = {"maxima": distinct}
    for name, place in {"start": 0, "best": values.argmax(), "worst": values.argmin()}.items():
        measured = split.measure(ends[int(place)][1])
        found |= {f"{key}_{name}": value for key, value in measured.items()}
    return found


def _places(model: Any) -> dict[str, Any]:
    """Whether labels are hard, interior or tied, and the number of fractional rows."""
    shares = np.asarray(model.responsibilities_)
    is_in = shares > 1e-12
    n_classes, bound = shares.shape[1], (shares.shape[1] - 1) * (model.rank_ + 1)
    together = is_in.T.astype(int) @ is_in  # rows that two classes share
    tied = int((together[np.triu_indices(n_classes, 1)] > bound).sum())
    is_interior = bool(is_in.all()) and tied > 0
    kind = "interior" if is_interior else "tied" if tied else "hard"
    return {"kind": kind, "fractional": len(model.shared_rows_), "bound": bound}


# Widths of the constraints.


def _fit_constrained(split: Split, method: str) -> dict[str, Any]:
    if method != "widths":
        model = fit_method(method, split.rows)
        values: dict[str, Any] = split.measure(model)
        if method == "MCLDA-likelihood":
            values["excess"] = _excess(split.rows, model)
        return values
    rng, rows = rng_of(split.rows.seed, "directions"), split.rows
    z = _whitened(rows)
    random = rng.standard_normal((_N_DIRECTIONS, z.shape[1]))
    codes = np.concatenate([rows.codes, rows.codes_unlabeled])
    between = z[codes == 1].mean(axis=0) - z[codes == 0].mean(axis=0)
    widths = [width_ratio(z @ u, 0.5) for u in random]
    return {
        "width": float(np.mean(widths)),
        "narrowest": min(width_ratio(column, 0.5) for column in z.T),
        "width_between": width_ratio(z @ between, 0.5),
        "widest": max(width_ratio(column, 0.5) for column in z.T),
        "rank": z.shape[1],
    }


def _whitened(rows: CellRows) -> Array:
    """All rows in coordinates in which their covariance is the identity."""
    problem = rows.problem
    return problem.whitening.points(problem.frame.apply(rows.rows))


def width_ratio(along: Array, weight: float) -> float:
    """Largest class sum along a direction over the one that the moments allow.

    A class of the weight r has a sum b of at most sqrt(r (1 - r)) standard deviations if the
    covariance within classes is to be positive. It is largest if the class has all rows above a
    threshold, and one of them in part.
    """
    along = np.sort(along - along.mean())[::-1] / along.std()
    n = len(along)
    reached = np.interp(weight * n, np.arange(n + 1), np.concatenate([[0], np.cumsum(along)])) / n
    return float(reached / np.sqrt(weight * (1 - weight)))


def _excess(rows: CellRows, model: Any) -> float:
    """Class sum of a model of two classes, over the largest attainable one in its direction."""
    means, weight = rows.problem.whitening.points(model.means), float(model.class_weights[0])
    direction = means[0] - means[1]
    used = np.sqrt(weight * (1 - weight)) * float(np.linalg.norm(direction))
    return used / width_ratio(_whitened(rows) @ direction, weight)


# Safety, EM, proportions, and all methods.


def _shrinkage(split: Split) -> float:
    """The automatic shrinkage, which all methods of a cell share."""
    model = find_method("em").classifier(shrinkage="auto").set_params(max_iter=1)
    return float(split.fit(model).shrinkage_)


def _fit_safely(split: Split, method: str) -> dict[str, Any]:
    """Also the change of the training likelihood from supervised LDA: true, and the worst case."""
    shrinkage = _shrinkage(split)
    model = split.fit(find_method(method).classifier(shrinkage=shrinkage, seed=split.rows.seed))
    rows, values = split.rows, split.measure(model)
    if method == paper.BASELINE:
        return values
    bounds = model.gain_bounds(rows.rows, rows.y)
    base = split.fit(find_method(paper.BASELINE).classifier(shrinkage=shrinkage))
    truth = np.concatenate([rows.codes, rows.codes_unlabeled])
    place = np.arange(len(truth)), truth
    ours, theirs = (m._gaussians_.log_joint(rows.rows)[place] for m in (model, base))
    gain = float((ours - theirs).mean())
    bounded = {"gain": gain, "worst": bounds.worst, "disagreement": bounds.disagreement}
    return {**values, **bounded}


def _fit_em(split: Split, method: str) -> dict[str, Any]:
    name, _, weight = method.partition(" x ")
    if not weight:
        return split.measure(fit_method(method, split.rows))
    model = find_method(name).classifier()
    if weight == "cv":
        weight = _choose_weight(split, model)
    fitted = split.fit(model.set_params(unlabeled_weight=float(weight)))
    return {**split.measure(fitted), "weight": float(weight)}


def _choose_weight(split: Split, model: Any) -> float:
    """The weight of unlabeled rows with the lowest Brier score of the labeled rows."""
    from sklearn.model_selection import GridSearchCV

    from ...model_selection import SemiSupervisedKFold, semi_supervised_scorer

    rows = split.rows
    n_folds = min(5, int(np.bincount(rows.codes).min()))
    folds = SemiSupervisedKFold(n_folds, n_repeats=2, random_state=rows.seed)
    score = semi_supervised_scorer("neg_brier_score")
    grid = {"unlabeled_weight": WEIGHTS}
    search = GridSearchCV(model, grid, scoring=score, cv=folds, refit=False)
    return float(search.fit(rows.rows, rows.y).best_params_["unlabeled_weight"])


def _classifier(split: Split, method: str, proportions: Any = None) -> Any:
    """A method with automatic shrinkage and, where searches are slow, few starts."""
    found = find_method(method, COMPARED).classifier(
        shrinkage="auto", proportions=proportions, seed=split.rows.seed
    )
    if "n_starts" in found.get_params():
        n_unknowns = (split.rows.n_classes - 1) * (split.rows.X.shape[1] + 1)
        found.set_params(n_starts=1 if n_unknowns > _SLOW else 8)
    return found


def _fit_in_proportions(split: Split, method: str) -> dict[str, Any]:
    name, _, given = method.partition(" ")
    if name == "iclda" and split.rows.n_classes > 2:
        return {}  # takes minutes
    proportions = split.true_shares if given == "true" else given or None
    model = split.fit(_classifier(split, name, proportions))
    predicted = model.predict_proba(split.rows.X_unlabeled).mean(axis=0)
    return {**split.measure(model), "off": float(np.abs(predicted - split.true_shares).sum() / 2)}


def _fit_any(split: Split, method: str) -> dict[str, Any]:
    """``seen`` is what can be seen before methods are compared."""
    rows = split.rows
    if method == "auto":
        from ..._estimators.auto import AutoLDA

        model = split.fit(AutoLDA(random_state=rows.seed))
        return {**split.measure(model), "chosen": model.method_}
    model = split.fit(_classifier(split, "supervised" if method == "seen" else method))
    if method != "seen":
        return split.measure(model)
    surest = model.predict_proba(rows.X_unlabeled).max(axis=1)
    z = rows.rows - rows.rows.mean(axis=0)
    kurtosis = (z**4).mean(axis=0) / np.maximum((z**2).mean(axis=0), 1e-12) ** 2
    return {
        "labels of a class": len(rows.X) / rows.n_classes,
        "labels a feature": len(rows.X) / rows.X.shape[1],
        "features": rows.X.shape[1],
        "doubt": float(1 - surest.mean()),
        "kurtosis": float(np.median(np.abs(kurtosis - 3))),
    }


# The counterexamples.

SMALLEST = CellRows(
    np.array([[-1.0], [1.0], [0.0]]), np.array([0, 0, 1]), np.array([[10.0]]), np.array([0]), 2, 0
)
DEEP = CellRows(
    np.array([[0.0, 3.0], [1.0, 3.0], [1.0, 0.0], [2.0, 0.0]]),
    np.array([0, 0, 1, 1]),
    np.array([[3.0, 0.0], [3.0, 2.0]]),
    np.array([1, 0]),
    2,
    0,
)
EXAMPLES = {"smallest": SMALLEST, "deep": DEEP}
_GRID = 61  # shares of an unlabeled row at which the objective is computed


def objective_of(rows: CellRows, shares: Array) -> tuple[Array, Array, Array]:
    """Objective of labelings (S, n), its derivatives by the shares of class 1, and the gaps."""
    problem = rows.problem
    held = hold_all(problem)
    second = problem.labeled_point[1] + (shares * held.weights) @ held.z
    points = np.stack([problem.labeled_point.sum(axis=0) + held.weights @ held.z - second, second])
    points = points.swapaxes(0, 1)
    values, gradients = problem.likelihood.value_and_gradient(points)
    slopes = (gradients[:, 1] - gradients[:, 0]) @ held.z.T * held.weights
    gaps = np.array([gap(held, p, g) for p, g in zip(points, gradients, strict=True)])
    return values, slopes, gaps


def _fit_example(split: Split, method: str) -> dict[str, Any]:
    """Objective on a grid over all labelings of the one or two unlabeled rows; its maxima."""
    rows = split.rows
    axis, n = np.linspace(0, 1, _GRID), len(rows.X_unlabeled)
    shares = np.stack(np.meshgrid(*[axis] * n, indexing="ij"), axis=-1).reshape(-1, n)
    values = objective_of(rows, shares)[0]
    return {"grid": json.dumps(values.round(6).tolist()), "maxima": json.dumps(prove(rows))}


def prove(rows: CellRows) -> list[dict[str, Any]]:
    """Local maxima over all labelings: shares, objective, gap, slopes, and curvature if inside.

    Newton's method from every point of a grid that is higher than its neighbors. A hard share is a
    strict maximum if the slope leads out of [0, 1], a soft one if the slope is 0 and the curvature
    negative.
    """
    axis, n = np.linspace(0, 1, 101), len(rows.X_unlabeled)
    shares = np.stack(np.meshgrid(*[axis] * n, indexing="ij"), axis=-1).reshape(-1, n)
    grid = np.pad(objective_of(rows, shares)[0].reshape((101,) * n), 1, constant_values=-np.inf)
    found = []
    for place, start in zip(np.ndindex((101,) * n), shares, strict=True):
        around = grid[tuple(slice(k, k + 3) for k in place)]
        if np.sum(around >= grid[tuple(k + 1 for k in place)]) == 1:
            found.append(_sharpened(rows, start))
    return found


def _sharpened(rows: CellRows, share: Array) -> dict[str, Any]:
    step, curvature = 1e-5, np.zeros(len(share))
    for _ in range(20):
        value, slopes, left = (part[0] for part in objective_of(rows, share[None]))
        is_soft = (share > 0) & (share < 1)
        for k in np.flatnonzero(is_soft):
            moved = share + step * np.eye(len(share))[k] * np.array([[1], [-1]])
            ahead, behind = objective_of(rows, moved)[1][:, k]
            curvature[k] = (ahead - behind) / (2 * step)
        change = np.divide(-slopes, curvature, out=np.zeros_like(slopes), where=is_soft)
        share = np.clip(share + change, 0, 1)
    names = ("shares", "value", "gap", "slopes", "curvature")
    return dict(zip(names, map(_plain, (share, value, left, slopes, curvature)), strict=True))


def _plain(value: Any) -> Any:
    return np.asarray(value).round(12).tolist()


@dataclass(frozen=True)
class Question:
    """An experiment: data sets, parts and methods; quick runs take the first few of each."""

    sets: Callable[[Mapping[str, Any], bool], Iterable[str]]
    parts: Sequence[int]
    methods: Sequence[str]
    repeats: tuple[int, int, int]  # of tables, of drawn problems, and of quick runs
    fit: Callable[[Split, str], dict[str, Any]]
    split: Callable[[Cell, Mapping[str, CodedSet], int], Split] = _split_by_share


def _benchmarks(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    names = [name for name in BENCHMARKS if name in sets]
    return [name for name in names if name in ("Haberman", "Pima")] if is_quick else names


def _with_families(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    return [*_family_names(is_quick), *_benchmarks(sets, is_quick)]


def _with_toys(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    return [*_benchmarks(sets, is_quick), "two Gaussians", "across clusters"]


def _with_features(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    added = [name for name in sets if name not in BENCHMARKS and name not in _TABLES]
    features = [] if is_quick else [*_FEATURE_SETS, *added]
    return [*_benchmarks(sets, is_quick), *features]


def _everything(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    return ["iris", "moons", "Haberman"] if is_quick else list(sets)


def _of_few_columns(sets: Mapping[str, Any], is_quick: bool) -> list[str]:
    """Tables on which ``AutoLDA`` compares methods; with more columns it fits the average."""
    return [n for n in _everything(sets, is_quick) if sets[n].X.shape[1] < MANY_FEATURES // 2]


_SAFE = ("LDA", "MCLDA", "EMLDA", "SLLDA", "STLDA", "ICLDA", "MCPLDA")
_IMPOSED = tuple(
    f"{m} {how}".strip() for m in ("em", "iclda") for how in ("", "labeled", "auto", "true")
)
CANDIDATES = tuple(
    method.name for method in (*FITTED, *BASELINES) if method.name != "iclda-proportions"
)
QUESTIONS: dict[str, Question] = {
    "example": Question(lambda *_: EXAMPLES, (0,), ("ICLDA",), (1, 1, 1), _fit_example),
    "maxima": Question(
        _with_families,
        (50, 100, 200),
        ("starts", "default"),
        (6, 24, 3),
        _fit_maxima,
        _split_family,
    ),
    "constraints": Question(
        _benchmarks,
        (200,),
        ("widths", "LDA", "ICLDA", "MCLDA-likelihood"),
        (20, 0, 3),
        _fit_constrained,
    ),
    "safety": Question(_benchmarks, (50, 100, 200, 400), _SAFE, (8, 0, 3), _fit_safely),
    "em": Question(
        _with_toys,
        (200,),
        ("LDA", "EMLDA", paper.PUBLISHED_EM, *(f"em x {w}" for w in (*WEIGHTS[:-1], "cv"))),
        (12, 0, 2),
        _fit_em,
    ),
    "proportions": Question(
        _with_features,
        _FEATURE_LABELS,
        ("supervised", *_IMPOSED),
        (4, 0, 2),
        _fit_in_proportions,
        _split_by_class,
    ),
    "methods": Question(
        _everything, LABELS, ("seen", *CANDIDATES), (2, 0, 1), _fit_any, _split_by_labels
    ),
    "auto": Question(_of_few_columns, (20,), ("auto",), (1, 0, 1), _fit_any, _split_by_labels),
}


def plan_cells(name: str, sets: Mapping[str, CodedSet], is_quick: bool) -> list[Cell]:
    """Cells of an experiment for which there are rows enough."""
    question = QUESTIONS[name]
    parts = {}
    for dataset in question.sets(sets, is_quick):
        every = question.parts[:: 1 + is_quick] if dataset in sets else (0,)
        parts[dataset] = [part for part in every if _has_rows(question, sets, dataset, part)]
    of_tables, of_drawn, of_quick = question.repeats
    repeats = {dataset: of_tables if dataset in sets else of_drawn for dataset in parts}
    return [
        cell
        for dataset, n in repeats.items()
        for cell in cells_of(name, {dataset: parts[dataset]}, of_quick if is_quick else n)
    ]


def _has_rows(question: Question, sets: Mapping[str, CodedSet], dataset: str, part: int) -> bool:
    """Whether a fifth of the rows remains unlabeled after a fifth is tested."""
    if dataset not in sets:
        return True
    n_rows, n_features = sets[dataset].X.shape
    factors = {_split_by_class: sets[dataset].n_classes, _split_by_labels: 1}
    return part * factors.get(question.split, n_features / 100) <= 0.6 * n_rows


def run_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method of an experiment once on the split of a cell."""
    question = QUESTIONS[cell.experiment]
    if cell.dataset in EXAMPLES:
        rows = EXAMPLES[cell.dataset]
        split = Split(rows, rows.X, rows.codes)
    else:
        split = question.split(cell, sets, seed)

    def fit(method: str) -> dict[str, Any]:
        return {"values": question.fit(split, method)}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failed fits are stored, their warnings are not
        return [record_fit(cell, m, split.sizes, seed, partial(fit, m)) for m in methods]


def answer(settings: Settings, advance: Advance = lambda *_: None) -> None:
    """Compute the cells that are missing, storing every row as soon as it is computed."""
    loaded = load_tables(settings)
    sets = {
        name: CodedSet(data.X, np.unique(data.y, return_inverse=True)[1])
        for name, data in loaded.items()
    }
    how: Any = {"sets": sets, "run": partial(run_cell, seed=settings.seed), "jobs": settings.jobs}
    with closing(Store(settings.out / STORE, kind=KIND)) as store:
        note_run(store, KIND, settings, loaded)
        for name, question in QUESTIONS.items():
            cells = plan_cells(name, sets, settings.is_quick)
            run_missing(store, name, cells, question.methods, advance, **how)
