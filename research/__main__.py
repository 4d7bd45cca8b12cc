"""Command line of the study: ``python -m research --out answers``."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from pathlib import Path

from joblib import cpu_count

from iclda._messages import wrap
from iclda._progress import show_cells
from iclda.studies.page import check_can_report

from .answers import draw_answers
from .plan import EXPERIMENTS
from .questions import StudySettings, run_questions

# Exit codes of the shell: an error that the user can correct, and Ctrl-C.
_USAGE_ERROR = 2
_INTERRUPTED = 130
_MAX_LINE_WIDTH = 100
_RESUMABLE = "What was computed is kept: run the same command to go on."


def main(arguments: list[str] | None = None) -> int:
    """Run the study and draw the answers; return the exit code."""
    if arguments is None:
        arguments = sys.argv[1:]
    options = _parse(arguments)
    settings = StudySettings(
        out=options.out,
        seed=options.seed,
        jobs=options.jobs or cpu_count(),
        data_dir=options.data,
        features=options.features,
        command=shlex.join(["python", "-m", "research", *arguments]),
        is_quick=options.quick,
    )
    try:
        _run(settings, quiet=options.quiet, print_json=options.json)
    except KeyboardInterrupt:
        print(f"Interrupted. {_RESUMABLE}", file=sys.stderr)
        return _INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return _USAGE_ERROR
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m research",
        description="Answer the open questions of the paper by experiments.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few sets and repeats: half a minute"
    )
    parser.add_argument(
        "--features",
        type=Path,
        metavar="FOLDER",
        help="also use the .npz files with X and y in this folder",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("answers"),
        metavar="FOLDER",
        help="for rows, tables, figures and the report (default: answers)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="of NAME.csv files (default: ICLDA_DATA)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="processes (default: all cores)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "--json", action="store_true", help="print a summary for programs"
    )
    return parser.parse_args(arguments)


def _run(settings: StudySettings, *, quiet: bool, print_json: bool) -> None:
    check_can_report()
    width = min(shutil.get_terminal_size().columns, _MAX_LINE_WIDTH)
    if not quiet:
        duration = "half a minute" if settings.is_quick else "five minutes"
        text = (
            f"Answers go to {settings.out}: about {duration} on two cores. {_RESUMABLE}"
        )
        print("\n".join(wrap(text, width)), file=sys.stderr)

    # The bar shows which of the experiments is running.
    titles = {
        name: f"{name} ({number} of {len(EXPERIMENTS)})"
        for number, name in enumerate(EXPERIMENTS, 1)
    }
    with show_cells(quiet) as advance:
        run_questions(settings, lambda name, *counts: advance(titles[name], *counts))
    with show_cells(quiet or print_json, title="Writing the report"):
        summary = draw_answers(settings.out)

    if print_json:
        print(json.dumps(summary, indent=2))
    elif not quiet:
        for sentences in summary["answers"].values():
            for sentence in sentences:
                print("\n".join(wrap(sentence, width)))
            print()
        print(f"Report: {summary['report']}")
    if settings.is_quick and not quiet:
        print(
            "A quick run has too few fits for its numbers to mean much.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
