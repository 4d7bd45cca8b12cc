"""Rows as a run would store them, drawn instead of fitted."""

from dataclasses import replace

import numpy as np

from iclda.studies.paper.design import CURVES, METHOD_NAMES, N_FOLDS, TABLES
from iclda.studies.paper.splits import CodedSet
from iclda.studies.store import FitResult

ERRORS = dict.fromkeys(METHOD_NAMES, 0.27) | {
    "LDA": 0.30,
    "LDAoracle": 0.15,
    "MCLDA": 0.26,
    "EMLDA": 0.24,
    "EMLDA-as-published": 0.50,
    "SLLDA": 0.28,
    "ICLDA": 0.25,
}


def coded_set():
    """Two Gaussian classes of 40 rows."""
    rng = np.random.default_rng(0)
    codes = np.arange(80) % 2
    return CodedSet(rng.standard_normal((80, 2)) + 2 * codes[:, None], codes)


def table_rows(
    datasets=("WDBC",), methods=METHOD_NAMES, repeats=4, seed=0, spread=0.02
):
    rng = np.random.default_rng(seed)
    rows = []
    for dataset in datasets:
        for repeat in range(repeats):
            for fold in range(N_FOLDS):
                for method in methods:
                    error = ERRORS.get(method, 0.3) + spread * rng.normal()
                    rows.append(
                        table_row(dataset, repeat, fold, method, error, 10 * error)
                    )
    return rows


def table_row(dataset, repeat, fold, method, error, nll, n_test=50, failure=None):
    sizes = 60, 500 - n_test - 60, n_test
    values = {"error": error, "nll": nll, "nll_labeled": nll} if failure is None else {}
    key = TABLES, dataset, repeat, fold, method
    return FitResult(*key, *sizes, values, 0.01, failure=failure)


def replace_values(row, **values):
    """The same row with other measures; None removes one."""
    changed = {**row.values, **values}
    return replace(
        row, values={name: v for name, v in changed.items() if v is not None}
    )


def fail(row, failure="Traceback"):
    return replace(row, values={}, failure=failure)


def curve_rows(
    dataset="Pima", methods=METHOD_NAMES, sizes=(1, 2, 4, 8), repeats=5, seed=0
):
    rng = np.random.default_rng(seed)
    rows = []
    for n_unlabeled in sizes:
        for repeat in range(repeats):
            for method in methods:
                error = ERRORS[method] + 0.02 * rng.normal()
                nll = 31 + 10 * error
                values = {"error": error, "nll": nll, "nll_labeled": nll - 1}
                key = CURVES, dataset, repeat, n_unlabeled, method
                rows.append(FitResult(*key, 18, n_unlabeled, 400, values, 0.01))
    return rows
