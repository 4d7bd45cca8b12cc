"""What a block of Dask adds up to tells whether it is still the same, and nothing else does."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dask_blocks import ROWS, SAMPLE, fit, frame_of
from iclda import ExpectationMaximizationLDA, ImplicitlyConstrainedLDA, SelfLearningLDA
from iclda._core import frame as core_frame
from iclda._core.labelsums import GivenLabels, LinearRule
from iclda._rows.base import BadRowsError, Request
from iclda._rows.dask import open_rows
from iclda._rows.dask.blocks import Known, look_at
from iclda._rows.dask.tasks import Chosen, label_sums, moments_and_totals
from iclda.rows import from_dask

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(20_000, 3))
UNMARKED = 5  # a row of a long block that is not among those compared by a checksum
CLASSIFIERS = [SelfLearningLDA, ExpectationMaximizationLDA, ImplicitlyConstrainedLDA]


@dataclass
class Changing:
    """A loader of rows of which one number is another from some read on."""

    rows: np.ndarray
    first_changed: int
    by: float = 1e-4
    row: int = UNMARKED
    n_reads: int = 0

    def __call__(self):
        self.n_reads += 1
        rows = self.rows.copy()
        if self.n_reads >= self.first_changed:
            rows[self.row, 2] += self.by
        return rows


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("first_changed", [3, 4])  # the first two reads: a look, and the moments
def test_a_single_number_that_changes_after_the_first_pass_is_noticed(classifier, first_changed):
    loader = Changing(ROWS, first_changed)
    with pytest.raises(ValueError, match=r"block 1 has changed .* column 2 adds up to another sum"):
        fit(from_dask([lambda: ROWS[:9000], loader]), classifier)
    assert loader.n_reads == first_changed


def test_the_column_that_changed_is_named_as_the_user_does():
    changing = Changing(ROWS, 3)
    source = from_dask([lambda: frame_of(changing())])
    with pytest.raises(ValueError, match=r"block 0 has changed .* column 'c' adds up to another"):
        SelfLearningLDA().fit(frame_of(SAMPLE.X), SAMPLE.y, X_unlabeled=source)


def test_a_change_among_rows_that_do_not_count_is_none():
    y = np.full(len(ROWS), -1)
    y[:40] = ROWS[:40, 0] > 0
    weights = np.ones(len(ROWS))
    weights[UNMARKED + 50] = 0
    changed = Changing(ROWS, 4, row=UNMARKED + 50)
    source = from_dask([changed])
    model = SelfLearningLDA().fit(source, y, sample_weight=weights)
    expected = SelfLearningLDA().fit(ROWS, y, sample_weight=weights)
    assert changed.n_reads >= 4
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


ROWS_OF_A_KIND = {
    "float64": NORMAL,
    "float32": NORMAL.astype("f4"),
    "integers": (100 * NORMAL).astype("i4"),
    "foldable offset": NORMAL + 4e3,
    "large offset": NORMAL + 1e6,
    "larger offset": NORMAL - 1e12,
    "float32, offset": (NORMAL + 3e3).astype("f4"),
    "other units": NORMAL * [1e-6, 1, 1e6],
    "near the smallest": NORMAL * 1e-300,
    "near the largest": NORMAL * 1e290,
    "heavy tails": RNG.standard_cauchy((20_000, 3)),
    "a constant column": NORMAL * [1, 0, 1] + [0, 0.1, 0],
    "constant columns": np.full((20_000, 3), [1e9, -0.1, 0]),
    "columns in a row": np.asfortranarray(NORMAL),
    "one row": NORMAL[:1],
    "one row far away": NORMAL[:1] + 1e9,
    "two rows": NORMAL[:2],
    "wide": RNG.normal(size=(3_000, 300)) + 10,
}
WEIGHTS = {
    "unweighted": lambda n: None,
    "weighted": lambda n: np.linspace(0, 2, n),
    "uneven": lambda n: np.logspace(-12, 12, n),
    "light": lambda n: np.full(n, 1e-300),
}
# Classes, and how sharp the scores are; soft rules and hard ones.
RULES = [(2, 1.0), (2, 1e4), (3, 0.1), (5, 30.0)]


def sums_of(rows, then, weights, rule, frame, centers=None):
    """Label sums of rows that must add up to what others did."""
    is_member = np.arange(len(rows)) % 7 != 3
    chosen = None if weights is None else Chosen(weights, np.packbits(is_member), len(rows))
    known = Known("X", 0, rows.shape[1], look_at(then))
    _, (totals,) = moments_and_totals(then, chosen, known=known, n_threads=1, frame=frame)
    arguments = {"rule": rule, "frame": frame, "centers": centers}
    return label_sums(rows, chosen, known=known, n_threads=1, arguments=arguments, totals=totals)


def rules(n_features):
    rng = np.random.default_rng(1)
    for n_classes, sharpness in RULES:
        coef = sharpness * rng.normal(size=(n_features, n_classes))
        for is_soft in (False, True):
            yield LinearRule(coef, rng.normal(size=n_classes), is_soft)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ROWS_OF_A_KIND)
def test_rows_that_did_not_change_always_add_up_to_the_same(kind, weights):
    rows = ROWS_OF_A_KIND[kind]
    # A frame of one row, too: the pilot may have missed where most of a block lies.
    for pilot in (rows, rows[:1]):
        frame = core_frame.frame_of(pilot)
        for rule in rules(rows.shape[1]):
            sums = sums_of(rows, rows, WEIGHTS[weights](len(rows)), rule, frame)
            assert np.isfinite(sums.counts).all()
        centers = np.zeros((rule.n_classes, rows.shape[1]))
        sums_of(rows, rows, WEIGHTS[weights](len(rows)), rule, frame, centers=centers)


NOTICED = [
    kind for kind, rows in ROWS_OF_A_KIND.items() if len(rows) > 2 and np.ptp(rows[:, 2]) > 0
]


@pytest.mark.parametrize("weights", ["unweighted", "weighted"])
@pytest.mark.parametrize("kind", NOTICED)
def test_one_number_that_moved_by_a_hundredth_of_the_range_is_noticed(kind, weights):
    rows = ROWS_OF_A_KIND[kind]
    changed = rows.copy()
    changed[-6, 2] += np.ptp(rows[:, 2]) / 100
    assert look_at(changed) == look_at(rows)
    frame = core_frame.frame_of(rows)
    for rule in rules(rows.shape[1]):
        with pytest.raises(BadRowsError, match="column 2 adds up to another sum"):
            sums_of(changed, rows, WEIGHTS[weights](len(rows)), rule, frame)


def test_what_need_not_add_up_to_the_same_is_not_compared():
    rows = open_rows(from_dask([lambda: NORMAL[:300], lambda: NORMAL[300:]]), Request("X"))
    frame = core_frame.frame_of(NORMAL)
    rows.moments(frame)
    quarters = GivenLabels(np.full((len(NORMAL), 2), 0.25), 2)
    assert_allclose(rows.label_sums(quarters, frame).counts, len(NORMAL) / 4)
    other = core_frame.frame_of(NORMAL + 1)
    (rule, *_) = rules(3)
    assert_allclose(rows.label_sums(rule, other).counts.sum(), len(NORMAL))
