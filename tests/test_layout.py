"""Tests mirror src: every module has its test module, or a reason; names are unique."""

import ast
import re
import tomllib
from collections import defaultdict
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "iclda"
TESTS = ROOT / "tests"
MODULES = sorted(
    str(path.relative_to(SOURCE))
    for path in SOURCE.rglob("*.py")
    if path.name != "__init__.py"
)
# Modules without a test module of the same name, and where they are tested.
ELSEWHERE = {
    "__main__.py": "tests/cli run it, tests/slow/test_interruptions interrupt it",
    "_estimators/labels.py": "tests/faults/test_labels",
    "_estimators/predictions.py": "test_supervised, tests/faults, tests/rows",
    "_estimators/fit_inputs.py": "tests/faults/test_numbers",
    "_estimators/fit.py": "test_common, and every classifier",
    "_estimators/averaging.py": "tests/estimators/test_average",
    "_estimators/normalized.py": "tests/estimators/test_moment_constrained",
    "_estimators/self_learning.py": "tests/estimators/test_self_training",
    "_local_server.py": "tests/playground/test_server and tests/labeling/test_server",
    "labeling/pool.py": "tests/labeling/test_rounds and test_shown",
    "labeling/project.py": "tests/labeling/test_rounds and test_server",
    "labeling/session.py": "tests/labeling/test_server, as the page uses it",
    "tabular/answer_files.py": "tests/labeling/test_answers",
    "tabular/cells.py": "test_column_types and test_class_names",
    "tabular/files.py": "test_csv_files and test_array_files",
    "tabular/list_columns.py": "test_parquet_files and test_frames",
    "tabular/predict.py": "tests/cli/test_models and test_features",
    "tabular/read_options.py": "test_table",
    "tabular/readers.py": "test_csv_files, test_table and tests/cli/test_bad_tables",
    "_system.py": "test_model_files, tests/cli/test_models, tests of missing extras",
    "model_selection/_scores.py": "test_scorers and test_learning_curve beside it",
    "plots/_scores.py": "tests/plots: test_learning_curve_display and others",
    "cli/labeling.py": "tests/cli/test_ask and tests/cli/test_label",
    "cli/messages.py": "tests/cli/test_options and tests/cli/test_command_line",
    "cli/shares.py": "tests/tabular/test_class_shares",
    "cli/studies.py": "tests/cli/test_paper",
    "_core/solvers/on_device.py": "tests/rows/test_device, beside the other sums there",
    "_rows/batch_readers.py": "tests/rows/test_readers",
    "_rows/chained.py": "tests/rows/test_memory",
    "_rows/checks.py": "tests/rows/test_backends and tests/faults",
    "_rows/dask_tasks.py": "tests/rows/test_dask",
    "_rows/dask_workers.py": "tests/rows/test_dask",
    "_rows/device_blocks.py": "tests/rows/test_device",
    "_rows/dispatch.py": "tests/rows/test_backends, by every kind of rows",
    "_rows/kernels.py": "tests/rows/test_fused; it needs Triton",
    "_rows/kinds.py": "tests/rows/test_rows",
    "_rows/parquet.py": "tests/rows/test_readers and tests/tabular/test_parquet_files",
    "_rows/places.py": "tests/rows/test_device",
    "_rows/precision.py": "tests/rows/test_device and tests/rows/test_fused",
    "_rows/progress.py": "tests/rows/test_passes and tests/test_progress",
    "_rows/protocol.py": "tests/rows/test_backends, by the rows of every backend",
    "_rows/reservoir.py": "tests/rows/test_files",
    "_rows/threads.py": "tests/rows/test_passes and tests/estimators/test_threads",
    "_estimators/mixture_model.py": "tests/estimators/test_ensemble",
    "_estimators/views.py": "tests/rows/test_views, beside the maps",
    "rows.py": "tests/rows/test_rows, beside the fixtures of rows",
}
# Names that modules of one kind have in common on purpose.
COMMON = {"open_rows", "apply_to_rows", "compare", "label"}


def pair_of(module):
    """tests/rows/test_files.py of _rows/files.py."""
    *folders, name = (part.lstrip("_") for part in Path(module).parts)
    return Path("tests", *folders, f"test_{name}")


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_test_module_or_a_reason_why_not(module):
    assert (ROOT / pair_of(module)).exists() != (module in ELSEWHERE)


def test_what_tests_share_is_in_helpers():
    modules = [path for path in TESTS.rglob("*.py") if path.parent.name != "helpers"]
    names = {path.name for path in modules if not path.name.startswith("test_")}
    assert names == {"__init__.py", "conftest.py"}


def test_reasons_are_those_of_modules_that_exist():
    assert set(ELSEWHERE) <= set(MODULES)


def test_no_two_modules_define_classes_or_functions_of_the_same_name():
    homes = defaultdict(list)
    for module in MODULES:
        for node in ast.parse((SOURCE / module).read_text()).body:
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if is_named and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert not {n: h for n, h in homes.items() if len(h) > 1 and n not in COMMON}


def drawn(name):
    """A constant of docs/draw_architecture.py: what one of its pictures shows."""
    tree = ast.parse((ROOT / "docs" / "draw_architecture.py").read_text())
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == name
    )
    return ast.literal_eval(value)


def drawn_floors():
    """Names of the rooms of every floor in the picture, from the top."""
    return [[name for name, _ in rooms] for _, rooms in drawn("FLOORS")]


def names_in_pictures():
    """Folders and modules that the pictures of the architecture name."""
    for names in drawn_floors():
        yield from names
    for _, _, kind, names, *_ in drawn("STEPS"):
        if kind.startswith("_"):
            yield from (f"{kind}/{name}.py" for name in names.split(", "))


@pytest.mark.parametrize("name", sorted({*names_in_pictures()}))
def test_what_the_pictures_of_the_architecture_name_exists(name):
    assert (SOURCE / name).exists()


def test_the_picture_shows_the_floors_of_the_text():
    text = (ROOT / "docs" / "architecture.md").read_text()
    floors = re.findall(r"^\d\. (.*)$", text, re.MULTILINE)
    assert [re.findall("`(.*?)`", floor) for floor in floors] == drawn_floors()


def test_the_picture_shows_the_floors_of_the_import_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    layers = contracts["importlinter"]["contracts"][0]["layers"]
    level_of = {
        name: level
        for level, layer in enumerate(layers)
        for name in re.findall(r"iclda\.(\w+)", layer)
    }
    floors = [
        [level_of[name.strip("/").removesuffix(".py")] for name in names]
        for names in drawn_floors()
    ]
    for upper, lower in pairwise(floors):
        assert max(upper) < min(lower)


@pytest.mark.parametrize(
    ("picture", "constant"), [("floors", "FLOORS"), ("fit", "STEPS")]
)
def test_pictures_of_the_architecture_say_what_would_be_drawn_now(picture, constant):
    svg = (ROOT / "docs" / "architecture" / f"{picture}.svg").read_text()
    shown = {unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg)}
    if constant == "FLOORS":
        expected = {
            text for _, rooms in drawn(constant) for room in rooms for text in room
        }
    else:
        expected = set()
        for _, _, kind, module, purpose, result in drawn(constant):
            expected.add(module if kind == "user" else f"{kind}/{module}")
            expected |= {purpose, f"\N{RIGHTWARDS ARROW} {result}" if result else ""}
    assert shown == expected - {""}
