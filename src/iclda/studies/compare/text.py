"""A comparison as text: lines for a terminal, sentences for a page, CSV and JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..._checks import FINE, NOTE, WARNING, Remark
from ..._messages import Hint, Text, and_list, plural, printable, say, wrap
from ..._statistics import CLEAR, estimate_as_json
from ..._statistics import NOTHING as NOT_LEARNED
from ..confusion import class_error_lines
from ..measures import COMPARISON_MEASURES, ERROR
from ..page import NOTHING, align, attributes_csv
from . import SENTENCES
from .plan import (
    COMPARISON,
    LABELED_CURVE,
    MOST_ON_CURVES,
    SUPERVISED,
    UNLABELED_CURVE,
    ComparisonSettings,
)
from .summary import ComparisonSummary, Score, SplitCurvePoint
from .verdict import Comparison, title_of

SHOWN_SETTINGS = ("target", "folds", "repeats", "labeled", "missing", "shrinkage", "seed")
Word = Callable[[str], str]  # words a message for its reader; ``str`` is for Python
_MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}
_LARGE = 1e5  # numbers from here on are written with an exponent


@dataclass(frozen=True)
class Terminal:
    """How a terminal shows text: its width, and what words messages and styles parts of lines."""

    width: int = 100
    word: Word = str
    style: Callable[[str, str], str] = lambda text, kind: text  # a text, and its kind

    def wrap(self, texts: Iterable[str], indent: int = 2) -> list[str]:
        """Lines of messages, indented; empty messages have none."""
        width = max(self.width - indent, 30)
        wrapped = (wrap(printable(self.word(text)), width) for text in texts)
        return [" " * indent + line for lines in wrapped for line in lines]


def remark_lines(remarks: Sequence[Remark], terminal: Terminal) -> list[str]:
    """Every remark with its mark and subject, wrapped beside it."""
    indent = 6 + max(len(remark.subject) for remark in remarks)
    lines = ["Before comparing"]
    for remark in remarks:
        first, *rest = terminal.wrap([remark.text], indent)
        mark = terminal.style(_MARKS[remark.level], remark.level)
        lines += [f"  {mark} {remark.subject.ljust(indent - 4)}{first[indent:]}", *rest]
    return lines


def protocol(settings: ComparisonSettings) -> list[Text]:
    """How the comparison is made, in sentences."""
    texts = SENTENCES["protocol"]
    names = {"0": "not_shrunk", "auto": "auto", "0,auto": "both"}
    how = texts[names.get(settings.shrinkage, "shrunk")]
    rows = texts["unlabeled" if settings.n_kept is None else "hidden"]
    optional = {
        "slow": settings.is_slow,
        "left_out": settings.left_out,
        "capped": settings.is_capped,
    }
    sentences = [f"{texts['folds']} {rows}", texts["encoding"]]
    sentences += [texts[name] for name, applies in optional.items() if applies]
    values = {
        **vars(settings),
        "n_kept": settings.n_kept,
        "most": MOST_ON_CURVES,
        "names": and_list(settings.left_out),
        "how": say(how, numbers=settings.shrinkage.replace(",", ", ")),
    }
    return [say(sentence, **values) for sentence in sentences]


def score_lines(summary: ComparisonSummary, terminal: Terminal) -> list[str]:
    """The table: one line a contestant, best first within the supervised and the others.

    Measures that do not fit beside the others are left to the report, and named.
    """
    measures = known_measures(summary)
    if not measures:
        return terminal.wrap(["No method has numbers: every fit failed."])
    removable = [name for name in measures if not COMPARISON_MEASURES[name].is_decisive]
    removed = []
    for name in sorted(removable, key=lambda name: COMPARISON_MEASURES[name].is_tested):
        if max(map(len, _table(summary, measures, Terminal()))) > terminal.width:
            measures.remove(name)
            removed.append(COMPARISON_MEASURES[name].heading)
    legend = "; ".join(COMPARISON_MEASURES[name].legend for name in measures)
    note = f"Lower is better. {legend}. In brackets: {interval_source(summary)}."
    if removed:
        note += f" Too wide for {terminal.width} columns, but in the report: {', '.join(removed)}."
    return [*_table(summary, measures, terminal), "", *terminal.wrap([note])]


def known_measures(summary: ComparisonSummary) -> list[str]:
    """Measures that any contestant has."""
    known = {score.measure for score in summary.scores if score.mean is not None}
    return [name for name in COMPARISON_MEASURES if name in known]


def _table(summary: ComparisonSummary, measures: Sequence[str], terminal: Terminal) -> list[str]:
    headings = [
        COMPARISON_MEASURES[name].short or COMPARISON_MEASURES[name].heading for name in measures
    ]
    rows = [["", *headings, "worse in"]]
    for name in ranked(summary):
        texts = {m: number_text(summary.mean(name, m), m) for m in measures}
        texts[ERROR] += f" ({interval_text(summary.score(name, ERROR))})"
        rows.append([name, *texts.values(), worse_text(summary, name)])
    lines = []
    for (name, *_), line in zip(rows, align(rows, "l" + "r" * (len(rows[0]) - 1)), strict=True):
        verdict = summary.verdict(name, ERROR)
        lines.append(f"  {line}  {terminal.style(verdict, verdict)}" if verdict else f"  {line}")
    return lines


def ranked(summary: ComparisonSummary) -> list[str]:
    """Contestants: the supervised ones, then the others; each by Brier score, then by error."""
    names = dict.fromkeys(score.method for score in summary.scores)
    return sorted(names, key=lambda name: (not name.startswith(SUPERVISED), summary.rank(name)))


def interval_text(score: Score | None) -> str:
    """The interval of an error: 0.04-0.27."""
    if score is None or score.low is None or score.high is None:
        return NOTHING
    return f"{score.low:.2f}-{score.high:.2f}"


def interval_source(summary: ComparisonSummary) -> str:
    """What intervals in brackets are, and the rows behind them."""
    n_rows = max((s.n_rows for s in summary.scores if s.n_rows is not None), default=0)
    return f"90 % interval from {plural(n_rows, 'labeled row')}"


def number_text(value: float | None, measure: str) -> str:
    """A number with the decimals of its measure; a dash for None."""
    if value is None:
        return NOTHING
    return (
        f"{value:.0e}"
        if abs(value) >= _LARGE
        else f"{value:.{COMPARISON_MEASURES[measure].decimals}f}"
    )


def worse_text(summary: ComparisonSummary, name: str) -> str:
    """In how many repeats the error was higher than that of the supervised contestant."""
    score = summary.score(name, ERROR)
    if name == summary.baseline:
        return "baseline"
    if score is None or score.n_worse is None:
        return NOTHING
    return f"{score.n_worse} of {score.repeats}"


def answer_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """The recommendation, the command that follows it, and errors by class; no curve is needed."""
    verdict = comparison.verdict
    failed = [
        f"{name} failed in {count:,} of {total:,} splits: {reason}"
        for name, (count, total, reason) in comparison.failures([COMPARISON]).items()
    ]
    lines = ["Answer"]
    lines += [terminal.style(line, "answer") for line in terminal.wrap([verdict.sentence])]
    lines += terminal.wrap([comparison.caution, verdict.also, *failed, *comparison.safety])
    if command := fit_command(comparison):
        lines += ["", f"Next: {printable(terminal.word(command))}"]
    chosen = comparison.contestant(verdict.method)
    confusion = comparison.confusion(verdict.method)
    if chosen and confusion:
        lines += ["", f"Errors of {title_of(chosen)} by class"]
        lines += [f"  {printable(line)}" for line in class_error_lines(confusion)]
        # Unless it is clear, the answer says already what the most frequent class would give.
        base = verdict.base if verdict.learned == CLEAR else ""
        lines += terminal.wrap([base, comparison.balanced])
    return lines


def curve_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """Fits of the learning curves that failed, where there are any."""
    failed = comparison.failures([UNLABELED_CURVE, LABELED_CURVE])
    return terminal.wrap(
        f"On the learning curves {name} failed in {count:,} of {total:,} fits: {reason}"
        for name, (count, total, reason) in failed.items()
    )


def _to_fit(comparison: Comparison) -> Any:
    """The best of iclda's own; None if labels were hidden, or if nothing was learned."""
    verdict, settings = comparison.verdict, comparison.settings
    is_known = settings.n_kept is None and verdict.learned != NOT_LEARNED
    return comparison.contestant(verdict.own) if is_known else None


def fit_code(comparison: Comparison) -> str:
    """Python code of the model to fit to all rows; empty if there is none."""
    chosen = _to_fit(comparison)
    if chosen is None:
        return ""
    classifier = chosen.method.classifier(shrinkage=chosen.shrinkage)
    return f"iclda.tabular.pipeline(iclda.tabular.preprocessing(X), iclda.{classifier!r})"


def fit_command(comparison: Comparison) -> str:
    """The command that fits the model to all rows, its options to be worded; empty if none."""
    chosen, settings = _to_fit(comparison), comparison.settings
    if chosen is None:
        return ""
    path, *others = (source.path for source in settings.sources)
    parameters = {
        "target": settings.target,
        "unlabeled": settings.unlabeled,
        "unlabeled_file": others[0] if others else None,
        **{name: settings.reading.get(name) for name in ("drop", "keep", "drop_unusable")},
        "method": chosen.method.name,
    }
    hints = [Hint(name, value) for name, value in parameters.items() if value]
    hints.append(Hint("shrinkage", chosen.shrinkage or 0))
    return Text(f"iclda fit {shlex.quote(path)}", *(part for hint in hints for part in (" ", hint)))


def scores_csv(summary: ComparisonSummary) -> str:
    """One line a contestant and measure; an unknown number is an empty field."""
    names = [each.name for each in fields(Score) if each.name != "repeats"]
    return attributes_csv(names, summary.scores)


def curves_csv(points: Iterable[SplitCurvePoint]) -> str:
    """One line a point."""
    return attributes_csv([each.name for each in fields(SplitCurvePoint)], points)


def json_summary(
    comparison: Comparison, paths: Mapping[str, Path], word: Word = str
) -> dict[str, Any]:
    """The whole comparison for programs; ``word`` words its messages."""
    verdict, summary, settings = comparison.verdict, comparison.summary, comparison.settings
    chosen, own = comparison.contestant(verdict.method), comparison.contestant(verdict.own)
    confusion = comparison.confusion(verdict.method)
    return {
        # "curves" are the points themselves.
        **{"curves_file" if k == "curves" else k: str(path) for k, path in paths.items()},
        "recommendation": {
            "kind": verdict.kind,
            "method": chosen.method.name if chosen else None,
            "shrinkage": chosen.shrinkage if chosen else None,
            "own_method": own.method.name if own else None,
            "own_shrinkage": own.shrinkage if own else None,
            "learned": verdict.learned or None,
            "error": estimate_as_json(verdict.estimate),
            "headline": verdict.headline,
            "sentence": word(verdict.sentence),
            "also": verdict.also,
            "caution": comparison.caution,
        },
        "safety": comparison.safety,
        "bounds": asdict(comparison.bounds) if comparison.bounds else None,
        "supervised": summary.baseline,
        "classes": confusion
        and {"method": verdict.method, "base_rate_text": verdict.base, **confusion.to_json()},
        "loss_reference": comparison.reference,
        "scores": [asdict(score) for score in summary.scores],
        "differences": [{**asdict(each), "verdict": each.verdict} for each in summary.differences],
        "curves": [asdict(point) for point in comparison.points],
        "preflight": [{**vars(each), "text": word(each.text)} for each in settings.remarks],
        "settings": {name: getattr(settings, name) for name in SHOWN_SETTINGS},
        "failed_fits": sum(result.failure is not None for result in comparison.results),
        "seconds": round(comparison.seconds, 3),
    }
