"""How often files are read, counted in the bytes that the process has read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from iclda import compare
from tests.helpers.table_files import call

COUNTER = Path("/proc/self/io")
pytestmark = pytest.mark.skipif(not COUNTER.exists(), reason="Linux counts bytes")

N_ROWS = 60
N_LABELED = 20
# So many that imports, models and answers add less than a tenth of the table.
CELL_CHARACTERS = 80_000


def bytes_read():
    name, count = COUNTER.read_text().split()[:2]
    assert name == "rchar:"
    return int(count)


@pytest.fixture(scope="module", params=["csv", "parquet"])
def table(request, tmp_path_factory):
    """A table with texts of megabytes, its labels by name, and a model of others."""
    folder = tmp_path_factory.mktemp("reads")
    codes = np.arange(N_ROWS) % 2
    numbers = np.random.default_rng(0).normal(size=(N_ROWS, 2)) + 3 * codes[:, None]
    frame = pd.DataFrame(numbers, columns=["p", "q"])
    frame["kind"] = np.where(codes == 0, "a", "b")
    frame.loc[N_LABELED:, "kind"] = None
    frame["name"] = [f"n{k}" for k in range(N_ROWS)]
    frame["remark"] = [f"text {k:02} " * (CELL_CHARACTERS // 8) for k in range(N_ROWS)]
    path = folder / f"table.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, compression="none", use_dictionary=False)
    labels = frame.loc[: N_LABELED - 1, ["name", "kind"]]
    labels.to_csv(folder / "labels.csv", index=False)
    others = folder / "others.csv"
    frame.assign(p=frame["p"] + 0.1, remark="none").to_csv(others, index=False)
    fit_to(others, folder / "model.skops")
    return path


def run(*arguments):
    code, _, error = call(*arguments)
    assert (code, error) == (0, "")


def fit_to(path, out, *options):
    what = options or ("--target", "kind", "--drop", "name")
    run(
        "fit",
        path,
        *what,
        "--drop",
        "remark",
        "--method",
        "em",
        "--out",
        out,
        "--quiet",
    )


def fit(path):
    fit_to(path, path.with_name("again.skops"))


def fit_with_labels(path):
    labels = ("--labels", path.with_name("labels.csv"), "--id", "name")
    fit_to(path, path.with_name("again.skops"), *labels)


def predict(path):
    out = path.with_name("predictions.csv")
    run("predict", path.with_name("model.skops"), path, "--out", out, "--quiet")


def evaluate(path):
    run("evaluate", path.with_name("model.skops"), path, "--quiet")


def evaluate_with_labels(path):
    labels = ("--labels", path.with_name("labels.csv"), "--id", "name")
    run("evaluate", path.with_name("model.skops"), path, *labels, "--quiet")


def compare_methods(path):
    options = {"methods": "em", "repeats": 2, "folds": 2, "fast": True}
    compare(path, target="kind", drop=["name", "remark"], **options)


def ask(path):
    labels = path.with_name("to_label.csv")
    labels.unlink(missing_ok=True)
    options = ("--target", "kind", "--labels", labels, "--n", 2)
    run("ask", path, *options, "--quiet")


def label(path):
    pytest.importorskip("uvicorn", reason="the page needs iclda[playground]")
    from iclda.labeling.pool import Pool
    from iclda.labeling.session import LabelingSession
    from iclda.labeling.shown import ShownRows

    labels = path.with_name("on_a_page.csv")
    labels.unlink(missing_ok=True)
    pool = Pool(path, "row", "kind")
    LabelingSession(pool, ShownRows(pool), labels)


# A CSV file is read once when it is opened (checksum, delimiter, names) and once for
# its cells. If a model is evaluated by labels of another file, the ids are read first,
# and then the cells, because rows are not held. Of a Parquet file the columns used are
# read, with the long texts where a person sees them, and all of it for the checksum,
# which an evaluation takes if there are as many labels as in the fit, as here.
TIMES_READ = {
    fit: {"csv": 2, "parquet": 1},
    fit_with_labels: {"csv": 2, "parquet": 1},
    predict: {"csv": 2, "parquet": 0},
    evaluate: {"csv": 2, "parquet": 1},
    evaluate_with_labels: {"csv": 3, "parquet": 1},
    compare_methods: {"csv": 2, "parquet": 1},
    ask: {"csv": 2, "parquet": 2},
    label: {"csv": 2, "parquet": 2},
}


@pytest.mark.parametrize("command", TIMES_READ, ids=lambda command: command.__name__)
def test_a_file_is_read_no_more_often_than_it_must_be(table, command):
    # What is imported at the first call does not count.
    command(table)
    before = bytes_read()
    command(table)
    times = (bytes_read() - before) / table.stat().st_size
    expected = TIMES_READ[command][table.suffix[1:]]
    assert expected - 0.01 <= times <= expected + 0.2


def test_a_frame_is_compared_from_memory(table):
    read = pd.read_csv if table.suffix == ".csv" else pd.read_parquet
    frame = read(table)
    options = {"methods": "em", "repeats": 2, "folds": 2, "fast": True}
    compare(frame, target="kind", drop=["name", "remark"], **options)
    before = bytes_read()
    compare(frame, target="kind", drop=["name", "remark"], **options)
    assert bytes_read() - before < 0.2 * table.stat().st_size
