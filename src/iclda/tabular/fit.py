"""Fit a method to all rows of a table, and report what a person should know about it.

`fit_table` returns a pipeline and a `FitReport`: the rows, the warnings, the error to
expect on new rows, which only labels drawn at random can show (``label_error``).
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sklearn.pipeline import Pipeline

from .._error_estimate import MIN_TESTED_ROWS, BaseRate
from .._estimators.auto import AutoLDA
from .._estimators.diagnosis import safety_bounds, warn_if_nothing_learned
from .._estimators.labels import FREE, LABELED
from .._messages import (
    Hint,
    NothingLearnedWarning,
    NoUnlabeledRowsWarning,
    ParameterError,
    message_of,
    say,
)
from ..methods import Method
from .array_files import FeatureFile
from .cells import count_gaps
from .column_types import pipeline, preprocessing
from .label_error import random_estimate, why_withheld, wrong_on_random
from .readers import Source
from .table import Table

_SUPERVISED = say(
    "No row is unlabeled, so this is a supervised fit. Rows with an empty target are "
    "unlabeled; to mark others, use {@unlabeled} or {@unlabeled_file}."
)
_CHOSEN_SHARES = (
    "{which} takes the class shares of the labels, and {n} of these were chosen for "
    "being informative: {way_out}."
)


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
    error : mapping or None
        The error to expect on new rows.
    n_tested : int
        Number of rows that the error was measured on; if it is not known, how many
        there were to measure it on.
    learned : str
        Whether the fit beats giving every row the most frequent class; empty if that
        is not known.
    withheld : str
        Why the error is not known, where labels were chosen.
    safety : str
        How much the fit can lose at most against the supervised one, in a sentence.
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
    error: Mapping[str, Any] | None = None
    # Model files of earlier versions do not say how many rows there were.
    n_tested: int = MIN_TESTED_ROWS
    learned: str = ""
    withheld: str = ""
    safety: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON has."""
        return {**vars(self), "sources": [asdict(source) for source in self.sources]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FitReport | None:
        """Read the report in the details of a model; None if there is none."""
        names = [each.name for each in fields(cls)]
        known = {name: stored[name] for name in names if name in stored}
        try:
            known["sources"] = tuple(Source(**source) for source in known["sources"])
            return cls(**known)
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
) -> tuple[Pipeline, FitReport]:
    """Fit a method to all rows of a table; None chooses the method.

    The classifier of the pipeline is that of the method.
    """
    is_outside = method is not None and method.is_outside
    if is_outside:
        table = table.framed()
    classifier = _unfitted(table, method, shrinkage, priors, proportions, seed)
    # The features of an array are used as they are, and read in blocks.
    is_array = isinstance(table.features, FeatureFile)
    rows = table.features.rows if is_array else table.features
    encoder = None if is_array else preprocessing(rows)
    model = pipeline(encoder, classifier, scale=is_outside or None)

    # The fitted AutoLDA, which chose a method, or was given one, and estimated its
    # error; None for a method of scikit-learn.
    choice: Any = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, table.labels)
        if not is_outside:
            choice = _unwrap(model)
        error_fields = _error_fields(model, table, choice)

    encoded = rows if is_array else model[:-1].transform(rows)
    bounds = safety_bounds(model[-1], encoded, table.labels)
    counts = Counter(table.labels[table.is_labeled].tolist())
    warning_texts = _warning_texts([record.message for record in caught], table)
    if table.n_chosen and priors is None and _takes_shares_of_labels(model[-1]):
        warning_texts.append(_chosen_shares_warning(table, is_outside))
    report = FitReport(
        command=command,
        target=table.target,
        sources=table.sources,
        labeled=dict(sorted(counts.items())),
        n_unlabeled=int((~table.is_labeled).sum()),
        empty_cells={} if is_array else count_gaps(rows),
        notes=table.notes,
        warnings=warning_texts,
        method=choice.method_ if method is None else method.name,
        choice=choice.reason_ if method is None else "",
        safety="" if bounds is None else bounds.sentence,
        **error_fields,
    )
    return model, report


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
    model: Pipeline, table: Table, choice: AutoLDA | None
) -> dict[str, Any]:
    """Return the fields of ``FitReport`` about the error.

    The error is that of labels drawn at random if others were chosen, and for methods
    of scikit-learn, which have no ``choice``; otherwise ``choice`` has estimated it.
    """
    withheld = ""
    if table.n_chosen:
        withheld = why_withheld(table)
    elif choice is not None and choice.proportions == FREE:
        withheld = (
            "free proportions are for labels that are not a random sample of the rows"
        )

    error = None
    brier = math.inf
    if choice is None or table.n_chosen > 0:
        n_tested = int(table.is_random.sum())
        if n_tested >= MIN_TESTED_ROWS and not withheld:
            framed = table.framed()
            error = random_estimate(framed, wrong_on_random(model, framed))
    else:
        n_tested = choice.n_tested_
        if not withheld:
            error = choice.error_estimate
            brier = choice.losses_.get(choice.method_, math.inf)

    learned = ""
    stated = None if error is None else error.to_json()
    if error is not None and stated is not None and not table.n_chosen:
        base = BaseRate.of_counts(Counter(table.labels[table.is_labeled].tolist()))
        learned = base.judge(error.error, error.high, brier)
        if choice is None:
            warn_if_nothing_learned(base, error, brier)
        remark = _how_measured(choice)
        stated["text"] = f"{stated['text'].removesuffix(')')}, {remark})"
    return {
        "error": stated,
        "n_tested": n_tested,
        "learned": learned,
        "withheld": withheld,
    }


def _how_measured(choice: AutoLDA | None) -> str:
    """Say how the error was measured, and whether it allows for a choice of methods."""
    how = "cross-validated, in other folds than those of `iclda compare`"
    is_corrected = choice is not None and len(choice.losses_) > 1
    if is_corrected:
        return f"corrected for choosing the method by them; {how}"
    # The user chose the method, perhaps by the errors of several.
    if choice is None or choice.methods is not None:
        return f"not corrected for choosing the method by them; {how}"
    return how


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
            sentence = "{hint} is not for {name}: leave it out."
            text = say(sentence, hint=Hint(name), name=method.name)
            raise ParameterError(text, parameter=name, value=value)


def _warning_texts(caught: Sequence[Any], table: Table) -> list[str]:
    """Return the warnings of a fit and of its table, each once, by importance."""
    first: list[str] = []
    others: list[str] = []
    for warning in caught:
        if isinstance(warning, NothingLearnedWarning):
            # A cross-validation of chosen labels says nothing about other rows.
            if not table.n_chosen:
                first.append(message_of(warning))
        elif isinstance(warning, NoUnlabeledRowsWarning):
            others.append(_SUPERVISED)
        else:
            others.append(message_of(warning))
    return list(dict.fromkeys([*first, *table.warnings, *others]))
