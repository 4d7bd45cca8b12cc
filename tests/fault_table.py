"""The table of docs/reliability.md: what must not break, what happens, and where it is tested.

A test is of fault 12 if its name begins with ``test_12_``, wherever it is. A case is a set of
parameters; a test that tries many in a loop has the mark ``cases(n)``. After a change run

    python tests/fault_table.py
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: by tests/fault_table.py -->\n", "<!-- end of faults -->\n"
# Fault, and what happens.
FAULTS = {
    1: ("every row is unlabeled", "error with the number of rows and the marker"),
    2: ("no row is unlabeled", "the supervised fit, with one warning"),
    3: ("one label a class", "a fit where all rows give the covariance; others need `shrinkage`"),
    4: ("a class in `priors` has no labeled rows", "error that lists it"),
    5: ("only one class is labeled", "error with the class and its number of rows"),
    6: ("classes are -1 and 1", "error that says `unlabeled=None` makes -1 a class"),
    7: ("classes are text", "any marker: None, NaN, `pandas.NA`, a text"),
    8: ("y is float with NaN", "error that says to pass `unlabeled=np.nan`"),
    9: ("y is boolean, of any integer type, categorical", "classes and predictions keep its type"),
    10: ("y is continuous, 2-d, of another length", "error with the value, shape or lengths"),
    11: ("the marker is a key of `priors`", "error"),
    12: ("more features than labeled rows", "finite fit, rank recorded, one warning"),
    13: ("a constant column", "the fit without it, and a warning that names it"),
    14: ("a column is constant in one class", "finite fit"),
    15: ("duplicate or collinear columns", "predictions of the fit without them"),
    16: ("rows are offset by 1e8", "coefficients of the centered fit to 1e-6"),
    17: ("rows are offset by 1e12", "what the rounding of the rows allows"),
    18: ("columns in units of 1e-150 and 1e150", "predictions of the rescaled problem"),
    19: ("numbers whose squares overflow or vanish", "error that names the column, or a fit"),
    20: ("NaN, infinity, masked entries", "error that names row and column"),
    21: ("float32 rows", "sums in float64; agreement to 1e-5"),
    22: ("narrow integers and booleans", "no wrap-around"),
    23: ("complex numbers, dates, text", "error that names the column"),
    24: ("one feature, one row, two rows", "finite fit or a clear error"),
    25: ("weights", "count like repeated rows; of any unit unless shrinkage is auto"),
    26: ("weights of zero, negative, NaN, extreme", "zero leaves a row out; others are errors"),
    27: ("priors of zero, tiny, negative, of wrong sum", "never predicted, finite, or an error"),
    28: (
        "perfect separation",
        "probabilities that add up to 1; finite logarithms, but for least squares, whose "
        "probabilities may be 0 and their logarithms minus infinity",
    ),
    29: ("unlabeled rows from elsewhere", "finite fit; a warning when they are far"),
    30: ("ties at the threshold", "the same fit for any order, block size, number of threads"),
    31: ("no convergence", "`ConvergenceWarning` with the gap, `converged_` false"),
    32: ("two equal optima, or none", "a deterministic choice; a floor with a warning"),
    33: ("any memory layout, read-only, big-endian", "same result, input unchanged"),
    34: ("tables with other names or order", "error; tables that are not read yet are read"),
    35: ("sparse rows", "error with the way out"),
    36: ("rows that change between passes", "error that names the file or block"),
    37: ("a block of another width, an empty block", "error that names it; skipped"),
    38: ("rows on a device", "predictions anywhere; smaller blocks when memory is short"),
    39: ("unlabeled rows in cross-validation", "train in every fold and are never scored"),
    40: ("`kill -9` of a study", "the next run does what is missing; the same tables"),
    41: ("a worker process is killed", "its cell is tried again, then stored as failed"),
    42: ("two runs in one folder", "the second is refused"),
    43: ("a full disk, a read-only folder", "error with the path; what was there stays"),
    44: ("a damaged or newer file", "error that names file and version"),
    45: ("a malicious model file", "refused; nothing in it is run"),
    46: (
        "markup, control characters and formulas in names",
        "shown as text; formulas are written as text into tables of studies, and into CSV files "
        "of predictions as they are",
    ),
    47: ("Ctrl-C", "one line, exit code 130, nothing lost"),
    48: ("a Dask worker is killed during a fit", "the same result"),
    49: ("a Dask worker hangs", "error within the time-out"),
    50: ("a data file of another checksum", "refused"),
    51: ("matrices that memory cannot hold", "error with the memory needed, before any is taken"),
    52: ("fits in eight threads", "the fits of one thread, to the bit"),
    53: ("thousands of fits in one process", "no memory and no open file is left behind"),
    54: ("the clock jumps, files are from the future", "the same tables; no negative times"),
    55: ("a process may not have the memory it needs", "an answer, or one line that says so"),
    56: ("a Dask worker is stopped for a while, or has little memory", "the same result"),
    57: ("random tables, options and model files", "an answer or one line; no stray file"),
    58: ("tables of too many columns", "error with their number, before any is looked at"),
    59: ("10,000 classes, 10,000 features", "a fit, a warning of one that stopped, or an error"),
    60: ("a fit that fails after one that did not", "the earlier one is left as it was"),
}
NAME = re.compile(r"^def test_(\d+)_", re.MULTILINE)


def places():
    """Number of a fault -> names of test modules, with the number of tests in each."""
    found = {number: {} for number in FAULTS}
    for path in sorted(TESTS.rglob("test_*.py")):
        for number in map(int, NAME.findall(path.read_text())):
            module = str(path.relative_to(TESTS).with_suffix(""))
            counts = found.setdefault(number, {})
            counts[module] = counts.get(module, 0) + 1
    return found


class _Cases:
    """A plugin of pytest that counts the cases of every fault; the slow ones count, too."""

    def __init__(self):
        self.found = dict.fromkeys(FAULTS, 0)

    def pytest_collection_modifyitems(self, items):
        for item in items:
            if number := re.match(r"test_(\d+)_", item.name):
                mark = item.get_closest_marker("cases")
                self.found[int(number[1])] += mark.args[0] if mark else 1


def count_cases():
    """Number of a fault -> how many cases are tried."""
    cases, said = _Cases(), io.StringIO()
    with contextlib.redirect_stdout(said):
        options = ["--collect-only", "-q", "-o", "addopts=--import-mode=importlib"]
        code = pytest.main([*options, str(TESTS)], plugins=[cases])
    assert code == 0, said.getvalue()
    return cases.found


def table(cases):
    lines = ["| | fault | what happens | tests | cases |", "|---|---|---|---|---|"]
    found = places()
    for number, (fault, outcome) in FAULTS.items():
        where = ", ".join(f"`{module}` {count}" for module, count in found[number].items())
        lines.append(f"| {number} | {fault} | {outcome} | {where} | {cases[number]} |")
    return "\n".join(lines) + "\n"


def page_with_table(text, cases):
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + table(cases) + "\n" + END + rest.partition(END)[2]


def shown_cases(text):
    """Number of a fault -> how many cases the page says are tried."""
    rows = re.findall(r"^\| (\d+) \| .* \| (\d+) \|$", text.partition(BEGIN)[2], re.MULTILINE)
    return {int(number): int(count) for number, count in rows}


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(), count_cases()))
