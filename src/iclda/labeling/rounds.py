"""Rounds of labeling, as ``iclda ask`` makes them, in a file that a person fills in.

`ask_for_labels` carries out one round: it reads the answers so far, estimates the error
that they show, and adds rows to label to the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._error_estimate import MIN_TESTED_ROWS, ErrorEstimate
from .._messages import percent_text, plural
from .._system import check_writable
from ..tabular.answer_files import CHOSEN, LABEL, RANDOM, ROW
from ..tabular.label_error import wrong_on_random
from .answers import Answers
from .pool import Pool
from .project import Project

# The worth of further labels is predicted for this many.
_N_MORE_LABELS = 10


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


def measure_progress(project: Project) -> Progress:
    """Estimate the error, and that without the labels of the last round."""
    error = project.error
    is_last = project.is_of_last_round
    n_last = int(is_last.sum())
    n_labels = int(project.table.is_labeled.sum())
    if error is None or n_last in (0, n_labels):
        return Progress(error, project.withheld)
    sample = project.sample
    is_training = sample.is_labeled & ~is_last[sample.features.index]
    was_wrong = wrong_on_random(project.pool.model, sample, is_training)
    return Progress(
        error,
        before=float(was_wrong.mean()),
        n_right=int((was_wrong & ~project.is_wrong).sum()),
        n_wrong=int((project.is_wrong & ~was_wrong).sum()),
        n_labels=n_labels,
        n_last=n_last,
    )


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
        return bool(self.progress.withheld) and n_random < MIN_TESTED_ROWS

    def to_json(self) -> dict[str, Any]:
        """Return the round as values that JSON has."""
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
    progress = measure_progress(project)
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
