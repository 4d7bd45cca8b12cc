"""A rule of at most three questions that names a method: is it better than one method?

Reads the rows of the study. A *case* is a table with a number of labels; the *regret*
of a method is its error above that of the best method of the case. Questions are about
what can be seen beforehand: labels, features, doubt of the supervised fit about the
unlabeled rows, kurtosis of the columns. The rule is fitted to nine tenths of the tables
and tested on the others. It is also fitted to the benchmark sets and tested on the
other tables, and the other way round.

    python -m research --out answers
    python -m research.rule answers
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iclda._core import Array
from iclda.datasets import BENCHMARKS
from iclda.studies.store import STORE, Store

from .plan import EXPERIMENTS, KIND, PLAN

SEEN = ("labels of a class", "labels a feature", "features", "doubt", "kurtosis")
# The first "method" of the experiment is ``seen``, which fits no method to compare.
METHODS = EXPERIMENTS["methods"]["methods"][1:]
# An answer of a rule must hold for at least this share of the cases.
_MIN_LEAF_SHARE = 0.1
# Tables are divided into this many parts. One at a time is left out, to test the rule.
_N_PARTS = 10
# Questions have thresholds at these quantiles of what is seen.
_QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)
# A question must lower the sum of regrets by more than rounding.
_MIN_GAIN = 1e-9
# Kinds of rules, by the depth of their tree of questions.
_KINDS = ("always one method", "one question", "three questions")
_LEFT_OUT = "tables left out"

# A table, and its number of labels.
Case = tuple[str, int]


@dataclass(frozen=True)
class Question:
    """A question about a number. An answer is a further question, or a method."""

    about: str
    threshold: float
    below: Any
    above: Any

    def answer(self, seen: dict[str, float]) -> str:
        side = self.below if seen[self.about] <= self.threshold else self.above
        return side.answer(seen) if isinstance(side, Question) else side

    def __str__(self) -> str:
        below, above = (
            f"[{side}]" if isinstance(side, Question) else side
            for side in (self.below, self.above)
        )
        return f"{self.about} up to {self.threshold:.3g}: {below}, else {above}"


@dataclass(frozen=True)
class Cases:
    """What is seen of every case, and the regrets of the methods on it."""

    seen: dict[Case, dict[str, float]]
    regrets: dict[Case, dict[str, float]]
    methods: list[str]

    def fit_rule(self, cases: list[Case], depth: int) -> Any:
        """Return the rule with the lowest mean regret on some cases."""
        regrets = [
            [self.regrets[case][name] for name in self.methods] for case in cases
        ]
        seen = [self.seen[case] for case in cases]
        return fit_rule(seen, np.array(regrets), self.methods, depth)

    def regret_of(self, rule: Any, case: Case) -> float:
        is_question = isinstance(rule, Question)
        method = rule.answer(self.seen[case]) if is_question else rule
        return self.regrets[case][method]


def read_cases(folder: Path) -> Cases:
    """Read the rows of a folder; only methods fitted in all cases take part."""
    seen: dict[Case, dict[str, float]] = {}
    errors: dict[Case, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with closing(Store(folder / STORE, kind=KIND, read_only=True)) as store:
        for row in store.rows("methods"):
            case = row.dataset, row.part
            if row.method == "seen":
                seen[case] = {name: row.values[name] for name in SEEN}
            elif "error" in row.values:
                errors[case][row.method].append(row.values["error"])

    means = {}
    for case in seen:
        # scikit-learn's LDA needs more labels than classes.
        if "sklearn-lda" in errors[case]:
            means[case] = {
                name: float(np.mean(values)) for name, values in errors[case].items()
            }
    methods = [name for name in METHODS if all(name in each for each in means.values())]
    regrets = {}
    for case, mean_errors in means.items():
        least = min(mean_errors[name] for name in methods)
        regrets[case] = {name: error - least for name, error in mean_errors.items()}
    return Cases({case: seen[case] for case in regrets}, regrets, methods)


def fit_rule(
    seen: list[dict[str, float]], regrets: Array, methods: list[str], depth: int
) -> Any:
    """Return the rule with the lowest mean regret; ``regrets`` is (cases, methods)."""
    questions = []
    for name in SEEN:
        values = np.array([numbers[name] for numbers in seen])
        thresholds = np.unique(np.quantile(values, _QUANTILES)).tolist()
        questions += [(name, t, values <= t) for t in thresholds]

    def best(is_in: Any, n_levels: int) -> tuple[float, Any]:
        """Return the lowest sum of regrets over the cases of a mask, and its rule."""
        sums = regrets[is_in].sum(axis=0)
        lowest = float(sums.min())
        rule: Any = methods[int(sums.argmin())]
        if n_levels == 0:
            return lowest, rule
        for name, threshold, is_below in questions:
            in_below = is_in & is_below
            in_above = is_in & ~is_below
            n_smaller = min(in_below.sum(), in_above.sum())
            if n_smaller < _MIN_LEAF_SHARE * len(regrets):
                continue
            regret_below, below = best(in_below, n_levels - 1)
            regret_above, above = best(in_above, n_levels - 1)
            if regret_below + regret_above < lowest - _MIN_GAIN:
                lowest = regret_below + regret_above
                rule = Question(name, threshold, below, above)
        return lowest, rule

    return best(np.ones(len(regrets), dtype=bool), depth)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of `python -m research`")
    cases = read_cases(parser.parse_args().folder)
    print(f"Methods fitted in all cases: {', '.join(cases.methods)}.\n")

    # Regrets of rules on cases that they were not fitted to, by kind of rule.
    tested: dict[str, dict[Case, float]] = defaultdict(dict)

    def test(training: list[Case], label: str) -> None:
        others = [case for case in cases.seen if case not in training]
        for depth, kind in enumerate(_KINDS):
            rule = cases.fit_rule(training, depth)
            for case in others:
                tested[f"{kind}, {label}"][case] = cases.regret_of(rule, case)
            if label != _LEFT_OUT:
                print(f"{kind}, fitted to {len(training)} cases of {label}: {rule}")

    names = sorted({table for table, _ in cases.seen})
    tables = np.random.default_rng(0).permutation(names)
    for left_out in np.array_split(tables, _N_PARTS):
        test([case for case in cases.seen if case[0] not in left_out], _LEFT_OUT)
    for label, group in _groups(cases).items():
        if group:
            test(group, label)
    _print_regrets(cases, tested)


def _groups(cases: Cases) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {
        "benchmark sets": [],
        "other tables": [],
        "given features": [],
    }
    for case in cases.seen:
        table, _ = case
        if table in BENCHMARKS:
            groups["benchmark sets"].append(case)
        elif table in PLAN["tables"]:
            groups["other tables"].append(case)
        else:
            groups["given features"].append(case)
    return groups


def _print_regrets(cases: Cases, tested: dict[str, dict[Case, float]]) -> None:
    print("\nMean regret in points, of rules on cases that they were not fitted to:")
    lines = {label: list(regrets.values()) for label, regrets in tested.items()}
    for method in cases.methods:
        lines[method] = [regrets[method] for regrets in cases.regrets.values()]
    for label, regrets in sorted(lines.items(), key=lambda item: np.mean(item[1])):
        mean = 100 * np.mean(regrets)
        worst = 100 * np.max(regrets)
        print(f"  {label:36} {mean:5.2f}   worst {worst:5.1f}")


if __name__ == "__main__":
    main()
