"""From a table to a scikit-learn pipeline: encode columns, then classify."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .._messages import Hint, ParameterError, Text
from .columns import CATEGORY, kinds_of
from .encoders import CategoryEncoder, NumberEncoder, refuse_clashes, refuse_gaps

MISSING = ("impute", "refuse")


def preprocessing(features: Any, *, missing: str = "impute") -> ColumnTransformer:
    """An unfitted transformer that turns the columns of a table into numbers.

    Numbers and booleans are kept, and their gaps filled with the median; a column with gaps in at
    least 1 of 10 rows, and in 10, gets a second one that says where they were. Categories become
    columns of 0 and 1, one for each but the most frequent; rare ones are pooled, and unknown ones
    count for nothing. All this is learned by ``fit``, so that it can be done inside a fold. The
    columns made are called after those of the table: "color = red", "age is empty".

    Parameters
    ----------
    features : DataFrame
        The table, without its target. Kinds and names of columns are taken from it, no number; with
        ``missing="refuse"`` its gaps are refused.
    missing : {"impute", "refuse"}, default="impute"
        Whether gaps are filled or an error.

    Returns
    -------
    transformer : ColumnTransformer
        Takes frames with these columns, in any order, and gives frames of numbers.
    """
    if missing not in MISSING:
        raise ParameterError(
            Text(Hint("missing"), f" must be one of {', '.join(MISSING)}, got {missing!r}."),
            parameter="missing",
            value=missing,
        )
    kinds = kinds_of(features)
    refuse_clashes(features, kinds)
    if missing == "refuse":
        for name in features.columns:
            refuse_gaps(features[name].isna().to_numpy(dtype=bool), name)
    numbers = [name for name, kind in kinds.items() if kind != CATEGORY]
    categories = [name for name, kind in kinds.items() if kind == CATEGORY]
    if not numbers and not len(CategoryEncoder().fit(features).get_feature_names_out()):
        raise ValueError(
            f"No column tells rows apart: {', '.join(map(repr, categories[:5]))} hold one value "
            "each, or none that is common enough. Add columns to learn from."
        )
    parts = [
        ("numbers", NumberEncoder(missing=missing, flagged="auto"), numbers),
        ("categories", CategoryEncoder(missing=missing), categories),
    ]
    encoder = ColumnTransformer(
        [part for part in parts if part[2]], verbose_feature_names_out=False
    )
    return encoder.set_output(transform="pandas")


def pipeline(encoder: Any, estimator: Any, *, scale: bool | None = None) -> Pipeline:
    """Encoder and classifier as one estimator that takes labels with None for unlabeled rows.

    Parameters
    ----------
    encoder : transformer
        As ``preprocessing`` gives it.
    estimator : classifier
        Is cloned; its parameter ``unlabeled`` becomes None, the mark that tables use.
    scale : bool, default=None
        Whether columns are divided by their standard deviation. Without shrinkage that changes
        nothing; None scales where there is shrinkage, which treats all columns alike.

    Returns
    -------
    pipeline : Pipeline
        Unfitted.
    """
    estimator = clone(estimator)
    parameters = estimator.get_params()
    if "unlabeled" in parameters:
        estimator.set_params(unlabeled=None)
    if scale is None:
        scale = parameters.get("shrinkage") is not None
    scaler = [("scale", StandardScaler().set_output(transform="pandas"))] if scale else []
    return Pipeline([("encode", clone(encoder)), *scaler, ("classify", estimator)])
