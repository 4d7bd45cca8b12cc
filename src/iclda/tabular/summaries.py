"""Summaries of models and predictions in words, for people who do not know the methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._estimators.base import LinearGaussianClassifier
from .._estimators.labels import FREE, LABELED
from .._messages import plural, quoted_list
from .._statistics import CLEAR, LEAST_TESTED, NOTHING, UNCLEAR, BaseRate, percent_text
from ..methods import FITTED, Method, known_method
from .encoders import type_named
from .fit_predict import FAR_DEVIATIONS, FitReport, PredictionCounts
from .table_files import feature_names

_BY_CLASS = {method.class_name: method for method in FITTED if not method.options}
# What is shown; --json has all of it.
_MOST_NAMED = 12  # columns
_MOST_FEATURES = 8  # of a discriminant
_MOST_AXES = 5
_MOST_CLASSES = 20


def fit_summary(details: Mapping[str, Any]) -> list[str]:
    """Rows, classes, method and diagnosis of a model, one paragraph a line."""
    report = FitReport.from_json(details["about"])
    method = _method_of(details)
    title = method.title if method else details["classifier"]
    title = f"{title[0].upper()}{title[1:]}"
    if report is None:
        first = f"{title}, {plural(details['n_features'], 'feature')}."
        return [first, *_class_lines(details, {}), *_method_lines(details, None)]
    warned = [f"Warning: {text}" for text in report.warnings]
    n_first = int(report.learned == NOTHING)  # that warning comes before all else
    return [
        *_rows_lines(title, details, report),
        *warned[:n_first],
        *_class_lines(details, report.labeled),
        *_method_lines(details, report),
        *(f"Note: {text}" for text in report.notes),
        *warned[n_first:],
    ]


def _method_of(details: Mapping[str, Any]) -> Method | None:
    """The method of a model; None for a classifier of the user's own."""
    by_name = known_method(str(details["parameters"].get("method", "")))
    return _BY_CLASS.get(details["classifier"], by_name)


def _rows_lines(title: str, details: Mapping[str, Any], report: FitReport) -> list[str]:
    n_labeled, n_unlabeled = sum(report.labeled.values()), report.n_unlabeled
    rows = f"{n_labeled:,} labeled and {plural(n_unlabeled, 'unlabeled row')}"
    kinds = Counter(
        type_named(kind).step for kind in (details["columns"] or {}).values()
    )
    held = ": " + ", ".join(f"{n} of {kind}" for kind, n in kinds.items())
    if len(kinds) == 1:
        held = f" of {next(iter(kinds))}"
    read = (
        plural(kinds.total(), "column") + held
        if kinds
        else f"{details['n_features']} features"
    )
    lines = [f"{title} for {report.target!r}, fitted to {rows}.", f"It reads {read}."]
    if report.empty_cells:
        lines.append(f"Empty cells were filled in: {_ranked(report.empty_cells)}.")
    return lines


def _class_lines(details: Mapping[str, Any], labeled: Mapping[str, int]) -> list[str]:
    names = [str(name) for name in details["classes"]]
    if len(names) > _MOST_CLASSES and labeled:
        fewest, most = min(labeled.values()), max(labeled.values())
        each = (
            plural(most, "labeled row")
            if fewest == most
            else f"{fewest} to {most} labeled rows"
        )
        rare = [name for name in names if labeled.get(name) == fewest]
        rarest = "" if fewest == most else f", {fewest} of {quoted_list(rare, 3)}"
        return ["", f"{len(names)} classes with {each} each{rarest}.", ""]
    width = max(len("class"), *map(len, names))
    shares = [f"  {share:>18.1%}" for share in details["priors"] or ()]
    heading = "  share in the model" if shares else ""
    lines = ["", f"  {'class'.ljust(width)}  labeled rows{heading}"]
    for name, share in zip_longest(names, shares, fillvalue=""):
        count = f"{labeled[name]:,}" if name in labeled else "-"
        lines.append(f"  {name.ljust(width)}  {count:>12}{share}")
    return [*lines, ""]


def _method_lines(details: Mapping[str, Any], report: FitReport | None) -> list[str]:
    # Without unlabeled rows every method is the supervised one.
    method, diagnosis = _method_of(details), details["diagnosis"]
    if (
        method
        and not method.is_outside
        and report is not None
        and not report.n_unlabeled
    ):
        method = _BY_CLASS["SupervisedLDA"]
    lines = [method.sentence] if method else []
    if "converged" in diagnosis:
        steps = plural(diagnosis["n_iter"], "step")
        converged, n_optima = f"It converged in {steps}", diagnosis.get("n_optima", 1)
        if not diagnosis["converged"]:
            converged = f"It did not converge in {steps}: see the warning, and do not rely on it"
        elif n_optima > 1:
            converged += f", the best of {n_optima} solutions found"
        lines.append(f"{converged}.")
    given = details["parameters"].get("proportions")
    if given not in (None, FREE):
        source = "of the labeled rows" if given == LABELED else "given"
        lines.append(
            f"It allows the unlabeled rows only classes in the proportions {source}."
        )
    if report is None:
        return lines
    if (
        report.learned == NOTHING
    ):  # neither why it was chosen nor what it cannot lose matters
        return [*lines, _error_line(report)]
    return [
        line
        for line in (report.choice, *lines, _error_line(report), report.safety)
        if line
    ]


def _error_line(report: FitReport) -> str:
    """The error to expect on new rows, or why it is unknown."""
    if report.error is not None:
        base = BaseRate.of_counts(report.labeled)
        doubt = "too few labels to be sure that this is better than"
        if report.error["error"] >= base.error:
            doubt = "that looks no better than"
        end = {
            CLEAR: "; to call every row {!r} would get {} wrong",
            UNCLEAR: f": {doubt} to call every row {{!r}}, which gets {{}} wrong",
        }.get(report.learned, "")  # a warning says that nothing was learned
        return f"Expect {report.error['text']}{end.format(base.majority, percent_text(base.error))}."
    if report.withheld:
        return f"How often it errs on new rows is not known: {report.withheld}."
    unknown = "How often it errs on new rows is not known: that takes"
    if report.n_tested >= LEAST_TESTED:
        return f"{unknown} three labeled rows a class or more."
    return (
        f"{unknown} {LEAST_TESTED} labeled rows of classes with two or more, and there are "
        f"{report.n_tested}. Label more rows."
    )


def show_summary(details: Mapping[str, Any]) -> list[str]:
    """Everything that a model file says about its model."""
    report = FitReport.from_json(details["about"])
    settings = ", ".join(
        f"{name}={value!r}" for name, value in details["parameters"].items()
    )
    versions = ", ".join(
        f"{name} {number}" for name, number in details["versions"].items()
    )
    shrinkage = details["diagnosis"].get("shrinkage")
    columns = list(details["columns"] or ["without names"])
    n_more = len(columns) - _MOST_NAMED
    more = f" and {n_more:,} more" if n_more > 0 else ""
    sources = () if report is None else report.sources
    return [
        *fit_summary(details),
        "",
        f"Fitted     {details['created']} by iclda {details['iclda']}",
        *(
            [f"Command    {report.command}"]
            if report is not None and report.command
            else []
        ),
        *(
            f"Data       {s.path}, {plural(s.n_rows, 'row')}, sha256 {s.sha256}"
            for s in sources
        ),
        f"Columns    {', '.join(columns[:_MOST_NAMED])}{more}",
        *([] if shrinkage is None else [f"Shrinkage  {shrinkage:.3g}"]),
        f"Settings   {details['classifier']}({settings})",
        f"Versions   {versions}",
        f"Checksum   sha256 {details['sha256']} of the whole file, as sha256sum prints it",
    ]


def prediction_summary(counts: PredictionCounts, out: str) -> list[str]:
    """What became of the rows of a file whose predictions were written to another one."""
    lines = []
    if counts.ignored:
        lines.append(
            f"Ignored columns that the model does not use: {quoted_list(counts.ignored, 5)}."
        )
    if counts.filled:
        lines.append(f"Empty cells were filled in: {_ranked(counts.filled)}.")
    if counts.unknown:
        lines.append(
            "Cells with a category that the fit did not see, or too rarely to learn from: "
            f"{_ranked(counts.unknown)}."
        )
    if far := far_warning(counts):
        lines.append(f"Warning: {far}")
    shown, n_more = list(counts.classes.items()), len(counts.classes) - _MOST_CLASSES
    if n_more > 0:
        shown = counts.classes.most_common(_MOST_CLASSES)
    width = max(len("class"), *(len(name) for name, _ in shown))
    lines += [""] if lines else []
    lines.append(f"  {'class'.ljust(width)}  predicted rows   share")
    for name, count in shown:
        lines.append(
            f"  {name.ljust(width)}  {count:>14,}  {count / counts.n_rows:>6.1%}"
        )
    lines += [f"  and {n_more} more classes"] if n_more > 0 else []
    return [*lines, "", f"Wrote {out}: {plural(counts.n_rows, 'row')}."]


def far_warning(counts: PredictionCounts) -> str:
    """Which columns have cells far from those of the fit; an empty text if none has."""
    if not counts.far:
        return ""
    return (
        f"Cells more than {FAR_DEVIATIONS} standard deviations from the mean of the training rows, "
        f"where predictions mean little: {_ranked(counts.far)}. Check units and decimal marks."
    )


def _ranked(counts: Mapping[str, int], most: int = 5) -> str:
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    cells = ", ".join(f"{name!r} {n:,}" for name, n in ranked[:most])
    return cells + (
        f" and {len(ranked) - most} more columns" if len(ranked) > most else ""
    )


def standardized_coefficients(model: Any) -> list[dict[str, Any]]:
    """Discriminants with the coefficient of every feature, the largest first.

    A coefficient is that of the feature divided by its standard deviation within classes. A high
    value speaks for the class ``high``, a low one for ``low``. Two classes have one discriminant,
    the log odds of the second; K have K - 1, which lie along the directions that separate the class
    means best, with the share of their spread. Nothing for a model that is not a linear one of this
    package.
    """
    classifier = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(classifier, LinearGaussianClassifier):
        return []
    spread = np.sqrt(np.maximum(classifier._variances, 0))
    classes = [str(name) for name in classifier.classes_]
    if len(classes) == 2:
        axes, titles = classifier.coef_ * spread, [f"log odds of {classes[1]}"]
        shares, points = np.ones(1), np.array([[0.0], [1.0]])
    else:
        gaussians = classifier._gaussians_
        scalings = (
            gaussians.discriminants(classifier._n_features_out).T
            / gaussians.frame.scale
        )
        axes = scalings * spread
        points = (
            classifier.means_ - classifier.priors_ @ classifier.means_
        ) @ scalings.T
        shares = classifier.priors_ @ points**2
        shares = shares / shares.sum()
        titles = [f"discriminant {number}" for number in range(1, len(axes) + 1)]
    names = getattr(
        classifier, "feature_names_in_", feature_names(classifier.n_features_in_)
    )
    return [
        {
            "title": title,
            "share": float(share),
            "low": classes[int(ends.argmin())],
            "high": classes[int(ends.argmax())],
            "coefficients": {
                str(names[k]): float(axis[k]) for k in np.argsort(-np.abs(axis))
            },
        }
        for title, share, ends, axis in zip(titles, shares, points.T, axes, strict=True)
    ]


def importance_lines(axes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that matter most, one line a discriminant, below an empty line and a title."""
    lines = (
        ["", "Columns that matter most (coefficients of standardized columns)"]
        if axes
        else []
    )
    for each in axes[:_MOST_AXES]:
        items = list(each["coefficients"].items())
        shown = ", ".join(
            f"{name} {value:+.2f}" for name, value in items[:_MOST_FEATURES]
        )
        more = (
            f" and {len(items) - _MOST_FEATURES} more"
            if len(items) > _MOST_FEATURES
            else ""
        )
        share = (
            f", {each['share']:.0%} of what separates the classes"
            if len(axes) > 1
            else ""
        )
        ends = f"from {each['low']} (-) to {each['high']} (+)"
        lines.append(f"  {each['title']}, {ends}{share}: {shown}{more}")
    n_more = len(axes) - _MOST_AXES
    return [*lines, f"  and {n_more} more discriminants"] if n_more > 0 else lines
