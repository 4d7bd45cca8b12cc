"""The default on tables: a mixture over views, and over classifiers of other kinds.

Where the boundary between the classes is linear, averages of linear fits do best; where
it is not, fits in a kernel view or trees do. The columns of a table do not show which
is the case, but a few held-out labels are enough to weight the members. A fit has three
steps:

1. Take the labeled rows, copies of a row as one, and a sample of the unlabeled rows.
2. Fit the members, and predict the labeled rows by fits without their labels.
3. Find the weights with which the mixture of the members predicts these labels best.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import AnyArray, Array
from .._cost import MAX_CLASSES_OF_ENSEMBLE
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
from .._rows.views import (
    KERNEL,
    STANDARDIZE,
    WHITENED_KERNEL,
    Chain,
    Standardization,
    View,
    learn_view,
    without_bounds,
)
from .._system import one_thread_if_small
from .average import AverageLDA
from .base import BaseClassifier
from .diagnosis import check_span, warn_of_no_unlabeled
from .export import mixture_to_sklearn
from .fit_inputs import MIN_WIDE_FEATURES, FitInputs, Needs, find_non_finite
from .labels import FREE
from .linear_model import gaussian_model_of, moved_like
from .mixture_model import Member, MixtureModel
from .other_rows import OFFSET
from .outside import ClassShares, OutsideClassifier
from .rows_reader import RowsReader
from .views import AUTO_VIEW, summary_of_rows

# Views in which an average is fitted, by the names of these members.
_VIEW_OF_MEMBER = {
    "linear": STANDARDIZE,
    "kernel": KERNEL,
    "whitened kernel": WHITENED_KERNEL,
}
# Methods of scikit-learn, by the names of these members.
_METHOD_OF_MEMBER = {"logistic": "sklearn-logistic", "forest": "sklearn-forest"}
# The member that ignores the columns: the shares of the classes.
_SHARES_MEMBER = "shares"

# Members are fitted to at most this many labeled rows ...
_MAX_LABELED_ROWS = 5_000
# ... and this many unlabeled rows: more of them hardly improve a fit to a table.
_MAX_UNLABELED_ROWS = 2_000
# More columns than this are not whitened: the time grows with the cube of their number.
_MAX_WHITENED_FEATURES = 1_000
# Folds of the labeled rows: for members that do not test themselves, and for the
# weights.
_N_FOLDS = 4

# Every member starts with the weight of this many rows that it alone explains, so that
# with few labels no member gets all the weight.
_PSEUDO_ROWS = 0.3
# A member that gives a label a smaller probability counts as if it gave this one.
_MIN_PROBABILITY = 1e-3
# Rounds in which the weights of the members are found ...
_MAX_WEIGHT_ROUNDS = 1_000
# ... until no weight moves by more than this.
_WEIGHT_TOLERANCE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class SemiSupervisedEnsemble(BaseClassifier):
    """A mixture of averages in several views, logistic regression and a forest.

    It is made for tables with few labels, whatever the boundary between the classes
    looks like. Its members are ``AverageLDA`` in the standardized columns, in a kernel
    of these and in a kernel of the whitened columns; two classifiers of scikit-learn
    that see the labeled rows alone, logistic regression and a random forest; and the
    shares of the classes, which decide where the columns say nothing. The probabilities
    of the members are averaged with the weights that make the held-out labels most
    likely. The fit depends neither on the units of columns nor on the order of rows.

    Members are fitted to at most 5,000 labeled and 2,000 unlabeled rows, drawn at
    random: more rows hardly improve a fit to a table. There may be at most 500 classes.

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
    calibration_ : Calibration or None
        How the held-out labels correct probabilities, for ``class_shares``.
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
    view_ : View
        The bounds of the columns, by which broken numbers are moved first.
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
    # Each member has a view of its own, after the bounds of "auto".
    view: str = field(init=False, default=AUTO_VIEW)
    proportions: Any = None
    outside: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    def _fit_inputs(self, inputs: FitInputs) -> None:
        n_classes = len(inputs.labels.classes)
        if n_classes > MAX_CLASSES_OF_ENSEMBLE:
            raise FitError(
                f"{type(self).__name__} takes at most {MAX_CLASSES_OF_ENSEMBLE} "
                f"classes, and there are {n_classes:,}: use AverageLDA, or merge "
                "classes."
            )
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
        self.view_ = inputs.view
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
        """Check all rows, those included that no member is fitted to."""
        n_rows = inputs.n_labeled + inputs.unlabeled.n_rows
        n_features = self.n_features_in_
        if n_features >= MIN_WIDE_FEATURES and n_features > n_rows:
            # The moments of all these columns would take longer than the fit.
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
        """Return the members by name, before they are fitted and weighted."""
        priors = None
        if inputs.log_priors is not None:
            priors = np.exp(inputs.log_priors)
        members = self._averages(inputs, priors)
        if self.outside:
            members |= self._outside_members(inputs, priors, training)
        return members

    def _averages(self, inputs: FitInputs, priors: Array | None) -> dict[str, Member]:
        """Return the averages, one for every view."""
        proportions = self.proportions
        if not isinstance(proportions, str):
            proportions = inputs.proportions
        can_whiten = self.n_features_in_ <= _MAX_WHITENED_FEATURES
        members = {}
        for name, view in _VIEW_OF_MEMBER.items():
            if view != WHITENED_KERNEL or can_whiten:
                average = AverageLDA(view=view, priors=priors, proportions=proportions)
                members[name] = Member(average, inputs.view)
        return members

    def _outside_members(
        self, inputs: FitInputs, priors: Array | None, training: _TrainingRows
    ) -> dict[str, Member]:
        """Return the members that see the labeled rows alone.

        They learn the shares of the classes among the labels. Their probabilities are
        turned to the priors or the proportions that the user has given.
        """
        counts = np.bincount(training.labeled_codes, training.labeled_weights)
        bounds = inputs.proportions
        wanted = priors
        if wanted is None and bounds is not None and not self._has_free_proportions:
            low, high = bounds.T
            wanted = np.clip(counts / counts.sum(), low, high)
        factors = None if wanted is None else wanted / counts

        rng = check_random_state(self.random_state or 0)
        seed = int(rng.randint(2**31 - 1))
        classifiers: dict[str, Any] = {
            name: OutsideClassifier(method, random_state=seed)
            for name, method in _METHOD_OF_MEMBER.items()
        }
        classifiers[_SHARES_MEMBER] = ClassShares()
        assert inputs.view is not None
        view = Chain((inputs.view, training.standardization))
        return {
            name: Member(classifier, view, factors)
            for name, classifier in classifiers.items()
        }

    def _store_error(self, tested: _TestedMembers, training: _TrainingRows) -> None:
        """Set what the held-out labels say about the mixture."""
        self.n_tested_ = len(tested.codes)
        self.loss_ = None
        self.error_ = None
        self.error_interval_ = None
        probabilities = np.full((training.n_labeled, len(self.classes_)), np.nan)
        # The weights of the mixture are tested by two folds at least.
        if len(np.unique(tested.folds)) > 1:
            probabilities[tested.index] = tested.mixed
            losses, is_wrong = row_losses(tested.mixed, tested.codes)
            self.loss_ = float(losses.mean())
            # The mixture is the only candidate: the first axis has the length 1.
            estimate = estimate_final_error(
                losses[None],
                is_wrong[None],
                np.bincount(training.labeled_codes),
                _N_FOLDS,
                share_of_unlabeled=1.0,
                n_weights=len(tested.by_member) - 1,
            )
            # Labels of rows that were chosen do not show the error on new rows.
            if estimate is not None and not self._has_free_proportions:
                self.error_ = estimate.error
                self.error_interval_ = (estimate.low, estimate.high)
        self.held_out_probabilities_ = training.of_all_labeled(probabilities)

    @property
    def _has_free_proportions(self) -> bool:
        return isinstance(self.proportions, str) and self.proportions == FREE

    def adapt(
        self, X: Any, sample_weight: Any = None, *, change: str = "offset"
    ) -> Self:
        """Return a copy for the rows of another source, such as a speaker or a day.

        The member "linear" finds the offset and the class shares (see ``adapt`` of
        ``SupervisedLDA``). The offset is subtracted from rows before any view, and the
        probabilities of every member are turned to the class shares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of one new source, or a source of rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        change : {"offset", "shares", "both"}, default="offset"
            What may differ from the training rows.

        Returns
        -------
        adapted : SemiSupervisedEnsemble
            A fitted classifier, with ``adaptation_``.
        """
        check_is_fitted(self)
        member = self._model_.members.get("linear")
        linear = gaussian_model_of(member and member.classifier)
        if member is None or linear is None:
            raise FitError(
                "The member 'linear' could not be fitted, and only it can be adapted: "
                "fit AverageLDA."
            )
        assert isinstance(linear.view, Standardization)
        scale = linear.view.scale
        # An earlier adaptation is part of the mixture, and not of its members.
        if member.view is not None:
            linear = replace(linear, view=Chain((member.view, linear.view)))
        if member.class_factors is not None:
            priors = linear.priors * member.class_factors
            log_priors = np.log(priors / priors.sum())
            gaussians = replace(linear.gaussians, log_priors=log_priors)
            linear = replace(linear, gaussians=gaussians)
        model, adaptation = self._adapt_model(linear, X, sample_weight, change)
        offset = adaptation.offset * scale
        adapted = copy(self)
        adapted.adaptation_ = replace(adaptation, offset=offset)
        if adaptation.is_kept:
            factors = model.priors / linear.priors
            adapted._model_ = self._model_.adapted(offset, factors)
            if change != OFFSET:
                adapted.__dict__.pop("calibration_", None)
        return adapted

    def novelty(self, X: Any) -> Array:
        """How little every row resembles any of the classes, from 0 to 1.

        It is that of the member "linear": see ``novelty`` of ``SupervisedLDA``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or a source of rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Higher for rows that are less like any known class.
        """
        self._check_ready(X, "novelty")
        member = self._model_.members.get("linear")
        if member is None:
            raise FitError(
                "The member 'linear' could not be fitted, and only it shows novelty: "
                "fit AverageLDA."
            )
        function = member.classifier._novelty_function()
        function = function.of_viewed(without_bounds(member.view))
        return RowsReader(self).apply(X, function)

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
    """Rows in memory, to which members are fitted: labeled rows, then unlabeled ones.

    Both are sorted, and copies of a labeled row are one row. Sorted rows have the same
    order whatever their order in X and the units of the columns, and so has all that is
    drawn from them.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Codes of the classes; -1 for unlabeled rows.
    weights : ndarray of shape (n_rows,)
    n_labeled : int
    positions : ndarray
        For every labeled row of X its position here, or -1 if it was not drawn.
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
        """Return the fitted classifier of a member.

        ``hidden`` are the indices of labeled rows whose labels it must not know.
        """
        rows = self.rows
        codes = self.codes
        weights = self.weights
        if hidden is not None:
            codes = codes.copy()
            codes[hidden] = -1
        if hidden is not None and self.n_labeled == len(rows):
            # Without unlabeled rows the final fit is a supervised one, and is tested
            # as such: rows without their labels would make a semi-supervised one.
            is_used = codes != -1
            rows = rows[is_used]
            codes = codes[is_used]
            weights = weights[is_used]
        # Weights of 1 would change nothing but rounding, and take time.
        sample_weight = None if (weights == 1).all() else weights
        rows = member.mapped(rows)
        classifier = clone(member.classifier)
        with warnings.catch_warnings():
            # Warnings would name the member, a classifier that the user did not call.
            warnings.simplefilter("ignore")
            return classifier.fit(rows, codes, sample_weight=sample_weight)

    def of_all_labeled(self, values: Array) -> Array:
        """Turn values of the labeled rows here into those of all labeled rows of X."""
        of_all = values[self.positions]
        of_all[self.positions < 0] = np.nan
        return of_all


def _draw_training_rows(inputs: FitInputs) -> _TrainingRows:
    """Draw labeled and unlabeled rows, merge copies of labeled ones, and sort both."""
    # 1. Draw labeled rows of positive weight. Indices are those among all labeled rows.
    source = inputs.labeled_source
    is_labeled = inputs.codes >= 0
    codes = inputs.codes[is_labeled]
    weights = np.ones(len(codes))
    if source.weights is not None:
        weights = source.weights[is_labeled]
    candidates = np.flatnonzero(weights > 0)
    drawn = draw_labeled(codes, candidates, _MAX_LABELED_ROWS, seed=0)

    # 2. Take them into memory, in the order of the source, and merge copies.
    drawn = np.sort(drawn)
    drawn_in_source = np.flatnonzero(is_labeled)[drawn]
    is_drawn = np.zeros(len(inputs.codes), dtype=bool)
    is_drawn[drawn_in_source] = True
    drawn_rows = np.asarray(source.held(is_drawn).X, dtype=np.float64)
    labeled = merge_copies(drawn_rows, codes[drawn], weights[drawn])

    # 3. Sort them, and remember where every labeled row of X went.
    order = _sorting_order(labeled.rows, labeled.codes)
    n_labeled = len(order)
    ranks = np.empty(n_labeled, dtype=np.intp)
    ranks[order] = np.arange(n_labeled)
    positions = np.full(len(codes), -1)
    positions[drawn] = ranks[labeled.positions]

    # 4. Add a sample of the unlabeled rows, sorted as well.
    others, other_weights = inputs.unlabeled.sample(_MAX_UNLABELED_ROWS, 0)
    other_order = _sorting_order(others, other_weights)
    other_codes = np.full(len(others), -1)
    return _TrainingRows(
        rows=np.concatenate([labeled.rows[order], others[other_order]]),
        codes=np.concatenate([labeled.codes[order], other_codes]),
        weights=np.concatenate([labeled.weights[order], other_weights[other_order]]),
        n_labeled=n_labeled,
        positions=positions,
    )


def _sorting_order(rows: Array, ties: AnyArray) -> AnyArray:
    """Return the order of rows by their first column, then by the second, and so on.

    Equal rows are in the order of ``ties``.
    """
    # The last key decides first.
    first_column_last = rows.T[::-1]
    return np.lexsort([ties, *first_column_last])


@dataclass(frozen=True)
class _TestedMembers:
    """Probabilities of labeled rows by members that do not know their labels.

    Attributes
    ----------
    by_member : ndarray of shape (n_members, n_rows, n_classes)
        The probabilities.
    codes, weights, folds : ndarray of shape (n_rows,)
        Codes of the labels, weights and folds of the rows.
    index : ndarray of shape (n_rows,)
        Which of the labeled rows they are.
    """

    by_member: Array
    codes: AnyArray
    weights: Array
    folds: AnyArray
    index: AnyArray

    @classmethod
    def of(cls, members: list[Member], training: _TrainingRows) -> _TestedMembers:
        """Predict the labeled rows by fits of all members without their labels."""
        # Lengths of standardized rows do not depend on the units.
        labeled = training.standardization(training.rows[: training.n_labeled])
        squared_lengths = (labeled**2).sum(axis=1)
        folds = ranked_folds(training.labeled_codes, squared_lengths, _N_FOLDS)
        by_member = np.stack(
            [_held_out_probabilities(member, training, folds) for member in members]
        )
        is_predicted = np.isfinite(by_member).all(axis=(0, 2))
        is_tested = is_predicted & (folds != NO_FOLD)
        return cls(
            by_member=by_member[:, is_tested],
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
        n_members, n_rows, _ = self.by_member.shape
        # What every member thinks of the label of every row, (n_members, n_rows).
        of_labels = self.by_member[:, np.arange(n_rows), self.codes]
        likelihoods = np.maximum(of_labels[:, used], _MIN_PROBABILITY)
        row_weights = self.weights[used]
        weights = np.full(n_members, 1 / n_members)
        for _ in range(_MAX_WEIGHT_ROUNDS):
            contributions = weights[:, None] * likelihoods
            contributions /= contributions.sum(axis=0)
            counts = contributions @ row_weights + _PSEUDO_ROWS
            previous_weights = weights
            weights = counts / counts.sum()
            change = np.abs(weights - previous_weights).max()
            if change < _WEIGHT_TOLERANCE:
                break
        return weights

    @cached_property
    def mixed(self) -> Array:
        """Probabilities (n_rows, n_classes) by mixtures that do not know the labels.

        The weights of the members are found without the fold of a row, too.
        """
        mixed = np.empty(self.by_member.shape[1:])
        for train, test in splits_of(self.folds):
            weights = self.member_weights(train)
            mixed[test] = np.tensordot(weights, self.by_member[:, test], axes=1)
        return mixed


def _held_out_probabilities(
    member: Member, training: _TrainingRows, folds: AnyArray
) -> Array:
    """Return the probabilities (n_labeled, K) of labeled rows; NaN if not tested."""
    # Averages and the forest have tested themselves.
    own: Array | None = member.classifier.held_out_probabilities_
    if own is not None:
        return member.turned(own)

    def predict(train: AnyArray, test: AnyArray) -> Array:
        classifier = training.fit(member, hidden=test)
        fitted = replace(member, classifier=classifier)
        return fitted.probabilities(training.rows[test])

    n_classes = int(training.labeled_codes.max()) + 1
    probabilities = np.full((training.n_labeled, n_classes), np.nan)
    # A row that is alone in its class has no fold: its label is never hidden.
    is_tested = folds != NO_FOLD
    if is_tested.any():
        predicted = predict_held_out(predict, folds)
        if not isinstance(predicted, FitError):
            probabilities[is_tested] = predicted
    return probabilities
