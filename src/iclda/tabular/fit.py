"""Fit a method to all rows of a table, and report what a person should know about it.

`fit_table` returns a pipeline and a `FitReport`: the rows, the warnings, the error to
expect on new rows, which only labels drawn at random can show (``label_error``).
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from .._core import AnyArray
from .._error_estimate import (
    MIN_TESTED_ROWS,
    NOTHING_LEARNED,
    BaseRate,
    ErrorEstimate,
)
from .._estimators.auto import AutoLDA
from .._estimators.diagnosis import safety_bounds, warn_if_nothing_learned
from .._estimators.labels import FREE, LABELED
from .._estimators.outside import OutsideClassifier
from .._messages import (
    BrokenCellWarning,
    Hint,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    ParameterError,
    message_of,
    say,
)
from .._rows.views import UnitLength, steps_of
from ..methods import Method, Shrinkage
from .array_files import FeatureFile
from .cells import count_gaps
from .column_types import pipeline, preprocessing, taken_for
from .label_error import random_estimate, why_withheld, wrong_on_random
from .readers import Source
from .suspects import Suspect, find_suspects
from .table import Table
from .training_rows import TrainingRows
from .unknown_rows import sample_of, share_of_no_class, warnings_on_no_class

_SUPERVISED = say(
    "No row is unlabeled, so this is a supervised fit. Rows with an empty target are "
    "unlabeled; to mark others, use {@unlabeled} or {@unlabeled_file}."
)
_CHOSEN_SHARES = (
    "{which} takes the class shares of the labels, and {n} of these were chosen for "
    "being informative: {way_out}."
)
_WITHOUT_OFFSETS = (
    "Offsets of the groups in column {group!r} were subtracted. The error is that on "
    "rows of these groups; for others there is `iclda predict` with {@adapt}."
)
# How the error was measured, in sentences.
_MEASURED_BY_COMPARISON = (
    "`iclda compare` measured the error. It is corrected for choosing the method by "
    "the same labels."
)
_CROSS_VALIDATED = (
    "The error was measured by cross-validation, with other folds than `iclda compare` "
    "uses."
)
_CORRECTED = " It is corrected for choosing the method by the same labels."
_NOT_CORRECTED = (
    " If you chose the method by the same labels, the error is too low: it is not "
    "corrected for that."
)


@dataclass(frozen=True)
class Advice:
    """What a comparison of methods says to a fit of the same table.

    Attributes
    ----------
    sentence : str
        Why the method is fitted; without a method, what to do to know of a better one.
    note : str
        Why a comparison that lies there was not used; empty if there is none.
    method : Method or None
        The method to fit; None if no comparison recommends one.
    shrinkage : float, "auto" or None
        Its shrinkage.
    error : ErrorEstimate or None
        The error to expect of it, corrected for the choice.
    n_tested : int
        Labeled rows behind that.
    brier : float
        Its Brier score on these rows.
    """

    sentence: str
    method: Method | None = None
    shrinkage: Shrinkage = "auto"
    error: ErrorEstimate | None = None
    n_tested: int = 0
    brier: float = math.inf
    note: str = ""


@dataclass(frozen=True)
class FitReport:
    """What a fit to a table found; it is stored with the model.

    Attributes
    ----------
    command : str
        The command line, if there was one.
    target : str
        Name of the target column.
    sources : tuple of Source
        The files.
    labeled : mapping of str to int
        Number of labeled rows by class.
    n_unlabeled : int
        Number of unlabeled rows.
    empty_cells : mapping of str to int
        Number of empty cells by column, for columns that have any.
    notes, warnings : sequence of str
        Remarks on the table and on the fit.
    method : str
        Name of the method.
    choice : str
        Why the method was chosen; empty if it was given.
    is_recommended : bool
        Whether a comparison of methods recommended it.
    advice : str
        What to do to know of a better method; empty if a comparison recommended it.
    error : mapping or None
        The error to expect on new rows.
    n_tested : int
        Number of rows that the error was measured on; if it is not known, how many
        there were to measure it on.
    learned : str
        Whether the fit beats giving every row the most frequent class; empty if that
        is not known.
    how_measured : str
        How the error was measured, in a sentence or two.
    withheld : str
        Why the error is not known, where labels were chosen.
    safety : str
        How much the fit can lose at most against the supervised one, in a sentence.
    taken_for : str
        What the rows were taken for, a table or features of a network, and what to do
        if they are not; empty if that plays no part, or if ``choice`` says it.
    suspects : sequence of mapping
        The fields of every ``Suspect``: rows whose labels look wrong.
    first_row_number : int or None
        What messages call the first row; None for a model of an earlier version, or if
        ids name the rows.
    group : str
        Column of the groups whose offsets were subtracted; empty if there is none.
    training_rows : mapping
        What ``TrainingRows.from_json`` reads.
    """

    command: str
    target: str
    sources: tuple[Source, ...]
    labeled: Mapping[str, int]
    n_unlabeled: int
    empty_cells: Mapping[str, int]
    notes: Sequence[str]
    warnings: Sequence[str]
    method: str = ""
    choice: str = ""
    is_recommended: bool = False
    advice: str = ""
    error: Mapping[str, Any] | None = None
    # Model files of earlier versions do not say how many rows there were.
    n_tested: int = MIN_TESTED_ROWS
    learned: str = ""
    how_measured: str = ""
    withheld: str = ""
    safety: str = ""
    taken_for: str = ""
    suspects: Sequence[Mapping[str, Any]] = ()
    first_row_number: int | None = None
    group: str = ""
    training_rows: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON has."""
        sources = [asdict(source) for source in self.sources]
        return {**vars(self), "sources": sources}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FitReport | None:
        """Read the report in the details of a model; None if there is none."""
        # Another version may have stored more fields, or fewer.
        names = [each.name for each in fields(cls)]
        known = {name: stored[name] for name in names if name in stored}
        try:
            sources = [Source(**source) for source in known["sources"]]
            return cls(**{**known, "sources": tuple(sources)})
        # The details are those of another program, or of no table.
        except (KeyError, TypeError):
            return None


def fit_table(
    table: Table,
    method: Method | None = None,
    *,
    shrinkage: float | str | None = "auto",
    priors: Mapping[str, float] | None = None,
    proportions: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    command: str = "",
    advice: Advice | None = None,
    group: str = "",
    groups: AnyArray | None = None,
) -> tuple[Pipeline, FitReport]:
    """Fit a method to all rows of a table; None fits the default.

    The offsets of ``groups``, from the column ``group``, are subtracted.

    The classifier of the pipeline is that of the method. ``advice`` is what a
    comparison says where no method is given: what it recommends is fitted.
    """
    advice = advice or Advice("")
    is_given = method is not None
    if advice.method is not None:
        method = advice.method
        shrinkage = advice.shrinkage
    is_outside = method is not None and method.is_outside
    if is_outside:
        assert method is not None
        _refuse_given(method, group=group or None)
        # Methods of scikit-learn do not read rows in blocks.
        table = table.framed()
    classifier = _unfitted(table, method, shrinkage, priors, proportions, seed)
    table, fit_params = _without_rows_of_no_class(table, groups)
    # The features of an array are used as they are, and read in blocks.
    is_array = isinstance(table.features, FeatureFile)
    rows = table.features.rows if is_array else table.features
    encoder = None if is_array else preprocessing(rows)
    model = pipeline(encoder, classifier)

    # The fitted AutoLDA, which chose a method, or was given one, and estimated its
    # error; None for a method of scikit-learn.
    choice: Any = None
    # The fits that measure the error may warn, too.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step = model.steps[-1][0]
        named = {f"{step}__{name}": value for name, value in fit_params.items()}
        model.fit(rows, table.labels, **named)
        if not is_outside:
            choice = _unwrap(model)
        if advice.method is not None or table.n_chosen:
            # The comparison judges whether anything was learned. A cross-validation of
            # chosen labels says nothing about other rows: those drawn at random do.
            caught[:] = [each for each in caught if not _says_nothing_learned(each)]
        error_fields = _error_fields(model, table, choice, advice)
    warning_texts = _warning_texts([record.message for record in caught], table)
    if table.n_chosen and priors is None and _takes_shares_of_labels(model[-1]):
        warning_texts.append(_chosen_shares_warning(table, is_outside))

    encoded = rows if is_array else model[:-1].transform(rows)
    warning_texts += _warnings_on_no_class(model[-1], encoded, table)
    bounds = safety_bounds(model[-1], encoded, table.labels)
    notes = [*table.notes]
    if advice.note:
        notes.append(advice.note)
    if group:
        notes.append(say(_WITHOUT_OFFSETS, group=group))
    report = FitReport(
        command=command,
        target=table.target,
        sources=table.sources,
        labeled=table.class_counts,
        n_unlabeled=table.n_unlabeled,
        empty_cells={} if is_array else count_gaps(rows),
        notes=notes,
        warnings=warning_texts,
        method=choice.method_ if method is None else method.name,
        choice="" if is_given else _why_chosen(choice, advice),
        is_recommended=advice.method is not None,
        advice="" if advice.method is not None else advice.sentence,
        safety="" if bounds is None else bounds.sentence,
        taken_for=_taken_for(model[-1], is_default=method is None),
        suspects=[asdict(each) for each in _suspects(model[-1], table)],
        first_row_number=table.first_row_number if table.ids is None else None,
        group=group,
        training_rows=_training_rows(encoded, table).to_json(),
        **error_fields,
    )
    return model, report


def _without_rows_of_no_class(
    table: Table, groups: AnyArray | None
) -> tuple[Table, dict[str, Any]]:
    """Leave out rows that were labeled as none of the classes.

    Return the table, and the arguments of ``fit`` besides rows and labels.
    """
    fit_params: dict[str, Any] = {}
    if groups is not None:
        fit_params["groups"] = groups
    is_none = table.is_none
    if is_none is None:
        return table, fit_params
    if isinstance(table.features, FeatureFile):
        # Rows of an array are read where they are: without weight they do not count.
        fit_params["sample_weight"] = np.where(is_none, 0.0, 1.0)
        notes = (*table.notes, *table.notes_on_none)
        return replace(table, notes=notes), fit_params
    if groups is not None:
        fit_params["groups"] = groups[~is_none]
    return table.framed(), fit_params


def _warnings_on_no_class(classifier: Any, encoded: Any, table: Table) -> list[str]:
    """Warn if many unlabeled rows resemble none of the classes."""
    is_unlabeled = ~table.is_labeled
    if table.is_none is not None:
        is_unlabeled &= ~table.is_none
    is_drawn = sample_of(is_unlabeled)
    if isinstance(table.features, FeatureFile):
        drawn = table.features.take(is_drawn).to_numpy()
    else:
        drawn = encoded[is_drawn]
    return warnings_on_no_class(share_of_no_class(classifier, drawn))


def _suspects(classifier: Any, table: Table) -> list[Suspect]:
    """Return the rows whose labels look wrong, where a fit predicted held-out rows."""
    probabilities = getattr(classifier, "held_out_probabilities_", None)
    if probabilities is None:
        return []
    classes = [str(name) for name in classifier.classes_]
    code_of_class = {name: code for code, name in enumerate(classes)}
    positions = np.flatnonzero(table.is_labeled)
    codes = np.array([code_of_class[label] for label in table.labels[positions]])
    rows = positions + table.first_row_number
    if table.ids is not None:
        rows = table.ids[positions]
    return find_suspects(probabilities, codes, classes, rows)


def _training_rows(encoded: Any, table: Table) -> TrainingRows:
    """Return the labeled rows; those of an array are compared among themselves."""
    is_labeled = table.is_labeled
    if isinstance(table.features, FeatureFile):
        encoded = table.features.take(is_labeled)
        is_labeled = np.ones(len(encoded), dtype=bool)
    return TrainingRows.of(encoded, is_labeled)


def _says_nothing_learned(caught: warnings.WarningMessage) -> bool:
    return isinstance(caught.message, NothingLearnedWarning)


def _why_chosen(choice: Any, advice: Advice) -> str:
    """Say why a method was fitted that was not given."""
    if advice.method is not None:
        return advice.sentence
    return str(choice.reason_)


def _taken_for(classifier: Any, *, is_default: bool) -> str:
    """Say what rows were taken for, as the fitted view shows; "" if that is unused.

    ``is_default`` tells whether this decided on the method.
    """
    if isinstance(classifier, OutsideClassifier):
        return ""
    view = getattr(classifier, "view_", None)
    steps = () if view is None else steps_of(view)
    is_network = any(isinstance(step, UnitLength) for step in steps)
    # The reason for that default says it.
    if is_network and is_default:
        return ""
    return taken_for(is_network=is_network)


def _unfitted(
    table: Table,
    method: Method | None,
    shrinkage: Any,
    priors: Any,
    proportions: Any,
    seed: int,
) -> Any:
    """Return the unfitted classifier of a method, or the one that chooses a method."""
    if method is not None and method.is_outside:
        _refuse_given(method, priors=priors, proportions=proportions)
        return method.classifier()
    if table.n_chosen:
        proportions = _without_labeled_shares(table, method, proportions)
    return AutoLDA(
        methods=None if method is None else [method.name],
        shrinkage=shrinkage,
        priors=priors,
        proportions=proportions,
        random_state=seed,
    )


def _unwrap(model: Pipeline) -> AutoLDA:
    """Put the classifier that the fitted AutoLDA of a model chose into its place.

    Return the AutoLDA.
    """
    step, choice = model.steps[-1]
    model.steps[-1] = (step, choice.estimator_)
    return choice


def _takes_shares_of_labels(classifier: Any) -> bool:
    """Return whether a classifier without priors takes class shares of the labels.

    One with proportions was given some, or FREE (``_without_labeled_shares``).
    """
    return "proportions" not in classifier.get_params()


def _chosen_shares_warning(table: Table, is_outside: bool) -> str:
    """Return the warning that the class shares of a fit are those of chosen labels."""
    known = ""
    if not is_outside:
        known = say("pass the shares that you know with {@priors}, or ")
    way_out = say("{known}use {@method=average}, which does not", known=known)
    return say(_CHOSEN_SHARES, which="This method", n=table.n_chosen, way_out=way_out)


def _error_fields(
    model: Pipeline, table: Table, choice: AutoLDA | None, advice: Advice
) -> dict[str, Any]:
    """Return the fields of ``FitReport`` about the error.

    ``choice`` is the fitted AutoLDA, None for methods of scikit-learn. If a comparison
    has chosen the method, the error is the one that it states.
    """
    is_compared = advice.method is not None
    withheld = ""
    if is_compared:
        measured = _MeasuredError(advice.error, advice.n_tested, advice.brier)
    else:
        withheld = _why_error_is_withheld(table, choice)
        measured = _measure_error(model, table, choice, is_withheld=bool(withheld))
    report: dict[str, Any] = {
        "error": None,
        "n_tested": measured.n_tested,
        "learned": "",
        "how_measured": "",
        "withheld": withheld,
    }
    error = measured.error
    if error is None:
        return report
    report["error"] = error.to_json()
    # The class shares of chosen labels are not those of the rows: how often the most
    # frequent class is right is known of the rows drawn at random only.
    if table.n_chosen:
        base = BaseRate.of_counts(Counter(table.labels[table.is_random].tolist()))
        learned = base.judge(error.error, error.high, measured.brier)
        if learned == NOTHING_LEARNED:
            report["learned"] = learned
            warn_if_nothing_learned(base, error, measured.brier)
        return report

    base = BaseRate.of_counts(table.class_counts)
    report["learned"] = base.judge(error.error, error.high, measured.brier)
    if choice is None or is_compared:
        # Otherwise AutoLDA has warned.
        warn_if_nothing_learned(base, error, measured.brier)
    how = _MEASURED_BY_COMPARISON if is_compared else _how_measured(choice)
    report["how_measured"] = how
    return report


def _why_error_is_withheld(table: Table, choice: AutoLDA | None) -> str:
    """Return why the labels do not show the error; empty if they do."""
    if table.n_chosen:
        return why_withheld(table)
    if choice is not None and choice.proportions == FREE:
        return (
            "free proportions are for labels that are not a random sample of the rows"
        )
    return ""


class _MeasuredError(NamedTuple):
    """The error of a fit on rows that it did not learn from.

    Attributes
    ----------
    error : ErrorEstimate or None
        The error to expect on new rows, if it is known.
    n_tested : int
        Number of rows that there are to measure it on.
    brier : float
        The Brier score on these rows; infinite if it is not known.
    """

    error: ErrorEstimate | None
    n_tested: int
    brier: float = math.inf


def _measure_error(
    model: Pipeline, table: Table, choice: AutoLDA | None, *, is_withheld: bool
) -> _MeasuredError:
    """Take the error that AutoLDA has estimated, or measure it by further fits.

    Further fits are needed if AutoLDA was not used, or if labels were chosen, since it
    does not know which of them were drawn at random.
    """
    if choice is not None and not table.n_chosen:
        if is_withheld:
            return _MeasuredError(None, choice.n_tested_)
        brier = choice.losses_.get(choice.method_, math.inf)
        return _MeasuredError(choice.error_estimate, choice.n_tested_, brier)

    n_tested = int(table.is_random.sum())
    if is_withheld or n_tested < MIN_TESTED_ROWS:
        return _MeasuredError(None, n_tested)
    framed = table.framed()
    is_wrong = wrong_on_random(model, framed)
    return _MeasuredError(random_estimate(framed, is_wrong), n_tested)


def _how_measured(choice: AutoLDA | None) -> str:
    """Say how the error was measured, and whether it allows for a choice of methods."""
    is_corrected = choice is not None and len(choice.losses_) > 1
    if is_corrected:
        return _CROSS_VALIDATED + _CORRECTED
    # The user chose the method, perhaps by the errors of several.
    if choice is None or choice.methods is not None:
        return _CROSS_VALIDATED + _NOT_CORRECTED
    return _CROSS_VALIDATED


def _without_labeled_shares(
    table: Table, method: Method | None, proportions: Any
) -> Any:
    """Return the given proportions, or free ones, but not the class shares of labels.

    ParameterError if these shares were asked for.
    """
    of_method = None if method is None else dict(method.options).get("proportions")
    given = proportions or of_method
    if isinstance(given, str) and given == LABELED:
        text = say(
            _CHOSEN_SHARES,
            which=Hint("proportions"),
            n=table.n_chosen,
            way_out="leave it out, or pass the shares that you know of all rows",
        )
        raise ParameterError(text, parameter="proportions", value=given)
    return FREE if given is None else given


def _refuse_given(method: Method, **given: Any) -> None:
    """Refuse parameters that methods of scikit-learn do not have."""
    for name, value in given.items():
        if value is not None:
            text = say(
                "{hint} is not for {name}: leave it out.",
                hint=Hint(name),
                name=method.name,
            )
            raise ParameterError(text, parameter=name, value=value)


def _warning_texts(caught: Sequence[Any], table: Table) -> list[str]:
    """Return the warnings of a fit and of its table, each once, by importance."""
    is_array = isinstance(table.features, FeatureFile)
    first: list[str] = []
    others: list[str] = []
    for warning in caught:
        if isinstance(warning, NothingLearnedWarning):
            first.append(message_of(warning))
        elif isinstance(warning, NoUnlabeledRowsWarning):
            others.append(_SUPERVISED)
        elif isinstance(warning, BrokenCellWarning) and not is_array:
            # A note on the table names these cells by the rows of the file.
            continue
        else:
            others.append(message_of(warning))
    return list(dict.fromkeys([*first, *table.warnings, *others]))
