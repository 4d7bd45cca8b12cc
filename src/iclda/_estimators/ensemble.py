"""The default on tables: a mixture over views, and over classifiers of other kinds.

Where the boundary between the classes is linear, averages of linear fits do best; where
it is not, fits in a kernel view or trees do. Columns do not show which of these a table
is, but a few held-out labels are enough to weight the members. In the order of a fit:

1. Take the labeled rows, each once, and a sample of the unlabeled ones.
2. Fit the members, and predict the labeled rows by fits without their labels.
3. Find the weights with which the mixture of the members predicts these labels best.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._error_estimate import estimate_final_error, row_losses
from .._held_out import (
    NO_FOLD,
    draw_labeled,
    merge_copies,
    predict_held_out,
    ranked_folds,
    splits_of,
)
from .._messages import FitError, warn
from .._rows.views import KERNEL, STANDARDIZE, WHITENED_KERNEL, View, learn_view
from .._system import one_thread_if_small
from .average import AverageLDA
from .base import LinearClassifier
from .diagnosis import check_span, warn_of_no_unlabeled
from .export import mixture_to_sklearn
from .fit_inputs import MIN_WIDE_FEATURES, FitInputs, Needs, find_non_finite
from .labels import FREE
from .linear_model import moved_like
from .mixture_model import Member, MixtureModel
from .outside import ClassShares, OutsideClassifier
from .rows_reader import RowsReader
from .views import summary_of_rows

# Views in which an average is fitted, by the names of these members.
_VIEWS = {
    "linear": STANDARDIZE,
    "kernel": KERNEL,
    "whitened kernel": WHITENED_KERNEL,
}
# Classifiers of scikit-learn among the members.
_OUTSIDE = {"logistic": "sklearn-logistic", "forest": "sklearn-forest"}

# The member that looks at no column.
_SHARES = "shares"

# Members are fitted to at most this many labeled and unlabeled rows: of more unlabeled
# ones a fit to a table hardly gains.
_MAX_LABELED_ROWS = 5_000
_MAX_UNLABELED_ROWS = 2_000
# With more columns than this they are not whitened, which takes their cube.
_MAX_WHITENED_FEATURES = 1_000
# Folds of the labeled rows: for members that do not test themselves, and for the
# weights.
_N_FOLDS = 4

# Every member starts with the weight of this many rows that it alone explains, so that
# a few labels do not leave a single one.
_PSEUDO_ROWS = 0.3
# A row that a member thinks impossible counts as one with this probability.
_MIN_PROBABILITY = 1e-3
# Rounds in which the weights of the members are found ...
_MAX_WEIGHT_ROUNDS = 1_000
# ... until no weight moves by more than this.
_WEIGHT_TOLERANCE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class SemiSupervisedEnsemble(LinearClassifier):
    """A mixture of averages in several views, logistic regression and a forest.

    It is made for tables with few labels, whatever the boundary between the classes
    looks like. Its members are ``AverageLDA`` in the standardized columns, in a kernel
    of these and in a kernel of the whitened columns; two classifiers of scikit-learn
    that see the labeled rows alone, logistic regression and a random forest; and the
    shares of the classes, which decide where the columns say nothing. The probabilities
    of the members are averaged with the weights that make the held-out labels most
    likely. Units of columns, and the order of rows, play no part.

    Members are fitted to at most 5,000 labeled and 2,000 unlabeled rows, drawn at
    random: of more rows a fit to a table hardly gains.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or dict, default=None
        Class priors in the order of ``classes_``, or class -> prior. None estimates
        them.
    unlabeled : object, default=-1
        Marker of unlabeled rows in y. A missing y, None or NaN, is always unlabeled.
    proportions : array-like, dict, "labeled", "equal", "auto" or "free", default=None
        Shares of the classes among the unlabeled rows, if they are known; see
        ``AverageLDA``.
    outside : bool, default=True
        Whether logistic regression, the forest of scikit-learn and the shares of the
        classes are members. Without them every member has Gaussian classes in its view.
    random_state : int, RandomState instance or None, default=None
        Draws the trees of the forest. None is a fixed seed: the same data give the same
        fit.
    n_jobs : int, default=None
        Threads that read rows of files to predict. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    members_ : dict
        The fitted members by their names: "linear", "kernel", "whitened kernel",
        "logistic", "forest" and "shares". The last three take standardized rows.
    member_weights_ : dict
        Weight of every member in the mixture.
    held_out_probabilities_ : ndarray of shape (n_labeled, n_classes) or None
        Probabilities of the labeled rows, in their order in X, by members that were
        fitted without their labels; NaN for rows that could not be tested. Model files
        leave them out.
    error_ : float or None
        Share of new rows that get a wrong class, estimated from the held-out labels;
        None with fewer than 8 of them, or with fewer than 3 labels per class on
        average.
    error_interval_ : tuple of two floats or None
        Its 90 % interval.
    loss_ : float or None
        Mean Brier score of the held-out labels.
    n_tested_ : int
        Number of held-out labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has string column names.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from iclda import SemiSupervisedEnsemble
    >>> from iclda.model_selection import mask_labels
    >>> X, y_true = make_moons(500, noise=0.2, random_state=0)
    >>> y = mask_labels(y_true, 40, random_state=0)
    >>> clf = SemiSupervisedEnsemble().fit(X, y)
    >>> print(f"{1 - clf.score(X, y_true):.2f} wrong")
    0.12 wrong
    """

    _needs = Needs(
        raw_rows=True,
        all_features=True,
        positive_priors=True,
        supervised="an ensemble of supervised members",
    )
    _own_constraints: ClassVar[dict[str, Any]] = {"outside": ["boolean"]}

    shrinkage: None = field(init=False, default=None)
    view: None = field(init=False, default=None)
    proportions: Any = None
    outside: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    def _fit_inputs(self, inputs: FitInputs) -> None:
        self._check_rows(inputs)
        if inputs.unlabeled.n_rows == 0:
            name = type(self).__name__
            warn_of_no_unlabeled(name, self.unlabeled, self._needs.supervised)
        training = _draw_training_rows(inputs)
        with one_thread_if_small(inputs.sources[0].n_features):
            fitted = self._fit_members(inputs, training)
            tested = _TestedMembers.of(list(fitted.values()), training)
        weights = dict(zip(fitted, tested.member_weights().tolist(), strict=True))
        members = {
            name: replace(member, weight=weights[name])
            for name, member in fitted.items()
        }

        self.classes_ = inputs.labels.classes
        self.member_weights_ = weights
        self._model_ = MixtureModel(self.classes_, members)
        self._store_error(tested, training)
        self.__dict__.update(moved_like(inputs.arguments.X, vars(self)))

    @property
    def members_(self) -> dict[str, Any]:
        """The fitted members by their names."""
        members = self._model_.members
        return {name: member.classifier for name, member in members.items()}

    @property
    def _array_attribute(self) -> str:
        return "held_out_probabilities_"

    def _check_rows(self, inputs: FitInputs) -> None:
        """Look at all rows, also at those that no member is fitted to."""
        n_rows = inputs.n_labeled + inputs.unlabeled.n_rows
        if self.n_features_in_ >= MIN_WIDE_FEATURES and n_rows < self.n_features_in_:
            # The moments of so many columns would take longer than the fit.
            find_non_finite(inputs.sources)
            return
        problem = inputs.problem
        self._check_problem(problem, inputs)
        variances = inputs.space.variances(problem.moments.covariance)
        warn(*check_span(variances, problem.rank, inputs.feature_names))

    def _fit_members(
        self, inputs: FitInputs, training: _TrainingRows
    ) -> dict[str, Member]:
        """Return the members that can be fitted; FitError if none can."""
        members: dict[str, Member] = {}
        first_error: FitError | None = None
        for name, unfitted in self._unfitted_members(inputs, training).items():
            try:
                classifier = training.fit(unfitted)
            except FitError as error:
                first_error = first_error or error
            else:
                members[name] = replace(unfitted, classifier=classifier)
        if not members:
            assert first_error is not None
            raise first_error
        return members

    def _unfitted_members(
        self, inputs: FitInputs, training: _TrainingRows
    ) -> dict[str, Member]:
        """Return the members by name, of equal weights."""
        priors = None if inputs.log_priors is None else np.exp(inputs.log_priors)
        given = self.proportions
        proportions = given if isinstance(given, str) else inputs.proportions
        members = {
            name: Member(AverageLDA(view=view, priors=priors, proportions=proportions))
            for name, view in _VIEWS.items()
            if view != WHITENED_KERNEL or self.n_features_in_ <= _MAX_WHITENED_FEATURES
        }
        if not self.outside:
            return members

        # Other members learn the shares of the classes among the labels, and are
        # turned to those that are wanted.
        counts = np.bincount(training.labeled_codes, training.labeled_weights)
        wanted = priors
        if wanted is None and inputs.proportions is not None and given != FREE:
            wanted = np.clip(counts / counts.sum(), *inputs.proportions.T)
        factors = None if wanted is None else wanted / counts
        seed = int(check_random_state(self.random_state or 0).randint(2**31 - 1))
        others: dict[str, Any] = {
            name: OutsideClassifier(method, random_state=seed)
            for name, method in _OUTSIDE.items()
        }
        others[_SHARES] = ClassShares()
        for name, classifier in others.items():
            members[name] = Member(classifier, training.standardization, factors)
        return members

    def _store_error(self, tested: _TestedMembers, training: _TrainingRows) -> None:
        """Set what the held-out labels say about the mixture."""
        self.n_tested_ = len(tested.codes)
        self.loss_ = None
        self.error_ = None
        self.error_interval_ = None
        probabilities = np.full((training.n_labeled, len(self.classes_)), np.nan)
        if len(np.unique(tested.folds)) > 1:
            probabilities[tested.index] = tested.probabilities
            losses, is_wrong = row_losses(tested.probabilities, tested.codes)
            self.loss_ = float(losses.mean())
            estimate = estimate_final_error(
                losses[None],
                is_wrong[None],
                np.bincount(training.labeled_codes),
                _N_FOLDS,
                share_of_unlabeled=1.0,
                n_weights=len(tested.shares) - 1,
            )
            # Labels of rows that were chosen do not show the error on new rows.
            if estimate is not None and not self._has_free_proportions:
                self.error_ = estimate.error
                self.error_interval_ = (estimate.low, estimate.high)
        self.held_out_probabilities_ = training.of_all_labeled(probabilities)

    @property
    def _has_free_proportions(self) -> bool:
        return isinstance(self.proportions, str) and self.proportions == FREE

    def decision_function(self, X: Any) -> Array:
        """Log probabilities of the classes; for two classes, log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the order of ``classes_``.
        """
        self._check_ready(X, "decision_function")
        return RowsReader(self).apply(X, self._model_.decisions())

    def to_sklearn(self) -> Any:
        """The same classifier as one of scikit-learn, which predicts without iclda.

        Returns
        -------
        classifier : sklearn.ensemble.VotingClassifier
            A fitted classifier with the same classes and probabilities, which packages
            that know scikit-learn can convert further, for example to ONNX. It takes
            rows in which no number is larger than 3e38.
        """
        check_is_fitted(self)
        return mixture_to_sklearn(self.classes_, self._model_)


@dataclass(frozen=True)
class _TrainingRows:
    """Rows in memory, the labeled ones first, each of these once and sorted.

    Sorted rows are in the same order whatever their order in X and the units of the
    columns, and so is all that is drawn from them.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Those of the classes, and -1.
    weights : ndarray of shape (n_rows,)
    n_labeled : int
    positions : ndarray
        Position here of every labeled row of X, or -1 for one that was not drawn.
    """

    rows: Array
    codes: AnyArray
    weights: Array
    n_labeled: int
    positions: AnyArray

    @cached_property
    def standardization(self) -> View:
        """The view of standardized columns."""
        return learn_view(STANDARDIZE, summary_of_rows(self.rows, self.weights))

    @property
    def labeled_codes(self) -> AnyArray:
        return self.codes[: self.n_labeled]

    @property
    def labeled_weights(self) -> Array:
        return self.weights[: self.n_labeled]

    def fit(self, member: Member, hidden: AnyArray | None = None) -> Any:
        """Return the classifier of a member, fitted; some labels may be hidden."""
        codes = self.codes
        if hidden is not None:
            codes = codes.copy()
            codes[hidden] = -1
        # Weights of 1 would change nothing but rounding, and take time.
        weights = None if (self.weights == 1).all() else self.weights
        with warnings.catch_warnings():
            # They would name the member, which the user did not call.
            warnings.simplefilter("ignore")
            classifier = clone(member.classifier)
            return classifier.fit(member.seen(self.rows), codes, sample_weight=weights)

    def of_all_labeled(self, values: Array) -> Array:
        """Return values of the labeled rows here for all labeled rows of X."""
        of_all = values[self.positions]
        of_all[self.positions < 0] = np.nan
        return of_all


def _draw_training_rows(inputs: FitInputs) -> _TrainingRows:
    """Take the labeled rows, each once, and a sample of the others, sorted."""
    source = inputs.labeled_source
    is_labeled = inputs.codes >= 0
    codes = inputs.codes[is_labeled]
    weights = np.ones(len(codes))
    if source.weights is not None:
        weights = source.weights[is_labeled]
    kept = draw_labeled(codes, np.flatnonzero(weights > 0), _MAX_LABELED_ROWS, 0)
    # Only these are taken into memory, in the order of the source.
    kept = np.sort(kept)
    is_held = np.zeros(len(inputs.codes), dtype=bool)
    is_held[np.flatnonzero(is_labeled)[kept]] = True
    rows = np.asarray(source.held(is_held).X, dtype=np.float64)
    labeled = merge_copies(rows, codes[kept], weights[kept])
    order = _sorting_order(labeled.rows, labeled.codes)
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order))
    positions = np.full(len(codes), -1)
    positions[kept] = ranks[labeled.positions]

    others, other_weights = inputs.unlabeled.sample(_MAX_UNLABELED_ROWS, 0)
    other_order = _sorting_order(others, other_weights)
    return _TrainingRows(
        rows=np.concatenate([labeled.rows[order], others[other_order]]),
        codes=np.r_[labeled.codes[order], np.full(len(others), -1)],
        weights=np.r_[labeled.weights[order], other_weights[other_order]],
        n_labeled=len(order),
        positions=positions,
    )


def _sorting_order(rows: Array, ties: AnyArray) -> AnyArray:
    """Return the order of rows by their first column, then by the second, and so on."""
    return np.lexsort([ties, *rows.T[::-1]])


@dataclass(frozen=True)
class _TestedMembers:
    """Probabilities of labeled rows by members that do not know their labels.

    Attributes
    ----------
    shares : ndarray of shape (n_members, n_rows, n_classes)
    codes, weights, folds : ndarray of shape (n_rows,)
    index : ndarray of shape (n_rows,)
        Which of the labeled rows they are.
    """

    shares: Array
    codes: AnyArray
    weights: Array
    folds: AnyArray
    index: AnyArray

    @classmethod
    def of(cls, members: list[Member], training: _TrainingRows) -> _TestedMembers:
        """Predict the labeled rows by fits of all members without their labels."""
        labeled = training.standardization(training.rows[: training.n_labeled])
        lengths = (labeled**2).sum(axis=1)
        folds = ranked_folds(training.labeled_codes, lengths, _N_FOLDS)
        shares = np.stack([_held_out_shares(each, training, folds) for each in members])
        is_tested = (folds != NO_FOLD) & np.isfinite(shares).all(axis=(0, 2))
        return cls(
            shares=shares[:, is_tested],
            codes=training.labeled_codes[is_tested],
            weights=training.labeled_weights[is_tested],
            folds=folds[is_tested],
            index=np.flatnonzero(is_tested),
        )

    def member_weights(self, used: AnyArray | slice = slice(None)) -> Array:
        """Return the weights of the mixture under which the labels are most likely.

        They are found by EM: a row counts for the members in proportion to what they
        contribute to its probability. ``used`` are the rows that count.
        """
        n_members = len(self.shares)
        own_shares = self.shares[:, np.arange(len(self.codes)), self.codes][:, used]
        likelihoods = np.maximum(own_shares, _MIN_PROBABILITY)
        row_weights = self.weights[used]
        weights = np.full(n_members, 1 / n_members)
        for _ in range(_MAX_WEIGHT_ROUNDS):
            contributions = weights[:, None] * likelihoods
            contributions /= contributions.sum(axis=0)
            counts = contributions @ row_weights + _PSEUDO_ROWS
            moved = counts / counts.sum()
            change = np.abs(moved - weights).max()
            weights = moved
            if change < _WEIGHT_TOLERANCE:
                break
        return weights

    @cached_property
    def probabilities(self) -> Array:
        """Probabilities by mixtures whose weights do not know the labels, either."""
        mixed = np.empty(self.shares.shape[1:])
        for train, test in splits_of(self.folds):
            weights = self.member_weights(train)
            mixed[test] = np.tensordot(weights, self.shares[:, test], 1)
        return mixed


def _held_out_shares(member: Member, training: _TrainingRows, folds: AnyArray) -> Array:
    """Return the probabilities (n_labeled, K) of labeled rows; NaN if not tested."""
    n_classes = int(training.labeled_codes.max()) + 1
    own: Array | None = member.classifier.held_out_probabilities_
    if own is not None:
        return member.turned(own)
    shares = np.full((training.n_labeled, n_classes), np.nan)

    def predict(train: AnyArray, test: AnyArray) -> Array:
        # Rows that are alone in their class always train.
        fitted = replace(member, classifier=training.fit(member, hidden=test))
        return fitted.probabilities(training.rows[test])

    if (folds != NO_FOLD).any():
        predicted = predict_held_out(predict, folds)
        if not isinstance(predicted, FitError):
            shares[folds != NO_FOLD] = predicted
    return shares
