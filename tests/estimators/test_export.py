"""A fitted classifier goes to scikit-learn and to ONNX, and says the same there."""

import json
import pickle
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.validation import check_is_fitted

import iclda
from iclda import ImplicitlyConstrainedLDA, SelfLearningLDA, SupervisedLDA
from tests.helpers.problems import draw_sample, every_classifier, rising_shares

every_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3, 5])
SETTINGS = {
    "estimated priors": {},
    "fixed priors": {"priors": "rising"},
    "shrinkage": {"shrinkage": 0.3},
    "automatic shrinkage": {"shrinkage": "auto"},
}
CLASSES = {
    "integers": np.array([3, -7, 12]),
    "unsigned integers": np.array([3, 1, 2**63 + 5], dtype="uint64"),
    "floats": np.array([1.0, 0.0, 7.0]),
    "text": np.array(["söt", "bitter", "sour"]),
    "text as objects": np.array(["söt", "bitter", "sour"], dtype=object),
}


def fitted(classifier, n_classes, **settings):
    sample = draw_sample(
        [5, n_classes], n_classes=n_classes, n_features=4, n_labeled=40
    )
    if settings.get("priors") == "rising":
        settings["priors"] = rising_shares(n_classes)
    return sample.fit(classifier(**settings)), sample.rows


def run_onnx(model, rows):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    label, probabilities = session.run(["label", "probabilities"], {"X": rows})
    return label, probabilities


# scikit-learn.


@every_classifier
@every_number_of_classes
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_scikit_learn_gives_the_same_probabilities(classifier, n_classes, settings):
    model, rows = fitted(classifier, n_classes, **settings)
    exported = model.to_sklearn()
    assert type(exported) is LinearDiscriminantAnalysis
    far = np.vstack([rows, 50 * rows])
    assert_allclose(
        exported.predict_proba(far), model.predict_proba(far), rtol=0, atol=1e-12
    )
    assert_array_equal(exported.predict(far), model.predict(far))
    assert_allclose(exported.transform(rows), model.transform(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("classifier", [SupervisedLDA, SelfLearningLDA])
@pytest.mark.parametrize("priors", [[0, 1], [1, 0], [0, 0.25, 0.75]], ids=str)
def test_a_class_of_prior_zero_stays_out_of_every_export(classifier, priors):
    model, rows = fitted(classifier, len(priors), priors=priors)
    expected = model.predict_proba(rows)
    assert_allclose(
        model.to_sklearn().predict_proba(rows), expected, rtol=0, atol=1e-12
    )
    assert_allclose(run_onnx(model.to_onnx(), rows)[1], expected, rtol=0, atol=1e-12)
    never = model.classes_[priors.index(0)]
    assert never not in model.to_sklearn().predict(rows)
    assert never not in run_onnx(model.to_onnx(), rows)[0]


def test_the_export_has_what_a_fitted_lda_has():
    model, rows = fitted(SupervisedLDA, 3)
    exported = model.to_sklearn()
    usual = LinearDiscriminantAnalysis(store_covariance=True).fit(
        rows[:40], model.predict(rows[:40])
    )
    check_is_fitted(exported)
    assert set(vars(usual)) == set(vars(exported))
    for name, value in vars(usual).items():
        assert np.shape(getattr(exported, name)) == np.shape(value), name
    assert_allclose(exported.explained_variance_ratio_.sum(), 1)
    assert (
        exported.explained_variance_ratio_[0] >= exported.explained_variance_ratio_[1]
    )
    assert exported.get_feature_names_out().shape == (2,)


def test_names_of_features_are_kept_and_checked():
    sample = draw_sample(3, n_classes=2, n_features=2)
    frame = pd.DataFrame(sample.rows, columns=["width", "height"])
    exported = SelfLearningLDA().fit(frame, sample.labels).to_sklearn()
    with pytest.raises(ValueError, match="same order"):
        exported.predict(frame[["height", "width"]])
    assert not hasattr(sample.fit(SelfLearningLDA()).to_sklearn(), "feature_names_in_")


def test_rows_far_from_zero_lose_digits_in_scikit_learn_and_none_in_onnx():
    sample = draw_sample(4, n_classes=3, n_features=3)
    rows = sample.rows + 1e8
    model = SelfLearningLDA().fit(rows, sample.labels)
    expected = model.predict_proba(rows)
    assert_allclose(model.to_sklearn().predict_proba(rows), expected, atol=1e-6)
    assert_allclose(run_onnx(model.to_onnx(), rows)[1], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_classes_keep_their_type(classes):
    sample = draw_sample(8, n_classes=3, n_features=2, n_labeled=30)
    model = SelfLearningLDA(unlabeled=None).fit(
        sample.X, classes[sample.y], X_unlabeled=sample.X_unlabeled
    )
    predicted = model.predict(sample.rows)
    assert_array_equal(model.to_sklearn().predict(sample.rows), predicted, strict=True)
    label, _ = run_onnx(model.to_onnx(), sample.rows)
    assert_array_equal(label, predicted)
    assert label.dtype == (object if classes.dtype.kind in "UO" else classes.dtype)


def test_a_pickled_export_predicts_where_this_package_is_not_installed(tmp_path):
    sample = draw_sample(9, n_classes=3, n_features=2)
    names = np.array(["a", "b", "c"])[sample.y]
    model = ImplicitlyConstrainedLDA(unlabeled=None).fit(
        sample.X, names, X_unlabeled=sample.X_unlabeled
    )
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model.to_sklearn()))
    np.save(tmp_path / "rows.npy", sample.rows)
    command = """
import pickle, sys
sys.modules["iclda"] = None
import numpy as np
model = pickle.load(open("model.pkl", "rb"))
np.save("probabilities.npy", model.predict_proba(np.load("rows.npy")))
print("".join(model.predict(np.load("rows.npy"))))
"""
    finished = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = np.load(tmp_path / "probabilities.npy")
    assert_allclose(found, model.predict_proba(sample.rows), rtol=0, atol=1e-12)
    assert finished.stdout.strip() == "".join(model.predict(sample.rows))


# ONNX.


@every_classifier
@every_number_of_classes
@pytest.mark.parametrize(
    "settings", [{}, {"priors": "rising", "shrinkage": 0.3}], ids=str
)
def test_onnx_gives_the_same_labels_and_probabilities(classifier, n_classes, settings):
    model, rows = fitted(classifier, n_classes, **settings)
    exported = model.to_onnx()
    onnx.checker.check_model(exported, full_check=True)
    far = np.vstack([rows, 50 * rows])
    label, probabilities = run_onnx(exported, far)
    assert probabilities.shape == (len(far), n_classes)
    assert probabilities.dtype == np.float64
    assert_allclose(probabilities, model.predict_proba(far), rtol=0, atol=1e-12)
    assert_array_equal(label, model.predict(far))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("dtype", ["float32", np.float32])
def test_onnx_computes_in_double_on_rows_of_float32(n_classes, offset, dtype):
    sample = draw_sample(
        [10, n_classes], n_classes=n_classes, n_features=3, n_labeled=30
    )
    rows = (sample.rows + offset).astype(np.float32)
    model = SelfLearningLDA().fit(rows, sample.labels)
    label, probabilities = run_onnx(model.to_onnx(dtype=dtype), rows)
    assert probabilities.dtype == np.float32
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-7)
    assert_array_equal(label, model.predict(rows))


def test_onnx_holds_extreme_units_and_one_row():
    sample = draw_sample(11, n_classes=3, n_features=2, n_labeled=30)
    rows = sample.rows * [1e-40, 1e40]
    model = SelfLearningLDA().fit(rows, sample.labels)
    _, probabilities = run_onnx(model.to_onnx(), rows)
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-12)
    label, probabilities = run_onnx(model.to_onnx(), rows[:1])
    assert label.shape == (1,)
    assert_allclose(probabilities, model.predict_proba(rows[:1]), rtol=0, atol=1e-12)


def test_the_file_says_what_it_is():
    sample = draw_sample(12, n_classes=2, n_features=2)
    frame = pd.DataFrame(sample.rows, columns=["width", "Höhe"])
    names = np.where(sample.labels < 0, None, np.array(["no", "yes"])[sample.labels])
    model = SelfLearningLDA(unlabeled=None).fit(frame, names).to_onnx()
    assert (model.producer_name, model.producer_version) == ("iclda", iclda.__version__)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(metadata["feature_names"]) == ["width", "Höhe"]
    assert json.loads(metadata["classes"]) == ["no", "yes"]
    assert metadata["classifier"] == "SelfLearningLDA"
    unnamed = sample.fit(SelfLearningLDA()).to_onnx()
    assert "feature_names" not in {entry.key for entry in unnamed.metadata_props}


@pytest.mark.parametrize("dtype", ["float16", "int64", "double precision"])
def test_other_types_of_rows_are_refused(dtype):
    model, _ = fitted(SupervisedLDA, 2)
    with pytest.raises(
        ValueError, match=f'must be "float32" or "float64".*got {dtype!r}'
    ):
        model.to_onnx(dtype=dtype)


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    model, _ = fitted(SupervisedLDA, 2)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r"onnx is needed for to_onnx .* 'iclda\[onnx\]'"
    ):
        model.to_onnx()


@pytest.mark.filterwarnings("ignore:.* constant:UserWarning")
@pytest.mark.filterwarnings("ignore:Rows span .* dimensions:UserWarning")
@every_number_of_classes
def test_columns_that_add_nothing_stay_without_effect(n_classes):
    sample = draw_sample(
        [6, n_classes], n_classes=n_classes, n_features=3, n_labeled=30
    )
    rows = sample.rows
    rows = np.column_stack([rows, np.full(len(rows), 7.0), rows[:, 0] - 2 * rows[:, 1]])
    model = SelfLearningLDA().fit(rows, sample.labels)
    assert model.rank_ == 3
    expected = model.predict_proba(rows)
    assert_allclose(
        model.to_sklearn().predict_proba(rows), expected, rtol=0, atol=1e-12
    )
    assert_allclose(run_onnx(model.to_onnx(), rows)[1], expected, rtol=0, atol=1e-12)
    elsewhere = rows + np.array([0, 0, 0, 100, 0])
    assert_allclose(
        model.to_sklearn().predict_proba(elsewhere), expected, rtol=0, atol=1e-12
    )
