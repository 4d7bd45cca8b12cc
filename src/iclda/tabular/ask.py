"""Projects of labeling: the rows a person labels next, and the error that labels show.

A `Pool` is the file of the rows, and `Answers` is the file in which a person labels
some of them. A `Project` joins the two: it knows which rows are labeled, asked for or
free, draws the next rows to ask for, and estimates the error of a model fitted to the
labels so far. `ask_for_labels` carries out one round of it, which is the command
``iclda ask``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._core import AnyArray
from .._estimators.average_lda import AverageLDA
from .._estimators.labels import FREE
from .._messages import plural
from .._statistics import LEAST_TESTED, ErrorEstimate, percent_text
from .._system import check_writable
from ..model_selection._rows_to_label import rows_to_label
from .encoders import pipeline, preprocessing, require_for_tables, texts_of
from .fit_predict import random_estimate, wrong_on_random
from .table import (
    Classes,
    ReadOptions,
    RowIds,
    Table,
    labels_of,
    read_opened,
    to_pandas_frame,
    why_withheld,
)
from .table_files import (
    CHOSEN,
    LABEL,
    OWN_COLUMNS,
    RANDOM,
    ROW,
    Answers,
    FeatureFile,
    open_data,
)

# Columns without text that a person sees; columns of text are all shown.
_MAX_SHOWN_NUMBER_COLUMNS = 8
# Unlabeled rows that a fit uses.
_MAX_UNLABELED_ROWS = 4_096
# Relative difference that a spreadsheet may make by rounding what it shows.
_SPREADSHEET_PRECISION = 1e-3
# The worth of further labels is predicted for this many.
_N_MORE_LABELS = 10


class Batch(NamedTuple):
    """Rows to label, as `Answers.asking` takes them."""

    ids: list[str]
    how: list[str]
    guesses: Sequence[str] | str
    shown: Mapping[str, list[str]]


@dataclass(frozen=True)
class Progress:
    """The error that labels show, and how the last round changed it.

    Attributes
    ----------
    estimate : ErrorEstimate or None
        The error of a fit to all labels, measured on those drawn at random.
    withheld : str
        Why there is no estimate.
    before : float or None
        The error, on the same test rows, of a fit without the labels of the last round.
    n_right : int
        Test rows that the labels of the last round made right.
    n_wrong : int
        Test rows that the labels of the last round made wrong.
    n_labels : int
        All labels.
    n_last : int
        Labels of the last round.
    """

    estimate: ErrorEstimate | None
    withheld: str = ""
    before: float | None = None
    n_right: int = 0
    n_wrong: int = 0
    n_labels: int = 0
    n_last: int = 0

    @property
    def after_more(self) -> float | None:
        """Error after ten more labels, by a power law; None if the error did not fall.

        The fall in the last round has to exceed one standard error of the difference on
        the same test rows.
        """
        if self.estimate is None or self.before is None:
            return None
        n_before = self.n_labels - self.n_last
        # Only rows whose prediction changed count: the difference of two such counts
        # has the variance of their sum.
        net_gain = self.n_right - self.n_wrong
        is_fall = net_gain > np.sqrt(self.n_right + self.n_wrong)
        error = self.estimate.error
        if not is_fall or n_before < 1 or error == 0:
            return None
        # The power law error ~ n_labels ** -exponent goes through both errors.
        exponent = np.log(self.before / error) / np.log(self.n_labels / n_before)
        return float(error * (1 + _N_MORE_LABELS / self.n_labels) ** -exponent)

    def __str__(self) -> str:
        if self.estimate is None:
            return f"The error is not known yet: {self.withheld}."
        text = f"Expect {self.estimate}"
        if self.before is None:
            return f"{text}."
        text += (
            f"; without the {plural(self.n_last, 'label')} of the last round "
            f"{percent_text(self.before)} ({plural(self.n_right, 'test row')} became "
            f"right, {self.n_wrong} wrong)"
        )
        if self.after_more is None:
            more = f"What {_N_MORE_LABELS} more labels bring, this does not show."
        else:
            gain = 100 * (self.estimate.error - self.after_more)
            more = (
                f"{_N_MORE_LABELS} more labels should lower it by about {gain:.1f} "
                "points."
            )
        return f"{text}. {more}"


class Pool:
    """The rows of a file that may be labeled: ids, features, cells to look at.

    Attributes
    ----------
    id, target : str
        Names of the columns of ids and of classes.
    file : DataReader
        The file.
    rows : RowIds
        Position of the row of every id.
    ids : list of str
        Ids in the order of the file.
    table : Table
        Features, and the labels that the file itself has.
    labels : dict of str to str
        The same labels, by id.
    has_features : bool
        Whether there is a column that a model can learn from.
    """

    def __init__(self, path: Path, id: str = ROW, target: str = LABEL) -> None:
        self.id = id
        self.target = target
        file = open_data(path, [id])
        self.file = file
        self.is_array = isinstance(file, FeatureFile)
        if not isinstance(file, FeatureFile):
            file.hold(file.columns, texts=[id, target])
        self.rows = RowIds(file, id)
        self.ids = [*self.rows]
        if target in file.columns:
            cells = file.column(target)
        else:
            cells = require_for_tables("pyarrow").nulls(file.n_rows, "string")
        options = ReadOptions(target, drop_unusable=True, id=id)
        self.table = read_opened(file, options, Classes(target, cells))
        self.labels = {
            text: label
            for text, label in zip(self.ids, self.table.labels, strict=True)
            if label is not None
        }
        self.has_features = self.is_array or len(self.table.features.columns) > 0

    @cached_property
    def model(self) -> Any:
        """The unfitted model that guesses classes and whose error is estimated."""
        encoder = None if self.is_array else preprocessing(self.table.features)
        return pipeline(encoder, AverageLDA(proportions=FREE))

    @cached_property
    def shown(self) -> Any:
        """Frame of the columns that a person sees: all text, and some others."""
        file: Any = self.file
        features = chain(*file.lists.values())
        hidden = {self.id, self.target, *OWN_COLUMNS, *features}
        names = [name for name in file.columns if name not in hidden]
        if not names:
            return require_for_tables("pandas").DataFrame(index=range(len(self.ids)))
        frame = to_pandas_frame(file.read(names))
        is_text = np.array([dtype.kind == "O" for dtype in frame.dtypes], dtype=bool)
        texts = frame.columns[is_text]
        others = frame.columns[~is_text][:_MAX_SHOWN_NUMBER_COLUMNS]
        shown = {*texts, *others}
        return frame[[name for name in names if name in shown]]

    def cells(self, rows: AnyArray | Sequence[int]) -> dict[str, list[str]]:
        """Text that a person sees of some rows, by column."""
        frame = self.shown.iloc[rows]
        return {
            name: [text or "" for text in texts_of(frame[name], empty=("",))]
            for name in frame.columns
        }

    def check_unchanged(self, answers: Answers, rows: AnyArray) -> None:
        """Raise a ValueError if the file of the rows changed after it was asked about.

        The file of answers repeats some cells of every row that it asks about. If more
        than half of these rows look different now, ids no longer name the same rows.
        """
        asked = answers.frame
        columns = [name for name in asked.columns if self._is_text_or_number(name)]
        pandas = require_for_tables("pandas")
        current = pandas.DataFrame(self.cells(rows), columns=columns, index=asked.index)

        # A spreadsheet may have rewritten 0.5 as 0,5 or rounded it: numbers are
        # compared as numbers.
        asked_numbers = _to_numbers(asked[columns].replace(",", ".", regex=True))
        is_same_number = np.isclose(
            _to_numbers(current), asked_numbers, rtol=_SPREADSHEET_PRECISION
        )
        is_same = is_same_number | (current == asked[columns])
        n_changed = int((~is_same.all(axis=1)).sum())
        if 2 * n_changed > len(rows):
            raise ValueError(
                f"{answers.path} shows other rows than {self.file.path} has now: "
                f"{n_changed} of {len(rows)} differ. Bring back the file that they "
                "were taken from, or name another file of rows to label, which will "
                "be made."
            )

    def _is_text_or_number(self, name: str) -> bool:
        """Whether a shown column has cells that a spreadsheet keeps as they are."""
        return name in self.shown and self.shown[name].dtype.kind in "Oiuf"


def _to_numbers(frame: Any) -> Any:
    """Return the numbers in a frame of text, NaN for other text."""
    pandas = require_for_tables("pandas")
    return frame.apply(pandas.to_numeric, errors="coerce")


@dataclass(frozen=True, eq=False)
class Project:
    """The rows of a pool and the answers so far: rows labeled, asked for, or free."""

    pool: Pool
    answers: Answers
    seed: int = 0

    @classmethod
    def read(cls, pool: Pool, path: Path, seed: int = 0) -> Project:
        """Read the file of answers; ValueError if they do not fit the rows."""
        project = cls(pool, Answers.read(path, pool.id, pool.target), seed)
        pool.check_unchanged(project.answers, project._rows(project.answers.ids()))
        project.answers.check_spelling(project.labels.values(), pool.file)
        return project

    @property
    def labels(self) -> dict[str, str]:
        """Class of every id that has one, in the file of rows or in that of answers."""
        return {**self.pool.labels, **self.answers.labels}

    def _rows(self, ids: Sequence[str]) -> AnyArray:
        return self.pool.rows.rows_of(ids, self.answers.path)

    @cached_property
    def table(self) -> Table:
        """All rows, with the labels of the file and the answers."""
        answers = self.answers
        labels = self.pool.table.labels.copy()
        labels[self._rows([*answers.labels])] = [*answers.labels.values()]
        cells = require_for_tables("pyarrow").array(labels.tolist(), "string")
        labels = labels_of(cells, answers.path, self.pool.target, None, 0)
        is_chosen = np.zeros(len(labels), dtype=bool)
        is_chosen[self._rows(answers.ids(CHOSEN))] = True
        return replace(self.pool.table, labels=labels, is_chosen=is_chosen)

    @cached_property
    def sample(self) -> Table:
        """The labeled rows and some others, as a frame."""
        return self.table.framed(_MAX_UNLABELED_ROWS)

    @cached_property
    def is_free(self) -> AnyArray:
        """Which rows are neither labeled nor asked for."""
        is_free = ~self.table.is_labeled
        is_free[self._rows(self.answers.ids())] = False
        return is_free

    @cached_property
    def fitted(self) -> Any:
        """The model fitted to the sample; None without features or two classes."""
        if not self.pool.has_features or len(self.table.classes) < 2:
            return None
        with warnings.catch_warnings():
            # They are about few labels, to which the person is about to add.
            warnings.simplefilter("ignore")
            return clone(self.pool.model).fit(self.sample.features, self.sample.labels)

    def draw(self, n_chosen: int, n_random: int) -> Batch:
        """Draw free rows at random, and choose others because they are informative.

        There are fewer rows if fewer are free. Without features all rows are drawn at
        random; with a model there are guesses.
        """
        if not self.pool.has_features:
            n_random += n_chosen
            n_chosen = 0
        free = np.flatnonzero(self.is_free)
        n_random = min(n_random, len(free))
        n_chosen = min(n_chosen, len(free) - n_random)
        rng = np.random.default_rng([self.seed, self.answers.n_rounds])
        rows = rng.choice(free, n_random, replace=False)
        if n_chosen:
            rows = np.concatenate([rows, self._most_informative(n_chosen, rows)])

        guesses: Sequence[str] | str = ""
        if self.fitted is not None and len(rows):
            features = self.table.features
            if self.pool.is_array:
                features = features.take(np.isin(np.arange(len(self.pool.ids)), rows))
            guesses = self.fitted.predict(features.loc[rows]).astype(str).tolist()
        ids = [self.pool.ids[row] for row in rows]
        how = [RANDOM] * n_random + [CHOSEN] * n_chosen
        return Batch(ids, how, guesses, self.pool.cells(rows))

    def _most_informative(self, n: int, drawn: AnyArray) -> AnyArray:
        """Choose free rows, given those that were asked for or have just been drawn."""
        pool = self.pool
        is_open = ~self.is_free & ~self.table.is_labeled
        if pool.is_array:
            rows = pool.table.features.rows
        else:
            rows = pool.model[:-1].fit_transform(pool.table.features).to_numpy()
        return rows_to_label(
            rows,
            n,
            self.table.labels,
            unlabeled=None,
            pending=[*np.flatnonzero(is_open), *drawn],
            random_state=self.seed,
        )

    def least_sure(self, n: int) -> list[tuple[int, list[tuple[str, float]]]]:
        """Free rows with the smallest margins, and their two most probable classes."""
        features = self.sample.features
        features = features[self.is_free[features.index]]
        if self.fitted is None or not len(features):
            return []
        probabilities = np.asarray(self.fitted.predict_proba(features))
        best_two = np.argsort(-probabilities, axis=1)[:, :2]
        shares = np.take_along_axis(probabilities, best_two, axis=1)
        names = self.fitted.classes_[best_two].astype(str)
        margins = shares[:, 0] - shares[:, 1]
        unsure = []
        for k in np.argsort(margins, kind="stable")[:n]:
            pairs = list(zip(names[k].tolist(), shares[k].tolist(), strict=True))
            unsure.append((int(features.index[k]), pairs))
        return unsure

    @property
    def withheld(self) -> str:
        """Why the error is not known; empty if it is."""
        if not self.pool.has_features:
            return f"{self.pool.file.path} has no column that a model can learn from"
        return why_withheld(self.table)

    @cached_property
    def is_wrong(self) -> AnyArray:
        """Which labels drawn at random are predicted wrongly by fits without them."""
        return wrong_on_random(self.pool.model, self.sample)

    @property
    def error(self) -> ErrorEstimate | None:
        """The error to expect on new rows; None if it is not known."""
        return None if self.withheld else random_estimate(self.sample, self.is_wrong)

    def progress(self) -> Progress:
        """Estimate the error, and that without the labels of the last round."""
        error = self.error
        is_last = self._is_of_last_round()
        n_last = int(is_last.sum())
        n_labels = int(self.table.is_labeled.sum())
        if error is None or n_last in (0, n_labels):
            return Progress(error, self.withheld)
        is_training = self.sample.is_labeled & ~is_last[self.sample.features.index]
        was_wrong = wrong_on_random(self.pool.model, self.sample, is_training)
        return Progress(
            error,
            before=float(was_wrong.mean()),
            n_right=int((was_wrong & ~self.is_wrong).sum()),
            n_wrong=int((self.is_wrong & ~was_wrong).sum()),
            n_labels=n_labels,
            n_last=n_last,
        )

    def _is_of_last_round(self) -> AnyArray:
        """Which rows have an answer of the last round that has any."""
        rounds = self.answers.rounds
        answered = [*self.answers.labels]
        last_round = max((rounds[text] for text in answered), default=0)
        is_last = np.zeros(len(self.table.labels), dtype=bool)
        last_ids = [text for text in answered if rounds[text] == last_round]
        is_last[self._rows(last_ids)] = True
        return is_last


@dataclass(frozen=True)
class Round:
    """A round of labeling: the answers so far and the rows asked for.

    Attributes
    ----------
    n_labels : int
        All labels so far.
    n_chosen, n_random : int
        Rows that were added.
    n_open : int
        Rows of earlier rounds without an answer.
    n_left : int
        Rows neither labeled nor asked for.
    notes : sequence of str
        Remarks on the table.
    """

    pool: Pool
    answers: Answers
    progress: Progress
    n_labels: int
    n_chosen: int
    n_random: int
    n_open: int
    n_left: int
    notes: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """Lines to print after a round, without the suggested next command."""
        path = self.answers.path
        lines = [f"Note: {text}" for text in self.notes]
        if self.n_labels:
            lines.append(str(self.progress))
        if self.n_open:
            rows = plural(self.n_open, "row")
            lines.append(f"Unanswered in {path}: {rows} of earlier rounds.")
        n_added = self.n_chosen + self.n_random
        if n_added:
            parts = [(self.n_chosen, CHOSEN), (self.n_random, "drawn at random")]
            how = " and ".join(f"{n} {text}" for n, text in parts if n)
            rows = plural(n_added, "more row")
            lines.append(f"Wrote {path}: {rows} to label, {how}.")
        elif not self.n_left and self.n_open:
            lines.append("No further row is left to ask for.")
        elif not self.n_left:
            lines.append("All rows are labeled: nothing is left to ask for.")
        return lines

    @property
    def needs_random_rows(self) -> bool:
        """Whether too few random rows are labeled or asked for to know the error."""
        n_random = len(self.answers.ids(RANDOM))
        return bool(self.progress.withheld) and n_random < LEAST_TESTED

    def to_json(self) -> dict[str, Any]:
        """The round as values that JSON has."""
        estimate = self.progress.estimate
        return {
            "labels": str(self.answers.path),
            "n_labels": self.n_labels,
            "n_chosen": self.n_chosen,
            "n_random": self.n_random,
            "n_open": self.n_open,
            "n_left": self.n_left,
            "error": None if estimate is None else vars(estimate),
            "withheld": self.progress.withheld,
            "error_before": self.progress.before,
            "error_after_10_more": self.progress.after_more,
            "lines": self.lines,
        }


def ask_for_labels(
    path: Path,
    n: int,
    *,
    target: str = LABEL,
    id: str = ROW,
    labels: Path = Path("to_label.csv"),
    n_test: int = 0,
    seed: int = 0,
) -> Round:
    """Add rows to the file of rows to label, which is made if there is none.

    ``n`` rows are chosen and ``n_test`` rows are drawn at random. Everything is
    computed before the file is written, and answers stay as they are.
    """
    check_writable(labels)
    project = Project.read(Pool(path, id, target), labels, seed)
    progress = project.progress()
    batch = project.draw(n, n_test)
    answers = project.answers.asking(*batch)
    notes = [*project.table.notes]
    n_free = int(project.is_free.sum())
    n_added = len(batch.ids)
    n_wanted = n + n_test
    if n_added:
        answers.write()
        if n_added < n_wanted:
            notes.append(
                f"{n_wanted} rows were wanted, and {n_free} were left to ask for."
            )
    n_drawn = Counter(batch.how)
    return Round(
        project.pool,
        answers,
        progress,
        n_labels=len(project.labels),
        n_chosen=n_drawn[CHOSEN],
        n_random=n_drawn[RANDOM],
        n_open=len(project.answers.open_ids),
        n_left=n_free - n_added,
        notes=notes,
    )
