"""A comparison from Python: a table in, findings with its tables and figures out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from math import inf
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Any

from ..._messages import Hint, ParameterError, plural
from ...methods import Method, Shrinkage
from ...tabular.encoders import require_for_tables
from ...tabular.table import ReadOptions, read_opened
from ...tabular.table_files import CsvReader, ParquetReader, open_table
from .findings import Findings, read_findings
from .plan import find_compared, parse_shrinkages
from .run import ComparisonPlan, check_plan, make_out, open_run

_FRAME = Path("The table")  # as messages and reports call a frame


def compare(
    table: Any,
    *,
    target: str,
    methods: Sequence[str] | None = None,
    shrinkage: Shrinkage | Sequence[Shrinkage] = None,
    n_labeled: int | None = None,
    unlabeled: str | None = None,
    unlabeled_file: str | Path | None = None,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] | None = None,
    drop_unusable: bool = False,
    missing: str = "impute",
    repeats: int | None = None,
    folds: int | None = None,
    curves: bool = True,
    fast: bool = False,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
) -> Findings:
    """Compare methods on a table: whether unlabeled rows help, and with which method.

    The same as the command ``iclda compare``. Needs the extras ``data`` and ``experiments``.

    Parameters
    ----------
    table : DataFrame, str or Path
        A pandas frame, or a .csv, .tsv, .txt (also .gz) or .parquet file. Rows whose target is
        empty are unlabeled.
    target : str
        Name of the column that holds the classes.
    methods : sequence of str, default=None
        Names of methods; supervised always takes part. None compares all, and logistic
        regression, LDA with shrinkage and self-training of scikit-learn.
    shrinkage : float, "auto" or a sequence of them, default=None
        Variants of every method; 0 is none. None is "auto", and with 5 labels per feature or more
        also 0.
    n_labeled : int, default=None
        Keep so many labels in every split and hide the others.
    unlabeled : str, default=None
        A value of the target that marks unlabeled rows, besides empty cells.
    unlabeled_file : str or Path, default=None
        A second table, all of whose rows are unlabeled.
    drop : str or sequence of str, default=()
        Columns to leave out.
    keep : str or sequence of str, default=None
        Columns to use, and no others. None uses all.
    drop_unusable : bool, default=False
        Whether to leave out columns that cannot be used, such as names.
    missing : {"impute", "refuse"}, default="impute"
        What to do about empty cells.
    repeats : int, default=None
        Random divisions into folds; None chooses 10, 5 or 2 by the size of the table.
    folds : int, default=None
        None is 10, or the labels of the rarest class.
    curves : bool, default=True
        Whether to compute learning curves, which take a quarter of the time.
    fast : bool, default=False
        An answer soon: at most 3 repeats, no learning curves, and no iclda-proportions unless
        ``methods`` names it.
    seed : int, default=0
        All splits and starts follow from it.
    n_jobs : int, default=1
        Number of processes.
    out : str or Path, default=None
        Folder that keeps every fit, so that an interrupted comparison goes on. None keeps nothing.

    Returns
    -------
    findings : Findings
        ``findings.verdict`` (what to use, the error to expect, why), ``findings.table``,
        ``findings.scores``, ``findings.differences`` and ``findings.curves`` (pandas frames),
        ``findings.figures()`` and ``findings.save(folder)``. Notebooks show answer and table.
    """
    if not isinstance(unlabeled_file, (str, Path, NoneType)):
        raise TypeError(
            f"unlabeled_file must be the path of a file, got {type(unlabeled_file).__name__}: add "
            "the rows of a frame to the table, pandas.concat([table, frame])."
        )
    repeats, folds = _whole("repeats", repeats, 2, 10_000), _whole("folds", folds, 2)
    n_labeled = _whole("n_labeled", n_labeled, 1)
    seed, n_jobs = _whole("seed", seed, 0, 2**32 - 1) or 0, _whole("n_jobs", n_jobs, 1) or 1
    drop, keep = (
        [drop] if isinstance(drop, str) else drop,
        [keep] if isinstance(keep, str) else keep,
    )
    options = ReadOptions(target, unlabeled, unlabeled_file, drop, keep, drop_unusable, missing)
    with tempfile.TemporaryDirectory() as folder:
        read = read_opened(_open(table, Path(folder)), options)
        plan = ComparisonPlan(
            read,
            Path(folder) / "comparison" if out is None else Path(out),
            _find_methods(methods),
            None if shrinkage is None else _shrinkages(shrinkage),
            repeats=repeats,
            folds=folds,
            n_labeled=n_labeled,
            missing=missing,
            seed=seed,
            jobs=n_jobs,
            unlabeled=unlabeled,
            dropped=tuple(drop),
            kept=() if keep is None else tuple(keep),
            drop_unusable=drop_unusable,
            is_fast=fast,
        )
        check_plan(plan)
        make_out(plan)
        with open_run(plan) as run:
            run.compare(_silent)
            if curves and not fast:
                run.add_curves(_silent)
        return read_findings(plan.out)


def _whole(name: str, value: Any, least: int, most: float = inf) -> int | None:
    """A whole number of at least, and at most, so much, or None if none is given."""
    if value is None:
        return None
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not least <= int(value) <= most:
        rule = f"of {least} or more" if most == inf else f"from {least} to {most}"
        text = f" must be a whole number {rule}, got {value!r}."
        raise ParameterError(Hint(name), text, parameter=name, value=value)
    return int(value)


def _silent(name: str, done: int, total: int, failed: int) -> None:
    pass


def _open(table: Any, folder: Path) -> CsvReader | ParquetReader:
    """The file of a table; a frame is written to one, so that both are read alike."""
    if isinstance(table, (str, Path)):
        return open_table(Path(table))
    pandas = require_for_tables("pandas")
    require_for_tables("pyarrow")
    if not isinstance(table, pandas.DataFrame):
        raise TypeError(
            f"table must be a pandas DataFrame or the path of a file, got "
            f"{type(table).__name__}: for arrays make a frame, pandas.DataFrame(X).assign(y=y)."
        )
    names = [name for name in table.columns if not isinstance(name, str)]
    if names:
        raise ValueError(
            f"{plural(len(names), 'column')} of the table {'has' if len(names) == 1 else 'have'} "
            f"names that are no text, for example {names[0]!r}: rename them, "
            "table.rename(columns=str)."
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"Two columns of the table are named {twice!r}: rename one of them.")
    path = folder / "table.parquet"
    try:
        table.reset_index(drop=True).to_parquet(path)
    except Exception as error:  # whatever Arrow cannot store
        problem = ". ".join(map(str, error.args))
        raise ValueError(
            f"A column of the table cannot be read: {problem}. Make all its values numbers or all "
            "of them text, or drop the column."
        ) from error
    return ParquetReader(_FRAME, path)  # errors do not name a file that nobody knows


def _find_methods(names: Sequence[str] | None) -> tuple[Method, ...] | None:
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__") or not len(names):
        text = f" must be a list of names, got {names!r}."
        raise ParameterError(Hint("methods"), text, parameter="methods", value=names)
    try:
        return find_compared(list(map(str, names)))
    except ValueError as error:
        text = f": {error}"
        raise ParameterError(Hint("methods"), text, parameter="methods", value=names) from None


def _shrinkages(given: Shrinkage | Sequence[Shrinkage]) -> tuple[Shrinkage, ...]:
    values = given if isinstance(given, (list, tuple)) else [given]
    return parse_shrinkages(",".join("0" if each is None else f"{each}" for each in values))
