"""The numbers in sentences that fit what was run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from ..._messages import and_list, plural
from ..measures import paper_measures
from ..page import Finding, signed, with_minus
from .curves import PublishedDifference
from .published import (
    BASELINE,
    GAUSSIAN,
    UnderlineCheck,
    published_cells,
    table_measures,
)
from .tables import PairedComparison, TableCell

AGREES, CURVE_AGREES = 3.0, 4.0  # standard errors
_CLEAR = 0.05  # a difference in error that counts without a test
_N_EXTREMES = 5
_BEST_GAUSSIAN_ERROR = NormalDist().cdf(-math.sqrt(2 / 0.8))  # means at (1, 1), (-1, -1)


def heading(measure: str) -> str:
    """A measure in a sentence: error, loss."""
    return paper_measures()[measure].heading


def number(value: float, measure: str = "error") -> str:
    """A value with the decimals of its measure."""
    return with_minus(f"{value:.{paper_measures()[measure].decimals}f}")


def of_all(count: int, total: int, noun: str = "data set") -> str:
    """A share as one says it: all 10 data sets, none of 10 data sets, 3 of 10 data sets."""
    if total == 1:
        return f"the one {noun} run" if count else f"none (one {noun} was run)"
    if count == total:
        return f"{'both' if total == 2 else f'all {total}'} {noun}s"
    return f"{count or 'none'} of {total} {noun}s"


def headline(cells: Sequence[TableCell]) -> str:
    """The one sentence on top."""
    pairs, means = _em_pairs(cells), _means(cells, "error")
    if max((faulty - defined for defined, faulty in pairs.values()), default=0.0) < _CLEAR:
        return "Implicitly constrained semi-supervised LDA, reproduced"
    excess = [
        (defined - means[name, BASELINE], faulty - means[name, BASELINE])
        for name, (defined, faulty) in pairs.items()
        if (name, BASELINE) in means
    ]
    source = "the published EMLDA column comes from two faults in the code"
    is_tame = excess and 2 * max(d for d, _ in excess) < max(f for _, f in excess)
    return f"EM was not erratic: {source}" if is_tame else source[0].upper() + source[1:]


def findings(
    cells: Sequence[TableCell],
    comparisons: Sequence[PairedComparison],
    points: Sequence[PublishedDifference],
) -> list[Finding]:
    """The findings that what was run allows."""
    found = (
        _em_finding(cells),
        _iclda_finding(cells, comparisons),
        _agreement_finding(cells),
        _curve_finding(points),
    )
    return [finding for finding in found if finding is not None]


def _means(cells: Iterable[TableCell], measure: str) -> dict[tuple[str, str], float]:
    return {
        (c.dataset, c.method): c.mean for c in cells if c.measure == measure and c.mean is not None
    }


def _em_pairs(cells: Sequence[TableCell]) -> dict[str, tuple[float, float]]:
    """By data set: the error of EM as defined, and as published (emulated, else as printed)."""
    means, published = _means(cells, "error"), published_cells()
    pairs = {}
    for dataset, method in means:
        printed = published.get((dataset, "EMLDA", "error"))
        other = means.get((dataset, "EMLDA-as-published"), printed.mean if printed else None)
        if method == "EMLDA" and other is not None:
            pairs[dataset] = (means[dataset, method], other)
    return pairs


def _em_finding(cells: Sequence[TableCell]) -> Finding | None:
    pairs, means = _em_pairs(cells), _means(cells, "error")
    if not pairs:
        return None
    dataset = max(pairs, key=lambda name: pairs[name][1] - pairs[name][0])
    defined, faulty = pairs[dataset]
    printed = published_cells().get((dataset, "EMLDA", "error"))
    text = (
        "The code behind the paper subtracted the feature means twice from the unlabeled rows and "
        "dropped the factor 1/2 in the exponent of the density."
    )
    if (dataset, "EMLDA-as-published") in means:
        ending = f", where the paper prints {number(printed.mean)}" if printed else ""
        text += f" With both faults EM has an error of {number(faulty)} on {dataset}{ending};"
    else:
        text += f" The paper prints an error of {number(faulty)} on {dataset};"
    text += f" as the text defines it, EM has {number(defined)}."
    if known := [name for name in pairs if (name, BASELINE) in means]:
        more = [sum(pairs[name][k] > means[name, BASELINE] for name in known) for k in (0, 1)]
        text += (
            f" It errs more than plain LDA on {of_all(more[1], len(known))} as published, "
            f"on {of_all(more[0], len(known))} as defined."
        )
    title = f"error of EM on {dataset}, as published and as defined"
    return Finding(f"{faulty:.2f} \N{RIGHTWARDS ARROW} {defined:.2f}", title, text)


def _iclda_finding(
    cells: Sequence[TableCell], comparisons: Sequence[PairedComparison]
) -> Finding | None:
    pairs = {}
    for measure in ("nll", "error"):
        means = _means(cells, measure)
        pairs[measure] = [
            (name, mean, means[name, BASELINE])
            for (name, method), mean in means.items()
            if method == "ICLDA" and (name, BASELINE) in means
        ]
    if not all(pairs.values()):
        return None
    n_loss, n_error = (sum(ours <= lda for _, ours, lda in some) for some in pairs.values())
    text = [f"Its error is no higher than LDA's on {of_all(n_error, len(pairs['error']))}."]
    dataset, ours, baseline = max(pairs["error"], key=lambda pair: pair[1] - pair[2])
    if ours > baseline:
        text.append(f"Worst case: {dataset}, {number(ours)} against {number(baseline)}.")
    if ours_only := [c for c in comparisons if c.method == "ICLDA"]:
        text.append(_verdicts(ours_only))
    title = "data sets on which ICLDA has no higher loss than supervised LDA"
    return Finding(f"{n_loss} of {len(pairs['nll'])}", title, " ".join(text))


def _verdicts(comparisons: Sequence[PairedComparison]) -> str:
    """Significant differences after correction, better and worse, in one sentence."""
    worse = [f"{c.dataset} ({heading(c.measure)})" for c in comparisons if c.verdict == "worse"]
    better = {
        measure: sum(c.verdict == "better" for c in comparisons if c.measure == measure)
        for measure in table_measures()
    }
    gains = and_list([f"{plural(n, 'set')} in {heading(each)}" for each, n in better.items()])
    losses = f"significantly worse on {and_list(worse)}" if worse else "nowhere significantly worse"
    return f"Paired by split and corrected, it is {losses}, and significantly better on {gains}."


def _agreement_finding(cells: Sequence[TableCell]) -> Finding | None:
    known = [(cell.z, cell) for cell in cells if cell.z is not None]
    compared = sorted(known, key=lambda pair: -abs(pair[0]))
    if not compared:
        return None
    inside = sum(abs(z) <= AGREES for z, _ in compared)
    extremes = "; ".join(
        f"{cell.dataset} {cell.method} {heading(cell.measure)} {signed(z)}"
        for z, cell in compared[:_N_EXTREMES]
    )
    return Finding(
        f"{inside} of {len(compared)}",
        f"table cells agree with the paper (|z| up to {AGREES:g})",
        f"z is the difference of the two means in standard errors. Largest: {extremes}.",
    )


def _curve_finding(points: Sequence[PublishedDifference]) -> Finding | None:
    if not points:
        return None
    inside = sum(abs(c.z) <= CURVE_AGREES for c in points)
    worst = max(points, key=lambda c: abs(c.z)).point.dataset
    text = f"Largest difference: {worst}, {extreme_point(points)}."
    far = [c.point for c in points if abs(c.z) > CURVE_AGREES]
    if {(p.dataset, p.method, p.measure) for p in far} == {(GAUSSIAN, "LDAoracle", "error")}:
        text += (
            " All that differ are errors of the oracle on two Gaussians, where the published ones "
            f"fall below the best possible error, {_BEST_GAUSSIAN_ERROR:.4f}: that curve seems to "
            "rest on one sample, whose sampling error their standard errors do not include."
        )
    title = f"curve points agree with the paper (within {CURVE_AGREES:g} standard errors)"
    return Finding(f"{inside} of {len(points)}", title, text)


def extreme_point(points: Sequence[PublishedDifference]) -> str:
    """The compared point furthest from the published one, but for its data set."""
    worst = max(points, key=lambda c: abs(c.z))
    return (
        f"{heading(worst.point.measure)} of {worst.point.method} with "
        f"{plural(worst.point.n_unlabeled, 'unlabeled row')}, {signed(worst.z)} standard errors"
    )


def curve_sentence(points: Sequence[PublishedDifference]) -> str:
    """How one curve compares with the published one."""
    if not points:
        return "The paper shows no curve of this set."
    return f"{plural(len(points), 'point')} compared. Furthest apart: {extreme_point(points)}."


def underline_sentence(checks: Sequence[UnderlineCheck]) -> str:
    """How many underlines of one published table survive the right comparison."""
    printed = [check for check in checks if check.as_published.is_won]
    kept = [check.dataset for check in printed if check.survives]
    names = f" ({and_list(kept)})" if kept else ""
    return f"{len(kept)} of its {len(printed)} underlines survive{names}."


def comparison_sentence(comparisons: Sequence[PairedComparison]) -> str:
    """How a whole table comes out under the rule of today."""
    if not comparisons:
        return ""
    counts = [sum(c.verdict == verdict for c in comparisons) for verdict in ("better", "worse")]
    return (
        f"of {plural(len(comparisons), 'comparison')} with LDA, {counts[0] or 'none'} better and "
        f"{counts[1] or 'none'} worse"
    )
