"""What is fitted to every draw of labels, and its error on the new rows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC

from iclda import AutoLDA, SupervisedLDA

from .draws import draw_rows
from .sets import Columns
from .store import Cell

PART = "tables"
DEFAULT = "AutoLDA"


@dataclass(frozen=True)
class Contestant:
    """A classifier, and the rows that it gets."""

    make: Callable[[], Any]
    # Columns of trees need no scaling, and those of AutoLDA shall need none.
    is_scaled: bool = True
    uses_unlabeled: bool = False


OWN = {
    DEFAULT: Contestant(AutoLDA, is_scaled=False, uses_unlabeled=True),
    "AutoLDA, average": Contestant(
        lambda: AutoLDA(methods=["average"]), uses_unlabeled=True
    ),
    "SupervisedLDA": Contestant(lambda: SupervisedLDA(shrinkage="auto")),
}
PEERS = {
    "sklearn: logistic": Contestant(lambda: LogisticRegression(max_iter=1000)),
    "sklearn: LDA": Contestant(
        lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    ),
    "sklearn: SVC": Contestant(SVC),
    "sklearn: random forest": Contestant(
        lambda: RandomForestClassifier(random_state=0), is_scaled=False
    ),
    "sklearn: extra trees": Contestant(
        lambda: ExtraTreesClassifier(random_state=0), is_scaled=False
    ),
    "sklearn: self-training": Contestant(
        lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
        uses_unlabeled=True,
    ),
}
CONTESTANTS = {**OWN, **PEERS}


def most_frequent(labels: np.ndarray) -> Any:
    """Return the label to fall back on where a fit fails."""
    return Counter(labels.tolist()).most_common(1)[0][0]


def measure_cell(
    table: str, columns: Columns, labels_a_class: int, n_labels: int, draw: int
) -> Cell:
    """Fit all contestants to one draw of labels, and judge them by its new rows.

    A fit that fails is listed, and counts as if it called every row the most frequent
    class.
    """
    warnings.simplefilter("ignore")
    X, codes = columns
    rows = draw_rows(codes, n_labels, draw)
    labels = rows.labels(codes)
    truth = codes[rows.new]
    scaler = StandardScaler().fit(X[rows.train])

    cell: Cell = {
        "part": PART,
        "table": table,
        "labels": n_labels,
        "draw": draw,
        "labels_a_class": labels_a_class,
        "n_columns": X.shape[1],
        "n_classes": int(codes.max()) + 1,
        "errors": {},
        "seconds": {},
        "failures": {},
    }
    for name, contestant in CONTESTANTS.items():
        transform = scaler.transform if contestant.is_scaled else np.asarray
        is_given = contestant.uses_unlabeled | (labels >= 0)
        new = transform(X[rows.new])
        # Seconds of the processor: other programs hardly change them.
        start = time.process_time()
        clf = contestant.make()
        try:
            clf.fit(transform(X[rows.train[is_given]]), labels[is_given])
            predicted = clf.predict(new)
        except Exception as error:
            cell["failures"][name] = f"{type(error).__name__}: {error}"
            predicted = np.full(len(truth), most_frequent(codes[rows.labeled]))
        cell["seconds"][name] = time.process_time() - start
        cell["errors"][name] = float((predicted != truth).mean())
        if name == DEFAULT and name not in cell["failures"]:
            cell.update(_statements(clf), members=member_errors(clf, new, truth))
    return cell


def _statements(clf: Any) -> dict[str, Any]:
    """Return what a fitted AutoLDA says of itself."""
    interval = clf.error_interval_
    return {
        "chosen": clf.method_,
        "expected": None if clf.error_ is None else float(clf.error_),
        "interval": None if interval is None else [float(end) for end in interval],
    }


def member_errors(clf: Any, new: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the error of every member of the ensemble, if the default is one."""
    if clf.method_ != "ensemble":
        return {}
    errors = {}
    for name, member in clf.estimator_._model_.members.items():
        # Members are fitted to codes of the classes, in their order.
        predicted = clf.classes_[member.probabilities(new).argmax(axis=1)]
        errors[name] = float((predicted != truth).mean())
    return errors
