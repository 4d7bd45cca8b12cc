"""Model files: fitted classifiers, and details that can be read without loading them.

A model file is a zip archive as skops writes it, with one more member, ``iclda.json``,
that holds the details. skops loads only types that it trusts itself (scikit-learn,
NumPy), those of this package, and those that the caller names.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._estimators.labels import plain
from ._estimators.mixture_model import MixtureModel
from ._system import atomic_write, check_writable, require, versions

__all__ = ["load_model", "model_details", "save_model"]


class _UntrustedTypesError(ValueError):
    """A file holds types that nobody has said to trust."""


# Raised when files of an earlier format could not be loaded: when a class of iclda in
# them moves to another module, or changes what it stores.
FORMAT = 2
_DETAILS_MEMBER = "iclda.json"
_SUFFIX = ".skops"

# Fitted attributes that the details repeat where a classifier has them.
_DIAGNOSIS_ATTRIBUTES = (
    "converged_",
    "n_iter_",
    "gap_",
    "member_weights_",
    "n_optima_",
    "n_passes_",
    "objective_",
    "rank_",
    "shrinkage_",
)

# The type of the trees of a forest: their nodes are checked once they are loaded.
_TREE = "sklearn.tree._tree.Tree"
# What a leaf has in place of a child.
_NO_CHILD = -1

# Modules whose types are trusted.
_OWN_MODULES = (
    "iclda._core.",
    "iclda._estimators.",
    "iclda._rows.views.",
    "iclda.tabular.encoders.",
    "iclda.tabular.table_classifier.",
)


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
    model : classifier, TableClassifier or Pipeline
        Fitted. It may hold the classifiers and encoders of iclda, and the scalers,
        imputers and encoders of scikit-learn.
    path : str or Path
        File to write, named ``*.skops``; it is a valid file of skops.
    about : mapping, default=None
        Any JSON values to store with the model; ``iclda show`` prints them.
    trusted : iterable of str, default=()
        Full names of further types that the model may hold; ``load_model`` needs them
        too.
    """
    path = Path(path)
    # Another suffix would promise a format that this file does not have.
    if path.suffix.lower() != _SUFFIX:
        raise ValueError(
            f"path must end in {_SUFFIX}, got {str(path)!r}: save_model writes the "
            "format of skops, which load_model and `iclda predict` read. Pass "
            f"{str(_with_suffix(path))!r}; for a pickle, call pickle.dump and "
            "pickle.load instead."
        )
    check_can_save(path)
    if isinstance(model, type) or not hasattr(model, "fit"):
        given = (
            f"the class {model.__name__}" if isinstance(model, type) else repr(model)
        )
        raise TypeError(
            "model must be a fitted classifier, or a pipeline that ends in one, got "
            f"{given}: pass the object on which fit was called."
        )
    check_is_fitted(model)
    archive = _skops().dumps(_without_rows(model))
    # A file that could not be loaded again is not written.
    _, foreign_types = _types_in(archive)
    untrusted = foreign_types - set(trusted)
    if untrusted:
        raise ValueError(
            f"The model holds types that load_model does not trust. {path} was not "
            f"written. If they are yours, pass trusted={sorted(untrusted)} here and to "
            "load_model."
        )
    # The details become one more member of the archive.
    buffer = io.BytesIO(archive)
    details = json.dumps(_describe(model, about or {}), indent=2)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(_DETAILS_MEMBER, details)
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(buffer.getvalue())


def _with_suffix(path: Path) -> Path:
    """Return a path like this one that a model may have."""
    if not path.name or path.name == "..":
        return path / f"model{_SUFFIX}"
    # What follows the last point of "model.1.2" is no suffix.
    if path.suffix[1:].isalpha():
        return path.with_suffix(_SUFFIX)
    return path.with_name(path.name + _SUFFIX)


def load_model(path: str | Path, *, trusted: Iterable[str] = ()) -> Any:
    """Read a fitted classifier or pipeline from a file.

    A file that is damaged, cut off, of another format, or that holds anything but the
    types this package allows is refused, and nothing in it is run.

    Parameters
    ----------
    path : str or Path
        File written by ``save_model`` or ``iclda fit``.
    trusted : iterable of str, default=()
        Full names of further types that the file may hold. Give only those you know.

    Returns
    -------
    model : classifier, TableClassifier or Pipeline
        Fitted.
    """
    path = Path(path)
    data, details = _read(path)
    try:
        own_types, foreign_types = _types_in(data)
        untrusted = foreign_types - set(trusted)
        if untrusted:
            raise _UntrustedTypesError(
                f"{path} cannot be loaded as a model: it holds types that iclda "
                f"{versions()['iclda']} does not trust. Nothing was loaded. If you "
                "know who made the file and what these types are, pass "
                f"trusted={sorted(untrusted)}."
            )
        model = _skops().loads(data, trusted=[*own_types, *trusted])
        _check_trees(model)
        return model
    # A package is missing, which is not the fault of the file; or the way out is said.
    except (ImportError, _UntrustedTypesError):
        raise
    # skops raises errors of many types for a malformed file.
    except Exception as error:
        reason = str(error)
        if type(error) is not ValueError:
            reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{path} cannot be loaded as a model: {reason.rstrip('.')}. It was written "
            f"by iclda {details.get('iclda')}, and this is iclda "
            f"{versions()['iclda']}: install the version that wrote it, or fit the "
            "model again."
        ) from error


def model_details(path: str | Path) -> dict[str, Any]:
    """Read what a file says about its model, without loading it.

    Parameters
    ----------
    path : str or Path
        File written by ``save_model`` or ``iclda fit``.

    Returns
    -------
    details : dict
        Format, versions, parameters, classes, columns, diagnosis, and the checksum of
        the file.
    """
    return _read(Path(path))[1]


def check_can_save(path: Path) -> None:
    """Check before a fit that skops is installed and the file can be written."""
    _skops()
    check_writable(path)


def is_model_file(path: Path) -> bool:
    """Return whether a file is one that ``save_model`` wrote, of any version."""
    try:
        with zipfile.ZipFile(path) as file:
            return _DETAILS_MEMBER in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def column_kinds(model: Any) -> dict[str, str] | None:
    """Return the kind of every column of a model; None if columns have no names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    # The encoders of a pipeline know the kinds of their columns; without encoders all
    # columns are numbers.
    model = pipeline_in(model)
    first_step = model[0] if isinstance(model, Pipeline) else model
    kinds: dict[str, str] = {}
    for _, encoder, _ in getattr(first_step, "transformers_", ()):
        kinds |= getattr(encoder, "column_kinds_", {})
    return {str(name): kinds.get(name, "number") for name in names}


def pipeline_in(model: Any) -> Any:
    """Return the pipeline of a TableClassifier, and any other model as it is."""
    return getattr(model, "pipeline_", model)


def _skops() -> Any:
    """Import skops, which takes a second or two where torch or Dask is installed.

    It lists the estimators of scikit-learn by importing all of its packages, and these
    import torch and Dask if they can.
    """
    return require("skops.io", "model files", "data")


def _without_rows(model: Any) -> Any:
    """Copy a model without anything about single training rows."""
    model = copy.copy(model)
    if isinstance(model, Pipeline):
        model.steps = [(name, _without_rows(step)) for name, step in model.steps]
    for name in ("_responsibilities_", "held_out_probabilities_"):
        if name in vars(model):
            setattr(model, name, None)
    if vars(model).get("_known_rows_") is not None:
        # What they show is kept.
        _ = model._novelty_model_
        model._known_rows_ = None
    # AutoLDA holds the classifier that it chose, a TableClassifier its pipeline, and a
    # mixture the classifiers of its members.
    for name in ("estimator_", "pipeline_"):
        if name in vars(model):
            setattr(model, name, _without_rows(vars(model)[name]))
    mixture = vars(model).get("_model_")
    if isinstance(mixture, MixtureModel):
        model._model_ = mixture.with_classifiers(_without_rows)
    return model


def _types_in(archive: bytes) -> tuple[set[str], set[str]]:
    """Return the types that skops does not trust: those of iclda, and foreign ones."""
    untrusted = set(_skops().get_untrusted_types(data=archive))
    own = {name for name in untrusted if name.startswith(_OWN_MODULES)}
    own |= untrusted & {_TREE}
    return own, untrusted - own


def _check_trees(model: Any) -> None:
    """Raise a ValueError if the nodes of a tree do not lead to later nodes.

    scikit-learn follows them without a look at the size of the tree.
    """
    for tree in _trees_in(model, set()):
        is_leaf = tree.children_left == _NO_CHILD
        parents = np.arange(tree.node_count)[~is_leaf]
        for children in (tree.children_left, tree.children_right):
            own = children[~is_leaf]
            is_later = (own > parents) & (own < tree.node_count)
            if not is_later.all() or (children[is_leaf] != _NO_CHILD).any():
                raise ValueError("the nodes of one of its trees do not form a tree")
        features = tree.feature[~is_leaf]
        if not ((features >= 0) & (features < tree.n_features)).all():
            raise ValueError("one of its trees splits a column that it does not have")


def _trees_in(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the trees of scikit-learn anywhere in a model."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if f"{type(value).__module__}.{type(value).__name__}" == _TREE:
        yield value
        return
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O":
        parts = value.ravel()
    elif hasattr(value, "__dict__"):
        parts = vars(value).values()
    for part in parts:
        yield from _trees_in(part, seen)


def _read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Read the bytes of a file and its details, with the checksum of the bytes."""
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            # Members are stored uncompressed. Larger ones would be a file that is small
            # on disk and fills the memory when it is read.
            unpacked_bytes = sum(member.file_size for member in file.infolist())
            if unpacked_bytes > len(data):
                raise ValueError("its members are larger than the file")
            damaged = file.testzip()
            if damaged:
                raise ValueError(f"{damaged} is damaged")
            details = dict(json.loads(file.read(_DETAILS_MEMBER)))
            file_format = int(details["format"])
    # zipfile and json raise errors of many types.
    except Exception as error:
        raise ValueError(
            f"{path} is not a model file, or damaged ({error}): `iclda fit` and "
            "iclda.save_model write such files. Copy or fit it again."
        ) from error
    if file_format != FORMAT:
        way_out = "update iclda" if file_format > FORMAT else "fit the model again"
        raise ValueError(
            f"{path} was made by iclda {details.get('iclda')} in format {file_format}, "
            f"and this is iclda {versions()['iclda']}, which reads format {FORMAT}: "
            f"{way_out}."
        )
    return data, {**details, "sha256": hashlib.sha256(data).hexdigest()}


def _describe(model: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Collect details of a fitted model that can be written as JSON."""
    model = pipeline_in(model)
    classifier = model[-1] if isinstance(model, Pipeline) else model
    diagnosis = {}
    for attribute in _DIAGNOSIS_ATTRIBUTES:
        value = getattr(classifier, attribute, None)
        if value is not None:
            diagnosis[attribute.rstrip("_")] = value
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
        "diagnosis": _to_json(diagnosis),
        "versions": {**versions(), "skops": version("skops")},
        "about": dict(about),
    }


def _to_json(value: Any) -> Any:
    """Return a value that JSON can hold; other values as Python writes them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _to_json(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(entry) for entry in value]
    value = plain(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)
