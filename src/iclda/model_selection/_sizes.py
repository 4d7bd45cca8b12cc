"""How many labeled and unlabeled rows the points of a learning curve train on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import AnyArray
from ._checks import check_count
from .parts import Part

_DEFAULT_POINTS = 6
_SMALLEST_DEFAULT = 10


@dataclass(frozen=True)
class Sizes:
    """The points of a curve: ``varied`` names which of the two numbers differs between them."""

    varied: str
    values: AnyArray
    points: list[tuple[int | None, int | None]]


def resolve_sizes(n_labeled: Any, n_unlabeled: Any, parts: list[Part], least: int) -> Sizes:
    """Numbers asked for, checked against what every split has; None stands for all.

    ``least`` is the number of labeled rows that the classes are sure of.
    """
    if _is_many(n_labeled) and _is_many(n_unlabeled):
        raise ValueError(
            f"n_labeled={n_labeled!r} and n_unlabeled={n_unlabeled!r} both hold several numbers: "
            "vary one, and give one number, or None for all rows, as the other."
        )
    if _is_many(n_labeled):
        values = _whole_numbers("n_labeled", n_labeled)
        _check_labeled(values, parts, least)
        if n_unlabeled is not None:
            n_unlabeled = check_count("n_unlabeled", n_unlabeled, 0)
            _check_unlabeled(np.array([n_unlabeled]), parts, int(values.max()))
        return Sizes("n_labeled", values, [(int(n), n_unlabeled) for n in values])
    if n_labeled is not None:
        n_labeled = check_count("n_labeled", n_labeled, 1)
        _check_labeled(np.array([n_labeled]), parts, least)
    if n_unlabeled is None:
        values = _default_sizes(_most_unlabeled(parts, n_labeled))
    else:
        values = _whole_numbers("n_unlabeled", n_unlabeled)
        _check_unlabeled(values, parts, n_labeled)
    return Sizes("n_unlabeled", values, [(n_labeled, int(n)) for n in values])


def _is_many(numbers: Any) -> bool:
    return numbers is not None and np.ndim(numbers) > 0


def _whole_numbers(name: str, numbers: Any) -> AnyArray:
    values = np.atleast_1d(np.asarray(numbers))
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iu" or values.min() < 0:
        raise ValueError(
            f"{name} must hold whole numbers of at least 0, for example [0, 10, 100], got "
            f"{numbers!r}."
        )
    return np.unique(values)


def _check_labeled(values: AnyArray, parts: list[Part], least: int) -> None:
    most = min(len(part.labeled) for part in parts)
    _check_range("n_labeled", values, least, most, "labeled")


def _check_unlabeled(values: AnyArray, parts: list[Part], n_labeled: int | None) -> None:
    _check_range("n_unlabeled", values, 0, _most_unlabeled(parts, n_labeled), "unlabeled")


def _most_unlabeled(parts: list[Part], n_labeled: int | None) -> int:
    return min(len(part.everyone) - len(part.labeled[:n_labeled]) for part in parts)


def _check_range(name: str, values: AnyArray, least: int, most: int, kind: str) -> None:
    if values.min() < least or values.max() > most:
        wrong = int(values.min() if values.min() < least else values.max())
        raise ValueError(
            f"{name}={wrong} must lie between {least} and {most}: every split has at least {most} "
            f"{kind} rows to train on"
            + (f", and {least} are the least that give every class its labels." if least else ".")
        )


def _default_sizes(most: int) -> AnyArray:
    if most == 0:
        raise ValueError(
            "There are no unlabeled rows to vary: y labels every row, and n_labeled=None uses all "
            "labels. Pass n_labeled=20, say, and the other rows count as unlabeled."
        )
    spread = np.geomspace(min(_SMALLEST_DEFAULT, most), most, _DEFAULT_POINTS)
    return np.unique(np.concatenate([[0], spread.round().astype(int)]))
