"""Splits of cells, and the fits on them: those of the estimators that users import."""

import numpy as np
import pytest
from result_rows import coded_set

import iclda
from iclda.methods import FURTHER
from iclda.methods import METHODS as MAIN
from iclda.studies.paper.design import CURVES, GAUSSIAN, N_FOLDS, TABLES
from iclda.studies.paper.run import (
    CellRows,
    curve_sizes,
    curve_split,
    fit_method,
    fit_published_em,
    fold_split,
    run_cell,
)
from iclda.studies.store import Cell, cells_of

ESTIMATORS = {
    "LDA": iclda.SupervisedLDA(),
    "MCLDA": iclda.MomentConstrainedLDA(variant="symmetric"),
    "EMLDA": iclda.ExpectationMaximizationLDA(),
    "SLLDA": iclda.SelfLearningLDA(),
    "ICLDA": iclda.ImplicitlyConstrainedLDA(),
    "STLDA": iclda.SelfTrainingLDA(),
}


def draw(seed, n_classes=2):
    rng = np.random.default_rng(seed)
    codes = np.arange(120) % n_classes
    X = rng.standard_normal((120, 3)) + 1.5 * rng.standard_normal((n_classes, 3))[codes]
    return CellRows(X[:24], codes[:24], X[24:], codes[24:], n_classes, 0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_method_of_the_experiments_is_the_estimator(name, n_classes):
    training = draw(1, n_classes)
    model = fit_method(name, training)
    fit = ESTIMATORS[name].fit(
        training.X, training.codes, X_unlabeled=training.X_unlabeled
    )
    joint = model.log_joint(training.rows)
    expected = fit.score_samples(training.rows)
    found = np.log(np.exp(joint).sum(axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.array_equal(joint.argmax(axis=1), fit.predict(training.rows))


def test_the_oracle_knows_every_label():
    training = draw(2)
    codes = np.concatenate([training.codes, training.codes_unlabeled])
    fit = iclda.SupervisedLDA().fit(training.rows, codes)
    joint = fit_method("LDAoracle", training).log_joint(training.rows)
    expected = fit.log_likelihood(training.rows, codes)
    np.testing.assert_allclose(
        joint[np.arange(len(codes)), codes], expected, rtol=1e-10
    )


def em_as_the_original_code(training, n_rounds):
    """The two faults on raw rows: means subtracted twice, no 1/2 in the exponent."""
    rows, n_labeled = training.rows, len(training.codes)
    center = rows.mean(axis=0)
    shares = np.eye(2)[training.codes]
    weights, members = shares, training.X - center
    for number in range(n_rounds + 1):
        counts = weights.sum(axis=0)
        means = weights.T @ members / counts[:, None]
        spread = sum(
            (members - means[k]).T @ ((members - means[k]) * weights[:, [k]])
            for k in range(2)
        )
        covariance = spread / counts.sum()
        if number == n_rounds:
            return counts / counts.sum(), means + center, covariance
        seen = rows[n_labeled:] - center - (center if number > 0 else 0)
        deviations = seen[:, None] - means
        distances = np.einsum(
            "nkd,de,nke->nk", deviations, np.linalg.inv(covariance), deviations
        )
        joint = np.log(counts / counts.sum()) - distances
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        weights = np.vstack([shares, joint / joint.sum(axis=1, keepdims=True)])
        members = rows - center


@pytest.mark.parametrize("n_rounds", [1, 2, 5])
def test_em_as_published_has_the_two_faults_of_the_original_code(n_rounds):
    training = draw(3)
    fit = fit_published_em(training.problem, n_rounds)
    priors, means, covariance = em_as_the_original_code(training, n_rounds)
    frame = fit.frame
    np.testing.assert_allclose(fit.class_weights, priors, rtol=1e-9)
    np.testing.assert_allclose(frame.restore(fit.means), means, rtol=1e-8)
    scales = np.outer(frame.scale, frame.scale)
    np.testing.assert_allclose(fit.covariance * scales, covariance, rtol=1e-7)


def test_a_column_that_no_labeled_row_varies_in_does_not_stop_the_moment_fit():
    training = draw(4)
    X = training.X.copy()
    X[:, 1] = 1.0
    model = fit_method(
        "MCLDA", CellRows(X, training.codes, training.X_unlabeled, [], 2, 0)
    )
    assert np.isfinite(model.log_joint(training.X_unlabeled)).all()


CODES = (np.random.default_rng(0).random(103) < 0.25).astype(int)


def folds_of(seed, repeat=0, codes=CODES, n_labeled=10):
    cells = [Cell(TABLES, "set", repeat, fold) for fold in range(N_FOLDS)]
    return [fold_split(codes, n_labeled, seed, cell) for cell in cells]


@pytest.mark.parametrize("seed", range(5))
def test_two_rows_of_every_class_are_labeled_and_tested_in_folds_of_equal_size(seed):
    folds = folds_of(seed)
    tested = np.concatenate([split.test for split in folds])
    assert np.array_equal(np.sort(tested), np.arange(len(CODES)))
    assert {len(split.test) for split in folds} == {10, 11}
    for split in folds:
        assert len(split.labeled) == 10
        assert np.bincount(CODES[split.labeled], minlength=2).min() >= 2
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2
        check_parts(split)


def check_parts(split):
    """Every row is in one part."""
    parts = [np.unique(split.labeled), split.unlabeled, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(CODES)))


def test_a_curve_labels_one_row_a_class_more_and_tests_the_rest():
    for repeat in range(20):
        split = curve_split(CODES, 10, 0, Cell(CURVES, "set", repeat, 32))
        assert len(split.labeled) == 12
        assert len(split.unlabeled) == 32
        assert np.bincount(CODES[split.test], minlength=2).min() >= 2
        check_parts(split)


def test_a_split_depends_on_seed_and_cell_alone():
    cell = Cell(TABLES, "set", 4, 7)
    alone = fold_split(CODES, 10, 1, cell)
    among = folds_of(1, repeat=4)[7]
    for name in ("labeled", "unlabeled", "test"):
        assert np.array_equal(getattr(alone, name), getattr(among, name))
    others = [
        fold_split(CODES, 10, 2, cell),
        fold_split(CODES, 10, 1, Cell(TABLES, "b", 4, 7)),
    ]
    assert all(not np.array_equal(alone.labeled, other.labeled) for other in others)


METHODS = ("LDA", "ICLDA")


SETS = {"set": coded_set()}


def test_a_row_tells_what_the_fit_was_given_and_how_it_did():
    (row, _) = run_cell(
        cells_of(TABLES, {"set": range(N_FOLDS)}, 1)[3], SETS, METHODS, 0
    )
    assert (row.experiment, row.dataset, row.part, row.method) == (
        TABLES,
        "set",
        3,
        "LDA",
    )
    assert (row.n_labeled, row.n_unlabeled, row.n_test) == (10, 62, 8)
    assert 0 <= row.values["error"] <= 1
    assert np.isfinite([row.values["nll"], row.values["nll_labeled"]]).all()


def test_toy_problems_are_drawn_anew_in_every_cell():
    cells = cells_of(CURVES, {GAUSSIAN: [4]}, 2)
    first, second = (run_cell(cell, {}, ["LDA"], 0)[0] for cell in cells)
    assert first.experiment == CURVES
    assert (first.n_labeled, first.n_unlabeled, first.n_test) == (12, 4, 984)
    assert first.values["nll"] != second.values["nll"]


def test_all_methods_are_fitted_and_have_a_loss_if_they_have_a_density():
    cell = cells_of(TABLES, {"set": range(N_FOLDS)}, 1)[0]
    names = [*(method.paper_name for method in (*MAIN, *FURTHER)), "AVLDA"]
    for row in run_cell(cell, SETS, names, 0):
        assert row.failure is None, row.failure
        assert 0 <= row.values["error"] <= 1
        is_gaussian = "LS" not in row.method
        assert ("nll" in row.values) == is_gaussian


@pytest.mark.parametrize(
    ("n_rows", "n_labeled", "largest"),
    [(1000, 10, 512), (195, 38, 128), (208, 120, 64)],
)
def test_curves_reach_as_far_as_there_are_rows_to_test(n_rows, n_labeled, largest):
    sizes = curve_sizes(n_rows, n_labeled, 2)
    assert sizes == [2**k for k in range(len(sizes))]
    assert sizes[-1] == largest
