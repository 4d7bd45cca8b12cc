"""Write models of this version, and what they predict: later versions must load them.

Run once a release: `python tests/stored_models/store.py`. Files that exist are left as
they are.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import iclda
from iclda.methods import FITTED, FURTHER
from iclda.tabular import pipeline, preprocessing

OF_TABLES = ("ImplicitlyConstrainedLDA", "MomentConstrainedLDA")


def customers(n=90):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n).round(1),
            "income": rng.lognormal(8, 1, n).round(2),
            "city": rng.choice(["Delft", "Leiden", "Gouda"], n),
            "member": rng.random(n) < 0.5,
        }
    )
    classes = np.where(
        frame["age"] + 8 * frame["member"] > 52, "stays", "leaves"
    ).astype(object)
    frame.loc[::7, "age"] = np.nan
    frame.loc[3::11, "city"] = None
    return frame, np.where(np.arange(n) < 40, classes, None)


def flowers(n=90):
    rng = np.random.default_rng(4)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 3 * np.eye(3, 2)[codes]
    return pd.DataFrame(X.round(3), columns=["length", "width"]), np.where(
        np.arange(n) < 30, codes, -1
    )


def store(name, model, frame):
    path = Path(__file__).parent / f"{iclda.__version__}-{name}.skops"
    if path.exists():
        return
    iclda.save_model(model, path)
    probabilities = model.predict_proba(frame).T
    columns = {
        f"probability_{c}": p
        for c, p in zip(model.classes_, probabilities, strict=True)
    }
    frame.assign(**columns)[:20].to_csv(path.with_suffix(".csv"), index=False)


def main():
    frame, labels = customers()
    encoder = preprocessing(frame)
    for name in OF_TABLES:
        classifier = getattr(iclda, name)(shrinkage=0.05)
        store(f"table-{name}", pipeline(encoder, classifier).fit(frame, labels), frame)
    frame, codes = flowers()
    names = {method.class_name for method in (*FITTED, *FURTHER)} | {"AutoLDA"}
    for name in sorted(names - set(OF_TABLES)):
        store(name, getattr(iclda, name)().fit(frame, codes), frame)


if __name__ == "__main__":
    main()
