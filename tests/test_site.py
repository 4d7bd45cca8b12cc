"""The site is whole: what can be said without building it."""

import ast
import os
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import iclda
from iclda.methods import FITTED, FURTHER
from tools.newest_python import find_newest, newer_versions
from tools.newest_versions import packages_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = sorted({method.module for method in (*FITTED, *FURTHER)} | {"auto"})
PARTS = ["Definition", "What it assumes", "When it fails", "Cost", "Source"]
TREE = re.compile(r"^:::\{toctree\}\n(.*?)^:::$", re.DOTALL | re.MULTILINE)


def entries(page):
    """Pages in the tables of contents of a page, relative to docs, without suffix."""
    lines = "\n".join(TREE.findall(page.read_text())).splitlines()
    names = [line for line in lines if line and not line.startswith(":")]
    # Entries with a title.
    names = [re.sub(r".* <(.*)>$", r"\1", name) for name in names]
    return {(page.parent / name).relative_to(DOCS).as_posix() for name in names}


def test_every_page_is_in_the_table_of_contents():
    pages = [*DOCS.glob("*.md"), *(DOCS / "methods").glob("*.md")]
    listed = set().union(*(entries(page) for page in pages))
    names = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages}
    assert names - listed == {"index"}
    # Sphinx writes pages of its own there.
    assert not names & {"search", "genindex"}
    # Made when the site is built.
    assert listed - names == {
        "gallery/index",
        "reference",
    }


@pytest.mark.parametrize("module", MODULES)
def test_every_method_has_a_page_with_all_parts_and_a_picture(module):
    text = (DOCS / "methods" / f"{module}.md").read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == PARTS
    assert f"(../images/{module}.png)" in text


def test_every_public_module_is_in_the_reference():
    tree = ast.parse((DOCS / "conf.py").read_text())
    (modules_by_group,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "MODULES"
    )
    listed = [name for names in modules_by_group.values() for name in names]
    modules = {module.name for module in pkgutil.iter_modules(iclda.__path__)}
    public = {f"iclda.{name}" for name in modules if not name.startswith("_")}
    # Not for import.
    own = {
        "iclda.cli",
        "iclda.labeling",
        "iclda.methods",
        "iclda.playground",
        "iclda.studies",
    }
    # Its names stand in the group of model files, one by one.
    assert {*listed, "iclda.model_files"} == public - own


def workflows():
    yaml = pytest.importorskip("yaml")
    return {
        path.stem: (path.read_text(), yaml.safe_load(path.read_text()))
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    }


def test_tests_run_on_every_python_that_the_classifiers_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (\d\.\d+)", "\n".join(project["classifiers"]))
    matrix = workflows()["tests"][1]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    assert {system.split("-")[0] for system in matrix["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


def test_workflows_call_targets_that_exist_and_end():
    targets = set(
        re.findall(r"^([\w-]+(?: [\w-]+)*):", (ROOT / "Makefile").read_text(), re.M)
    )
    known = {name for names in targets for name in names.split()}
    for text, workflow in workflows().values():
        assert set(re.findall(r"run: make ([\w-]+)", text)) <= known
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())
        assert workflow["permissions"] == {"contents": "read"}


RULE = re.compile(r"^([^\s#:][^:=]*):(?!=) ?(.*)\n((?:\t.*\n)*)", re.MULTILINE)


def installed_for(target, rules, extras):
    """Packages that a target installs by its prerequisites, as requirements do."""
    needed, recipe = rules[target]
    found = set().union(
        *(installed_for(each, rules, extras) for each in needed if each in rules)
    )
    pending = re.findall(r"--editable '\.\[([\w,]+)\]'", recipe)
    while pending:
        for name in pending.pop().split(","):
            for requirement in extras[name]:
                own = re.match(r"iclda\[([\w,]+)\]", requirement)
                pending += [own[1]] if own else []
                found.add(re.match(r"[\w-]+", requirement)[0])
    return found


def test_environments_of_the_makefile_are_extras_of_the_project():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "Makefile").read_text()
    named = re.findall(r"\$\((?:PIP|INSTALL)\)\)? (.*)", text)
    packages = [re.findall(r"'([^']*)'", line.partition("||")[0]) for line in named]
    installed = {package for line in packages for package in line} - {"$(TORCH)"}
    chosen = [re.fullmatch(r"\.\[([\w,]+)\]", each)[1].split(",") for each in installed]
    assert {"docs", "release", "audit"} < set().union(*chosen)
    assert set().union(*chosen) <= set(extras["optional-dependencies"])


def test_targets_that_run_pytest_install_the_plugins_that_its_options_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    rules = {m[1]: (m[2].split(), m[3]) for m in RULE.finditer(text) if m[3]}
    plugins = {"pytest"}
    if "timeout" in project["tool"]["pytest"]["ini_options"]:
        plugins.add("pytest-timeout")
    checked = []
    for target, (_, recipe) in rules.items():
        if re.search(r"/pytest|-m pytest|tools\.kernels", recipe):
            parallel = (
                {"pytest-xdist"}
                if "-n auto" in recipe or "kernels" in recipe
                else set()
            )
            assert plugins | parallel <= installed_for(target, rules, extras), target
            checked.append(target)
    assert sorted(checked) == [
        "test",
        "test-browser",
        "test-core",
        "test-cpus",
        "test-oldest",
        "test-slow",
    ]


def test_linters_and_the_types_that_they_read_have_fixed_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "tools" / "linters.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines}
    assert {"mypy", "ruff", "numpy"} < packages_of("lint", project) <= pinned
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", line) for line in lines)
    [recipe] = re.findall(r"^\t.*'\.\[lint\]'$", (ROOT / "Makefile").read_text(), re.M)
    assert "--constraint tools/linters.txt" in recipe


def test_linters_are_not_installed_among_what_is_tested_and_come_last():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    rules = {m[1]: (m[2].split(), m[3]) for m in RULE.finditer(text) if m[3]}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = installed_for("test", rules, extras["optional-dependencies"])
    assert not {"mypy", "ruff", "import-linter", "check-jsonschema"} & needed
    assert "lint" not in rules["test"][0]
    assert rules["test"][1].splitlines()[-1].endswith(" lint")


def test_the_hooks_of_a_commit_run_the_pinned_linters():
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    commands = re.findall(r"entry: (\S+)", text)
    assert {command.rpartition("/")[0] for command in commands} == {".venv-lint/bin"}


def test_a_second_time_is_for_a_newer_python_that_the_project_names():
    project = {"classifiers": [f"Python :: 3.{minor}" for minor in (9, 10, 11)]}
    assert newer_versions(project, (3, 9)) == ["3.11", "3.10"]
    assert newer_versions(project, (3, 11)) == []


@pytest.mark.skipif(os.name == "nt", reason="the programs here are shell scripts")
def test_the_newest_python_is_the_newest_that_starts(tmp_path, monkeypatch):
    for name, script in {
        "python3.13": "exit 127",  # a shim of pyenv for a version that is not chosen
        "python3.12": "echo on-the-path",
        "pyenv": f"echo {tmp_path}",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_newest(["3.14", "3.13", "3.12"]) == "on-the-path"
    installed = tmp_path / "versions" / "3.13.0" / "bin" / "python3.13"
    installed.parent.mkdir(parents=True)
    installed.write_text("#!/bin/sh\necho of-pyenv\n")
    installed.chmod(0o755)
    assert find_newest(["3.14", "3.13", "3.12"]) == "of-pyenv"
    assert find_newest(["3.14"]) == ""
