"""A fitted classifier for others: as scikit-learn's own LDA, and as an ONNX graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from .._system import require, versions

_SHORTEST = 1e-150  # rows of length 0 stay so
_OPSET, _IR_VERSION = (
    15,
    8,
)  # the operators used have not changed since; every runtime knows them


def to_sklearn(classifier: Any) -> Any:
    model = classifier._gaussians_
    frame, n_components = model.frame, classifier._n_features_out
    exported = LinearDiscriminantAnalysis(
        solver="svd",  # the one whose transform is about the overall mean, like ours
        priors=None if classifier.priors is None else classifier.priors_.copy(),
        store_covariance=True,
    )
    rule = classifier._discriminant_rule().folded(frame)
    exported.coef_, exported.intercept_ = rule.coef.T.copy(), rule.intercept.copy()
    for name in ("classes_", "priors_", "means_", "covariance_"):
        setattr(exported, name, getattr(classifier, name).copy())
    exported.xbar_ = frame.restore(model.center)
    exported.scalings_ = model.discriminants(n_components) / frame.scale[:, None]
    weights = model.class_weights
    points = (model.means - model.center) @ model.discriminants(n_components)
    variances = weights @ (points - weights @ points) ** 2  # between class means
    exported.explained_variance_ratio_ = variances / (variances.sum() or 1.0)
    exported._max_components = exported._n_features_out = n_components
    exported.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        exported.feature_names_in_ = classifier.feature_names_in_.copy()
    if classifier._center_ is None:
        return exported
    centering = StandardScaler(with_std=False)
    centering.mean_, centering.scale_, centering.var_ = (
        classifier._center_.copy(),
        None,
        None,
    )
    centering.n_features_in_ = classifier.n_features_in_
    return make_pipeline(centering, Normalizer(), exported)


def to_onnx(classifier: Any, dtype: Any) -> Any:
    onnx = require("onnx", "to_onnx", "onnx")
    helper, known = (
        onnx.helper,
        {np.dtype(np.float32): "FLOAT", np.dtype(np.float64): "DOUBLE"},
    )
    try:
        element = int(getattr(onnx.TensorProto, known[np.dtype(dtype)]))
    except (KeyError, TypeError):
        raise ValueError(
            f'dtype must be "float32" or "float64", the type of the rows, got {dtype!r}.'
        ) from None
    frame, rule = classifier._gaussians_.frame, classifier._gaussians_.score_rule()
    classes, is_scaled = classifier.classes_, classifier._center_ is not None
    if classes.dtype.kind in "OUS":
        texts = [
            c if isinstance(c, bytes) else str(c).encode() for c in classes.tolist()
        ]
        labels = helper.make_tensor(
            "classes", onnx.TensorProto.STRING, [len(texts)], texts
        )
    else:
        labels = onnx.numpy_helper.from_array(np.ascontiguousarray(classes), "classes")
    constants = {
        "origin": frame.origin,
        "scale": frame.scale,
        "coef": np.ascontiguousarray(rule.coef),
        "intercept": rule.intercept,
    }
    if is_scaled:
        constants |= {"center": classifier._center_, "shortest": np.full(1, _SHORTEST)}
    graph = helper.make_graph(
        _nodes(onnx, element, is_scaled=is_scaled),
        type(classifier).__name__,
        [helper.make_tensor_value_info("X", element, ["n", classifier.n_features_in_])],
        [
            helper.make_tensor_value_info("label", labels.data_type, ["n"]),
            helper.make_tensor_value_info(
                "probabilities", element, ["n", len(classes)]
            ),
        ],
        [
            *(onnx.numpy_helper.from_array(a, name) for name, a in constants.items()),
            labels,
        ],
    )
    model = helper.make_model(
        graph,
        producer_name="iclda",
        producer_version=versions()["iclda"],
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        doc_string="Rows in; most probable class and probabilities of all classes out.",
    )
    metadata = {
        "classifier": type(classifier).__name__,
        "classes": json.dumps(classes.tolist(), default=str),
        "iclda_version": versions()["iclda"],
    }
    if hasattr(classifier, "feature_names_in_"):
        metadata["feature_names"] = json.dumps(classifier.feature_names_in_.tolist())
    helper.set_model_props(model, metadata)
    return model


def _nodes(onnx: Any, element: int, *, is_scaled: bool) -> list[Any]:
    """Everything between rows and probabilities in double, about the origin of the fit."""
    node, double = onnx.helper.make_node, onnx.TensorProto.DOUBLE
    nodes = [node("Cast", ["X"], ["rows"], to=double)]
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
