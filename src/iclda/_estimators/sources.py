"""Rows that the user passes, wherever they live: checked, and ready to be summed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from .._core.rows import Rows
from .._core.types import AnyArray, Array
from .._rows.backends import Backend, backend_of
from .._rows.base import Request, WeightedRows, concatenate
from .._rows.memory import MemoryRows
from .._rows.passes import PartOfPass, report_as
from .inputs import check_finite, check_rows
from .predictions import Numbers, composed


@dataclass(frozen=True)
class Source:
    """One argument of ``fit``: an array in memory, or what a backend reads."""

    X: Any
    name: str
    backend: Backend | None
    n_features: int
    feature_names: AnyArray | None
    n_threads: int
    opened: WeightedRows | None = None  # what a backend keeps of a first look lives as long as this

    @cached_property
    def n_rows(self) -> int:
        """Exact number of rows, which some backends have to read to count."""
        return len(self.X) if self.opened is None else self.opened.count()

    def rows(self, weights: Array | None = None, is_member: AnyArray | None = None) -> Rows:
        """All rows, or those that ``is_member`` marks."""
        if self.backend is None:
            return MemoryRows(self.X, weights, is_member, n_threads=self.n_threads)
        request = Request(self.name, self.n_features, self.feature_names, self.n_threads)
        return self.backend.open_rows(self.X, request, weights, is_member)

    def in_memory(self, is_member: AnyArray) -> tuple[AnyArray, AnyArray | None]:
        """An array with the marked rows, and the mask of them in it; None if there are no others.

        What is in memory already is not copied. Of another source only these rows are kept.
        """
        if self.backend is None:
            return self.X, is_member
        n_members = int(is_member.sum())
        return self.rows(is_member=is_member).sample(n_members, 0)[0], None

    def check_finite(self) -> None:
        """ValueError that names row and column; sources to be read find them when they are."""
        if self.opened is None:
            check_finite(self.X, self.name, self.feature_names)
        else:
            self.opened.check_finite()


def open_source(
    estimator: Any, X: Any, *, reset: bool, name: str = "X", is_summed_later: bool = False
) -> Source:
    """X checked as far as is possible without reading it; ``reset``: it decides on the features."""
    backend = backend_of(X)
    n_threads = effective_n_jobs(getattr(estimator, "n_jobs", None))
    if backend is None:
        X = check_rows(estimator, X, reset=reset, name=name, is_summed_later=is_summed_later)
        n_features, opened = X.shape[1], None
    else:
        opened = backend.open_rows(X, Request(name) if reset else _request(estimator, name))
        n_features = opened.n_features
        X = X if opened.source is None else opened.source  # opened once, read many times
        _note_features(estimator, opened, reset=reset, name=name)
    names = getattr(estimator, "feature_names_in_", None)
    return Source(X, name, backend, n_features, names, n_threads, opened)


def apply_in_blocks(
    estimator: Any, X: Any, numbers: Numbers, function: Callable[[Any], Any] | None = None
) -> Any:
    """Numbers of rows, or a function of them, block by block so that no copy of X is made."""
    backend = backend_of(X)
    if backend is None:
        X = check_rows(estimator, X, reset=False, is_summed_later=numbers.use_all_features)
        found = _numbers_in_blocks(estimator, X, numbers)
        return concatenate(found if function is None else map(function, found), len(X))
    n_threads = effective_n_jobs(getattr(estimator, "n_jobs", None))
    of_block = numbers if function is None else composed(numbers, function)
    with report_as(PartOfPass(1)):
        return backend.apply_to_rows(X, of_block, _request(estimator, "X", n_threads))


def _numbers_in_blocks(estimator: Any, X: AnyArray, numbers: Numbers) -> Iterator[AnyArray]:
    """Those of every block; where they are not finite, X is searched for NaN and infinity."""
    is_checked = not numbers.use_all_features
    for rows, _, _ in MemoryRows(X).blocks():
        with nullcontext() if is_checked else np.errstate(invalid="ignore", over="ignore"):
            found = numbers(rows)
            is_finite = is_checked or bool(np.isfinite(found.sum()))
        if not is_finite:
            check_finite(X, "X", getattr(estimator, "feature_names_in_", None))
            is_checked = True
            found = numbers(rows)  # with warnings: rows are finite, and their numbers are not
        yield found


def _request(estimator: Any, name: str, n_threads: int = 1) -> Request:
    names = getattr(estimator, "feature_names_in_", None)
    return Request(name, estimator.n_features_in_, names, n_threads)


def _note_features(estimator: Any, opened: WeightedRows, *, reset: bool, name: str) -> None:
    """Set, or compare, number and names of the features, as scikit-learn does for arrays."""
    names = opened.feature_names
    if reset:
        estimator.n_features_in_ = opened.n_features
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif names is None and hasattr(estimator, "feature_names_in_"):
        warnings.warn(
            f"{name} does not have valid feature names, but {type(estimator).__name__} was fitted "
            "with feature names",
            UserWarning,
            stacklevel=2,
        )
