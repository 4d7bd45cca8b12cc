"""Write models of this version, and what they predict: later versions must load them.

Run once a release: `python -m tools.store_models tests/stored_models`. Files that exist
are left as they are.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import iclda
from iclda.methods import FITTED, FURTHER
from iclda.tabular import pipeline, preprocessing

# Classifiers stored with the preprocessing of a table; the others are stored alone.
OF_TABLES = ("ImplicitlyConstrainedLDA", "MomentConstrainedLDA")
# Rows whose predictions are stored beside a model.
N_STORED_ROWS = 20


def customers(n=90):
    """A table of numbers, categories and gaps, and its labels."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n).round(1),
            "income": rng.lognormal(8, 1, n).round(2),
            "city": rng.choice(["Delft", "Leiden", "Gouda"], n),
            "member": rng.random(n) < 0.5,
        }
    )
    is_staying = frame["age"] + 8 * frame["member"] > 52
    classes = np.where(is_staying, "stays", "leaves").astype(object)
    frame.loc[::7, "age"] = np.nan
    frame.loc[3::11, "city"] = None
    return frame, np.where(np.arange(n) < 40, classes, None)


def flowers(n=90):
    """Two features of three classes, and their labels."""
    rng = np.random.default_rng(4)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 3 * np.eye(3, 2)[codes]
    frame = pd.DataFrame(X.round(3), columns=["length", "width"])
    return frame, np.where(np.arange(n) < 30, codes, -1)


def store(path, model, frame):
    """Write a model, and the probabilities that it gives to some rows of a frame."""
    if path.exists():
        return
    iclda.save_model(model, path)
    probabilities = dict(zip(model.classes_, model.predict_proba(frame).T, strict=True))
    columns = {f"probability_{name}": value for name, value in probabilities.items()}
    rows = frame.assign(**columns)[:N_STORED_ROWS]
    rows.to_csv(path.with_suffix(".csv"), index=False)


def store_models(folder):
    """Write a model of every classifier to a folder."""
    begin = f"{iclda.__version__}-"
    frame, labels = customers()
    encoder = preprocessing(frame)
    for name in OF_TABLES:
        classifier = getattr(iclda, name)(shrinkage=0.05)
        model = pipeline(encoder, classifier).fit(frame, labels)
        store(folder / f"{begin}table-{name}.skops", model, frame)
    frame, codes = flowers()
    names = {method.class_name for method in (*FITTED, *FURTHER)} | {"AutoLDA"}
    for name in sorted(names - set(OF_TABLES)):
        model = getattr(iclda, name)().fit(frame, codes)
        store(folder / f"{begin}{name}.skops", model, frame)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(exist_ok=True)
    store_models(folder)
