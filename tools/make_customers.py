"""Draw the table of customers that comes with the package: it is made up.

    python -m tools.make_customers src/iclda/datasets/data/customers.csv.bz2

Of 400 customers of a telephone company, 60 are known to have left or stayed. The file
is not made again: another version of NumPy may draw other numbers.
"""

import bz2
import sys
from pathlib import Path

import numpy as np
import pandas as pd

N_ROWS = 400
N_LABELED = 60
CHURN_RATE = 0.35
PLANS = ("basic", "plus", "family")


def draw(seed=0):
    """Return the table; the target ``churn`` is empty where nobody knows it."""
    rng = np.random.default_rng(seed)
    has_left = rng.random(N_ROWS) < CHURN_RATE
    # Who leaves has been there for less time, calls for help and uses less.
    months = rng.gamma(np.where(has_left, 4, 7), 4).round() + 1
    support_calls = rng.poisson(np.where(has_left, 3, 1.2))
    minutes = rng.normal(np.where(has_left, 210, 300), 70).clip(0).round()
    plan = np.where(
        has_left,
        rng.choice(PLANS, N_ROWS, p=(0.6, 0.3, 0.1)),
        rng.choice(PLANS, N_ROWS, p=(0.3, 0.4, 0.3)),
    )
    fee = pd.Series(plan).map({"basic": 15, "plus": 25, "family": 40})
    frame = pd.DataFrame(
        {
            "months": months.astype(int),
            "plan": plan,
            "fee": (fee + rng.normal(0, 3, N_ROWS)).round(2),
            "minutes": minutes,
            "support_calls": support_calls,
            "churn": np.where(has_left, "yes", "no"),
        }
    )
    frame.loc[rng.random(N_ROWS) < 0.04, "minutes"] = np.nan
    is_unlabeled = rng.permutation(N_ROWS) >= N_LABELED
    frame.loc[is_unlabeled, "churn"] = None
    return frame


if __name__ == "__main__":
    text = draw().to_csv(index=False, lineterminator="\n")
    Path(sys.argv[1]).write_bytes(bz2.compress(text.encode()))
