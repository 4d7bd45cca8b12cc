"""The command that compares methods on a table."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .._messages import printable
from .._progress import show_cells, spinner
from ..methods import COMPARED, FITTED, Method
from . import words

if TYPE_CHECKING:
    from ..studies.compare.api import Findings
    from ..studies.compare.report import Terminal
    from ..studies.compare.run import ComparisonRun

NO_ANSWER = 1  # exit code of a comparison that had nothing to compare with
_WIDEST = 100
_COLORS: dict[str, dict[str, Any]] = {
    "better": {"fg": "green", "bold": True},
    "worse": {"fg": "red", "bold": True},
    "fine": {"fg": "green"},
    "warning": {"fg": "yellow", "bold": True},
    "answer": {"bold": True},
}

_NAMES = ", ".join(method.name for method in COMPARED if method.name != "supervised")
_Count = int | None
_Methods = Annotated[
    str | None,
    Option(
        metavar="NAMES",
        help=f"{_NAMES}; supervised always takes part. Default: all up to "
        f"{FITTED[-1].name}, and those of scikit-learn.",
    ),
]
_Repeats = Annotated[
    _Count, Option(min=2, max=10_000, metavar="N", help="Divisions into folds. Default: 2 to 10.")
]
_Folds = Annotated[_Count, Option(min=2, metavar="N", help="Default: 10, or labels of a class.")]
_Labeled = Annotated[_Count, Option(min=1, metavar="N", help="Labels to keep; others are hidden.")]
_Shrinkages = Annotated[
    str | None,
    Option(metavar="NUMBERS", help="0, 0.1, auto or 0,auto. Default: by the number of labels."),
]
_Fast = Annotated[bool, Option("--fast", help="An answer soon: 3 repeats, no learning curves.")]
_Out = Annotated[Path | None, Option(metavar="FOLDER", help="Default: DATA-comparison.")]


def compare(
    data: words.TableFile,
    target: words.Target,
    methods: _Methods = None,
    repeats: _Repeats = None,
    folds: _Folds = None,
    labeled: _Labeled = None,
    unlabeled: words.Unlabeled = None,
    unlabeled_file: words.UnlabeledFile = None,
    drop: words.Drop = None,
    keep: words.Keep = None,
    drop_unusable: words.DropUnusable = False,
    missing: words.Missing = "impute",
    shrinkage: _Shrinkages = None,
    fast: _Fast = False,
    jobs: words.Jobs = 0,
    seed: words.Seed = 0,
    out: _Out = None,
    quiet: words.Quiet = False,
    json: words.Json = False,
) -> None:
    """Find out whether unlabeled rows help, and with which method."""
    is_quiet = quiet or json
    with words.explained_errors(words.RESUMABLE), ExitStack() as stack:
        if not is_quiet:
            # Printed before the imports below, which take a second or two.
            _print([printable(f"Comparing methods on {data.name}, target {target!r}"), ""])
        with spinner("Reading the table", is_quiet):
            from ..studies.compare.plan import ComparisonPlan, parse_shrinkages
            from ..studies.compare.run import open_run
            from ..studies.page import check_can_report
            from ..tabular.table import ReadOptions, read_opened
            from ..tabular.table_files import open_table

            check_can_report()
            chosen = _find_methods(methods)
            shrinkages = None if shrinkage is None else parse_shrinkages(shrinkage)
            options = ReadOptions(
                target, unlabeled, unlabeled_file, drop, keep, drop_unusable, missing
            )
            plan = ComparisonPlan(
                read_opened(open_table(data), options),
                out or Path(f"{data.name.partition('.')[0].strip('-') or 'stdin'}-comparison"),
                chosen,
                shrinkages,
                repeats=repeats,
                folds=folds,
                n_labeled=labeled,
                missing=missing,
                seed=seed,
                jobs=jobs or words.n_cores(),
                command=words.command_line(),
                reading=options.to_json(),
                is_fast=fast,
            )
            run = stack.enter_context(open_run(plan))
        _run(run, is_quiet)
        findings = redraw(plan.out, quiet=quiet, json=json, is_answered=True)
        if findings.verdict.method is None:
            typer.echo(f"Error: {words.in_options(findings.verdict.sentence)}", err=True)
            raise typer.Exit(NO_ANSWER)


def _find_methods(text: str | None) -> tuple[Method, ...] | None:
    if text is None:
        return None
    names = words.split_names(text)
    if not names:
        known = ", ".join(method.name for method in COMPARED)
        raise ValueError(f"No method is named. There are: {known}.")
    from ..studies.compare.plan import find_compared

    with words.noted_warnings():
        return find_compared(names)


def _run(run: ComparisonRun, quiet: bool) -> None:
    """Compute what is missing; the answer is printed before the learning curves are computed."""
    from ..studies.compare.api import read_findings
    from ..studies.compare.report import protocol, remark_lines

    if not quiet:
        terminal = _terminal()
        _print([*remark_lines(run.settings.remarks, terminal), ""])
        _print(["How", *terminal.wrap(protocol(run.settings)), ""])
    with show_cells(quiet, "splits") as advance:
        run.compare(advance)
    if not quiet:
        _print_answer(read_findings(run.plan.out))
    if run.plan.is_fast:
        return
    if not quiet:
        note = "  For the report; the answer does not depend on them."
        _print(["", "Learning curves", note, ""])
    with show_cells(quiet, "splits") as advance:
        run.add_curves(advance)


def redraw(out: Path, *, quiet: bool, json: bool, is_answered: bool = False) -> Findings:
    """Write the files of a comparison from its rows, and print what was not printed yet."""
    with spinner("Writing the report", quiet or json):
        from ..studies.compare.api import read_findings
        from ..studies.compare.report import fit_command, json_summary, write_files

        findings = read_findings(out)
        command = words.in_options(fit_command(findings))
        paths = write_files(out, findings, words.in_options, command)
    if json:
        words.print_json(json_summary(findings, paths, words.in_options))
    elif not quiet:
        if not is_answered:
            _print_answer(findings)
        _print(["", f"Report: {paths['report']}   Numbers: {paths['comparison']}"])
    return findings


def _print_answer(findings: Findings) -> None:
    from ..studies.compare.report import answer_lines, score_lines

    _print(["", *score_lines(findings.summary, _terminal()), ""])
    _print(answer_lines(findings, _terminal()))


def _terminal() -> Terminal:
    from ..studies.compare.report import Terminal

    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return Terminal(width, words.in_options, _style)


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(line)


def _style(text: str, kind: str) -> str:
    return typer.style(text, **_COLORS.get(kind, {}))
