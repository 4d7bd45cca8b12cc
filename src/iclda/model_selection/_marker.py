"""The marker of unlabeled rows that a classifier, or one inside a pipeline or a search, uses."""

from __future__ import annotations

from enum import Enum
from typing import Any

from .._estimators.labels import is_missing, plain

# What scikit-learn's own semi-supervised classifiers take for unlabeled.
_COMMON_MARKER = -1


class Marker(Enum):
    """A stand-in for a marker, since None and any text can be markers themselves."""

    OF_ESTIMATOR = "of the estimator"

    def __repr__(self) -> str:
        return f"<{self.value}>"


def marker_of(estimator: Any, unlabeled: Any = Marker.OF_ESTIMATOR) -> Any:
    """The marker given, or else the parameter ``unlabeled`` found in the estimator."""
    if unlabeled is not Marker.OF_ESTIMATOR:
        return unlabeled
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    found = [
        value
        for name, value in parameters.items()
        if name == "unlabeled" or name.endswith("__unlabeled")
    ]
    if not found:
        return _COMMON_MARKER
    for other in found[1:]:
        if not _is_same(found[0], other):
            raise ValueError(
                f"{type(estimator).__name__} holds classifiers with different markers, "
                f"unlabeled={plain(found[0])!r} and unlabeled={plain(other)!r}: give them the same "
                "one, or pass unlabeled= to say which is meant."
            )
    return found[0]


def _is_same(marker: Any, other: Any) -> bool:
    if is_missing(marker) or is_missing(other):
        return is_missing(marker) and is_missing(other)
    return bool(marker == other)
