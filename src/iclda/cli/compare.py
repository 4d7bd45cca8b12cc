"""The command ``compare``: whether unlabeled rows help, and with which method."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .._messages import printable
from .._progress import show_cells
from .._system import resume_collector
from ..methods import COMPARED, FITTED, Method, Shrinkage
from . import messages, options

if TYPE_CHECKING:
    from ..studies.compare.api import Findings
    from ..studies.compare.run import ComparisonRun
    from ..studies.compare.terminal import Terminal

# Exit code of a comparison that had nothing to compare with.
NO_ANSWER = 1
# How parts of lines are styled, by the kind that ``Terminal`` passes.
_STYLES: dict[str, dict[str, Any]] = {
    "better": {"fg": "green", "bold": True},
    "worse": {"fg": "red", "bold": True},
    "fine": {"fg": "green"},
    "warning": {"fg": "yellow", "bold": True},
    "answer": {"bold": True},
}

_METHOD_NAMES = ", ".join(
    method.name for method in COMPARED if method.name != "supervised"
)
# Printed after the answer, before the longest wait.
_ABOUT_CURVES = (
    "Next, the learning curves of the report. The answer does not depend on them."
)
_Methods = Annotated[
    str | None,
    Option(
        metavar="NAMES",
        help=f"Methods to compare: {_METHOD_NAMES}. Default: those up to "
        f"{FITTED[-1].name} and those of scikit-learn. supervised always takes part.",
    ),
]
_Repeats = Annotated[
    int | None,
    options.number_option(
        2,
        10_000,
        help="How often rows are divided into folds. Default: 2 to 10, by the size of "
        "the table, and no more once the choice is settled.",
    ),
]
_Folds = Annotated[
    int | None,
    options.number_option(
        2,
        help="Number of folds. Default: 10, or fewer if a class has fewer labels.",
    ),
]
_Labeled = Annotated[
    int | None,
    options.number_option(
        1,
        help="Labels to keep in every split; the others are hidden.",
    ),
]
_Shrinkages = Annotated[
    str | None,
    Option(
        metavar="NUMBERS",
        help="Shrinkage of all methods: 0, 0.1, auto or 0,auto. Default: by the number "
        "of labels.",
    ),
]
_Measure = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="Measure that decides: brier, error, balanced or auc. Default: brier.",
    ),
]
_Fast = Annotated[
    bool,
    Option("--fast", help="Answer soon: at most 3 repeats, no learning curves."),
]
_Time = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="Time limit, such as 90, 60s or 5m: at least one repeat, no learning "
        "curves.",
    ),
]
_Verbose = Annotated[
    bool,
    Option("--verbose", help="Print all methods, and how they were compared."),
]
_Out = Annotated[
    Path | None,
    Option(metavar="FOLDER", help="Folder to write to. Default: DATA-comparison."),
]


def compare(
    data: options.TableFile,
    target: options.Target = None,
    labels: options.LabelsFile = None,
    id: options.Id = None,
    methods: _Methods = None,
    repeats: _Repeats = None,
    folds: _Folds = None,
    labeled: _Labeled = None,
    unlabeled: options.Unlabeled = None,
    unlabeled_file: options.UnlabeledFile = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    strict: options.Strict = False,
    shrinkage: _Shrinkages = None,
    measure: _Measure = None,
    fast: _Fast = False,
    time: _Time = None,
    jobs: options.Jobs = 0,
    seed: options.Seed = 0,
    out: _Out = None,
    verbose: _Verbose = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Find out whether unlabeled rows help, and with which method."""
    is_quiet = quiet or json
    if not is_quiet:
        # Printed before the imports below, which take a second or two.
        of_target = "" if target is None else f", target {target!r}"
        typer.echo(printable(f"Comparing methods on {data.name or data}{of_target}"))
    # The folder stays locked until its report is written.
    with ExitStack() as stack:
        with show_cells(is_quiet, title="Reading the table"):
            from ..studies.compare.plan import (
                ComparisonPlan,
                check_measure,
                parse_time,
            )
            from ..studies.compare.run import open_run
            from ..studies.compare.stored import default_folder
            from ..studies.page import check_can_report
            from ..tabular.read_options import ReadOptions
            from ..tabular.table import read_file

            resume_collector()
            # A missing package is an error before anything is computed, and a value
            # that was mistyped one before anything is read.
            check_can_report()
            named_methods = _parse_methods(methods)
            shrinkages = _parse_shrinkages(shrinkage)
            deciding = check_measure(measure)
            time_limit = parse_time(time)
            reading = ReadOptions(
                target, unlabeled, unlabeled_file, drop, keep, strict, labels, id
            )
            plan = ComparisonPlan(
                table=read_file(data, reading).framed(),
                out=out or default_folder(data),
                methods=named_methods,
                shrinkages=shrinkages,
                repeats=repeats,
                folds=folds,
                n_labeled=labeled,
                seed=seed,
                jobs=jobs or options.n_cores(),
                command=options.command_line(),
                reading=reading.to_json(),
                is_fast=fast,
                time=time_limit,
                measure=deciding,
            )
            run = stack.enter_context(open_run(plan))
        _run(run, is_quiet, verbose)
        findings = draw_comparison(plan.out, quiet=quiet, json=json, is_answered=True)
    if findings.verdict.method is None:
        error = messages.in_options(findings.verdict.sentence)
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(NO_ANSWER)


def _parse_methods(text: str | None) -> tuple[Method, ...] | None:
    """Return the methods that are named; None if none are."""
    from ..studies.compare.contestants import find_compared

    names = options.split_names(text or "")
    return find_compared(names) if names else None


def _parse_shrinkages(text: str | None) -> tuple[Shrinkage, ...] | None:
    """Return the values of shrinkage that are named; None if none are."""
    from ..studies.compare.contestants import parse_shrinkages

    return None if text is None else parse_shrinkages(text)


def _run(run: ComparisonRun, quiet: bool, verbose: bool) -> None:
    """Compute what is missing, and print the answer before the curves are computed."""
    from ..studies.compare.api import read_findings
    from ..studies.compare.terminal import (
        first_ranking,
        first_remarks,
        remark_lines,
    )

    if not quiet:
        remarks = run.settings.remarks
        # Whoever reads such a remark may stop here, and mend the table first.
        shown = remarks if verbose else first_remarks(remarks)
        echo_lines([*remark_lines(shown, make_terminal()), ""])
    with show_cells(quiet, "splits") as advance:
        is_new = run.begin(advance)
    if is_new and not quiet:
        # A remark on the progress, as the bar is: the answer takes its place.
        first = first_ranking(read_findings(run.plan.out))
        for line in make_terminal().wrap([first], indent=0):
            typer.echo(line, err=True)
    with show_cells(quiet, "splits") as advance:
        run.compare(advance)
    if not quiet:
        _print_answer(run.plan.out, read_findings(run.plan.out), verbose)
    if run.plan.is_fast or run.plan.time is not None:
        return
    if not quiet:
        echo_lines([_ABOUT_CURVES])
    # Curves may take as long as the answer, and nobody has to wait for them.
    with show_cells(quiet, "splits") as advance:
        run.add_curves(advance)


def draw_comparison(
    out: Path, *, quiet: bool, json: bool, is_answered: bool = False
) -> Findings:
    """Write the files of a comparison from its stored rows, and print the answer.

    ``is_answered`` tells whether the answer has been printed already.
    """
    with show_cells(quiet or json, title="Writing the report"):
        from ..studies.compare.api import read_findings
        from ..studies.compare.report import json_summary, write_files
        from ..studies.compare.terminal import fit_command

        findings = read_findings(out)
        command = messages.in_options(fit_command(findings))
        paths = write_files(out, findings, messages.in_options, command)
    if json:
        messages.print_json(json_summary(findings, paths, messages.in_options))
    elif not quiet:
        if not is_answered:
            _print_answer(out, findings, verbose=False)
        echo_lines([f"Report: {paths['report']}"])
    return findings


def _print_answer(out: Path, findings: Findings, verbose: bool) -> None:
    from ..studies.compare.stored import default_folder
    from ..studies.compare.terminal import (
        answer_lines,
        class_lines,
        fit_command,
        protocol,
        score_lines,
        short_score_lines,
    )

    # Asked for again: the window may have another size than when the run began.
    terminal = make_terminal()
    # ``iclda fit`` looks for a comparison in this folder only.
    is_followed = out == default_folder(Path(findings.settings.sources[0].path))
    command = fit_command(findings, is_followed=is_followed)
    echo_lines([*answer_lines(findings, terminal, command), ""])
    if not verbose:
        echo_lines([*short_score_lines(findings, terminal), ""])
        return
    echo_lines([*score_lines(findings, terminal), ""])
    by_class = class_lines(findings, terminal)
    if by_class:
        echo_lines([*by_class, ""])
    echo_lines(["How", *terminal.wrap(protocol(findings.settings)), ""])


def make_terminal() -> Terminal:
    """Return the terminal that this process prints to."""
    from ..studies.compare.terminal import Terminal

    return Terminal(messages.line_width(), messages.in_options, _style)


def _style(text: str, kind: str) -> str:
    return typer.style(text, **_STYLES.get(kind, {}))


def echo_lines(lines: list[str]) -> None:
    """Print lines."""
    typer.echo("\n".join(lines))
