"""Full disks and read-only folders: small file systems, and limits of files.

Root may mount file systems; others have the limit, and folders whose permissions bind
them.
"""

import os
import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager

import pytest

from tests.helpers.table_files import call, flowers, write, write_model

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

# Of the room that a file needs.
SHARE = 0.95
KILOBYTES = [8, 16, 32, 48, 64, 80, 100, 150, 250, 400, 650, 900]
# Pages and pictures take more or less room.
FIRST_THAT_MAY_DO = 400
EARLIER = b"what was there"
FILES = {
    "fit": (
        "m.skops",
        ["fit", "flowers.csv", "--target", "species", "--method", "moment"],
    ),
    "predict": ("p.csv", ["predict", "model.skops", "flowers.csv"]),
    "predict to Parquet": ("p.parquet", ["predict", "model.skops", "many.csv"]),
    "evaluate": ("e.html", ["evaluate", "model.skops", "known.csv"]),
}
OF_PAPER = "--datasets Haberman --methods LDA --jobs 1 --repeats 2"
OF_TABLE = "flowers.csv --target species --methods em --repeats 2 --folds 2 --jobs 1"
STUDIES = {
    "compare": OF_TABLE.split(),
    "tables": OF_PAPER.split(),
    "reproduce": [*OF_PAPER.split(), "--curve-repeats", "2"],
}


def mount(folder, *options):
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder],
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("only root may mount a small file system")


@contextmanager
def small_disk(folder, n_bytes):
    mount(folder, f"size={n_bytes}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def small_files(n_bytes):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three tables and a model."""
    folder = tmp_path_factory.mktemp("made")
    write_model(folder, "moment")
    head, _, rows = (folder / "flowers.csv").read_text().partition("\n")
    (folder / "many.csv").write_text(f"{head}\n{rows * 10}")
    write(folder, flowers(n_labeled=90), "known.csv")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """The tables, the model and an empty folder ``out`` in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLDA_DATA", raising=False)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out").mkdir()
    return tmp_path


def refused_for_lack_of_room(path, error):
    assert error.startswith(f"Error: {path}: ")
    assert error.endswith(": make room there, or name another folder.\n")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", FILES)
def test_43_a_file_that_may_not_grow_is_not_written_at_all(here, command):
    name, options = FILES[command]
    path = here / "out" / name
    options = [*options, "--out", f"out/{name}", "--force", "--quiet"]
    assert call(*options)[0] == 0
    n_bytes = path.stat().st_size
    path.write_bytes(EARLIER)
    with small_files(int(SHARE * n_bytes)):
        code, _, error = call(*options)
    assert code == 2
    refused_for_lack_of_room(f"out/{name}", error)
    assert path.read_bytes() == EARLIER
    assert list(path.parent.iterdir()) == [path]


def rows_in(folder):
    """Rows by their keys, with the time of each: another one if computed again."""
    path = folder / "rows.sqlite"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not connection.execute(
            "SELECT * FROM sqlite_master WHERE name = 'rows'"
        ).fetchall():
            return {}
        columns = "experiment, dataset, repeat, part, method, seconds"
        return {
            row[:5]: row[5] for row in connection.execute(f"SELECT {columns} FROM rows")
        }


def files_in(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.is_file()
        and "sqlite" not in path.name
        and path.suffix not in (".html", ".lock")
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Files of the studies where there is room, made when they are first asked for."""
    folder = tmp_path_factory.mktemp("undisturbed")
    found = {}

    def of(study):
        if study not in found:
            assert (
                call(study, *STUDIES[study], "--out", folder / study, "--quiet")[0] == 0
            )
            found[study] = files_in(folder / study)
        return found[study]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("kilobytes", KILOBYTES)
def test_43_a_study_goes_on_once_there_is_room(here, undisturbed, study, kilobytes):
    options = [study, *STUDIES[study], "--out", "out", "--quiet"]
    expected = undisturbed(study)
    with small_disk(here / "out", 1024 * kilobytes):
        code, said, error = call(*options)
        if code == 0:
            assert kilobytes > FIRST_THAT_MAY_DO
            assert files_in(here / "out") == expected
            return
        assert (code, said) == (2, "")
        assert error.startswith("Error: ")
        assert "out" in error
        assert "make room" in error
        assert error.count("\n") == 1
        assert files_in(here / "out").items() <= expected.items()
        mount(here / "out", "remount", "size=50m")
        stored = rows_in(here / "out")
        assert call(*options) == (0, "", "")
        assert files_in(here / "out") == expected
        assert stored.items() <= rows_in(here / "out").items()


READ_ONLY = {
    **{
        name: [*options, "--out", f"out/{file}"]
        for name, (file, options) in FILES.items()
    },
    **{name: [name, *options, "--out", "out"] for name, options in STUDIES.items()},
    "curves": ["curves", "--datasets", "2dgaussian", "--repeats", "2", "--out", "out"],
    "report": ["report", "out/study"],
}


@pytest.fixture
def read_only(here):
    folder = here / "out"
    if os.geteuid() == 0:
        mount(folder, "size=1m")
    (folder / "study").mkdir()
    with closing(sqlite3.connect(folder / "study" / "rows.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    if os.geteuid() == 0:
        mount(folder, "remount", "ro")
    else:
        folder.chmod(0o500)
        (folder / "study").chmod(0o500)
    yield folder
    if os.geteuid() == 0:
        subprocess.run(["umount", folder], check=True)
    else:
        (folder / "study").chmod(0o700)
        folder.chmod(0o700)


@pytest.mark.parametrize("command", READ_ONLY)
def test_43_a_read_only_folder_is_named(read_only, command):
    code, said, error = call(*READ_ONLY[command], "--quiet")
    assert (code, said) == (2, "")
    assert error.startswith("Error: ")
    assert "out" in error
    assert "another" in error
    assert error.count("\n") == 1
