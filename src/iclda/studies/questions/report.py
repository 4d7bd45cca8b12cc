"""Answers to the open questions, from stored rows: sentences, tables, figures and a page."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import Array
from ...datasets import BENCHMARKS
from ...methods import INK, find_method
from ...plots._look import class_color, method_styles
from .. import paper
from ..page import csv_text, fill, new_figure, save, styled, to_inline_svg, with_minus, write_texts
from ..store import STORE, FitResult, Store
from . import CANDIDATES, FAMILIES, KIND, N_STARTS, QUESTIONS, WEIGHTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = dict[tuple[str, int, int], dict[str, Any]]  # by set, part and repeat, then by method
_GAUSSIAN_WIDTH = np.sqrt(2 / np.pi)  # of 0.399 and 0.5: half a normal distribution
_SIZES = {50: "d/2", 100: "d", 200: "2d", 400: "4d"}
_SMALLEST_LEAF = 0.1  # of all cases, in which a rule names one method
_SEEN = ("labels of a class", "labels a feature", "features", "doubt", "kurtosis")


@dataclass
class Answer:
    """Answer to a question: sentences, tables (heading, then rows of texts) and a figure."""

    title: str
    sentences: list[str]
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    figure: Any = None
    description: str = ""


def values_of(rows: Iterable[FitResult], measure: str) -> Values:
    """Values of a measure by split and method."""
    found: Values = defaultdict(dict)
    for row in rows:
        if (value := row.values.get(measure)) is not None:
            found[row.dataset, row.part, row.repeat][row.method] = value
    return found


def _differences(values: Values, one: str, other: str) -> dict[tuple[str, int], Array]:
    """Differences of two methods by set and part, over the repeats that have both."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (dataset, part, _), by_method in values.items():
        if one in by_method and other in by_method:
            found[dataset, part].append(by_method[one] - by_method[other])
    return {key: np.array(each) for key, each in found.items()}


def _means(values: Values) -> dict[tuple[str, int], dict[str, float]]:
    """Means over repeats by set and part, then by method."""
    lists: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (dataset, part, _), by_method in values.items():
        for method, value in by_method.items():
            lists[dataset, part][method].append(value)
    return {k: {m: float(np.mean(v)) for m, v in each.items()} for k, each in lists.items()}


def _pooled(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.zeros(0), *parts])


def _share(flags: Any) -> str:
    """A share in percent, with its count."""
    flags = np.asarray(flags)
    if not len(flags):
        return "none of 0"
    return f"{int(flags.sum())} of {len(flags)} ({100 * flags.mean():.0f} %)"


def _points(values: Array) -> str:
    """Mean in percentage points with its standard error."""
    if len(values) < 2:
        return "unknown"
    return f"{_number(100 * values.mean(), 2, sign=True)} ± {_error(100 * values):.2f} points"


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _number(value: float, decimals: int = 2, *, sign: bool = False) -> str:
    return with_minus(f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}")


# 1 and 2: maxima.


def _uniqueness(rows: Mapping[str, list[FitResult]]) -> Answer:
    examples = {row.dataset: row.values for row in rows["example"]}
    sentences = []
    for name, values in examples.items():
        maxima = json.loads(values["maxima"])
        texts = [
            f"{_number(m['value'], 4)} at shares {', '.join(f'{s:.3f}' for s in m['shares'])} "
            f"(gap {m['gap']:.0e}, slopes {', '.join(_number(s, 3) for s in m['slopes'])}, "
            f"curvature {', '.join(_number(c, 3) for c in m['curvature'])})"
            for m in maxima
        ]
        sentences.append(f"The {name} counterexample has maxima {'; '.join(texts)}.")
    starts = [row for row in rows["maxima"] if row.method == "starts" and row.values["maxima"]]
    several = [row for row in starts if row.values["maxima"] > 1]
    for kind, chosen in _kinds(starts).items():
        is_several = [row.values["maxima"] > 1 for row in chosen]
        sentences.append(f"Several maxima in {_share(is_several)} {kind}.")
    if several:
        spread = _column(several, "nll_labeled_worst") - _column(several, "nll_labeled_best")
        sentences.append(
            f"Where there are several, the lowest and the best differ by {np.median(spread):.3f} "
            f"in labeled loss (median; largest {spread.max():.2f}), by "
            f"{np.median(np.abs(_gain(several, 'nll', 'worst'))):.3f} in test loss and by "
            f"{100 * np.mean(np.abs(_gain(several, 'error', 'worst'))):.1f} points in error (mean)."
        )
        missed = [r for r in several if r.values["nll_labeled_start"] > _best(r) + 1e-5]
        error, loss = (_gain(missed, measure, "start") for measure in ("error", "nll"))
        sentences.append(
            f"The supervised start misses the best one in {_share_of(missed, several)}. There the "
            f"best has a test error of {_points(error)} against it (lower in "
            f"{int((error < 0).sum())}, higher in {int((error > 0).sum())}) and a test loss "
            f"lower in {_share(loss < 0)}."
        )
        sentences.append(_search_sentence(rows["maxima"], several))
    table = [["problems", "several maxima", "most", "labeled loss", "error, best − start"]]
    for name, chosen in _by_problem(starts).items():
        found = _column(chosen, "maxima")
        spread = _column(chosen, "nll_labeled_worst") - _column(chosen, "nll_labeled_best")
        change = _gain(chosen, "error", "start")
        table.append(
            [name, f"{100 * (found > 1).mean():.0f} %", f"{found.max():.0f}"]
            + [f"{spread.mean():.3f}", f"{_number(100 * change.mean(), 1, sign=True)}"]
        )
    return Answer(
        "Is the optimum unique? No",
        sentences,
        {"Share of problems with several maxima": table},
        _draw_examples(examples),
        "Objective of two counterexamples over all labelings of their unlabeled rows",
    )


def _kinds(rows: Sequence[FitResult]) -> dict[str, list[FitResult]]:
    """Rows of drawn problems, and of benchmark sets by number of labels."""
    found: dict[str, list[FitResult]] = {
        "drawn problems": [row for row in rows if row.dataset not in BENCHMARKS]
    }
    for part in sorted({row.part for row in rows if row.dataset in BENCHMARKS}):
        name = f"splits of benchmark sets with {_SIZES[part]} labels"
        found[name] = [row for row in rows if row.dataset in BENCHMARKS and row.part == part]
    return found


def _by_problem(rows: Sequence[FitResult]) -> dict[str, list[FitResult]]:
    found: dict[str, list[FitResult]] = defaultdict(list)
    for row in rows:
        is_set = row.dataset in BENCHMARKS
        found[f"{row.dataset}, {_SIZES[row.part]}" if is_set else row.dataset].append(row)
    return found


def _column(rows: Sequence[FitResult], name: str) -> Array:
    return np.array([row.values[name] for row in rows], dtype=float)


def _gain(rows: Sequence[FitResult], measure: str, other: str) -> Array:
    """The measure at the best maximum less that at another."""
    return _column(rows, f"{measure}_best") - _column(rows, f"{measure}_{other}")


def _best(row: FitResult) -> float:
    return float(row.values["nll_labeled_best"])


def _share_of(some: Sequence[Any], all_: Sequence[Any]) -> str:
    return f"{len(some)} of {len(all_)} ({100 * len(some) / len(all_):.0f} %)"


def _search_sentence(rows: Sequence[FitResult], several: Sequence[FitResult]) -> str:
    default = {row.cell: row.values for row in rows if row.method == "default"}
    pairs = [(row, default[row.cell]) for row in several if "nll_labeled" in default[row.cell]]
    excess = np.array([values["nll_labeled"] - _best(row) for row, values in pairs])
    return (
        f"The default search ends below the best of {1 + N_STARTS} local ascents in "
        f"{_share(excess > 1e-5)} of these problems, and above it in {int((excess < -1e-5).sum())}."
    )


@styled
def _draw_examples(examples: Mapping[str, Any]) -> Figure:
    figure, [[left, right]] = new_figure(8.4, 3.4, 1, 2)
    color = find_method("iclda").color
    for axes, name in ((left, "smallest"), (right, "deep")):
        grid = np.array(json.loads(examples[name]["grid"]))
        maxima = json.loads(examples[name]["maxima"])
        axis = np.linspace(0, 1, len(grid) if name == "smallest" else round(np.sqrt(len(grid))))
        if name == "smallest":
            axes.plot(axis, grid, color=color)
            axes.plot(
                [m["shares"][0] for m in maxima], [m["value"] for m in maxima], "o", color=INK
            )
            middle = [m["value"] for m in maxima]
            axes.set_ylim(min(middle) - 0.006, max(middle) + 0.002)
            axes.set(title="A: −1, 1   B: 0   unlabeled: 10", ylabel="log likelihood of the labels")
            axes.set_xlabel("share of the unlabeled row in B")
            continue
        square = grid.reshape(len(axis), len(axis)).T
        drawn = axes.contour(axis, axis, square, levels=14, cmap="viridis", linewidths=1)
        axes.clabel(drawn, fontsize=7)
        axes.plot(*np.array([m["shares"] for m in maxima]).T, "o", color=INK, clip_on=False)
        axes.set(title="A: (0, 3), (1, 3)   B: (1, 0), (2, 0)", aspect="equal")
        axes.set(xlabel="share of (3, 0) in B", ylabel="share of (3, 2) in B")
    return figure


def _places(rows: Mapping[str, list[FitResult]]) -> Answer:
    fits = [row for row in rows["maxima"] if "kind" in row.values]
    sentences, table = [], [["problems", "hard", "two classes tied", "interior", "fractional rows"]]
    two = [row for row in fits if not row.dataset.startswith("classes")]
    more = [row for row in fits if row.dataset.startswith("classes")]
    for name, chosen in {"two classes": two, "three and five classes": more}.items():
        if chosen:
            kinds = np.array([row.values["kind"] for row in chosen])
            sentences.append(
                f"With {name} {_share(kinds == 'hard')} of the fits have hard labels but for a few "
                f"rows, {_share(kinds == 'interior')} lie inside the attainable set"
                + (
                    f", {_share(kinds == 'tied')} have tied classes beside hard ones."
                    if more is chosen
                    else "."
                )
            )
    hard = [row for row in fits if row.values["kind"] == "hard"]
    if hard:
        used = _column(hard, "fractional") / _column(hard, "bound")
        sentences.append(
            f"With hard labels {np.mean(_column(hard, 'fractional')):.1f} rows are fractional on "
            f"average, {used.mean():.0%} of the (K − 1)(d + 1) that theory allows; at most "
            f"{used.max():.0%}."
        )
    for name, chosen in _by_problem(fits).items():
        kinds = [row.values["kind"] for row in chosen]
        shares = [
            f"{100 * kinds.count(k) / len(kinds):.0f} %" for k in ("hard", "tied", "interior")
        ]
        soft = [row for row in chosen if row.values["kind"] == "hard"]
        counts = (
            f"{_column(soft, 'fractional').mean():.1f} of {soft[0].values['bound']}"
            if soft
            else "–"
        )
        table.append([name, *shares, counts])
    figure = _draw_often([r for r in rows["maxima"] if r.method == "starts"], fits)
    return Answer(
        "Where do the maxima lie?",
        sentences,
        {"Kinds of optima of the default fit": table},
        figure,
        "Share of drawn problems with several maxima and with interior optima",
    )


@styled
def _draw_often(starts: Sequence[FitResult], fits: Sequence[FitResult]) -> Figure:
    figure, grid = new_figure(8.8, 4.6, 2, 4)
    several, interior = defaultdict(list), defaultdict(list)
    for row in starts:
        several[row.dataset].append(row.values["maxima"] > 1)
    for row in fits:
        interior[row.dataset].append(row.values["kind"] == "interior")
    lines = {"several maxima": (several, class_color(0)), "interior": (interior, class_color(1))}
    base = {"labels": 10, "d": 5, "unlabeled": 100, "separation": 2, "share": 0.5, "classes": 2}
    for axes, (name, settings) in zip(grid.flat, FAMILIES.items(), strict=False):
        for label, (flags, color) in lines.items():
            points = {s: np.mean(flags[f"{name} {s}"]) for s in settings if f"{name} {s}" in flags}
            points[base.get(name, "normal")] = np.mean(flags["base"]) if "base" in flags else np.nan
            if name != "tails":
                points = dict(sorted(points.items()))
            axes.plot(
                [str(s) for s in points], list(points.values()), "o-", color=color, label=label
            )
        axes.set(title=name, ylim=(-0.03, 1.03), yticks=[0, 0.5, 1])
        axes.tick_params(axis="x", labelrotation=30 if name == "tails" else 0)
    grid[-1, -1].axis("off")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    grid[-1, -1].legend(handles, labels, frameon=False, loc="center", title="share of problems")
    return figure


# 3: constraints.


def _constraints(rows: Mapping[str, list[FitResult]]) -> Answer:
    chosen = rows["constraints"]
    names = ("width", "width_between", "narrowest", "widest", "rank")
    widths = {name: _means(values_of(chosen, name)) for name in names}
    loss, error = (
        _differences(values_of(chosen, measure), "ICLDA", "MCLDA-likelihood")
        for measure in ("nll", "error")
    )
    excess = {
        key: each["MCLDA-likelihood"] for key, each in _means(values_of(chosen, "excess")).items()
    }
    table = [["set", "mean width", "between classes", "narrowest", "widest", "volume at most"]]
    table[0] += ["MCLDA outside by", "loss, ICLDA − MCLDA", "error"]
    for key in widths["width"]:
        cells = [widths[name][key]["widths"] for name in names]
        volume = cells[0] ** cells[-1]
        table.append(
            [key[0], *(f"{w:.2f}" for w in cells[:4]), f"{volume:.1e}", f"{excess[key] - 1:+.0%}"]
            + [_number(loss[key].mean(), 2, sign=True), _points(error[key]).removesuffix(" points")]
        )
    keys = list(widths["width"])
    pooled = [widths["width"][key]["widths"] for key in keys]
    apart = [loss[key].mean() for key in keys]
    outside = values_of(chosen, "excess").values()
    sentences = [
        f"At equal weights the attainable set is {np.mean(pooled):.2f} times as wide as the set that "
        f"the moments allow, on average over random directions and the sets ({min(pooled):.2f} to "
        f"{max(pooled):.2f}); for a normal direction it would be {_GAUSSIAN_WIDTH:.3f}, for two "
        "points 1.",
        f"The constrained-likelihood MCLDA lies outside the attainable set in "
        f"{_share([e['MCLDA-likelihood'] > 1 for e in outside])} splits with 2d labels.",
        f"ICLDA has the lower test loss on {sum(a < 0 for a in apart)} of {len(keys)} sets, and the "
        f"lower error on {sum(error[key].mean() < 0 for key in keys)}.",
    ]
    if len(keys) > 2:
        by_excess = np.corrcoef([excess[key] for key in keys], apart)[0, 1]
        by_width = np.corrcoef(pooled, apart)[0, 1]
        sentences.append(
            f"Over the sets that difference of losses correlates with the excess of MCLDA by "
            f"{_number(by_excess)}, with the mean width by {_number(by_width)}."
        )
    return Answer(
        "What do implicit constraints add to moment constraints?",
        sentences,
        {"Widths over those that the moments allow, at 2d labels": table},
        _draw_widths({key[0]: [widths[n][key]["widths"] for n in names[:4]] for key in keys}),
        "Width of the attainable set over that of the moment constraints, by data set",
    )


@styled
def _draw_widths(widths: Mapping[str, list[float]]) -> Figure:
    figure, [[axes]] = new_figure(7.2, 0.7 + 0.3 * len(widths))
    places = np.arange(len(widths))[::-1]
    mean, between, least, most = np.array(list(widths.values())).reshape(-1, 4).T
    axes.hlines(places, least, most, color=class_color(0), linewidth=3, alpha=0.35)
    axes.plot(mean, places, "o", color=class_color(0), label="mean of random directions")
    axes.plot(between, places, "D", color=class_color(1), label="between the class means")
    axes.axvline(_GAUSSIAN_WIDTH, color=INK, linewidth=0.8, linestyle=":", label="normal direction")
    axes.set(yticks=places, yticklabels=list(widths), xlim=(0, 1.02))
    axes.set_xlabel("width over that of the moment constraints; bars: principal directions")
    axes.legend(frameon=False, loc="lower left", fontsize=8)
    return figure


# 4: safety.


def _safety(rows: Mapping[str, list[FitResult]]) -> Answer:
    chosen = rows["safety"]
    errors, losses = (values_of(chosen, measure) for measure in ("error", "nll"))
    methods = [m for m in QUESTIONS["safety"].methods if m != paper.BASELINE]
    parts = sorted({row.part for row in chosen})
    shares: dict[str, dict[str, list[float]]] = {"error": {}, "loss": {}}
    tables = {}
    for measure, values in {"error": errors, "loss": losses}.items():
        table = [["set", *(f"{m}, {_SIZES[p]}" for p in (200,) for m in methods)]]
        worse = {m: _differences(values, m, paper.BASELINE) for m in methods}
        shares[measure] = {
            m: [
                float((_pooled(d for (_, p), d in worse[m].items() if p == part) > 0).mean())
                for part in parts
            ]
            for m in methods
        }
        for dataset in dict.fromkeys(row.dataset for row in chosen):
            cells = [worse[m].get((dataset, 200), np.zeros(0)) for m in methods]
            table.append(
                [dataset, *(f"{100 * (c > 0).mean():.0f} %" if len(c) else "–" for c in cells)]
            )
        tables[f"Repeats with a higher {measure} than supervised LDA, 2d labels"] = table
    sentences = []
    for part in parts:
        i = parts.index(part)
        texts = [f"{m} {shares['error'][m][i]:.0%} ({shares['loss'][m][i]:.0%})" for m in methods]
        sentences.append(
            f"With {_SIZES[part]} labels the share of repeats worse than supervised LDA in error "
            f"(in loss) is {', '.join(texts)}."
        )
    gain, worst, apart = (values_of(chosen, name) for name in ("gain", "worst", "disagreement"))
    broken = [v[m] < worst[k][m] - 1e-9 for k, v in gain.items() for m in v]
    texts = []
    for method in methods:
        slack = [gain[key][method] - worst[key][method] for key in gain if method in gain[key]]
        known = [gain[key][method] for key in gain if method in gain[key]]
        texts.append(
            f"{method} {_number(np.median(known))}, bound {_number(np.median(known) - np.median(slack))}"
        )
    sentences.append(
        f"The change of the training likelihood per row with the true labels, and its worst case "
        f"(medians): {'; '.join(texts)}. The bound failed in {int(np.sum(broken))} of {len(broken)}."
    )
    bounded = _differences(errors, "ICLDA", paper.BASELINE)
    reached = np.abs(_pooled(bounded.values()))
    allowed = np.array([v["ICLDA"] for v in apart.values() if "ICLDA" in v])
    cost = _pooled(_differences(errors, "MCPLDA", "ICLDA").values())
    cost_loss = _pooled(_differences(losses, "MCPLDA", "ICLDA").values())
    sentences += [
        f"ICLDA and supervised LDA disagree on {allowed.mean():.0%} of the unlabeled rows, and their "
        f"test errors differ by {100 * reached.mean():.1f} points: the bound of the error is "
        f"{allowed.mean() / max(reached.mean(), 1e-9):.0f} times the difference.",
        f"Pessimistic LDA against ICLDA: error {_points(cost)}, lower loss in "
        f"{_share(cost_loss < 0)}.",
    ]
    return Answer(
        "How safe are the methods?",
        sentences,
        tables,
        _draw_lines(
            {"error": shares["error"], "loss": shares["loss"]},
            [_SIZES[part] for part in parts],
            "labels",
            "share of repeats worse than LDA",
        ),
        "Share of repeats in which a method is worse than supervised LDA, by number of labels",
    )


@styled
def _draw_lines(
    panels: Mapping[str, Mapping[str, Sequence[float]]], x: Sequence[Any], xlabel: str, ylabel: str
) -> Figure:
    """Draw a line for each method in every panel, with a common legend."""
    figure, [axes] = new_figure(3.6 * len(panels) + 1.6, 3.2, 1, len(panels))
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, style in method_styles(lines).items():
            axis.plot([str(each) for each in x], lines[name], label=name, **style)
        axis.set(title=title, xlabel=xlabel)
    axes[0].set_ylabel(ylabel)
    axes[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=8)
    return figure


# 5: EM.


def _em(rows: Mapping[str, list[FitResult]]) -> Answer:
    errors = _means(values_of(rows["em"], "error"))
    weights = _means(values_of(rows["em"], "weight"))
    names = ("LDA", paper.PUBLISHED_EM, "EMLDA", "em x cv")
    table = [["set", "LDA", "as published", "as defined", "weight by CV", "weight", "best weight"]]
    for key, by_method in errors.items():
        best = min(by_method[m] for m in by_method if m.startswith("em x") and m != "em x cv")
        table.append(
            [key[0], *(f"{by_method[m]:.3f}" for m in names), f"{weights[key]['em x cv']:.2f}"]
            + [f"{min(best, by_method['EMLDA']):.3f}"]
        )
    sets = [key for key in errors if key[0] in BENCHMARKS]
    mean = {name: np.mean([errors[key][name] for key in sets]) for name in names}
    above = {name: sum(errors[key][name] > errors[key]["LDA"] for key in sets) for name in names}
    across = next((errors[key] for key in errors if key[0] == "across clusters"), None)
    sentences = [
        f"On {len(sets)} benchmark sets with 2d labels the mean error of supervised LDA is "
        f"{mean['LDA']:.3f}; of EM as published {mean[names[1]]:.3f} (above LDA on "
        f"{above[names[1]]} sets), as defined {mean['EMLDA']:.3f} ({above['EMLDA']}), with the "
        f"weight of unlabeled rows chosen by cross-validation {mean['em x cv']:.3f} "
        f"({above['em x cv']})."
    ]
    if across:
        sentences.append(
            f"Where the class boundary runs across the clusters, EM has an error of "
            f"{across['EMLDA']:.3f}, with the chosen weight {across['em x cv']:.3f}, supervised LDA "
            f"{across['LDA']:.3f}."
        )
    return Answer(
        "EM without the fault",
        sentences,
        {f"Mean error; weights tried: {', '.join(map(str, WEIGHTS))}": table},
        _draw_dots({key[0]: [errors[key][n] for n in names] for key in errors}, names),
        "Error of EM as published, as defined and with a chosen weight, by data set",
    )


@styled
def _draw_dots(values: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
    figure, [[axes]] = new_figure(7.2, 0.7 + 0.3 * len(values))
    places = np.arange(len(values))[::-1]
    for name, column, marker in zip(names, np.array(list(values.values())).T, "|xoD", strict=True):
        color = method_styles([name.removesuffix("-as-published").removesuffix(" x cv")])
        style = next(iter(color.values()))["color"]
        axes.plot(
            column, places, marker, color=style, label=name, markersize=8 if marker == "|" else 5
        )
    axes.set(yticks=places, yticklabels=list(values), xlabel="error")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
    return figure


# 6: proportions.


def _proportions(rows: Mapping[str, list[FitResult]]) -> Answer:
    errors, off = (values_of(rows["proportions"], name) for name in ("error", "off"))
    parts = sorted({row.part for row in rows["proportions"]})
    panels: dict[str, dict[str, list[float]]] = {"tables": {}, "features": {}}
    sentences = []
    for panel, lines in panels.items():
        is_in = {k: v for k, v in errors.items() if (k[0] in BENCHMARKS) == (panel == "tables")}
        for method in QUESTIONS["proportions"].methods:
            lines[method] = [
                float(
                    np.mean(
                        [v[method] for k, v in is_in.items() if k[1] == p and method in v]
                        or [np.nan]
                    )
                )
                for p in parts
            ]
        for method in ("em", "iclda"):
            gains = [
                (
                    p,
                    _pooled(
                        d
                        for (s, q), d in _differences(is_in, f"{method} true", method).items()
                        if q == p
                    ),
                )
                for p in parts
            ]
            texts = [
                f"{p}: {_number(100 * g.mean(), 1, sign=True)} ± {_error(100 * g):.1f}"
                for p, g in gains
                if len(g) > 1
            ]
            if texts:
                sentences.append(
                    f"True proportions change the error of {method} on {panel}, by labels of a class, in points: {'; '.join(texts)}."
                )
    texts = []
    for p in parts:
        known = {
            m: np.mean([v[m] for k, v in off.items() if k[1] == p and m in v])
            for m in ("em", "em labeled", "em auto", "iclda")
        }
        texts.append(f"{p}: " + ", ".join(f"{m} {v:.3f}" for m, v in known.items()))
    sentences.append(
        f"Distance of the predicted shares from the true ones (total variation): {'; '.join(texts)}."
    )
    table = [["labels of a class", *QUESTIONS["proportions"].methods]]
    tables = {}
    for panel, lines in panels.items():
        body = [[str(p), *(f"{lines[m][i]:.3f}" for m in lines)] for i, p in enumerate(parts)]
        tables[f"Mean error on {panel}"] = [*table, *body]
    shown = {
        panel: {
            m: v
            for m, v in lines.items()
            if m in ("supervised", "em", "em auto", "em true", "iclda", "iclda auto", "iclda true")
        }
        for panel, lines in panels.items()
    }
    return Answer(
        "How much do the proportions matter?",
        sentences,
        tables,
        _draw_lines(shown, parts, "labels of a class", "error"),
        "Error against labels, with free and with imposed proportions",
    )


# 7: which method when.

Case = tuple[str, int]  # table and number of labels


@dataclass(frozen=True)
class Rule:
    """Up to three questions: one, and one more for each answer; ``below`` and ``above`` differ."""

    feature: str
    threshold: float
    below: Any  # Rule, or the name of a method
    above: Any

    def choose(self, seen: Mapping[str, float]) -> str:
        """Return the method for what is seen."""
        side = self.below if seen[self.feature] <= self.threshold else self.above
        return side.choose(seen) if isinstance(side, Rule) else str(side)

    def __str__(self) -> str:
        texts = [
            f"({each})" if isinstance(each, Rule) else each for each in (self.below, self.above)
        ]
        return f"{self.feature} ≤ {self.threshold:.3g}: {texts[0]}; else {texts[1]}"


def find_rule(
    seen: Mapping[Case, Mapping[str, float]], regrets: Mapping[Case, Mapping[str, float]]
) -> Rule | str:
    """Find the rule of at most three questions with the lowest mean regret."""
    cases = [case for case in regrets if case in seen]
    methods = [m for m in CANDIDATES if all(m in regrets[case] for case in cases)]
    costs = np.array([[regrets[case][m] for m in methods] for case in cases])
    columns = {name: np.array([seen[case][name] for case in cases]) for name in _SEEN}
    splits = [
        (name, float(t), column <= t)
        for name, column in columns.items()
        for t in np.unique(np.quantile(column, (0.2, 0.35, 0.5, 0.65, 0.8)))
    ]
    fewest = _SMALLEST_LEAF * len(cases)

    def best(is_in: Any, depth: int) -> tuple[float, Any]:
        sums = costs[is_in].sum(axis=0)
        found: tuple[float, Any] = float(sums.min()), methods[int(sums.argmin())]
        for name, threshold, is_below in splits if depth else ():
            sides = is_in & is_below, is_in & ~is_below
            if min(side.sum() for side in sides) >= fewest:
                (one, below), (two, above) = (best(side, depth - 1) for side in sides)
                if one + two < found[0] - 1e-9 and below != above:
                    found = one + two, Rule(name, threshold, below, above)
        return found

    return best(np.ones(len(cases), dtype=bool), 2)[1]


def _methods(rows: Mapping[str, list[FitResult]]) -> Answer:
    chosen = rows["methods"]
    errors = _means(values_of(chosen, "error"))
    columns = {name: _means(values_of(chosen, name)) for name in _SEEN}
    seen = {
        case: {name: columns[name][case]["seen"] for name in _SEEN} for case in columns[_SEEN[0]]
    }
    regrets = {}
    for case, by_method in errors.items():
        least = min(by_method[m] for m in CANDIDATES if m in by_method)
        regrets[case] = {m: error - least for m, error in by_method.items()}
    groups = [{c for c in regrets if (c[0] in BENCHMARKS) == is_one} for is_one in (True, False)]
    sentences, tested = [], {}
    for found_on, tested_on, name in ((*groups, "benchmark sets"), (*groups[::-1], "other tables")):
        if found_on and tested_on:
            rule = find_rule(seen, {case: regrets[case] for case in found_on})
            for case in tested_on:
                method = rule.choose(seen[case]) if isinstance(rule, Rule) else rule
                tested[case] = regrets[case].get(method, np.nan)
            sentences.append(f"Rule found on the {name}: {rule}.")
    lines: dict[str, list[float]] = {}
    table = [["policy", "mean error", "mean regret", "worst regret", "wins", "seconds a fit"]]
    seconds = defaultdict(list)
    for row in chosen:
        seconds[row.method].append(row.seconds)
    parts = sorted({part for _, part in regrets})
    wins = [
        min((m for m in CANDIDATES if m in each), key=each.__getitem__) for each in regrets.values()
    ]
    policies = {
        m: {c: each[m] for c, each in regrets.items() if m in each} for m in (*CANDIDATES, "auto")
    }
    policies = {"rule, on data it was not found on": tested, **policies}
    for name, found in sorted(
        policies.items(), key=lambda item: np.nanmean(list(item[1].values()) or [9])
    ):
        if found:
            errors_of = [
                r + min(errors[c][m] for m in CANDIDATES if m in errors[c])
                for c, r in found.items()
            ]
            table.append(
                [
                    name,
                    f"{np.nanmean(errors_of):.3f}",
                    f"{100 * np.nanmean(list(found.values())):.1f}",
                    f"{100 * np.nanmax(list(found.values())):.1f}",
                    f"{wins.count(name)}",
                    f"{np.median(seconds[name]):.3f}" if name in seconds else "–",
                ]
            )
            lines[name] = [
                100 * float(np.nanmean([r for c, r in found.items() if c[1] == p] or [np.nan]))
                for p in parts
            ]
    order = [row[0] for row in table[1:]]
    sentences.append(
        f"On {len({c[0] for c in regrets})} tables and feature sets with {parts[0]} to {parts[-1]} "
        f"labels the lowest mean regret, the error above that of the best method of each case, has "
        f"{table[1][0]}: {table[1][2]} points; next {table[2][0]}: {table[2][2]}, {table[3][0]}: {table[3][2]}."
    )
    outsiders = [row for row in table[1:] if row[0].startswith("sklearn")]
    sentences.append(
        "Outsiders: "
        + "; ".join(f"{r[0]} {r[2]} points of regret, {r[5]} s a fit" for r in outsiders)
        + "."
    )
    shown = {name: lines[name] for name in order[:8]}
    return Answer(
        "Which method when?",
        sentences,
        {"Policies, in points of error": table},
        _draw_lines({"mean regret": shown}, parts, "labels", "points above the best method"),
        "Mean regret of methods against the number of labels",
    )


# The page.

_ANSWERS: dict[str, Callable[[Mapping[str, list[FitResult]]], Answer]] = {
    "uniqueness": _uniqueness,
    "maxima": _places,
    "constraints": _constraints,
    "safety": _safety,
    "em": _em,
    "proportions": _proportions,
    "methods": _methods,
}


def draw_answers(out: Path) -> dict[str, Any]:
    """Write tables, figures and report of the rows of a folder; return a summary as JSON."""
    with closing(Store(out / STORE, kind=KIND, read_only=True)) as store:
        settings, stored = paper.read_settings(store), store.settings()
        rows = {name: store.rows(name) for name in QUESTIONS}
    known = {name: [row for row in each if row.failure is None] for name, each in rows.items()}
    answers = {name: make(known) for name, make in _ANSWERS.items()}
    seconds = {name: stored.get(f"seconds_{name}", 0.0) for name in QUESTIONS}
    figures = {}
    for name, each in answers.items():
        save(each.figure, out / "figures" / name)
        figures[name] = to_inline_svg(each.figure, name, each.description)
        texts = {
            f"{name}-{i}.csv": csv_text(t[0], t[1:]) for i, t in enumerate(each.tables.values())
        }
        write_texts(out / "tables", texts)
    view = {"answers": answers, "figures": figures, "settings": settings, "seconds": seconds}
    view["is_partial"] = len({row.dataset for row in rows["methods"]}) < 20
    results = [row for each in rows.values() for row in each]
    page = fill("answers.html.j2", view, __package__, results)
    [path] = write_texts(out, {"report.html": page})
    return {
        "report": str(path),
        "answers": {
            name: {"question": a.title, "answer": a.sentences} for name, a in answers.items()
        },
        "failed_fits": sum(row.failure is not None for row in results),
        "seconds": sum(seconds.values()),
    }
