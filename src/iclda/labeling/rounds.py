"""Rounds of labeling in a file that a person fills in, for ``iclda ask``.

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
from ..tabular.answer_files import CHOSEN, RANDOM
from ..tabular.label_error import wrong_on_random
from ..tabular.read_options import ROW
from .answers import Answers
from .pool import Pool
from .project import Project

# The error is predicted for this many more labels.
_N_MORE_LABELS = 10


@dataclass(frozen=True)
class Progress:
    """The error that the labels show, and how the last round changed it.

    Attributes
    ----------
    estimate : ErrorEstimate or None
        The error of a fit to all labels, measured on those drawn at random.
    withheld : str
        Why there is no estimate.
    error_before : float or None
        The error, on the same test rows, of a fit without the labels of the last round.
    n_became_right : int
        Test rows that are predicted right only with the labels of the last round.
    n_became_wrong : int
        Test rows that are predicted wrong only with the labels of the last round.
    n_labels : int
        All labels.
    n_last : int
        Labels of the last round.
    """

    estimate: ErrorEstimate | None
    withheld: str = ""
    error_before: float | None = None
    n_became_right: int = 0
    n_became_wrong: int = 0
    n_labels: int = 0
    n_last: int = 0

    @property
    def net_gain(self) -> int:
        """How many more test rows are right with the labels of the last round."""
        return self.n_became_right - self.n_became_wrong

    @property
    def standard_error(self) -> float:
        """The standard error of the net gain, if the labels made no difference.

        Only the test rows that changed bear on it. If each could have changed either
        way, the variance is their number.
        """
        return float(np.sqrt(self.n_became_right + self.n_became_wrong))

    @property
    def error_after_more(self) -> float | None:
        """Error after ten more labels, by a power law; None if the error did not fall.

        The fall in the last round has to exceed one standard error of the difference on
        the same test rows.
        """
        if self.estimate is None or self.error_before is None:
            return None
        n_before = self.n_labels - self.n_last
        has_fallen = self.net_gain > self.standard_error
        error = self.estimate.error
        if not has_fallen or n_before < 1 or error == 0:
            return None
        # The power law error ~ n_labels ** -exponent goes through both errors.
        exponent = np.log(self.error_before / error) / np.log(self.n_labels / n_before)
        return float(error * (1 + _N_MORE_LABELS / self.n_labels) ** -exponent)

    def __str__(self) -> str:
        if self.estimate is None:
            return f"The error is not known yet: {self.withheld}."
        text = f"Expect {self.estimate}"
        if self.error_before is None:
            return f"{text}."
        labels = plural(self.n_last, "label")
        error_before = percent_text(self.error_before)
        if self.net_gain == 0:
            text += f". The {labels} of the last round did not change it"
        elif -2 * self.standard_error <= self.net_gain < 0:
            # Somebody might take the labels for harmful, which so few rows do not show.
            text += (
                f". The {labels} of the last round made no clear difference "
                f"({error_before} without them)"
            )
        else:
            n_rows = abs(self.net_gain)
            comparative = "more" if self.net_gain > 0 else "fewer"
            are = "is" if n_rows == 1 else "are"
            text += (
                f". Without the {labels} of the last round it would be "
                f"{error_before}: with these labels, "
                f"{plural(n_rows, f'{comparative} test row')} {are} classified "
                "correctly"
            )
        if self.error_after_more is None:
            more = f"It is not clear yet what {_N_MORE_LABELS} more labels would bring."
        else:
            gain = 100 * (self.estimate.error - self.error_after_more)
            more = (
                f"{_N_MORE_LABELS} more labels should lower the error by about "
                f"{gain:.1f} percentage points."
            )
        return f"{text}. {more}"


def measure_progress(project: Project) -> Progress:
    """Estimate the error, and the one without the labels of the last round."""
    error = project.error
    is_last = project.is_of_last_round
    n_last = int(is_last.sum())
    n_labels = int(project.table.is_labeled.sum())
    # A comparison needs labels of the last round, and others before it.
    if error is None or n_last in (0, n_labels):
        return Progress(error, project.withheld)
    sample = project.sample
    is_training = sample.is_labeled & ~is_last[sample.features.index]
    was_wrong = wrong_on_random(project.pool.model, sample, is_training)
    return Progress(
        error,
        error_before=float(was_wrong.mean()),
        n_became_right=int((was_wrong & ~project.is_wrong).sum()),
        n_became_wrong=int((project.is_wrong & ~was_wrong).sum()),
        n_labels=n_labels,
        n_last=n_last,
    )


@dataclass(frozen=True)
class Round:
    """A round of labeling: the answers so far and the rows asked for.

    Attributes
    ----------
    pool : Pool
        The rows that may be labeled.
    answers : Answers
        The file of answers, with the rows that were added.
    progress : Progress
        What the labels so far show.
    n_labels : int
        All labels so far.
    n_chosen, n_random : int
        Rows that were added.
    n_open : int
        Rows of earlier rounds without an answer.
    n_left : int
        Rows neither labeled nor asked for.
    n_not_added : int
        Rows that were wanted and not added, because none of the last round has an
        answer.
    remarks : sequence of str
        Notes and warnings about the table and about the round.
    """

    pool: Pool
    answers: Answers
    progress: Progress
    n_labels: int
    n_chosen: int
    n_random: int
    n_open: int
    n_left: int
    n_not_added: int = 0
    remarks: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """What the round found and did: lines to print before the remarks."""
        path = self.answers.path
        lines = []
        if self.n_labels:
            lines.append(str(self.progress))
        rows = plural(self.n_open, "row")
        if self.n_not_added:
            wait = "waits" if self.n_open == 1 else "wait"
            lines.append(
                f"{rows} in {path} still {wait} for an answer, so none was added."
            )
        elif self.n_open:
            has = "has" if self.n_open == 1 else "have"
            lines.append(f"{rows} of earlier rounds in {path} {has} no answer yet.")
        n_added = self.n_chosen + self.n_random
        if n_added:
            parts = [(self.n_chosen, CHOSEN), (self.n_random, "drawn at random")]
            how = " and ".join(f"{n} {text}" for n, text in parts if n)
            lines.append(f"Added {plural(n_added, 'row')} to {path}: {how}.")
            # A new file explains its numbers; those of an earlier version mislead.
            is_new = n_added == len(self.answers.ids())
            how_it_counts = self.pool.how_answers_count
            if how_it_counts and (is_new or self.pool.id == ROW):
                lines.append(how_it_counts)
        elif not self.n_left and self.n_open:
            lines.append("No more rows are left to ask for.")
        elif not self.n_left:
            lines.append("All rows are labeled.")
        return lines

    @property
    def needs_random_rows(self) -> bool:
        """Whether the error is unknown, and too few random rows were asked for."""
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
            "n_not_added": self.n_not_added,
            "error": None if estimate is None else vars(estimate),
            "withheld": self.progress.withheld,
            "error_before": self.progress.error_before,
            "error_after_10_more": self.progress.error_after_more,
        }


def ask_for_labels(
    path: Path,
    n: int,
    *,
    target: str | None = None,
    id: str | None = None,
    labels: Path = Path("to_label.csv"),
    n_test: int = 0,
    unknown: bool = False,
    more: bool = False,
    seed: int = 0,
    unlabeled: str | float | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    strict: bool = False,
) -> Round:
    """Add rows to the file of rows to label, which is created if there is none.

    ``n`` rows are chosen and ``n_test`` rows are drawn at random. With ``unknown``,
    rows that resemble none of the classes are chosen first. As long as no row of the
    last round has an answer, rows are added only with ``more``. Everything is computed
    before the file is written, and answers stay as they are. The other parameters are
    those of `Pool`.
    """
    check_writable(labels)
    pool = Pool(
        path,
        id,
        target,
        answers=labels,
        unlabeled=unlabeled,
        drop=drop,
        keep=keep,
        strict=strict,
    )
    project = Project.read(pool, labels, seed)
    progress = measure_progress(project)
    n_free = int(project.is_free.sum())
    n_wanted = n + n_test
    n_not_added = 0
    if project.is_last_round_open and not more:
        n_not_added = min(n_wanted, n_free)
    if n_not_added:
        batch = project.draw(0, 0)
    else:
        batch = project.draw(n, n_test, unknown=unknown)
    answers = project.answers.asking(*batch)
    # Whoever goes on with a file has read the notes on the columns.
    remarks = project.remarks(has_notes=not project.answers.ids())
    n_added = len(batch.ids)
    if n_added:
        answers.write()
        if n_added < n_wanted:
            remarks.append(
                f"Note: {n_wanted} rows were wanted, but only {n_free} were left."
            )
    n_drawn = Counter(batch.how)
    return Round(
        project.pool,
        answers,
        progress,
        n_labels=len(project.labels),
        n_chosen=n_drawn[CHOSEN],
        n_random=n_drawn[RANDOM],
        n_open=len(project.open_ids),
        n_left=n_free - n_added,
        n_not_added=n_not_added,
        remarks=remarks,
    )
