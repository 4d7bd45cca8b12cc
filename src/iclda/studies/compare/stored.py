"""What a comparison that lies beside a table says to a fit of the same table.

Most tables have none: what reads comparisons is imported when one is found.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..._messages import plural
from ..._system import versions
from ...tabular.fit import Advice
from ...tabular.read_options import ReadOptions
from ...tabular.table import Table
from ..measures import BRIER, COMPARISON
from ..store import STORE, Store, StoreError, stored_kind

if TYPE_CHECKING:
    from .api import Findings
    from .settings import ComparisonSettings

# A comparison needs this many labels of every class.
_MIN_LABELS_OF_A_CLASS = 2
_WOULD_TELL = "`iclda compare` would tell whether another method is clearly better."
_NOT_USED = (
    "The comparison in {folder} was not used, because it {why}. Run `iclda compare` "
    "again to see whether another method is clearly better."
)
_RECOMMENDED = (
    "Chose {title}: `iclda compare` found {standing} on these rows ({folder})."
)


def default_folder(data: Path) -> Path:
    """Return the folder of a comparison that was not named: DATA-comparison."""
    stem = data.name.partition(".")[0]
    return Path(f"{stem}-comparison")


def advice_of(folder: Path, table: Table, reading: ReadOptions) -> Advice:
    """Return what the comparison in a folder recommends for a table.

    If there is none of the same rows, read in the same way, the advice names no method,
    and its sentence says what to do.
    """
    if not (folder / STORE).exists():
        is_comparable = (
            not table.is_labeled.all()
            and min(table.class_counts.values()) >= _MIN_LABELS_OF_A_CLASS
        )
        return Advice(_WOULD_TELL if is_comparable else "")
    from .api import read_findings
    from .run import stored_comparisons

    try:
        if stored_kind(folder) != COMPARISON:
            return _not_used(folder, "is another study")
        with closing(Store(folder / STORE, read_only=True)) as store:
            comparisons = stored_comparisons(store)
    except StoreError:
        return _not_used(folder, "cannot be read")

    # The folder may hold comparisons of other rows or columns, too.
    reasons = []
    for settings in comparisons:
        why = _why_of_others(settings, table, reading)
        if not why:
            findings = read_findings(folder, settings)
            why = _why_unusable(findings)
            if not why:
                return _recommended(folder, findings)
        reasons.append(why)
    # What is said is why the latest comparison was not used.
    return _not_used(folder, reasons[0] if reasons else "is not finished")


def _not_used(folder: Path, why: str) -> Advice:
    return Advice("", note=_NOT_USED.format(folder=folder, why=why))


def _why_of_others(
    settings: ComparisonSettings, table: Table, reading: ReadOptions
) -> str:
    """Return why a comparison is not one of the same rows and columns, or ""."""
    digests = " ".join(source.sha256 for source in table.sources)
    if settings.data != digests:
        return "is of other rows or labels"
    if not _is_read_alike(settings, table, reading):
        return "was made with other options"
    if settings.iclda != versions()["iclda"]:
        return f"was made by iclda {settings.iclda}"
    return ""


def _why_unusable(findings: Findings) -> str:
    """Return why a comparison recommends nothing, or ""."""
    settings = findings.settings
    if len(findings.compared) < settings.n_compared:
        return "is not finished"
    if findings.advice is None:
        return "has no answer"
    return ""


def _is_read_alike(
    settings: ComparisonSettings, table: Table, reading: ReadOptions
) -> bool:
    """Tell whether a comparison had the same labels and columns as a table."""
    return (
        settings.target == table.target
        and settings.unlabeled == (reading.unlabeled or "")
        and settings.id == (reading.id or "")
        and settings.drop == ", ".join(sorted(table.dropped))
        and settings.n_kept is None
    )


def _recommended(folder: Path, findings: Findings) -> Advice:
    from .verdict import HELPS, OUTSIDE, SHARPENS, title_of

    advice = findings.advice
    assert advice is not None
    standing = f"none of {plural(advice.n_methods, 'method')} clearly better"
    if findings.verdict.kind in (HELPS, SHARPENS, OUTSIDE):
        standing = "it clearly better than supervised LDA"
    chosen = advice.chosen
    sentence = _RECOMMENDED.format(
        title=title_of(chosen), standing=standing, folder=folder
    )
    brier = findings.summary.mean(chosen.name, BRIER)
    return Advice(
        sentence,
        method=chosen.method,
        shrinkage=chosen.shrinkage,
        error=advice.estimate,
        n_tested=advice.n_rows,
        brier=float("inf") if brier is None else brier,
    )
