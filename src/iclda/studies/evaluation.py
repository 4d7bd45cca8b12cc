"""A model judged by rows whose classes are known: numbers, lines for the terminal, a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .._messages import Hint, Text, printable, quoted_list
from .._statistics import CLEAR, NOTHING, UNCLEAR, ReliabilityCurve
from ..tabular.encoders import texts_of
from ..tabular.fit_predict import (
    PredictionCounts,
    ShareDone,
    check_columns,
    predicted_blocks,
)
from ..tabular.summaries import far_warning
from ..tabular.table import closest_name, may_mean_nothing, short_number
from ..tabular.table_files import open_table
from .confusion import Confusion, class_error_lines, confusion_lines, count_confusion
from .measures import EDGES, Bins, bins_of, brier_score, calibration_error
from .page import percent


@dataclass(frozen=True)
class Evaluation:
    """How a model does on rows whose class is known."""

    model: str
    data: str
    target: str
    n_rows: int  # of the file
    confusion: Confusion
    brier: float
    bins: Bins
    unknown: Mapping[str, int]  # rows by a class that the model does not know: always wrong
    is_training: bool  # whether the model learned from this file
    warning: str = ""

    @property
    def learned(self) -> str:
        """Whether it beats the most frequent class: clear, unclear or nothing."""
        confusion = self.confusion
        return confusion.base.judge(confusion.error, confusion.interval[1], self.brier)

    @property
    def calibration(self) -> float:
        return calibration_error(self.bins)

    @property
    def confidence(self) -> float:
        """Mean probability of the predicted class."""
        return float(self.bins[:, 1].sum() / self.bins[:, 0].sum())

    def to_json(self) -> dict[str, Any]:
        curve = ReliabilityCurve.from_sums(EDGES, self.bins)
        bins = [
            {"from": low, "to": high, "rows": int(n), "predicted": p, "observed": o}
            for low, high, n, p, o in zip(
                EDGES[:-1].round(6).tolist(),
                EDGES[1:].round(6).tolist(),
                curve.counts.tolist(),
                curve.predicted.tolist(),
                curve.observed.tolist(),
                strict=True,
            )
            if n
        ]
        return {
            "model": self.model,
            "data": self.data,
            "target": self.target,
            "n_rows_in_file": self.n_rows,
            **self.confusion.to_json(),
            "learned": self.learned,
            "brier": self.brier,
            "mean_confidence": self.confidence,
            "calibration_error": self.calibration,
            "calibration": bins,
            "unknown_classes": dict(self.unknown),
            "is_training_data": self.is_training,
        }


def evaluate_file(
    model: Any,
    kinds: Mapping[str, str],
    about: Mapping[str, Any],
    model_path: Path,
    data: Path,
    *,
    target: str | None = None,
    unlabeled: str | None = None,
    advance: ShareDone = lambda share, n_rows: None,
) -> Evaluation:
    """Predict the rows of a file and compare with its target, block by block."""
    file = open_table(data)
    target = _find_target(file, about, target)
    check_columns(file, kinds)
    classes = [str(name) for name in model.classes_]
    counts, tally = PredictionCounts(), _Tally(classes, unlabeled)
    for rows, probabilities, share in predicted_blocks(model, kinds, file, [target], counts):
        tally.add(rows[target].to_pylist(), probabilities)
        advance(share, counts.n_rows)
    if not tally.n_known:
        raise ValueError(
            f"{data}: no row has a class of the model in column {target!r} "
            f"({quoted_list(classes, 5)}), so that there is nothing to compare with."
        )
    digests = {source.get("sha256") for source in about.get("sources", ())}
    return Evaluation(
        str(model_path),
        str(data),
        target,
        counts.n_rows,
        Confusion(tuple(tally.names), tally.confusion()),
        tally.brier / tally.n_known,
        tally.bins,
        dict(tally.unknown),
        file.sha256() in digests,
        far_warning(counts),
    )


def _find_target(file: Any, about: Mapping[str, Any], target: str | None) -> str:
    found = target if target is not None else about.get("target")
    if not isinstance(found, str):
        raise ValueError(
            Text("The model file does not say what its target is called: pass ", Hint("target"))
        )
    if found not in file.columns:
        close = closest_name(found, file.columns)
        meant = f" Did you mean {close!r}?" if close else ""
        raise ValueError(
            Text(
                f"{file.path} has no column {found!r}, which should hold the classes.{meant} Name "
                "it by ",
                Hint("target"),
                ".",
            )
        )
    return found


class _Tally:
    """Sums over blocks of rows."""

    def __init__(self, classes: list[str], unlabeled: str | None) -> None:
        self.classes, self.unlabeled = classes, unlabeled
        self.codes = {name: code for code, name in enumerate(classes)}
        self.matrix = np.zeros((len(classes), len(classes)))
        self.others = np.zeros(len(classes))  # classes given to rows of unknown classes
        self.unknown: Counter[str] = Counter()
        self.brier, self.bins, self.n_known = 0.0, np.zeros((len(EDGES) - 1, 3)), 0

    def add(self, cells: list[Any], probabilities: Array) -> None:
        labels = [self._label(text) for text in texts_of(cells, empty=("",))]
        codes = np.array([self.codes.get(label or "", -1) for label in labels])
        is_new = np.array([label is not None for label in labels]) & (codes < 0)
        self.unknown.update(str(label) for label, new in zip(labels, is_new, strict=True) if new)
        predicted = probabilities.argmax(axis=1)
        self.others += np.bincount(predicted[is_new], minlength=len(self.classes))
        is_known = codes >= 0
        if is_known.any():
            codes, found = codes[is_known], probabilities[is_known]
            n_classes = len(self.classes)
            self.matrix += count_confusion(codes, predicted[is_known], n_classes)
            self.brier += brier_score(found, codes) * len(codes)
            self.bins += bins_of(found, codes)
            self.n_known += len(codes)

    def _label(self, text: str | None) -> str | None:
        """The class of a cell; None if it is unknown."""
        if text is None or text == self.unlabeled:
            return None
        if text not in self.codes and short_number(text) in self.codes:
            return short_number(text)
        return None if text not in self.codes and may_mean_nothing(text) else text

    @property
    def names(self) -> list[str]:
        return [*self.classes, *(["any other"] if self.unknown else [])]

    def confusion(self) -> AnyArray:
        if not self.unknown:
            return self.matrix
        wide = np.column_stack([self.matrix, np.zeros(len(self.classes))])
        return np.vstack([wide, [*self.others, 0]])


def evaluation_lines(found: Evaluation) -> list[str]:
    """The evaluation in words and tables."""
    confusion = found.confusion
    low, high = confusion.interval
    lines = [
        f"{found.model} on the {confusion.n_rows:,} of {found.n_rows:,} rows of {found.data} whose "
        f"class is in {found.target!r}.",
        "",
        f"Error: {percent(confusion.error)}, {confusion.n_wrong:,.0f} of {confusion.n_rows:,} rows "
        f"wrong; between {percent(low)} and {percent(high)} with 90 % confidence.",
        base_rate_sentence(found),
    ]
    if confusion.is_uneven:
        lines.append(
            f"Balanced error: {percent(confusion.balanced_error)}, the mean of the errors of the "
            "classes, which are of uneven size."
        )
    lines += [
        f"Brier score: {found.brier:.3f} (how far probabilities are from the truth; 0 is perfect).",
        f"Calibration: on average {percent(found.confidence)} sure, and right in "
        f"{percent(1 - confusion.error)}; calibration error {found.calibration:.3f}.",
        "",
        *(f"  {line}" for line in class_error_lines(confusion)),
        "",
        *(f"  {line}" for line in confusion_lines(confusion)),
    ]
    notes = [f"Warning: {text}" for text in evaluation_notes(found)]
    return [printable(line) for line in [*lines, *([""] if notes else []), *notes]]


def base_rate_sentence(found: Evaluation) -> str:
    """What the most frequent class alone would give, and whether the model does better."""
    base = found.confusion.base
    ends = {
        CLEAR: "; the model is clearly better.",
        UNCLEAR: "; the model is not clearly better."
        if found.confusion.error < base.error
        else "; the model is no better, though its probabilities are.",
        NOTHING: ": the model has learned nothing that helps here.",
    }
    wrong = f"{percent(base.error)} wrong"
    return f"Base rate: to call every row {base.majority!r} would get {wrong}{ends[found.learned]}"


def evaluation_notes(found: Evaluation) -> list[str]:
    """What a reader should know before relying on the numbers."""
    notes = []
    if found.is_training:
        notes.append(
            "The model learned from this very file: the error on new rows will be higher. Use rows "
            "that it has not seen, or `iclda compare`."
        )
    if found.unknown:
        names = ", ".join(f"{name!r} {n:,}" for name, n in found.unknown.items())
        notes.append(f"Classes that the model does not know count as wrong: {names} rows.")
    return [*notes, *([found.warning] if found.warning else [])]


def evaluation_page(found: Evaluation) -> str:
    """The evaluation as one self-contained page."""
    from ..plots import ReliabilityDisplay
    from .drawing import draw_display, to_inline_svg
    from .page import fill

    curve = ReliabilityCurve.from_sums(EDGES, found.bins)
    figure = draw_display(ReliabilityDisplay(curves={"model": curve}), 4.6, 4.4)
    says = (
        f"Reliability: on average {found.confidence:.0%} sure and right in "
        f"{1 - found.confusion.error:.0%}, calibration error {found.calibration:.3f}"
    )
    view = {
        "found": found,
        "confusion": found.confusion,
        "interval": found.confusion.interval,
        "base_rate": base_rate_sentence(found),
        "notes": evaluation_notes(found),
        "reliability": to_inline_svg(figure, "reliability", says),
    }
    return fill("evaluation.html.j2", view, __package__, [])
