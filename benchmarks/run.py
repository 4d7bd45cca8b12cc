"""Measure the fits against X'X and against others, and compare with a stored run.

Prints tables and writes rows (JSON), tables (Markdown) and a figure (SVG, PNG) into a
folder. The exit code is 1 if fits of ours take more passes than in the stored run, see
suite/compare.py, and 0 otherwise: what became slower, and a case that fails or is left
out, is said, not punished.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from suite.cases import CASES, Case
from suite.compare import Comparison, compare, confirmed
from suite.document import write_document
from suite.draw import write_figure
from suite.machine import describe_machine, describe_versions, is_same_machine
from suite.methods import warm_up
from suite.rows import Note, Run, read_run, write_run
from suite.settings import Settings
from suite.tables import machine_line, render
from suite.timing import Clock

HERE = Path(__file__).parent
STORED = HERE / "stored.json"
DOCUMENT = HERE.parent / "docs" / "performance.md"


def measure(cases: Sequence[Case], settings: Settings) -> Run:
    """Run cases one after the other on one BLAS thread, and name each on stderr."""
    run = Run(describe_machine(), describe_versions(), time.strftime("%Y-%m-%d %H:%M"))
    start = time.perf_counter()
    with threadpool_limits(1):
        for case in cases:
            began = time.perf_counter()
            print(
                f"{case.name}: {case.title} ...", end=" ", file=sys.stderr, flush=True
            )
            measure_case(case, settings, run)
            print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    run.seconds = time.perf_counter() - start
    return run


def measure_case(case: Case, settings: Settings, run: Run) -> None:
    """Add the rows and notes of a case; if it fails, those measured before are kept."""
    limit = None if settings.seconds is None else case.share * settings.seconds
    try:
        warm_up()
        for found in case.measure(case.name, settings, Clock(limit)):
            if isinstance(found, Note):
                run.notes.append(found)
            else:
                run.rows.append(found)
    except Exception:
        run.notes.append(
            Note(case.name, f"broke off: {traceback.format_exc().splitlines()[-1]}")
        )
        traceback.print_exc()


def compare_with_stored(
    run: Run, cases: Sequence[Case], settings: Settings
) -> Comparison | None:
    """Compare, measuring cases that look slow a second time; None if impossible."""
    if settings.is_quick:
        print("Not compared with the stored run: a quick one has other rows.")
        return None
    if not STORED.is_file():
        print("No run is stored to compare with: --store keeps one.")
        return None
    try:
        stored = read_run(STORED)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"Not compared: {STORED.name} cannot be read ({error!r}).")
        return None
    found = compare(run, stored)
    if found.slow and is_same_machine(run.machine, stored.machine):
        names = {change.group[0] for change in found.slow}
        print(
            f"Measuring again, to be sure: {', '.join(sorted(names))}", file=sys.stderr
        )
        again = measure([case for case in cases if case.name in names], settings)
        found = confirmed(found, compare(again, stored))
    return found


def tell(found: Comparison) -> None:
    """Return what changed since the stored run."""
    print(f"\nCompared with the stored run: {len(found.changes)} groups of rows.")
    for remark in found.remarks:
        print(f"- {remark}")
    for more in found.more_passes:
        print(f"- more passes: {more}")
    for change in found.slow:
        print(f"- slower: {change}")
    if found.slow:
        print(
            "Times fail nothing: the machine, or what else it does, may be the reason."
        )
    if not found.slow:
        print("Nothing is slower by more than 1.3 times and 20 ms.")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [case.name for case in CASES]
    parser.add_argument(
        "--only", action="append", choices=names, help="this case; may be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, one seed: seconds"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also scikit-learn's slow fits and the case default; no limit of time",
    )
    parser.add_argument(
        "--seeds", type=int, default=8, help="samples a case (default 8)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/bench"),
        help="folder (default results/bench)",
    )
    parser.add_argument(
        "--store", action="store_true", help=f"keep the run as {STORED.name}"
    )
    parser.add_argument(
        "--write-docs",
        nargs="?",
        type=Path,
        const=STORED,
        metavar="JSON",
        help="measure nothing: fill docs/performance.md from a run "
        f"(default {STORED.name})",
    )
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error(f"--seeds must be 1 or more, got {options.seeds}")
    if options.store and (options.only or options.quick):
        parser.error("--store keeps a whole run: leave out --only and --quick")
    if options.write_docs and (
        options.only or options.quick or options.all or options.store
    ):
        parser.error(
            "--write-docs measures nothing: leave out --only, --quick, --all and "
            "--store"
        )
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"--out must be a folder, and {options.out} is none")
    if options.write_docs and not options.write_docs.is_file():
        parser.error(
            f"--write-docs: {options.write_docs} does not exist; give the bench.json "
            "of a run"
        )
    return options


def is_chosen(case: Case, options: argparse.Namespace) -> bool:
    if options.only:
        return case.name in options.only
    return options.all or case.share > 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.write_docs:
        for path in write_document(DOCUMENT, read_run(options.write_docs)):
            print(f"Written: {path.name}")
        return 0
    settings = Settings(
        n_seeds=1 if options.quick else options.seeds,
        seconds=None if options.all else Settings.seconds,
        is_quick=options.quick,
        is_everything=options.all,
    )
    cases = [case for case in CASES if is_chosen(case, options)]
    run = measure(cases, settings)
    write_results(run, options.out)
    found = compare_with_stored(run, cases, settings)
    if found is not None:
        tell(found)
    if options.store:
        write_run(run, STORED)
    return int(found is not None and found.has_failed)


def write_results(run: Run, folder: Path) -> None:
    """Rows, tables and figure."""
    text = f"{machine_line(run)}\n\n{render(run)}\n"
    print(text)
    write_run(run, folder / "bench.json")
    (folder / "tables.md").write_text(text)
    written = [
        folder / "bench.json",
        folder / "tables.md",
        *write_figure(run.rows, folder),
    ]
    print("Written: " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    sys.exit(main())
