"""The five methods by the names people give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import iclda

from .._messages import Hint, ParameterError, Text

Shrinkage = float | str | None


@dataclass(frozen=True)
class Method:
    """A classifier, what it is called, what it does in one sentence, and what it takes."""

    name: str
    paper_name: str
    class_name: str
    title: str
    sentence: str
    uses_unlabeled: bool = True
    is_searched: bool = False  # from many random starts, which takes long with many unknowns
    rests_on_labels: bool = False  # their covariance alone must be one, or the fit fails

    def classifier(self, *, shrinkage: Any = None, priors: Any = None, seed: int = 0) -> Any:
        """An unfitted classifier."""
        chosen = {"shrinkage": shrinkage, "priors": priors}
        if self.is_searched:
            chosen["random_state"] = seed  # no other method draws anything
        return getattr(iclda, self.class_name)(**chosen)


METHODS = (
    Method(
        "iclda",
        "ICLDA",
        "ImplicitlyConstrainedLDA",
        "implicitly constrained LDA",
        "Of all models that some labeling of the unlabeled rows would give, it is the one under "
        "which the labeled rows are likeliest.",
        is_searched=True,
    ),
    Method(
        "em",
        "EMLDA",
        "ExpectationMaximizationLDA",
        "LDA by expectation maximization",
        "It makes all rows as likely as it can, the labeled ones with their class and the "
        "unlabeled ones without.",
    ),
    Method(
        "self-learning",
        "SLLDA",
        "SelfLearningLDA",
        "self-learning LDA",
        "It labels the unlabeled rows itself, learns from them, and repeats that until the labels "
        "stand still.",
    ),
    Method(
        "moment",
        "MCLDA",
        "MomentConstrainedLDA",
        "moment constrained LDA",
        "It is fitted to the labeled rows, then moved so that its mean and covariance are those "
        "of all rows.",
        rests_on_labels=True,
    ),
    Method(
        "supervised",
        "LDA",
        "SupervisedLDA",
        "supervised LDA",
        "It learns from the labeled rows alone.",
        uses_unlabeled=False,
        rests_on_labels=True,
    ),
)


def find_method(name: str) -> Method:
    """A method by its name here or in the paper, in any case; ValueError lists what there is."""
    wanted = name.strip().casefold()
    for method in METHODS:
        if wanted in (method.name, method.paper_name.casefold(), method.class_name.casefold()):
            return method
    known = ", ".join(f"{method.name} ({method.paper_name})" for method in METHODS)
    raise ValueError(f"Unknown method {name!r}. There are: {known}.")


def parse_shrinkage(text: str) -> Shrinkage:
    """A number from 0 to below 1, or auto; 0 is no shrinkage."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ParameterError(
            Text(
                Hint("shrinkage"),
                f" must be a number from 0 to below 1, or auto, got {text!r}.",
            ),
            parameter="shrinkage",
            value=text,
        )
    return value or None
