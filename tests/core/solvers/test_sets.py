"""The one place that looks at the proportions of a problem."""

from dataclasses import replace

import numpy as np
import pytest

from iclda._core.solvers.held import HeldSet
from iclda._core.solvers.quota_rounds import QuotaRounds
from iclda._core.solvers.quota_sets import QuotaSet
from iclda._core.solvers.sets import attainable_sets
from iclda._core.solvers.streamed import StreamedSet
from tests.helpers.problems import change_settings, draw_sample, problem_of

SAMPLE = draw_sample(4, n_features=3, n_labeled=12, n_unlabeled=100)
FREE = problem_of(SAMPLE)
HALVES = np.full((SAMPLE.n_classes, 2), 1 / SAMPLE.n_classes)
WITH_QUOTAS = replace(FREE, proportions=HALVES)


@pytest.mark.parametrize(
    ("problem", "held_kind", "streamed_kind"),
    [(FREE, HeldSet, StreamedSet), (WITH_QUOTAS, QuotaSet, QuotaRounds)],
    ids=["free", "quotas"],
)
@pytest.mark.parametrize("max_rows", [50, 100])
def test_rounds_hold_few_rows_and_read_many(
    problem, held_kind, streamed_kind, max_rows, monkeypatch
):
    change_settings(monkeypatch, "ROUNDS", max_rows=max_rows, max_numbers_with_quotas=0)
    rows = attainable_sets(problem).open_for_rounds()
    assert type(rows) is (held_kind if max_rows == 100 else streamed_kind)
    labels = rows.soft_labels(np.zeros(problem.labeled_point.shape))
    assert labels.point[:, 0].sum() == pytest.approx(1)


def test_labels_with_proportions_are_not_free():
    assert attainable_sets(FREE).are_free
    assert not attainable_sets(WITH_QUOTAS).are_free


def test_quotas_are_shares_of_the_unlabeled_weight():
    rows, weights = WITH_QUOTAS.unlabeled.sample(100, 0)
    held = attainable_sets(WITH_QUOTAS).hold(rows, weights)
    labels = held.label(np.zeros(held.labeled_point.shape))
    filled = (labels.point - held.labeled_point)[:, 0]
    np.testing.assert_allclose(filled, held.weights.sum() / SAMPLE.n_classes)
