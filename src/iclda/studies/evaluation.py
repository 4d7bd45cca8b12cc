"""Evaluation of a model on rows of known class: numbers, lines for the terminal, a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core import AnyArray, Array
from .._messages import plural, printable, quoted_list
from .._statistics import CLEAR, NOTHING, ReliabilityCurve
from ..tabular.encoders import texts_of
from ..tabular.fit_predict import (
    PredictionCounts,
    ShareDone,
    check_columns,
    predicted_blocks,
)
from ..tabular.summaries import far_warning
from ..tabular.table import (
    ReadOptions,
    Table,
    may_mean_nothing,
    read_classes,
    short_number,
    why_withheld,
)
from ..tabular.table_files import open_data, open_table
from .measures import EDGES, Bins, Confusion, bins_of, brier_score, count_confusion
from .page import class_error_lines, confusion_lines, percent


@dataclass(frozen=True)
class Evaluation:
    """Errors and probabilities of a model on rows of known class."""

    model: str
    data: str
    target: str
    n_rows: int  # of the file
    confusion: Confusion
    brier: float
    bins: Bins
    unknown: Mapping[
        str, int
    ]  # rows of classes that the model does not know: always wrong
    is_training: bool  # whether the model learned from this file
    n_chosen: int = 0  # labels of rows that were chosen: they are left out
    warning: str = ""

    @property
    def learned(self) -> str:
        """Whether the model beats the most frequent class: clear, unclear or nothing."""
        confusion = self.confusion
        return confusion.base.judge(confusion.error, confusion.interval[1], self.brier)

    @property
    def curve(self) -> ReliabilityCurve:
        return ReliabilityCurve.from_sums(EDGES, self.bins)

    @property
    def confidence(self) -> float:
        """Mean probability of the predicted class."""
        return float(self.bins[:, 1].sum() / self.bins[:, 0].sum())

    def to_json(self) -> dict[str, Any]:
        curve, edges = self.curve, EDGES.round(6)
        names = ("from", "to", "rows", "predicted", "observed")
        columns = (edges[:-1], edges[1:], curve.counts, curve.predicted, curve.observed)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        bins = [dict(zip(names, row, strict=True)) for row in rows]
        return {
            "model": self.model,
            "data": self.data,
            "target": self.target,
            "n_rows_in_file": self.n_rows,
            **self.confusion.to_json(),
            "learned": self.learned,
            "brier": self.brier,
            "mean_confidence": self.confidence,
            "calibration_error": curve.calibration_error,
            "calibration": [each for each in bins if each["rows"]],
            "unknown_classes": dict(self.unknown),
            "n_chosen_labels_left_out": self.n_chosen,
            "is_training_data": self.is_training,
        }


def evaluate_file(
    model: Any,
    kinds: Mapping[str, str],
    about: Mapping[str, Any],
    model_path: Path,
    data: Path,
    options: ReadOptions,
    advance: ShareDone = lambda share, n_rows: None,
) -> Evaluation:
    """Predict the rows of a file and compare with their classes, block by block.

    Classes are in the target of the file, or in another file, ``options.labels``.
    """
    file, labels = open_data(data, options.ids), options.labels
    check_columns(file, kinds)
    usual = about.get("target")
    if options.target is None and (
        labels is None or usual in open_table(Path(labels)).columns
    ):
        options = replace(options, target=usual)
    known = read_classes(file, options)
    names = texts_of(known.cells.to_pylist(), empty=("",))
    table = Table(file, names, known.target, (), is_chosen=known.is_chosen)
    if table.n_chosen and (withheld := why_withheld(table)):
        raise ValueError(
            f"The error of {model_path} on {data} is not known: {withheld}."
        )
    names[~table.is_random] = None
    classes = [str(name) for name in model.classes_]
    counts, sums = PredictionCounts(), _Sums(classes, options.unlabeled)
    for rows, probabilities, share in predicted_blocks(model, kinds, file, [], counts):
        sums.add(names[counts.n_rows - rows.num_rows : counts.n_rows], probabilities)
        advance(share, counts.n_rows)
    if not sums.n_known:
        raise ValueError(
            f"{labels or data}: no row has a class of the model in column {known.target!r} "
            f"({quoted_list(classes, 5)}), so that there is nothing to compare with."
        )
    digests = {source.get("sha256") for source in about.get("sources", ())}
    return Evaluation(
        model=str(model_path),
        data=str(data),
        target=known.target,
        n_rows=counts.n_rows,
        confusion=sums.confusion,
        brier=sums.brier / sums.n_known,
        bins=sums.bins,
        unknown=dict(sums.unknown),
        is_training=file.sha256() in digests,
        n_chosen=table.n_chosen,
        warning=far_warning(counts),
    )


class _Sums:
    """Sums over blocks of rows; classes that the model does not know are one further class."""

    def __init__(self, classes: list[str], unlabeled: str | float | None) -> None:
        self.unlabeled = unlabeled
        self.codes = {name: code for code, name in enumerate(classes)}
        self.matrix = np.zeros((len(classes) + 1, len(classes) + 1))
        self.unknown: Counter[str] = Counter()
        self.brier, self.bins, self.n_known = 0.0, np.zeros((len(EDGES) - 1, 3)), 0

    def add(self, texts: AnyArray, probabilities: Array) -> None:
        labels = [self._label(text) for text in texts]
        other = len(self.codes)
        codes = np.array(
            [-1 if name is None else self.codes.get(name, other) for name in labels]
        )
        self.unknown.update(
            name for name in labels if name is not None and name not in self.codes
        )
        is_labeled, is_known = codes >= 0, (codes >= 0) & (codes < other)
        predicted = probabilities.argmax(axis=1)
        self.matrix += count_confusion(
            codes[is_labeled], predicted[is_labeled], other + 1
        )
        if is_known.any():
            known = probabilities[is_known], codes[is_known]
            self.brier += brier_score(*known) * len(known[1])
            self.bins += bins_of(*known)
            self.n_known += len(known[1])

    def _label(self, text: str | None) -> str | None:
        """The class that a cell names; None if the row is unlabeled."""
        if text is None or text == self.unlabeled:
            return None
        if text not in self.codes and short_number(text) in self.codes:
            return short_number(text)
        return None if text not in self.codes and may_mean_nothing(text) else text

    @property
    def confusion(self) -> Confusion:
        if self.unknown:
            return Confusion((*self.codes, "any other"), self.matrix)
        return Confusion(tuple(self.codes), self.matrix[:-1, :-1])


def evaluation_lines(result: Evaluation) -> list[str]:
    """Format the evaluation as sentences and tables."""
    confusion = result.confusion
    low, high = confusion.interval
    lines = [
        f"{result.model} on the {confusion.n_rows:,} of {result.n_rows:,} rows of {result.data} "
        f"whose class is in {result.target!r}.",
        "",
        f"Error: {percent(confusion.error)}, {confusion.n_wrong:,.0f} of {confusion.n_rows:,} rows "
        f"wrong; between {percent(low)} and {percent(high)} with 90 % confidence.",
        base_rate_sentence(result),
    ]
    if confusion.is_uneven:
        lines.append(
            f"Balanced error: {percent(confusion.balanced_error)}, the mean of the errors of the "
            "classes, which are of uneven size."
        )
    lines += [
        f"Brier score: {result.brier:.3f} "
        "(how far probabilities are from the truth; 0 is perfect).",
        f"Calibration: on average {percent(result.confidence)} sure, and right in "
        f"{percent(1 - confusion.error)}; calibration error {result.curve.calibration_error:.3f}.",
        "",
        *(f"  {line}" for line in class_error_lines(confusion)),
        "",
        *(f"  {line}" for line in confusion_lines(confusion)),
    ]
    notes = [f"Warning: {text}" for text in evaluation_notes(result)]
    return [printable(line) for line in [*lines, *([""] if notes else []), *notes]]


def base_rate_sentence(result: Evaluation) -> str:
    """Compare the model with the most frequent class for all rows."""
    base = result.confusion.base
    if base.error == 0:
        end = "; rows of one class cannot show what the model has learned."
    elif result.learned == CLEAR:
        end = "; the model is clearly better."
    elif result.learned == NOTHING:
        end = ": the model has learned nothing that helps here."
    elif result.confusion.error < base.error:
        end = "; the model is not clearly better."
    else:
        end = "; the model is no better, though its probabilities are."
    wrong = f"{percent(base.error)} wrong"
    return f"Base rate: to call every row {base.majority!r} would get {wrong}{end}"


def evaluation_notes(result: Evaluation) -> list[str]:
    """Warnings about the evaluated rows."""
    notes = []
    if result.is_training:
        notes.append(
            "The model learned from this very file: on rows whose class it was given it errs less "
            "than on new ones. Use rows that it has not seen, or `iclda compare`."
        )
    if result.n_chosen:
        notes.append(
            f"{plural(result.n_chosen, 'label')} of rows that were chosen for being informative "
            "are left out: they are no random sample."
        )
    if result.unknown:
        names = ", ".join(
            f"{name!r} ({plural(n, 'row')})" for name, n in result.unknown.items()
        )
        notes.append(f"Classes that the model does not know count as wrong: {names}.")
    return [*notes, result.warning] if result.warning else notes


def evaluation_page(result: Evaluation) -> str:
    """Return the evaluation as one self-contained page."""
    from ..plots._scores import ReliabilityDisplay
    from .page import draw_display, fill, to_inline_svg

    description = (
        f"Reliability: on average {result.confidence:.0%} sure and right in "
        f"{1 - result.confusion.error:.0%}, calibration error {result.curve.calibration_error:.3f}"
    )
    display = ReliabilityDisplay(curves={"model": result.curve})
    figure = draw_display(display, 4.6, 4.4, description)
    view = {
        "result": result,
        "base_rate": base_rate_sentence(result),
        "notes": evaluation_notes(result),
        "reliability": to_inline_svg(figure, "reliability"),
    }
    return fill("evaluation.html.j2", view, __package__, [])
