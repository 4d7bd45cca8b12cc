"""The state of a labeling page: the row it shows, the answers, and what a model says.

The page sends an action for every click: answer, skip, go back. A `LabelingSession`
carries it out, writes the answers, and describes its state as JSON. Meanwhile a model
is fitted to the answers so far; it chooses the rows to ask for next and estimates the
error.

All methods but ``LabelingSession.compute`` run on the thread of the server. ``compute``
runs on another one and reads nothing that they change meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._error_estimate import MIN_TESTED_ROWS, ErrorEstimate
from .._messages import percent_text, plural
from ..tabular.answer_files import CHOSEN, NONE_OF_THESE, RANDOM, spelling_of
from .answers import Answers
from .keys import class_keys
from .pool import Pool
from .project import Batch, Project, SuspiciousRow
from .shown import ShownRows

# Rows of the first round.
_FIRST_ROUND_ROWS = 20
# Rows of a later round ...
_ROUND_ROWS = 10
# ... of which this many are drawn at random.
_RANDOM_ROUND_ROWS = 2
# More rows are asked for when fewer than this many are waiting for an answer.
_MIN_WAITING_ROWS = 5
# At most this many rows are listed because the model is least sure of them.
_MAX_UNSURE_ROWS = 6
_MAX_CLASS_NAME_CHARACTERS = 100


@dataclass(frozen=True)
class FitTask:
    """What is to be computed: further rows, or, if none are needed, a fit.

    Two tasks are equal if they have the same result, which the labels, the rows that
    were asked for and the number of further rows decide.
    """

    project: Project = field(compare=False)
    labels: Mapping[str, str]
    asked: Sequence[str]
    n_more: int


@dataclass(frozen=True)
class FitFindings:
    """What a fit to the labels found.

    Attributes
    ----------
    error : ErrorEstimate or None
        The error to expect on new rows.
    unsure : sequence
        Positions of the rows that the model is least sure of, each with the names and
        probabilities of two classes.
    suspicious : sequence of SuspiciousRow
        Labeled rows that fits without their labels put into another class.
    problem : str
        Why the last task failed; empty if it did not.
    """

    error: ErrorEstimate | None = None
    unsure: Sequence[tuple[int, list[tuple[str, float]]]] = ()
    suspicious: Sequence[SuspiciousRow] = ()
    problem: str = ""


class LabelingSession:
    """The work of a person on the page, who answers rows one by one.

    Rows are shown in the order of the file of answers, and every answer is written at
    once. Rows are named by their ids.

    Attributes
    ----------
    current : str or None
        The row to show; None for the first one that waits for an answer.
    history : list of str
        Rows that were answered or skipped, the latest last.
    skipped : list of str
        Rows without an answer that are not shown until `again` is called.
    last : dict or None
        The last answer.
    confirmed : dict of str to str
        The class of every row that was looked at again and left with it.
    classes : list of str
        Names of classes in the order of the buttons: a new name comes last.
    """

    def __init__(self, pool: Pool, shown: ShownRows, path: Path) -> None:
        self.pool = pool
        self.shown = shown
        self.path = path
        self.current: str | None = None
        self.history: list[str] = []
        self.skipped: list[str] = []
        self.last: dict[str, str] | None = None
        self.confirmed: dict[str, str] = {}
        self.findings = FitFindings()
        self.classes: list[str] = []
        self._rows_stamp = stamp_of(pool.file.path)
        self._answers_stamp = stamp_of(path)
        self._last_task: FitTask | None = None
        self.project = Project.read(pool, path)
        self.sync()
        # The first rows are chosen before the page is opened, so that it has a row to
        # show and errors in the features end the command.
        task = self.next_task()
        if task is not None and task.n_more:
            self.accept(task, *self.compute(task))

    @property
    def answers(self) -> Answers:
        """The answers so far."""
        return self.project.answers

    def _write(self, answers: Answers) -> None:
        answers.write()
        self.project = replace(self.project, answers=answers)
        self._answers_stamp = stamp_of(self.path)

    def sync(self) -> None:
        """Read the answers again if another program has changed them.

        ValueError if they cannot be read. Classes with new names get buttons.
        """
        if self.path.exists():
            stamp = stamp_of(self.path)
            if stamp != self._answers_stamp:
                self.project = Project.read(self.pool, self.path)
                self._answers_stamp = stamp
        # Classes that are on the page stay where they are.
        new_names = {*self.project.labels.values()} - {*self.classes}
        self.classes += sorted(new_names)

    # Actions of the page.

    def answer(self, id: str, name: str) -> None:
        """Give a row its class, spelled as other rows of the same class spell it."""
        name = " ".join(name.split())
        if not 0 < len(name) <= _MAX_CLASS_NAME_CHARACTERS:
            raise ValueError(
                "The name of a class must have 1 to "
                f"{_MAX_CLASS_NAME_CHARACTERS} characters, got {len(name)}: type "
                "another one."
            )
        spelling = spelling_of(name)
        # The row itself is left out, so that its class can be spelled differently.
        label_by_spelling = {
            spelling_of(label): label
            for labeled_id, label in self.project.labels.items()
            if labeled_id != id
        }
        label_by_spelling[spelling_of(NONE_OF_THESE)] = NONE_OF_THESE
        label = label_by_spelling.get(spelling, name)
        if id in self.project.labels:
            self.confirmed[id] = label
        self._write(self.answers.answering(id, label))
        # The name on the button of the class is spelled in the same way.
        self.classes = [
            label if spelling_of(known) == spelling else known for known in self.classes
        ]
        title = self.shown.title(self.pool.positions[id])
        guess = self.answers.guess_of(id)
        self.last = {"title": title, "label": label, "guess": guess}
        self._leave(id)

    def skip(self, id: str) -> None:
        """Leave a row as it is.

        A row without a class is shown again with the other skipped rows; one that has a
        class keeps it.
        """
        self.answers.require_asked(id)
        if id in self.answers.open_ids:
            self.skipped.append(id)
        else:
            self.confirmed[id] = self._answer_to(id)
        self._leave(id)

    def _answer_to(self, id: str) -> str:
        """Return the class of a row, or that it is none of these; empty without one."""
        if id in self.answers.none_ids:
            return NONE_OF_THESE
        return self.project.labels.get(id, "")

    def _leave(self, id: str) -> None:
        self.history.append(id)
        self.current = None

    def back(self) -> None:
        """Show the previous row again, with its class."""
        if self.history:
            self.current = self.history.pop()
            self.skipped = [id for id in self.skipped if id != self.current]

    def again(self) -> None:
        """Show the skipped rows again."""
        self.skipped = []

    def jump(self, id: str) -> None:
        """Show a certain row; if it was not asked for before, it counts as chosen.

        A row that has its class from the file of the rows was not chosen: it joins the
        answers with this class, as a row drawn at random.
        """
        if id not in self.pool.positions:
            raise ValueError(
                f"{self.pool.file.path} has no row with {self.pool.id} = {id!r}."
            )
        cells = self.pool.cells([self.pool.positions[id]])
        how = RANDOM if id in self.pool.labels else CHOSEN
        was_asked = id in self.answers.ids()
        answers = self.answers.asking([id], how, shown=cells)
        if not was_asked:
            answers = answers.answering(id, self.pool.labels.get(id, ""))
        self._write(answers)
        self.skipped = [skipped for skipped in self.skipped if skipped != id]
        self.current = id

    # The model.

    def next_task(self) -> FitTask | None:
        """Return what is to be computed; None if the last task was the same."""
        labels = self.project.labels
        asked = self.answers.ids()
        n_more = 0
        if len(self._waiting) < _MIN_WAITING_ROWS:
            n_free = len(self.pool.ids) - len({*labels, *asked})
            n_wanted = _ROUND_ROWS if asked else _FIRST_ROUND_ROWS
            n_more = min(n_wanted, n_free)
        task = FitTask(self.project, labels, asked, n_more)
        return None if task == self._last_task else task

    def compute(self, task: FitTask) -> tuple[Batch | None, FitFindings]:
        """Choose further rows, or fit a model if none are needed.

        It runs on a different thread from the other methods.
        """
        file = self.pool.file
        if stamp_of(file.path) != self._rows_stamp:
            raise ValueError(
                f"{file.path} has changed since it was opened: stop `iclda label` and "
                "start it again. All answers are saved."
            )
        project = task.project
        if not task.n_more:
            findings = FitFindings(
                error=project.error,
                unsure=project.least_sure(_MAX_UNSURE_ROWS),
                suspicious=project.suspicious(),
            )
            return None, findings
        # The rows of the first round are all chosen.
        n_random = 0
        if task.asked:
            n_random = _RANDOM_ROUND_ROWS * task.n_more // _ROUND_ROWS
        batch = project.draw(task.n_more - n_random, n_random)
        return batch, replace(self.findings, problem="")

    def accept(self, task: FitTask, batch: Batch | None, findings: FitFindings) -> None:
        """Take the results of a task."""
        self._last_task = task
        self.findings = findings
        if batch is not None:
            self._write(self.answers.asking(*batch))

    # What the page shows.

    @property
    def _waiting(self) -> list[str]:
        """Rows to show next: those without an answer that were not skipped."""
        return [id for id in self.answers.open_ids if id not in self.skipped]

    def state(self) -> dict[str, Any]:
        """Return all that the page shows, for JSON."""
        labels = self.project.labels
        counts = Counter(labels.values())
        keys = class_keys(self.classes)
        classes = [
            {"name": name, "count": counts[name], "key": key}
            for name, key in zip(self.classes, keys, strict=True)
        ]
        # A row to which the person went comes before those that wait.
        id = self.current or next(iter(self._waiting), None)
        row = None if id is None else self.shown.show(self.pool.positions[id])
        return {
            "row": row,
            "label": "" if id is None else self._answer_to(id),
            "none": NONE_OF_THESE,
            "n_none": len(self.answers.none_ids),
            "message": "" if row else self._why_no_row(),
            "problem": self.findings.problem,
            "last": self.last,
            "can_go_back": bool(self.history),
            "classes": classes,
            "n_labeled": len(labels),
            "n_rows": len(self.pool.ids),
            "n_skipped": len(self.skipped),
            "file": str(self.path),
            "numbered_file": self.pool.numbered_file,
            "error": self._error_texts(),
            "unsure": self._unsure_rows(),
            "suspicious": self._suspicious_rows(labels),
        }

    def _unsure_rows(self) -> list[dict[str, Any]]:
        """Return the rows that the model is least sure of, as the page shows them."""
        # A row that was asked for since the fit is not listed as unsure.
        asked = {*self.answers.ids()}
        rows = []
        for position, shares in self.findings.unsure:
            if self.pool.ids[position] not in asked:
                rows.append({**self.shown.show(position), "shares": shares})
        return rows

    def _suspicious_rows(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the rows whose labels a person should look at again.

        A row whose class was changed since the fit, or that was left with its class
        when it was looked at again, is not listed.
        """
        rows = []
        for found in self.findings.suspicious:
            id = self.pool.ids[found.position]
            is_unchanged = labels.get(id) == found.label
            if is_unchanged and self.confirmed.get(id) != found.label:
                finding = {
                    "label": found.label,
                    "predicted": found.predicted,
                    "share": found.probability,
                }
                rows.append({**self.shown.show(found.position), **finding})
        return rows

    def _why_no_row(self) -> str:
        if self.skipped:
            return f"{plural(len(self.skipped), 'row was', 'rows were')} skipped."
        n_answered = len(self.project.labels) + len(self.answers.none_ids)
        if n_answered == len(self.pool.ids):
            return f"All {plural(len(self.pool.ids), 'row')} are labeled."
        return "The next rows are being chosen."

    def _error_texts(self) -> dict[str, str]:
        """State the error as ``iclda ask`` does, or why it is not known."""
        error = self.findings.error
        if not self.pool.has_features:
            text = f"{self.project.withheld}, so rows come in random order."
            return {"headline": "No model", "text": text}
        if error is not None:
            text = (
                f"{error.range} (90 % interval from {error.n_rows} labels drawn at "
                "random)."
            )
            return {
                "headline": f"About {percent_text(error.error)} wrong",
                "text": text.replace(" %", "\N{NO-BREAK SPACE}%"),
            }
        # Labels of the file itself count as drawn at random.
        random_ids = {*self.pool.labels, *self.answers.ids(RANDOM)}
        n_known = len(random_ids & {*self.project.labels})
        text = (
            f"It takes {MIN_TESTED_ROWS} labels of rows drawn at random, and there are "
            f"{n_known}. After the first {_FIRST_ROUND_ROWS} rows, "
            f"{_RANDOM_ROUND_ROWS} of every {_ROUND_ROWS} are drawn at random."
        )
        return {"headline": "Error not known yet", "text": text}


def stamp_of(path: Path) -> tuple[int, ...]:
    """Return the modification time and the size of a file; empty if there is none."""
    if not path.exists():
        return ()
    status = path.stat()
    return status.st_mtime_ns, status.st_size
