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
import pkgutil
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from importlib import import_module
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
_DIGITS = 64
_DIAGNOSIS = (
    *("converged_", "n_iter_", "gap_", "n_optima_", "n_passes_"),
    *("objective_", "rank_", "shrinkage_"),
)
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
_SKLEARN_TYPES = frozenset(
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
# The nodes by which skops builds an object; those that call functions or methods are left out.
_NODES = frozenset(
    f"{name}Node"
    for name in (
        *("DType", "Dict", "Json", "List", "NdArray", "Object"),
        *("RandomState", "Set", "Slice", "Tuple", "Type"),
    )
)


# What the readers of archives and JSON raise.
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
    name = "scikit-learn"
    written, current = str(details["versions"].get(name)), versions()[name]
    if written.split(".")[:2] != current.split(".")[:2]:
        warnings.warn(
            f"{path} was fitted with {name} {written}, and this is {name} {current}: compare some "
            "predictions with earlier ones, or fit it again.",
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
    """Check what can be wrong before there is a model: no skops, no folder, no right to write."""
    _skops()
    check_writable(path)


def column_kinds(model: Any) -> dict[str, str] | None:
    """Kind of every column a model reads, in order; None if it was fitted without names."""
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
    with nullcontext() if "skops.io" in sys.modules else _own_modules_only():
        return require("skops.io", "model files", "data")


@contextmanager
def _own_modules_only() -> Iterator[None]:
    """Lists of scikit-learn's estimators, made without looking into what comes with it.

    skops makes such a list when it is imported. Packages under ``externals``, in which there are
    no estimators, would import torch and Dask: seconds of processor time.
    """
    homes: list[Any] = [pkgutil, import_module("sklearn.utils.discovery")]
    known = {each: each.walk_packages for each in homes if hasattr(each, "walk_packages")}
    walk = pkgutil.walk_packages

    def walk_own(path: Any = None, prefix: str = "", onerror: Any = None) -> Iterator[Any]:
        if not prefix.startswith("sklearn."):
            yield from walk(path, prefix, onerror)
            return
        for found in pkgutil.iter_modules(path, prefix):
            if found.name.rpartition(".")[2] in ("externals", "tests"):
                continue
            yield found
            if found.ispkg:
                yield from walk_own(import_module(found.name).__path__, f"{found.name}.")

    for each in known:
        each.walk_packages = walk_own
    try:
        yield
    finally:
        for each, function in known.items():
            each.walk_packages = function


def _without_rows(model: Any) -> Any:
    """A copy without anything about single training rows; the model itself is not changed."""
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
    """Archive and details of an intact file, the checksum of the whole file among the latter."""
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
    expected, found = sealed[-_DIGITS:], hashlib.sha256(data[: -len(sealed)]).hexdigest()
    if found.encode() != expected:
        raise ValueError(
            f"{path} is damaged: the checksum of its bytes up to the seal is {found[:12]}..., and "
            f"the seal says {expected[:12].decode(errors='replace')}... Copy or fit it again."
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
    except _MALFORMED as error:
        raise ValueError(f"{path} is no model file of iclda ({error}).") from error
    if not isinstance(details, dict):
        raise ValueError(f"{path} is no model file of iclda (its details are no object).")
    return details


def _describe(model: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Details of a fitted model that can be written as JSON."""
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
    """Refuse a newer version's file, and details unlike ``_describe``'s with a right checksum."""
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
    for name, (expected, is_fine) in _DETAILS_RULES.items():
        value = details.get(name)
        if name not in details or not isinstance(value, expected) or not is_fine(value, details):
            raise ValueError(
                f"{path} is no model file of iclda: its details give {name} as "
                f"{repr(value)[:60]}. Fit it again."
            )


def _are_all(values: Iterable[Any], expected: Any) -> bool:
    return all(isinstance(value, expected) for value in values)


def _is_diagnosis(found: Mapping[str, Any], details: Mapping[str, Any]) -> bool:
    shown = [found.get(key, 0) for key in ("converged", "n_iter", "gap", "n_optima")]
    has_steps = "n_iter" in found or "converged" not in found
    return has_steps and _are_all(shown, _NUMBER)


_NUMBER = (int, float)
# Type of every entry that ``_describe`` makes, and what else must hold of it, given all entries.
_DETAILS_RULES: dict[str, tuple[Any, Callable[[Any, Mapping[str, Any]], bool]]] = {
    **dict.fromkeys(("iclda", "created"), (str, lambda value, _: True)),
    **dict.fromkeys(("parameters", "about"), (dict, lambda value, _: True)),
    "versions": (dict, lambda value, _: _are_all(value.values(), str)),
    "n_features": (int, lambda value, _: True),
    "classifier": (str, lambda name, _: bool(name)),
    "classes": (list, lambda classes, _: len(classes) > 1),
    "priors": (
        (list, NoneType),
        lambda shares, details: (
            not shares or (len(shares) == len(details["classes"]) and _are_all(shares, _NUMBER))
        ),
    ),
    "columns": ((dict, NoneType), lambda kinds, _: _are_all((kinds or {}).values(), str)),
    "diagnosis": (dict, _is_diagnosis),
}


def _to_json(value: Any) -> Any:
    """A value as JSON can hold it, or else as Python writes it."""
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
    if types and is_saved:
        raise ValueError(
            f"The model holds types that load_model does not trust: {', '.join(types)}. "
            f"{path} was not written. If they are yours, pass trusted={types} here and to "
            "load_model."
        )
    if types:
        raise ValueError(
            f"{path} holds types that iclda does not trust: {', '.join(types)}. Nothing was "
            f"loaded. If you know who made the file and what these are, pass trusted={types}."
        )
    # A function can be trusted by its name; a call of one cannot.
    nodes = sorted({node for _, node in named} - _NODES - ({"FunctionNode"} if extra else set()))
    if nodes and is_saved:
        raise ValueError(
            "The model holds objects that load_model would not build, by "
            f"{', '.join(nodes)}: leave them out of it. {path} was not written."
        )
    if nodes:
        raise ValueError(
            f"{path} has objects to be built in ways that iclda does not trust: "
            f"{', '.join(nodes)}. Nothing was loaded."
        )
