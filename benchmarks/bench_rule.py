"""A rule of at most three questions that names a method, found on some tables, tested on others.

Reads the rows of `iclda study`. Cases are tables with a number of labels; the regret of a method is
its error above that of the best one of the case. Questions are about what can be seen beforehand:
labels, features, doubt of the supervised fit about the unlabeled rows, kurtosis of the columns. The
rule is found on nine tenths of the tables and tested on the rest; it is also found on the benchmark
sets and tested on the other tables, and the other way round.

    iclda study --out answers
    python benchmarks/bench_rule.py answers
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iclda.datasets import BENCHMARKS
from iclda.studies.paper import EXPERIMENTS, PLAN, QUESTIONS
from iclda.studies.store import STORE, Store

SEEN = ("labels of a class", "labels a feature", "features", "doubt", "kurtosis")
METHODS = EXPERIMENTS["methods"]["methods"][1:]
SMALLEST_LEAF = 0.1  # of all cases, for which a rule names one method
FOLDS = 10  # of tables
QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)  # of what is seen: thresholds


@dataclass(frozen=True)
class Question:
    """A question about a number, and what follows: further questions, or a method."""

    about: str
    threshold: float
    below: Any
    above: Any

    def answer(self, seen: dict[str, float]) -> str:
        side = self.below if seen[self.about] <= self.threshold else self.above
        return side.answer(seen) if isinstance(side, Question) else side

    def __str__(self) -> str:
        sides = [
            f"[{s}]" if isinstance(s, Question) else s for s in (self.below, self.above)
        ]
        return f"{self.about} up to {self.threshold:.3g}: {sides[0]}, else {sides[1]}"


def read_cases(folder: Path) -> tuple[dict, dict]:
    """What is seen, and the mean error of every method, by table and number of labels."""
    seen, errors = {}, defaultdict(lambda: defaultdict(list))
    with closing(Store(folder / STORE, kind=QUESTIONS, read_only=True)) as store:
        for row in store.rows("methods"):
            case = row.dataset, row.part
            if row.method == "seen":
                seen[case] = {name: row.values[name] for name in SEEN}
            elif "error" in row.values:
                errors[case][row.method].append(row.values["error"])
    means = {c: {m: float(np.mean(v)) for m, v in errors[c].items()} for c in seen}
    return seen, means


def find_rule(
    seen: list[dict], costs: np.ndarray, methods: list[str], depth: int
) -> Any:
    """The rule with the lowest mean cost of its choices; costs (cases, methods)."""
    splits = []
    for name in SEEN:
        values = np.array([each[name] for each in seen])
        splits += [
            (name, float(t), values <= t)
            for t in np.unique(np.quantile(values, QUANTILES))
        ]

    def best(is_in: np.ndarray, left: int) -> tuple[float, Any]:
        sums = costs[is_in].sum(axis=0)
        found = float(sums.min()), methods[int(sums.argmin())]
        for name, threshold, is_below in splits if left else ():
            sides = is_in & is_below, is_in & ~is_below
            if min(side.sum() for side in sides) >= SMALLEST_LEAF * len(costs):
                (one, below), (two, above) = (best(side, left - 1) for side in sides)
                if one + two < found[0] - 1e-9:
                    found = one + two, Question(name, threshold, below, above)
        return found

    return best(np.ones(len(costs), dtype=bool), depth)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of `iclda study`")
    folder = parser.parse_args().folder
    seen, errors = read_cases(folder)
    # scikit-learn's LDA needs more labels than classes.
    errors = {case: each for case, each in errors.items() if "sklearn-lda" in each}
    seen = {case: seen[case] for case in errors}
    methods = [
        m for m in METHODS if all(m in by_method for by_method in errors.values())
    ]
    regrets = {
        c: {m: e - min(e_[m] for m in methods) for m, e in e_.items()}
        for c, e_ in errors.items()
    }
    groups = {
        "benchmark sets": [c for c in seen if c[0] in BENCHMARKS],
        "other tables": [c for c in seen if c[0] in PLAN["tables"]],
        "given features": [
            c for c in seen if c[0] not in BENCHMARKS and c[0] not in PLAN["tables"]
        ],
    }
    print(f"Methods fitted in all cases: {', '.join(methods)}.\n")
    tested = defaultdict(dict)

    def test(found_on: list, others: list, label: str) -> None:
        """Find rules on some cases, and keep their regrets on others."""
        costs = np.array([[regrets[case][m] for m in methods] for case in found_on])
        for depth, kind in enumerate(
            ("always one method", "one question", "three questions")
        ):
            rule = find_rule([seen[case] for case in found_on], costs, methods, depth)
            for c in others:
                method = rule.answer(seen[c]) if isinstance(rule, Question) else rule
                tested[f"{kind}, {label}"][c] = regrets[c][method]
            if label != "tables left out":
                print(f"{kind}, found on {len(found_on)} cases of {label}: {rule}")

    tables = np.random.default_rng(0).permutation(sorted({table for table, _ in seen}))
    for fold in np.array_split(tables, FOLDS):
        is_out = {case: case[0] in fold for case in seen}
        kept = [case for case in seen if not is_out[case]]
        test(kept, [case for case in seen if is_out[case]], "tables left out")
    for name, found_on in ((name, cases) for name, cases in groups.items() if cases):
        test(found_on, [case for case in seen if case not in found_on], name)
    print("\nMean regret in points, of rules on cases that they were not found on:")
    lines = {label: list(values.values()) for label, values in tested.items()}
    lines |= {m: [each[m] for each in regrets.values()] for m in methods}
    for label, values in sorted(lines.items(), key=lambda item: np.mean(item[1])):
        print(
            f"  {label:36} {100 * np.mean(values):5.2f}   worst {100 * np.max(values):5.1f}"
        )


if __name__ == "__main__":
    main()
