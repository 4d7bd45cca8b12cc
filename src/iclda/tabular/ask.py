"""Projects of labeling: which rows a person labels next, and the error that the labels show."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from .._core import AnyArray
from .._estimators.average import AverageLDA
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

_MOST_OTHER_COLUMNS = 8  # columns that are no text, of those that a person sees
_MOST_UNLABELED = 4_096  # rows that a fit uses besides the labeled ones
_SAME_NUMBER = 1e-3  # relative difference that a spreadsheet may make by rounding
_MORE_LABELS = 10  # labels whose worth is predicted

# Ids of rows to label, how they were drawn, guesses, and cells to look at: see Answers.asking.
Batch = tuple[list[str], list[str], Sequence[str] | str, Mapping[str, list[str]]]


@dataclass(frozen=True)
class Progress:
    """The error that labels show, and how the last round changed it."""

    estimate: ErrorEstimate | None
    withheld: str = ""  # why there is no estimate
    before: float | None = None  # the same without the labels of the last round
    n_right: int = 0  # test rows that the last round made right
    n_wrong: int = 0  # and that it made wrong
    n_labels: int = 0
    n_last: int = 0  # labels of the last round

    @property
    def after_more(self) -> float | None:
        """Error after ten more labels, by a power law; None if the last round shows no fall.

        The fall has to exceed one standard error of the difference on the same test rows.
        """
        if self.estimate is None or self.before is None:
            return None
        n_before, gain = self.n_labels - self.n_last, self.n_right - self.n_wrong
        is_fall = gain > np.sqrt(self.n_right + self.n_wrong)
        if not is_fall or n_before < 1 or self.estimate.error == 0:
            return None
        fall = np.log(self.before / self.estimate.error) / np.log(
            self.n_labels / n_before
        )
        return float(self.estimate.error * (1 + _MORE_LABELS / self.n_labels) ** -fall)

    def __str__(self) -> str:
        if self.estimate is None:
            return f"The error is not known yet: {self.withheld}."
        text = f"Expect {self.estimate}"
        if self.before is None:
            return f"{text}."
        text += f"; without the {plural(self.n_last, 'label')} of the last round "
        text += f"{percent_text(self.before)} ({plural(self.n_right, 'test row')} became right, "
        text += f"{self.n_wrong} wrong)"
        if self.after_more is None:
            return f"{text}. What {_MORE_LABELS} more labels bring, this does not show."
        gain = 100 * (self.estimate.error - self.after_more)
        return f"{text}. {_MORE_LABELS} more labels should lower it by about {gain:.1f} points."


class Pool:
    """The rows of a file that may be labeled: ids, features, and cells for a person to look at."""

    def __init__(self, path: Path, id: str = ROW, target: str = LABEL) -> None:
        self.id, self.target = id, target
        self.file = file = open_data(path, [self.id])
        self.is_array = isinstance(file, FeatureFile)
        self.rows = RowIds(file, self.id)
        self.ids = [*self.rows]
        nothing = require_for_tables("pyarrow").nulls(file.n_rows, "string")
        cells = file.column(self.target) if self.target in file.columns else nothing
        options = ReadOptions(self.target, drop_unusable=True, id=self.id)
        self.table = read_opened(file, options, Classes(self.target, cells))
        own = zip(self.ids, self.table.labels, strict=True)
        self.labels = {text: label for text, label in own if label is not None}
        self.has_features = self.is_array or len(self.table.features.columns) > 0

    @cached_property
    def model(self) -> Any:
        """The unfitted model of guesses and of the error."""
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
        is_text = np.array([kind.kind == "O" for kind in frame.dtypes], dtype=bool)
        kept = {*frame.columns[is_text], *frame.columns[~is_text][:_MOST_OTHER_COLUMNS]}
        return frame[[name for name in names if name in kept]]

    def cells(self, rows: AnyArray | Sequence[int]) -> dict[str, list[str]]:
        """Text that a person sees of some rows, by column."""
        frame = self.shown.iloc[rows]
        return {
            name: [x or "" for x in texts_of(frame[name], ("",))]
            for name in frame.columns
        }

    def check_unchanged(self, answers: Answers, rows: AnyArray) -> None:
        """Raise a ValueError if most rows asked for show other cells than the file has now."""
        pandas, then = require_for_tables("pandas"), answers.frame
        kinds = {name: kind.kind for name, kind in self.shown.dtypes.items()}
        names = [name for name in then.columns if kinds.get(name) in {*"Oiuf"}]
        now = pandas.DataFrame(self.cells(rows), columns=names, index=then.index)
        points = then[names].replace(
            ",", ".", regex=True
        )  # spreadsheets may write commas
        one, two = (x.apply(pandas.to_numeric, errors="coerce") for x in (now, points))
        is_same = np.isclose(one, two, rtol=_SAME_NUMBER) | (now == then[names])
        n_changed = int((~is_same.all(axis=1)).sum())
        if 2 * n_changed > len(rows):
            raise ValueError(
                f"{answers.path} shows other rows than {self.file.path} has now: {n_changed} of "
                f"{len(rows)} differ. Bring back the file that they were taken from, or name "
                "another file of rows to label, which will be made."
            )


@dataclass(frozen=True, eq=False)
class Project:
    """The rows of a pool and the answers so far: which rows are labeled, asked for, or free."""

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
        labels, answers = self.pool.table.labels.copy(), self.answers
        labels[self._rows([*answers.labels])] = [*answers.labels.values()]
        cells = require_for_tables("pyarrow").array(labels.tolist(), "string")
        is_chosen = np.zeros(len(labels), dtype=bool)
        is_chosen[self._rows(answers.ids(CHOSEN))] = True
        labels = labels_of(cells, answers.path, self.pool.target, None, 0)
        return replace(self.pool.table, labels=labels, is_chosen=is_chosen)

    @cached_property
    def sample(self) -> Table:
        """The labeled rows and some others, as a frame."""
        return self.table.framed(_MOST_UNLABELED)

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
            warnings.simplefilter(
                "ignore"
            )  # labels are few, which the person is about to change
            return clone(self.pool.model).fit(self.sample.features, self.sample.labels)

    def draw(self, n_chosen: int, n_random: int) -> Batch:
        """Draw free rows at random, and choose others for their worth; without features, draw all.

        There are fewer rows if fewer are free, and guesses if there is a model.
        """
        free = np.flatnonzero(self.is_free)
        if not self.pool.has_features:
            n_chosen, n_random = 0, n_chosen + n_random
        n_random = min(n_random, len(free))
        n_chosen = min(n_chosen, len(free) - n_random)
        rng = np.random.default_rng([self.seed, self.answers.n_rounds])
        rows = rng.choice(free, n_random, replace=False)
        if n_chosen:
            rows = np.concatenate([rows, self._worthiest(n_chosen, rows)])
        guesses: Sequence[str] | str = ""
        if self.fitted is not None and len(rows):
            features = self.table.features
            if self.pool.is_array:
                features = features.take(np.isin(np.arange(len(self.pool.ids)), rows))
            guesses = self.fitted.predict(features.loc[rows]).astype(str).tolist()
        how = [RANDOM] * n_random + [CHOSEN] * n_chosen
        return [self.pool.ids[row] for row in rows], how, guesses, self.pool.cells(rows)

    def _worthiest(self, n: int, drawn: AnyArray) -> AnyArray:
        pool, labels = self.pool, self.table.labels
        pending = [*np.flatnonzero(~self.is_free & ~self.table.is_labeled), *drawn]
        known: Any = {"unlabeled": None, "pending": pending, "random_state": self.seed}
        if pool.is_array:
            return rows_to_label(pool.table.features.rows, n, labels, **known)
        encoded = pool.model[:-1].fit_transform(pool.table.features)
        return rows_to_label(encoded.to_numpy(), n, labels, **known)

    def least_sure(self, n: int) -> list[tuple[int, list[tuple[str, float]]]]:
        """Free rows with the smallest margins, and probabilities of the two likeliest classes."""
        features = self.sample.features
        features = features[self.is_free[features.index]]
        if self.fitted is None or not len(features):
            return []
        shares = np.asarray(self.fitted.predict_proba(features))
        two = np.argsort(-shares, axis=1)[:, :2]
        pairs = np.take_along_axis(shares, two, axis=1)
        order = np.argsort(pairs[:, 0] - pairs[:, 1], kind="stable")[:n]
        names = self.fitted.classes_[two].astype(str)
        return [
            (
                int(features.index[k]),
                list(zip(names[k].tolist(), pairs[k].tolist(), strict=True)),
            )
            for k in order
        ]

    @property
    def withheld(self) -> str:
        """Why the error is not known; empty if it is."""
        if not self.pool.has_features:
            return f"{self.pool.file.path} has no column that a model can learn from"
        return why_withheld(self.table)

    @cached_property
    def is_wrong(self) -> AnyArray:
        """Whether each label drawn at random is predicted wrongly by a fit without it."""
        return wrong_on_random(self.pool.model, self.sample)

    @property
    def error(self) -> ErrorEstimate | None:
        return None if self.withheld else random_estimate(self.sample, self.is_wrong)

    def progress(self) -> Progress:
        """Estimate the error, and that without the labels of the last round."""
        table, rounds = self.table, self.answers.rounds
        n_labels, answered = int(table.is_labeled.sum()), [*self.answers.labels]
        last = max((rounds[text] for text in answered), default=0)
        is_last = np.zeros(len(table.labels), dtype=bool)
        is_last[self._rows([text for text in answered if rounds[text] == last])] = True
        n_last, error = int(is_last.sum()), self.error
        if error is None or n_last in (0, n_labels):
            return Progress(error, self.withheld)
        features = self.sample.features
        is_training = self.sample.is_labeled & ~is_last[features.index]
        was_wrong = wrong_on_random(self.pool.model, self.sample, is_training)
        return Progress(
            error,
            before=float(was_wrong.mean()),
            n_right=int((was_wrong & ~self.is_wrong).sum()),
            n_wrong=int((self.is_wrong & ~was_wrong).sum()),
            n_labels=n_labels,
            n_last=n_last,
        )


@dataclass(frozen=True)
class Round:
    """A round of labeling: the answers so far and the rows asked for."""

    pool: Pool
    answers: Answers
    progress: Progress
    n_labels: int
    n_chosen: int  # rows that were added
    n_random: int
    n_open: int  # rows of earlier rounds without an answer
    n_left: int  # rows neither labeled nor asked for
    notes: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """What a person should know, a paragraph a line; the next command is not among it."""
        path, n_added = self.answers.path, self.n_chosen + self.n_random
        lines = [f"Note: {text}" for text in self.notes]
        if self.n_labels:
            lines.append(str(self.progress))
        if self.n_open:
            lines.append(
                f"Unanswered in {path}: {plural(self.n_open, 'row')} of earlier rounds."
            )
        if n_added:
            parts = [(self.n_chosen, CHOSEN), (self.n_random, "drawn at random")]
            how = " and ".join(f"{n} {text}" for n, text in parts if n)
            lines.append(
                f"Wrote {path}: {plural(n_added, 'more row')} to label, {how}."
            )
        elif not self.n_left:
            is_done = "All rows are labeled: nothing is left to ask for."
            lines.append(
                "No further row is left to ask for." if self.n_open else is_done
            )
        return lines

    @property
    def needs_random_rows(self) -> bool:
        """Whether too few rows drawn at random are labeled or asked for to know the error."""
        return (
            bool(self.progress.withheld)
            and len(self.answers.ids(RANDOM)) < LEAST_TESTED
        )

    def to_json(self) -> dict[str, Any]:
        """The round as values that JSON has."""
        progress, estimate = self.progress, self.progress.estimate
        return {
            "labels": str(self.answers.path),
            **{
                name: value
                for name, value in vars(self).items()
                if name.startswith("n_")
            },
            "error": None if estimate is None else vars(estimate),
            "withheld": progress.withheld,
            "error_before": progress.before,
            "error_after_10_more": progress.after_more,
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

    Everything is computed before the file is written, and answers stay as they are.
    """
    check_writable(labels)
    project = Project.read(Pool(path, id, target), labels, seed)
    progress, batch = project.progress(), project.draw(n, n_test)
    answers, notes = project.answers.asking(*batch), [*project.table.notes]
    n_added, n_free, how = len(batch[0]), int(project.is_free.sum()), Counter(batch[1])
    if n_added:
        answers.write()
        if n_added < n + n_test:
            notes.append(
                f"{n + n_test} rows were wanted, and {n_free} were left to ask for."
            )
    return Round(
        project.pool,
        answers,
        progress,
        n_labels=len(project.labels),
        n_chosen=how[CHOSEN],
        n_random=how[RANDOM],
        n_open=len(project.answers.open_ids),
        n_left=n_free - n_added,
        notes=notes,
    )
