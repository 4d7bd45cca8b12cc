"""A fitted classifier for others: as scikit-learn's own LDA, and as an ONNX graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, Normalizer, StandardScaler
from sklearn.utils import Bunch

from .._core import AnyArray, Array
from .._rows.views import (
    Bounds,
    KernelMap,
    LinearMap,
    Standardization,
    UnitLength,
    View,
    steps_of,
)
from .._system import require, versions
from .linear_model import GaussianModel
from .mixture_model import MixtureModel

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
    from_mean = positions - weights @ positions
    variances = weights @ from_mean**2
    total_variance = variances.sum() or 1.0
    exported.explained_variance_ratio_ = variances / total_variance

    # Without these, ``transform`` does not know how many directions there are.
    exported._max_components = model.n_components
    exported._n_features_out = model.n_components
    exported.n_features_in_ = len(frame.scale)
    if model.view is None:
        if hasattr(classifier, "feature_names_in_"):
            exported.feature_names_in_ = classifier.feature_names_in_.copy()
        return exported
    return make_pipeline(*_as_sklearn(model.view), exported)


def mixture_to_sklearn(classes: AnyArray, model: MixtureModel) -> Any:
    """Return a fitted voting classifier of scikit-learn."""
    turned = [name for name, member in model.members.items() if member.is_turned]
    if turned:
        raise ValueError(
            f"The members {turned} were turned to the given priors or proportions, "
            "which no classifier of scikit-learn does: fit without these, or save the "
            "model with save_model."
        )
    exported: list[tuple[str, Any]] = []
    for name, member in model.members.items():
        steps = [] if member.view is None else _as_sklearn(member.view)
        own = member.classifier
        last = own.to_sklearn() if hasattr(own, "to_sklearn") else own.estimator_
        exported.append((name, make_pipeline(*steps, last) if steps else last))
    weights = [member.weight for member in model.members.values()]
    voting = VotingClassifier(exported, voting="soft", weights=weights)
    voting.estimators_ = [classifier for _, classifier in exported]
    voting.named_estimators_ = Bunch(**dict(exported))
    voting.le_ = LabelEncoder().fit(classes)
    voting.classes_ = voting.le_.classes_
    return voting


def _as_sklearn(view: View) -> list[Any]:
    """Return fitted transformers of scikit-learn that map rows as a view does."""
    return [step for each in steps_of(view) for step in _step_as_sklearn(each)]


def _step_as_sklearn(view: View) -> list[Any]:
    if isinstance(view, Bounds):
        # No transformer of scikit-learn moves broken numbers.
        return []
    if isinstance(view, Standardization):
        return [_scaler(view.center, view.scale)]
    if isinstance(view, UnitLength):
        return [_scaler(view.center, None), Normalizer()]
    if isinstance(view, LinearMap):
        # The only transformer of scikit-learn that centers rows and maps them linearly.
        linear = PCA()
        linear.mean_ = view.center.copy()
        linear.components_ = view.matrix.T.copy()
        # Version 1.7 looks at its type, and uses it only with `whiten`.
        linear.explained_variance_ = np.ones(view.matrix.shape[1])
        linear.n_features_in_ = len(view.center)
        return [linear]
    assert isinstance(view, KernelMap)
    kernel = Nystroem(gamma=view.gamma, n_components=len(view.landmarks))
    kernel.components_ = view.landmarks.copy()
    kernel.component_indices_ = np.arange(len(view.landmarks))
    kernel.normalization_ = view.projection.T.copy()
    kernel.n_features_in_ = view.landmarks.shape[1]
    kernel._n_features_out = view.n_features
    return [kernel]


def _scaler(center: Array, scale: Array | None) -> StandardScaler:
    """Return a fitted scaler; without a scale it only subtracts the center."""
    scaler = StandardScaler(with_std=scale is not None)
    scaler.mean_ = center.copy()
    scaler.scale_ = None if scale is None else scale.copy()
    scaler.var_ = None if scale is None else scale**2
    scaler.n_features_in_ = len(center)
    return scaler


def to_onnx(classifier: Any, model: GaussianModel, dtype: Any) -> Any:
    """Return an ONNX graph from rows to class and probabilities."""
    onnx = require("onnx", "to_onnx", "onnx")
    helper = onnx.helper
    element = _element_type(onnx, dtype)
    classes = classifier.classes_
    labels = _label_tensor(onnx, classes)
    steps = _graph_steps(onnx, model, element)
    tensors = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        for name, array in steps.constants.items()
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
        steps.nodes,
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


class _GraphSteps:
    """Operations of a graph, one after another, and the constants they use."""

    def __init__(self, onnx: Any) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, AnyArray] = {}
        self._make_node = onnx.helper.make_node

    def cast(self, name: str, element: int, *, result: str = "") -> str:
        """Add a conversion to a type of ONNX."""
        return self.add("Cast", name, result=result, to=element)

    def add(
        self, operation: str, *inputs: Any, result: str = "", **options: Any
    ) -> str:
        """Add an operation and return the name of its result.

        Inputs are names of earlier results, or arrays, which become constants.
        """
        names = []
        for value in inputs:
            name = value
            if not isinstance(value, str):
                name = f"constant_{len(self.constants)}"
                self.constants[name] = np.asarray(value, dtype=np.float64)
            names.append(name)
        result = result or f"result_{len(self.nodes)}"
        self.nodes.append(self._make_node(operation, names, [result], **options))
        return result


def _graph_steps(onnx: Any, model: GaussianModel, element: int) -> _GraphSteps:
    """Return the operations between rows and probabilities.

    All are in double precision, about the origin of the fit.
    """
    steps = _GraphSteps(onnx)
    rows = steps.cast("X", onnx.TensorProto.DOUBLE)
    if model.view is not None:
        for view in steps_of(model.view):
            rows = _add_view(steps, view, rows)
    centered = steps.add("Sub", rows, model.frame.origin)
    in_frame = steps.add("Div", centered, model.frame.scale)
    rule = model.score_rule
    products = steps.add("MatMul", in_frame, rule.coef)
    scores = steps.add("Add", products, rule.intercept)
    code = steps.add("ArgMax", scores, axis=1, keepdims=0)
    steps.add("Gather", "classes", code, result="label")
    shares = steps.add("Softmax", scores, axis=1)
    steps.cast(shares, element, result="probabilities")
    return steps


def _add_view(steps: _GraphSteps, view: View, rows: str) -> str:
    """Add the operations of a view, and return the name of the mapped rows."""
    if isinstance(view, Bounds):
        # As in ``to_sklearn``, broken numbers stay.
        return rows
    if isinstance(view, Standardization):
        centered = steps.add("Sub", rows, view.center)
        return steps.add("Div", centered, view.scale)
    if isinstance(view, LinearMap):
        centered = steps.add("Sub", rows, view.center)
        return steps.add("MatMul", centered, view.matrix)
    if isinstance(view, UnitLength):
        centered = steps.add("Sub", rows, view.center)
        # ONNX Runtime 1.19 has no ReduceL2 of float64.
        squares = steps.add("ReduceSumSquare", centered, axes=[1])
        lengths = steps.add("Sqrt", squares)
        divisors = steps.add("Max", lengths, [_MIN_DIVISOR])
        return steps.add("Div", centered, divisors)
    assert isinstance(view, KernelMap)
    # |x - l|^2 = |x|^2 - 2 x l + |l|^2 for a row x and a landmark l.
    row_squares = steps.add("ReduceSumSquare", rows, axes=[1])
    landmark_squares = (view.landmarks**2).sum(axis=1)
    products = steps.add("MatMul", rows, -2.0 * view.landmarks.T)
    distances = steps.add("Add", products, landmark_squares)
    distances = steps.add("Add", distances, row_squares)
    # Rounding may have left a negative distance.
    distances = steps.add("Max", distances, [0.0])
    exponents = steps.add("Mul", distances, [-view.gamma])
    kernel = steps.add("Exp", exponents)
    return steps.add("MatMul", kernel, view.projection)
