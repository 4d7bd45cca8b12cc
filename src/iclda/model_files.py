"""Model files: fitted classifiers stored by skops, with a checksum and an allow-list of types.

A model file is a zip archive as skops writes it, so that skops reads it too. One more member,
``iclda.json``, holds the details. The comment at the end of the archive is the SHA-256 of all bytes
before it: a changed byte anywhere is noticed before anything is read.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._estimators.labels import plain
from ._packages import require, versions
from ._paths import atomic_write, check_readable, check_writable
from .methods import FITTED, FURTHER

__all__ = ["InconsistentModelWarning", "load_model", "model_details", "save_model"]

FORMAT = 1
_DETAILS, _SCHEMA = "iclda.json", "schema.json"
_SEAL = b"iclda model, sha256 of all before this comment: "
_DIGITS = 64  # of a SHA-256 checksum
_DIAGNOSIS = (
    *("converged_", "n_iter_", "gap_", "n_optima_", "n_passes_"),
    *("objective_", "rank_", "shrinkage_"),
)
_DETAILS_TYPES: dict[str, Any] = {  # of the entries that ``_describe`` makes
    **dict.fromkeys(("iclda", "created", "classifier"), str),
    **dict.fromkeys(("parameters", "diagnosis", "versions", "about"), dict),
    "classes": list,
    "priors": (list, NoneType),
    "columns": (dict, NoneType),
    "n_features": int,
}
# Modules in files of earlier versions, and where their types are now.
_MOVED = {
    f"iclda._{method.module}": f"iclda._estimators.{method.module}"
    for method in (*FITTED, *FURTHER)
}

OWN_TYPES = frozenset(
    {
        "iclda._core.frame.Frame",
        "iclda._core.gaussian.Complement",
        "iclda._core.gaussian.Gaussians",
        "iclda._core.labelsums.LexicographicRule",
        "iclda._core.labelsums.LinearRule",
        "iclda._estimators.auto.AutoLDA",
        "iclda.tabular.encoders.CategoryEncoder",
        "iclda.tabular.encoders.DateEncoder",
        "iclda.tabular.encoders.NumberEncoder",
    }
    | {f"iclda._estimators.{method.path}" for method in (*FITTED, *FURTHER)}
)
_SCALERS = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
_SKLEARN_TYPES = frozenset(
    {
        "sklearn.compose._column_transformer.ColumnTransformer",
        "sklearn.decomposition._pca.PCA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.feature_selection._variance_threshold.VarianceThreshold",
        "sklearn.preprocessing._polynomial.PolynomialFeatures",
    }
    | {f"sklearn.impute._base.{name}" for name in ("MissingIndicator", "SimpleImputer")}
    | {f"sklearn.pipeline.{name}" for name in ("FeatureUnion", "Pipeline")}
    | {f"sklearn.preprocessing._data.{name}" for name in _SCALERS}
    | {f"sklearn.preprocessing._data.{name}Transformer" for name in ("Power", "Quantile")}
    | {f"sklearn.preprocessing._encoders.{name}Encoder" for name in ("OneHot", "Ordinal")}
    | {f"sklearn.utils._metadata_requests.{name}Request" for name in ("Metadata", "MethodMetadata")}
)
_PLAIN_TYPES = frozenset(
    {"numpy.ndarray", "numpy.dtype", "numpy.random.mtrand.RandomState"}
    | {f"builtins.{name}" for name in ("dict", "list", "tuple", "set", "slice")}
    | {f"builtins.{name}" for name in ("str", "int", "float", "bool", "NoneType")}
    | {f"numpy.{name}" for name in ("bool", "bool_", "str_", "float16", "float32", "float64")}
    | {f"numpy.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
# The nodes by which skops builds an object; those that call functions or methods are left out.
_NODES = frozenset(
    {"DTypeNode", "DictNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode"}
    | {"RandomStateNode", "SetNode", "SliceNode", "TupleNode", "TypeNode"}
)
# What the readers of archives and JSON raise for a malformed file.
_MALFORMED = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, KeyError, OverflowError, RuntimeError, ValueError),
)


class InconsistentModelWarning(UserWarning):
    """A model was fitted with another version of scikit-learn."""


def save_model(
    model: Any,
    path: str | Path,
    *,
    about: Mapping[str, Any] | None = None,
    trusted: Iterable[str] = (),
) -> None:
    """Write a fitted classifier, or a pipeline that ends in one, to a file.

    The file is written completely or not at all. Labels imputed to the training rows
    (``responsibilities_``) are not stored.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted. It may hold the classifiers and encoders of iclda, and the scalers, imputers and
        encoders of scikit-learn.
    path : str or Path
        File to write, by custom named ``*.skops``; it is a valid file of skops.
    about : mapping, default=None
        Anything to store beside the model that JSON can hold; ``iclda show`` prints it.
    trusted : iterable of str, default=()
        Further types the model may hold, by their full names; to be given to ``load_model`` too.
    """
    path = Path(path)
    check_can_save(path)
    check_is_fitted(model)
    archive, named = _rewrite(path, _skops().dumps(_without_rows(model)))
    _refuse_untrusted(path, named, trusted, is_saved=True)
    data = seal(archive, _describe(model, about or {}))
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(data)


def load_model(path: str | Path, *, trusted: Iterable[str] = ()) -> Any:
    """Read a fitted classifier or pipeline from a file.

    A file that is damaged, cut off, written by a newer version, or that holds anything but the
    types this package allows is refused, and nothing in it is run.

    Parameters
    ----------
    path : str or Path
        File written by ``save_model`` or ``iclda fit``.
    trusted : iterable of str, default=()
        Further types the file may hold, by their full names. Give only those you know.

    Returns
    -------
    model : classifier or Pipeline
        Fitted.
    """
    path = Path(path)
    data, details = _read(path)
    archive, named = _rewrite(path, data)
    _refuse_untrusted(path, named, trusted)
    names = [*OWN_TYPES, *_SKLEARN_TYPES, "numpy.dtype", *trusted]
    try:
        with warnings.catch_warnings():
            # scikit-learn warns for each step; the one warning below says it for all.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = _skops().loads(archive, trusted=names)
    except Exception as error:  # skops raises errors of many types for a malformed file
        raise ValueError(
            f"{path} cannot be loaded as a model: {type(error).__name__}: {error}"
        ) from error
    written, current = (str(each.get("scikit-learn")) for each in (details["versions"], versions()))
    if written.split(".")[:2] != current.split(".")[:2]:
        warnings.warn(
            f"{path} was fitted with scikit-learn {written}, and this is scikit-learn {current}: "
            "compare some predictions with earlier ones, or fit it again.",
            InconsistentModelWarning,
            stacklevel=2,
        )
    return model


def model_details(path: str | Path) -> dict[str, Any]:
    """Read what a file says about its model, without loading it.

    Parameters
    ----------
    path : str or Path
        File written by ``save_model`` or ``iclda fit``.

    Returns
    -------
    details : dict
        Format, versions, parameters, classes, columns, diagnosis, and the checksum of the file.
    """
    return _read(Path(path))[1]


def check_can_save(path: Path) -> None:
    """Check before a fit that skops is installed and the file can be written."""
    _skops()
    check_writable(path)


def column_kinds(model: Any) -> dict[str, str] | None:
    """Return the kind of every column of a model; None if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    first = model[0] if isinstance(model, Pipeline) else model
    kinds: dict[str, str] = {}
    for _, encoder, _ in getattr(first, "transformers_", ()):
        kinds |= getattr(encoder, "column_kinds_", {})
    return {str(name): kinds.get(name, "number") for name in names}


def seal(archive: bytes, details: Mapping[str, Any] | None = None) -> bytes:
    """Add details, and the checksum of all bytes before it as the comment at the end."""
    buffer = io.BytesIO(archive)
    with zipfile.ZipFile(buffer, "a") as file:
        if details is not None:
            file.writestr(_DETAILS, json.dumps(details, indent=2))
        file.comment = _SEAL + b"0" * _DIGITS
    data = buffer.getvalue()
    return data[:-_DIGITS] + hashlib.sha256(data[: -len(file.comment)]).hexdigest().encode()


def _skops() -> Any:
    return require("skops.io", "model files", "data")


def _without_rows(model: Any) -> Any:
    """Copy a model without anything about single training rows."""
    if isinstance(model, Pipeline):
        slim = copy.copy(model)
        slim.steps = [(name, _without_rows(step)) for name, step in model.steps]
        return slim
    if getattr(model, "_responsibilities_", None) is not None:
        model = copy.copy(model)
        model._responsibilities_ = None
    if hasattr(model, "estimator_"):  # what AutoLDA chose
        model = copy.copy(model)
        model.estimator_ = _without_rows(model.estimator_)
    return model


def _rewrite(path: Path, archive: bytes) -> tuple[bytes, set[tuple[str, str]]]:
    """Copy an archive, types under their current names, and list all types that it names.

    Each type comes with the node by which skops would build it.
    """
    named = set()

    def note(state: dict[str, Any]) -> dict[str, Any]:
        module = str(state.get("__module__"))
        if module in _MOVED:
            module = state["__module__"] = _MOVED[module]
        if "__class__" in state or "__loader__" in state:
            named.add((f"{module}.{state.get('__class__')}", str(state.get("__loader__"))))
        return state

    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(buffer, "w") as file:
            schema = json.loads(source.read(_SCHEMA), object_hook=note)
            compact = json.dumps(schema, separators=(",", ":"))  # skops writes many blanks
            for name in source.namelist():
                file.writestr(name, compact if name == _SCHEMA else source.read(name))
    except _MALFORMED as error:
        raise ValueError(f"{path} is no model file of iclda ({error}).") from error
    return buffer.getvalue(), named


def _read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Read the archive and the details, with the checksum, of an intact file."""
    check_readable(path)
    data = path.read_bytes()
    sealed = data[-len(_SEAL) - _DIGITS :]
    if not data.startswith(b"PK"):
        raise ValueError(f"{path} is no model file: `iclda fit` and iclda.save_model write them.")
    if not sealed.startswith(_SEAL):
        raise ValueError(
            f"{path} is cut off, or was not written by iclda: it does not end with the checksum "
            "that all model files end with. Copy or fit it again."
        )
    if hashlib.sha256(data[: -len(sealed)]).hexdigest().encode() != sealed[-_DIGITS:]:
        raise ValueError(
            f"{path} is damaged: its bytes do not have the checksum at its end. Copy or fit it "
            "again."
        )
    details = _read_details(path, data)
    _check_details(path, details)
    return data, {**details, "sha256": hashlib.sha256(data).hexdigest()}


def _read_details(path: Path, data: bytes) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            # Stored members are as large as the file: nothing small unpacks to something huge.
            if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
                raise ValueError("compressed")
            if sum(member.file_size for member in file.infolist()) > len(data):
                raise ValueError("its members overlap, or are larger than the file")
            details = json.loads(file.read(_DETAILS))
            if not isinstance(details, dict):
                raise ValueError("its details are no object")
    except _MALFORMED as error:
        raise ValueError(f"{path} is no model file of iclda ({error}).") from error
    return details


def _describe(model: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Collect details of a fitted model that can be written as JSON."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    diagnosis = {name.rstrip("_"): getattr(classifier, name, None) for name in _DIAGNOSIS}
    return {
        "format": FORMAT,
        "iclda": versions()["iclda"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "classifier": type(classifier).__name__,
        "parameters": _to_json(classifier.get_params()),
        "classes": _to_json(classifier.classes_),
        "priors": _to_json(getattr(classifier, "priors_", None)),
        "columns": column_kinds(model),
        "n_features": int(classifier.n_features_in_),
        "diagnosis": _to_json({k: value for k, value in diagnosis.items() if value is not None}),
        "versions": {**versions(), "skops": version("skops")},
        "about": dict(about),
    }


def _check_details(path: Path, details: Mapping[str, Any]) -> None:
    """Refuse the file of a newer version, and details unlike those of ``_describe``."""
    written, writer, current = details.get("format"), str(details.get("iclda")), versions()["iclda"]
    if not isinstance(written, int) or written < 1:
        raise ValueError(f"{path} is no model file of iclda (format {written!r}).")
    releases = [
        [int(part) for part in version.split(".")[:2] if part.isdigit()]
        for version in (writer, current)
    ]
    if written > FORMAT or releases[0] > releases[1]:
        raise ValueError(
            f"{path} was written by iclda {writer} in format {written}; this is iclda {current}, "
            f"which reads format {FORMAT} of its own and earlier versions. Update iclda."
        )
    for name, expected in _DETAILS_TYPES.items():
        if name not in details or not isinstance(details[name], expected):
            raise ValueError(
                f"{path} is no model file of iclda: its details give {name} as "
                f"{repr(details.get(name))[:60]}. Fit it again."
            )


def _to_json(value: Any) -> Any:
    """Return a value that JSON can hold; text as Python writes it for any other value."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _to_json(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(entry) for entry in value]
    value = plain(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _refuse_untrusted(
    path: Path, named: set[tuple[str, str]], trusted: Iterable[str], *, is_saved: bool = False
) -> None:
    """Raise a ValueError that lists the types and nodes of an archive that are not allowed."""
    extra = frozenset(trusted)
    types = sorted({name for name, _ in named} - OWN_TYPES - _SKLEARN_TYPES - _PLAIN_TYPES - extra)
    # A function can be trusted by its name; a call of one cannot.
    nodes = sorted({node for _, node in named} - _NODES - ({"FunctionNode"} if extra else set()))
    if not types and not nodes:
        return
    names = ", ".join(types or nodes)
    if is_saved:
        way_out = f"If they are yours, pass trusted={types} here and to load_model."
        raise ValueError(
            f"The model holds types that load_model does not trust: {names}. {path} was not "
            f"written. {way_out if types else 'Leave them out of it.'}"
        )
    way_out = f" If you know who made the file and what these are, pass trusted={types}."
    raise ValueError(
        f"{path} holds types that iclda does not trust: {names}. Nothing was loaded."
        f"{way_out if types else ''}"
    )
