"""Fit a table: from rows and labels to a pipeline, with what a person should know about it."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._estimators.labels import resolve_priors
from .._messages import Hint, NoUnlabeledRowsWarning, Text, message_of
from ..methods import Method
from .preparation import pipeline, preprocessing
from .table import Table

_SUPERVISED = Text(
    "No row is unlabeled, so that this is a supervised fit. Rows with an empty target are "
    "unlabeled; ",
    Hint("unlabeled"),
    " and ",
    Hint("unlabeled_file"),
    " name others.",
)


@dataclass(frozen=True)
class TableFit:
    """A fitted pipeline, and what is to be kept and said about it."""

    model: Any
    about: dict[str, Any]


def fit_table(
    table: Table,
    method: Method,
    *,
    missing: str = "impute",
    shrinkage: float | str | None = None,
    priors: Mapping[str, float] | None = None,
    seed: int = 0,
    command: str = "",
) -> TableFit:
    """Fit a method to all rows of a table."""
    _check_priors(priors, table)
    start = time.perf_counter()
    classifier = method.classifier(shrinkage=shrinkage, priors=priors, seed=seed)
    model = pipeline(preprocessing(table.features, missing=missing), classifier)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.features, table.labels)
    found = model.predict(table.features[table.is_labeled])
    about = {
        "method": method.name,
        "command": command,
        "target": table.target,
        "sources": [asdict(source) for source in table.sources],
        "digest": table.digest,
        "missing": missing,
        "labeled": dict(Counter(sorted(table.labels[table.is_labeled]))),
        "n_unlabeled": int((~table.is_labeled).sum()),
        "n_agreeing": int((found == table.labels[table.is_labeled]).sum()),
        "seconds": round(time.perf_counter() - start, 3),
        "empty_cells": {name: int(n) for name, n in table.features.isna().sum().items() if n},
        "notes": list(table.notes),
        "warnings": [*_single_labels(table), *_messages(caught)],
    }
    return TableFit(model, about)


def _check_priors(priors: Mapping[str, float] | None, table: Table) -> None:
    """Before anything is computed; classes of a table are text, and None marks no class."""
    resolve_priors(priors, np.array(table.classes, dtype=object), None)


def _single_labels(table: Table) -> list[str]:
    """A warning of classes with one label among others with more; of all, the classifiers warn."""
    counts = Counter(table.labels[table.is_labeled])
    single = sorted(name for name, count in counts.items() if count == 1)
    if not single or len(single) == len(counts):
        return []
    listed = ", ".join(map(repr, single))
    return [
        f"{f'Class {listed} has' if len(single) == 1 else f'The classes {listed} have'} one "
        "labeled row only, which may not be typical: label more rows if you can."
    ]


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Messages of warnings, each once."""
    raised = [warning.message for warning in caught if isinstance(warning.message, Warning)]
    return list(
        dict.fromkeys(
            _SUPERVISED if isinstance(each, NoUnlabeledRowsWarning) else message_of(each)
            for each in raised
        )
    )
