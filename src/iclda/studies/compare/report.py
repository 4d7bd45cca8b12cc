"""One self-contained page: the answer, the table it is about, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Array
from ..._messages import plural
from ..._statistics import ReliabilityCurve
from ...methods import FAINT
from ...plots import ComparisonDisplay, LearningCurveDisplay, ReliabilityDisplay
from ..drawing import new_figure, styled, to_inline_svg
from ..measures import COMPARED, EDGES, ERROR, LOSS
from ..page import NOTHING, Finding, duration, fill, with_minus
from .cell_fits import pooled_bins
from .findings import SHOWN_SETTINGS, Findings, failures, last_line
from .lines import fit_command, known_measures, number_text, protocol, ranked, worse_text
from .plan import LABELED, UNLABELED
from .summary import CURVE_MEASURES, DECISIVE, LOSS_DIFFERENCE, VARIED, SplitCurvePoint
from .verdict import HELPS, HURTS, RULE, SHARPENS, UNKNOWN, percent, points, share, supervised_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVE_TITLES = {UNLABELED: "More unlabeled rows", LABELED: "More labeled rows"}
_MOST_REMARKS = 12
_WIDE = 10  # times the typical difference in loss: a larger one is drawn on a logarithmic axis,
_DRAWABLE = 1000  # and one that exceeds the median so many times is left out


def render(findings: Findings) -> str:
    """The page as text. Every name in it is escaped."""
    settings, verdict = findings.settings, findings.verdict
    methods = [contestant.method for contestant in settings.contestants]
    view = {
        "headline": _headline(findings),
        "sentence": verdict.sentence,
        "also": verdict.also,
        "summary": " · ".join(
            [
                f"{settings.n_rows:,} rows, {plural(settings.n_labels, 'label')}",
                f"{plural(settings.repeats, 'repeat')} of {settings.folds} folds",
                f"{plural(len(findings.results), 'fit')} in {duration(findings.seconds)}",
            ]
        ),
        "notes": [],
        "findings": list(_cards(findings)),
        "source": ", ".join(source.path for source in settings.sources),
        "target": settings.target,
        "fit_command": fit_command(findings),
        "remarks": settings.remarks,
        "protocol": protocol(settings, findings.words),
        "rule": RULE,
        "chosen": verdict.method,
        "names": ranked(findings.summary),
        "titles": {each.name: each.method.title for each in settings.contestants},
        "scores": findings.summary,
        "failed": failures(findings.compared),
        "methods": list(dict.fromkeys((method.name, method.sentence) for method in methods)),
        "measures": {name: COMPARED[name] for name in known_measures(findings.summary)},
        "differences": _difference_figures(findings),
        "curves": _curves(findings),
        "n_curve_splits": settings.curve_splits,
        "reference": findings.reference,
        "reliability": _reliability_figure(findings),
        "said": _fit_remarks(findings),
        "run": _run(findings),
    }
    filters: dict[str, Any] = {"last_line": last_line, "number": _number, "worse_text": worse_text}
    return fill("comparison.html.j2", view, __package__, findings.results, **filters)


def _headline(findings: Findings) -> str:
    verdict = findings.verdict
    if verdict.kind == HELPS:
        return f"Yes, the unlabeled rows help: use {verdict.method}"
    if verdict.kind == SHARPENS:
        return f"The unlabeled rows make better probabilities: use {verdict.method} for these"
    if verdict.kind == UNKNOWN:
        return "No answer"
    stay = f"stay with {supervised_name(findings.summary)}"
    return f"No: {stay}" if verdict.kind == HURTS else f"No clear difference: {stay} for now"


def _rival(findings: Findings) -> str | None:
    """The contestant that is recommended, else the best that uses all rows."""
    summary = findings.summary
    if findings.verdict.kind in (HELPS, SHARPENS):
        return findings.verdict.method
    names = [each.name for each in findings.settings.contestants if each.method.uses_unlabeled]
    known = [name for name in names if summary.mean(name, ERROR) is not None]
    return min(known, key=summary.rank, default=None)


def _cards(findings: Findings) -> Iterator[Finding]:
    """Numbers to remember: error, repeats that were worse, confidence, loss."""
    name, summary = _rival(findings), findings.summary
    if name is None or summary.baseline is None:
        return
    supervised = supervised_name(summary)
    error, difference = summary.mean(name, ERROR), summary.difference(name, ERROR)
    error_supervised = summary.mean(summary.baseline, ERROR)
    if error is not None and error_supervised is not None and difference is not None:
        clear = {"better": "clearly lower", "worse": "clearly higher"}
        yield Finding(
            f"{percent(error_supervised)} \N{RIGHTWARDS ARROW} {percent(error)}",
            f"of new rows wrong: supervised LDA, and {name}",
            f"The difference is {points(difference.difference)} ({share(difference.low)} to "
            f"{share(difference.high)} with 95 % confidence): "
            f"{clear.get(difference.verdict, 'no clear difference')}.",
        )
    score = summary.score(name, ERROR)
    if score is not None and score.n_worse is not None:
        yield Finding(
            f"{score.n_worse} of {score.repeats}",
            f"repeats in which {name} was worse",
            "A repeat deals the labeled rows into folds anew. Worse: a higher error than "
            f"{supervised} over all folds.",
        )
    ours, theirs = (_confidence(findings, each) for each in (name, summary.baseline))
    if ours is not None:
        sure, right = map(percent, theirs or (0.0, 0.0))
        yield Finding(
            f"{percent(ours[0])} / {percent(ours[1])}",
            f"how sure {name} is, and how often right",
            f"S{supervised[1:]} is {sure} sure on average, and right in {right}.",
        )
    loss, loss_supervised = (summary.score(each, LOSS) for each in (name, summary.baseline))
    if loss and loss_supervised and loss.n_worse is not None:
        yield Finding(
            f"{loss.repeats - loss.n_worse} of {loss.repeats}",
            f"repeats in which {name} describes new rows better",
            f"Loss {_number(loss.mean, LOSS)} where supervised LDA has "
            f"{_number(loss_supervised.mean, LOSS)}: lower means that new rows of each class "
            "lie where the fitted class says they do.",
        )


def _bins(findings: Findings, name: str) -> Array:
    return pooled_bins(result for result in findings.compared if result.method == name)


def _confidence(findings: Findings, name: str) -> tuple[float, float] | None:
    """Mean probability of the predicted class, and the share of rows for which it was right."""
    n_rows, sure, right = _bins(findings, name).sum(axis=0)
    return (float(sure / n_rows), float(right / n_rows)) if n_rows else None


def _number(value: float | None, measure: str) -> str:
    return NOTHING if value is None else with_minus(number_text(value, measure))


def _fit_remarks(findings: Findings) -> list[str]:
    """Warnings of fits, the most frequent first."""
    fits = Counter(result.method for result in findings.results)
    warned = Counter(
        (result.method, text) for result in findings.results for text in result.remarks.splitlines()
    )
    return [
        f"{method}, {count:,} of {fits[method]:,} fits: {text}"
        for (method, text), count in warned.most_common(_MOST_REMARKS)
    ]


def _run(findings: Findings) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of names and values: how to run the same again."""
    settings = findings.settings
    run = [
        ("Command", "; ".join(settings.commands)),
        *((name, str(getattr(settings, name))) for name in (*SHOWN_SETTINGS, "jobs")),
        ("machine", settings.machine),
        ("last run began", settings.began),
        ("Time", duration(findings.seconds)),
    ]
    versions = [(name, str(number)) for name, number in settings.versions.items()]
    hashes = [(source.path, source.sha256) for source in settings.sources]
    return [("Run", run), ("Versions", versions), ("Data (SHA-256)", hashes)]


@styled
def draw(display: Any, width: float, height: float, *, is_loss: bool = False) -> Figure:
    """A display of ``iclda.plots`` in a figure of its own."""
    figure, grid = new_figure(width, height)
    if is_loss:
        _set_loss_axis(grid[0, 0], display)
    display.plot(ax=grid[0, 0])
    return figure


def _difference_figures(findings: Findings) -> list[Any]:
    figures = []
    for name in DECISIVE:
        if display := differences(findings, name):
            figure = draw(display, 5.8, 1.2 + 0.38 * len(display.differences))
            description = f"{COMPARED[name].heading} less that of supervised LDA"
            figures.append(to_inline_svg(figure, f"difference-{name}", description))
    return figures


def _reliability_figure(findings: Findings) -> Any:
    """How often contestants are right when they are so sure, over all test rows."""
    names = dict.fromkeys((findings.summary.baseline, _rival(findings)))
    bins = {name: _bins(findings, name) for name in names if name}
    curves = {n: ReliabilityCurve.from_sums(EDGES, b) for n, b in bins.items() if b.any()}
    if not curves:
        return None
    figure = draw(ReliabilityDisplay(curves=curves), 4.6, 4.4)
    return to_inline_svg(figure, "reliability", "How sure, and how often right")


def _curves(findings: Findings) -> list[dict[str, Any]]:
    names = {name: measure.heading for name, measure in COMPARED.items()}
    names[LOSS_DIFFERENCE] = f"loss minus that of {findings.reference}"
    views = []
    for curve, title in _CURVE_TITLES.items():
        figures = [
            to_inline_svg(
                draw(display, 4.8, 3.2, is_loss=name == LOSS_DIFFERENCE),
                f"curve-{curve}-{name}",
                f"{names[name]}: {title.lower()}",
            )
            for name in CURVE_MEASURES
            if (display := learning_curve(findings.points, curve, name, findings.reference))
        ]
        if figures:
            views.append({"title": title, "figures": figures, "note": _curve_note(findings, curve)})
    return views


def _curve_note(findings: Findings, curve: str) -> str:
    shown = [point for point in findings.points if point.curve == curve]
    first, last = (end(shown, key=lambda point: point.size) for end in (min, max))
    if curve == UNLABELED:
        note = f"With {first.n_labeled:,} labeled rows throughout; 0 is a fit to these alone."
    elif first.n_unlabeled == last.n_unlabeled:
        note = f"With {last.n_unlabeled:,} unlabeled rows throughout."
    else:
        note = (
            "Rows whose label is not used train as unlabeled ones: "
            f"{first.n_unlabeled:,} on the left, {last.n_unlabeled:,} on the right."
        )
    missing = [
        f"{point.method} at {point.size:,} rows ({with_minus(f'{point.mean:,.3g}')})"
        for point in undrawn(findings.points, curve)
    ]
    if missing:
        note += (
            " Left out of the figure of the loss, because beside them the other points could not "
            f"be told apart: {', '.join(missing)}."
        )
    return note


def differences(findings: Findings, measure: str) -> ComparisonDisplay | None:
    """Every contestant less the supervised one: repeats as dots, corrected intervals as bars.

    None without two contestants that have the measure.
    """
    summary = findings.summary
    paired, intervals = {}, {}
    for found in summary.differences:
        if found.measure == measure and summary.baseline:
            ours, theirs = (summary.repeats[n, measure] for n in (found.method, summary.baseline))
            values = ours - theirs
            values = values[np.isfinite(values)]
            if values.size:
                paired[found.method], intervals[found.method] = values, (found.low, found.high)
    if not paired:
        return None
    return ComparisonDisplay(
        differences=paired,
        baseline=summary.baseline or "",
        score_name=COMPARED[measure].axis,
        greater_is_better=not COMPARED[measure].lower_is_better,
        intervals=intervals,
    )


def learning_curve(
    points: Sequence[SplitCurvePoint], curve: str, measure: str, reference: str | None = None
) -> LearningCurveDisplay | None:
    """One measure against the number of unlabeled, or of labeled, rows.

    A loss is that above the one of ``reference``. None if there are no two points to connect.
    """
    left_out = undrawn(points, curve) if measure == LOSS_DIFFERENCE else []
    lines: dict[str, list[SplitCurvePoint]] = {}
    for point in points:
        if (point.curve, point.measure) == (curve, measure) and point not in left_out:
            lines.setdefault(point.method, []).append(point)
    if max(map(len, lines.values()), default=0) < 2:
        return None
    sizes, means, errors = (
        {name: np.array([getattr(p, f) for p in line], dtype) for name, line in lines.items()}
        for f, dtype in (("size", int), ("mean", float), ("se", float))
    )
    is_loss = measure == LOSS_DIFFERENCE
    return LearningCurveDisplay(
        sizes=sizes,
        means=means,
        standard_errors=errors,
        varied=VARIED[curve],
        score_name=f"Loss minus that of {reference}" if is_loss else COMPARED[measure].axis,
    )


def undrawn(points: Sequence[SplitCurvePoint], curve: str) -> list[SplitCurvePoint]:
    """Points so far off in loss that the others could not be told apart beside them."""
    shown = [point for point in points if (point.curve, point.measure) == (curve, LOSS_DIFFERENCE)]
    most = _DRAWABLE * _median_size(np.array([point.mean for point in shown]))
    return [point for point in shown if abs(point.mean) > most]


def _median_size(differences: Array) -> float:
    """The median; differences of the reference to itself do not count."""
    sizes = np.abs(differences[differences != 0])
    return float(np.median(sizes)) if sizes.size else 0.0


def _set_loss_axis(ax: Any, display: LearningCurveDisplay) -> None:
    """Scale and ends of the axis; bands of fits that vary wildly are cut off."""
    spreads = display.standard_errors or {}
    # Less than a standard error is noise, and says nothing about magnitudes.
    rivals = [
        max(_median_size(mean), _median_size(np.nan_to_num(spreads[name])))
        for name, mean in display.means.items()
        if mean.any()
    ]
    typical = sorted(rivals)[(len(rivals) - 1) // 2] if rivals else 1.0
    means = np.concatenate(list(display.means.values()))
    errors = np.nan_to_num(np.concatenate(list(spreads.values())))
    reach = max(np.abs(means).max(), _WIDE * typical)
    ends = np.clip([*(means - errors), *(means + errors), 0.0], -reach, reach)
    if reach > _WIDE * typical:
        ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(typical)))
        ax.yaxis.set_major_formatter(lambda value, _: with_minus(f"{value:,g}"))
        ax.axhline(0, color=FAINT, linewidth=0.6)
    scale = ax.transScale
    low, high = (scale.transform((1, end))[1] for end in (ends.min(), ends.max()))
    margin = 0.05 * (high - low) or 1.0
    inverse = scale.inverted()
    ax.set_ylim(*(inverse.transform((1, end))[1] for end in (low - margin, high + margin)))
