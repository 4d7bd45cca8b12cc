"""Few labels on tables: the default, and scikit-learn's classifiers, on new rows.

    python benchmarks/bench_tables.py --tables tuned --jobs 2 --out tuned.json
    python benchmarks/bench_tables.py --tables kept --jobs 2 --out kept.json
    python benchmarks/bench_tables.py --mixed --out mixed.json
    python benchmarks/bench_tables.py --large

For every table and about 2, 4, 8 and 16 labels a class, rows are labeled at random, up
to 1,000 others are unlabeled, and up to 2,000 further ones are to judge by. AutoLDA
gets the table as it is; columns are standardized for all others but trees. With
--mixed, tables of numbers and text go through the command line (`iclda fit`, `iclda
predict`) and through ten lines of scikit-learn. --large prints the seconds of fits to
up to 100,000 x 30 rows, and the memory of one to 1,000,000 x 50 rows of a file.

The same command with the same --out continues after an interruption; take another file
for another version of the code. Settings may be chosen by the tables tuned on. Look at
those kept apart once, at the end: --list says what they are without a fit.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

# Libraries read these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from joblib import Parallel, delayed

from few_labels import contestants, mixed
from few_labels.bars import summarize
from few_labels.draws import measured_labels
from few_labels.large import measure_large
from few_labels.sets import KEPT, TUNED
from few_labels.store import Cell, CellStore, Key

TABLES = {"tuned": TUNED, "kept": KEPT}
# A cell that may have to be measured, and the call that does.
Plan = dict[Key, tuple[Callable[..., Cell], tuple]]


def plan_table(name: str, columns: contestants.Columns, n_draws: int) -> Plan:
    return {
        (contestants.PART, name, n_labels, draw): (
            contestants.measure_cell,
            (name, columns, labels_a_class, n_labels, draw),
        )
        for labels_a_class, n_labels in measured_labels(columns[1]).items()
        for draw in range(n_draws)
    }


def plan_mixed(name: str, n_draws: int) -> Plan:
    table = mixed.MIXED[name]
    return {
        (mixed.PART, name, table.n_labels, draw): (
            mixed.measure_mixed,
            (name, table, draw),
        )
        for draw in range(n_draws)
    }


def measure(plan: Plan, store: CellStore, n_jobs: int) -> list[Cell]:
    """Measure the cells that are not stored, store each as it comes, return all."""
    missing = [call for key, call in plan.items() if key not in store]
    tasks = [delayed(function)(*arguments) for function, arguments in missing]
    for cell in Parallel(n_jobs, return_as="generator_unordered")(tasks):
        store.add(cell)
    return [store[key] for key in plan]


def describe(name: str, columns: contestants.Columns) -> str:
    X, codes = columns
    labels = measured_labels(codes)
    numbers = ", ".join(f"{n}" for n in labels.values()) or "none"
    return (
        f"{name}: {X.shape[0]} rows, {X.shape[1]} columns, {codes.max() + 1} classes; "
        f"labels: {numbers}"
    )


def run_tables(given: argparse.Namespace, store: CellStore) -> str:
    cells: list[Cell] = []
    for name in _chosen(TABLES[given.tables], given.only):
        columns = TABLES[given.tables][name]()
        print(describe(name, columns), flush=True)
        if not given.list:
            plan = plan_table(name, columns, given.draws)
            cells += measure(plan, store, given.jobs)
    return summarize(cells, given.members) if cells else ""


def run_mixed(given: argparse.Namespace, store: CellStore) -> str:
    cells: list[Cell] = []
    for name in _chosen(mixed.MIXED, given.only):
        rows, columns = mixed.MIXED[name].load().shape
        n_labels = mixed.MIXED[name].n_labels
        print(f"{name}: {rows} rows, {columns - 1} columns; labels: {n_labels}")
        if not given.list:
            cells += measure(plan_mixed(name, given.draws), store, given.jobs)
    return mixed.summarize_mixed(cells) if cells else ""


def _chosen(names: Iterable[str], only: Sequence[str] | None) -> list[str]:
    names = list(names)
    for name in only or ():
        if name not in names:
            known = ", ".join(names)
            raise SystemExit(f"--only must be a table, got {name!r}. Tables: {known}.")
    return [name for name in names if not only or name in only]


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {count}")
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", choices=list(TABLES), default="tuned")
    parser.add_argument("--mixed", action="store_true", help="the command line instead")
    parser.add_argument(
        "--large", action="store_true", help="only seconds and memory of large tables"
    )
    parser.add_argument("--only", action="append", help="a table; may be repeated")
    parser.add_argument("--draws", type=_count, help="of labels; 3, with --mixed 5")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file of all cells, continued")
    parser.add_argument(
        "--members", action="store_true", help="also the members of AutoLDA's ensemble"
    )
    parser.add_argument("--list", action="store_true", help="list tables, fit nothing")
    given = parser.parse_args(arguments)
    if given.large:
        print(measure_large())
        return
    if given.draws is None:
        given.draws = 5 if given.mixed else 3
    run = run_mixed if given.mixed else run_tables
    print()
    print(run(given, CellStore(given.out)))


if __name__ == "__main__":
    main()
