"""Save and load."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import _packages
from .._packages import require
from .._paths import atomic_write, check_readable, check_writable
from .container import Contents, pack, unpack
from .details import describe, refuse_malformed, refuse_newer
from .trust import OWN_TYPES, SKLEARN_TYPES, refuse_untrusted


def save_model(
    model: Any,
    path: str | Path,
    *,
    about: Mapping[str, Any] | None = None,
    trusted: Iterable[str] = (),
) -> None:
    """Write a fitted classifier, or a pipeline that ends in one, to a file.

    The file is there complete or not at all. Labels imputed to the training rows
    (``responsibilities_``) are not kept.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted. It may hold the classifiers and encoders of iclda, and the scalers, imputers and
        encoders of scikit-learn.
    path : str or Path
        File to write, by custom named ``*.skops``; it is a valid file of skops.
    about : mapping, default=None
        Anything to keep beside the model that JSON can hold; ``iclda show`` prints it.
    trusted : iterable of str, default=()
        Further types the model may hold, by their full names; to be given to ``load_model`` too.
    """
    path = Path(path)
    check_can_save(path)
    check_is_fitted(model)
    archive = _skops().dumps(_without_rows(model))
    refuse_untrusted(path, archive, trusted, is_saved=True)
    data = pack(archive, describe(model, about or {}))
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
    contents = _checked(path)
    refuse_untrusted(path, contents.archive, trusted)
    names = [*OWN_TYPES, *SKLEARN_TYPES, "numpy.dtype", *trusted]
    try:
        with warnings.catch_warnings():
            # scikit-learn warns once a step, of its own version only: one line below says it.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = _skops().loads(contents.archive, trusted=names)
    except Exception as error:  # whatever skops stumbles over, the file is at fault
        raise ValueError(
            f"{path} cannot be loaded as a model: {type(error).__name__}: {error}"
        ) from error
    _warn_of_other_versions(path, contents)
    return model


def model_details(path: str | Path) -> dict[str, Any]:
    """What a file says about its model, without loading it.

    Parameters
    ----------
    path : str or Path
        File written by ``save_model`` or ``iclda fit``.

    Returns
    -------
    details : dict
        Format, versions, parameters, classes, columns, diagnosis, and the checksum of the file.
    """
    contents = _checked(Path(path))
    return {**contents.details, "sha256": contents.sha256}


def check_can_save(path: Path) -> None:
    """What can be wrong before there is a model: no skops, no folder, no right to write to it."""
    _skops()
    check_writable(path)


def _skops() -> Any:
    return require("skops.io", "model files", "data")


def _checked(path: Path) -> Contents:
    check_readable(path)
    contents = unpack(path)
    refuse_newer(path, contents.details)
    refuse_malformed(path, contents.details)
    return contents


def _without_rows(model: Any) -> Any:
    """A copy that holds nothing of single training rows; the model itself stays as it is."""
    if isinstance(model, Pipeline):
        slim = copy.copy(model)
        slim.steps = [(name, _without_rows(step)) for name, step in model.steps]
        return slim
    if getattr(model, "_responsibilities_", None) is not None:
        model = copy.copy(model)
        model._responsibilities_ = None
    return model


def _warn_of_other_versions(path: Path, contents: Contents) -> None:
    name = "scikit-learn"
    written = str(dict(contents.details.get("versions") or {}).get(name))
    current = _packages.versions()[name]
    if written.split(".")[:2] != current.split(".")[:2]:
        warnings.warn(
            f"{path} was fitted with {name} {written}, and this is {name} {current}: compare some "
            "predictions with earlier ones, or fit it again.",
            InconsistentModelWarning,
            stacklevel=3,
        )


class InconsistentModelWarning(UserWarning):
    """A model was fitted with another version of scikit-learn."""
