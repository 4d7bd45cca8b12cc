"""A comparison as lines of text, for a terminal: what was found, how, and what to do."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._messages import Hint, Text, Words, printable
from ..page import NOTHING
from .contestants import SUPERVISED
from .preflight import FINE, NOTE, WARNING, Remark
from .results import COMPARISON
from .splits import MOST_ON_CURVES
from .summary import BRIER, CALIBRATION, ERROR, HIDDEN, LOSS, MEASURES, Outcome, Score

if TYPE_CHECKING:
    from .findings import Findings

HEADINGS = {
    ERROR: "error",
    BRIER: "Brier",
    CALIBRATION: "calibration",
    LOSS: "loss",
    HIDDEN: "error, hidden rows",
}
EXPLAINED = {
    ERROR: "share of test rows that get the wrong class",
    BRIER: (
        "how far the probabilities are from the truth: half of the squared differences, summed "
        "over all classes; 0 is perfect, and if all of them are 0 or 1 it is the error"
    ),
    CALIBRATION: "mean distance between how sure a method is and how often it is right",
    LOSS: (
        "mean over test rows of -log(share of their class x density of the row in it): how well "
        "the fitted classes describe new rows. Lower is better; comparable between methods on "
        "these columns only"
    ),
    HIDDEN: "error on the training rows whose labels were hidden",
}
MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}
_SHORT = {HIDDEN: "hidden"}
_LEGEND = {
    ERROR: (
        "error: share of test rows that get a wrong class, with its standard error; worse in: "
        "repeats in which it was higher than that of the baseline"
    ),
    BRIER: (
        "Brier: how far probabilities are from the truth (half of the squared differences, summed "
        "over all classes)"
    ),
    CALIBRATION: "calibration: how far they are from how often they come true",
    LOSS: "loss: minus the log likelihood of a test row with its class",
    HIDDEN: "hidden: error on training rows whose labels were hidden",
}
_DECIMALS = {LOSS: 2}
_LARGE = 1e5
Style = Callable[[str, str], str]  # a text and what it is, to the text as the terminal shows it


def plain(text: str, kind: str) -> str:
    """No colors."""
    return text


def preflight_lines(remarks: Sequence[Remark], width: int, style: Style = plain) -> list[str]:
    """Every remark with its mark and subject, wrapped beside it."""
    column = 2 + max(len(remark.subject) for remark in remarks) + 4
    lines = ["Before comparing"]
    for remark in remarks:
        wrapped = textwrap.wrap(printable(remark.text), max(width - column, 30)) or [""]
        head = f"  {style(MARKS[remark.level], remark.level)} {remark.subject}"
        padding = " " * (column - 4 - len(remark.subject))
        lines.append(f"{head}{padding}{wrapped[0]}")
        lines += [" " * column + text for text in wrapped[1:]]
    return lines


def method_lines(settings: Mapping[str, Any], width: int, words: Words = str) -> list[str]:
    """How the comparison is made."""
    return ["How", *(line for text in protocol(settings, words) for line in _wrapped(text, width))]


def protocol(settings: Mapping[str, Any], words: Words = str) -> list[str]:
    """The comparison in sentences."""
    folds, repeats = settings["folds"], settings["repeats"]
    n_labels, n_unlabeled = settings["n_labels"], settings["n_unlabeled"]
    sentences = [
        f"{repeats} times the {n_labels:,} labeled rows are dealt into {folds} folds, and each "
        "fold is tested once while the others train."
    ]
    if settings["labeled"] == "all":
        sentences[0] += (
            f" All {n_unlabeled:,} unlabeled rows train every time and are never tested."
        )
    else:
        sentences[0] += (
            f" Of the rows that train {settings['n_used']:,} keep their labels, drawn anew each "
            f"time; the labels of the rest are hidden, so that {n_unlabeled:,} rows train without. "
            "Test rows take no part in training (inductive); the error on hidden rows is that on "
            "rows trained on without their labels (transductive)."
        )
    sentences.append(
        "Filling gaps, encoding categories and scaling are learned from the training rows of each "
        f"fold. Shrinkage: {words(_shrinkage_words(settings['shrinkage']))}."
    )
    if settings["is_slow"]:
        sentences.append(
            "So many classes and columns make iclda slow: it starts once, from the supervised fit, "
            "instead of 32 times."
        )
    if settings["is_capped"]:
        sentences.append(f"Learning curves use at most {MOST_ON_CURVES:,} unlabeled rows.")
    return sentences


def _shrinkage_words(text: str) -> str:
    if text == "0":
        return Text("none (", Hint("shrinkage"), " changes that)")
    if text == "0,auto":
        return "with few labels for so many columns, methods run without and with it (shrunk)"
    return f"{text.replace(',', ', ')}, as asked for"


def score_lines(outcome: Outcome, width: int = 100, style: Style = plain) -> list[str]:
    """The table: one line a contestant, best error first within the supervised and the others.

    Measures that do not fit beside the others are left to the report, and named.
    """
    known = {score.measure for score in outcome.scores if score.mean is not None}
    measures = [measure for measure in MEASURES if measure in known]
    unfit = []
    for measure in (CALIBRATION, HIDDEN, LOSS):
        if max(map(len, _table(outcome, measures, plain))) > width and measure in measures:
            measures.remove(measure)
            unfit.append(HEADINGS[measure])
    table = _table(outcome, measures, style)
    if not measures:
        return [*table, "", *_wrapped("No method has numbers: every fit failed.", width)]
    legend = "; ".join(_LEGEND[measure] for measure in measures)
    left = f" Too wide for {width} columns, but in the report: {', '.join(unfit)}." if unfit else ""
    return [*table, "", *_wrapped(f"Lower is better. {legend}.{left}", width)]


def _table(outcome: Outcome, measures: Sequence[str], style: Style) -> list[str]:
    header = ["", *(_SHORT.get(measure, HEADINGS[measure]) for measure in measures), "worse in"]
    body = [[name, *_cells(outcome, name, measures)] for name in ranked(outcome)]
    widths = [max(len(line[k]) for line in [header, *body]) for k in range(len(header))]
    lines = [_line(header, widths)]
    for line in body:
        verdict = _verdict(outcome, line[0])
        lines.append(_line(line, widths) + (f"  {style(verdict, verdict)}" if verdict else ""))
    return lines


def ranked(outcome: Outcome) -> list[str]:
    """Contestants: the supervised ones, then the others; each by error, then by Brier score."""
    names = list(dict.fromkeys(score.method for score in outcome.scores))

    def place(name: str) -> tuple[bool, float, float]:
        means = [outcome.mean(name, measure) for measure in (ERROR, BRIER)]
        known = [float("inf") if mean is None else mean for mean in means]
        return not name.startswith(SUPERVISED), known[0], known[1]

    return sorted(names, key=place)


def _cells(outcome: Outcome, name: str, measures: Sequence[str]) -> list[str]:
    cells = [number_text(outcome.score(name, measure)) for measure in measures]
    return [*cells, worse_text(outcome, name)]


def number_text(score: Score | None) -> str:
    """A mean, with plus or minus its standard error for the error."""
    if score is None or score.mean is None:
        return NOTHING
    text = decimals(score.mean, score.measure)
    if score.measure == ERROR and score.se is not None:
        text += f" ± {decimals(score.se, score.measure)}"
    return text


def decimals(value: float, measure: str) -> str:
    """A number with as many decimals as its measure deserves."""
    if abs(value) >= _LARGE:
        return f"{value:.0e}"
    return f"{value:.{_DECIMALS.get(measure, 3)}f}"


def worse_text(outcome: Outcome, name: str) -> str:
    """In how many repeats the error was higher than that of the supervised contestant."""
    score = outcome.score(name, ERROR)
    if name == outcome.baseline:
        return "baseline"
    if score is None or score.share_worse_than_supervised is None:
        return NOTHING
    return f"{round(score.share_worse_than_supervised * score.repeats)} of {score.repeats}"


def _verdict(outcome: Outcome, name: str) -> str:
    found = outcome.difference(name, ERROR)
    return found.verdict if found else ""


def answer_lines(findings: Findings, width: int, style: Style = plain) -> list[str]:
    """The recommendation, and the command that follows it. No curve is needed for it."""
    lines = ["Answer"]
    wrapped = _wrapped(findings.verdict.sentence, width)
    lines += [style(line, "answer") for line in wrapped]
    lines += _wrapped(findings.verdict.also, width)
    lines += [line for text in failure_texts(findings) for line in _wrapped(text, width)]
    command = printable(fit_command(findings))
    return [*lines, "", f"Next: {command}"] if command else lines


def curve_lines(findings: Findings, width: int) -> list[str]:
    """Fits of the learning curves that failed, where there are any."""
    return [line for text in curve_failure_texts(findings) for line in _wrapped(text, width)]


def failure_texts(findings: Findings) -> list[str]:
    """Methods that failed in the comparison, how often, and the first reason."""
    n_splits = findings.settings["folds"] * findings.settings["repeats"]
    return [
        printable(f"{name} failed in {count:,} of {n_splits:,} splits: {words}")
        for name, (count, words) in findings.failures.items()
    ]


def curve_failure_texts(findings: Findings) -> list[str]:
    """The same for the learning curves."""
    n_fits = Counter(r.method for r in findings.results if r.experiment != COMPARISON)
    texts = [
        f"On the learning curves {name} failed in {count:,} of {n_fits[name]:,} fits: {words}"
        for name, (count, words) in findings.curve_failures.items()
    ]
    return list(map(printable, texts))


def fit_command(findings: Findings) -> str:
    """The command that fits what is recommended to all rows; none if labels were hidden."""
    chosen = findings.contestant(findings.verdict.method)
    if chosen is None or findings.settings["labeled"] != "all":
        return ""
    sources = [source["path"] for source in findings.settings["sources"]]
    words = ["iclda", "fit", sources[0], "--target", findings.settings["target"]]
    if findings.settings.get("unlabeled"):
        words += ["--unlabeled", findings.settings["unlabeled"]]
    if len(sources) > 1:
        words += ["--unlabeled-file", sources[1]]
    for column in findings.settings.get("dropped", ()):
        words += ["--drop", column]
    words += ["--method", chosen.method.name]
    if chosen.shrinkage is not None:
        words += ["--shrinkage", str(chosen.shrinkage)]
    return shlex.join(words)


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    first = texts[0].ljust(widths[0])
    rest = (text.rjust(width) for text, width in zip(texts[1:], widths[1:], strict=True))
    return "  " + "  ".join([first, *rest]).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
