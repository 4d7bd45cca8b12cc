"""Tables and results to compare with, made by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from iclda.methods import COMPARED, find_method
from iclda.studies.compare.contestants import UNSHRUNK, Contestant
from iclda.studies.compare.splits import REPEATED_FOLDS
from iclda.studies.store import FitResult
from iclda.tabular import Source, Table


def make_table(n_labeled=24, n_unlabeled=40, n_features=2, seed=0, **columns):
    """Two Gaussian classes "no" and "yes"; columns given are added."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_labeled + n_unlabeled) % 2
    X = rng.standard_normal((len(y), n_features)) + 1.5 * y[:, None]
    features = pd.DataFrame(X, columns=[f"x{k + 1}" for k in range(n_features)]).assign(
        **columns
    )
    labels = np.array(["no", "yes"], dtype=object)[y]
    labels[n_labeled:] = None
    return table_of(features, labels)


def table_of(features, labels, name="table.csv"):
    source = Source(str(Path("data") / name), "0" * 64, len(features))
    return Table(features, np.array(labels, dtype=object), "class", (source,))


def contestants(*names):
    return tuple(
        Contestant(
            name,
            find_method(name.removesuffix(UNSHRUNK), COMPARED),
            None if name.endswith(UNSHRUNK) else "auto",
        )
        for name in names
    )


def result(
    method, repeat, fold, error, *, experiment=REPEATED_FOLDS, n_test=5, **values
):
    """A result in which probabilities are all 0 or 1, unless told otherwise."""
    n_wrong = round(error * n_test)
    codes = (np.arange(n_test) < n_wrong).astype(int)
    key = (experiment, "table.csv", repeat, fold, method)
    measured = {"error": error, "brier": error}
    if experiment == REPEATED_FOLDS:
        measured["rows"] = rows_json(n_test * fold, codes)
    return FitResult(
        *key, values=measured, **{"n_labeled": 16, "n_test": n_test, **values}
    )


def rows_json(first, losses):
    """Test rows from the index ``first`` on; a row of loss above one half is wrong.

    The classes alternate, and rows are ranked as well as they are predicted.
    """
    rows = []
    for k, loss in enumerate(losses):
        index = first + k
        rows.append([index, float(loss), int(loss > 0.5), index % 2, float(loss)])
    return json.dumps(rows)


def changed(result, **values):
    """The result with other values of measures."""
    return replace(result, values={**result.values, **values})


def results(**errors):
    """Results of contestants, by name, from (repeats, folds) tables of errors."""
    return [
        result(
            name.replace("_unshrunk", UNSHRUNK).replace("_", "-"), repeat, fold, error
        )
        for name, table in errors.items()
        for repeat, folds in enumerate(table)
        for fold, error in enumerate(folds)
    ]
