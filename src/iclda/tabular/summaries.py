"""What was fitted and how it went, in words for people who do not know the method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._messages import plural, printable, quoted_list
from ..methods import METHODS
from .prediction import Predicted

_HELD = {"number": "numbers", "boolean": "true or false", "category": "categories"}


def fit_summary(details: Mapping[str, Any]) -> list[str]:
    """Rows, classes, method and diagnosis of a model, one paragraph a line."""
    return [
        *_rows_lines(details),
        "",
        *_class_lines(details),
        "",
        *_method_lines(details),
        *(f"Note: {text}" for text in _about(details).get("notes", ())),
        *(f"Warning: {text}" for text in _about(details).get("warnings", ())),
    ]


def show_summary(details: Mapping[str, Any]) -> list[str]:
    """All that a model file tells."""
    about = _about(details)
    lines = [
        *fit_summary(details),
        "",
        f"Fitted     {details['created']} by iclda {details['iclda']}",
    ]
    if about.get("command"):
        lines.append(f"Command    {about['command']}")
    lines += [
        f"Data       {source['path']}, {source['n_rows']:,} rows, sha256 {source['sha256']}"
        for source in about.get("sources", ())
    ]
    lines.append(f"Columns    {', '.join(details['columns'] or ['without names'])}")
    settings = [f"{name}={value!r}" for name, value in details["parameters"].items()]
    lines.append(f"Settings   {details['classifier']}({', '.join(settings)})")
    versions = ", ".join(f"{name} {number}" for name, number in details["versions"].items())
    lines.append(f"Versions   {versions}")
    lines.append(
        f"Checksum   sha256 {details['sha256']} of the whole file, as sha256sum prints it; its own "
        f"seal is intact (format {details['format']})"
    )
    return [printable(line) for line in lines]


def predicted_summary(done: Predicted, out: Any) -> list[str]:
    """What became of the rows of a file."""
    lines = []
    if done.ignored:
        lines.append(f"Ignored {_columns(done.ignored)} that the model does not use.")
    if done.filled:
        lines.append(f"Empty cells were filled in: {_counted(done.filled)}.")
    if done.strange:
        lines.append(
            "Cells with a category that the fit did not see, or too rarely to learn from: "
            f"{_counted(done.strange)}."
        )
    if done.far:
        lines.append(
            "Warning: cells over a million standard deviations from the training rows, so that "
            f"predictions mean little: {_counted(done.far)}. Check units and decimal marks."
        )
    width = max(len("class"), *map(len, done.counts))
    lines += [""] if lines else []
    lines.append(f"  {'class'.ljust(width)}  predicted rows   share")
    for name, count in done.counts.items():
        lines.append(f"  {name.ljust(width)}  {count:>14,}  {count / done.n_rows:>6.1%}")
    lines += ["", f"Wrote {out}: {done.n_rows:,} rows."]
    return [printable(line) for line in lines]


def _about(details: Mapping[str, Any]) -> dict[str, Any]:
    """What `iclda fit` keeps beside a model; people may keep other things under the same names."""
    about = details["about"]
    is_of_fit = all(name in about and is_fine(about[name]) for name, is_fine in _KEPT.items())
    return dict(about) if is_of_fit else {}


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())


def _are_sources(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(source, dict)
        and {"path", "sha256", "n_rows"} <= source.keys()
        and isinstance(source["n_rows"], int)
        for source in value
    )


_KEPT: dict[str, Callable[[Any], bool]] = {
    "command": lambda value: isinstance(value, str),
    "target": lambda value: isinstance(value, str),
    "sources": _are_sources,
    "labeled": _are_counts,
    "n_unlabeled": lambda value: isinstance(value, int),
    "n_agreeing": lambda value: isinstance(value, int),
    "empty_cells": _are_counts,
    "notes": lambda value: isinstance(value, list),
    "warnings": lambda value: isinstance(value, list),
}


def _rows_lines(details: Mapping[str, Any]) -> list[str]:
    about, name = _about(details), details["classifier"]
    title = next((method.title for method in METHODS if method.class_name == name), name)
    title = f"{title[0].upper()}{title[1:]}"
    if "labeled" not in about:
        return [f"{title}, {details['n_features']} features."]
    n_labeled, n_unlabeled = sum(about["labeled"].values()), about["n_unlabeled"]
    rows = f"{n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows"
    if name == "SupervisedLDA":
        rows = f"{n_labeled:,} labeled rows; {n_unlabeled:,} unlabeled rows were not used"
    return [f"{title} for {about['target']!r}, fitted to {rows}.", *_column_lines(details)]


def _column_lines(details: Mapping[str, Any]) -> list[str]:
    counts = Counter((details["columns"] or {}).values())
    held = {_HELD.get(kind, kind): n for kind, n in counts.items()}
    told = ": " + ", ".join(f"{n} of {kind}" for kind, n in held.items())
    if len(held) == 1:
        told = f" of {next(iter(held))}"
    n_columns = counts.total()
    lines = [f"It reads {plural(n_columns, 'column')}{told}."]
    if empty := _about(details)["empty_cells"]:
        lines.append(f"Empty cells were filled in: {_counted(empty)}.")
    return lines


def _class_lines(details: Mapping[str, Any]) -> list[str]:
    labeled = _about(details).get("labeled", {})
    names = [str(name) for name in details["classes"]]
    width = max(len("class"), *map(len, names))
    shares = details["priors"] or [float("nan")] * len(names)
    lines = [f"  {'class'.ljust(width)}  labeled rows  share in the model"]
    for name, share in zip(names, shares, strict=True):
        count = f"{labeled[name]:,}" if name in labeled else "-"
        lines.append(f"  {name.ljust(width)}  {count:>12}  {share:>18.1%}")
    return lines


def _method_lines(details: Mapping[str, Any]) -> list[str]:
    about = _about(details)
    sentences = {method.class_name: method.sentence for method in METHODS}
    # Without unlabeled rows every method is the supervised one.
    name = details["classifier"] if about.get("n_unlabeled", 1) else "SupervisedLDA"
    lines = [sentences[name]] if name in sentences else []
    lines += _convergence(details)
    if "n_agreeing" in about:
        lines.append(
            f"{about['n_agreeing']:,} of {sum(about['labeled'].values()):,} labeled rows get "
            "their own class. It learned from these rows: `iclda compare` tells how often it errs "
            "on new ones."
        )
    return lines


def _convergence(details: Mapping[str, Any]) -> list[str]:
    found = details["diagnosis"]
    if "converged" not in found or not _about(details).get("n_unlabeled", 1):
        return []
    rounds = plural(found["n_iter"], "step")
    if not found["converged"]:
        return [f"It did not converge in {rounds}: see the warning, and do not rely on it."]
    if "gap" not in found:
        return [f"It converged in {rounds}."]
    optima = found["n_optima"]
    several = f", the best of {optima} solutions found" if optima > 1 else ""
    return [
        f"It converged in {rounds}{several}: to first order no other labeling is better (gap "
        f"{max(found['gap'], 0):.0e})."
    ]


def _counted(numbers: Mapping[str, int], most: int = 5) -> str:
    ranked = sorted(numbers.items(), key=lambda item: -item[1])
    cells = ", ".join(f"{name!r} {n:,}" for name, n in ranked[:most])
    return cells + (f" and {len(ranked) - most} more columns" if len(ranked) > most else "")


def _columns(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the column {names[0]!r}"
    return f"{len(names)} columns ({quoted_list(names, 5)})"
