"""What a model file says about its model, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .. import _packages
from .._estimators.labels import plain

FORMAT = 1
_DIAGNOSIS = ("converged_", "n_iter_", "gap_", "n_optima_", "n_passes_", "objective_", "rank_")


def describe(model: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Details of a fitted model that can be written as JSON."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    return {
        "format": FORMAT,
        "iclda": _packages.versions()["iclda"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "classifier": type(classifier).__name__,
        "parameters": {name: _plain(value) for name, value in classifier.get_params().items()},
        "classes": [_plain(name) for name in classifier.classes_],
        "priors": _plain(getattr(classifier, "priors_", None)),
        "columns": column_kinds(model),
        "n_features": int(classifier.n_features_in_),
        "diagnosis": _diagnosis(classifier),
        "versions": {**_packages.versions(), "skops": version("skops")},
        "about": dict(about),
    }


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


def refuse_newer(path: Path, details: Mapping[str, Any]) -> None:
    """ValueError for a file that a newer version wrote, which this one may misread."""
    written, current = details.get("format"), _packages.versions()["iclda"]
    version = str(details.get("iclda"))
    if not isinstance(written, int) or written < 1:
        raise ValueError(f"{path} is no model file of iclda (format {written!r}).")
    if written > FORMAT or _release(version) > _release(current):
        raise ValueError(
            f"{path} was written by iclda {version} in format {written}; this is iclda {current}, "
            f"which reads format {FORMAT} of its own and earlier versions. Update iclda."
        )


def refuse_malformed(path: Path, details: Mapping[str, Any]) -> None:
    """ValueError for details that are not what ``describe`` makes, however well they are sealed."""
    for name, is_fine in _EXPECTED.items():
        value = details.get(name)
        is_as_long = name != "priors" or not value or len(value) == len(details["classes"])
        if not is_fine(value) or not is_as_long:
            raise ValueError(
                f"{path} is no model file of iclda: its details give {name} as "
                f"{repr(value)[:60]}. Fit it again."
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_kinds(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_text, value.values())))


def _are_priors(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_number, value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _is_diagnosis(value: Any) -> bool:
    told = ("converged", "n_iter", "gap", "n_optima")
    if not isinstance(value, dict) or not all(_is_number(value.get(name, 0)) for name in told):
        return False
    return ("n_iter" in value or "converged" not in value) and (
        "n_optima" in value or "gap" not in value
    )


_EXPECTED: dict[str, Callable[[Any], bool]] = {
    "iclda": _is_text,
    "created": _is_text,
    "classifier": lambda value: isinstance(value, str) and bool(value),
    "parameters": _is_object,
    "classes": lambda value: isinstance(value, list) and len(value) > 1,
    "priors": _are_priors,
    "columns": _are_kinds,
    "n_features": lambda value: isinstance(value, int),
    "diagnosis": _is_diagnosis,
    "versions": _is_object,
    "about": _is_object,
}


def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _diagnosis(classifier: Any) -> dict[str, Any]:
    found = {name.rstrip("_"): getattr(classifier, name, None) for name in _DIAGNOSIS}
    found["shrinkage"] = getattr(classifier, "shrinkage_", None)
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; what it cannot, as Python writes it."""
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    value = plain(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
