"""A comparison as lines of a terminal."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.comparisons import make_table

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._progress import show_nothing
from iclda.cli.messages import in_options
from iclda.methods import find_method
from iclda.studies.compare.api import read_findings
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.report import write_files
from iclda.studies.compare.run import open_run
from iclda.studies.compare.terminal import (
    Terminal,
    answer_lines,
    fit_command,
    score_lines,
)
from iclda.tabular import Source
from iclda.tabular.read_options import ReadOptions

METHODS = (find_method("em"), find_method("supervised"))


def comparison(out, table=None, **settings):
    settings = {"methods": METHODS, "repeats": 3, "folds": 2, **settings}
    return ComparisonPlan(
        make_table(n_features=3) if table is None else table, out, **settings
    )


def run(out, table=None, **settings):
    plan = comparison(out, table, **settings)
    with open_run(plan) as opened:
        opened.compare(show_nothing)
        opened.add_curves(show_nothing)
    return read_findings(out)


def run_and_write(out, table=None, **settings):
    findings = run(out, table, **settings)
    return findings, write_files(out, findings)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return run_and_write(tmp_path_factory.mktemp("done") / "out")


def test_the_words_name_every_contestant_and_the_next_step(done):
    findings, _ = done
    table = score_lines(findings.summary, Terminal())
    for contestant in findings.settings.contestants:
        assert any(line.startswith(f"  {contestant.name}  ") for line in table)
    assert table[1].split()[0] == "supervised"
    answer = "\n".join(answer_lines(findings, Terminal(80, in_options)))
    assert "Next: iclda fit data/table.csv --target class --method" in answer
    assert max(len(line) for line in answer.splitlines() if "Next: " not in line) <= 80


def test_the_command_to_fit_repeats_how_the_table_was_read(done):
    findings, _ = done
    sources = [
        Source(path, "0" * 64, 9) for path in ("my data.csv", "l.csv", "more.csv")
    ]
    options = ReadOptions(
        "class", "?", Path("more.csv"), ["a b"], labels="l.csv", id="name"
    )
    given = {"reading": options.to_json(), "sources": sources}
    settings = replace(findings.settings, **given)
    command = in_options(fit_command(replace(findings, settings=settings)))
    assert command.startswith(
        "iclda fit 'my data.csv' --target class --unlabeled '?' --unlabeled-file "
        "more.csv --drop 'a b' --labels l.csv --id name --method "
    )
