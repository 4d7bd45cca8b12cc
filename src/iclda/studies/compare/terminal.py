"""A comparison as text: lines for a terminal, and sentences of the report.

Messages name parameters, which are options on the command line. Functions here
therefore take a ``Word``, which turns a message into text for its reader, or a
``Terminal``, which has one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..._error_estimate import CLEAR, NOTHING_LEARNED
from ..._messages import Hint, Text, and_list, plural, printable, say, wrap
from ...tabular.checks import FINE, NOTE, WARNING, Remark
from .. import page
from ..measures import COMPARISON_MEASURES, ERROR
from ..page import NO_NUMBER
from .comparison import Comparison
from .contestants import SUPERVISED
from .settings import ComparisonSettings
from .splits import MAX_CURVE_UNLABELED_ROWS
from .summary import ComparisonSummary, Score
from .verdict import title_of

# Words a message for its reader: ``str`` names parameters as in Python, and the command
# line passes a function that names options instead.
Word = Callable[[str], str]

# The mark in front of a remark, by its level.
_MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}
# The least width of lines, however narrow the terminal.
_MIN_WRAP_WIDTH = 30

# How the comparison is made.
_FOLDS = (
    "The {n_labels:,} labeled rows are divided into {folds} folds at random, {repeats} "
    "times, and each fold is tested once while the others train."
)
_UNLABELED_ROWS = (
    "All {n_unlabeled:,} unlabeled rows train every time and are never tested."
)
_HIDDEN_LABELS = (
    "Of the training rows {n_kept:,} keep their labels, drawn at random each time; the "
    "labels of the others are hidden, so that {n_unlabeled:,} rows train without a "
    "label. Test rows take no part in training."
)
_ENCODING = (
    "How to fill gaps, encode categories and scale columns is learned from the "
    "training rows of each split. Shrinkage: {how}."
)
_SLOW_SEARCH = (
    "With so many classes and columns iclda is slow: it starts once, from the "
    "supervised fit, instead of 32 times."
)
_LEFT_OUT = "Left out because slow here: {names} ({@methods} includes them)."
_CAPPED_CURVES = "Learning curves use at most {most:,} unlabeled rows."
_ABOUT_SHRINKAGE = (
    "It draws the covariance of the columns toward a simpler one, which steadies a fit "
    "where labels are few"
)
# What is said about shrinkage, by the setting.
_SHRINKAGES = {
    "0": "none ({@shrinkage} changes that)",
    "auto": f"all methods use it. {_ABOUT_SHRINKAGE} ({{@shrinkage}} changes that)",
    "0,auto": f"methods run with it and without it. {_ABOUT_SHRINKAGE}",
}
_OTHER_SHRINKAGES = "{numbers}, as you chose"

# Shown below the command that fits the recommended method.
_ABOUT_FIT = (
    "It states the error of this method alone, from fewer repeats, which may differ a "
    "little from the error above."
)


def _without_style(text: str, kind: str) -> str:
    return text


# Two spaces, a mark and a space stand in front of the subject of a remark.
_WIDTH_BEFORE_SUBJECT = 4
_SPACES_AFTER_SUBJECT = 2


@dataclass(frozen=True)
class Terminal:
    """Terminal output: line width, and functions that word and color parts of a line.

    ``style`` takes a text and its kind: "better", "worse", "answer", or the level of a
    remark.
    """

    width: int = 100
    word: Word = str
    style: Callable[[str, str], str] = _without_style

    def wrap(self, texts: Iterable[str], indent: int = 2) -> list[str]:
        """Break messages into indented lines; empty messages are left out."""
        width = max(self.width - indent, _MIN_WRAP_WIDTH)
        lines = []
        for text in texts:
            worded = self.word(text)
            lines += wrap(printable(worded), width)
        return [" " * indent + line for line in lines]


def remark_lines(remarks: Sequence[Remark], terminal: Terminal) -> list[str]:
    """Format every remark: its mark, its subject, and its text in a column."""
    longest_subject = max(len(remark.subject) for remark in remarks)
    subject_width = longest_subject + _SPACES_AFTER_SUBJECT
    indent = _WIDTH_BEFORE_SUBJECT + subject_width
    lines = ["Before comparing"]
    for remark in remarks:
        first, *rest = terminal.wrap([remark.text], indent)
        mark = terminal.style(_MARKS[remark.level], remark.level)
        subject = remark.subject.ljust(subject_width)
        # Mark and subject stand where the first line of the text is indented.
        lines.append(f"  {mark} {subject}{first[indent:]}")
        lines += rest
    return lines


def protocol(settings: ComparisonSettings) -> list[Text]:
    """Explain how the comparison is made, in sentences."""
    rows = _UNLABELED_ROWS if settings.n_kept is None else _HIDDEN_LABELS
    sentences = [f"{_FOLDS} {rows}", _ENCODING]
    if settings.is_slow:
        sentences.append(_SLOW_SEARCH)
    if settings.left_out:
        sentences.append(_LEFT_OUT)
    if settings.is_capped:
        sentences.append(_CAPPED_CURVES)

    values = {
        **vars(settings),
        "n_kept": settings.n_kept,
        "most": MAX_CURVE_UNLABELED_ROWS,
        "names": and_list(settings.left_out),
        "how": _about_shrinkages(settings.shrinkage),
    }
    return [say(sentence, **values) for sentence in sentences]


def _about_shrinkages(shrinkages: str) -> Text:
    """Explain the shrinkages of the settings, which are separated by commas."""
    sentence = _SHRINKAGES.get(shrinkages, _OTHER_SHRINKAGES)
    return say(sentence, numbers=shrinkages.replace(",", ", "))


def score_lines(summary: ComparisonSummary, terminal: Terminal) -> list[str]:
    """Format the table of scores, with a legend below."""
    names = known_measures(summary)
    if not names:
        return terminal.wrap(["No method has scores: every fit failed."])
    legend = ["Lower is better."]
    for name in names:
        measure = COMPARISON_MEASURES[name]
        legend.append(f"{measure.heading}: {measure.explanation}.")
    legend.append(f"In brackets: {interval_source(summary)}.")
    legend.append("worse in: repeats with a higher error than the baseline.")
    lines = terminal.wrap([" ".join(legend)])
    return [*_table_lines(summary, names, terminal), "", *lines]


def _table_lines(
    summary: ComparisonSummary, measures: Sequence[str], terminal: Terminal
) -> list[str]:
    """Format a line for every contestant, below a line of headings."""
    names = ranked(summary)
    measure_headings = [COMPARISON_MEASURES[measure].heading for measure in measures]
    headings = ["", *measure_headings, "worse in"]
    rows = [headings]
    for name in names:
        numbers = {}
        for measure in measures:
            mean = summary.mean(name, measure)
            numbers[measure] = number_text(mean, measure)
        interval = interval_text(summary.score(name, ERROR))
        numbers[ERROR] += f" ({interval})"
        rows.append([name, *numbers.values(), worse_text(summary, name)])

    # Names are aligned on the left, numbers on the right.
    sides = "l" + "r" * (len(headings) - 1)
    heading_line, *number_lines = page.align(rows, sides)
    lines = [f"  {heading_line}"]
    for name, number_line in zip(names, number_lines, strict=True):
        line = f"  {number_line}"
        verdict = summary.verdict(name, ERROR)
        if verdict:
            line += f"  {terminal.style(verdict, verdict)}"
        lines.append(line)
    return lines


def known_measures(summary: ComparisonSummary) -> list[str]:
    """Return the measures that any contestant has, in the order of their table."""
    measures = {score.measure for score in summary.scores if score.mean is not None}
    return [name for name in COMPARISON_MEASURES if name in measures]


def ranked(summary: ComparisonSummary) -> list[str]:
    """Return the supervised contestants, then the others, by error and Brier score."""

    def key(name: str) -> tuple[bool, tuple[float, ...]]:
        is_rival = not name.startswith(SUPERVISED)
        # The rank of a contestant has its Brier score first.
        by_error_first = summary.rank(name)[::-1]
        return is_rival, by_error_first

    # Every contestant once, ties in the order in which they were compared.
    names = dict.fromkeys(score.method for score in summary.scores)
    return sorted(names, key=key)


def interval_text(score: Score | None) -> str:
    """Word the interval of an error: 0.04-0.27."""
    if score is None or score.low is None or score.high is None:
        return NO_NUMBER
    return f"{score.low:.2f}-{score.high:.2f}"


def interval_source(summary: ComparisonSummary) -> str:
    """Say what the intervals in brackets are, and on how many rows they rest."""
    counts = [score.n_rows for score in summary.scores if score.n_rows is not None]
    return f"90 % interval from {plural(max(counts, default=0), 'labeled row')}"


def number_text(value: float | None, measure: str) -> str:
    """Write a number with the decimals of its measure; a dash for None."""
    if value is None:
        return NO_NUMBER
    return f"{value:.{COMPARISON_MEASURES[measure].decimals}f}"


def worse_text(summary: ComparisonSummary, name: str) -> str:
    """Say in how many repeats the error was above that of the supervised one."""
    if name == summary.baseline:
        return "baseline"
    score = summary.score(name, ERROR)
    if score is None or score.n_worse is None:
        return NO_NUMBER
    return f"{score.n_worse} of {score.repeats}"


def answer_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Format the recommendation, the command that follows it, and errors by class.

    The learning curves are not needed: they are computed after the answer is printed.
    """
    verdict = comparison.verdict
    lines = ["Answer"]
    sentence_lines = terminal.wrap([verdict.sentence])
    lines += [terminal.style(line, "answer") for line in sentence_lines]
    lines += terminal.wrap([comparison.caution])
    for name, failures in comparison.failures.items():
        counts = f"{failures.n_failed:,} of {failures.n_fits:,} splits"
        lines += terminal.wrap([f"{name} failed in {counts}: {failures.reason}"])

    command = fit_command(comparison)
    if command:
        lines += ["", f"Next: {printable(terminal.word(command))}"]
        lines += terminal.wrap([_ABOUT_FIT])

    chosen = comparison.chosen
    confusion = comparison.confusion
    if chosen and confusion:
        lines += ["", f"Errors by class: {title_of(chosen)}"]
        lines += [f"  {printable(line)}" for line in page.class_error_lines(confusion)]
        # Unless it is clear that something was learned, the answer above contains this
        # sentence already.
        base = verdict.base if verdict.learned == CLEAR else ""
        lines += terminal.wrap([base, comparison.balanced])
    return lines


def fit_command(comparison: Comparison) -> str:
    """Return the command that fits the recommended method, its options to be worded.

    Empty if there is none, if labels were hidden, or if nothing was learned.
    """
    chosen = comparison.chosen
    settings = comparison.settings
    is_useful = comparison.verdict.learned != NOTHING_LEARNED
    if chosen is None or settings.n_kept is not None or not is_useful:
        return ""
    parameters = {
        **settings.reading,
        "target": settings.target,
        "method": chosen.method.name,
    }
    hints = [Hint(name, value) for name, value in parameters.items() if value]
    if "shrinkage" in chosen.method.parameters:
        hints.append(Hint("shrinkage", chosen.shrinkage or 0))

    data = shlex.quote(settings.sources[0].path)
    parts: list[str | Hint] = [f"iclda fit {data}"]
    for hint in hints:
        parts += [" ", hint]
    return Text(*parts)
