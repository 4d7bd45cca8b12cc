"""Data that must give equal fits, and changes of the data that the fit must follow."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone


@dataclass(frozen=True)
class Data:
    """Arguments of ``fit``."""

    X: np.ndarray
    y: np.ndarray
    X_unlabeled: np.ndarray
    weights: np.ndarray | None = None
    weights_unlabeled: np.ndarray | None = None

    def fit(self, estimator):
        return clone(estimator).fit(
            self.X,
            self.y,
            self.weights,
            X_unlabeled=self.X_unlabeled,
            sample_weight_unlabeled=self.weights_unlabeled,
        )


def data_of(sample):
    return Data(sample.X, sample.y, sample.X_unlabeled)


def reordered(data):
    rng = np.random.default_rng(9)
    first = rng.permutation(len(data.X))
    second = rng.permutation(len(data.X_unlabeled))
    return data, Data(data.X[first], data.y[first], data.X_unlabeled[second])


def marked_or_apart(data):
    n_marked = len(data.X_unlabeled) // 2
    X = np.vstack([data.X_unlabeled[:n_marked], data.X])
    y = np.r_[np.full(n_marked, -1), data.y]
    return data, Data(X, y, data.X_unlabeled[n_marked:])


PAIRS = {
    "row order": reordered,
    "marker or X_unlabeled": marked_or_apart,
}


def assert_close(found, expected, tol):
    np.testing.assert_allclose(
        found, expected, rtol=tol, atol=tol * np.abs(expected).max()
    )


def assert_same_fit(a, b, tol=1e-9):
    for name in (
        "class_weights_",
        "priors_",
        "means_",
        "covariance_",
        "coef_",
        "intercept_",
    ):
        # Least squares have no density.
        if hasattr(b, name):
            assert_close(getattr(a, name), getattr(b, name), tol)


def assert_finite(model, rows):
    """Nothing fitted or predicted is NaN or infinite; probabilities add up to 1."""
    values = {name: value for name, value in vars(model).items() if name.endswith("_")}
    # NaN stands for rows that could not be tested.
    values.pop("held_out_probabilities_", None)
    methods = (
        "decision_function",
        "predict_log_proba",
        "transform",
        "score_samples",
        "impute",
    )
    for method in methods:
        if hasattr(model, method):
            values[method] = getattr(model, method)(rows)
    for name, value in values.items():
        is_number = isinstance(value, (float, np.ndarray))
        if is_number and np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), name
    probabilities = model.predict_proba(rows)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


def assert_follows_affine_map(estimator, data, tol):
    """Rows A x + t: means and covariance are mapped, posteriors stay."""
    d = data.X.shape[1]
    rng = np.random.default_rng(12)
    A = rng.standard_normal((d, d)) + 2 * np.eye(d)
    A *= np.array([0.1, 1.0, 30.0])[:d, None]
    shift = np.array([5.0, -40.0, 100.0])[:d]
    mapped = replace(
        data, X=data.X @ A.T + shift, X_unlabeled=data.X_unlabeled @ A.T + shift
    )
    before = data.fit(estimator)
    after = mapped.fit(estimator)
    assert_close(after.class_weights_, before.class_weights_, tol)
    assert_close(after.means_, before.means_ @ A.T + shift, tol)
    assert_close(after.covariance_, A @ before.covariance_ @ A.T, tol)
    assert_close(_contrasts(after) @ A, _contrasts(before), 10 * tol)
    assert_close(
        after.predict_proba(mapped.X_unlabeled),
        before.predict_proba(data.X_unlabeled),
        tol,
    )
    volume = np.linalg.slogdet(A)[1]
    assert_close(
        after.score_samples(mapped.X_unlabeled) + volume,
        before.score_samples(data.X_unlabeled),
        tol,
    )


def _contrasts(fit):
    """Coefficients; of more than two classes, they matter up to a common vector."""
    return fit.coef_[1:] - fit.coef_[:1] if len(fit.coef_) > 1 else fit.coef_


def assert_follows_class_names(estimator, data, tol):
    """Other names in another order: everything is told in the new order."""
    n_classes = int(data.y.max()) + 1
    order = np.random.default_rng(13).permutation(n_classes)
    order = order if np.any(order != np.arange(n_classes)) else order[::-1]
    names = np.array([f"class {order[k]}" for k in range(n_classes)])
    before = data.fit(estimator)
    after = replace(data, y=names[data.y]).fit(estimator)
    assert after.classes_.tolist() == sorted(names)
    assert_close(after.class_weights_[order], before.class_weights_, tol)
    assert_close(after.means_[order], before.means_, tol)
    assert_close(after.covariance_, before.covariance_, tol)
    assert_close(
        after.predict_proba(data.X_unlabeled)[:, order],
        before.predict_proba(data.X_unlabeled),
        tol,
    )
