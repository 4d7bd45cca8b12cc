"""What a folder holds: rows and settings in, numbers, verdict and files out. Nothing is fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ..._advice import estimate_as_json
from ..._estimators.gains import GainBounds
from ..._messages import Words, and_list, say
from ...methods import COMPARED, find_method
from ...tabular import Source
from ...tabular.encoders import require_for_tables
from ..measures import ERROR, LOSS
from ..page import attributes_csv, write_texts
from ..store import COMPARISON_FORMAT, STORE, FitResult, Store, StoreError
from .choice import Recommendation, recommend
from .class_errors import class_json, confusion_of
from .plan import COMPARISON, EXPERIMENTS, LABELED, UNLABELED, Contestant, on_curves
from .preflight import WARNING, Remark
from .safety import find_bounds, safety_sentences
from .sentences import SENTENCES
from .summary import (
    ComparisonSummary,
    Score,
    SplitCurvePoint,
    split_curve_points,
    summarize_comparison,
)
from .verdict import Verdict, decide

FILES = {"comparison": "comparison.csv", "curves": "curves.csv", "report": "report.html"}
KIND = "comparison"
SHOWN_SETTINGS = ("target", "folds", "repeats", "labeled", "missing", "shrinkage", "seed")
# Settings on which stored rows depend, in the order in which they are compared.
_AGREED = (
    *("kind", "format", "iclda", "data", "target", "unlabeled", "drop", "seed", "folds", "labeled"),
    *("missing", "shrinkage"),
)


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison, and facts about its table and its runs that the report shows."""

    kind: str = KIND
    format: int = COMPARISON_FORMAT
    iclda: str  # version
    data: Mapping[str, str]  # digest of the table, by its name
    target: str
    unlabeled: str = ""  # value that marks unlabeled rows
    drop: str = ""
    seed: int
    folds: int
    labeled: int | str  # labels kept, or "all"
    missing: str
    shrinkage: str
    repeats: int
    curve_splits: int
    remarks: Sequence[Remark]
    contestants: Sequence[Contestant]
    sources: Sequence[Source]
    dropped: Sequence[str] = ()
    kept: Sequence[str] = ()
    classes: Sequence[str] = ()
    drop_unusable: bool = False
    n_labels: int
    n_rows: int
    n_used: int  # labels that every split trains on
    n_unlabeled: int  # rows that every split trains on without a label
    is_capped: bool  # curves use fewer unlabeled rows
    is_slow: bool
    left_out: Sequence[str] = ()  # methods that would take too long
    jobs: int
    versions: Mapping[str, str]
    machine: str
    began: str
    commands: Sequence[str] = ()

    @property
    def n_kept(self) -> int | None:
        """Labels kept where others were hidden, else None."""
        return None if self.labeled == "all" else self.n_used

    def n_repeats(self, experiment: str) -> int:
        """Repeats of an experiment; those of curves are single splits."""
        return self.repeats if experiment == COMPARISON else self.curve_splits

    @property
    def agreed(self) -> dict[str, Any]:
        """Settings on which rows depend."""
        return {name: getattr(self, name) for name in _AGREED}

    def to_json(self) -> dict[str, Any]:
        """All settings as values that JSON has."""
        return {
            **vars(self),
            "remarks": [asdict(remark) for remark in self.remarks],
            "contestants": [
                (c.name, c.method.name, c.shrinkage, c.is_eligible) for c in self.contestants
            ],
            "sources": [asdict(source) for source in self.sources],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ComparisonSettings:
        """Inverse of ``to_json``; names that are not known are ignored."""
        known = {each.name: stored[each.name] for each in fields(cls) if each.name in stored}
        known["remarks"] = [Remark(**remark) for remark in stored["remarks"]]
        known["sources"] = [Source(**source) for source in stored["sources"]]
        known["contestants"] = [
            Contestant(name, find_method(method, COMPARED), *rest)
            for name, method, *rest in stored["contestants"]
        ]
        return cls(**known)


@dataclass(frozen=True)
class Findings:
    """Rows of a comparison with all that follows from them."""

    settings: ComparisonSettings
    results: Sequence[FitResult]
    seconds: float  # of all runs
    words: Words = str

    @cached_property
    def summary(self) -> ComparisonSummary:
        return summarize_comparison(self.results, self.settings.contestants, self.settings.folds)

    @cached_property
    def advice(self) -> Recommendation | None:
        """What the rule chooses; None if nothing could be fitted."""
        return recommend(self.results, self.settings.contestants)

    @cached_property
    def verdict(self) -> Verdict:
        """The recommendation; where labels were hidden, for as many labels as were kept."""
        name = self.advice.chosen.name if self.advice else None
        confusion = confusion_of(self.compared, name, self.settings.classes)
        found = decide(self.summary, self.advice, self.settings.n_kept, confusion)
        return replace(found, sentence=self.words(found.sentence))

    @cached_property
    def points(self) -> list[SplitCurvePoint]:
        """Learning curves of each method's best variant."""
        settings, names = self.settings, on_curves(self.summary.best, self.settings.contestants)
        compared = {UNLABELED: settings.n_unlabeled, LABELED: settings.n_used}
        how = names, self.reference, settings.folds, compared
        return split_curve_points(self.results, *how, is_capped=settings.is_capped)

    @cached_property
    def reference(self) -> str | None:
        """The contestant on curves with the lowest loss, which the losses there are compared with.

        Supervised LDA would be a poor one: with few labels its loss is so far off, and varies so
        much, that in differences to it the others look alike.
        """
        names = on_curves(self.summary.best, self.settings.contestants)
        losses = {name: self.summary.mean(name, LOSS) for name in names}
        known = {name: loss for name, loss in losses.items() if loss is not None}
        return min(known, key=known.__getitem__, default=None)

    @cached_property
    def compared(self) -> list[FitResult]:
        """Results of the comparison, without those of the learning curves."""
        return [result for result in self.results if result.experiment == COMPARISON]

    @property
    def chosen(self) -> Contestant | None:
        """The contestant that is recommended."""
        return self._contestant(self.verdict.method)

    @property
    def own(self) -> Contestant | None:
        """The contestant that is recommended among the methods of this package."""
        return self._contestant(self.verdict.own)

    @cached_property
    def safety(self) -> list[str]:
        """How much the recommended method may lose, and which fits degenerated, in sentences."""
        return safety_sentences(self)

    @cached_property
    def caution(self) -> str:
        """What the table has against an answer, by subject; empty if nothing."""
        subjects = [each.subject.lower() for each in self.settings.remarks if each.level == WARNING]
        if not subjects:
            return ""
        n_warnings = len(subjects)
        warnings = "warning" if n_warnings == 1 else f"{n_warnings} warnings"
        named = and_list(list(dict.fromkeys(subjects)))
        return say(SENTENCES["verdict"]["caution"], warnings=warnings, subjects=named)

    @cached_property
    def bounds(self) -> GainBounds | None:
        """How far its likelihood may fall below that of supervised LDA, over all labels."""
        return find_bounds(self)[1]

    @property
    def table(self) -> Any:
        """Frame of the table on the terminal: a row a method, the supervised first, then by rank.

        Every measure, the interval of the error, and the repeats in which it was worse.
        """
        from .lines import known_measures, ranked, worse_text

        names = ranked(self.summary)
        columns: dict[str, Any] = {}
        for measure in known_measures(self.summary):
            columns[measure] = [self.summary.mean(name, measure) for name in names]
            if measure == ERROR:
                errors = [self.summary.score(name, ERROR) for name in names]
                for end in ("low", "high"):
                    columns[f"error_{end}"] = [e and getattr(e, end) for e in errors]
        columns["worse in"] = [worse_text(self.summary, name) for name in names]
        return require_for_tables("pandas").DataFrame(columns, index=names)

    @property
    def scores(self) -> Any:
        """Frame of all scores: a row a method and measure, errors with their interval and rows."""
        return _frame(self.summary.scores)

    @property
    def differences(self) -> Any:
        """Frame of paired differences to supervised LDA."""
        found = _frame(self.summary.differences)
        return found.assign(verdict=[each.verdict for each in self.summary.differences])

    @property
    def curves(self) -> Any:
        """Frame of the learning curves; without rows if they were not computed."""
        return _frame(self.points, SplitCurvePoint)

    def figures(self) -> dict[str, Any]:
        """Figures of the report by name, as matplotlib's."""
        from .report import draw_figures

        return draw_figures(self)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write the report and the numbers to a folder; the paths written."""
        from ..drawing import check_can_report

        check_can_report()
        Path(folder).mkdir(parents=True, exist_ok=True)
        return write_files(Path(folder), self)

    def __str__(self) -> str:
        return str(self.verdict.sentence)

    def _repr_html_(self) -> str:
        """What notebooks show: the answer, and the table behind it."""
        texts = [str(self.verdict.sentence), str(self.caution)]
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
        table = self.table.to_html(float_format="{:.3f}".format, na_rep="", border=0)
        return f"<h3>{escape(self.verdict.headline)}</h3>{paragraphs}{table}"

    def __repr__(self) -> str:
        return f"<Findings: {self.verdict.headline}>"

    def _contestant(self, name: str | None) -> Contestant | None:
        return next((each for each in self.settings.contestants if each.name == name), None)


def _frame(records: Sequence[Any], kind: Any = None) -> Any:
    pandas = require_for_tables("pandas")
    names = [each.name for each in fields(kind or records[0])] if kind or records else []
    return pandas.DataFrame([asdict(each) for each in records], columns=names)


def failures(results: Iterable[FitResult]) -> dict[str, tuple[int, str]]:
    """By contestant, the number of fits that failed, and the last line of the first traceback."""
    found: dict[str, tuple[int, str]] = {}
    for result in results:
        if result.failure is not None:
            count, reason = found.get(result.method, (0, last_line(result.failure)))
            found[result.method] = (count + 1, reason)
    return found


def last_line(traceback: str) -> str:
    return (traceback.strip().splitlines() or [""])[-1]


def is_comparison(out: Path) -> bool:
    """Whether a folder holds the rows of a comparison."""
    try:
        with closing(Store(out / STORE, read_only=True)) as store:
            return bool(store.settings().get("kind") == KIND)
    except StoreError:
        return False


def read_findings(out: Path, words: Words = str) -> Findings:
    """All that a folder holds; ``words`` words the messages in it for the reader.

    Rows that an earlier run made for more repeats or other methods are left out.
    """
    with closing(Store(out / STORE, read_only=True)) as store:
        stored = store.settings()
        settings = ComparisonSettings.from_json(stored)
        names = {contestant.name for contestant in settings.contestants}
        wanted = [
            result
            for experiment in EXPERIMENTS
            for result in store.rows(experiment)
            if result.method in names and result.repeat < settings.n_repeats(experiment)
        ]
    seconds = sum(float(v) for name, v in stored.items() if name.startswith("seconds_"))
    return Findings(settings, wanted, seconds, words)


def write_files(out: Path, findings: Findings) -> dict[str, Path]:
    """Write comparison.csv, curves.csv and report.html; the paths written."""
    from .report import render

    texts = scores_csv(findings.summary), curves_csv(findings.points), render(findings)
    paths = write_texts(out, dict(zip(FILES.values(), texts, strict=True)))
    return dict(zip(FILES, paths, strict=True))


def scores_csv(summary: ComparisonSummary) -> str:
    """One line a contestant and measure; an unknown number is an empty field."""
    names = [each.name for each in fields(Score) if each.name != "repeats"]
    return attributes_csv(names, summary.scores)


def curves_csv(points: Iterable[SplitCurvePoint]) -> str:
    """One line a point."""
    return attributes_csv([each.name for each in fields(SplitCurvePoint)], points)


def json_summary(findings: Findings, paths: Mapping[str, Path]) -> dict[str, Any]:
    """All of it for programs."""
    verdict, summary, chosen = findings.verdict, findings.summary, findings.chosen
    return {
        # "curves" are the points themselves.
        **{"curves_file" if k == "curves" else k: str(path) for k, path in paths.items()},
        "recommendation": {
            "kind": verdict.kind,
            "method": chosen.method.name if chosen else None,
            "shrinkage": chosen.shrinkage if chosen else None,
            "own_method": findings.own.method.name if findings.own else None,
            "own_shrinkage": findings.own.shrinkage if findings.own else None,
            "learned": verdict.learned or None,
            "error": estimate_as_json(verdict.estimate),
            "headline": verdict.headline,
            "sentence": verdict.sentence,
            "also": verdict.also,
            "caution": findings.caution,
        },
        "safety": findings.safety,
        "bounds": asdict(findings.bounds) if findings.bounds else None,
        "supervised": summary.baseline,
        "classes": class_json(findings),
        "loss_reference": findings.reference,
        "scores": [asdict(score) for score in summary.scores],
        "differences": [{**asdict(each), "verdict": each.verdict} for each in summary.differences],
        "curves": [asdict(point) for point in findings.points],
        "preflight": [asdict(remark) for remark in findings.settings.remarks],
        "settings": {name: getattr(findings.settings, name) for name in SHOWN_SETTINGS},
        "failed_fits": sum(result.failure is not None for result in findings.results),
        "seconds": round(findings.seconds, 3),
    }
