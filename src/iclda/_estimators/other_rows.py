"""What a fitted model says about other rows than those of its fit.

``adapt_gaussians`` moves the classes of a model to rows of another source, such as a
new speaker or instrument, whose rows lie elsewhere or have other class shares. With m
the mean of the new rows, mu the class means and s the class shares of the source, the
offset that maximizes the likelihood is m - s mu: it follows from the shares. They are
those of the training rows ("offset"), or come from EM (Saerens, Latinne and
Decaestecker, 2002), without an offset ("shares") or with it ("both").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._core import Array
from .._core.gaussian import Gaussians
from .._core.rows import Rows
from .._messages import ParameterError, plural, say
from .._rows.memory import MemoryRows
from .._rows.views import KernelMap, View, steps_of
from .rows_reader import RowSource

# What an adaptation may change.
OFFSET = "offset"
SHARES = "shares"
BOTH = "both"
_ASSUMPTIONS = {
    OFFSET: "the class shares are assumed to be those of the training rows",
    SHARES: "the classes are assumed to lie where they lay in the training rows",
    BOTH: "the classes are assumed to be Gaussian, with the covariance of the fit",
}
# The change that may look like another one.
_RIVALS = {OFFSET: SHARES, SHARES: OFFSET}
# Class shares are learned, and changes are checked, on at most this many rows.
_MAX_SAMPLE_ROWS = 16_384
# Rounds of EM ...
_MAX_ROUNDS = 500
# ... until no share moves by more than this.
_SHARE_TOLERANCE = 1e-6
# Stands in for zero in a logarithm.
_TINY_SHARE = 1e-300


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What ``adapt`` found in the rows of a new source, and what it made of it.

    Attributes
    ----------
    change : str
        The change that was asked for: "offset", "shares" or "both".
    is_kept : bool
        Whether the new rows support it. Otherwise nothing was changed.
    offset : ndarray of shape (n_features,)
        What the classes were moved by, in the columns of the view if there is one.
    shares : ndarray of shape (n_classes,)
        Class shares of the source, as the adapted classifier takes them.
    gains : dict
        For every change, how much it raises the log likelihood per row, for rows that
        it was not learned from. Empty if that could not be computed.
    reason : str
        All of that in a sentence.
    """

    change: str
    is_kept: bool
    offset: Array
    shares: Array
    gains: Mapping[str, float]
    reason: str

    def __str__(self) -> str:
        return self.reason


def adapt_gaussians(
    source: RowSource, gaussians: Gaussians, change: str, view: View | None = None
) -> tuple[Gaussians, Adaptation]:
    """Return a model for the rows of a new source, and what speaks for it.

    ``view`` is the view by which the rows are mapped.
    """
    if change not in _ASSUMPTIONS:
        raise ParameterError(
            f"change must be one of {', '.join(_ASSUMPTIONS)}, got {change!r}.",
            parameter="change",
            value=change,
        )
    has_kernel = view is not None and any(
        isinstance(step, KernelMap) for step in steps_of(view)
    )
    if has_kernel and change != SHARES:
        raise ParameterError(
            say(
                "An offset of the rows is not one of their features in a kernel view, "
                "which {@change} = {change!r} would move: pass {@change=shares}, fit "
                "with another view, or subtract the offset from the rows.",
                change=change,
            ),
            parameter="change",
            value=change,
        )
    rows = source.rows
    sampled, weights = rows.sample(_MAX_SAMPLE_ROWS, 0)
    changes = [SHARES] if has_kernel else list(_ASSUMPTIONS)
    gains = _held_out_gains(sampled, weights, gaussians, changes)
    refusal = _why_not(change, gains, len(sampled))
    adapted = gaussians
    if not refusal:
        mean = rows.moments(gaussians.frame).mean
        adapted = _changed(MemoryRows(sampled, weights), mean, gaussians, change)
    offset = adapted.center - gaussians.center
    n_deviations = np.linalg.norm(gaussians.projection @ offset)
    reason = refusal or (
        f"Adapted to {plural(len(sampled), 'row')}: the classes moved by "
        f"{n_deviations:.3g} standard deviations, and rows that were held out are more "
        f"likely by {gains[change]:.3g} in the logarithm; {_ASSUMPTIONS[change]}."
    )
    return adapted, Adaptation(
        change=change,
        is_kept=not refusal,
        offset=offset * gaussians.frame.scale,
        shares=np.exp(adapted.log_priors),
        gains=gains,
        reason=reason,
    )


def _why_not(change: str, gains: Mapping[str, float], n_rows: int) -> str:
    """Return why the new rows do not support a change; "" if they do."""
    if not gains:
        rows = plural(n_rows, "row")
        return f"Nothing was changed: {rows} cannot be divided to check a change."
    gain = gains[change]
    if not gain > 0:
        return (
            f"Nothing was changed: {plural(n_rows, 'row')} do not support it. Rows "
            f"that were held out are less likely by {-gain:.2g} in the logarithm."
        )
    rival = _RIVALS.get(change)
    if rival in gains and gains[rival] > gain:
        what = {OFFSET: "an offset", SHARES: "other class shares"}
        return (
            f"Nothing was changed: {what[rival]} would explain the rows better than "
            f"{what[change]} does (rows that were held out gain {gains[rival]:.3g} "
            f"against {gain:.3g} in the logarithm). Ask for {rival}, or for {BOTH}."
        )
    return ""


def _held_out_gains(
    rows: Array, weights: Array, gaussians: Gaussians, changes: list[str]
) -> dict[str, float]:
    """Return what each change adds to the log likelihood per held-out row.

    Each half of the rows is scored by what was learned from the other half.
    """
    half = np.random.default_rng(0).permutation(len(rows)) % 2
    halves = [MemoryRows(rows, weights, half == k) for k in range(2)]
    moments = [each.moments(gaussians.frame) for each in halves]
    if not all(each.weight > 0 for each in moments):
        return {}
    gains = dict.fromkeys(changes, 0.0)
    total = moments[0].weight + moments[1].weight
    for learned, tested in ((0, 1), (1, 0)):
        mean = moments[tested].mean
        before = _log_likelihood(halves[tested], mean, gaussians)
        for change in changes:
            changed = _changed(
                halves[learned], moments[learned].mean, gaussians, change
            )
            after = _log_likelihood(halves[tested], mean, changed)
            gains[change] += (after - before) / total
    return gains


def _log_likelihood(rows: Rows, mean: Array, gaussians: Gaussians) -> float:
    """Return the log likelihood of rows, but for a term that no change alters.

    With z a row in standardized coordinates it is the sum of logsumexp(scores) less
    that of |z|^2 / 2, of which only the part of the mean depends on where z = 0 lies.
    """
    frame = gaussians.frame
    sums = rows.label_sums(gaussians.score_rule(), frame)
    from_center = gaussians.projection @ (mean - gaussians.center)
    squared_distance = from_center @ from_center
    complement = gaussians.complement
    if complement is not None:
        outside = complement.outside(frame.restore(mean[None]))
        squared_distance += (outside**2).sum() / complement.variance
    weight = sums.counts.sum()
    return float(sums.log_sum - weight * squared_distance / 2)


def _changed(rows: Rows, mean: Array, gaussians: Gaussians, change: str) -> Gaussians:
    """Return the model with the offset or the shares that rows of a mean show."""
    changed = gaussians
    if change != SHARES:
        changed = gaussians.moved(mean - gaussians.center)
    if change == OFFSET:
        return changed
    shares = np.exp(gaussians.log_priors)
    for _ in range(_MAX_ROUNDS):
        earlier = shares
        counts = rows.label_sums(changed.score_rule(), gaussians.frame).counts
        shares = counts / counts.sum()
        offset = np.zeros_like(mean)
        if change == BOTH:
            offset = mean - shares @ gaussians.means
        log_priors = np.log(np.maximum(shares, _TINY_SHARE))
        changed = gaussians.moved(offset, log_priors)
        if np.abs(shares - earlier).max() <= _SHARE_TOLERANCE:
            break
    return changed
