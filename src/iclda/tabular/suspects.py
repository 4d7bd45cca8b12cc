"""Labels that predictions contradict, with what a person needs to check them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._core import AnyArray, Array
from .._estimators.labels import plain
from .._suspicious_labels import suspicious_labels


@dataclass(frozen=True)
class Suspect:
    """A row whose label may be wrong.

    Attributes
    ----------
    row : int or str
        Number of the row, as messages about its file count, or its id.
    label : str
        Its label.
    predicted : str
        The class that is likelier.
    probability : float
        The probability of that class.
    """

    row: int | str
    label: str
    predicted: str
    probability: float

    @property
    def probability_text(self) -> str:
        """The probability in percent, but 100 % only if it is one."""
        if 0.9995 <= self.probability < 1:
            return "> 99.9 %"
        return f"{100 * self.probability:.1f} %"


def find_suspects(
    probabilities: Array, codes: AnyArray, classes: Sequence[str], rows: AnyArray
) -> list[Suspect]:
    """Return at most ten rows whose labels the predictions contradict, if any do.

    ``codes`` are the labels as indices of ``classes``, ``rows`` the row numbers or ids.
    """
    suspects = []
    for position in suspicious_labels(probabilities, codes).tolist():
        of_row = probabilities[position]
        predicted = int(of_row.argmax())
        suspects.append(
            Suspect(
                row=plain(rows[position]),
                label=classes[codes[position]],
                predicted=classes[predicted],
                probability=float(of_row[predicted]),
            )
        )
    return suspects


def how_rows_count(first_row_number: int | None) -> str:
    """Say how rows are numbered; empty if ids name them."""
    if first_row_number is None:
        return ""
    if first_row_number == 0:
        return "rows are counted from 0"
    return f"the header is row {first_row_number - 1}"


def suspect_lines(
    suspects: Sequence[Suspect], first_row_number: int | None
) -> list[str]:
    """Format rows with suspicious labels as a table; empty if there are none."""
    if not suspects:
        return []
    header = ("row", "label", "predicted", "probability")
    cells = [
        (str(each.row), each.label, each.predicted, each.probability_text)
        for each in suspects
    ]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    how = how_rows_count(first_row_number)
    end = f" ({how}):" if how else ":"
    lines = [f"The model contradicts these labels. Check them{end}"]
    for row, label, predicted, probability in [header, *cells]:
        lines.append(
            f"  {row.rjust(widths[0])}  {label.ljust(widths[1])}  "
            f"{predicted.ljust(widths[2])}  {probability.rjust(widths[3])}"
        )
    return lines
