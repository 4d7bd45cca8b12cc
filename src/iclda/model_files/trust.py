"""Which types a model file may hold. Anything else is refused before skops builds an object."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .container import SCHEMA

OWN_TYPES = frozenset(
    {
        "iclda._core.frame.Frame",
        "iclda._core.gaussian.Gaussians",
        "iclda._core.labelsums.LexicographicRule",
        "iclda._core.labelsums.LinearRule",
        "iclda._estimators.expectation_maximization.ExpectationMaximizationLDA",
        "iclda._estimators.implicitly_constrained.ImplicitlyConstrainedLDA",
        "iclda._estimators.moment_constrained.MomentConstrainedLDA",
        "iclda._estimators.self_learning.SelfLearningLDA",
        "iclda._estimators.supervised.SupervisedLDA",
        "iclda.tabular.encoders.CategoryEncoder",
        "iclda.tabular.encoders.NumberEncoder",
    }
)
SKLEARN_TYPES = frozenset(
    {
        "sklearn.compose._column_transformer.ColumnTransformer",
        "sklearn.decomposition._pca.PCA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.feature_selection._variance_threshold.VarianceThreshold",
        "sklearn.impute._base.MissingIndicator",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.pipeline.FeatureUnion",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.MaxAbsScaler",
        "sklearn.preprocessing._data.MinMaxScaler",
        "sklearn.preprocessing._data.PolynomialFeatures",
        "sklearn.preprocessing._data.PowerTransformer",
        "sklearn.preprocessing._data.QuantileTransformer",
        "sklearn.preprocessing._data.RobustScaler",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "sklearn.preprocessing._encoders.OrdinalEncoder",
        "sklearn.preprocessing._polynomial.PolynomialFeatures",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    }
)
_PLAIN_TYPES = frozenset(
    {"numpy.ndarray", "numpy.dtype", "numpy.random.mtrand.RandomState"}
    | {f"builtins.{name}" for name in ("dict", "list", "tuple", "set", "slice")}
    | {f"builtins.{name}" for name in ("str", "int", "float", "bool", "NoneType")}
    | {f"numpy.{name}" for name in ("bool", "bool_", "str_", "float16", "float32", "float64")}
    | {f"numpy.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
# The ways skops builds an object; those that call functions or methods are not among them.
_LOADERS = frozenset(
    {
        "DTypeNode",
        "DictNode",
        "JsonNode",
        "ListNode",
        "NdArrayNode",
        "ObjectNode",
        "RandomStateNode",
        "SetNode",
        "SliceNode",
        "TupleNode",
        "TypeNode",
    }
)


def refuse_untrusted(
    path: Path, archive: bytes, trusted: Iterable[str] = (), *, is_saved: bool = False
) -> None:
    """ValueError that names what a file holds, or would hold, beyond what may be in it."""
    named = set(_named_types(path, archive))
    extra = frozenset(trusted)
    found = {name for name, _ in named} - OWN_TYPES - SKLEARN_TYPES - _PLAIN_TYPES - extra
    if found:
        listed = sorted(found)
        if is_saved:
            raise ValueError(
                f"The model holds types that load_model does not trust: {', '.join(listed)}. "
                f"{path} was not written. If they are yours, pass trusted={listed} here and to "
                "load_model."
            )
        raise ValueError(
            f"{path} holds types that iclda does not trust: {', '.join(listed)}. Nothing was "
            f"loaded. If you know who made the file and what these are, pass trusted={listed}."
        )
    # A function can be trusted by its name; a call of one cannot.
    ways = {loader for _, loader in named} - _LOADERS - ({"FunctionNode"} if extra else set())
    if ways and is_saved:
        raise ValueError(
            "The model holds objects that load_model would not build, by "
            f"{', '.join(sorted(ways))}: leave them out of it. {path} was not written."
        )
    if ways:
        raise ValueError(
            f"{path} asks for objects to be built in ways that iclda does not trust: "
            f"{', '.join(sorted(ways))}. Nothing was loaded."
        )


def _named_types(path: Path, archive: bytes) -> Iterator[tuple[str, str]]:
    """Every type an archive names, with the way skops would build it."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as file:
            pending: list[Any] = [json.loads(file.read(SCHEMA))]
    except (KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no model file of iclda ({error}).") from error
    while pending:
        state = pending.pop()
        if isinstance(state, dict):
            if "__class__" in state or "__loader__" in state:
                name = f"{state.get('__module__')}.{state.get('__class__')}"
                yield name, str(state.get("__loader__"))
            pending.extend(state.values())
        elif isinstance(state, list):
            pending.extend(state)
