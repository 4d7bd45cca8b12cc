"""A table of customers that comes with the package, to try the command line on."""

from __future__ import annotations

from importlib import resources
from typing import Any

from .._system import require

_CUSTOMERS_FILE = resources.files(__package__) / "data" / "customers.csv.bz2"


def load_customers() -> Any:
    """Load a table of 400 customers, of whom 60 are known to have left or stayed.

    It is made up (``tools/make_customers.py``), and has gaps among its numbers.

    Returns
    -------
    customers : DataFrame of shape (400, 6)
        The target ``churn``, "yes", "no" or missing, and what may tell it.
    """
    pandas = require("pandas", "the table of customers", "data")
    with _CUSTOMERS_FILE.open("rb") as file:
        return pandas.read_csv(file, compression="bz2")
