"""Summaries of models and predictions in words, for people who do not know the methods.

Every function takes what a model file says about its model (``details``), or the counts
of a prediction, and returns the lines to print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._error_estimate import (
    CLEAR,
    MIN_TESTED_ROWS,
    NOTHING_LEARNED,
    UNCLEAR,
    BaseRate,
)
from .._estimators.labels import FREE, LABELED
from .._estimators.linear_model import gaussian_model_of
from .._messages import percent_text, plural, quoted_list, wrap
from ..methods import DEFAULT_ON_TABLES, FITTED, Method, known_method
from .array_files import feature_names
from .column_types import type_named
from .fit import FitReport
from .predict import PredictionCounts
from .suspects import Suspect, suspect_lines

_METHOD_BY_CLASS = {
    method.class_name: method for method in FITTED if not method.options
}
# What decides in models that are not linear.
_DECIDING = {
    "ensemble": "the members above decide together",
    "sklearn-forest": "the trees decide",
    "sklearn-label-spreading": "the nearest rows decide",
}
# How much a summary lists at most. Commands give everything with --json.
_MAX_NAMED_COLUMNS = 12
_MAX_RANKED_COLUMNS = 5
_MAX_FEATURES_OF_AXIS = 8
_MAX_AXES = 5
_MAX_LISTED_CLASSES = 20
# A short summary fits on a screen of this width, with a blank line and one that says
# how many remarks are left out.
_SCREEN_WIDTH = 80
_MAX_SHORT_LINES = 23


def fit_summary(details: Mapping[str, Any]) -> list[str]:
    """Describe a model, a paragraph per line: the answer, remarks, then the rest."""
    report = FitReport.from_json(details["about"])
    answer = fit_answer(details)
    if report is None:
        # The model was saved by save_model, without a report.
        return [*answer, *_class_lines(details, {}), *_method_lines(details, None)]
    remarks = fit_remarks(details)
    return [
        *answer,
        *(line for remark in remarks for line in remark),
        "",
        *_rows_lines(details, report),
        *_class_lines(details, report.labeled),
        *_method_lines(details, report),
    ]


def fit_answer(details: Mapping[str, Any]) -> list[str]:
    """Say which method was fitted, why if that is not obvious, and what to expect."""
    report = FitReport.from_json(details["about"])
    method = _method_of(details)
    title = method.title if method else details["classifier"]
    # Unlike capitalize, this leaves the abbreviations in a title as they are.
    title = f"{title[0].upper()}{title[1:]}"
    if report is None:
        return [f"{title}, {plural(details['n_features'], 'feature')}."]
    n_labeled = sum(report.labeled.values())
    unlabeled_rows = plural(report.n_unlabeled, "unlabeled row")
    lines = [
        f"{title} for {report.target!r}, fitted to {n_labeled:,} labeled and "
        f"{unlabeled_rows}."
    ]
    # If nothing was learned, it does not matter why the method was chosen.
    if report.learned != NOTHING_LEARNED and not _is_usual_default(report):
        lines.append(report.choice)
    if report.taken_for:
        lines.append(f"The rows were read as {report.taken_for}.")
    lines.append(_error_line(report))
    diagnosis = details["diagnosis"]
    if not diagnosis.get("converged", True):
        lines.append(_convergence_text(diagnosis))
    return [line for line in lines if line]


def _is_usual_default(report: FitReport) -> bool:
    """Return whether a fit took the default on tables without a recommendation."""
    return report.method == DEFAULT_ON_TABLES and not report.is_recommended


def fit_remarks(details: Mapping[str, Any]) -> list[list[str]]:
    """List what needs attention: warnings, labels that look wrong, and notes.

    Each remark is a list of lines.
    """
    report = FitReport.from_json(details["about"])
    if report is None:
        return []
    suspects = suspect_lines(
        [Suspect(**each) for each in report.suspects], report.first_row_number
    )
    return [
        *([f"Warning: {text}"] for text in report.warnings),
        *([suspects] if suspects else []),
        *([f"Note: {text}"] for text in report.notes),
    ]


def short_fit_summary(details: Mapping[str, Any], last_line: str) -> list[str]:
    """Return the answer, a last line, and as many remarks as fit on a screen."""
    answer = [*fit_answer(details), last_line]
    n_lines_left = _MAX_SHORT_LINES - _height(answer)
    kept: list[str] = []
    n_more = 0
    for remark in fit_remarks(details):
        height = _height(remark)
        if n_more or height > n_lines_left:
            n_more += 1
        else:
            kept += remark
            n_lines_left -= height
    if n_more:
        kept.append(f"{plural(n_more, 'more remark')}: `iclda show` prints them.")
    return [*answer, "", *kept] if kept else answer


def _height(lines: Sequence[str]) -> int:
    """Return the number of lines that paragraphs take on a screen."""
    return sum(len(wrap(line, _SCREEN_WIDTH)) for line in lines)


def _method_of(details: Mapping[str, Any]) -> Method | None:
    """Return the method of a model; None for a classifier of the user's own."""
    by_name = known_method(str(details["parameters"].get("method", "")))
    return _METHOD_BY_CLASS.get(details["classifier"], by_name)


def _rows_lines(details: Mapping[str, Any], report: FitReport) -> list[str]:
    """Say what the model reads, and how."""
    lines = [f"It reads {_columns_text(details)}."]
    if report.empty_cells:
        lines.append(f"Empty cells were filled in: {_ranked(report.empty_cells)}.")
    return lines


def _columns_text(details: Mapping[str, Any]) -> str:
    """Count the columns of a model by type: "3 columns: 2 of numbers, ..."."""
    # The features of an array have no kinds.
    kinds = (details["columns"] or {}).values()
    counts = Counter(type_named(kind).step for kind in kinds)
    if not counts:
        return f"{details['n_features']} features"
    columns = plural(counts.total(), "column")
    if len(counts) == 1:
        [step] = counts
        return f"{columns} of {step}"
    parts = [f"{n} of {step}" for step, n in counts.items()]
    return f"{columns}: {', '.join(parts)}"


def _class_lines(details: Mapping[str, Any], labeled: Mapping[str, int]) -> list[str]:
    """List classes with their labeled rows and shares, or sum up many in a sentence."""
    names = [str(name) for name in details["classes"]]
    if len(names) > _MAX_LISTED_CLASSES and labeled:
        return ["", _many_classes_text(names, labeled), ""]
    width = max(len(text) for text in ["class", *names])
    # A classifier of the user's own may have no priors: then there is no such column.
    shares = [f"  {_percent(share):>18}" for share in details["priors"] or ()]
    heading = "  share in the model" if shares else ""
    lines = ["", f"  {'class'.ljust(width)}  labeled rows{heading}"]
    for name, share in zip_longest(names, shares, fillvalue=""):
        count = f"{labeled[name]:,}" if name in labeled else "-"
        lines.append(f"  {name.ljust(width)}  {count:>12}{share}")
    return [*lines, ""]


def _percent(share: float) -> str:
    """Write a share for a column of a table, where all have one decimal: 25.9 %."""
    return f"{100 * share:.1f} %"


def _many_classes_text(names: Sequence[str], labeled: Mapping[str, int]) -> str:
    """Say how many classes there are, and which have the fewest labeled rows."""
    fewest = min(labeled.values())
    most = max(labeled.values())
    if fewest == most:
        return f"{len(names)} classes with {plural(most, 'labeled row')} each."
    rarest = [name for name in names if labeled.get(name) == fewest]
    return (
        f"{len(names)} classes with {fewest} to {most} labeled rows each, only "
        f"{fewest} of {quoted_list(rarest, 3)}."
    )


def _method_lines(details: Mapping[str, Any], report: FitReport | None) -> list[str]:
    """Say what the method does, how it was chosen, and how its error was measured."""
    method = _method_of(details)
    has_unlabeled = report is None or report.n_unlabeled > 0
    has_supervised_members = method and method.name == DEFAULT_ON_TABLES
    # Without unlabeled rows every other method of this package is the supervised one.
    if method and not (method.is_outside or has_supervised_members or has_unlabeled):
        method = _METHOD_BY_CLASS["SupervisedLDA"]
    lines = [method.sentence] if method else []
    if has_supervised_members:
        lines.append(_members_text(details["diagnosis"]))
    if "n_iter" in details["diagnosis"]:
        lines.append(_convergence_text(details["diagnosis"]))
    proportions = details["parameters"].get("proportions")
    if proportions not in (None, FREE):
        source = "of the labeled rows" if proportions == LABELED else "that were given"
        lines.append(
            f"It keeps the classes of the unlabeled rows in the proportions {source}."
        )
    if report is None:
        return lines
    # If nothing was learned, it does not matter what the fit can lose.
    if report.learned == NOTHING_LEARNED:
        return lines
    choice = report.choice if _is_usual_default(report) else ""
    lines = [choice, report.advice, *lines, report.how_measured, report.safety]
    return [line for line in lines if line]


def _members_text(diagnosis: Mapping[str, Any]) -> str:
    """List the members of an ensemble, the heaviest first."""
    weights = Counter(diagnosis["member_weights"]).most_common()
    listed = ", ".join(f"{name} {100 * weight:.0f} %" for name, weight in weights)
    return f"Its members and their weights: {listed}."


def _convergence_text(diagnosis: Mapping[str, Any]) -> str:
    steps = plural(diagnosis["n_iter"], "step")
    if not diagnosis["converged"]:
        return (
            f"It did not converge in {steps}: see the warning, and do not rely on this "
            "model."
        )
    n_optima = diagnosis.get("n_optima", 1)
    if n_optima > 1:
        return f"It converged in {steps}, the best of {n_optima} solutions found."
    return f"It converged in {steps}."


def _error_line(report: FitReport) -> str:
    """State the error to expect on new rows, or why it is unknown."""
    unknown = "The error to expect on new rows is not known"
    if report.error is not None:
        return f"Expect {report.error['text']}.{_majority_text(report)}"
    if report.withheld:
        return f"{unknown}: {report.withheld}."
    if report.n_tested >= MIN_TESTED_ROWS:
        return f"{unknown}: measuring it takes at least three labeled rows per class."
    return (
        f"{unknown}: measuring it takes {MIN_TESTED_ROWS} labeled rows of classes with "
        f"at least two each, and there are {report.n_tested}. Label more rows."
    )


def _majority_text(report: FitReport) -> str:
    """Compare the error with that of always predicting the most frequent class."""
    assert report.error is not None
    # If nothing was learned, a warning says so. For chosen labels it is not known.
    if report.learned not in (CLEAR, UNCLEAR):
        return ""
    base = BaseRate.of_counts(report.labeled)
    end = ""
    if report.learned == UNCLEAR:
        n_rows = report.error["n_rows"]
        end = f": {n_rows:,} labels are too few to be sure that this model is better"
        if report.error["error"] >= base.error:
            end = ", and this model looks no better"
    base_error = percent_text(base.error)
    return (
        f" Always predicting {base.majority!r} is wrong {base_error} of the time{end}."
    )


def show_summary(details: Mapping[str, Any]) -> list[str]:
    """List everything that a model file says about its model."""
    report = FitReport.from_json(details["about"])
    lines = [
        *fit_summary(details),
        "",
        f"Fitted     {details['created']} by iclda {details['iclda']}",
    ]
    if report is not None:
        if report.command:
            lines.append(f"Command    {report.command}")
        for source in report.sources:
            rows = plural(source.n_rows, "row")
            lines.append(f"Data       {source.path}, {rows}, sha256 {source.sha256}")
    columns = list(details["columns"] or ["without names"])
    named = ", ".join(columns[:_MAX_NAMED_COLUMNS])
    n_more = len(columns) - _MAX_NAMED_COLUMNS
    more = f" and {n_more:,} more" if n_more > 0 else ""
    lines.append(f"Columns    {named}{more}")
    shrinkage = details["diagnosis"].get("shrinkage")
    if shrinkage is not None:
        lines.append(f"Shrinkage  {shrinkage:.3g}")
    settings = [f"{name}={value!r}" for name, value in details["parameters"].items()]
    versions = [f"{name} {number}" for name, number in details["versions"].items()]
    return [
        *lines,
        f"Settings   {details['classifier']}({', '.join(settings)})",
        f"Versions   {', '.join(versions)}",
        f"Checksum   sha256 {details['sha256']} of the whole file, as sha256sum "
        "prints it",
    ]


def prediction_summary(counts: PredictionCounts, out: str) -> list[str]:
    """Describe the predictions for a file, and name the file that they are in."""
    lines = []
    if counts.ignored:
        names = quoted_list(counts.ignored, 5)
        lines.append(f"Ignored columns that the model does not use: {names}.")
    if counts.filled:
        lines.append(f"Empty cells were filled in: {_ranked(counts.filled)}.")
    if counts.unknown:
        lines.append(
            "Cells with a category that is new, or was too rare to learn from: "
            f"{_ranked(counts.unknown)}."
        )
    broken = broken_warning(counts)
    if broken:
        lines.append(f"Warning: {broken}")
    if lines:
        lines.append("")

    listed = dict(counts.classes)
    n_more = len(listed) - _MAX_LISTED_CLASSES
    if n_more > 0:
        listed = dict(counts.classes.most_common(_MAX_LISTED_CLASSES))
    width = max(len(text) for text in ["class", *listed])
    lines.append(f"  {'class'.ljust(width)}  predicted rows    share")
    for name, count in listed.items():
        share = _percent(count / counts.n_rows)
        lines.append(f"  {name.ljust(width)}  {count:>14,}  {share:>7}")
    if n_more > 0:
        lines.append(f"  and {n_more} more classes")
    return [*lines, "", f"Wrote {out}: {plural(counts.n_rows, 'row')}."]


def broken_warning(counts: PredictionCounts) -> str:
    """Name the columns with broken numbers; empty if there is none."""
    if not counts.broken:
        return ""
    return (
        "Numbers far outside of the columns of the fit count as usual ones: "
        f"{_ranked(counts.broken)}. Check units and decimal marks."
    )


def _ranked(counts: Mapping[str, int]) -> str:
    """List columns with their counts, the largest first."""
    largest = Counter(counts).most_common(_MAX_RANKED_COLUMNS)
    listed = ", ".join(f"{name!r} {n:,}" for name, n in largest)
    n_more = len(counts) - len(largest)
    return f"{listed} and {n_more} more columns" if n_more > 0 else listed


def standardized_coefficients(model: Any) -> list[dict[str, Any]]:
    """Return the discriminants, each with the coefficients of all features by size.

    A coefficient is that of the feature divided by its standard deviation within
    classes. High values of a discriminant speak for the class ``high``, low ones for
    ``low``. Two classes have one discriminant, the log odds of the second; K classes
    have K - 1, along the directions that separate the class means best, each with its
    ``share`` of the spread of these means. The list is empty for a model that is not a
    linear one of this package.
    """
    classifier = model[-1] if isinstance(model, Pipeline) else model
    linear_model = gaussian_model_of(classifier)
    if linear_model is None:
        return []
    standardized = linear_model.standardized_coefficients()
    classes = [str(name) for name in classifier.classes_]
    # Features of an array are named by their numbers.
    names = getattr(
        classifier, "feature_names_in_", feature_names(classifier.n_features_in_)
    )
    discriminants = []
    for k, axis in enumerate(standardized.coefficients):
        by_size = np.argsort(-np.abs(axis))
        coefficients = {str(names[j]): float(axis[j]) for j in by_size}
        # Where the means of the classes lie along this axis.
        positions = standardized.positions[:, k]
        title = f"discriminant {k + 1}"
        if len(classes) == 2:
            title = f"log odds of {classes[1]}"
        discriminants.append(
            {
                "title": title,
                "share": float(standardized.shares[k]),
                "low": classes[int(positions.argmin())],
                "high": classes[int(positions.argmax())],
                "coefficients": coefficients,
            }
        )
    return discriminants


def importance_lines(
    axes: Sequence[Mapping[str, Any]], details: Mapping[str, Any]
) -> list[str]:
    """List the columns that matter most below a title, one line per discriminant.

    If the model has no coefficients, say what decides instead.
    """
    if not axes:
        method = _method_of(details)
        decides = None if method is None else _DECIDING.get(method.name)
        return (
            [] if decides is None else ["", f"Columns have no coefficients: {decides}."]
        )
    lines = ["", "Columns that matter most (coefficients of standardized columns)"]
    for axis in axes[:_MAX_AXES]:
        terms = [f"{name} {value:+.2f}" for name, value in axis["coefficients"].items()]
        shown = ", ".join(terms[:_MAX_FEATURES_OF_AXIS])
        n_more = len(terms) - _MAX_FEATURES_OF_AXIS
        more = f" and {n_more} more" if n_more > 0 else ""
        share = ""
        if len(axes) > 1:
            percent = round(100 * axis["share"])
            share = f", {percent} % of what separates the classes"
        ends = f"from {axis['low']} (-) to {axis['high']} (+)"
        lines.append(f"  {axis['title']}, {ends}{share}: {shown}{more}")
    n_more = len(axes) - _MAX_AXES
    if n_more > 0:
        lines.append(f"  and {n_more} more discriminants")
    return lines
