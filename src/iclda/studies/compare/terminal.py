"""A comparison as text: lines for a terminal, and sentences of the report.

Messages name parameters, which are options on the command line. Functions here
therefore take a ``Word``, which turns a message into text for its reader, or a
``Terminal``, which has one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..._error_estimate import NOTHING_LEARNED
from ..._messages import Hint, Text, and_list, plural, printable, say, wrap
from ...tabular.checks import COLUMNS, FINE, NOTE, WARNING, Remark
from .. import page
from ..measures import AUC, BALANCED, BRIER, COMPARISON_MEASURES, ERROR
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

# The mark in front of the recommended method.
_CHOSEN_MARK = ">"
# Sequences that color a part of a line, and have no width.
_STYLE_CODES = re.compile("\x1b\\[[0-9;]*m")
# The mark in front of a remark, by its level.
_MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}
# The least width of lines, however narrow the terminal.
_MIN_WRAP_WIDTH = 30

# How the comparison is made.
_FOLDS = (
    "The {n_labels:,} labeled rows are divided into {folds} folds at random, {times}. "
    "Each fold is tested once, and the others train."
)
_UNLABELED_ROWS = "All {n_unlabeled:,} unlabeled rows train, and are never tested."
_HIDDEN_LABELS = (
    "In every split {n_kept:,} training rows, drawn at random, keep their labels. The "
    "labels of the others are hidden, so that {n_unlabeled:,} rows train without one. "
    "Rows that are tested do not train."
)
_SETTLED = (
    "The choice was the same without any one of these repeats, so there are no more of "
    "them ({@repeats} asks for a number)."
)
_STOPPED = (
    "Stopped after the first repeats, because their {score} was more than three "
    "standard errors behind the best: {stopped_names}."
)
_ENCODING = (
    "Filling gaps, encoding categories and scaling columns is learned from the "
    "training rows of each split."
)
_SLOW_SEARCH = (
    "iclda is slow with so many classes and columns, so it starts once, from the "
    "supervised fit, instead of 32 times."
)
_LEFT_OUT = "Left out because they would be slow: {names} ({@methods} includes them)."
_CAPPED_CURVES = "Learning curves use at most {most:,} unlabeled rows."
_ABOUT_SHRINKAGE = (
    "It draws the covariance toward a simpler one, which steadies fits to few labels"
)
# What is said about shrinkage, by the setting.
_SHRINKAGES = {
    "0": "No method uses shrinkage ({@shrinkage} changes that).",
    "auto": (
        f"All methods use shrinkage ({{@shrinkage}} changes that). {_ABOUT_SHRINKAGE}."
    ),
    "0,auto": f"Methods run with shrinkage and without it. {_ABOUT_SHRINKAGE}.",
}
_OTHER_SHRINKAGES = "Methods run with shrinkage {numbers}."

_ALL_FAILED = "No method has scores: every fit failed."
# The table of a short answer has at most this many methods.
_MAX_SHORT_ROWS = 6
# The first ranking, after one repeat, names this many.
_MAX_FIRST_RANKED = 4
_WORSE_IN = "worse in"
_ABOUT_WORSE = f"{_WORSE_IN}: repeats that are worse than the baseline."
_STOPPED_EARLY = "Stopped early, far behind in {score}: {names}."
_MORE_METHODS = "The report and {@verbose} have {n_more} more."


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
    if not remarks:
        return []
    longest_subject = max(len(remark.subject) for remark in remarks)
    subject_width = longest_subject + _SPACES_AFTER_SUBJECT
    indent = _WIDTH_BEFORE_SUBJECT + subject_width
    lines = []
    for remark in remarks:
        first, *rest = terminal.wrap([remark.text], indent)
        mark = terminal.style(_MARKS[remark.level], remark.level)
        subject = remark.subject.ljust(subject_width)
        # Mark and subject stand where the first line of the text is indented.
        lines.append(f"  {mark} {subject}{first[indent:]}")
        lines += rest
    return lines


def first_remarks(remarks: Sequence[Remark]) -> list[Remark]:
    """Return the warnings, and the notes on how the columns were read."""
    return [
        remark
        for remark in remarks
        if remark.level == WARNING
        or (remark.level == NOTE and remark.subject == COLUMNS)
    ]


def protocol(settings: ComparisonSettings) -> list[Text]:
    """Explain how the comparison is made, in sentences."""
    rows = _UNLABELED_ROWS if settings.n_kept is None else _HIDDEN_LABELS
    sentences = [f"{_FOLDS} {rows}"]
    if settings.is_settled:
        sentences.append(_SETTLED)
    if settings.stopped:
        sentences.append(_STOPPED)
    sentences.append(_ENCODING)
    if settings.is_slow:
        sentences.append(_SLOW_SEARCH)
    if settings.left_out:
        sentences.append(_LEFT_OUT)
    if settings.is_capped:
        sentences.append(_CAPPED_CURVES)

    values = {
        **vars(settings),
        "n_kept": settings.n_kept,
        "times": "once" if settings.repeats == 1 else f"{settings.repeats:,} times",
        "most": MAX_CURVE_UNLABELED_ROWS,
        "names": and_list(settings.left_out),
        "score": COMPARISON_MEASURES[settings.measure].noun,
        "stopped_names": and_list(list(settings.stopped)),
    }
    said = [say(sentence, **values) for sentence in sentences]
    return [*said, _about_shrinkages(settings.shrinkage)]


def _about_shrinkages(shrinkages: str) -> Text:
    """Explain the shrinkages of the settings, which are separated by commas."""
    sentence = _SHRINKAGES.get(shrinkages, _OTHER_SHRINKAGES)
    return say(sentence, numbers=shrinkages.replace(",", ", "))


def score_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Format the scores of all methods, with a legend below."""
    summary = comparison.summary
    measures = known_measures(summary)
    if not measures:
        return terminal.wrap([_ALL_FAILED])
    table = _table_lines(comparison, ranked(summary), [*measures, _WORSE_IN], terminal)
    legend = []
    for name in measures:
        measure = COMPARISON_MEASURES[name]
        legend.append(f"{measure.heading}: {measure.explanation}.")
    legend.append(f"In brackets: {interval_source(summary)}.")
    legend.append(_ABOUT_WORSE)
    stopped = comparison.settings.stopped
    if stopped:
        legend.append(_stopped_text(comparison, list(stopped)))
    return [*table, "", *terminal.wrap([f"{_direction(measures)} {' '.join(legend)}"])]


def first_ranking(comparison: Comparison) -> str:
    """Rank the best methods by the first repeat; "" if there are not two."""
    first = [result for result in comparison.compared if result.repeat == 0]
    summary = replace(comparison, results=first).summary
    main = summary.main
    best = sorted(summary.best.values(), key=summary.order)
    if len(best) <= 1:
        return ""
    shown = [
        f"{name} {number_text(summary.mean(name, main), main)}"
        for name in best[:_MAX_FIRST_RANKED]
    ]
    if len(best) > len(shown):
        shown.append("...")
    heading = COMPARISON_MEASURES[main].heading
    ranking = f"First ranking by {heading}, after 1 repeat: {', '.join(shown)}"
    ranked_names = {result.method for result in first}
    missing = [
        contestant.name
        for contestant in comparison.settings.contestants
        if contestant.name not in ranked_names
    ]
    return f"{ranking} ({and_list(missing)} to follow)" if missing else ranking


def short_score_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Format the scores of the methods that matter most, as wide as the terminal."""
    summary = comparison.summary
    if not known_measures(summary):
        return terminal.wrap([_ALL_FAILED])
    names = _short_names(comparison)
    columns = [*_short_measures(comparison), _WORSE_IN]
    lines = _table_lines(comparison, names, columns, terminal)
    # The last columns say the least.
    while len(columns) > 1 and _width(lines) > terminal.width:
        columns.pop()
        lines = _table_lines(comparison, names, columns, terminal)

    measures = [name for name in columns if name != _WORSE_IN]
    legend = [_direction(measures), f"In brackets: {interval_source(summary)}."]
    if _WORSE_IN in columns:
        legend.append(_ABOUT_WORSE)
    stopped = [name for name in names if name in comparison.settings.stopped]
    if stopped:
        legend.append(_stopped_text(comparison, stopped))
    n_more = len(ranked(summary)) - len(names)
    if n_more:
        legend.append(terminal.word(say(_MORE_METHODS, n_more=n_more)))
    return [*lines, *terminal.wrap([" ".join(legend)])]


def _stopped_text(comparison: Comparison, names: Sequence[str]) -> str:
    """Say which methods were stopped, and by which measure they are behind."""
    score = COMPARISON_MEASURES[comparison.settings.measure].noun
    return _STOPPED_EARLY.format(score=score, names=and_list(list(names)))


def _width(lines: Iterable[str]) -> int:
    """Return the width of the widest line on the screen."""
    return max(len(_STYLE_CODES.sub("", line)) for line in lines)


def _short_names(comparison: Comparison) -> list[str]:
    """Return the baseline, the recommended contestant, and the best of the others.

    One of them is the best of scikit-learn. Each method is shown once.
    """
    summary = comparison.summary
    best = sorted(summary.best.values(), key=summary.order)
    outside = [name for name in best if name in comparison.outside]
    first = [summary.baseline, comparison.verdict.method, *outside[:1], *best]
    shown = list(dict.fromkeys(name for name in first if name))[:_MAX_SHORT_ROWS]
    return [name for name in ranked(summary) if name in shown]


def _short_measures(comparison: Comparison) -> list[str]:
    """Return the measures of a short answer, the most important ones first."""
    names = [ERROR]
    if comparison.needs_balance:
        names += [BALANCED, AUC]
    known = known_measures(comparison.summary)
    return [name for name in (*names, BRIER) if name in known]


def _direction(measures: Sequence[str]) -> str:
    """Say which values are better."""
    higher = [
        COMPARISON_MEASURES[name].heading
        for name in measures
        if not COMPARISON_MEASURES[name].lower_is_better
    ]
    if not higher:
        return "Lower is better."
    return f"Lower is better, except for {and_list(higher)}."


def _table_lines(
    comparison: Comparison,
    names: Sequence[str],
    columns: Sequence[str],
    terminal: Terminal,
) -> list[str]:
    """Format a line for every contestant, below a line of headings.

    ``columns`` are measures, and the number of repeats in which a contestant is worse.
    The recommended contestant is marked.
    """
    summary = comparison.summary
    rows = [["", *map(_heading, columns)]]
    rows += [
        [name, *(_cell(summary, name, column) for column in columns)] for name in names
    ]

    # Names are aligned on the left, numbers on the right.
    sides = "l" + "r" * len(columns)
    heading_line, *number_lines = page.align(rows, sides)
    lines = [f"  {heading_line}"]
    for name, number_line in zip(names, number_lines, strict=True):
        mark = _CHOSEN_MARK if name == comparison.verdict.method else " "
        line = f"{mark} {number_line}"
        verdict = summary.verdict(name, summary.main)
        if verdict:
            line += f"  {terminal.style(verdict, verdict)}"
        lines.append(line)
    return lines


def _heading(column: str) -> str:
    return column if column == _WORSE_IN else COMPARISON_MEASURES[column].heading


def _cell(summary: ComparisonSummary, name: str, column: str) -> str:
    """Format a number of a contestant; errors have their interval in brackets."""
    if column == _WORSE_IN:
        return worse_text(summary, name)
    number = number_text(summary.mean(name, column), column)
    if column != ERROR:
        return number
    return f"{number} ({interval_text(summary.score(name, ERROR))})"


def known_measures(summary: ComparisonSummary) -> list[str]:
    """Return the measures that any contestant has, in the order of their table."""
    measures = {score.measure for score in summary.scores if score.mean is not None}
    return [name for name in COMPARISON_MEASURES if name in measures]


def ranked(summary: ComparisonSummary) -> list[str]:
    """Return the supervised contestants, then the others, by error and Brier score.

    Another measure that decides takes the place of the error.
    """

    def key(name: str) -> tuple[bool, tuple[float, ...]]:
        is_rival = not name.startswith(SUPERVISED)
        return is_rival, summary.order(name)

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
    """Say in how many repeats a contestant was worse than the supervised one."""
    if name == summary.baseline:
        return "baseline"
    score = summary.score(name, summary.main)
    if score is None or score.n_worse is None:
        return NO_NUMBER
    return f"{score.n_worse} of {score.repeats}"


def answer_lines(
    comparison: Comparison, terminal: Terminal, command: str = ""
) -> list[str]:
    """Format the recommendation, what speaks against it, and the command that follows.

    The learning curves are not needed: they are computed after the answer is printed.
    """
    verdict = comparison.verdict
    lines = ["Answer"]
    sentence_lines = terminal.wrap([verdict.sentence])
    lines += [terminal.style(line, "answer") for line in sentence_lines]
    lines += terminal.wrap([comparison.caution, comparison.pace])
    for name, failures in comparison.failures.items():
        counts = f"{failures.n_failed:,} of {failures.n_fits:,} splits"
        lines += terminal.wrap([f"{name} failed in {counts}: {failures.reason}"])
    if command:
        lines += [f"Next: {printable(terminal.word(command))}"]
    return lines


def class_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Format the errors by class of the recommended contestant, if there is one."""
    chosen = comparison.chosen
    confusion = comparison.confusion
    if chosen is None or confusion is None:
        return []
    lines = [f"Errors by class: {title_of(chosen)}"]
    lines += [f"  {printable(line)}" for line in page.class_error_lines(confusion)]
    # The answer contains this sentence already if it is in doubt.
    base = comparison.verdict.base
    if base in comparison.verdict.sentence:
        base = ""
    return [*lines, *terminal.wrap([base, comparison.balanced])]


def fit_command(comparison: Comparison, *, is_followed: bool = False) -> str:
    """Return the command that fits the recommended method, its options to be worded.

    Empty if there is none, if labels were hidden, or if nothing was learned.
    ``is_followed`` tells that ``iclda fit`` finds the comparison, and so needs no name
    of the method.
    """
    chosen = comparison.chosen
    settings = comparison.settings
    is_useful = comparison.verdict.learned != NOTHING_LEARNED
    if chosen is None or settings.n_kept is not None or not is_useful:
        return ""
    parameters = {**settings.reading, "target": settings.target}
    if not is_followed:
        parameters["method"] = chosen.method.name
    hints = [Hint(name, value) for name, value in parameters.items() if value]
    if not is_followed and "shrinkage" in chosen.method.parameters:
        hints.append(Hint("shrinkage", chosen.shrinkage or 0))

    data = shlex.quote(settings.sources[0].path)
    parts: list[str | Hint] = [f"iclda fit {data}"]
    for hint in hints:
        parts += [" ", hint]
    return Text(*parts)
