import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from iclda.studies.confusion import (
    Confusion,
    class_error_lines,
    confusion_lines,
    count_confusion,
    mean_confusion,
    write_confusion,
)


@pytest.fixture
def codes():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [60, 30, 10])
    return truth, np.where(rng.random(100) < 0.2, rng.integers(0, 3, 100), truth)


def test_the_matrix_and_its_errors_are_those_of_scikit_learn(codes):
    counts = count_confusion(*codes, 3)
    assert_allclose(counts, confusion_matrix(*codes))
    found = Confusion(("a", "b", "c"), counts)
    assert found.error == pytest.approx(np.mean(codes[0] != codes[1]))
    assert found.balanced_error == pytest.approx(1 - balanced_accuracy_score(*codes))
    assert found.base.error == pytest.approx(0.4)
    assert found.base.majority == "a"
    assert found.is_uneven
    assert [each.n_rows for each in found.by_class] == [60, 30, 10]
    assert all(each.low <= each.error <= each.high for each in found.by_class)


def test_counts_of_repeats_are_means_over_the_same_rows(codes):
    counts = count_confusion(*codes, 3)
    same = mean_confusion([write_confusion(counts)] * 5, ["a", "b", "c"], 5)
    assert_allclose(same.counts, counts)
    assert mean_confusion([], ["a", "b"], 5) is None


def test_the_tables_have_a_line_a_class():
    found = Confusion(("yes", "no"), np.array([[18.0, 2], [0, 20]]))
    assert not found.is_uneven
    assert class_error_lines(found) == [
        "class  rows  wrong  error  90 % interval",
        "yes      20      2  10.0%  1.8% to 28.3%",
        "no       20      0   0.0%  0.0% to 13.9%",
    ]
    assert confusion_lines(found)[1] == "yes                18   2"
    assert confusion_lines(Confusion(tuple("abcdefghijklm"), np.eye(13))) == []
