from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables_of_results import contestants, result, results

from iclda.studies.compare.summary import (
    BRIER,
    CALIBRATION,
    ERROR,
    HIDDEN,
    LOSS,
    overlap,
    repeat_values,
    summarize,
)
from iclda.studies.resampling import corrected_t_test, holm

SUPERVISED = [[0.2, 0.4], [0.4, 0.4], [0.2, 0.2]]
EM = [[0.2, 0.2], [0.8, 0.6], [0.2, 0.2]]
BOTH = results(supervised=SUPERVISED, em=EM)
TWO = contestants("supervised", "em")


def test_means_and_shares_are_over_repeats():
    outcome = summarize(BOTH, TWO, 2)
    assert_allclose(outcome.mean("supervised", ERROR), np.mean(SUPERVISED))
    assert_allclose(outcome.mean("em", ERROR), np.mean(EM))
    assert outcome.score("em", ERROR).share_worse_than_supervised == 1 / 3
    assert outcome.score("supervised", ERROR).share_worse_than_supervised == 0
    assert outcome.score("em", ERROR).repeats == 3


def test_folds_count_by_their_test_rows():
    some = [result("supervised", 0, 0, 0.5, n_test=2), result("supervised", 0, 1, 0.0, n_test=6)]
    assert_allclose(repeat_values(some, ERROR, 2)[0], 1 / 8)


def test_a_difference_is_that_of_the_means_even_if_folds_differ_in_size():
    sizes = {0: 4, 1: 8}
    uneven = [replace(each, n_test=sizes[each.part]) for each in BOTH]
    outcome = summarize(uneven, TWO, 2)
    expected = outcome.mean("em", ERROR) - outcome.mean("supervised", ERROR)
    assert_allclose(outcome.difference("em", ERROR).difference, expected, atol=1e-12)


@pytest.mark.parametrize("measure", [ERROR, BRIER, LOSS])
def test_differences_are_tested_as_the_paper_s_tables_are(measure):
    scale = 10 if measure == LOSS else 1
    differences = scale * (np.ravel(EM) - np.ravel(SUPERVISED))
    found = summarize(BOTH, TWO, 2).difference("em", measure)
    assert_allclose(found.p, corrected_t_test(differences, overlap(2))[1])
    assert_allclose(found.p_holm, found.p)
    assert_allclose((found.low + found.high) / 2, found.difference)


def test_splits_overlap_by_test_rows_over_training_rows_of_known_label():
    assert overlap(5) == 0.25
    assert_allclose(overlap(10), 10 / 90)


def test_a_difference_just_as_large_as_the_detectable_one_would_be_significant():
    outcome = summarize(results(supervised=SUPERVISED, em=EM, moment=SUPERVISED), TWO, 2)
    found = outcome.difference("em", ERROR)
    errors = np.ravel(EM) - np.ravel(SUPERVISED)
    moved = errors - errors.mean() + found.detectable
    assert_allclose(corrected_t_test(moved, overlap(2))[1], 0.05)


def test_several_contestants_are_corrected_after_holm():
    rng = np.random.default_rng(0)
    errors = {name: rng.integers(0, 6, (4, 3)) / 5 for name in ("supervised", "em", "iclda")}
    outcome = summarize(results(**errors), contestants("supervised", "em", "iclda"), 3)
    found = [each for each in outcome.differences if each.measure == ERROR]
    assert_allclose([each.p_holm for each in found], holm([each.p for each in found]))


def test_the_better_supervised_contestant_is_what_others_are_measured_by():
    three = contestants("supervised", "supervised (shrunk)", "em")
    some = results(supervised=EM, supervised_shrunk=SUPERVISED, em=EM)
    outcome = summarize(some, three, 2)
    assert outcome.baseline == "supervised (shrunk)"
    assert outcome.best["supervised"] == "supervised (shrunk)"
    assert outcome.score("supervised", ERROR).share_worse_than_supervised == 1 / 3
    assert {each.method for each in outcome.differences} == {"em"}


def test_a_repeat_that_lacks_a_fold_does_not_count():
    lacking = [each for each in BOTH if (each.method, each.repeat, each.part) != ("em", 1, 0)]
    assert summarize(lacking, TWO, 2).score("em", ERROR).repeats == 2
    failed = [replace(each, failure="x", error=None) if each.repeat == 1 else each for each in BOTH]
    assert summarize(failed, TWO, 2).score("em", ERROR).repeats == 2


def test_a_contestant_whose_fits_all_failed_has_a_score_without_numbers():
    failed = [replace(e, failure="x", error=None) if e.method == "em" else e for e in BOTH]
    outcome = summarize(failed, TWO, 2)
    assert outcome.score("em", ERROR).mean is None
    assert outcome.differences == ()
    assert outcome.baseline == "supervised"


def test_ties_are_not_worse():
    same = summarize(results(supervised=SUPERVISED, em=SUPERVISED), TWO, 2)
    assert same.score("em", ERROR).share_worse_than_supervised == 0
    assert same.difference("em", ERROR).p == 1


def test_an_infinite_loss_costs_the_loss_and_not_the_error():
    infinite = [replace(each, loss=np.inf) if each.method == "em" else each for each in BOTH]
    outcome = summarize(infinite, TWO, 2)
    assert outcome.mean("em", LOSS) is None
    assert outcome.mean("em", ERROR) is not None


def test_calibration_is_that_of_all_folds_of_a_repeat_together():
    """Sure answers are as far off as they are wrong."""
    outcome = summarize(BOTH, TWO, 2)
    assert_allclose(outcome.mean("em", CALIBRATION), outcome.mean("em", ERROR))


def test_the_error_on_hidden_rows_is_there_where_labels_were_hidden():
    assert summarize(BOTH, TWO, 2).score("em", HIDDEN) is None
    hidden = [replace(each, error_hidden=0.25) for each in BOTH]
    assert summarize(hidden, TWO, 2).mean("em", HIDDEN) == 0.25
