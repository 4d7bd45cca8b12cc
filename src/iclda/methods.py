"""The methods: one table, a row a method. Everything that lists methods reads it.

A new classifier is a module in ``_estimators`` and a row here: the command line, the comparison,
tables, curves, colors and reports follow. Those of ``METHODS`` and ``AVERAGE`` are compared and
shown unless other methods are named, those of ``FURTHER`` if they are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

from ._messages import Hint, ParameterError, Text

Shrinkage = float | str | None

_PROPORTIONS = ("shrinkage", "priors", "proportions")  # what some methods take

INK, FAINT = "#1f2328", "#8b949e"


@dataclass(frozen=True)
class Method:
    """A classifier, its names, what it does in one sentence, and how it is drawn."""

    name: str  # on the command line
    paper_name: str  # in tables and figures of the paper
    class_name: str  # in iclda; empty for those that only the experiments fit
    module: str  # in iclda._estimators
    title: str
    sentence: str
    color: str  # distinct to color-blind readers (after Okabe and Ito), on white and near-black
    dashes: Any = "solid"  # a line style of matplotlib
    uses_unlabeled: bool = True
    is_searched: bool = False  # from many random starts: slow with many unknowns
    is_slow_if_wide: bool = False  # minutes with many columns: then fitted only if asked for
    rests_on_labels: bool = False  # fails if labeled rows do not vary within classes
    has_density: bool = True  # and so a likelihood, of which changes can be bounded
    risk: int = 9  # rank from the safest; 9: not among those that AutoLDA chooses from by itself
    is_outside: bool = False  # of scikit-learn, to compare with
    options: tuple[tuple[str, Any], ...] = ()  # parameters that make it this method
    takes: tuple[str, ...] = ("shrinkage", "priors")  # parameters that it has of what is given

    def classifier(
        self, *, shrinkage: Any = None, priors: Any = None, proportions: Any = None, seed: int = 0
    ) -> Any:
        """An unfitted classifier, with what is given of the parameters that it takes."""
        given = {"shrinkage": shrinkage, "priors": priors, "proportions": proportions}
        chosen = dict(self.options)
        chosen |= {name: given[name] for name in self.takes if given[name] is not None}
        if self.is_searched:
            chosen["random_state"] = seed  # no other method draws random numbers
        home = import_module(f"._estimators.{self.module}", __package__)
        return getattr(home, self.class_name)(**chosen)


def _names_of(method: Method) -> list[str]:
    """Here, in the paper and in Python; of a class with options only the first two."""
    in_python = () if method.options else (method.class_name, method.class_name.removesuffix("LDA"))
    return [name for name in (method.name, method.paper_name, *in_python) if name]


METHODS = (
    Method(
        "iclda",
        "ICLDA",
        "ImplicitlyConstrainedLDA",
        "implicitly_constrained",
        "implicitly constrained LDA",
        "Of all models that some labeling of the unlabeled rows would give, it is the one under "
        "which the labeled rows are likeliest.",
        color="#c0509f",
        is_searched=True,
        risk=6,
        takes=_PROPORTIONS,
    ),
    Method(
        "em",
        "EMLDA",
        "ExpectationMaximizationLDA",
        "expectation_maximization",
        "LDA by expectation maximization",
        "It maximizes the likelihood of all rows, the labeled ones with their class and the "
        "unlabeled ones without.",
        color="#d55e00",
        risk=5,
        takes=_PROPORTIONS,
    ),
    Method(
        "confident",
        "STLDA",
        "SelfTrainingLDA",
        "self_training",
        "self-training LDA",
        "It adds the unlabeled rows that it is sure of to the labeled ones, and repeats that.",
        color="#7f6bd1",
        dashes=(0, (5, 1.5)),
        is_slow_if_wide=True,
        risk=1,
    ),
    Method(
        "self-learning",
        "SLLDA",
        "SelfLearningLDA",
        "self_learning",
        "self-learning LDA",
        "It labels the unlabeled rows itself, learns from them, and repeats that until the labels "
        "no longer change.",
        color="#009e73",
        risk=7,
    ),
    Method(
        "moment",
        "MCLDA",
        "MomentConstrainedLDA",
        "moment_constrained",
        "moment constrained LDA",
        "It is fitted to the labeled rows, then moved so that its mean and covariance are those "
        "of all rows.",
        color="#1f82c9",
        rests_on_labels=True,
        risk=8,
    ),
    Method(
        "pessimistic",
        "MCPLDA",
        "PessimisticLDA",
        "pessimistic",
        "pessimistic LDA",
        "Of all models it gains most on supervised LDA under those classes of the unlabeled rows "
        "that are least favorable to it.",
        color="#a05a2c",
        rests_on_labels=True,
        takes=_PROPORTIONS,
        is_slow_if_wide=True,
        risk=2,
    ),
    Method(
        "supervised",
        "LDA",
        "SupervisedLDA",
        "supervised",
        "supervised LDA",
        "It learns from the labeled rows alone.",
        color=INK,
        dashes=(0, (6, 1.5)),
        uses_unlabeled=False,
        rests_on_labels=True,
        risk=3,
    ),
)
# Not told apart by few labels: what is fitted then is their average.
AVERAGED = ("em", "confident", "pessimistic", "supervised")
AVERAGE = Method(
    "average",
    "AVLDA",
    "AverageLDA",
    "average",
    "the average of four methods",
    "It is the average of EM, self-training, pessimistic and supervised LDA.",
    color="#3f8f8a",
    dashes=(0, (8, 1.5)),
    rests_on_labels=True,
    is_slow_if_wide=True,
    risk=0,
)
# Methods with a setting that is worth a name. They can be fitted, and take part in comparisons.
VARIANTS = (
    Method(
        "iclda-proportions",
        "ICLDA-proportions",
        "ImplicitlyConstrainedLDA",
        "implicitly_constrained",
        "implicitly constrained LDA with the class proportions of the labels",
        "Of all models that some labeling of the unlabeled rows with the class proportions of the "
        "labeled rows would give, it is the one under which the labeled rows are likeliest.",
        color="#7b4fb5",
        dashes=(0, (4, 1)),
        is_searched=True,
        takes=_PROPORTIONS,
        options=(("proportions", "labeled"),),
    ),
)
# The rest of the family: compared, and in tables, if they are named.
FURTHER = (
    Method(
        "moment-likelihood",
        "MCLDA-likelihood",
        "MomentConstrainedLDA",
        "moment_constrained",
        "moment constrained LDA of highest likelihood",
        "Of all models whose mean and covariance are those of all rows, it is the one under which "
        "the labeled rows are likeliest.",
        color="#1f82c9",
        dashes=(0, (2, 1)),
        rests_on_labels=True,
        options=(("variant", "likelihood"),),
    ),
    Method(
        "normalized",
        "NLDA",
        "NormalizedLDA",
        "normalized",
        "normalized LDA",
        "Its class means are those of the labeled rows, its covariance is that of all rows.",
        color="#4b3f9e",
    ),
    Method(
        "nearest-mean",
        "NM",
        "NearestMean",
        "nearest_mean",
        "nearest mean",
        "It learns from the labeled rows alone; classes differ by their means, and vary equally in "
        "all directions.",
        color="#57606a",
        dashes=(0, (2, 2)),
        uses_unlabeled=False,
        takes=("priors",),
    ),
    Method(
        "em-nearest-mean",
        "EMNM",
        "ExpectationMaximizationNearestMean",
        "nearest_mean",
        "nearest mean by expectation maximization",
        "It maximizes the likelihood of all rows; classes vary equally in all directions.",
        color="#d55e00",
        dashes=(0, (2, 2)),
        takes=("priors",),
    ),
    Method(
        "moment-nearest-mean",
        "MCNM",
        "MomentConstrainedNearestMean",
        "nearest_mean",
        "moment constrained nearest mean",
        "The means of the labeled rows are shifted so that their mean is that of all rows.",
        color="#1f82c9",
        dashes=(0, (1, 2)),
        takes=("priors",),
        options=(("variant", "variance-kept"),),
    ),
    Method(
        "moment-nearest-mean-anew",
        "MCNM-anew",
        "MomentConstrainedNearestMean",
        "nearest_mean",
        "moment constrained nearest mean, variance anew",
        "The means of the labeled rows are shifted so that their mean is that of all rows, and the "
        "variance is estimated about the shifted means.",
        color="#1f82c9",
        dashes=(0, (3, 2, 1, 2)),
        takes=("priors",),
    ),
    Method(
        "least-squares",
        "LS",
        "LeastSquaresClassifier",
        "least_squares",
        "least squares",
        "It learns from the labeled rows alone, by linear predictions of 0 and 1.",
        color="#57606a",
        dashes=(0, (5, 2, 1, 2)),
        uses_unlabeled=False,
        has_density=False,
        takes=(),
    ),
    Method(
        "implicit-least-squares",
        "ICLS",
        "ImplicitlyConstrainedLeastSquares",
        "least_squares",
        "implicitly constrained least squares",
        "Of all least squares fits that some labeling of the unlabeled rows would give, it is the "
        "one of smallest squared loss on the labeled rows.",
        color="#c0509f",
        dashes=(0, (2, 1)),
        has_density=False,
        takes=(),
    ),
    Method(
        "projected-least-squares",
        "ICLS-projected",
        "ImplicitlyConstrainedLeastSquares",
        "least_squares",
        "projected least squares",
        "Of all least squares fits that some labeling of the unlabeled rows would give, it is the "
        "one nearest to the supervised fit.",
        color="#c0509f",
        dashes=(0, (1, 2)),
        has_density=False,
        takes=(),
        options=(("variant", "projected"),),
    ),
    Method(
        "self-learning-least-squares",
        "SLLS",
        "SelfLearningLeastSquares",
        "least_squares",
        "self-learning least squares",
        "It labels the unlabeled rows by least squares, learns from them, and repeats that until "
        "the labels no longer change.",
        color="#009e73",
        dashes=(0, (2, 1)),
        has_density=False,
        takes=(),
    ),
    Method(
        "soft-least-squares",
        "SLLS-soft",
        "SelfLearningLeastSquares",
        "least_squares",
        "self-learning least squares with soft labels",
        "It is the least squares fit that agrees best with the labels, and with soft labels of the "
        "unlabeled rows that it chooses itself.",
        color="#009e73",
        dashes=(0, (1, 2)),
        has_density=False,
        takes=(),
        options=(("labels", "soft"),),
    ),
    Method(
        "sda",
        "SDA",
        "SemiSupervisedDiscriminantAnalysis",
        "graph_regularized",
        "discriminant analysis by a graph of neighbors",
        "It learns from the labeled rows directions that change little between neighboring rows, "
        "labeled or not.",
        color="#7a8b00",
        takes=("priors",),
    ),
)
CLASSIFIERS = (*METHODS, AVERAGE, *FURTHER)
BY_CLASS = {method.class_name: method for method in (AVERAGE, *METHODS)}  # of models in files
CLASS_NAMES = tuple(dict.fromkeys(method.class_name for method in CLASSIFIERS))
# Fitted in the experiments of the paper only, to compare with.
_reference = partial(Method, class_name="", module="")
_SELF_TRAINING = _reference(
    "self-training",
    "SelfTraining",
    title="scikit-learn's self-training around its LDA",
    sentence="It adds unlabeled rows that it is sure of to the labeled ones.",
    color="#56b4e9",
    is_slow_if_wide=True,
    is_outside=True,
)
REFERENCES = (
    _reference(
        "oracle",
        "LDAoracle",
        title="LDA given every label",
        sentence="It is supervised LDA on all training rows with their true labels.",
        color=FAINT,
        dashes=(0, (4, 2)),
        uses_unlabeled=False,
    ),
    _reference(
        "em-as-published",
        "EMLDA-as-published",
        title="EM with the two faults behind the published numbers",
        sentence="It repeats the faults of the code that made the published tables.",
        color="#e0a100",
        dashes=(0, (1, 1.2)),
    ),
    _SELF_TRAINING,
    _reference(
        "label-spreading",
        "LabelSpreading",
        title="scikit-learn's label spreading",
        sentence="It spreads labels along a graph of the 7 nearest neighbors.",
        color="#8c6d31",
    ),
)
# Of scikit-learn, in comparisons on people's tables.
BASELINES = (
    _SELF_TRAINING,
    _reference(
        "sklearn-lda",
        "sklearn-LDA",
        title="scikit-learn's LDA with shrinkage",
        sentence="It learns from the labeled rows alone, with Ledoit and Wolf's shrinkage.",
        color="#6e7781",
        dashes=(0, (1, 1)),
        uses_unlabeled=False,
        is_slow_if_wide=True,
        is_outside=True,
    ),
    _reference(
        "logistic",
        "Logistic",
        title="scikit-learn's logistic regression",
        sentence="It learns from the labeled rows alone, without a model of the columns.",
        color="#b3641f",
        dashes=(0, (3, 1, 1, 1)),
        uses_unlabeled=False,
        risk=4,
        is_outside=True,
    ),
)
FITTED = (*METHODS, AVERAGE, *VARIANTS)  # what ``iclda fit`` offers
CANDIDATES = (*FITTED, *BASELINES)  # of a comparison on people's tables, unless others are named
COMPARED = (*FITTED, *FURTHER, *BASELINES)  # what it offers
_WIDE = 400  # columns, from which some methods take minutes


def affordable(methods: Sequence[Method], n_features: int) -> tuple[Method, ...]:
    """Methods without those that take minutes with so many columns, if others are left."""
    quick = tuple(m for m in methods if n_features <= _WIDE or not m.is_slow_if_wide)
    return quick or tuple(methods)


_BY_NAME = {
    "".join(filter(str.isalnum, name.casefold())): method
    for method in (*VARIANTS, *FURTHER, AVERAGE, *METHODS, *REFERENCES, *BASELINES)
    for name in _names_of(method)
}


def find_method(name: str, among: Sequence[Method] = FITTED, others: Sequence[str] = ()) -> Method:
    """A method by its name here, in the paper or in Python; ValueError lists what there is.

    ``others`` are further names that the caller takes.
    """
    method = known_method(name)
    if method is None or method not in among or "(" in name:
        known = ", ".join([*others, *(f"{each.name} ({each.paper_name})" for each in among)])
        close = get_close_matches(str(name), [*others, *(each.name for each in among)], n=1)
        what = f"Unknown method {name!r}.{f' Did you mean {close[0]!r}?' if close else ''}"
        if method is not None and method in FURTHER:
            what = (
                f"Method {name!r} can be named in a comparison ({method.name}) and used in Python "
                f"(iclda.{method.class_name}), but not chosen here."
            )
        raise ValueError(f"{what} There are: {known}.")
    return method


def find_compared(names: Sequence[str]) -> tuple[Method, ...]:
    """Methods of a comparison; supervised, which the others are measured by, always takes part."""
    return tuple(dict.fromkeys(find_method(name, COMPARED) for name in [*names, "supervised"]))


def known_method(name: str) -> Method | None:
    """A method or reference by any of its names; what stands in brackets is ignored."""
    bare = str(name).partition("(")[0].casefold()
    return _BY_NAME.get("".join(filter(str.isalnum, bare)))


def parse_shrinkage(text: str) -> Shrinkage:
    """A number from 0 to below 1, or auto; 0 is no shrinkage."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value < 1:
        return value or None
    message = f" must be a number from 0 to below 1, or auto, got {text!r}."
    raise ParameterError(Text(Hint("shrinkage"), message), parameter="shrinkage", value=text)
