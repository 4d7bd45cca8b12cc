"""A comparison as lines for a terminal, CSV, JSON, and a self-contained page with its figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._checks import FINE, NOTE, WARNING, Remark
from ..._messages import Hint, Text, and_list, plural, printable, say, wrap
from ..._statistics import CLEAR, NOTHING, estimate_as_json
from ...plots._scores import ComparisonDisplay, display_points
from .. import page
from ..measures import COMPARISON_MEASURES, ERROR
from . import SENTENCES
from .plan import LABELED_CURVE, MOST_ON_CURVES, SUPERVISED, ComparisonSettings
from .run import FILES
from .summary import (
    CURVE_MEASURES,
    DECISIVE,
    VARIED,
    ComparisonSummary,
    Score,
    SplitCurvePoint,
)
from .verdict import RULE, Comparison, last_line, supervised_name, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_SETTINGS = ("target", "folds", "repeats", "labeled", "shrinkage", "seed")
Word = Callable[[str], str]  # words a message for its reader; ``str`` is for Python
_MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}


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
    """The table: one line a contestant, best first within the supervised and the others."""
    measures = known_measures(summary)
    if not measures:
        return terminal.wrap(["No method has numbers: every fit failed."])
    known = [COMPARISON_MEASURES[name] for name in measures]
    legend = "; ".join(f"{each.heading}: {each.explanation}" for each in known)
    note = f"Lower is better. {legend}. In brackets: {interval_source(summary)}."
    return [*_table(summary, measures, terminal), "", *terminal.wrap([note])]


def known_measures(summary: ComparisonSummary) -> list[str]:
    """Measures that any contestant has."""
    known = {score.measure for score in summary.scores if score.mean is not None}
    return [name for name in COMPARISON_MEASURES if name in known]


def _table(
    summary: ComparisonSummary, measures: Sequence[str], terminal: Terminal
) -> list[str]:
    rows = [["", *(COMPARISON_MEASURES[name].heading for name in measures), "worse in"]]
    for name in ranked(summary):
        texts = {m: number_text(summary.mean(name, m), m) for m in measures}
        texts[ERROR] += f" ({interval_text(summary.score(name, ERROR))})"
        rows.append([name, *texts.values(), worse_text(summary, name)])
    lines, aligned = [], page.align(rows, "l" + "r" * (len(rows[0]) - 1))
    for (name, *_), line in zip(rows, aligned, strict=True):
        verdict = summary.verdict(name, ERROR)
        lines.append(
            f"  {line}  {terminal.style(verdict, verdict)}" if verdict else f"  {line}"
        )
    return lines


def ranked(summary: ComparisonSummary) -> list[str]:
    """Contestants: the supervised ones, then the others; each by error, then by Brier score."""
    names = dict.fromkeys(score.method for score in summary.scores)
    return sorted(
        names,
        key=lambda name: (not name.startswith(SUPERVISED), summary.rank(name)[::-1]),
    )


def interval_text(score: Score | None) -> str:
    """The interval of an error: 0.04-0.27."""
    if score is None or score.low is None or score.high is None:
        return page.NOTHING
    return f"{score.low:.2f}-{score.high:.2f}"


def interval_source(summary: ComparisonSummary) -> str:
    """What intervals in brackets are, and the rows behind them."""
    n_rows = max((s.n_rows for s in summary.scores if s.n_rows is not None), default=0)
    return f"90 % interval from {plural(n_rows, 'labeled row')}"


def number_text(value: float | None, measure: str) -> str:
    """A number with the decimals of its measure; a dash for None."""
    decimals = COMPARISON_MEASURES[measure].decimals
    return page.NOTHING if value is None else f"{value:.{decimals}f}"


def worse_text(summary: ComparisonSummary, name: str) -> str:
    """In how many repeats the error was higher than that of the supervised contestant."""
    score = summary.score(name, ERROR)
    if name == summary.baseline:
        return "baseline"
    if score is None or score.n_worse is None:
        return page.NOTHING
    return f"{score.n_worse} of {score.repeats}"


def answer_lines(comparison: Comparison, terminal: Terminal) -> list[str]:
    """The recommendation, the command that follows it, and errors by class; no curve is needed."""
    verdict = comparison.verdict
    failed = [
        f"{name} failed in {count:,} of {total:,} splits: {reason}"
        for name, (count, total, reason) in comparison.failures.items()
    ]
    lines = ["Answer"]
    lines += [
        terminal.style(line, "answer") for line in terminal.wrap([verdict.sentence])
    ]
    lines += terminal.wrap([comparison.caution, *failed])
    if command := fit_command(comparison):
        lines += ["", f"Next: {printable(terminal.word(command))}"]
        lines += terminal.wrap([SENTENCES["verdict"]["fit"]])
    chosen, confusion = comparison.chosen, comparison.confusion
    if chosen and confusion:
        lines += ["", f"Errors of {title_of(chosen)} by class"]
        lines += [f"  {printable(line)}" for line in page.class_error_lines(confusion)]
        # Unless it is clear, the answer says already what the most frequent class would give.
        base = verdict.base if verdict.learned == CLEAR else ""
        lines += terminal.wrap([base, comparison.balanced])
    return lines


def fit_command(comparison: Comparison) -> str:
    """The command that fits the recommended method to all rows, its options to be worded.

    Empty if there is none, if labels were hidden, or if nothing was learned.
    """
    chosen, verdict, settings = (
        comparison.chosen,
        comparison.verdict,
        comparison.settings,
    )
    if chosen is None or settings.n_kept is not None or verdict.learned == NOTHING:
        return ""
    path = settings.sources[0].path
    parameters = {
        **settings.reading,
        "target": settings.target,
        "method": chosen.method.name,
    }
    hints = [Hint(name, value) for name, value in parameters.items() if value]
    if not chosen.method.is_outside:
        hints.append(Hint("shrinkage", chosen.shrinkage or 0))
    return Text(
        f"iclda fit {shlex.quote(path)}",
        *(part for hint in hints for part in (" ", hint)),
    )


def json_summary(
    comparison: Comparison, paths: Mapping[str, Path], word: Word = str
) -> dict[str, Any]:
    """The whole comparison for programs; ``word`` words its messages."""
    verdict, summary, settings = (
        comparison.verdict,
        comparison.summary,
        comparison.settings,
    )
    chosen, confusion = comparison.chosen, comparison.confusion
    return {
        # "curves" are the points themselves.
        **{
            "curves_file" if k == "curves" else k: str(path)
            for k, path in paths.items()
        },
        "recommendation": {
            "kind": verdict.kind,
            "method": chosen.method.name if chosen else None,
            "shrinkage": chosen.shrinkage if chosen else None,
            "learned": verdict.learned or None,
            "error": estimate_as_json(verdict.estimate),
            "headline": verdict.headline,
            "sentence": word(verdict.sentence),
            "caution": comparison.caution,
        },
        "supervised": summary.baseline,
        "classes": confusion
        and {
            "method": verdict.method,
            "base_rate_text": verdict.base,
            **confusion.to_json(),
        },
        "scores": [asdict(score) for score in summary.scores],
        "differences": [
            {**asdict(each), "verdict": each.verdict} for each in summary.differences
        ],
        "curves": [asdict(point) for point in comparison.points],
        "preflight": [
            {**vars(each), "text": word(each.text)} for each in settings.remarks
        ],
        "settings": {name: getattr(settings, name) for name in SHOWN_SETTINGS},
        "failed_fits": sum(result.failure is not None for result in comparison.results),
        "seconds": round(comparison.seconds, 3),
    }


def write_files(
    out: Path, comparison: Comparison, word: Word = str, next_step: str = ""
) -> dict[str, Path]:
    """Write comparison.csv, curves.csv and report.html; the paths written.

    ``word`` words messages for the reader of the page. ``next_step`` fits the recommended model.
    """
    contents = (
        page.records_csv(Score, comparison.summary.scores, left_out=["repeats"]),
        page.records_csv(SplitCurvePoint, comparison.points),
        render(comparison, word, next_step),
    )
    paths = page.write_texts(out, dict(zip(FILES.values(), contents, strict=True)))
    return dict(zip(FILES, paths, strict=True))


def render(comparison: Comparison, word: Word, next_step: str) -> str:
    """The page as text. Every name in it is escaped."""
    settings, summary, verdict = (
        comparison.settings,
        comparison.summary,
        comparison.verdict,
    )
    methods = [each.method for each in settings.contestants]
    figures = {
        name: page.to_inline_svg(figure, name)
        for name, figure in draw_figures(comparison).items()
    }
    view = {
        "comparison": comparison,
        "settings": settings,
        "verdict": verdict,
        "scores": summary,
        "shown_settings": [(name, getattr(settings, name)) for name in SHOWN_SETTINGS],
        "sources": [(source.path, source.sha256) for source in settings.sources],
        "supervised": supervised_name(summary),
        "next_step": next_step,
        "protocol": protocol(settings),
        "rule": RULE,
        "interval_source": interval_source(summary),
        "names": ranked(summary),
        "long_names": {each.name: title_of(each) for each in settings.contestants},
        "titles": {each.name: each.method.title for each in settings.contestants},
        "failed": comparison.failures,
        "methods": dict.fromkeys((method.name, method.sentence) for method in methods),
        "measures": {
            name: COMPARISON_MEASURES[name] for name in known_measures(summary)
        },
        "figures": figures,
        "curves": _curves(comparison, figures),
        "confusion": comparison.confusion,
    }
    filters: dict[str, Any] = {
        "interval": interval_text,
        "last_line": last_line,
        "number": lambda value, measure: page.with_minus(number_text(value, measure)),
        "word": word,
        "worse_text": worse_text,
    }
    return page.fill(
        "comparison.html.j2", view, __package__, comparison.results, **filters
    )


def draw_figures(comparison: Comparison) -> dict[str, Figure]:
    """All figures of the page by name: differences, learning curves."""
    figures = {}
    summary = comparison.summary
    every = [each.method for each in summary.differences]
    drawn = {"difference": (ERROR, comparison.on_curves)}
    drawn |= {f"difference-{measure}": (measure, every) for measure in DECISIVE}
    for name, (measure, methods) in drawn.items():
        if display := differences(comparison, measure, methods):
            text = f"{display.score_name} minus that of {supervised_name(summary)}."
            height = 1.2 + 0.38 * len(display.differences)
            figures[name] = page.draw_display(display, 5.8, height, text)
    for curve in VARIED:
        for measure in CURVE_MEASURES:
            shown = [
                p for p in comparison.points if (p.curve, p.measure) == (curve, measure)
            ]
            axis = COMPARISON_MEASURES[measure].axis
            lines = display_points(shown, VARIED[curve], axis)
            if (
                max(map(len, lines.sizes.values()), default=0) > 1
            ):  # there are points to connect
                text = f"{axis} by {curve} rows; curves.csv has the numbers."
                figures[f"curve-{curve}-{measure}"] = page.draw_display(
                    lines, 4.8, 3.2, text
                )
    return figures


def _curves(comparison: Comparison, figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Title, figures, and the smallest and the largest point of every curve that is drawn."""
    views = []
    for curve in VARIED:
        drawn = [
            svg for name, svg in figures.items() if name.startswith(f"curve-{curve}-")
        ]
        if drawn:
            shown = [point for point in comparison.points if point.curve == curve]
            ends = [end(shown, key=lambda point: point.size) for end in (min, max)]
            view = {"title": f"More {curve} rows", "figures": drawn, "ends": ends}
            views.append({**view, "is_of_labels": curve == LABELED_CURVE})
    return views


def differences(
    comparison: Comparison, measure: str, methods: Sequence[str]
) -> ComparisonDisplay | None:
    """Contestants less the supervised one: repeats as dots, corrected intervals as bars.

    None without two contestants that have the measure.
    """
    summary = comparison.summary
    paired, intervals = {}, {}
    for each in summary.differences:
        if each.measure == measure and each.method in methods and summary.baseline:
            values = summary.repeats[each.method, measure]
            values = values - summary.repeats[summary.baseline, measure]
            values = values[np.isfinite(values)]
            if values.size:
                paired[each.method], intervals[each.method] = (
                    values,
                    (each.low, each.high),
                )
    if not paired:
        return None
    return ComparisonDisplay(
        differences=paired,
        baseline=summary.baseline or "",
        score_name=COMPARISON_MEASURES[measure].axis,
        greater_is_better=not COMPARISON_MEASURES[measure].lower_is_better,
        intervals=intervals,
    )
