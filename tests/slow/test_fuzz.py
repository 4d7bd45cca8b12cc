"""Hundreds of random tables and options: no traceback, no warning, no stray file.

A case follows from its number alone: ``check_case(kind, number, folder)`` repeats it.
"""

import gzip
import os
import signal
import socket
import tempfile
import traceback
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from iclda.__main__ import make_app
from tests.helpers.table_files import flowers, write, write_model

# Those of both kinds take a few minutes.
N_CASES = {"table": 2_000, "options": 700}
MAX_FAILURES = 20
# A case takes up to ten seconds: one that takes so many hangs, even on a busy machine.
SECONDS_OF_A_CASE_THAT_HANGS = 900
# 130 comes from Ctrl-C only.
EXIT_CODES = {0, 1, 2, 3}
WORDS = "species p q color wild class id a,b é 日本 =1+1 @x -1 <b>x</b> nan None {} %s"
NAMES = [*WORDS.split(), "", " ", '"', "\n", "x" * 300, "\x00", "\x1b[31m"]
NAMES += [
    "__index_level_0__",
    "color = red",
    "(column 1)",
    "../../x",
    "prediction",
    "p " * 40,
]
CELLS = (
    "0 1 -1 2 0.5 1e400 -1e-400 nan inf 1,5 1.2.3 0x1F ? 1e308 007 +5 ١٢ 1_000 -- NA "
    "true 2020-01-31 1e200 1e-300 5e-324 99999999999999999999 12:30 $3 3%"
)
NUMBERS = [*CELLS.split(), "9" * 30, "", " "]
ODD_BYTES = [
    b"\x00",
    b'"',
    b"\n",
    b",",
    b";",
    b"\r",
    b"\xff",
    b"\xef\xbb\xbf",
    b"=cmd",
    b"\\",
]
METHODS = [
    "iclda",
    "em",
    "moment",
    "supervised",
    "supervised",
    "self-training",
    "pessimistic",
]
ENCODINGS = [
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "latin-1",
    "utf-32",
]
LINE_ENDS = ["\n", "\n", "\r\n", "\r", "\n\r"]


class TooLong(BaseException):
    """Not an Exception: nothing may catch it."""


@contextmanager
def within_time():
    def stop(number, frame):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_OF_A_CASE_THAT_HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def random_bytes(rng, n):
    return rng.integers(256, size=n, dtype=np.uint8).tobytes()


def mutate(rng, data):
    """Bytes with some changed, cut out, repeated or put in."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(data) + 1))
        width = int(rng.geometric(0.05))
        change = pick(rng, ["flip", "flip", "cut", "repeat", "put", "end"])
        if change == "flip" and place < len(data):
            data[place] ^= 1 << int(rng.integers(8))
        elif change == "cut":
            del data[place : place + width]
        elif change == "repeat":
            data[place:place] = data[place : place + width] * int(rng.integers(1, 50))
        elif change == "put":
            data[place:place] = pick(rng, [*ODD_BYTES, random_bytes(rng, width)])
        elif rng.random() < 0.3:
            del data[place:]
    return bytes(data)


def random_column(rng, n):
    """A column of any kind that pandas and pyarrow can hold."""
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-5, 6)
    kinds = {
        "numbers": lambda: numbers,
        "whole": lambda: rng.integers(-3, 4, size=n),
        "gaps": lambda: np.where(rng.random(n) < 0.5, numbers, np.nan),
        "constant": lambda: np.full(n, pick(rng, [0.0, 1e300, -1.5, np.nan])),
        "extreme": lambda: numbers * 10.0 ** rng.choice([-320, -200, 200, 300]),
        "infinite": lambda: np.where(rng.random(n) < 0.1, np.inf, numbers),
        "words": lambda: rng.choice(["red", "blue", "", "NA", "<i>"], size=n),
        "odd words": lambda: np.array(
            [pick(rng, NAMES) for _ in range(n)], dtype=object
        ),
        "number words": lambda: np.array(
            [pick(rng, NUMBERS) for _ in range(n)], dtype=object
        ),
        "ids": lambda: np.array([f"id{i:05d}" for i in range(n)], dtype=object),
        "true": lambda: rng.random(n) < 0.5,
        "dates": lambda: (
            pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(999, size=n), "D")
        ),
    }
    with np.errstate(over="ignore"):
        return pick(rng, list(kinds.values()))()


def random_frame(rng):
    n = int(rng.choice([1, 2, 5, 30, 90]))
    if rng.random() < 0.5:
        frame = flowers(90, int(rng.integers(1, 90)))
    else:
        frame = pd.DataFrame({"p": rng.normal(size=n)})
        classes = ["iris", "lily", "rose", "", None, "NA", "=x", "1", "1.0"][
            : rng.integers(1, 10)
        ]
        frame["species"] = [pick(rng, classes) for _ in range(n)]
    for _ in range(int(rng.integers(4))):
        frame.insert(
            int(rng.integers(frame.shape[1])),
            pick(rng, NAMES),
            random_column(rng, len(frame)),
            allow_duplicates=True,
        )
    return frame


def odd_arrow_column(rng, n):
    numbers = pa.array(rng.integers(0, 100, size=n))
    kinds = [
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.string(),
        pa.bool_(),
        pa.decimal128(25, 3),
    ]
    kinds += [pa.timestamp("ns", "UTC"), pa.duration("s")]
    nested = [[[v], {"a": v}, bytes([v])] for v in numbers.to_pylist()]
    odd = [pa.array(list(column)) for column in zip(*nested, strict=True)]
    odd += [pa.nulls(n), numbers.cast(pa.string()).dictionary_encode()]
    return pick(rng, [*(numbers.cast(kind) for kind in kinds), *odd])


def random_parquet(rng, path):
    frame = random_frame(rng)
    names = []
    columns = []
    for k, name in enumerate(frame.columns):
        try:
            columns.append(pa.array(frame.iloc[:, k].tolist()))
        except pa.ArrowException:
            columns.append(pa.array(list(map(str, frame.iloc[:, k]))))
        names.append(str(name))
    for _ in range(int(rng.integers(3))):
        columns.append(odd_arrow_column(rng, len(frame)))
        names.append(f"odd {len(names)}")
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)


def random_table(rng, folder):
    """The path of a file that may be a table."""
    suffix = pick(
        rng,
        [
            ".csv",
            ".csv",
            ".csv",
            ".tsv",
            ".txt",
            ".csv.gz",
            ".parquet",
            ".parquet",
            ".pq",
        ],
    )
    path = folder / f"t{suffix}"
    if suffix in (".parquet", ".pq"):
        random_parquet(rng, path)
        data = path.read_bytes()
    elif rng.random() < 0.05:
        data = random_bytes(rng, int(rng.integers(3000)))
    else:
        separator = "\t" if suffix == ".tsv" else pick(rng, [",", ",", ";", "|", "\t"])
        text = random_frame(rng).to_csv(
            index=bool(rng.random() < 0.1),
            sep=separator,
            quoting=int(rng.integers(3)),
            lineterminator=pick(rng, LINE_ENDS),
            decimal=pick(rng, [".", ".", ","]),
        )
        data = text.encode(pick(rng, ENCODINGS), errors="replace")
    if rng.random() < 0.3:
        data = mutate(rng, data)
    if suffix.endswith("gz"):
        data = gzip.compress(data)
        data = mutate(rng, data) if rng.random() < 0.2 else data
    path.write_bytes(data)
    return path


def files_below(folder):
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file()
    }


def run_command(arguments, folder, out=()):
    """Run a command in a folder; what a user must never see is an AssertionError."""
    before = files_below(folder)
    with warnings.catch_warnings(record=True) as shown, within_time():
        warnings.simplefilter("always")
        result = CliRunner().invoke(make_app(), arguments)
    error = result.exception
    assert error is None or isinstance(error, SystemExit), "".join(
        traceback.format_exception(error)
    )
    assert result.exit_code in EXIT_CODES, result.exit_code
    assert "Traceback" not in result.output, result.output
    assert result.exit_code != 2 or result.stderr.strip(), "nothing is said of an error"
    # By default.
    hidden = (
        DeprecationWarning,
        PendingDeprecationWarning,
        ResourceWarning,
    )
    seen = [
        str(each.message) for each in shown if not issubclass(each.category, hidden)
    ]
    assert not seen, seen
    after = files_below(folder)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    stray = {
        name
        for name in changed
        if not any(o in (name, ".") or name.startswith(f"{o}/") for o in out)
    }
    assert not stray, f"written besides {out}: {stray}"
    if result.exit_code == 2:
        assert not changed, f"written although refused: {changed}"
    return result.exit_code


def table_case(rng, folder):
    """Fit a random table, and use the model on another."""
    path = random_table(rng, folder)
    options = ["--target", "species" if rng.random() < 0.95 else pick(rng, NAMES)]
    # To choose one takes seconds.
    if rng.random() < 0.9:
        options += ["--method", pick(rng, METHODS)]
    if rng.random() < 0.2:
        options += ["--strict"]
    if rng.random() < 0.2:
        options += ["--unlabeled-file", str(random_table(rng, make(folder / "more")))]
    if rng.random() < 0.05:
        command = [
            "compare",
            str(path),
            *options[:2],
            "--fast",
            "--repeats",
            "2",
            "--jobs",
            "1",
        ]
        return run_command(
            [*command, "--methods", "em", "--out", "cmp"], folder, ["cmp"]
        )
    code = run_command(
        ["fit", str(path), *options, "--out", "m.skops"], folder, ["m.skops"]
    )
    if code in (0, 3):
        other = (
            random_table(rng, make(folder / "other")) if rng.random() < 0.5 else path
        )
        run_command(
            ["show", "m.skops", *([] if rng.random() < 0.5 else ["--json"])], folder
        )
        name = pick(rng, ["p.csv", "p.parquet"])
        run_command(["predict", "m.skops", str(other), "--out", name], folder, [name])
        run_command(
            ["evaluate", "m.skops", str(other), "--out", "e.html"], folder, ["e.html"]
        )
    return code


def make(folder):
    folder.mkdir()
    return folder


VALUES = [
    *(
        *NAMES,
        *NUMBERS,
        "auto",
        "iclda",
        "em",
        "supervised",
        "labeled",
        "iris=0.2",
        "iris=0.3:2",
    ),
    *("flowers.csv", "m.skops", "o.skops", "o.csv", "o.html", "out", "nowhere/o.csv"),
    *(".", "..", "-", "/", "Haberman", "LDA,ICLDA", "all", "p,q"),
]
MINUTES = ("reproduce", "curves", "tables", "datasets", "playground", "label")
# Options that keep what succeeds short.
SHORT = {
    "compare": "--fast --repeats 2 --jobs 1 --methods em",
    "tables": "--datasets Haberman --repeats 2 --jobs 1 --methods LDA,SLLDA",
    "curves": "--datasets 2DGaussian --repeats 2 --jobs 1 --methods LDA,SLLDA",
    "reproduce": "--datasets Haberman --repeats 2 --curve-repeats 2 --jobs 1",
}


def options_case(rng, folder):
    """Any command with any options and values."""
    commands = typer.main.get_command(make_app()).commands
    name = pick(
        rng, [each for each in commands if each not in MINUTES] * 6 + list(commands)
    )
    write(folder)
    write(folder, flowers()[:40], "more.parquet")
    (folder / "m.skops").write_bytes(MODEL)
    given = [name]
    out = []
    for parameter in commands[name].params:
        if parameter.param_type_name == "argument":
            likely = {"data": "flowers.csv", "model": "m.skops"}.get(
                parameter.name, "out"
            )
            given.append(likely if rng.random() < 0.8 else pick(rng, VALUES))
        elif parameter.name == "target" and rng.random() < 0.9:
            given += ["--target", "species"]
        elif parameter.name == "method" and rng.random() < 0.8:
            given += ["--method", "supervised"]
        elif parameter.name == "out":
            value = pick(rng, ["o.skops", "o.csv", "o.html", "out", *VALUES])
            given += ["--out", value]
            out.append(os.path.normpath(value))
        elif rng.random() < 0.2:
            value = [] if parameter.is_flag else [pick(rng, VALUES)]
            given += [parameter.opts[0], *value]
    if name in ("ask", "label"):
        named = (
            given[given.index("--labels") + 1]
            if "--labels" in given
            else "to_label.csv"
        )
        out.append(os.path.normpath(named))
    given += SHORT.get(name, "").split()
    if name in ("playground", "label"):
        given += ["--no-browser", "--port", pick(rng, ["-1", "65536", "x", "", BUSY])]
    return run_command(given, folder, out or ["results"])


CASES = {"table": table_case, "options": options_case}


def check_case(kind, number, folder):
    rng = np.random.default_rng([number, list(CASES).index(kind)])
    return CASES[kind](rng, folder)


@pytest.fixture(scope="module", autouse=True)
def _prepared(tmp_path_factory):
    """A model file, and a port that is taken."""
    global MODEL, BUSY
    MODEL = write_model(tmp_path_factory.mktemp("model"), "auto").read_bytes()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        BUSY = str(taken.getsockname()[1])
        yield


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_57_random_input_never_brings_a_traceback(kind, tmp_path, monkeypatch):
    codes = {}
    failures = []
    monkeypatch.setattr(tempfile, "tempdir", str(make(tmp_path / "temporary")))
    for number in range(N_CASES[kind]):
        folder = make(tmp_path / f"{number}")
        monkeypatch.chdir(folder)
        try:
            code = check_case(kind, number, folder)
            codes[code] = codes.get(code, 0) + 1
            left = os.listdir(tempfile.tempdir)
            assert not left, f"left in the folder of temporary files: {left}"
        except (AssertionError, TooLong) as error:
            failures.append(
                f"{kind} {number}: {type(error).__name__} {str(error)[-1500:]}"
            )
        if len(failures) == MAX_FAILURES:
            break
    assert not failures, "\n\n".join(failures)
    # Enough of both: what is refused at once tries little.
    assert min(codes.get(0, 0), codes.get(2, 0)) > 0.1 * N_CASES[kind]
