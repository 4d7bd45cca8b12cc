"""Run the experiments on the open questions of the paper, and store their rows.

The function that fits a method of an experiment is in ``_FITS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn import datasets as sklearn_datasets
from sklearn.model_selection import GridSearchCV

from ... import datasets
from ..._core import AnyArray, Array
from ..._core.solvers.alternate import start_scores
from ..._core.solvers.attainable import gap, hold_all
from ..._core.solvers.continuation import Effort, Follower
from ..._estimators.auto import AutoLDA
from ..._progress import Advance
from ..._rows.backends import MANY_FEATURES
from ...datasets import BENCHMARKS, Dataset
from ...methods import COMPARED, find_method
from ...model_selection import SemiSupervisedKFold, semi_supervised_scorer
from .. import paper, record_fits, rng_of
from ..measures import compute_measures, paper_measures
from ..store import Cell, FitResult, cells_of
from . import EXPERIMENTS, GRID, PLAN, QUESTIONS
from .run import CellRows, CodedSet, Plan, fit_method, predict_rows, run_experiments

N_STARTS = (
    16  # random hyperplanes from which maxima are looked for, beside the supervised fit
)
WEIGHTS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)  # of unlabeled rows in EM
_MOST_ROWS = 1000  # unlabeled rows, and test rows, of a cell
_TABLE_ROWS = 1200  # of tables that are drawn
_STARTS_X_FEATURES, _FEWEST_STARTS = 300, 4  # fewer starts with many features
_FIRST_TAU = (
    0.01  # of a path, over the spread of the gradient: lower than that of the search
)
SAME_VALUE = 1e-5  # maxima whose objectives per labeled row differ by less count as one
_N_DIRECTIONS = 200  # random directions along which widths are measured
_SLOW = 300  # unknowns of a search, above which it takes minutes
_SLOW_IN_PROPORTIONS = 40  # the same with class proportions
_FEW_COLUMNS = 32  # with which ``AutoLDA`` takes seconds


@dataclass(frozen=True)
class StudySettings:
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

    def fit(self, classifier: Any) -> Any:
        return classifier.fit(self.rows.rows, self.rows.y)

    def measure(self, model: Any) -> dict[str, Any]:
        """Error and losses of a fitted classifier, or of Gaussians."""
        model = getattr(model, "_gaussians_", model)
        predictions = predict_rows(model, self.X_test, self.codes_test, self.rows)
        return {**compute_measures(predictions, paper_measures())}

    @property
    def n_unknowns(self) -> int:
        return (self.rows.n_classes - 1) * (self.rows.X.shape[1] + 1)

    @property
    def true_shares(self) -> Array:
        counts = np.bincount(self.rows.codes_unlabeled, minlength=self.rows.n_classes)
        return np.asarray(counts / counts.sum())


# Data sets.


def draw_family(
    rng: np.random.Generator, n: int, **changes: Any
) -> tuple[Array, AnyArray]:
    """Draw rows of a family: the base of ``questions.toml`` with changes."""
    shape = {**PLAN["base"], **changes}
    n_classes, share = shape["classes"], shape["share"]
    codes = rng.choice(
        n_classes, n, p=[share] + [(1 - share) / (n_classes - 1)] * (n_classes - 1)
    )
    noise: dict[str, Callable[..., Any]] = {
        "normal": rng.standard_normal,
        "uniform": lambda size: np.sqrt(3) * rng.uniform(-1, 1, size),
        "exponential": lambda size: rng.exponential(size=size) - 1,
        "Student, 3": lambda size: rng.standard_t(3, size) / np.sqrt(3),
    }
    rows = noise[shape["tails"]]((n, shape["d"]))
    if n_classes == 2:
        rows[:, 0] += shape["separation"] * codes
    else:
        rows += shape["separation"] / np.sqrt(2) * np.eye(n_classes, shape["d"])[codes]
    return rows, codes


def _make_table(
    of: str, kept: Sequence[Any] = (), **shape: Any
) -> tuple[Array, AnyArray]:
    """Load or draw a table of ``questions.toml``."""
    rng = np.random.default_rng(0)
    made: Any
    if of == "family":
        made = draw_family(rng, _TABLE_ROWS, **shape)
    elif of.endswith("gaussians"):
        made = getattr(datasets, f"make_{of}")(_TABLE_ROWS, rng, 0.8)
    elif of == "clothes":
        made = datasets.load_fashion_features()
    elif hasattr(sklearn_datasets, f"make_{of}"):
        made = getattr(sklearn_datasets, f"make_{of}")(
            _TABLE_ROWS, random_state=0, **shape
        )
    else:
        made = getattr(sklearn_datasets, f"load_{of}")(return_X_y=True)
    X, y = made
    if of == "diabetes":
        y = y > np.median(y)
    is_kept = np.isin(y, kept or y)
    X, y = X[is_kept], y[is_kept]
    return X[:, X.std(axis=0) > 0], np.unique(y, return_inverse=True)[1]


def load_tables(settings: StudySettings) -> dict[str, Dataset]:
    """Load all tables: benchmark sets that are at hand, further tables, and the user's features."""
    folder, loaded = settings.data_dir, {}
    for name in BENCHMARKS:
        if datasets.find_benchmark(name, folder) is not None:
            loaded[name] = datasets.load_benchmark(name, folder)
    for name, made in PLAN["tables"].items():
        loaded[name] = _dataset(name, *_make_table(**made))
    if settings.features is not None:
        paths = sorted(settings.features.glob("*.npz"))
        if not paths:
            fault = "has" if settings.features.is_dir() else "is no folder, and has"
            message = f"{settings.features} {fault} no .npz file with features X and classes y."
            raise ValueError(message)
        for path in paths:
            with np.load(path) as stored:
                if not {"X", "y"} <= set(stored.files):
                    names = ", ".join(stored.files)
                    raise ValueError(f"{path} must hold X and y, and holds {names}.")
                loaded[path.stem] = _dataset(
                    path.stem, stored["X"].astype(float), stored["y"]
                )
    return loaded


def _dataset(name: str, X: Array, classes: AnyArray) -> Dataset:
    y = classes.astype(str)
    return Dataset(name, X, y, (), "questions.toml", datasets.checksum(X, y))


# Splits.


def _n_labeled(experiment: str, part: int, data: CodedSet) -> int:
    unit = EXPERIMENTS[experiment].get("unit", "percent of features")
    if unit == "in all":
        return max(part, data.n_classes)
    if unit == "of a class":
        return part * data.n_classes
    least = paper.n_labeled_of(0) if part >= 200 else 2 * data.n_classes
    return max(round(part * data.X.shape[1] / 100), least)


def _split_table(cell: Cell, data: CodedSet, seed: int) -> Split:
    """Test a fifth of the rows, label some of the others, at least one or two of every class."""
    n_labeled, X = _n_labeled(cell.experiment, cell.part, data), data.X
    rng = rng_of(seed, cell.dataset, cell.repeat)  # the same in all experiments
    order = rng.permutation(len(data.codes))
    n_test = min(_MOST_ROWS, len(order) // 5)
    test, train = order[:n_test], order[n_test:]
    least = 1 if n_labeled < 2 * data.n_classes else 2
    first = np.concatenate(
        [train[data.codes[train] == c][:least] for c in range(data.n_classes)]
    )
    train = np.concatenate([first, train[~np.isin(train, first)]])[
        : n_labeled + _MOST_ROWS
    ]
    is_raw = EXPERIMENTS[cell.experiment].get("is_raw", False)
    if (
        X.shape[1] < MANY_FEATURES and not is_raw
    ):  # features of a network share one unit
        X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
    return _split(X, data.codes, np.split(train, [n_labeled]), test, seed)


def _split(
    X: Array, codes: AnyArray, train: Sequence[Any], test: Any, seed: int
) -> Split:
    labeled, free = train
    rows = CellRows(
        X[labeled], codes[labeled], X[free], codes[free], int(codes.max()) + 1, seed
    )
    return Split(rows, X[test], codes[test])


def _split_family(cell: Cell, seed: int) -> Split:
    """Draw a problem of a family; its name is that of a setting, then the value."""
    name, _, text = cell.dataset.partition(" ")
    changes = {name: type(PLAN["families"][name][0])(text)} if text else {}
    shape = {**PLAN["base"], **changes}
    n_classes, n_labeled, n_unlabeled = (
        shape["classes"],
        shape["labels"],
        shape["unlabeled"],
    )
    if n_classes > 2:
        changes["share"], n_labeled = 1 / n_classes, n_labeled * n_classes // 2
    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat)
    X, codes = draw_family(rng, n_labeled + n_unlabeled + _MOST_ROWS, **changes)
    first = np.concatenate([np.flatnonzero(codes == c)[:2] for c in range(n_classes)])
    order = np.concatenate([first, np.setdiff1d(np.arange(len(X)), first)])
    labeled, free, test = np.split(order, [n_labeled, n_labeled + n_unlabeled])
    return _split(X, codes, [labeled, free], test, seed)


def example_rows(name: str) -> CellRows:
    """Rows of a counterexample."""
    one, two, free = (
        np.array(part, dtype=float) for part in PLAN["examples"][name].values()
    )
    codes = np.repeat([0, 1], [len(one), len(two)])
    return CellRows(
        np.concatenate([one, two]), codes, free, np.zeros(len(free), dtype=int), 2, 0
    )


# Counterexamples and maxima.


def objective_of(rows: CellRows, shares: Array) -> tuple[Array, Array, Array]:
    """Objective of labelings (S, n), its derivatives by the shares of class 1, and the gaps."""
    problem, held = rows.problem, hold_all(rows.problem)
    second = problem.labeled_point[1] + (shares * held.weights) @ held.z
    total = problem.labeled_point.sum(axis=0) + held.weights @ held.z
    points = np.stack([total - second, second], axis=1)
    values, gradients = problem.likelihood.value_and_gradient(points)
    slopes = (gradients[:, 1] - gradients[:, 0]) @ held.z.T * held.weights
    gaps = np.array([gap(held, p, g) for p, g in zip(points, gradients, strict=True)])
    return values, slopes, gaps


def prove_maxima(rows: CellRows) -> list[dict[str, Any]]:
    """List local maxima over all labelings of few unlabeled rows, each with its conditions.

    A hard share belongs to a strict maximum if its slope leads out of [0, 1], a single soft share
    if its slope is 0 and the curvature negative.
    """

    def negative(share: Array) -> tuple[float, Array]:
        values, slopes, _ = objective_of(rows, share[None])
        return -float(values[0]), -slopes[0]

    found: list[dict[str, Any]] = []
    n = len(rows.X_unlabeled)
    for start in np.ndindex(*[4] * n):
        ends: Any = {"bounds": [(0, 1)] * n, "options": {"gtol": 1e-10, "ftol": 1e-16}}
        share = minimize(
            negative, np.array(start) / 3, jac=True, method="L-BFGS-B", **ends
        ).x
        value, slopes, left = (part[0] for part in objective_of(rows, share[None]))
        near = share + 1e-5 * np.array([[1.0], [-1.0]])
        ahead, behind = objective_of(rows, near)[1]
        bend = np.where((share > 0) & (share < 1), (ahead - behind) / 2e-5, 0.0)
        numbers = {
            "value": value,
            "shares": share,
            "gap": left,
            "slopes": slopes,
            "bend": bend,
        }
        texts = {
            name: np.asarray(number).round(6).tolist()
            for name, number in numbers.items()
        }
        if (
            left < 1e-6
            and (bend <= 0).all()
            and texts["shares"] not in [m["shares"] for m in found]
        ):
            found.append(texts)
    return found


def _fit_example(split: Split, method: str) -> dict[str, Any]:
    """Objective on a grid over all labelings of the unlabeled rows, and its maxima."""
    axes = [np.linspace(0, 1, GRID)] * len(split.rows.X_unlabeled)
    shares = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    grid = objective_of(split.rows, shares)[0].round(6).tolist()
    return {"grid": json.dumps(grid), "maxima": json.dumps(prove_maxima(split.rows))}


def find_maxima(rows: CellRows, n_starts: int) -> list[tuple[float, Any]]:
    """Objective per labeled row and model at the end of every start that reaches a maximum.

    The first start is the supervised fit, others are random hyperplanes of random sharpness. Paths
    start at a low tau, so that each leads to a maximum near its start, and not to the best one.
    """
    problem, held = rows.problem, hold_all(rows.problem)
    likelihood, shape = problem.likelihood, problem.labeled_point.shape
    follower, rng = Follower(likelihood, held), rng_of(rows.seed, "starts")
    spread = held.spread(follower.state(np.zeros(shape), 1.0).gradient)
    tau = _FIRST_TAU * max(spread, 1e-3 * likelihood.weight)
    effort = Effort(tol=1e-6 * likelihood.weight, max_iter=200)
    random = [
        np.exp(rng.uniform(-1, 3)) * rng.standard_normal(shape) for _ in range(n_starts)
    ]
    ends = []
    for scores in [np.maximum(start_scores(problem), -1e6), *random]:
        state = follower.state(scores, tau)
        path = (
            follower.follow(state, effort)
            if likelihood.is_bounded(state.point)
            else None
        )
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
        return {**split.measure(model), **_place(model), "maxima": model.n_optima_}
    wanted = max(_FEWEST_STARTS, _STARTS_X_FEATURES // split.rows.X.shape[1])
    ends = find_maxima(split.rows, min(N_STARTS, wanted))
    if not ends:
        return {"maxima": 0}
    values = np.array([value for value, _ in ends])
    found: dict[str, Any] = {
        "maxima": 1 + int((np.diff(np.sort(values)) > SAME_VALUE).sum())
    }
    places = {"start": 0, "best": int(values.argmax()), "worst": int(values.argmin())}
    for name, place in places.items():
        measured = split.measure(ends[place][1])
        found |= {f"{key}_{name}": value for key, value in measured.items()}
    return found


def _place(model: Any) -> dict[str, Any]:
    """Whether labels are hard, tied or interior, and the number of fractional rows."""
    is_in = np.asarray(model.responsibilities_) > 1e-12
    n_classes = is_in.shape[1]
    bound = (n_classes - 1) * (model.rank_ + 1)
    shared = is_in.T.astype(int) @ is_in  # rows that two classes have in common
    is_tied = shared[np.triu_indices(n_classes, 1)] > bound
    kind = "interior" if is_tied.all() else "tied" if is_tied.any() else "hard"
    return {"kind": kind, "fractional": len(model.shared_rows_), "bound": bound}


# Widths of the constraints.


def width_ratio(along: Array, weight: float) -> float:
    """Largest class sum along a direction over the one that the moments allow.

    A class of the weight r has a sum b of at most sqrt(r (1 - r)) standard deviations if the
    covariance within classes is to be positive. It is largest if the class has all rows above a
    threshold, and one of them in part.
    """
    along = np.sort(along - along.mean())[::-1] / along.std()
    sums = np.concatenate([[0], np.cumsum(along)]) / len(along)
    reached = np.interp(weight * len(along), np.arange(len(sums)), sums)
    return float(reached / np.sqrt(weight * (1 - weight)))


def _fit_constrained(split: Split, method: str) -> dict[str, Any]:
    rows, problem = split.rows, split.rows.problem
    z = problem.whitening.points(problem.frame.apply(rows.rows))
    if method == "widths":
        random = rng_of(rows.seed, "directions").standard_normal(
            (_N_DIRECTIONS, z.shape[1])
        )
        codes = np.concatenate([rows.codes, rows.codes_unlabeled])
        between = z[codes == 1].mean(axis=0) - z[codes == 0].mean(axis=0)
        principal = [width_ratio(column, 0.5) for column in z.T]
        return {
            "width": float(np.mean([width_ratio(z @ u, 0.5) for u in random])),
            "width_between": width_ratio(z @ between, 0.5),
            "narrowest": min(principal),
            "widest": max(principal),
            "rank": z.shape[1],
        }
    model = fit_method(find_method(method, COMPARED).paper_name, rows)
    values = split.measure(model)
    if method == "moment-likelihood":
        means, weight = (
            problem.whitening.points(model.means),
            float(model.class_weights[0]),
        )
        used = np.sqrt(weight * (1 - weight)) * float(
            np.linalg.norm(means[0] - means[1])
        )
        values["excess"] = used / width_ratio(z @ (means[0] - means[1]), weight)
    return values


# Safety, EM, proportions, and all methods.


def _fit_safely(split: Split, method: str) -> dict[str, Any]:
    """Also the change of the training likelihood from supervised LDA: true, and the worst case."""
    once = find_method("em").classifier(shrinkage="auto").set_params(max_iter=1)
    shared: Any = {"shrinkage": split.fit(once).shrinkage_, "seed": split.rows.seed}
    model = split.fit(find_method(method).classifier(**shared))
    rows, values = split.rows, split.measure(model)
    if method == "supervised":
        return values
    bounds = model.gain_bounds(rows.rows, rows.y)
    base = split.fit(find_method("supervised").classifier(**shared))
    truth = np.concatenate([rows.codes, rows.codes_unlabeled])
    ours, theirs = (m._gaussians_.log_joint(rows.rows) for m in (model, base))
    values["gain"] = float((ours - theirs)[np.arange(len(truth)), truth].mean())
    return {**values, "worst": bounds.worst, "disagreement": bounds.disagreement}


def _fit_em(split: Split, method: str) -> dict[str, Any]:
    name, _, weight = method.partition(" x ")
    if not weight:
        is_published = method == "em as published"
        in_paper = (
            paper.PUBLISHED_EM if is_published else find_method(method).paper_name
        )
        return split.measure(fit_method(in_paper, split.rows))
    model, rows = find_method(name).classifier(), split.rows
    if weight == "cv":
        n_folds = min(5, int(np.bincount(rows.codes).min()))
        folds = SemiSupervisedKFold(n_folds, n_repeats=2, random_state=rows.seed)
        how: Any = {"scoring": semi_supervised_scorer("neg_brier_score"), "cv": folds}
        search = GridSearchCV(model, {"unlabeled_weight": WEIGHTS}, refit=False, **how)
        weight = search.fit(rows.rows, rows.y).best_params_["unlabeled_weight"]
    fitted = split.fit(model.set_params(unlabeled_weight=float(weight)))
    return {**split.measure(fitted), "weight": float(weight)}


def _fit_shrunk(split: Split, method: str, proportions: Any = None) -> Any:
    """Fit a method with automatic shrinkage; None if that takes minutes."""
    found = find_method(method, COMPARED).classifier(
        shrinkage="auto", proportions=proportions, seed=split.rows.seed
    )
    if split.n_unknowns > _SLOW and method in ("iclda", "pessimistic"):
        return None
    return split.fit(found.set_params(n_starts=8) if method == "iclda" else found)


def _fit_in_proportions(split: Split, method: str) -> dict[str, Any]:
    name, _, given = method.partition(" ")
    if name == "iclda" and split.n_unknowns > _SLOW_IN_PROPORTIONS:
        return {}
    model = _fit_shrunk(
        split, name, split.true_shares if given == "true" else given or None
    )
    predicted = model.predict_proba(split.rows.X_unlabeled).mean(axis=0)
    return {
        **split.measure(model),
        "off": float(np.abs(predicted - split.true_shares).sum() / 2),
    }


def _fit_any(split: Split, method: str) -> dict[str, Any]:
    """``seen`` is what can be seen before methods are compared."""
    rows = split.rows
    if method == "auto":
        if rows.X.shape[1] >= _FEW_COLUMNS:
            return {}
        model = split.fit(AutoLDA(random_state=rows.seed))
        return {**split.measure(model), "chosen": model.method_}
    if (
        method in ("sklearn-lda", "sklearn-self-training")
        and len(rows.X) == rows.n_classes
    ):
        return {}  # they need more labels than classes
    model = _fit_shrunk(split, "supervised" if method == "seen" else method)
    if model is None or method != "seen":
        return {} if model is None else split.measure(model)
    z = rows.rows - rows.rows.mean(axis=0)
    kurtosis = (z**4).mean(axis=0) / np.maximum((z**2).mean(axis=0), 1e-12) ** 2
    return {
        "labels of a class": len(rows.X) / rows.n_classes,
        "labels a feature": len(rows.X) / rows.X.shape[1],
        "features": rows.X.shape[1],
        "doubt": float(1 - model.predict_proba(rows.X_unlabeled).max(axis=1).mean()),
        "kurtosis": float(np.median(np.abs(kurtosis - 3))),
    }


_FITS: dict[str, Callable[[Split, str], dict[str, Any]]] = {
    "example": _fit_example,
    "maxima": _fit_maxima,
    "constraints": _fit_constrained,
    "safety": _fit_safely,
    "em": _fit_em,
    "proportions": _fit_in_proportions,
    "methods": _fit_any,
    "auto": _fit_any,
}


# Runs.


def plan_cells(
    name: str, sets: Mapping[str, CodedSet], *, is_quick: bool
) -> list[Cell]:
    """Cells of an experiment; a fifth of the rows at least stays unlabeled."""
    asked = EXPERIMENTS[name]
    families = PLAN["families"].items()
    groups: dict[str, Any] = {
        **PLAN,
        "benchmarks": [each for each in BENCHMARKS if each in sets],
        "families": [
            "base",
            *(f"{name} {value}" for name, values in families for value in values),
        ],
        "given": [
            each
            for each in sets
            if each not in BENCHMARKS and each not in PLAN["tables"]
        ],
    }
    cells = []
    for dataset in (each for group in asked["sets"] for each in groups[group]):
        if is_quick and dataset not in (*PLAN["quick"], *PLAN["examples"]):
            continue
        data, parts = sets.get(dataset), [0]
        if data is not None:
            parts, most = asked["parts"][:: 3 if is_quick else 1], 0.6 * len(data.codes)
            parts = [part for part in parts if _n_labeled(name, part, data) <= most]
        n = asked["repeats"] if data is not None else asked.get("drawn_repeats", 1)
        cells += cells_of(name, {dataset: parts}, min(n, 2) if is_quick else n)
    return cells


def answer_cell(
    cell: Cell, sets: Mapping[str, CodedSet], methods: Sequence[str], seed: int
) -> list[FitResult]:
    """Fit every method of an experiment once on the split of a cell."""
    if cell.dataset in PLAN["examples"]:
        rows = example_rows(cell.dataset)
        split = Split(rows, rows.X, rows.codes)
    elif cell.dataset in sets:
        split = _split_table(cell, sets[cell.dataset], seed)
    else:
        split = _split_family(cell, seed)
    sizes = len(split.rows.X), len(split.rows.X_unlabeled), len(split.X_test)

    fit = partial(_FITS[cell.experiment], split)
    return record_fits(cell, methods, sizes, seed, fit)


def run_questions(settings: StudySettings, advance: Advance = lambda *_: None) -> None:
    """Compute the cells that are missing, storing every row as soon as it is computed."""

    def plan(sets: Mapping[str, CodedSet]) -> dict[str, Plan]:
        return {
            name: (plan_cells(name, sets, is_quick=settings.is_quick), asked["methods"])
            for name, asked in EXPERIMENTS.items()
        }

    run_experiments(
        QUESTIONS, settings, load_tables(settings), plan, answer_cell, advance
    )
