"""Rounds of labeling: which rows a person labels next, and the error that the labels show."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from .._core.types import AnyArray
from .._estimators.average import AverageLDA
from .._estimators.labels import FREE
from .._messages import plural, say
from .._paths import check_writable
from .._statistics import LEAST_TESTED, ErrorEstimate, percent_text
from ..model_selection._rows_to_label import rows_to_label
from .answers import CHOSEN, LABEL, OWN_COLUMNS, RANDOM, ROW, Answers
from .array_files import FeatureFile
from .encoders import number_in, pipeline, preprocessing, require_for_tables
from .fit_predict import random_estimate, wrong_on_random
from .table import (
    ReadOptions,
    Table,
    places_of,
    read_classes,
    read_opened,
    row_ids,
    to_pandas_frame,
    why_withheld,
)
from .table_files import DataReader, open_data

_MOST_OTHERS = 8  # columns that are no text, of those that a person sees
_SAME_NUMBER = 1e-3  # relative difference that a spreadsheet may make by rounding
_MORE = 10  # labels whose worth is predicted


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
        fall = np.log(self.before / self.estimate.error) / np.log(self.n_labels / n_before)
        return float(self.estimate.error * (1 + _MORE / self.n_labels) ** -fall)

    def __str__(self) -> str:
        if self.estimate is None:
            return f"The error is not known yet: {self.withheld}."
        text = f"Expect {self.estimate}"
        if self.before is None:
            return f"{text}."
        text += f"; without the {plural(self.n_last, 'label')} of the last round "
        text += f"{percent_text(self.before)} ({self.n_right} test rows became right, "
        text += f"{self.n_wrong} wrong)"
        if self.after_more is None:
            return f"{text}. What {_MORE} more labels bring, this does not show."
        gain = 100 * (self.estimate.error - self.after_more)
        return f"{text}. {_MORE} more labels should lower it by about {gain:.1f} points."


@dataclass(frozen=True)
class Round:
    """A round of labeling: the answers so far and the rows asked for."""

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
            n_open = plural(self.n_open, "row")
            lines.append(f"{n_open} of earlier rounds in {path} have no answer yet, and stay.")
        if n_added:
            parts = [(self.n_chosen, CHOSEN), (self.n_random, "drawn at random")]
            how = " and ".join(f"{n} {text}" for n, text in parts if n)
            lines.append(f"Wrote {path}: {plural(n_added, 'more row')} to label, {how}.")
        elif not self.n_left and not self.n_open:
            lines.append("All rows are labeled: nothing is left to ask for.")
        elif not self.n_left:
            lines.append("No further row is left to ask for.")
        return lines

    @property
    def needs_random_rows(self) -> bool:
        """Whether too few rows drawn at random are labeled or asked for to know the error."""
        return bool(self.progress.withheld) and len(self.answers.ids(RANDOM)) < LEAST_TESTED

    def to_json(self) -> dict[str, Any]:
        """The round as values that JSON has."""
        counts = ("n_labels", "n_chosen", "n_random", "n_open", "n_left")
        progress, estimate = self.progress, self.progress.estimate
        return {
            "labels": str(self.answers.path),
            **{name: getattr(self, name) for name in counts},
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
    target: str | None = None,
    id: str | None = None,
    labels: Path = Path("to_label.csv"),
    n_test: int = 0,
    seed: int = 0,
) -> Round:
    """Add rows to the file of rows to label, which is made if there is none.

    Everything is computed before the file is written, and answers stay as they are.
    """
    check_writable(labels)
    file = open_data(path, [id or ROW])
    if id is None and not isinstance(file, FeatureFile) and ROW in file.columns:
        sentence = "{path} has a column {row!r}: name the column that identifies the rows by {@id}."
        raise ValueError(say(sentence, path=path, row=ROW))
    session = Session(file, Answers.read(labels, id or ROW, target or LABEL), seed)
    free = session.free
    n_random = min(n_test, len(free))
    n_chosen = min(n, len(free) - n_random)
    rng = np.random.default_rng([seed, session.answers.n_rounds])
    random = rng.choice(free, n_random, replace=False)
    chosen = session.choose(n_chosen, random)
    progress = session.progress()
    number, answers = session.answers.n_rounds + 1, session.answers
    for rows, how in ((random, RANDOM), (chosen, CHOSEN)):
        if len(rows):
            answers = session.added(answers, rows, how, number)
    if n_random + n_chosen:
        answers.write()
    notes = list(session.table.notes)
    if n_random + n_chosen < n + n_test and len(free):
        notes.append(f"{n + n_test} rows were wanted, and {len(free)} were left to ask for.")
    return Round(
        answers=answers,
        progress=progress,
        n_labels=int(session.table.is_labeled.sum()),
        n_chosen=n_chosen,
        n_random=n_random,
        n_open=len(session.answers.open_ids),
        n_left=len(free) - n_random - n_chosen,
        notes=notes,
    )


@dataclass(frozen=True)
class Session:
    """A file of rows, and the answers so far."""

    file: DataReader
    answers: Answers
    seed: int = 0

    @cached_property
    def table(self) -> Table:
        """All rows, with the labels of the file and the answers; ValueError if these do not fit."""
        answers, file = self.answers, self.file
        path = answers.path if answers.path.exists() else None
        options = ReadOptions(answers.target, drop_unusable=True, labels=path, id=answers.id)
        if path is not None:
            self._check_unchanged()
            return read_opened(file, options, read_classes(file, options))
        if answers.target in file.columns:
            cells = file.column(answers.target)
        else:
            cells = require_for_tables("pyarrow").nulls(file.n_rows, "string")
        return read_opened(file, options, (answers.target, cells, []))

    @cached_property
    def ids(self) -> AnyArray:
        return row_ids(self.file, self.answers.id)

    @cached_property
    def places(self) -> dict[str, int]:
        """Index of the row of every id; ValueError if an id does not identify a row."""
        return places_of(self.ids, self.file.path, self.answers.id)

    @cached_property
    def free(self) -> AnyArray:
        """Indices of the rows that are neither labeled nor asked for."""
        is_free, places = ~self.table.is_labeled, self.places
        is_free[[places[text] for text in self.answers.ids()]] = False
        return np.flatnonzero(is_free)

    @cached_property
    def framed(self) -> Table:
        return self.table.framed()

    @cached_property
    def model(self) -> Any:
        """The unfitted model of guesses and of the error; it takes rows of ``framed``."""
        is_array = isinstance(self.file, FeatureFile)
        encoder = None if is_array else preprocessing(self.table.features)
        return pipeline(encoder, AverageLDA(proportions=FREE))

    @cached_property
    def shown(self) -> Any:
        """Frame of the columns that a person sees: all text, and some others; none of features."""
        own = {self.answers.id, self.answers.target, *OWN_COLUMNS}
        if isinstance(self.file, FeatureFile):
            return require_for_tables("pandas").DataFrame(index=range(len(self.ids)))
        names = [name for name in self.file.columns if name not in own]
        frame = to_pandas_frame(self.file.read(names))
        is_text = np.array([kind.kind == "O" for kind in frame.dtypes], dtype=bool)
        kept = {*frame.columns[is_text], *frame.columns[~is_text][:_MOST_OTHERS]}
        return frame[[name for name in names if name in kept]]

    def _check_unchanged(self) -> None:
        """Raise a ValueError if most rows asked for show other cells than the file has now."""
        asked = self.answers.frame
        asked = asked[asked[self.answers.id].isin(self.places)]
        frame = self.shown.iloc[[self.places[text] for text in asked[self.answers.id]]]
        is_changed = np.zeros(len(asked), dtype=bool)
        for name in frame.columns.intersection(asked.columns):
            if frame[name].dtype.kind in "Oiuf":
                pairs = zip(map(_cell, frame[name]), asked[name], strict=True)
                is_changed |= np.array([not _are_same(*pair) for pair in pairs], dtype=bool)
        if 2 * is_changed.sum() > len(asked):
            raise ValueError(
                f"{self.answers.path} shows other rows than {self.file.path} has now: "
                f"{is_changed.sum()} of {len(asked)} differ. Bring back the file that they were "
                "taken from, or name another file of rows to label, which will be made."
            )

    def choose(self, n: int, pending: AnyArray) -> AnyArray:
        """Indices of the next rows to label, besides those that are being labeled."""
        if not n:
            return np.zeros(0, dtype=int)
        codes = np.full(len(self.ids), -1)
        is_labeled = self.table.is_labeled
        codes[is_labeled] = np.unique(
            self.table.labels[is_labeled].astype(str), return_inverse=True
        )[1]
        waiting = [self.places[text] for text in self.answers.open_ids]
        waiting = [k for k in waiting if not is_labeled[k]]
        if isinstance(self.file, FeatureFile):
            rows = self.file.rows
        else:
            rows = self.model[:-1].fit_transform(self.table.features).to_numpy()
        return rows_to_label(rows, n, codes, pending=[*waiting, *pending], random_state=self.seed)

    def progress(self) -> Progress:
        """Estimate the error, and that without the labels of the last round."""
        table, framed, model = self.table, self.framed, self.model
        if withheld := why_withheld(table):
            return Progress(None, withheld)
        is_wrong = wrong_on_random(model, framed)
        estimate = random_estimate(framed, is_wrong)
        rounds = {text: self.answers.rounds[text] for text in self.answers.labels}
        is_last = np.zeros(len(self.ids), dtype=bool)
        last = [text for text, number in rounds.items() if number == max(rounds.values())]
        is_last[[self.places[text] for text in last]] = True
        n_labels, n_last = int(table.is_labeled.sum()), int(is_last.sum())
        if n_last in (0, n_labels):
            return Progress(estimate)
        is_training = framed.is_labeled.copy()
        is_training[is_training] = ~is_last[table.is_labeled]
        was_wrong = wrong_on_random(model, framed, is_training)
        return Progress(
            estimate,
            before=float(was_wrong.mean()),
            n_right=int((was_wrong & ~is_wrong).sum()),
            n_wrong=int((is_wrong & ~was_wrong).sum()),
            n_labels=n_labels,
            n_last=n_last,
        )

    def added(self, answers: Answers, rows: AnyArray, how: str, number: int) -> Answers:
        """Answers with further rows, what a person needs to decide, and guesses."""
        shown = self.shown.iloc[rows]
        cells = {name: list(map(_cell, shown[name])) for name in shown.columns}
        ids = self.ids[rows].tolist()
        return answers.asking(ids, how, self._guesses(rows), cells, number)

    def _guesses(self, rows: AnyArray) -> list[str] | None:
        if len(self.table.classes) < 2 or not len(rows):
            return None
        predicted = self._fitted.predict(self._features(rows))
        return [str(name) for name in predicted[np.argsort(np.argsort(rows))]]

    @cached_property
    def _fitted(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels are few, which the person is about to change
            return clone(self.model).fit(self.framed.features, self.framed.labels)

    def _features(self, rows: AnyArray) -> Any:
        """Features of rows in ascending order."""
        if isinstance(self.file, FeatureFile):
            return self.file.take(np.isin(np.arange(len(self.ids)), rows))
        return self.table.features.iloc[np.sort(rows)]


def _cell(value: Any) -> str:
    return "" if require_for_tables("pandas").isna(value) else str(value)


def _are_same(now: str, then: str) -> bool:
    """Whether two cells show the same, as far as a spreadsheet keeps numbers."""
    before, after = number_in(then), number_in(now)
    if before is None or after is None:
        return now.strip() == then.strip()
    return bool(np.isclose(after, before, rtol=_SAME_NUMBER, equal_nan=True))
