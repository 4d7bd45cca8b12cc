"""The documents are true: code runs, links lead somewhere, tables agree."""

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

import iclda
from iclda import methods
from tests.helpers.docstrings import bare_signature
from tests.helpers.documents import BLOCK, assert_same_output, blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "methods").glob("*.md")]
)
every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)
README = ROOT / "README.md"
# Its examples are patches: see test_contributing.py.
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
# Beside those of the methods.
PICTURES = ("auto", "chart", "fit", "floors", "labels")


@pytest.mark.parametrize(
    "document",
    [
        path
        for path in DOCUMENTS
        if "```python" in path.read_text() and path != CONTRIBUTING
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_code_runs_and_prints_what_is_shown(document):
    names = {"__name__": "document"}
    printed = None
    for language, text in blocks(document):
        if language == "python":
            if document == README:
                # Every block there can be copied by itself.
                names = {"__name__": "document"}
            assert not printed, f"this output is not shown: {printed}"
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, str(document), "exec"), names)
            printed = output.getvalue()
        elif language == "text" and printed is not None:
            assert_same_output(printed, text)
            printed = None
    assert not printed, f"this output is not shown: {printed}"


def sentences(document):
    """The sentences of a document outside of its code."""
    text = BLOCK.sub("", document.read_text())
    return re.split(r"(?<=[.!?])\*? |\n", text)


def test_every_percentage_of_the_readme_is_printed_above_or_has_its_command():
    code = "".join(text for _, text in blocks(README))
    n_shares = 0
    for sentence in sentences(README):
        shares = re.findall(r"(\d+(?:\.\d)?) %", sentence)
        n_shares += len(shares)
        is_printed = all(
            re.search(rf"(?<![\d.]){share} %", code)
            or f"{float(share) / 100:.3f}" in code
            for share in shares
        )
        assert is_printed or re.search("`(python|make) ", sentence), sentence
    assert n_shares > 5


def test_a_time_of_the_readme_is_that_of_rows_and_columns():
    sizes = re.findall(r"\d s for (.*)", README.read_text())
    assert sizes
    assert all(re.match(r"[\d,]+ x [\d,]+ numbers", size) for size in sizes)


def test_the_benchmarks_and_examples_that_the_readme_runs_have_its_options():
    commands = re.findall(r"`python (\S+\.py)([^`]*)`", README.read_text())
    assert len(commands) > 2
    for script, arguments in commands:
        source = (ROOT / script).read_text()
        options = re.findall(r"--[a-z-]+", arguments)
        assert all(f'"{option}"' in source for option in options), script


@every_document
def test_relative_links_lead_to_files(document):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", BLOCK.sub("", document.read_text()))
    paths = [
        (document.parent / target).resolve()
        for target in targets
        if "://" not in target
    ]
    assert not [
        path for path in paths if not (path.exists() or is_made_by_the_site(path))
    ]


def is_made_by_the_site(path):
    """Pages and figures of examples, and the pictures that docs/pictures.py draws."""
    if path.parent == DOCS / "images":
        return path.stem in {
            *PICTURES,
            *(method.module for method in methods.FITTED + methods.FURTHER),
        }
    example = re.sub(r"^sphx_glr_|_001$", "", path.stem)
    is_example = (ROOT / "examples" / f"{example}.py").is_file()
    return path == DOCS / "gallery" / "index.rst" or (
        is_example and DOCS / "gallery" in path.parents
    )


def test_the_citation_names_the_paper_and_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert "doi: 10.1109/ICPR.2014.646" in text
    assert f"version: {iclda.__version__}\n" in text


CLASSIFIERS = [name for name in iclda.__all__ if hasattr(getattr(iclda, name), "fit")]


def test_signatures_in_the_api_are_those_of_classes_and_functions():
    text = (ROOT / "docs" / "api.md").read_text()
    for name in CLASSIFIERS:
        parameters = inspect.signature(getattr(iclda, name)).parameters.values()
        listed = ", ".join(
            f"{parameter.name}={parameter.default!r}" for parameter in parameters
        )
        assert f"{name}({listed})" in text
    tabular = (
        iclda.tabular.read_table,
        iclda.tabular.preprocessing,
        iclda.tabular.pipeline,
        iclda.tabular.TableClassifier,
    )
    for function in (iclda.save_model, iclda.load_model, *tabular):
        assert f"{function.__name__}{bare_signature(function)}" in text


def test_the_api_lists_every_method_and_attribute():
    text = (ROOT / "docs" / "api.md").read_text()
    X = [[0.0], [1.0], [5.0], [6.0], [2.0]]
    y = [0, 0, 1, 1, -1]
    for name in CLASSIFIERS:
        fitted = getattr(iclda, name)().fit(X, y)
        public = {word for word in dir(fitted) if not word.startswith("_")}
        unlisted = [
            word for word in public - set(fitted.get_params()) if f"`{word}" not in text
        ]
        assert not unlisted, name


def test_method_signatures_in_the_api_are_those_of_the_classes():
    text = (ROOT / "docs" / "api.md").read_text()
    for name, listed in re.findall(r"^\| `(\w+)(\(.*?\))` \|", text, re.MULTILINE):
        assert (
            str(bare_signature(getattr(iclda.ImplicitlyConstrainedLDA, name))) == listed
        ), name


def test_one_letter_names_are_in_the_notation():
    notation = (ROOT / "docs" / "notation.md").read_text()
    listed = set(re.findall(r"`(\w)`", notation)) | {"_"}
    unlisted = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "id", getattr(node, "arg", None))
            if isinstance(name, str) and len(name) == 1 and name not in listed:
                unlisted[name] = path.name
    assert not unlisted
