"""Evaluation of a model on rows of known class: numbers, terminal output, a page.

``evaluate_file`` predicts the rows of a file block by block and returns an
``Evaluation``. ``evaluation_lines`` formats it for a terminal, ``evaluation_page`` as
HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from .._core import AnyArray, Array
from .._error_estimate import CLEAR, NOTHING_LEARNED
from .._messages import Text, plural, printable, quoted_list, say
from .._statistics import ReliabilityCurve
from ..tabular.cells import texts_of
from ..tabular.class_names import may_mean_nothing, short_number
from ..tabular.files import open_data
from ..tabular.fit import FitReport
from ..tabular.label_error import why_withheld
from ..tabular.labels import LabelSource, find_labels, shown_ids
from ..tabular.predict import (
    PredictionCounts,
    ShareDone,
    check_columns,
    predicted_blocks,
)
from ..tabular.read_options import ReadOptions
from ..tabular.summaries import broken_warning
from ..tabular.suspects import (
    Suspect,
    find_suspects,
    how_rows_count,
    suspect_lines,
)
from ..tabular.table import Table
from ..tabular.training_rows import TrainingRows
from .measures import EDGES, Bins, Confusion, bins_of, brier_score, count_confusion
from .page import (
    class_error_lines,
    confusion_lines,
    draw_display,
    fill,
    percent,
    to_inline_svgs,
)

# The comment by which a page is recognized.
_PAGE_MARK = "<!-- Written by iclda evaluate. -->"
# Probabilities are held for the search of suspicious labels up to this many entries,
# rows times classes.
_MAX_HELD_PROBABILITIES = 10_000_000


@dataclass(frozen=True)
class Evaluation:
    """Errors and probabilities of a model on rows of known class.

    Attributes
    ----------
    n_rows : int
        Number of rows of the file, including those without a class.
    unknown : mapping of str to int
        Numbers of rows of the classes that the model does not know. Their predictions
        are always wrong.
    is_training : bool
        Whether rows that trained the model may be among those that are judged.
    n_training : int
        Number of rows that trained the model and are left out.
    auc : float or None
        Area under the ROC curve; None unless there are two classes with rows.
    suspects : sequence of Suspect
        Rows whose labels look wrong.
    first_row_number : int or None
        What messages call the first row; None if ids name the rows.
    n_chosen : int
        Number of labels that are left out because their rows were chosen for being
        informative.
    warning : str
        A warning of numbers far outside of their columns, or empty.
    """

    model: str
    data: str
    target: str
    n_rows: int
    confusion: Confusion
    brier: float
    bins: Bins
    unknown: Mapping[str, int]
    is_training: bool
    n_chosen: int = 0
    warning: str = ""
    n_training: int = 0
    auc: float | None = None
    suspects: Sequence[Suspect] = ()
    first_row_number: int | None = None

    @property
    def learned(self) -> str:
        """Whether the model beats the most frequent class: clear, unclear, nothing."""
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
        curve = self.curve
        return {
            "model": self.model,
            "data": self.data,
            "target": self.target,
            "n_rows_in_file": self.n_rows,
            **self.confusion.to_json(),
            "learned": self.learned,
            "roc_auc": self.auc,
            "brier": self.brier,
            "mean_confidence": self.confidence,
            "calibration_error": curve.calibration_error,
            "calibration": _bins_to_json(curve),
            "unknown_classes": dict(self.unknown),
            "n_chosen_labels_left_out": self.n_chosen,
            "n_training_rows_left_out": self.n_training,
            "is_training_data": self.is_training,
            "suspicious_labels": [asdict(each) for each in self.suspects],
        }


def _bins_to_json(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    """List the bins of probabilities that have rows."""
    edges = EDGES.round(6).tolist()
    return [
        {
            "from": edges[k],
            "to": edges[k + 1],
            "rows": n_rows,
            "predicted": float(curve.predicted[k]),
            "observed": float(curve.observed[k]),
        }
        for k, n_rows in enumerate(curve.counts.tolist())
        if n_rows
    ]


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

    Rows whose labels trained the model are left out, where they can be told from other
    rows. ValueError if no row is left.

    The classes are in the target column of the file, or in another file,
    ``options.labels``. ``kinds`` are the kinds of the columns that the model takes,
    ``about`` is what its file says about its fit.
    """
    file = open_data(data, options.ids)
    check_columns(file, kinds)
    # The target of the fit, unless another one is given.
    source = find_labels(file, options, about.get("target"))
    target = source.target
    # The classes of all rows; None if they are read together with the rows. Those in
    # another file are matched with the rows first, in one more pass over the file. A
    # column that is a feature, too, is read twice, since it has to be text here.
    known: AnyArray | None = None
    n_chosen = 0
    if source.file is not file or target in kinds:
        file.hold(file.columns[:1], texts=[target, *options.ids])
        known, n_chosen = _random_classes(source, model_path)

    classes = [str(name) for name in model.classes_]
    sums = _Sums(classes, options.unlabeled)
    training = TrainingRows.from_json(about.get("training_rows"))
    # Digests of the training rows that the file seems to have, and how many rows it
    # has for them.
    found: set[int] = set()
    n_training = 0
    # ``predicted_blocks`` counts the rows that it has predicted so far.
    counts = PredictionCounts()
    others = [target] if known is None else []
    for block in predicted_blocks(model, kinds, file, others, counts):
        first_row = counts.n_rows - block.rows.num_rows
        if known is None:
            names = texts_of(block.rows[target].to_pylist(), empty=("",))
        else:
            names = known[first_row : counts.n_rows]
        digests = training.find(block.encoded)
        found.update(digests[digests != 0].tolist())
        if training.are_distinct:
            is_training = digests != 0
            n_training += sum(name is not None for name in names[is_training])
            names = names.copy()
            names[is_training] = None
        sums.add(names, block.probabilities, first_row + file.first_row_number)
        advance(block.share_done, counts.n_rows)
    n_judged = int(sums.matrix.sum())
    if _has_labels_of_fit(source, n_judged, about):
        raise _only_training_rows(model_path, data, n_judged)
    if not sums.n_known and n_training:
        raise _only_training_rows(model_path, data, n_training)
    if not sums.n_known:
        found_names = quoted_list(list(sums.unknown), 5) if sums.unknown else "no class"
        text = say(
            "{path}: column {target!r} holds {found_names}, and the model knows "
            "{known_names}, so there is nothing to compare with: write its classes, or "
            "name the column that holds them with {@target}.",
            path=options.labels or data,
            target=target,
            found_names=found_names,
            known_names=quoted_list(classes, 5),
        )
        raise ValueError(text)
    suspects = sums.suspects
    # The ids are read if they are shown.
    ids = shown_ids(file, options.id) if suspects else None
    if ids is not None:
        suspects = [
            replace(each, row=str(ids[int(each.row) - file.first_row_number]))
            for each in suspects
        ]
    has_all_training_rows = 0 < len(training.digests) == len(found)
    return Evaluation(
        model=str(model_path),
        data=str(data),
        target=target,
        n_rows=counts.n_rows,
        confusion=sums.confusion,
        brier=sums.brier / sums.n_known,
        bins=sums.bins,
        unknown=dict(sums.unknown),
        is_training=has_all_training_rows and not training.are_distinct,
        n_chosen=n_chosen,
        warning=broken_warning(counts),
        n_training=n_training,
        auc=sums.auc,
        suspects=suspects,
        first_row_number=file.first_row_number if ids is None else None,
    )


def _has_labels_of_fit(
    source: LabelSource, n_labels: int, about: Mapping[str, Any]
) -> bool:
    """Return whether rows and labels are those of the fit, and as many as it had.

    Files are recognized by their content, whatever their names are.
    """
    report = FitReport.from_json(about)
    if report is None:
        return False
    digests = [each.sha256 for each in report.sources]
    n_labels_of_fit = sum(report.labeled.values())
    # The first source holds the rows, another one may hold labels or unlabeled rows.
    return (
        n_labels == n_labels_of_fit
        and [source.data.sha256()] == digests[:1]
        and source.file.sha256() in digests
    )


def _only_training_rows(model: Path, data: Path, n_rows: int) -> ValueError:
    """Return the error for a file whose labeled rows all trained the model."""
    return ValueError(
        f"{data}: all {n_rows:,} rows with a class trained {model}, so they cannot "
        "show its error on new rows. Name a file of other rows whose class is known; "
        f"`iclda show {model}` states the error to expect."
    )


def _random_classes(source: LabelSource, model_path: Path) -> tuple[AnyArray, int]:
    """Return the class of every row, and the number of labels that are left out.

    Rows that were chosen for being informative are harder than others: their errors do
    not show the error on new rows.
    """
    classes = source.read()
    names = texts_of(classes.cells.to_pylist(), empty=("",))
    table = Table(source.data, names, classes.target, (), is_chosen=classes.is_chosen)
    n_chosen = table.n_chosen
    if n_chosen and (reason := why_withheld(table)):
        about = f"The error of {model_path} on {source.data.path} is not known: "
        raise ValueError(Text(about, reason, "."))
    random_names = names.copy()
    random_names[~table.is_random] = None
    return random_names, n_chosen


class _Sums:
    """Sums over blocks of rows.

    All classes that the model does not know are counted as one further class, the last
    one of the matrix.
    """

    def __init__(self, classes: list[str], unlabeled: str | float | None) -> None:
        self.unlabeled = unlabeled
        self.codes = {name: code for code, name in enumerate(classes)}
        n_columns = len(classes) + 1
        self.matrix = np.zeros((n_columns, n_columns))
        self.unknown: Counter[str] = Counter()
        # Brier scores and bins leave out rows of unknown classes, for which the model
        # has no probability.
        self.brier = 0.0
        self.bins = np.zeros((len(EDGES) - 1, 3))
        self.n_known = 0
        # Of the rows of known classes in every block: codes, numbers, probabilities of
        # the last class, and probabilities of all classes as long as these are few.
        self.codes_of_rows: list[AnyArray] = []
        self.row_numbers: list[AnyArray] = []
        self.scores: list[Array] = []
        self.probabilities: list[Array] = []

    def add(self, texts: AnyArray, probabilities: Array, first_row_number: int) -> None:
        """Add a block of rows: the cells of their classes, and their probabilities."""
        unknown_code = len(self.codes)
        # -1 where a row is unlabeled.
        codes = np.full(len(texts), -1)
        for i, text in enumerate(texts):
            label = self._label(text)
            if label is None:
                continue
            codes[i] = self.codes.get(label, unknown_code)
            if label not in self.codes:
                self.unknown[label] += 1

        is_labeled = codes >= 0
        predicted = probabilities.argmax(axis=1)
        self.matrix += count_confusion(
            codes[is_labeled], predicted[is_labeled], unknown_code + 1
        )
        is_known = is_labeled & (codes < unknown_code)
        n_known = int(is_known.sum())
        if n_known:
            known_probabilities = probabilities[is_known]
            known_codes = codes[is_known]
            # Scores are means over a block: blocks are weighted by their rows.
            self.brier += brier_score(known_probabilities, known_codes) * n_known
            self.bins += bins_of(known_probabilities, known_codes)
            self.n_known += n_known
            self.codes_of_rows.append(known_codes)
            self.row_numbers.append(np.flatnonzero(is_known) + first_row_number)
            self.scores.append(known_probabilities[:, -1].copy())
            if self._holds_probabilities:
                self.probabilities.append(known_probabilities)

    @property
    def _holds_probabilities(self) -> bool:
        return self.n_known * len(self.codes) <= _MAX_HELD_PROBABILITIES

    @property
    def auc(self) -> float | None:
        """Area under the ROC curve; None unless there are two classes with rows."""
        codes = np.concatenate(self.codes_of_rows)
        if len(self.codes) != 2 or len(np.unique(codes)) != 2:
            return None
        return float(roc_auc_score(codes, np.concatenate(self.scores)))

    @property
    def suspects(self) -> list[Suspect]:
        """Rows whose labels look wrong; none if there are too many rows to hold."""
        if not self._holds_probabilities:
            return []
        return find_suspects(
            np.concatenate(self.probabilities),
            np.concatenate(self.codes_of_rows),
            list(self.codes),
            np.concatenate(self.row_numbers),
        )

    def _label(self, text: str | None) -> str | None:
        """Return the class that a cell names; None if the row is unlabeled."""
        if text is None or text == self.unlabeled:
            return None
        if text in self.codes:
            return text
        # 1.0 in this file may be the class 1 of the model.
        shortened = short_number(text)
        if shortened in self.codes:
            return shortened
        return None if may_mean_nothing(text) else text

    @property
    def confusion(self) -> Confusion:
        """The confusion matrix, with the unknown classes if there are any."""
        if self.unknown:
            return Confusion((*self.codes, "any other"), self.matrix)
        return Confusion(tuple(self.codes), self.matrix[:-1, :-1])


def evaluation_lines(result: Evaluation) -> list[str]:
    """Format the evaluation as sentences and tables for a terminal, warnings first."""
    confusion = result.confusion
    low, high = confusion.interval
    lines = [
        f"{result.model} on the {confusion.n_rows:,} of {result.n_rows:,} rows of "
        f"{result.data} whose class is in {result.target!r}.{_left_out(result)}",
        *(f"Warning: {warning}" for warning in evaluation_warnings(result)),
        "",
        f"Error: {percent(confusion.error)}, {confusion.n_wrong:,.0f} of "
        f"{confusion.n_rows:,} rows wrong; between {percent(low)} and {percent(high)} "
        "with 90 % confidence.",
        base_rate_sentence(result),
    ]
    if len(confusion.by_class) > 1:
        lines.append(
            f"Balanced error: {percent(confusion.balanced_error)}, the mean of the "
            "errors of the classes."
        )
    if result.auc is not None:
        lines.append(
            f"Area under the ROC curve: {result.auc:.3f} (1 is perfect, 0.5 is chance)."
        )
    lines += [
        f"Brier score: {result.brier:.3f} "
        "(how far probabilities are from the truth; 0 is perfect).",
        f"Calibration: on average {percent(result.confidence)} sure, and right in "
        f"{percent(1 - confusion.error)}; calibration error "
        f"{result.curve.calibration_error:.3f}.",
    ]
    for table in (class_error_lines(confusion), confusion_lines(confusion)):
        lines.append("")
        lines += [f"  {line}" for line in table]
    if result.suspects:
        lines += ["", *suspect_lines(result.suspects, result.first_row_number)]
    return [printable(line) for line in lines]


def _left_out(result: Evaluation) -> str:
    """Say how many rows with a class are left out because they trained the model."""
    if not result.n_training:
        return ""
    left_out = plural(result.n_training, "row that", "rows that")
    return f" Left out: {left_out} trained the model."


def base_rate_sentence(result: Evaluation) -> str:
    """Compare the model with assigning the most frequent class to all rows."""
    base = result.confusion.base
    # With rows of one class only, even a model that always names it has no error.
    if base.error == 0:
        end = ": rows of one class cannot show what the model has learned."
    elif result.learned == CLEAR:
        end = "; the model is clearly better."
    elif result.learned == NOTHING_LEARNED:
        end = "; the model has learned nothing that helps here."
    elif result.confusion.error < base.error:
        end = "; the model is not clearly better."
    else:
        end = "; the model is no better, though its probabilities are."
    return (
        f"Always predicting {base.majority!r} is wrong {percent(base.error)} of the "
        f"time{end}"
    )


def evaluation_warnings(result: Evaluation) -> list[str]:
    """Return what to know about the evaluated rows before relying on the error."""
    texts = []
    if result.is_training:
        texts.append(
            "This file has a row like each row that trained the model. If they are the "
            "same rows, the error on new rows is higher: use rows that the model was "
            "not fitted to, or `iclda compare`."
        )
    if result.n_chosen:
        texts.append(
            f"{plural(result.n_chosen, 'label')} of rows that were chosen for being "
            "informative are left out: they are not a random sample."
        )
    if result.unknown:
        counts = [
            f"{name!r} ({plural(n, 'row')})" for name, n in result.unknown.items()
        ]
        names = ", ".join(counts)
        texts.append(f"Classes that the model does not know count as wrong: {names}.")
    if result.warning:
        texts.append(result.warning)
    return texts


def is_evaluation_page(path: Path) -> bool:
    """Return whether a file is a page that ``evaluation_page`` made."""
    return _PAGE_MARK in path.read_text(encoding="utf-8", errors="replace")


def evaluation_page(result: Evaluation) -> str:
    """Return the evaluation as one self-contained page."""
    from ..plots._scores import ReliabilityDisplay

    description = (
        f"Reliability: on average {percent(result.confidence)} sure and right in "
        f"{percent(1 - result.confusion.error)}, calibration error "
        f"{result.curve.calibration_error:.3f}"
    )
    display = ReliabilityDisplay(curves={"model": result.curve})
    wide = draw_display(display, 4.6, 4.4, description)
    narrow = draw_display(display, 4.6, 3.9, description, is_narrow=True)
    view = {
        "result": result,
        "base_rate": base_rate_sentence(result),
        "mark": _PAGE_MARK,
        "warnings": evaluation_warnings(result),
        "reliability": to_inline_svgs(wide, narrow, "reliability"),
        "how_rows_count": how_rows_count(result.first_row_number),
    }
    return fill("evaluation.html.j2", view, __package__, [])
