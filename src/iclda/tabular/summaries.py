"""What was fitted and how it went, in words for readers who do not know the method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .._messages import plural, printable, quoted_list
from ..methods import METHODS
from .columns import COLUMN_TYPES
from .fit_predict import PredictionCounts

_FIT_TYPES = {  # of what `iclda fit` stores beside a model
    **dict.fromkeys(("command", "target"), str),
    **dict.fromkeys(("n_unlabeled", "n_agreeing"), int),
    **dict.fromkeys(("labeled", "empty_cells"), dict),
    **dict.fromkeys(("sources", "notes", "warnings"), list),
}


def fit_summary(details: Mapping[str, Any]) -> list[str]:
    """Rows, classes, method and diagnosis of a model, one paragraph a line."""
    about = _about(details)
    return [
        *_rows_lines(details, about),
        "",
        *_class_lines(details, about.get("labeled", {})),
        "",
        *_method_lines(details, about),
        *(f"Note: {text}" for text in about.get("notes", ())),
        *(f"Warning: {text}" for text in about.get("warnings", ())),
    ]


def show_summary(details: Mapping[str, Any]) -> list[str]:
    """Everything that a model file says about its model."""
    about = _about(details)
    settings = ", ".join(f"{name}={value!r}" for name, value in details["parameters"].items())
    versions = ", ".join(f"{name} {number}" for name, number in details["versions"].items())
    lines = [
        *fit_summary(details),
        "",
        f"Fitted     {details['created']} by iclda {details['iclda']}",
        *([f"Command    {about['command']}"] if about.get("command") else []),
        *(
            f"Data       {source['path']}, {source['n_rows']:,} rows, sha256 {source['sha256']}"
            for source in about.get("sources", ())
        ),
        f"Columns    {', '.join(details['columns'] or ['without names'])}",
        f"Settings   {details['classifier']}({settings})",
        f"Versions   {versions}",
        f"Checksum   sha256 {details['sha256']} of the whole file, as sha256sum prints it; its own "
        f"seal is intact (format {details['format']})",
    ]
    return [printable(line) for line in lines]


def prediction_summary(counts: PredictionCounts, out: Any) -> list[str]:
    """What became of the rows of a file."""
    lines = []
    if counts.ignored:
        names = f"{len(counts.ignored)} columns ({quoted_list(counts.ignored, 5)})"
        if len(counts.ignored) == 1:
            names = f"the column {counts.ignored[0]!r}"
        lines.append(f"Ignored {names} that the model does not use.")
    if counts.filled:
        lines.append(_filled_line(counts.filled))
    if counts.unknown:
        lines.append(
            "Cells with a category that the fit did not see, or too rarely to learn from: "
            f"{_ranked(counts.unknown)}."
        )
    if counts.far:
        lines.append(
            "Warning: cells over a million standard deviations from the training rows, so that "
            f"predictions mean little: {_ranked(counts.far)}. Check units and decimal marks."
        )
    width = max(len("class"), *map(len, counts.classes))
    lines += [""] if lines else []
    lines.append(f"  {'class'.ljust(width)}  predicted rows   share")
    for name, count in counts.classes.items():
        lines.append(f"  {name.ljust(width)}  {count:>14,}  {count / counts.n_rows:>6.1%}")
    lines += ["", f"Wrote {out}: {counts.n_rows:,} rows."]
    return [printable(line) for line in lines]


def _about(details: Mapping[str, Any]) -> dict[str, Any]:
    """What `iclda fit` stored; nothing if a user stored other things under the same names."""
    about = details["about"]
    if not all(isinstance(about.get(name), expected) for name, expected in _FIT_TYPES.items()):
        return {}
    counts = [*about["labeled"].values(), *about["empty_cells"].values()]
    are_sources = all(
        isinstance(source, dict)
        and {"path", "sha256", "n_rows"} <= source.keys()
        and isinstance(source["n_rows"], int)
        for source in about["sources"]
    )
    return dict(about) if are_sources and all(isinstance(n, int) for n in counts) else {}


def _rows_lines(details: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    name = details["classifier"]
    title = next((method.title for method in METHODS if method.class_name == name), name)
    title = f"{title[0].upper()}{title[1:]}"
    if not about:
        return [f"{title}, {details['n_features']} features."]
    n_labeled, n_unlabeled = sum(about["labeled"].values()), about["n_unlabeled"]
    rows = f"{n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows"
    if name == "SupervisedLDA":
        rows = f"{n_labeled:,} labeled rows; {n_unlabeled:,} unlabeled rows were not used"
    words = {each.name: each.columns for each in COLUMN_TYPES}
    kinds = Counter(words.get(kind, kind) for kind in (details["columns"] or {}).values())
    held = ": " + ", ".join(f"{n} of {kind}" for kind, n in kinds.items())
    if len(kinds) == 1:
        held = f" of {next(iter(kinds))}"
    return [
        f"{title} for {about['target']!r}, fitted to {rows}.",
        f"It reads {plural(kinds.total(), 'column')}{held}.",
        *([_filled_line(about["empty_cells"])] if about["empty_cells"] else []),
    ]


def _filled_line(counts: Mapping[str, int]) -> str:
    return f"Empty cells were filled in: {_ranked(counts)}."


def _class_lines(details: Mapping[str, Any], labeled: Mapping[str, int]) -> list[str]:
    names = [str(name) for name in details["classes"]]
    width = max(len("class"), *map(len, names))
    shares = details["priors"] or [float("nan")] * len(names)
    lines = [f"  {'class'.ljust(width)}  labeled rows  share in the model"]
    for name, share in zip(names, shares, strict=True):
        count = f"{labeled[name]:,}" if name in labeled else "-"
        lines.append(f"  {name.ljust(width)}  {count:>12}  {share:>18.1%}")
    return lines


def _method_lines(details: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    sentences = {method.class_name: method.sentence for method in METHODS}
    # Without unlabeled rows every method is the supervised one.
    is_supervised = not about.get("n_unlabeled", 1)
    name = "SupervisedLDA" if is_supervised else details["classifier"]
    lines = [sentences[name]] if name in sentences else []
    if "converged" in details["diagnosis"] and not is_supervised:
        lines.append(_convergence(details["diagnosis"]))
    if about:
        lines.append(
            f"{about['n_agreeing']:,} of {sum(about['labeled'].values()):,} labeled rows get "
            "their own class. It learned from these rows: `iclda compare` estimates how often it "
            "errs on new ones."
        )
    return lines


def _convergence(found: Mapping[str, Any]) -> str:
    steps = plural(found["n_iter"], "step")
    if not found["converged"]:
        return f"It did not converge in {steps}: see the warning, and do not rely on it."
    if "gap" not in found:
        return f"It converged in {steps}."
    optima = found["n_optima"]
    several = f", the best of {optima} solutions found" if optima > 1 else ""
    return (
        f"It converged in {steps}{several}: to first order no other labeling is better (gap "
        f"{max(found['gap'], 0):.0e})."
    )


def _ranked(counts: Mapping[str, int], most: int = 5) -> str:
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    cells = ", ".join(f"{name!r} {n:,}" for name, n in ranked[:most])
    return cells + (f" and {len(ranked) - most} more columns" if len(ranked) > most else "")
