"""What makes a class a display: a dataclass whose docstrings share the usual entries."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

# Parameters that several displays have; a docstring that describes one of them itself keeps that.
_SHARED = """\
X : array-like of shape (n_samples, n_features)
    Rows.
y : array-like of shape (n_samples,), default=None
    Their classes, or the marker; None: all unlabeled.
X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
    Further unlabeled rows.
unlabeled : object, default="auto"
    Marker of unlabeled rows in y; "auto": that of the classifier, or -1.
codes : ndarray of shape (n_samples,)
    Index of the class of every row, -1 for an unlabeled one.
classes : ndarray of shape (n_classes,)
    The classes.
pos_label : object, default=None
    Class whose probability is drawn. None: the second of two classes, the predicted one of
    more.
n_bins : int, default=10
    Number of bins.
strategy : {"uniform", "quantile"}, default="uniform"
    Bins of equal width, or of about equally many rows.
baseline : str, default=None
    Method the others are compared with; None: the supervised one, or else the first.
varied : str, default="n_unlabeled"
    What the sizes count: "n_unlabeled", "n_labeled", or the label of the axis.
score_name : str, default="score"
    What the scores are.
greater_is_better : bool, default=True
    Whether larger scores are better.
unit : str, default="repeats"
    What is paired.
as_error : bool, default=False
    Whether to draw 1 minus the score.
ax : matplotlib Axes, default=None
    Axes to draw in; None: new ones.
fill_kw : dict, default=None
    Passed to ``Axes.fill_between``.
**kwargs : dict
    Passed to ``plot``."""
_ATTRIBUTES = "Attributes\n----------\n"
_AXES = """\
ax_ : matplotlib Axes
    Axes drawn in.
figure_ : matplotlib Figure
    Its figure.
"""


@dataclass_transform(kw_only_default=True, eq_default=False)
def display(cls: type[T]) -> type[T]:
    """Make a class a dataclass, and complete its docstrings by what all displays have in common.

    Docstrings describe the parameters that are special to them. Others are described here, and so
    are ``ax_`` and ``figure_``, which all displays have, and what methods return.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    text = _with_shared(made.__doc__, inspect.signature(made).parameters)
    made.__doc__ = text.replace(_ATTRIBUTES, _ATTRIBUTES + _AXES)
    for name, member in vars(made).items():
        method = getattr(member, "__func__", member)  # of a class method
        if not name.startswith("_") and inspect.isfunction(method):
            names = list(inspect.signature(method).parameters)[1:]
            returned = f"display : {made.__name__}\n    What was drawn."
            text = _with_shared(method.__doc__, names)
            method.__doc__ = f"{text}\n\nReturns\n-------\n{returned}"
    return made


def _with_shared(docstring: str | None, names: Iterable[str]) -> str:
    """A docstring that lists parameters of these names, in their order."""
    before, title, after = inspect.cleandoc(docstring or "").partition("Parameters\n----------\n")
    own, gap, rest = after.partition("\n\n")
    entries = _entries(_SHARED) | _entries(own)
    # None is described where Python was told to leave docstrings out.
    listed = "\n".join(entries[name] for name in names if name in entries)
    return before + title + listed + gap + rest


def _entries(text: str) -> dict[str, str]:
    """Descriptions of parameters, by name."""
    entries = re.split(r"\n(?=\S)", text)
    return {entry.partition(" : ")[0].lstrip("*"): entry for entry in entries}
