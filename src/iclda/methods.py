"""The table of methods. Everything that lists methods reads it.

A new classifier is a module in ``_estimators`` and an entry here: the command line,
comparisons, tables, curves, colors and reports follow. CONTRIBUTING.md lists what else
names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any

from ._messages import ParameterError, say

Shrinkage = float | str | None

# Colors of text and of less important lines.
INK = "#1f2328"
FAINT = "#8b949e"


@dataclass(frozen=True, kw_only=True)
class Method:
    """A classifier, its names, what it does in one sentence, and how it is drawn.

    Attributes
    ----------
    name : str
        Name on the command line; methods of other packages begin with the package.
    paper_name : str
        Name in tables and figures of the paper.
    title : str
        What it is called in a text.
    sentence : str
        What it does.
    color : str
        Color of its lines. All are distinct to color-blind readers (after Okabe and
        Ito), on white and on near-black.
    dash_lengths : tuple of float
        Lengths of the dashes and gaps of its lines; empty for solid lines.
    module : str
        Module of its class in ``iclda._estimators``.
    class_name : str
        Name of its class.
    uses_unlabeled : bool
        Whether it learns from unlabeled rows.
    options : tuple of (str, value)
        Parameters that make the class this method.
    """

    name: str
    paper_name: str
    title: str
    sentence: str
    color: str
    dash_lengths: tuple[float, ...] = ()
    module: str
    class_name: str
    uses_unlabeled: bool = True
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def dashes(self) -> Any:
        """Style of its lines for matplotlib."""
        return (0, self.dash_lengths) if self.dash_lengths else "solid"

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
        """Return an unfitted classifier, with the values that its class takes."""
        values = {
            "shrinkage": shrinkage,
            "priors": priors,
            "proportions": proportions,
            "random_state": seed,
            "method": self.name,
        }
        arguments = dict(self.options)
        for name in self.parameters:
            if values.get(name) is not None:
                arguments[name] = values[name]
        return self.load_class()(**arguments)


# Methods of the paper's tables and of the playground.
METHODS = (
    Method(
        name="iclda",
        paper_name="ICLDA",
        title="implicitly constrained LDA",
        sentence=(
            "It labels the unlabeled rows such that the labeled rows are "
            "likeliest under the fit."
        ),
        color="#c0509f",
        module="implicitly_constrained",
        class_name="ImplicitlyConstrainedLDA",
    ),
    Method(
        name="em",
        paper_name="EMLDA",
        title="LDA by expectation maximization",
        sentence=(
            "It maximizes the likelihood of all rows, the unlabeled ones without "
            "a class."
        ),
        color="#d55e00",
        module="expectation_maximization",
        class_name="ExpectationMaximizationLDA",
    ),
    Method(
        name="self-training",
        paper_name="STLDA",
        title="self-training LDA",
        sentence=(
            "It adds the unlabeled rows that it is sure of to the labeled ones, "
            "and repeats that."
        ),
        color="#7f6bd1",
        dash_lengths=(5, 1.5),
        module="self_training",
        class_name="SelfTrainingLDA",
    ),
    Method(
        name="self-learning",
        paper_name="SLLDA",
        title="self-learning LDA",
        sentence=(
            "It labels the unlabeled rows, learns from them, and repeats that "
            "until nothing changes."
        ),
        color="#009e73",
        module="self_learning",
        class_name="SelfLearningLDA",
    ),
    Method(
        name="moment",
        paper_name="MCLDA",
        title="moment constrained LDA",
        sentence=(
            "Its fit to the labeled rows is moved to the mean and the covariance "
            "of all rows."
        ),
        color="#1f82c9",
        module="moment_constrained",
        class_name="MomentConstrainedLDA",
    ),
    Method(
        name="pessimistic",
        paper_name="MCPLDA",
        title="pessimistic LDA",
        sentence=(
            "It improves most on supervised LDA if the unlabeled rows have the "
            "least favorable classes."
        ),
        color="#a05a2c",
        module="pessimistic",
        class_name="PessimisticLDA",
    ),
    Method(
        name="supervised",
        paper_name="LDA",
        title="supervised LDA",
        sentence="It learns from the labeled rows alone.",
        color=INK,
        dash_lengths=(6, 1.5),
        module="supervised",
        class_name="SupervisedLDA",
        uses_unlabeled=False,
    ),
)

# Methods that ``iclda fit`` offers and comparisons include by default.
FITTED = (
    *METHODS,
    Method(
        name="average",
        paper_name="AVLDA",
        title="the average of four fits",
        sentence=(
            "It averages the scores of three kinds of EM and of logistic regression."
        ),
        color="#3f8f8a",
        dash_lengths=(8, 1.5),
        module="average",
        class_name="AverageLDA",
    ),
    Method(
        name="ensemble",
        paper_name="Ensemble",
        title="the ensemble of averages in three views, logistic regression and trees",
        sentence=(
            "It weights averages in three views, logistic regression and a forest by "
            "held-out labels."
        ),
        color="#b0004e",
        module="ensemble",
        class_name="SemiSupervisedEnsemble",
    ),
    Method(
        name="iclda-proportions",
        paper_name="ICLDA-proportions",
        title="implicitly constrained LDA with the class proportions of the labels",
        sentence=(
            "It labels as iclda does, with classes in the proportions of the "
            "labeled rows."
        ),
        color="#7b4fb5",
        dash_lengths=(4, 1),
        module="implicitly_constrained",
        class_name="ImplicitlyConstrainedLDA",
        # With proportions most starts end at the same labels: eight are enough.
        options=(("proportions", "labeled"), ("n_starts", 8)),
    ),
)

# The rest of the family, in comparisons and tables if they are named.
FURTHER = (
    Method(
        name="moment-likelihood",
        paper_name="MCLDA-likelihood",
        title="moment constrained LDA of highest likelihood",
        sentence=(
            "It maximizes the likelihood of labeled rows, given the mean and "
            "covariance of all rows."
        ),
        color="#1f82c9",
        dash_lengths=(2, 1),
        module="moment_constrained",
        class_name="MomentConstrainedLDA",
        options=(("variant", "likelihood"),),
    ),
    Method(
        name="normalized",
        paper_name="NLDA",
        title="normalized LDA",
        sentence=(
            "Its class means are those of the labeled rows, its covariance is "
            "that of all rows."
        ),
        color="#4b3f9e",
        module="normalized",
        class_name="NormalizedLDA",
    ),
    Method(
        name="nearest-mean",
        paper_name="NM",
        title="nearest mean",
        sentence=(
            "It learns means from the labeled rows alone; classes vary equally "
            "in all directions."
        ),
        color="#57606a",
        dash_lengths=(2, 2),
        module="nearest_mean",
        class_name="NearestMean",
        uses_unlabeled=False,
    ),
    Method(
        name="em-nearest-mean",
        paper_name="EMNM",
        title="nearest mean by expectation maximization",
        sentence=(
            "It maximizes the likelihood of all rows; classes vary equally in "
            "all directions."
        ),
        color="#d55e00",
        dash_lengths=(2, 2),
        module="nearest_mean",
        class_name="ExpectationMaximizationNearestMean",
    ),
    Method(
        name="moment-nearest-mean",
        paper_name="MCNM",
        title="moment constrained nearest mean",
        sentence=(
            "The means of the labeled rows are shifted so that their mean is "
            "that of all rows."
        ),
        color="#1f82c9",
        dash_lengths=(1, 2),
        module="nearest_mean",
        class_name="MomentConstrainedNearestMean",
        options=(("variant", "variance-kept"),),
    ),
    Method(
        name="moment-nearest-mean-anew",
        paper_name="MCNM-anew",
        title="moment constrained nearest mean, variance re-estimated",
        sentence=(
            "As moment-nearest-mean, but the variance is estimated about the "
            "shifted means."
        ),
        color="#1f82c9",
        dash_lengths=(3, 2, 1, 2),
        module="nearest_mean",
        class_name="MomentConstrainedNearestMean",
    ),
    Method(
        name="least-squares",
        paper_name="LS",
        title="least squares",
        sentence=(
            "It learns from the labeled rows alone, by linear predictions of 0 and 1."
        ),
        color="#57606a",
        dash_lengths=(5, 2, 1, 2),
        module="least_squares",
        class_name="LeastSquaresClassifier",
        uses_unlabeled=False,
    ),
    Method(
        name="implicit-least-squares",
        paper_name="ICLS",
        title="implicitly constrained least squares",
        sentence=(
            "It labels the unlabeled rows such that the loss on the labeled rows "
            "is smallest."
        ),
        color="#c0509f",
        dash_lengths=(2, 1),
        module="least_squares",
        class_name="ImplicitlyConstrainedLeastSquares",
    ),
    Method(
        name="projected-least-squares",
        paper_name="ICLS-projected",
        title="projected least squares",
        sentence=(
            "It labels the unlabeled rows such that the fit is nearest to the "
            "supervised one."
        ),
        color="#c0509f",
        dash_lengths=(1, 2),
        module="least_squares",
        class_name="ImplicitlyConstrainedLeastSquares",
        options=(("variant", "projected"),),
    ),
    Method(
        name="self-learning-least-squares",
        paper_name="SLLS",
        title="self-learning least squares",
        sentence="It is self-learning with least squares in place of LDA.",
        color="#009e73",
        dash_lengths=(2, 1),
        module="least_squares",
        class_name="SelfLearningLeastSquares",
    ),
    Method(
        name="soft-least-squares",
        paper_name="SLLS-soft",
        title="self-learning least squares with soft labels",
        sentence=(
            "It gives the unlabeled rows the soft labels that agree best with the fit."
        ),
        color="#009e73",
        dash_lengths=(1, 2),
        module="least_squares",
        class_name="SelfLearningLeastSquares",
        options=(("labels", "soft"),),
    ),
    Method(
        name="sda",
        paper_name="SDA",
        title="discriminant analysis by a graph of neighbors",
        sentence=(
            "Its directions separate the labeled classes and change little "
            "between neighboring rows."
        ),
        color="#7a8b00",
        module="graph_regularized",
        class_name="SemiSupervisedDiscriminantAnalysis",
    ),
)

# Methods of scikit-learn that comparisons include by default, and that ``iclda fit``
# fits if they are named.
BASELINES = (
    Method(
        name="sklearn-self-training",
        paper_name="sklearn-SelfTraining",
        title="scikit-learn's self-training around its LDA",
        sentence="It adds unlabeled rows that it is sure of to the labeled ones.",
        color="#56b4e9",
        module="outside",
        class_name="OutsideClassifier",
    ),
    Method(
        name="sklearn-label-spreading",
        paper_name="sklearn-LabelSpreading",
        title="scikit-learn's label spreading",
        sentence=(
            "It spreads the labels along a graph that joins each row to its "
            "nearest ones."
        ),
        color="#0072b2",
        dash_lengths=(4, 1.5),
        module="outside",
        class_name="OutsideClassifier",
    ),
    Method(
        name="sklearn-lda",
        paper_name="sklearn-LDA",
        title="scikit-learn's LDA with shrinkage",
        sentence=(
            "It learns from the labeled rows alone, with Ledoit and Wolf's shrinkage."
        ),
        color="#6e7781",
        dash_lengths=(1, 1),
        module="outside",
        class_name="OutsideClassifier",
        uses_unlabeled=False,
    ),
    Method(
        name="sklearn-logistic",
        paper_name="sklearn-Logistic",
        title="scikit-learn's logistic regression",
        sentence=(
            "It learns from the labeled rows alone, without a model of the columns."
        ),
        color="#b3641f",
        dash_lengths=(3, 1, 1, 1),
        module="outside",
        class_name="OutsideClassifier",
        uses_unlabeled=False,
    ),
    Method(
        name="sklearn-forest",
        paper_name="sklearn-Forest",
        title="scikit-learn's random forest",
        sentence="It learns trees from the labeled rows alone; no boundary is linear.",
        color="#2f7d32",
        dash_lengths=(6, 1, 1, 1),
        module="outside",
        class_name="OutsideClassifier",
        uses_unlabeled=False,
    ),
)

# What ``iclda fit`` offers.
CHOSEN_BY_NAME = (*FITTED, *BASELINES)

# What a comparison offers.
COMPARED = (*FITTED, *FURTHER, *BASELINES)

# Methods from the default on, by their errors on many tables: of those that do about
# equally well, the first is taken. Methods that are not listed come last.
FROM_THE_DEFAULT = (
    "ensemble",
    "average",
    "self-training",
    "pessimistic",
    "supervised",
    "sklearn-logistic",
    "sklearn-forest",
    "em",
    "iclda",
    "self-learning",
    "moment",
)
# What ``AutoLDA`` and ``iclda fit`` fit without a comparison. On features of a network
# the views of the ensemble do not help.
DEFAULT_ON_TABLES = "ensemble"
DEFAULT_ON_NETWORKS = "average"


def _normalized(name: str) -> str:
    """Return a name in lower case without hyphens and spaces."""
    return "".join(filter(str.isalnum, name.casefold()))


def _methods_by_name() -> dict[str, Method]:
    """Return all methods by their normalized names here, in the paper and in Python.

    A class names a method only if no options are needed to make it that method. The
    first of several methods with one name has it.
    """
    methods: dict[str, Method] = {}
    for method in COMPARED:
        names = [method.name, method.paper_name]
        if not method.options and not method.is_outside:
            names += [method.class_name, method.class_name.removesuffix("LDA")]
        for name in names:
            methods.setdefault(_normalized(name), method)
    return methods


_METHODS_BY_NAME = _methods_by_name()


def known_method(name: str) -> Method | None:
    """Return a method by any of its names; what stands in brackets is ignored."""
    return _METHODS_BY_NAME.get(_normalized(str(name).partition("(")[0]))


def find_method(
    name: str, among: Sequence[Method] = FITTED, others: Sequence[str] = ()
) -> Method:
    """Return a method by its name here, in the paper or in Python.

    A ValueError lists the methods to choose from, and ``others``, further names that
    the caller takes.
    """
    # What stands in brackets would be ignored, and nobody told.
    method = None if "(" in str(name) else known_method(name)
    if method is not None and method in among:
        return method
    if method is None:
        problem = _unknown_method(name, [*others, *(each.name for each in among)])
    else:
        problem = f"The method {method.name!r} can be compared, but not chosen here."
    known = [*others, *(f"{each.name} ({each.paper_name})" for each in among)]
    raise ValueError(f"{problem} There are: {', '.join(known)}.")


def _unknown_method(name: str, known_names: Sequence[str]) -> str:
    """Return the sentence for a name that no method has, with the most similar one."""
    problem = f"Unknown method {name!r}."
    close = get_close_matches(str(name), known_names, n=1)
    if close:
        problem += f" Did you mean {close[0]!r}?"
    return problem


def default_method(*, is_network: bool) -> Method:
    """Return the default on tables, or on features of a network."""
    return find_method(DEFAULT_ON_NETWORKS if is_network else DEFAULT_ON_TABLES)


def default_rank(name: str, *, is_network: bool = False) -> int:
    """Return the rank of a method from the default, 0; unlisted methods are last."""
    if is_network and name == DEFAULT_ON_NETWORKS:
        return -1
    if name not in FROM_THE_DEFAULT:
        return len(FROM_THE_DEFAULT)
    return FROM_THE_DEFAULT.index(name)


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
