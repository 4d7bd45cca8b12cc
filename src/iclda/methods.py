"""The table of methods: a row a method. Everything that lists methods reads it.

A new classifier is a module in ``_estimators`` and a row here: the command line, the comparison,
tables, curves, colors and reports follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any

from ._messages import ParameterError, say

Shrinkage = float | str | None

INK, FAINT = "#1f2328", "#8b949e"


@dataclass(frozen=True)
class Method:
    """A classifier, its names, what it does in one sentence, and how it is drawn."""

    name: str  # on the command line; methods of other packages begin with the package
    paper_name: str  # in tables and figures of the paper
    title: str
    sentence: str
    # Color, distinct to color-blind readers (after Okabe and Ito) on white and near-black, then
    # lengths of dashes and gaps; a color alone is a solid line.
    line: tuple[Any, ...]
    path: str  # module of iclda._estimators and class
    uses_unlabeled: bool = True
    options: tuple[
        tuple[str, Any], ...
    ] = ()  # parameters that make the class this method

    @property
    def module(self) -> str:
        """Name of its module in ``iclda._estimators``."""
        return self.path.partition(".")[0]

    @property
    def class_name(self) -> str:
        """Name of its class in ``iclda``."""
        return self.path.partition(".")[2]

    @property
    def color(self) -> str:
        """Color of its lines."""
        return self.line[0]

    @property
    def dashes(self) -> Any:
        """Style of its lines for matplotlib."""
        return (0, self.line[1:]) if self.line[1:] else "solid"

    @property
    def is_outside(self) -> bool:
        """Whether it is a method of another package."""
        return self.name.startswith("sklearn-")

    def load_class(self) -> Any:
        """Import its class."""
        home = import_module(f"._estimators.{self.module}", __package__)
        return getattr(home, self.class_name)

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters of its class."""
        return frozenset(signature(self.load_class()).parameters)

    def classifier(
        self,
        *,
        shrinkage: Any = None,
        priors: Any = None,
        proportions: Any = None,
        seed: int = 0,
    ) -> Any:
        """Return an unfitted classifier with those of the values that its class takes."""
        given = {"shrinkage": shrinkage, "priors": priors, "proportions": proportions}
        given |= {"random_state": seed, "method": self.name}
        known = self.parameters
        chosen = {
            name: v for name, v in given.items() if name in known and v is not None
        }
        return self.load_class()(**{**dict(self.options), **chosen})


# Methods of the paper's tables and of the playground.
METHODS = (
    Method(
        "iclda",
        "ICLDA",
        "implicitly constrained LDA",
        "It labels the unlabeled rows such that the labeled rows are likeliest under the fit.",
        line=("#c0509f",),
        path="implicitly_constrained.ImplicitlyConstrainedLDA",
    ),
    Method(
        "em",
        "EMLDA",
        "LDA by expectation maximization",
        "It maximizes the likelihood of all rows, the unlabeled ones without a class.",
        line=("#d55e00",),
        path="expectation_maximization.ExpectationMaximizationLDA",
    ),
    Method(
        "self-training",
        "STLDA",
        "self-training LDA",
        "It adds the unlabeled rows that it is sure of to the labeled ones, and repeats that.",
        line=("#7f6bd1", 5, 1.5),
        path="self_training.SelfTrainingLDA",
    ),
    Method(
        "self-learning",
        "SLLDA",
        "self-learning LDA",
        "It labels the unlabeled rows, learns from them, and repeats that until nothing changes.",
        line=("#009e73",),
        path="self_learning.SelfLearningLDA",
    ),
    Method(
        "moment",
        "MCLDA",
        "moment constrained LDA",
        "Its fit to the labeled rows is moved to the mean and the covariance of all rows.",
        line=("#1f82c9",),
        path="moment_constrained.MomentConstrainedLDA",
    ),
    Method(
        "pessimistic",
        "MCPLDA",
        "pessimistic LDA",
        "It gains most on supervised LDA under the least favorable classes of unlabeled rows.",
        line=("#a05a2c",),
        path="pessimistic.PessimisticLDA",
    ),
    Method(
        "supervised",
        "LDA",
        "supervised LDA",
        "It learns from the labeled rows alone.",
        line=(INK, 6, 1.5),
        path="supervised.SupervisedLDA",
        uses_unlabeled=False,
    ),
)
# Methods that ``iclda fit`` offers and comparisons include by default.
FITTED = (
    *METHODS,
    Method(
        "average",
        "AVLDA",
        "the average of four fits",
        "It averages the scores of three kinds of EM and of logistic regression.",
        line=("#3f8f8a", 8, 1.5),
        path="average.AverageLDA",
    ),
    Method(
        "iclda-proportions",
        "ICLDA-proportions",
        "implicitly constrained LDA with the class proportions of the labels",
        "It labels as iclda does, with classes in the proportions of the labeled rows.",
        line=("#7b4fb5", 4, 1),
        path="implicitly_constrained.ImplicitlyConstrainedLDA",
        # With proportions more starts end at the same labels, and take most of the time.
        options=(("proportions", "labeled"), ("n_starts", 8)),
    ),
)
# The rest of the family: in comparisons and tables if they are named.
FURTHER = (
    Method(
        "moment-likelihood",
        "MCLDA-likelihood",
        "moment constrained LDA of highest likelihood",
        "It maximizes the likelihood of labeled rows, given the mean and covariance of all rows.",
        line=("#1f82c9", 2, 1),
        path="moment_constrained.MomentConstrainedLDA",
        options=(("variant", "likelihood"),),
    ),
    Method(
        "normalized",
        "NLDA",
        "normalized LDA",
        "Its class means are those of the labeled rows, its covariance is that of all rows.",
        line=("#4b3f9e",),
        path="normalized.NormalizedLDA",
    ),
    Method(
        "nearest-mean",
        "NM",
        "nearest mean",
        "It learns means from the labeled rows alone; classes vary equally in all directions.",
        line=("#57606a", 2, 2),
        path="nearest_mean.NearestMean",
        uses_unlabeled=False,
    ),
    Method(
        "em-nearest-mean",
        "EMNM",
        "nearest mean by expectation maximization",
        "It maximizes the likelihood of all rows; classes vary equally in all directions.",
        line=("#d55e00", 2, 2),
        path="nearest_mean.ExpectationMaximizationNearestMean",
    ),
    Method(
        "moment-nearest-mean",
        "MCNM",
        "moment constrained nearest mean",
        "The means of the labeled rows are shifted so that their mean is that of all rows.",
        line=("#1f82c9", 1, 2),
        path="nearest_mean.MomentConstrainedNearestMean",
        options=(("variant", "variance-kept"),),
    ),
    Method(
        "moment-nearest-mean-anew",
        "MCNM-anew",
        "moment constrained nearest mean, variance anew",
        "As moment-nearest-mean, but the variance is estimated about the shifted means.",
        line=("#1f82c9", 3, 2, 1, 2),
        path="nearest_mean.MomentConstrainedNearestMean",
    ),
    Method(
        "least-squares",
        "LS",
        "least squares",
        "It learns from the labeled rows alone, by linear predictions of 0 and 1.",
        line=("#57606a", 5, 2, 1, 2),
        path="least_squares.LeastSquaresClassifier",
        uses_unlabeled=False,
    ),
    Method(
        "implicit-least-squares",
        "ICLS",
        "implicitly constrained least squares",
        "It labels the unlabeled rows such that the loss on the labeled rows is smallest.",
        line=("#c0509f", 2, 1),
        path="least_squares.ImplicitlyConstrainedLeastSquares",
    ),
    Method(
        "projected-least-squares",
        "ICLS-projected",
        "projected least squares",
        "It labels the unlabeled rows such that the fit is nearest to the supervised one.",
        line=("#c0509f", 1, 2),
        path="least_squares.ImplicitlyConstrainedLeastSquares",
        options=(("variant", "projected"),),
    ),
    Method(
        "self-learning-least-squares",
        "SLLS",
        "self-learning least squares",
        "It is self-learning with least squares in place of LDA.",
        line=("#009e73", 2, 1),
        path="least_squares.SelfLearningLeastSquares",
    ),
    Method(
        "soft-least-squares",
        "SLLS-soft",
        "self-learning least squares with soft labels",
        "It gives the unlabeled rows the soft labels that agree best with the fit.",
        line=("#009e73", 1, 2),
        path="least_squares.SelfLearningLeastSquares",
        options=(("labels", "soft"),),
    ),
    Method(
        "sda",
        "SDA",
        "discriminant analysis by a graph of neighbors",
        "Its directions separate the labeled classes and change little between neighboring rows.",
        line=("#7a8b00",),
        path="graph_regularized.SemiSupervisedDiscriminantAnalysis",
    ),
)
_OUTSIDE = "outside.OutsideClassifier"
# Methods of scikit-learn that comparisons include by default, and ``iclda fit`` fits if named.
BASELINES = (
    Method(
        "sklearn-self-training",
        "sklearn-SelfTraining",
        "scikit-learn's self-training around its LDA",
        "It adds unlabeled rows that it is sure of to the labeled ones.",
        line=("#56b4e9",),
        path=_OUTSIDE,
    ),
    Method(
        "sklearn-label-spreading",
        "sklearn-LabelSpreading",
        "scikit-learn's label spreading",
        "It spreads the labels along a graph that joins each row to its nearest ones.",
        line=("#0072b2", 4, 1.5),
        path=_OUTSIDE,
    ),
    Method(
        "sklearn-lda",
        "sklearn-LDA",
        "scikit-learn's LDA with shrinkage",
        "It learns from the labeled rows alone, with Ledoit and Wolf's shrinkage.",
        line=("#6e7781", 1, 1),
        path=_OUTSIDE,
        uses_unlabeled=False,
    ),
    Method(
        "sklearn-logistic",
        "sklearn-Logistic",
        "scikit-learn's logistic regression",
        "It learns from the labeled rows alone, without a model of the columns.",
        line=("#b3641f", 3, 1, 1, 1),
        path=_OUTSIDE,
        uses_unlabeled=False,
    ),
)
CHOSEN_BY_NAME = (*FITTED, *BASELINES)  # what ``iclda fit`` offers
COMPARED = (*FITTED, *FURTHER, *BASELINES)  # what a comparison offers
# Methods from the safest, by their errors on many tables; others come last.
FROM_THE_SAFEST = (
    *("average", "self-training", "pessimistic", "supervised", "sklearn-logistic"),
    *("em", "iclda", "self-learning", "moment"),
)
_SLOW_IF_WIDE = ("self-training", "pessimistic", "sklearn-self-training", "sklearn-lda")
_SEARCHES = ("iclda", "iclda-proportions", "pessimistic")
_MOST_UNKNOWNS = 5_000  # (classes - 1) x (features + 1), above which these take minutes
_WIDE = 400  # columns, above which these take minutes


# Names before version 0.2, when ``self-training`` was scikit-learn's.
_RENAMED = {"confident": "self-training", "logistic": "sklearn-logistic"}


def _plain(name: str) -> str:
    """Return a name in lower case without hyphens and spaces."""
    return "".join(filter(str.isalnum, name.casefold()))


def _names_of(method: Method) -> set[str]:
    """Return names here, in the paper and in Python, of a class that is this method alone."""
    is_shared = method.options or method.is_outside
    in_python = (
        () if is_shared else (method.class_name, method.class_name.removesuffix("LDA"))
    )
    return {
        _plain(name) for name in (method.name, method.paper_name, *in_python) if name
    }


# The first of several methods with a name has it.
_BY_NAME = {name: method for method in reversed(COMPARED) for name in _names_of(method)}


def known_method(name: str) -> Method | None:
    """Return a method by any of its names, old ones too; what stands in brackets is ignored."""
    plain = _plain(str(name).partition("(")[0])
    return _BY_NAME.get(_plain(_RENAMED.get(plain, plain)))


def find_method(
    name: str, among: Sequence[Method] = FITTED, others: Sequence[str] = ()
) -> Method:
    """Return a method by its name here, in the paper or in Python.

    A ValueError lists the methods to choose from, and ``others``, further names that the caller
    takes. A FutureWarning gives the new name of a method that was renamed.
    """
    method = known_method(name)
    if method is None or method not in among or "(" in name:
        names = [*others, *(each.name for each in among)]
        close = get_close_matches(str(name), names, n=1)
        what = (
            f"Unknown method {name!r}.{f' Did you mean {close[0]!r}?' if close else ''}"
        )
        if method is not None and "(" not in name:
            what = f"The method {method.name!r} can be compared, but not chosen here."
        known = [*others, *(f"{each.name} ({each.paper_name})" for each in among)]
        raise ValueError(f"{what} There are: {', '.join(known)}.")
    if _plain(name) in _RENAMED:
        warnings.warn(
            f"The method {name!r} is named {method.name!r} now; {name!r} will be an error in 0.3.",
            FutureWarning,
            stacklevel=2,
        )
    return method


def safety_rank(name: str) -> int:
    """Rank of a method from the safest, 0; those without a rank are last."""
    return (
        FROM_THE_SAFEST.index(name) if name in FROM_THE_SAFEST else len(FROM_THE_SAFEST)
    )


def affordable(
    methods: Sequence[Method], n_features: int, n_unknowns: int = 0
) -> tuple[Method, ...]:
    """Methods without those that take minutes, if others are left.

    These are slow with many columns, or with many unknowns of a search: classes x columns.
    """
    slow = {*(_SLOW_IF_WIDE if n_features > _WIDE else ())}
    slow |= {*(_SEARCHES if n_unknowns > _MOST_UNKNOWNS else ())}
    return tuple(each for each in methods if each.name not in slow) or tuple(methods)


def without_free_search(
    methods: Sequence[Method], n_labeled: int, n_features: int
) -> tuple[Method, ...]:
    """Methods without ICLDA of free class sizes, if labels are fewer than features.

    Its likelihood is then highest where a class has hardly more rows than its labeled ones.
    """
    if n_labeled >= n_features:
        return tuple(methods)
    return tuple(each for each in methods if each.name != "iclda") or tuple(methods)


def parse_shrinkage(text: str) -> Shrinkage:
    """Return a number from 0 to below 1, or "auto"; None for 0, no shrinkage."""
    if text == "auto":
        return text
    with suppress(ValueError):
        if 0 <= float(text) < 1:
            return float(text) or None
    rule = say(
        "{@shrinkage} must be a number from 0 to below 1, or auto, got {text!r}.",
        text=text,
    )
    raise ParameterError(rule, parameter="shrinkage", value=text)
