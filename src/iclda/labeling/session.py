"""The state of a labeling page: the row that is shown, the answers, and what a model makes of them.

All methods but ``LabelingSession.compute`` run on the thread of the server; ``compute`` reads
nothing that they change.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray
from .._estimators.average import AverageLDA
from .._estimators.labels import FREE
from .._messages import plural, quoted_list
from .._statistics import (
    CONFIDENCE,
    LEAST_TESTED,
    ErrorEstimate,
    error_interval,
    percent_text,
)
from ..model_selection import rows_to_label
from ..tabular.answers import CHOSEN, RANDOM, Answers, spelling_of
from .shown import ShownRows, stamp_of

_FIRST = 20  # rows of the first round
_ROUND = 10  # rows of later rounds
_FEW = 5  # open rows below which more are asked for
_RANDOM_EVERY = 5  # of the rows of a round one is drawn at random
_MOST_HELD = 4_096  # rows that a model is fitted to, besides those that are asked for
_MOST_UNSURE = 6  # rows that are listed
_LONGEST = 100  # characters of the name of a class


@dataclass(frozen=True)
class FitTask:
    """What is to be computed: a fit to the labels, guesses of open rows, and further rows."""

    labels: Mapping[str, str]
    asked: Sequence[str]
    n_more: int


@dataclass(frozen=True)
class FitFindings:
    """Results of a task."""

    more: Sequence[int] = ()  # places of further rows, in the order in which to label them
    how: Sequence[str] = ()
    guesses: Mapping[str, str] = field(default_factory=dict)  # by id
    unsure: Sequence[tuple[int, list[tuple[str, float]]]] = ()  # places, and shares of two classes
    problem: str = ""


class LabelingSession:
    """Rows in the order of the file of answers; every answer is written before the next row."""

    def __init__(self, rows: ShownRows, path: Path) -> None:
        self.rows, self.path = rows, path
        self.places = {id: place for place, id in enumerate(rows.ids)}
        self._held = np.zeros(0, dtype=np.int64)  # places of the rows in memory
        self._X = np.zeros((0, 0))
        self.current: str | None = None  # shown before the open rows
        self.history: list[str] = []
        self.skipped: list[str] = []
        self.last: dict[str, str] | None = None
        self.findings = FitFindings()
        self.answers = self._read()
        self.classes = sorted(set(self.labels.values()))
        self._done: FitTask | None = None  # the last task whose findings are known
        # The first rows, and errors in the features, come before the page.
        if (task := self.next_task()) is not None:
            self.accept(task, self.compute(task))

    @property
    def labels(self) -> dict[str, str]:
        """Class of every row that has one, in the file of rows or in that of answers."""
        return {**self.rows.labels, **self.answers.labels}

    def _read(self) -> Answers:
        answers = Answers.read(self.path, self.rows.id, self.rows.target)
        if unknown := [id for id in answers.ids() if id not in self.places]:
            raise ValueError(
                f"{self.path}: no row of {self.rows.path} has the {self.rows.id!r} "
                f"{quoted_list(unknown, 3)}. Its {plural(len(self.places), 'row')} have ids such "
                f"as {quoted_list(self.rows.ids, 3)}: remove these lines, or name another file."
            )
        self._stamp = stamp_of(self.path)
        return answers

    def _write(self, answers: Answers) -> None:
        answers.write()
        self.answers, self._stamp = answers, stamp_of(self.path)

    def sync(self) -> None:
        """Read the answers again if another program has changed them; ValueError if it cannot."""
        if self.path.exists() and stamp_of(self.path) != self._stamp:
            self.answers = self._read()
        self.classes += sorted({*self.labels.values()} - {*self.classes})

    # Actions of the page.

    def answer(self, id: str, name: str) -> None:
        """Give a row its class, that of a similar spelling if there is one."""
        name = " ".join(name.split())
        if not 0 < len(name) <= _LONGEST:
            rule = f"must have 1 to {_LONGEST} characters"
            raise ValueError(f"The name of a class {rule}, got {len(name)}: type another one.")
        known = {spelling_of(each): each for each in reversed(self.classes)}
        label = known.get(spelling_of(name), name)
        self._write(self.answers.answering(id, label))
        self.last = {"id": id, "label": label, "guess": self.answers.guess_of(id)}
        self._leave(id)

    def skip(self, id: str) -> None:
        """Leave a row as it is; an open one comes again when the skipped ones are called."""
        if id not in self.answers.ids():
            raise ValueError(f"{self.path} does not ask for the row {self.rows.id} = {id!r}.")
        if id in self.answers.open_ids:
            self.skipped.append(id)
        self._leave(id)

    def _leave(self, id: str) -> None:
        self.history.append(id)
        self.current = None

    def back(self) -> None:
        """Show the row before again, with its class."""
        if self.history:
            self.current = self.history.pop()
            self.skipped = [id for id in self.skipped if id != self.current]

    def again(self) -> None:
        """Show the skipped rows again."""
        self.skipped = []

    def jump(self, id: str) -> None:
        """Show a certain row; if it was not asked for, it counts as chosen."""
        if id not in self.places:
            raise ValueError(f"{self.rows.path} has no row {self.rows.id} = {id!r}.")
        if id not in self.answers.ids():
            self._ask([self.places[id]], [CHOSEN])
        self.skipped = [each for each in self.skipped if each != id]
        self.current = id

    def _ask(self, places: Sequence[int], how: Sequence[str]) -> None:
        own = {*self.answers.frame.columns[:5]}
        cells = self.rows.shown_cells(places)
        shown = {name: texts for name, texts in cells.items() if name not in own}
        ids = [self.rows.ids[place] for place in places]
        self._write(self.answers.asking(ids, how, shown=shown))

    # The model.

    def next_task(self) -> FitTask | None:
        """What is to be computed now, if anything."""
        asked, labels, done = self.answers.ids(), self.labels, self._done
        n_more = 0 if len(self._waiting) >= _FEW else _ROUND if asked else _FIRST
        n_free = len(self.places) - len({*labels, *asked})
        task = FitTask(labels, asked, min(n_more, n_free))
        is_known = done is not None and task.labels == done.labels and not task.n_more
        return None if is_known or task == done else task

    def compute(self, task: FitTask) -> FitFindings:
        """Choose further rows, fit a model to the labels, and guess the classes of open rows."""
        if self.rows.has_changed:
            raise ValueError(
                f"{self.rows.path} has changed since it was opened: end `iclda label` and start it "
                "again. All answers are kept."
            )
        y = np.full(len(self.places), None, dtype=object)
        y[[self.places[id] for id in task.labels]] = list(task.labels.values())
        is_free = y == None  # noqa: E711 - entry by entry
        is_free[[self.places[id] for id in task.asked]] = False
        more, how = self._choose(task.n_more, y, is_free, len(task.asked))
        is_free[more] = False
        if self.rows.X is None or len(set(task.labels.values())) < 2:
            return FitFindings(more, how)
        self._hold(~is_free)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels are few, which the person is about to change
            try:
                model = AverageLDA(unlabeled=None, proportions=FREE).fit(self._X, y[self._held])
            except ValueError as error:
                return FitFindings(more, how, problem=str(error))
        shares = np.asarray(model.predict_proba(self._X))
        guesses = model.classes_[shares.argmax(axis=1)]
        two = np.argsort(-shares, axis=1)[:, :2]
        margins = -np.diff(np.take_along_axis(shares, two, axis=1), axis=1)[:, 0]
        order = [k for k in np.argsort(margins, kind="stable") if is_free[self._held[k]]]
        return FitFindings(
            more,
            how,
            {self.rows.ids[i]: str(guess) for i, guess in zip(self._held, guesses, strict=True)},
            [
                (
                    int(self._held[k]),
                    [(str(model.classes_[c]), float(shares[k, c])) for c in two[k]],
                )
                for k in order[:_MOST_UNSURE]
            ],
        )

    def _choose(
        self, n: int, y: AnyArray, is_free: AnyArray, n_asked: int
    ) -> tuple[list[int], list[str]]:
        """Choose free rows: by their worth, and some at random once a model can guess them."""
        if not n:
            return [], []
        has_labels = not (y == None).all()  # noqa: E711 - entry by entry
        rng = np.random.default_rng(n_asked)
        drawn = rng.permutation(np.flatnonzero(is_free)).tolist()
        if self.rows.X is None:
            return drawn[:n], [RANDOM] * n
        chosen = rows_to_label(
            self.rows.source,
            n,
            y if has_labels else None,
            pending=np.flatnonzero(~is_free & (y == None)),  # noqa: E711 - entry by entry
            unlabeled=None,
            random_state=n_asked,
        )
        worth = chosen.tolist()
        places: list[int] = []
        how = []
        while len(places) < n:
            is_random = has_labels and len(places) % _RANDOM_EVERY == _RANDOM_EVERY - 1
            queue = drawn if is_random or not worth else worth
            place = queue.pop(0)
            if place not in places:
                places.append(place)
                how.append(RANDOM if is_random else CHOSEN)
        return places, how

    def _hold(self, is_needed: AnyArray) -> None:
        """Read the features of the rows that are needed and of a sample, unless they are held."""
        if np.isin(np.flatnonzero(is_needed), self._held).all():
            return
        sample = np.random.default_rng(0).permutation(len(is_needed))[:_MOST_HELD]
        is_held = is_needed.copy()
        is_held[sample] = True
        self._X, self._held = self.rows.take(is_held), np.flatnonzero(is_held)

    def accept(self, task: FitTask, findings: FitFindings) -> None:
        """Take the findings of a task; rows that were answered meanwhile keep their guess."""
        self._done, self.findings = task, findings
        asked = {*self.answers.ids()}
        new = [k for k, place in enumerate(findings.more) if self.rows.ids[place] not in asked]
        if new:
            self._ask([findings.more[k] for k in new], [findings.how[k] for k in new])
        if findings.guesses:
            self._write(self.answers.guessing(findings.guesses))

    # What the page shows.

    @property
    def _waiting(self) -> list[str]:
        """Rows to ask next: those without an answer that were not skipped."""
        return [id for id in self.answers.open_ids if id not in self.skipped]

    def state(self) -> dict[str, Any]:
        """All that the page shows, for JSON."""
        labels, waiting, asked = self.labels, self._waiting, {*self.answers.ids()}
        counts = Counter(labels.values())
        id = self.current or next(iter(waiting), None)
        row = None if id is None else self.rows.show(self.places[id])
        return {
            "row": row,
            "label": "" if id is None else labels.get(id, ""),
            "message": "" if row else self._why_no_row(),
            "problem": self.findings.problem,
            "last": self.last,
            "can_go_back": bool(self.history),
            "classes": [{"name": name, "count": counts[name]} for name in self.classes],
            "n_labeled": len(labels),
            "n_rows": len(self.places),
            "n_skipped": len(self.skipped),
            "n_waiting": len(waiting),
            "file": str(self.path),
            "error": self._error(),
            "unsure": [
                {**self.rows.show(place), "shares": shares}
                for place, shares in self.findings.unsure
                if self.rows.ids[place] not in asked
            ],
        }

    def _why_no_row(self) -> str:
        if self.skipped:
            return f"{plural(len(self.skipped), 'row was', 'rows were')} skipped."
        if len(self.labels) == len(self.places):
            return f"All {plural(len(self.places), 'row')} are labeled."
        return "The next rows are being chosen."

    def _error(self) -> dict[str, str]:
        """Error of the model: how many guesses of random rows, made before the answers, were wrong.

        It is withheld below ``LEAST_TESTED`` such rows.
        """
        if self.rows.X is None:
            text = f"{self.rows.path.name} has no columns that a model can learn from. Rows are "
            return {"headline": "No model", "text": text + "asked in random order."}
        tested = self.answers.tested_guesses
        n, n_wrong = len(tested), sum(guess != name for guess, name in tested)
        if n < LEAST_TESTED:
            known = f"{n} of the {LEAST_TESTED} rows that it takes are labeled. "
            text = "They are drawn at random, every fifth row, and the model guesses their class "
            return {"headline": "Error not known yet", "text": f"{known}{text}before you answer."}
        ends = error_interval(n_wrong, n, CONFIDENCE)
        found = ErrorEstimate(n_wrong / n, *ends, n)
        return {
            "headline": f"About {percent_text(found.error)} wrong",
            "text": f"{found.range} ({CONFIDENCE:.0%} interval): {n_wrong} of {n} guesses were "
            "wrong, on rows drawn at random, before you answered. The model has learned since.",
        }
