"""The projected least squares fit is never worse than supervised, on 2,000 folds."""

import numpy as np
import pytest

from iclda import ImplicitlyConstrainedLeastSquares
from iclda.datasets import BENCHMARKS
from iclda.studies.paper.design import N_FOLDS, TABLES, n_labeled_of
from iclda.studies.paper.splits import fold_split, load_sets
from iclda.studies.store import cells_of
from tests.helpers.problems import one_hot


def supervised_predictions(X, codes, rows):
    """Least squares on labeled rows: smallest slopes in coordinates of all rows."""
    centered = rows - rows.mean(axis=0)
    scale = centered.std(axis=0)
    scaled = centered / np.where(scale > 0, scale, 1.0)
    left, size, _ = np.linalg.svd(scaled, full_matrices=False)
    kept = size > 1e-6 * size[0]
    z = left[:, kept] * np.sqrt(len(rows))
    labeled = z[: len(X)]
    targets = one_hot(codes, 2)
    mean = labeled.mean(axis=0)
    slopes = np.linalg.lstsq(
        labeled - mean, targets - targets.mean(axis=0), rcond=1e-6
    )[0]
    return (z - mean) @ slopes + targets.mean(axis=0)


# Some of the 2,000 draws of labels are unlike the other rows, by chance.
@pytest.mark.filterwarnings("ignore:The unlabeled rows seem to come from elsewhere")
@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_projected_fit_is_never_worse_on_the_training_rows(name):
    sets = load_sets([name], None)
    if name not in sets:
        pytest.skip(f"{name} is not at hand")
    data = sets[name]
    codes = data.codes
    assert data.n_classes == 2
    cells = cells_of(TABLES, {name: range(N_FOLDS)}, 20)
    assert len(cells) == 200
    changes = []
    for cell in cells:
        split = fold_split(codes, n_labeled_of(data.X.shape[1]), 0, cell)
        order = np.r_[split.labeled, split.unlabeled]
        rows = data.X[order]
        truth = codes[order]
        y = np.r_[codes[split.labeled], np.full(len(split.unlabeled), -1)]
        fit = ImplicitlyConstrainedLeastSquares(variant="projected").fit(rows, y)
        assert fit.converged_
        supervised = supervised_predictions(
            data.X[split.labeled], codes[split.labeled], rows
        )
        theirs = ((supervised - one_hot(truth, 2)) ** 2).sum(axis=1).mean() / 2
        changes.append(fit.squared_loss(rows, truth).mean() - theirs)
    assert max(changes) <= 1e-8
    assert np.mean(changes) < 0
