"""Design of the paper's experiments: data sets, methods, sizes and measures.

There are two experiments. The *tables* cross-validate every method on ten benchmark
sets. The *curves* show error and loss against the number of unlabeled rows, on two toy
problems and three benchmark sets.
"""

from __future__ import annotations

from ... import methods
from ..measures import PAPER_MEASURES

# Name of this study in the settings of its store.
KIND = "paper"

# Names of the two experiments in stored rows.
TABLES = "tables"
CURVES = "curves"

TABLE_REPEATS = 20
CURVE_REPEATS = 500
N_FOLDS = 10

# The toy problems have two clusters. The class boundary runs between them in the first,
# and across both in the second.
GAUSSIAN = "2DGaussian"
VIOLATED = "2DGaussianViolated"
TOYS = (GAUSSIAN, VIOLATED)
PUBLISHED_CURVES = (GAUSSIAN, "Parkinsons", "Pima", "Sonar")

# Methods have the names of the paper: these are the columns of its tables, in order.
PUBLISHED_METHODS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", "SLLDA", "ICLDA")
# All methods are compared with supervised LDA.
BASELINE = "LDA"
# Supervised LDA that knows the labels of all training rows.
ORACLE = "LDAoracle"
# EM with the faults of the code behind the published numbers (see ``fits``).
PUBLISHED_EM = "EMLDA-as-published"

_COLUMNS = ("LDA", "LDAoracle", "MCLDA", "EMLDA", PUBLISHED_EM, "SLLDA", "ICLDA")
_MAIN_METHODS = [method.paper_name for method in methods.METHODS]
_FURTHER_METHODS = [method.paper_name for method in methods.FURTHER]
# Methods that are run by default: those of the paper, then the other main ones.
METHOD_NAMES = tuple(dict.fromkeys((*_COLUMNS, *_MAIN_METHODS)))
# Methods that can be run if they are named.
EVERY_METHOD = (*METHOD_NAMES, "AVLDA", *_FURTHER_METHODS)

# Measures of the tables, by name. The curves have all measures of the paper.
TABLE_MEASURES = {
    name: measure
    for name, measure in PAPER_MEASURES.items()
    if not measure.is_only_on_curves
}


# Ways of drawing the labeled rows that every class is guaranteed. The first is that of
# the paper.
WITH_REPLACEMENT = "with-replacement"
DRAWINGS = (WITH_REPLACEMENT, "without-replacement")


def n_labeled_of(n_features: int, labels: int = 0) -> int:
    """Return the number of labeled rows: ``labels``, unless that is 0.

    The paper has two for each feature, and at least ten.
    """
    return labels or max(2 * n_features, 10)


def method_rank(method: str) -> tuple[int, str]:
    """Return a sort key of methods: known ones as listed, then others by name."""
    if method in EVERY_METHOD:
        return EVERY_METHOD.index(method), method
    return len(EVERY_METHOD), method
