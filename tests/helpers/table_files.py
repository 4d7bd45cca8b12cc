"""Small tables as files, and the command line called without a new process."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from iclda.__main__ import make_app


def call(*arguments):
    """Exit code, standard output and error output of a command."""
    result = CliRunner().invoke(make_app(), [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def flowers(n=90, n_labeled=30):
    """Three classes in two numbers, a category and a boolean; most are not given."""
    rng = np.random.default_rng(2)
    codes = np.arange(n) % 3
    frame = pd.DataFrame(
        rng.normal(size=(n, 2)) + 3 * np.eye(3, 2)[codes], columns=["p", "q"]
    )
    frame["color"] = rng.choice(["red", "blue"], n)
    frame["wild"] = rng.random(n) < 0.5
    frame.loc[1::20, "p"] = np.nan
    frame.loc[2::20, "color"] = None
    species = np.array(["iris", "lily", "rose"], dtype=object)[codes]
    frame["species"] = np.where(np.arange(n) < n_labeled, species, None)
    return frame


def write_model(folder, method="em"):
    """A model file beside the table it was fitted to."""
    out = folder / "model.skops"
    options = ("--target", "species", "--method", method, "--out", out, "--quiet")
    assert call("fit", write(folder), *options) == (0, "", "")
    return out


def write(folder, frame=None, name="flowers.csv"):
    path = folder / name
    frame = flowers() if frame is None else frame
    if name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path
