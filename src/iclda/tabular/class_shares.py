"""Shares of the classes among the rows of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core import AnyArray
from .._estimators.other_rows import ClassShareEstimate, estimate_class_shares
from .._messages import percent_text, plural, quoted_list
from .class_names import labels_of
from .files import open_data
from .labels import find_labels
from .predict import (
    Kinds,
    PredictionCounts,
    ShareDone,
    check_columns,
    predicted_blocks,
)
from .read_options import ReadOptions


def shares_of_file(
    model: Any,
    kinds: Kinds,
    about: Mapping[str, Any],
    data: Path,
    options: ReadOptions,
    advance: ShareDone,
) -> ClassShareEstimate:
    """Estimate the class shares of the rows of a file.

    With ``options.labels`` the count is corrected by the labels drawn at random there.
    """
    file = open_data(data, options.ids)
    check_columns(file, kinds)
    classifier = model[-1] if isinstance(model, Pipeline) else model
    codes = None
    if options.labels is not None:
        codes = _random_codes(file, about, options, classifier.classes_)
    counts = PredictionCounts()
    probabilities = []
    for block in predicted_blocks(model, kinds, file, (), counts):
        probabilities.append(block.probabilities)
        advance(block.share_done, counts.n_rows)
    return estimate_class_shares(classifier, np.concatenate(probabilities), codes)


def _random_codes(
    file: Any, about: Mapping[str, Any], options: ReadOptions, classes: AnyArray
) -> AnyArray:
    """Return the codes of the classes of rows drawn at random, -1 of other rows.

    Rows of none of the classes have the number of classes as their code.
    """
    found = find_labels(file, options, about.get("target")).read()
    path = options.labels or file.path
    names = labels_of(found.cells, path, found.target, None, 0)
    if found.is_random is not None:
        names[~found.is_random] = None
    code_of = {str(name): code for code, name in enumerate(classes)}
    unknown = sorted({name for name in names if name is not None} - {*code_of})
    if unknown:
        raise ValueError(
            f"{path}: column {found.target!r} holds "
            f"{quoted_list(unknown, 3)}, and the classes of the model are "
            f"{quoted_list([*code_of], 5)}: correct these labels, or fit a model that "
            "has the class."
        )
    codes = np.array([code_of.get(name, -1) for name in names])
    if found.is_none is not None:
        codes[found.is_none & found.is_random] = len(classes)
    return codes


def share_lines(estimate: ClassShareEstimate) -> list[str]:
    """Describe an estimate, the largest classes first."""
    names = [str(name) for name in estimate.classes]
    width = max(len(name) for name in ["class", *names])
    lines = [f"  {'class'.ljust(width)}    share  90 % interval"]
    for k in np.argsort(-estimate.shares, kind="stable"):
        low = percent_text(estimate.low[k])
        high = percent_text(estimate.high[k])
        share = percent_text(estimate.shares[k])
        lines.append(f"  {names[k].ljust(width)}  {share:>7}  {low} to {high}")
    rows = plural(estimate.n_rows, "row")
    if estimate.n_random:
        rows += f", {estimate.n_random:,} of them labeled at random"
    return [*lines, "", f"{rows}. {estimate.how}"]
