"""Data sets of the experiments, and their splits into labeled, unlabeled and test rows.

A problem comes from one of three sources:

- a table: a benchmark set, a table of ``questions.toml``, or a user's file of features,
- a family: Gaussian classes by default, with one setting changed, drawn at random in
  every repeat,
- a counterexample with a few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from iclda import datasets
from iclda._core import AnyArray, Array
from iclda._estimators.linear_model import gaussian_model_of
from iclda._rows.network_features import MANY_FEATURES
from iclda.datasets import BENCHMARKS
from iclda.datasets._benchmarks import checksum
from iclda.studies.engine import rng_of
from iclda.studies.measures import PAPER_MEASURES, compute_measures
from iclda.studies.paper.design import n_labeled_of
from iclda.studies.paper.fits import CellRows, predict_rows
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import Cell

from .plan import EXPERIMENTS, PLAN

# A cell has at most this many unlabeled rows, and at most this many test rows.
_MAX_ROWS = 1000
# Rows of the tables that are drawn at random.
_TABLE_ROWS = 1200
# The least divisor of columns. A column may be constant in the training rows.
_MIN_STANDARD_DEVIATION = 1e-12


@dataclass(frozen=True)
class Split:
    """Training and test rows of a cell."""

    rows: CellRows
    X_test: Array
    codes_test: AnyArray

    def fit(self, classifier: Any) -> Any:
        return classifier.fit(self.rows.rows, self.rows.y)

    def measure(self, model: Any) -> dict[str, Any]:
        """Return error and losses of a fitted classifier, or of Gaussians."""
        gaussian_model = gaussian_model_of(model)
        if gaussian_model is not None:
            model = gaussian_model.gaussians
        predictions = predict_rows(model, self.X_test, self.codes_test, self.rows)
        return {**compute_measures(predictions, PAPER_MEASURES)}

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns of a search: offset and slopes of all classes but one."""
        return (self.rows.n_classes - 1) * (self.rows.X.shape[1] + 1)

    @property
    def true_shares(self) -> Array:
        """Shares of the classes among the unlabeled rows."""
        counts = np.bincount(self.rows.codes_unlabeled, minlength=self.rows.n_classes)
        return np.asarray(counts / counts.sum())


# Tables and families.


def load_tables(data_dir: Path | None, features: Path | None) -> dict[str, CodedSet]:
    """Load the available benchmark sets, the further tables, and the user's features.

    ``features`` is a folder of .npz files with X and y.
    """
    sets = {}
    for name in BENCHMARKS:
        if datasets.find_benchmark(name, data_dir) is not None:
            sets[name] = CodedSet.of(datasets.load_benchmark(name, data_dir))
    for name, recipe in PLAN["tables"].items():
        X, codes = _make_table(**recipe)
        sets[name] = CodedSet(X, codes, "questions.toml", _checksum(X, codes))
    if features is not None:
        sets |= _load_features(features)
    return sets


def _load_features(folder: Path) -> dict[str, CodedSet]:
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        fault = "has" if folder.is_dir() else "is not a folder, and has"
        raise ValueError(
            f"{folder} {fault} no .npz file with features X and classes y."
        )
    sets = {}
    for path in paths:
        with np.load(path) as stored:
            if not {"X", "y"} <= set(stored.files):
                names = ", ".join(stored.files)
                raise ValueError(f"{path} must hold X and y, and holds {names}.")
            X = stored["X"].astype(float)
            classes = stored["y"].astype(str)
        codes = np.unique(classes, return_inverse=True)[1]
        sets[path.stem] = CodedSet(X, codes, str(path), _checksum(X, classes))
    return sets


def _checksum(X: Array, classes: AnyArray) -> str:
    return checksum(X, classes.astype(str))


def _load_diabetes() -> tuple[Array, AnyArray]:
    """Load a table for regression, with classes below and above the median."""
    X, y = sklearn_datasets.load_diabetes(return_X_y=True)
    return X, y > np.median(y)


# Functions that load or draw X and y of a table, with the parameters that
# ``questions.toml`` passes to them.
_LOADERS: dict[str, Callable[..., Any]] = {
    "iris": lambda: sklearn_datasets.load_iris(return_X_y=True),
    "wine": lambda: sklearn_datasets.load_wine(return_X_y=True),
    "digits": lambda: sklearn_datasets.load_digits(return_X_y=True),
    "diabetes": _load_diabetes,
    "clothes": datasets.load_fashion_features,
    "gaussians": lambda: datasets.make_gaussians(
        _TABLE_ROWS, np.random.default_rng(0), 0.8
    ),
    "violated_gaussians": lambda: datasets.make_violated_gaussians(
        _TABLE_ROWS, np.random.default_rng(0), 0.8
    ),
    "family": lambda **changes: draw_family(
        np.random.default_rng(0), _TABLE_ROWS, **changes
    ),
    "moons": lambda **shape: sklearn_datasets.make_moons(
        _TABLE_ROWS, random_state=0, **shape
    ),
    "circles": lambda **shape: sklearn_datasets.make_circles(
        _TABLE_ROWS, random_state=0, **shape
    ),
    "classification": lambda **shape: sklearn_datasets.make_classification(
        _TABLE_ROWS, random_state=0, **shape
    ),
}


def _make_table(
    of: str, kept: Sequence[Any] = (), **shape: Any
) -> tuple[Array, AnyArray]:
    """Load or draw a table of ``questions.toml``; ``kept`` are the classes to keep."""
    X, y = _LOADERS[of](**shape)
    if kept:
        is_kept = np.isin(y, kept)
        X = X[is_kept]
        y = y[is_kept]
    codes = np.unique(y, return_inverse=True)[1]
    return X[:, X.std(axis=0) > 0], codes


def draw_family(
    rng: np.random.Generator, n_rows: int, **changes: Any
) -> tuple[Array, AnyArray]:
    """Draw rows of a family: the base of ``questions.toml`` with changes."""
    shape = {**PLAN["base"], **changes}
    n_classes = shape["classes"]
    n_features = shape["d"]
    share = shape["share"]
    other_shares = [(1 - share) / (n_classes - 1)] * (n_classes - 1)
    codes = rng.choice(n_classes, n_rows, p=[share, *other_shares])
    # All distributions have mean 0 and variance 1.
    noise: dict[str, Callable[..., Any]] = {
        "normal": rng.standard_normal,
        "uniform": lambda size: np.sqrt(3) * rng.uniform(-1, 1, size),
        "exponential": lambda size: rng.exponential(size=size) - 1,
        "Student, 3": lambda size: rng.standard_t(3, size) / np.sqrt(3),
    }
    rows = noise[shape["tails"]]((n_rows, n_features))
    if n_classes == 2:
        rows[:, 0] += shape["separation"] * codes
    else:
        # Class means along the axes are sqrt(2) apart: scale them to the separation.
        rows += shape["separation"] / np.sqrt(2) * np.eye(n_classes, n_features)[codes]
    return rows, codes


# Splits.


def split_of(cell: Cell, sets: Any, seed: int) -> Split:
    """Return the training and test rows of a cell."""
    if cell.dataset in PLAN["examples"]:
        rows = example_rows(cell.dataset)
        return Split(rows, rows.X, rows.codes)
    if cell.dataset in sets:
        return _split_table(cell, sets[cell.dataset], seed)
    return _split_family(cell, seed)


def n_labeled_rows(experiment: str, part: int, data: CodedSet) -> int:
    """Return the number of labeled rows that a part of an experiment stands for.

    The experiment has a unit: labels in all, labels of a class, or labels in percent of
    the number of features.
    """
    unit = EXPERIMENTS[experiment].get("unit", "percent of features")
    if unit == "in all":
        return max(part, data.n_classes)
    if unit == "of a class":
        return part * data.n_classes
    # From twice the features on, the least number of labels is that of the paper.
    n_least = n_labeled_of(0) if part >= 200 else 2 * data.n_classes
    return max(round(part * data.X.shape[1] / 100), n_least)


def _split_table(cell: Cell, data: CodedSet, seed: int) -> Split:
    """Test a fifth of the rows, and label some others, at least one of each class."""
    n_labeled = n_labeled_rows(cell.experiment, cell.part, data)
    # The order of the rows is the same in all experiments, which test the same rows.
    order = rng_of(seed, cell.dataset, cell.repeat).permutation(len(data.codes))
    n_test = min(_MAX_ROWS, len(order) // 5)
    test = order[:n_test]
    train = order[n_test:]

    # Move the first rows of every class to the front, where the labeled rows are.
    n_guaranteed = 1 if n_labeled < 2 * data.n_classes else 2
    guaranteed = np.concatenate(
        [train[data.codes[train] == k][:n_guaranteed] for k in range(data.n_classes)]
    )
    others = train[~np.isin(train, guaranteed)]
    train = np.concatenate([guaranteed, others])[: n_labeled + _MAX_ROWS]

    X = data.X
    is_raw = EXPERIMENTS[cell.experiment].get("is_raw", False)
    # Tables of many features come from a network, whose features share one unit.
    if X.shape[1] < MANY_FEATURES and not is_raw:
        scales = np.maximum(X[train].std(axis=0), _MIN_STANDARD_DEVIATION)
        X = (X - X[train].mean(axis=0)) / scales
    return _split(X, data.codes, train[:n_labeled], train[n_labeled:], test, seed)


def _split_family(cell: Cell, seed: int) -> Split:
    """Draw a problem of a family, named by the changed setting and its value: d 20."""
    setting, _, text = cell.dataset.partition(" ")
    changes = {}
    if text:
        kind = type(PLAN["families"][setting][0])
        changes[setting] = kind(text)
    shape = {**PLAN["base"], **changes}
    n_classes = shape["classes"]
    n_labeled = shape["labels"]
    if n_classes > 2:
        changes["share"] = 1 / n_classes
        n_labeled = n_labeled * n_classes // 2
    n_train = n_labeled + shape["unlabeled"]

    rng = rng_of(seed, cell.experiment, cell.dataset, cell.repeat)
    X, codes = draw_family(rng, n_train + _MAX_ROWS, **changes)
    guaranteed = np.concatenate(
        [np.flatnonzero(codes == k)[:2] for k in range(n_classes)]
    )
    others = np.setdiff1d(np.arange(len(X)), guaranteed)
    order = np.concatenate([guaranteed, others])
    labeled, unlabeled, test = np.split(order, [n_labeled, n_train])
    return _split(X, codes, labeled, unlabeled, test, seed)


def _split(
    X: Array,
    codes: AnyArray,
    labeled: AnyArray,
    unlabeled: AnyArray,
    test: AnyArray,
    seed: int,
) -> Split:
    rows = CellRows(
        X=X[labeled],
        codes=codes[labeled],
        X_unlabeled=X[unlabeled],
        codes_unlabeled=codes[unlabeled],
        n_classes=int(codes.max()) + 1,
        seed=seed,
    )
    return Split(rows, X[test], codes[test])


def example_rows(name: str) -> CellRows:
    """Return the rows of a counterexample."""
    example = PLAN["examples"][name]
    class_a = np.array(example["A"], dtype=float)
    class_b = np.array(example["B"], dtype=float)
    unlabeled = np.array(example["unlabeled"], dtype=float)
    return CellRows(
        X=np.concatenate([class_a, class_b]),
        codes=np.repeat([0, 1], [len(class_a), len(class_b)]),
        X_unlabeled=unlabeled,
        codes_unlabeled=np.zeros(len(unlabeled), dtype=int),
        n_classes=2,
        seed=0,
    )
