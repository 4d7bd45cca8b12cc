"""A project of labeling: which rows are labeled, asked for, or free.

A `Project` joins the rows of a `Pool` and the `Answers` so far. It draws the next rows
to ask for, and estimates the error of a model fitted to the labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._core import AnyArray
from .._error_estimate import ErrorEstimate
from .._messages import Text
from .._suspicious_labels import suspicious_labels
from ..model_selection._rows_to_label import rows_to_label
from ..tabular.answer_files import CHOSEN, RANDOM, check_spelling
from ..tabular.cells import require_for_tables
from ..tabular.class_names import labels_of
from ..tabular.label_error import random_estimate, why_withheld, wrong_on_random
from ..tabular.labels import Classes
from ..tabular.table import Table, with_classes
from .answers import Answers
from .pool import Pool

# A fit uses at most this many unlabeled rows.
_MAX_UNLABELED_ROWS = 4_096


class Batch(NamedTuple):
    """Rows to label, as `Answers.asking` takes them."""

    ids: list[str]
    how: list[str]
    guesses: Sequence[str] | str
    shown: Mapping[str, list[str]]


class SuspiciousRow(NamedTuple):
    """A labeled row that fits without its label put into another class.

    ``probability`` is that of the predicted class.
    """

    position: int
    label: str
    predicted: str
    probability: float


@dataclass(frozen=True, eq=False)
class Project:
    """The rows of a pool and the answers so far: rows labeled, asked for, or free."""

    pool: Pool
    answers: Answers
    seed: int = 0

    @classmethod
    def read(cls, pool: Pool, path: Path, seed: int = 0) -> Project:
        """Read the file of answers; ValueError if they do not fit the rows."""
        answers = Answers.read(path, pool.id, pool.target)
        project = cls(pool, answers, seed)
        asked_rows = project.rows_of(answers.ids())
        pool.check_unchanged(answers, asked_rows)
        check_spelling(project.labels.values(), pool.target, path, pool.file)
        return project

    @property
    def labels(self) -> dict[str, str]:
        """The class of every id that has one, in the file of rows or of answers."""
        none_ids = {*self.answers.none_ids}
        labels = {**self.pool.labels, **self.answers.labels}
        return {id: label for id, label in labels.items() if id not in none_ids}

    @property
    def open_ids(self) -> list[str]:
        """Ids of rows that were asked for and have no class in either file."""
        labels = self.labels
        return [id for id in self.answers.open_ids if id not in labels]

    @property
    def is_last_round_open(self) -> bool:
        """Whether rows were asked for, and none of the last round has an answer."""
        rounds = self.answers.rounds
        n_rounds = self.answers.n_rounds
        last_ids = [row_id for row_id in rounds if rounds[row_id] == n_rounds]
        return bool(last_ids) and {*last_ids} <= {*self.open_ids}

    def rows_of(self, ids: Sequence[str]) -> AnyArray:
        """Return the positions of rows by their ids."""
        return self.pool.positions.rows_of(ids, self.answers.path)

    @cached_property
    def table(self) -> Table:
        """All rows, with the labels of the file and the answers."""
        answers = self.answers
        given = answers.labels
        joined = self.pool.table.labels.copy()
        answered_rows = self.rows_of(list(given))
        joined[answered_rows] = list(given.values())
        cells = require_for_tables("pyarrow").array(joined.tolist(), "string")
        # Names of classes that are numbers get the same form in both files: 1 is 1.0.
        labels = labels_of(
            cells, answers.path, self.pool.target, unlabeled=None, n_classes_needed=0
        )
        is_none = np.zeros(len(labels), dtype=bool)
        is_none[self.rows_of(answers.none_ids)] = True
        labels[is_none] = None
        is_chosen = np.zeros(len(labels), dtype=bool)
        chosen_rows = self.rows_of(answers.ids(CHOSEN))
        is_chosen[chosen_rows] = True
        return replace(
            self.pool.table,
            labels=labels,
            is_chosen=is_chosen,
            is_none=is_none if is_none.any() else None,
        )

    def remarks(self, *, has_notes: bool = True) -> list[str]:
        """Return notes and warnings about the table, as a fit to it prints them.

        The table is made again, because columns are judged by the answers, too.
        ``has_notes`` tells whether notes on the columns are among them.
        """
        pool = self.pool
        cells = require_for_tables("pyarrow").array(self.table.labels, "string")
        # The labels do not hold the unlabeled value any more.
        options = replace(pool.options, unlabeled=None)
        table = with_classes(pool.file, Classes(pool.target, cells), options)
        notes = [*(table.notes if has_notes else ()), *self.table.notes_on_none]
        if not self.answers.labels:
            notes += pool.notes_on_target()
        return [
            *(Text("Note: ", note) for note in notes),
            *(Text("Warning: ", warning) for warning in table.warnings),
        ]

    @cached_property
    def sample(self) -> Table:
        """The table of the labeled rows and some others, its features as a frame."""
        return self.table.framed(_MAX_UNLABELED_ROWS)

    @cached_property
    def is_free(self) -> AnyArray:
        """Which rows are neither labeled nor asked for."""
        is_free = ~self.table.is_labeled
        asked_rows = self.rows_of(self.answers.ids())
        is_free[asked_rows] = False
        return is_free

    @cached_property
    def fitted(self) -> Any:
        """The model fitted to the sample; None without features or two classes."""
        if not self.pool.has_features or len(self.table.classes) < 2:
            return None
        with warnings.catch_warnings():
            # Warnings say that labels are few, and the person is about to add some.
            warnings.simplefilter("ignore")
            return clone(self.pool.model).fit(self.sample.features, self.sample.labels)

    def draw(self, n_chosen: int, n_random: int, *, unknown: bool = False) -> Batch:
        """Draw free rows at random, and choose others because they are informative.

        There are fewer rows if fewer are free. Without features all rows are drawn at
        random. The batch has guesses if a model could be fitted. With ``unknown``, rows
        that resemble none of the classes are chosen first.
        """
        if not self.pool.has_features:
            n_random += n_chosen
            n_chosen = 0
        free = np.flatnonzero(self.is_free)
        n_random = min(n_random, len(free))
        n_chosen = min(n_chosen, len(free) - n_random)
        # Another round draws other rows.
        rng = np.random.default_rng([self.seed, self.answers.n_rounds])
        rows = rng.choice(free, n_random, replace=False)
        if n_chosen:
            chosen = self._most_informative(n_chosen, rows, unknown=unknown)
            rows = np.concatenate([rows, chosen])

        ids = [self.pool.ids[row] for row in rows]
        how = [RANDOM] * n_random + [CHOSEN] * n_chosen
        return Batch(ids, how, self._guesses_for(rows), self.pool.cells(rows))

    def _guesses_for(self, rows: AnyArray) -> Sequence[str] | str:
        """Return the classes that the model predicts; empty text without a model."""
        if self.fitted is None or not len(rows):
            return ""
        features = self.table.features
        if self.pool.is_array:
            # A frame of these rows, indexed by position as that of a table is.
            is_taken = np.isin(np.arange(len(self.pool.ids)), rows)
            features = features.take(is_taken)
        predicted = self.fitted.predict(features.loc[rows])
        return predicted.astype(str).tolist()

    def _most_informative(self, n: int, drawn: AnyArray, *, unknown: bool) -> AnyArray:
        """Choose free rows that add to those asked for and to those just drawn."""
        pool = self.pool
        if pool.is_array:
            rows = pool.table.features.rows
        else:
            encoder = pool.model[:-1]
            rows = encoder.fit_transform(pool.table.features).to_numpy()
        # These rows will have labels, too: chosen ones should not be like them.
        is_open = ~self.is_free & ~self.table.is_labeled
        pending = [*np.flatnonzero(is_open), *drawn]
        return rows_to_label(
            rows,
            n,
            self.table.labels,
            unlabeled=None,
            pending=pending,
            unknown=unknown,
            random_state=self.seed,
        )

    def least_sure(self, n: int) -> list[tuple[int, list[tuple[str, float]]]]:
        """Return free rows with the smallest margins between their two best classes.

        Each is a position with the names and the probabilities of these classes.
        """
        # The index of these features is the position of each row in the file.
        features = self.sample.features
        is_free = self.is_free[features.index]
        features = features[is_free]
        if self.fitted is None or not len(features):
            return []
        probabilities = np.asarray(self.fitted.predict_proba(features))
        # The codes, names and probabilities of the two best classes: (rows, 2).
        best_two = np.argsort(-probabilities, axis=1)[:, :2]
        names = self.fitted.classes_[best_two].astype(str)
        shares = np.take_along_axis(probabilities, best_two, axis=1)

        margins = shares[:, 0] - shares[:, 1]
        smallest = np.argsort(margins, kind="stable")[:n]
        unsure = []
        for k in smallest:
            pairs = zip(names[k].tolist(), shares[k].tolist(), strict=True)
            position = int(features.index[k])
            unsure.append((position, list(pairs)))
        return unsure

    def suspicious(self) -> list[SuspiciousRow]:
        """Return labeled rows whose labels are probably wrong, the surest first."""
        held_out = None
        if self.fitted is not None:
            # Without unlabeled rows there is no cross-validation.
            held_out = self.fitted[-1].held_out_probabilities_
        if held_out is None:
            return []
        is_labeled = self.sample.is_labeled
        codes = np.searchsorted(self.fitted.classes_, self.sample.labels[is_labeled])
        positions = self.sample.features.index[is_labeled]
        rows = []
        for k in suspicious_labels(held_out, codes):
            position = int(positions[k])
            likeliest = int(held_out[k].argmax())
            rows.append(
                SuspiciousRow(
                    position,
                    label=self.labels[self.pool.ids[position]],
                    predicted=str(self.fitted.classes_[likeliest]),
                    probability=float(held_out[k, likeliest]),
                )
            )
        return rows

    @property
    def withheld(self) -> str:
        """Why the error is not known; empty if it is."""
        if not self.pool.has_features:
            return f"{self.pool.file.path} has no column that a model can learn from"
        # Whoever reads this is drawing rows already.
        return why_withheld(self.table, way_out="")

    @cached_property
    def is_wrong(self) -> AnyArray:
        """Which labels drawn at random are predicted wrongly by fits without them."""
        return wrong_on_random(self.pool.model, self.sample)

    @property
    def error(self) -> ErrorEstimate | None:
        """The error to expect on new rows; None if it is not known."""
        return None if self.withheld else random_estimate(self.sample, self.is_wrong)

    @property
    def is_of_last_round(self) -> AnyArray:
        """Which rows were answered in the last round that has any answers."""
        rounds = self.answers.rounds
        answered = [*self.answers.labels]
        last_round = max((rounds[row_id] for row_id in answered), default=0)
        last_ids = [row_id for row_id in answered if rounds[row_id] == last_round]
        is_last = np.zeros(len(self.table.labels), dtype=bool)
        last_rows = self.rows_of(last_ids)
        is_last[last_rows] = True
        return is_last
