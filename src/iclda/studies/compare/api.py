"""``iclda.compare``: a table in, findings with its tables and figures out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, fields
from html import escape
from pathlib import Path
from typing import Any

from ..._progress import show_nothing
from ...methods import Shrinkage
from ...model_selection._splitters import check_count
from ...tabular.cells import require_for_tables
from ...tabular.read_options import ReadOptions
from ...tabular.table import read_file, read_frame
from ..measures import ERROR
from ..page import check_can_report
from ..store import STORE, FitResult, Store, StoreError
from .comparison import Comparison
from .contestants import find_compared, parse_shrinkages, shrinkage_text
from .plan import ComparisonPlan, check_measure, parse_time
from .report import draw_figures, write_files
from .run import open_run, seconds_of, stored_comparisons
from .settings import ComparisonSettings
from .splits import EXPERIMENT_TITLES
from .summary import Difference, Score, SplitCurvePoint
from .terminal import known_measures, ranked, worse_text


class Findings(Comparison):
    """A comparison with its numbers as frames, its figures and its report."""

    @property
    def table(self) -> Any:
        """Frame with a row for each method: the supervised ones first, then by rank.

        Its columns are every measure, the interval of the error, and the repeats in
        which the method was worse than the supervised one.
        """
        names = ranked(self.summary)
        scores = self.scores
        # A row for each method, a column for each measure that any method has.
        means = scores.pivot(index="method", columns="measure", values="mean")
        table = means.loc[names, known_measures(self.summary)]
        table = table.rename_axis(None, axis=1)
        # The error is the first measure: its interval follows it.
        errors = scores[scores["measure"] == ERROR].set_index("method")
        table.insert(1, "error_low", errors["low"])
        table.insert(2, "error_high", errors["high"])
        table["worse in"] = [worse_text(self.summary, name) for name in names]
        return table

    @property
    def scores(self) -> Any:
        """Frame with a row for each method and measure; errors have an interval."""
        return _frame(self.summary.scores, Score)

    @property
    def differences(self) -> Any:
        """Frame of paired differences from supervised LDA."""
        frame = _frame(self.summary.differences, Difference)
        verdicts = [difference.verdict for difference in self.summary.differences]
        return frame.assign(verdict=verdicts)

    @property
    def curves(self) -> Any:
        """Frame of the learning curves; without rows if they were not computed."""
        return _frame(self.points, SplitCurvePoint)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the report by name, as matplotlib's."""
        return draw_figures(self)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write the report and the numbers to a folder; return the paths written."""
        check_can_report()
        return write_files(Path(folder), self)

    def __str__(self) -> str:
        return str(self.verdict.sentence)

    def _repr_html_(self) -> str:
        """Return what notebooks show: the answer, and the table behind it."""
        headline = escape(self.verdict.headline)
        texts = [str(self), str(self.caution)]
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
        table = self.table.to_html(float_format="{:.3f}".format, na_rep="", border=0)
        return f"<h3>{headline}</h3>{paragraphs}{table}"

    def __repr__(self) -> str:
        return f"<Findings: {self.verdict.headline}>"


def _frame(records: Sequence[Any], kind: Any) -> Any:
    """Return instances of a dataclass as a frame, with all columns even if empty."""
    pandas = require_for_tables("pandas")
    names = [field.name for field in fields(kind)]
    return pandas.DataFrame([asdict(record) for record in records], columns=names)


def _latest(store: Store, out: Path) -> ComparisonSettings:
    """Return the settings of the latest comparison in a folder."""
    comparisons = stored_comparisons(store)
    if not comparisons:
        raise StoreError(
            f"{out} does not hold a comparison: run `iclda compare` first."
        )
    return comparisons[0]


def read_findings(out: Path, settings: ComparisonSettings | None = None) -> Findings:
    """Read a comparison from a folder: that with these settings, or the latest one.

    Rows that an earlier run made for more repeats or other methods are left out.
    """
    with closing(Store(out / STORE, read_only=True)) as store:
        if settings is None:
            settings = _latest(store, out)
        results: list[FitResult] = []
        for experiment in EXPERIMENT_TITLES:
            stored = store.rows(experiment, settings.key)
            results += [result for result in stored if settings.has_asked_for(result)]
        seconds = seconds_of(store, settings.key)
    return Findings(settings, results, seconds)


def compare(
    table: Any,
    *,
    target: str | None = None,
    labels: str | Path | None = None,
    id: str | None = None,
    methods: str | Sequence[str] | None = None,
    shrinkage: Shrinkage | Sequence[Shrinkage] = None,
    n_labeled: int | None = None,
    unlabeled: str | None = None,
    unlabeled_file: str | Path | None = None,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] | None = None,
    strict: bool = False,
    repeats: int | None = None,
    folds: int | None = None,
    curves: bool = True,
    measure: str | None = None,
    fast: bool = False,
    time: str | float | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
) -> Findings:
    """Compare methods on a table: whether unlabeled rows help, and with which method.

    It does what the command ``iclda compare`` does. It needs the extras ``data``
    and ``experiments``.

    Parameters
    ----------
    table : DataFrame, str or Path
        A frame of pandas or polars, or a .csv, .tsv, .txt (also .gz) or .parquet file,
        or an array of features (.npy, .npz or a folder of .npy files). Rows whose
        target is empty are unlabeled.
    target : str, default=None
        Name of the column that holds the classes; None for the only one of ``labels``.
    labels : str or Path, default=None
        A file of the classes, one row for each row of the table in the same order.
    id : str, default=None
        A column of both files by which they are joined instead; of an array, the row
        number.
    methods : str or sequence of str, default=None
        Names of methods; supervised always takes part. None compares all, and a
        random forest, logistic regression, LDA with shrinkage, self-training and label
        spreading of scikit-learn; on features of a network all but the ensemble.
    shrinkage : float, "auto" or a sequence of them, default=None
        Shrinkages with which every method is run; 0 is none. None is "auto", and with
        5 labels per feature or more also 0.
    n_labeled : int, default=None
        Labels to keep in every split; the others are hidden.
    unlabeled : str, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        A second table, all of whose rows are unlabeled.
    drop : str or sequence of str, default=()
        Columns to leave out.
    keep : str or sequence of str, default=None
        Columns to use, and no others. None uses all.
    strict : bool, default=False
        Whether columns that cannot be used, such as names, are an error. Otherwise they
        are left out.
    repeats : int, default=None
        Random divisions into folds. None chooses at most 10, 5 or 2 by the size of the
        table, and ends after 3 if the choice is settled.
    folds : int, default=None
        Number of folds. None is 10, or fewer if a class has fewer labels.
    curves : bool, default=True
        Whether to compute learning curves, which take a quarter of the time.
    measure : str, default=None
        The measure that decides what is recommended: "brier", "error", "balanced" (the
        mean of the errors of the classes) or, for two classes, "auc" (the area under
        the ROC curve). None is "brier".
    fast : bool, default=False
        Whether to give an answer soon, from at most 3 repeats, without learning curves,
        and without iclda-proportions unless ``methods`` names it.
    time : float or str, default=None
        A time limit in seconds, or such as "60s" or "5m": as many repeats as it allows,
        but at least one, and no learning curves. With ``out``, a later call without it
        goes on. None is no limit.
    seed : int, default=0
        All splits and random starts follow from it.
    n_jobs : int, default=1
        Number of processes.
    out : str or Path, default=None
        Folder that keeps every fit, so that an interrupted comparison can go on. None
        keeps nothing.

    Returns
    -------
    findings : Findings
        ``findings.verdict`` (what to use, the error to expect, why),
        ``findings.table``, ``findings.scores``, ``findings.differences`` and
        ``findings.curves`` (pandas frames), ``findings.figures()`` and
        ``findings.save(folder)``. Notebooks show the answer and the table.
    """
    # Wrong parameters are refused before the table is read.
    chosen_methods = None
    if methods is not None:
        chosen_methods = find_compared(_listed(methods))
    shrinkages = None
    if shrinkage is not None:
        shrinkages = _check_shrinkages(shrinkage)
    deciding = check_measure(measure)
    time_limit = parse_time(time)
    options = ReadOptions(
        target=target,
        unlabeled=unlabeled,
        unlabeled_file=unlabeled_file,
        drop=_listed(drop),
        keep=None if keep is None else _listed(keep),
        strict=strict,
        labels=labels,
        id=id,
    )
    counts: dict[str, Any] = {
        "repeats": _optional_count("repeats", repeats, 2),
        "folds": _optional_count("folds", folds, 2),
        "n_labeled": _optional_count("n_labeled", n_labeled, 1),
        "seed": check_count("seed", seed, 0),
        "jobs": check_count("n_jobs", n_jobs, 1),
    }
    if isinstance(table, (str, Path)):
        rows = read_file(Path(table), options)
    else:
        rows = read_frame(table, options)
    # Without a folder to keep them, fits are stored only until the findings are read.
    with tempfile.TemporaryDirectory() as folder:
        plan = ComparisonPlan(
            table=rows.framed(),
            out=Path(folder) / "comparison" if out is None else Path(out),
            methods=chosen_methods,
            shrinkages=shrinkages,
            reading=options.to_json(),
            is_fast=fast,
            time=time_limit,
            measure=deciding,
            **counts,
        )
        # The methods on the curves are known once the comparison is complete.
        with open_run(plan) as run:
            run.compare(show_nothing)
            if curves and not fast and time_limit is None:
                run.add_curves(show_nothing)
        return read_findings(plan.out)


def _check_shrinkages(given: Any) -> tuple[Shrinkage, ...]:
    """Return one or several shrinkages, each once; ValueError if one is wrong."""
    values = given if isinstance(given, (list, tuple)) else [given]
    # As text they are checked as on the command line.
    return parse_shrinkages(shrinkage_text(values))


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    """Return names; a single one may be passed as such."""
    return [names] if isinstance(names, str) else names


def _optional_count(name: str, value: Any, minimum: int) -> int | None:
    """Return a whole number of at least ``minimum``, or None if none is given."""
    return None if value is None else check_count(name, value, minimum)
