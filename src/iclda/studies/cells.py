"""What is to be computed, and what comes back: plans of cells, rows of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

N_FOLDS = 10
TABLES, CURVES = "tables", "curves"
MEASURES = ("error", "nll")
# The paper's names, in the order of its tables; the last one is ours to tell the two apart.
METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "EMLDA-as-published", "SLLDA", "ICLDA")
EXTRA_METHODS = ("SelfTraining", "LabelSpreading")
GAUSSIAN, VIOLATED = "2DGaussian", "2DGaussianViolated"
PUBLISHED_CURVES = (GAUSSIAN, "Parkinsons", "Pima", "Sonar")


@dataclass(frozen=True, order=True)
class Cell:
    """One split of one data set, on which every method is fitted once.

    ``part`` is the fold of a cross-validation, or the number of unlabeled rows of a curve.
    """

    experiment: str
    dataset: str
    repeat: int
    part: int


@dataclass(frozen=True)
class Row:
    """One fit: what it was given and how it did, or why it failed."""

    experiment: str
    dataset: str
    repeat: int
    part: int
    method: str
    n_labeled: int
    n_unlabeled: int
    n_test: int
    error: float | None  # share of test rows classified wrongly
    nll: float | None  # mean over test rows of -log(prior x density of their class)
    nll_labeled: float | None  # the same over the labeled rows
    seconds: float
    failure: str | None = None  # traceback of a fit that failed
    seed: int = 0
    versions: str = ""

    @property
    def cell(self) -> Cell:
        """The cell this row belongs to."""
        return Cell(self.experiment, self.dataset, self.repeat, self.part)


def plan_tables(datasets: Iterable[str], repeats: int) -> list[Cell]:
    """Ten folds of every repeat of every set."""
    return [
        Cell(TABLES, name, repeat, fold)
        for name in datasets
        for repeat in range(repeats)
        for fold in range(N_FOLDS)
    ]


def plan_curves(sizes: dict[str, list[int]], repeats: int) -> list[Cell]:
    """Every number of unlabeled rows, for every repeat of every set."""
    return [
        Cell(CURVES, name, repeat, n_unlabeled)
        for name, steps in sizes.items()
        for repeat in range(repeats)
        for n_unlabeled in steps
    ]
