"""What a folder holds: rows and settings in, numbers, verdict and files out. Nothing is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._messages import Words
from ..._paths import atomic_write
from ...methods import find_method
from ..page import csv_text
from ..store import Store, StoreError
from .contestants import Contestant, on_curves
from .curves import Point, points_csv, summarize_curves
from .preflight import Remark
from .results import COMPARISON, EXPERIMENTS, LABELED, UNLABELED, Result
from .study import FILES, KIND, STORE
from .summary import LOSS, Outcome, summarize
from .verdict import Verdict, decide

COLUMNS = ("method", "measure", "mean", "se", "share_worse_than_supervised")


@dataclass(frozen=True)
class Findings:
    """Rows of a comparison with all that follows from them."""

    settings: dict[str, Any]
    results: Sequence[Result]
    words: Words = str

    @cached_property
    def contestants(self) -> tuple[Contestant, ...]:
        """Who took part."""
        return tuple(
            Contestant(name, find_method(method), shrinkage)
            for name, method, shrinkage in self.settings["contestants"]
        )

    @cached_property
    def remarks(self) -> list[Remark]:
        """The table in words."""
        return [Remark(**remark) for remark in self.settings["remarks"]]

    @cached_property
    def outcome(self) -> Outcome:
        """Scores and differences."""
        return summarize(self.results, self.contestants, self.settings["folds"])

    @cached_property
    def verdict(self) -> Verdict:
        """The recommendation; where labels were hidden, for as many labels as were kept."""
        n_kept = None if self.settings["labeled"] == "all" else self.settings["n_used"]
        found = decide(self.outcome, self.settings["n_labels"], n_kept)
        return replace(found, sentence=self.words(found.sentence))

    @cached_property
    def points(self) -> list[Point]:
        """Learning curves of each method's best variant."""
        return summarize_curves(
            self.results,
            on_curves(self.outcome.best, self.contestants),
            self.reference,
            self.settings["folds"],
            {UNLABELED: self.settings["n_unlabeled"], LABELED: self.settings["n_used"]},
            is_capped=self.settings["is_capped"],
        )

    @cached_property
    def reference(self) -> str | None:
        """The contestant on curves with the lowest loss, which the losses there are compared with.

        Supervised LDA would be a poor one: with few labels its loss is so far off, and varies so
        much, that in differences to it the others look alike.
        """
        names = on_curves(self.outcome.best, self.contestants)
        losses = {name: self.outcome.mean(name, LOSS) for name in names}
        known = {name: loss for name, loss in losses.items() if loss is not None}
        return min(known, key=known.__getitem__, default=None)

    @property
    def n_failed(self) -> int:
        """Fits that failed."""
        return sum(result.failure is not None for result in self.results)

    @cached_property
    def failures(self) -> dict[str, tuple[int, str]]:
        """By contestant, fits of the comparison that failed, and the last words of the first."""
        return _failures(r for r in self.results if r.experiment == COMPARISON)

    @cached_property
    def curve_failures(self) -> dict[str, tuple[int, str]]:
        """The same of the learning curves."""
        return _failures(r for r in self.results if r.experiment != COMPARISON)

    @property
    def seconds(self) -> float:
        """Time of all runs."""
        return sum(float(v) for name, v in self.settings.items() if name.startswith("seconds_"))

    def contestant(self, name: str | None) -> Contestant | None:
        """A contestant by its name."""
        return next((each for each in self.contestants if each.name == name), None)


def _failures(results: Iterable[Result]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for result in results:
        if result.failure is not None:
            count, words = found.get(result.method, (0, last_line(result.failure)))
            found[result.method] = (count + 1, words)
    return found


def last_line(traceback: str) -> str:
    """What a traceback says in the end."""
    return (traceback.strip().splitlines() or [""])[-1]


def is_comparison(out: Path) -> bool:
    """Whether a folder holds the rows of a comparison."""
    if not (out / STORE).exists():
        return False
    try:
        store = Store(out / STORE, read_only=True, row_type=Result)
    except StoreError:
        return False
    kind = store.settings().get("kind")
    store.close()
    return bool(kind == KIND)


def read_findings(out: Path, words: Words = str) -> Findings:
    """All that a folder holds; ``words`` is how its reader is to be spoken to."""
    store = Store(out / STORE, read_only=True, row_type=Result)
    try:
        settings = store.settings()
        results = [result for name in EXPERIMENTS for result in store.rows(name)]
    finally:
        store.close()
    asked_for = [result for result in results if _is_asked_for(result, settings)]
    return Findings(settings, asked_for, words)


def _is_asked_for(result: Result, settings: dict[str, Any]) -> bool:
    """Whether a row belongs to the last run: an earlier one may have had more repeats, methods."""
    names = [name for name, _, _ in settings["contestants"]]
    is_compared = result.experiment == COMPARISON
    n_repeats = settings["repeats"] if is_compared else settings["curve_splits"]
    return result.method in names and result.repeat < n_repeats


def write_files(out: Path, findings: Findings) -> dict[str, Path]:
    """Write comparison.csv, curves.csv and report.html; the paths written."""
    from .report import render

    contents = {
        "comparison": scores_csv(findings.outcome),
        "curves": points_csv(findings.points),
        "report": render(findings),
    }
    paths = {}
    for name, text in contents.items():
        paths[name] = out / FILES[name]
        with atomic_write(paths[name]) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return paths


def scores_csv(outcome: Outcome) -> str:
    """One line a contestant and measure; an unknown number is an empty field."""
    return csv_text(COLUMNS, ([getattr(s, name) for name in COLUMNS] for s in outcome.scores))


def summary(findings: Findings, paths: dict[str, Path]) -> dict[str, Any]:
    """All of it for programs."""
    verdict, chosen = findings.verdict, findings.contestant(findings.verdict.method)
    return {
        **{name: str(path) for name, path in paths.items()},
        "recommendation": {
            "kind": verdict.kind,
            "method": chosen.method.name if chosen else None,
            "shrinkage": chosen.shrinkage if chosen else None,
            "sentence": verdict.sentence,
            "also": verdict.also,
        },
        "supervised": findings.outcome.baseline,
        "loss_reference": findings.reference,
        "scores": [asdict(score) for score in findings.outcome.scores],
        "differences": [
            {**asdict(difference), "verdict": difference.verdict}
            for difference in findings.outcome.differences
        ],
        "curves": [asdict(point) for point in findings.points],
        "preflight": [asdict(remark) for remark in findings.remarks],
        "settings": {
            name: findings.settings[name]
            for name in ("target", "folds", "repeats", "labeled", "missing", "shrinkage", "seed")
        },
        "failed_fits": findings.n_failed,
        "seconds": round(findings.seconds, 3),
    }
