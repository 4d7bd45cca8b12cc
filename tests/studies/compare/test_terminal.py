"""A comparison as lines of a terminal."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.comparisons import make_table

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._progress import show_nothing
from iclda.cli.messages import in_options
from iclda.methods import COMPARED, find_method
from iclda.studies.compare.api import read_findings
from iclda.studies.compare.plan import ComparisonPlan
from iclda.studies.compare.report import write_files
from iclda.studies.compare.run import open_run
from iclda.studies.compare.terminal import (
    Terminal,
    answer_lines,
    first_ranking,
    first_remarks,
    fit_command,
    protocol,
    score_lines,
    short_score_lines,
)
from iclda.tabular import Source
from iclda.tabular.checks import COLUMNS, FINE, NOTE, WARNING, Remark
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
    table = score_lines(findings, Terminal())
    for contestant in findings.settings.contestants:
        assert any(line[2:].startswith(f"{contestant.name}  ") for line in table)
    assert table[1][2:].split()[0] == "supervised"
    marked = [line for line in table if line.startswith(">")]
    assert [line.split()[1] for line in marked] == [findings.verdict.method]
    terminal = Terminal(80, in_options)
    answer = "\n".join(answer_lines(findings, terminal, fit_command(findings)))
    assert "Next: iclda fit data/table.csv --target class --method" in answer
    followed = in_options(fit_command(findings, is_followed=True))
    assert followed == "iclda fit data/table.csv --target class"
    assert max(len(line) for line in answer.splitlines() if "Next: " not in line) <= 80


def test_whoever_waits_learns_first_which_columns_are_left_out_or_doubtful():
    remarks = [
        Remark(FINE, COLUMNS, "2 numbers."),
        Remark(NOTE, COLUMNS, "Column 'id' was left out."),
        Remark(NOTE, "Missing", "empty cells in 1 column."),
        Remark(WARNING, "Shift", "they differ."),
    ]
    assert first_remarks(remarks) == [remarks[1], remarks[3]]


def test_one_repeat_is_once(done):
    findings, _ = done
    once = replace(findings.settings, repeats=1)
    assert " at random, 3 times. " in protocol(findings.settings)[0]
    assert " at random, once. " in protocol(once)[0]


def test_the_first_ranking_names_the_best_methods_with_their_errors(done):
    findings, _ = done
    errors = {
        name: findings.summary.repeats[name, "error"][0]
        for name in ("em", "supervised")
    }
    first, second = sorted(errors, key=errors.get)
    assert first_ranking(findings) == (
        "First ranking by error, after 1 repeat: "
        f"{first} {errors[first]:.3f}, {second} {errors[second]:.3f}"
    )
    assert first_ranking(replace(findings, results=[])) == ""


def test_a_short_table_fits_the_terminal_and_has_the_methods_that_matter(tmp_path):
    names = ("em", "self-learning", "self-training", "moment", "average")
    names += ("sklearn-logistic", "sklearn-lda", "supervised")
    methods = tuple(find_method(name, COMPARED) for name in names)
    options = {"methods": methods, "shrinkages": ("auto", None), "repeats": 2}
    plan = comparison(tmp_path, **options, measure="balanced")
    with open_run(plan) as opened:
        opened.compare(show_nothing)
    findings = read_findings(tmp_path)
    for width in (120, 80, 60, 40):
        lines = short_score_lines(findings, Terminal(width, in_options, colored))
        table = [line for line in lines if "(0." in line]
        assert len(table) == 6
        plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
        assert max(map(len, plain)) <= max(width, 55)
        shown = " ".join(" ".join(plain).split())
        assert findings.summary.baseline in shown
        assert findings.verdict.method in shown
        assert "sklearn-" in shown
        assert "have 8 more." in shown
        assert ("balanced" in plain[0]) == (width >= 60)
        assert ("AUC" in plain[0]) == (width >= 80)
    widest = short_score_lines(findings, Terminal(120, in_options))
    assert "worse in" in widest[0]
    assert "Lower is better, except for AUC." in " ".join(widest)


def colored(text, kind):
    return f"\x1b[1m{text}\x1b[0m"


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
