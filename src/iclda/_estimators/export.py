"""A fitted classifier for others: as scikit-learn's own LDA, and as an ONNX graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from .._core import AnyArray, Array
from .._system import require, versions
from .linear_model import GaussianModel

# Rows of this length or less are not divided by it: a row of length 0 stays.
_MIN_DIVISOR = 1e-150
# The operators used have not changed since this version, which every runtime knows.
_ONNX_OPERATORS_VERSION = 15
_ONNX_FORMAT_VERSION = 8


def to_sklearn(classifier: Any, model: GaussianModel) -> Any:
    """Return a fitted classifier of scikit-learn, after a scaling of rows if needed."""
    gaussians = model.gaussians
    frame = model.frame
    exported = LinearDiscriminantAnalysis(
        # Of the solvers this is the one whose transform is about the overall mean.
        solver="svd",
        priors=None if classifier.priors is None else classifier.priors_.copy(),
        store_covariance=True,
    )
    # Without a frame: scikit-learn takes rows in the user's units.
    rule = model.lead_rule.folded(frame)
    exported.coef_ = rule.coef.T.copy()
    exported.intercept_ = rule.intercept.copy()
    for name in ("classes_", "priors_", "means_", "covariance_"):
        setattr(exported, name, getattr(classifier, name).copy())
    exported.xbar_ = frame.restore(gaussians.center)
    directions = gaussians.discriminants(model.n_components)
    exported.scalings_ = directions / frame.scale[:, None]

    # Shares of the variance between the class means.
    weights = gaussians.class_weights
    positions = (gaussians.means - gaussians.center) @ directions
    variances = weights @ (positions - weights @ positions) ** 2
    exported.explained_variance_ratio_ = variances / (variances.sum() or 1.0)

    # Without these, ``transform`` does not know how many directions there are.
    exported._max_components = model.n_components
    exported._n_features_out = model.n_components
    exported.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        exported.feature_names_in_ = classifier.feature_names_in_.copy()
    if model.center is None:
        return exported
    return make_pipeline(_centering(model.center), Normalizer(), exported)


def _centering(center: Array) -> StandardScaler:
    """Return a fitted scaler that only subtracts a vector."""
    scaler = StandardScaler(with_std=False)
    scaler.mean_ = center.copy()
    scaler.scale_ = None
    scaler.var_ = None
    scaler.n_features_in_ = len(center)
    return scaler


def to_onnx(classifier: Any, model: GaussianModel, dtype: Any) -> Any:
    """Return an ONNX graph from rows to class and probabilities."""
    onnx = require("onnx", "to_onnx", "onnx")
    helper = onnx.helper
    element = _element_type(onnx, dtype)
    classes = classifier.classes_
    labels = _label_tensor(onnx, classes)
    tensors = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in _constants(model).items()
    ]

    # What goes in and what comes out; the number of rows is open.
    n_features = classifier.n_features_in_
    rows = helper.make_tensor_value_info("X", element, ["n", n_features])
    label = helper.make_tensor_value_info("label", labels.data_type, ["n"])
    probabilities = helper.make_tensor_value_info(
        "probabilities", element, ["n", len(classes)]
    )

    name = type(classifier).__name__
    graph = helper.make_graph(
        _nodes(onnx, element, is_scaled=model.center is not None),
        name,
        [rows],
        [label, probabilities],
        [*tensors, labels],
    )
    exported = helper.make_model(
        graph,
        producer_name="iclda",
        producer_version=versions()["iclda"],
        ir_version=_ONNX_FORMAT_VERSION,
        opset_imports=[helper.make_opsetid("", _ONNX_OPERATORS_VERSION)],
        doc_string="Rows in; most probable class and probabilities of all classes out.",
    )
    helper.set_model_props(exported, _metadata(classifier))
    return exported


def _constants(model: GaussianModel) -> dict[str, AnyArray]:
    """Return the numbers of a fit by their names in ``_nodes``."""
    rule = model.score_rule
    constants = {
        "origin": model.frame.origin,
        "scale": model.frame.scale,
        "coef": np.ascontiguousarray(rule.coef),
        "intercept": rule.intercept,
    }
    if model.center is not None:
        constants["center"] = model.center
        constants["shortest"] = np.full(1, _MIN_DIVISOR)
    return constants


def _metadata(classifier: Any) -> dict[str, str]:
    """Return what a reader of the graph may want to know, as texts."""
    metadata = {
        "classifier": type(classifier).__name__,
        "classes": json.dumps(classifier.classes_.tolist(), default=str),
        "iclda_version": versions()["iclda"],
    }
    if hasattr(classifier, "feature_names_in_"):
        metadata["feature_names"] = json.dumps(classifier.feature_names_in_.tolist())
    return metadata


def _element_type(onnx: Any, dtype: Any) -> int:
    """Return the type of rows and probabilities, as ONNX numbers it."""
    names = {np.dtype(np.float32): "FLOAT", np.dtype(np.float64): "DOUBLE"}
    try:
        return int(getattr(onnx.TensorProto, names[np.dtype(dtype)]))
    except (KeyError, TypeError):
        raise ValueError(
            'dtype must be "float32" or "float64", the type of the rows, got '
            f"{dtype!r}."
        ) from None


def _label_tensor(onnx: Any, classes: AnyArray) -> Any:
    """Return the classes as a constant of a graph."""
    if classes.dtype.kind not in "OUS":
        return onnx.numpy_helper.from_array(np.ascontiguousarray(classes), "classes")
    texts = [
        name if isinstance(name, bytes) else str(name).encode()
        for name in classes.tolist()
    ]
    kind = onnx.TensorProto.STRING
    return onnx.helper.make_tensor("classes", kind, [len(texts)], texts)


def _nodes(onnx: Any, element: int, *, is_scaled: bool) -> list[Any]:
    """Return the operations between rows and probabilities.

    All are in double precision, about the origin of the fit.
    """
    node = onnx.helper.make_node
    nodes = [node("Cast", ["X"], ["rows"], to=onnx.TensorProto.DOUBLE)]
    if is_scaled:
        nodes += [
            node("Sub", ["rows", "center"], ["moved"]),
            node("ReduceL2", ["moved"], ["length"], axes=[1]),
            node("Max", ["length", "shortest"], ["divisor"]),
            node("Div", ["moved", "divisor"], ["scaled"]),
        ]
    return [
        *nodes,
        node("Sub", ["scaled" if is_scaled else "rows", "origin"], ["centered"]),
        node("Div", ["centered", "scale"], ["in_frame"]),
        node("MatMul", ["in_frame", "coef"], ["products"]),
        node("Add", ["products", "intercept"], ["scores"]),
        node("ArgMax", ["scores"], ["code"], axis=1, keepdims=0),
        node("Gather", ["classes", "code"], ["label"]),
        node("Softmax", ["scores"], ["shares"], axis=1),
        node("Cast", ["shares"], ["probabilities"], to=element),
    ]
