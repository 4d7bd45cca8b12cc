"""What the figures of a report show, in words for those who do not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._messages import and_list
from ..measures import COMPARED
from ..page import with_minus
from .lines import number_text
from .summary import ComparisonSummary, SplitCurvePoint


def differences_text(summary: ComparisonSummary, measure: str, supervised: str) -> str:
    """Differences to supervised LDA: who is clearly better or worse, then every method."""
    found = [each for each in summary.differences if each.measure == measure]
    words = []
    for verdict in ("better", "worse"):
        names = [each.method for each in found if each.verdict == verdict]
        if names:
            words.append(f"clearly {verdict}: {and_list(names)}")
    clear = "; ".join(words) or "no method differs clearly"
    numbers = ", ".join(
        f"{each.method} {_signed(each.difference)} ({_signed(each.low)} to {_signed(each.high)})"
        for each in sorted(found, key=lambda each: each.difference)
    )
    heading = COMPARED[measure].heading
    return (
        f"{heading} minus that of {supervised}, with 95 % intervals; below 0 is better. "
        f"{clear[0].upper()}{clear[1:]}. {numbers}."
    )


def reliability_text(confidence: Mapping[str, tuple[float, float]]) -> str:
    """How sure methods are on average, and how often they are right."""
    each = (
        f"{name} is {100 * sure:.0f} % sure on average and right in {100 * right:.0f} %"
        for name, (sure, right) in confidence.items()
    )
    return f"Share of rows that are right against the probability given: {'; '.join(each)}."


def curve_text(points: Sequence[SplitCurvePoint], heading: str) -> str:
    """Where every method begins and ends."""
    by_method: dict[str, list[SplitCurvePoint]] = {}
    for point in points:
        by_method.setdefault(point.method, []).append(point)
    ends = {name: (min(line, key=_size), max(line, key=_size)) for name, line in by_method.items()}
    first, last = next(iter(ends.values()))
    kind = "unlabeled" if first.curve == "unlabeled" else "labeled"
    texts = ", ".join(
        f"{name} from {_number(a)} to {_number(b)}"
        for name, (a, b) in sorted(ends.items(), key=lambda item: item[1][1].mean)
    )
    sizes = f"{_size(first):,} to {_size(last):,} {kind} rows"
    return f"{heading}, from {sizes}, the lowest at the end first: {texts}."


def _size(point: SplitCurvePoint) -> int:
    return point.size


def _number(point: SplitCurvePoint) -> str:
    if point.measure in COMPARED:
        return number_text(point.mean, point.measure)
    return with_minus(f"{point.mean:.3g}")


def _signed(value: float) -> str:
    return with_minus(f"{value:+.3f}")
