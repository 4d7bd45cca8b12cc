"""Groups of the rows of files, such as speakers: for fits, and to adapt predictions.

`read_groups` reads the column of groups for a fit. `AdaptedModels` adapts a model to
the rows of every group of a file that is then predicted::

    adapted = AdaptedModels(model, kinds, open_data(path), "speaker")
    adapted.lines  # what was done, for a person
    predict_file(model, kinds, path, out, adapted=adapted)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core import AnyArray, Array
from .._estimators.other_rows import MAX_SAMPLE_ROWS, OFFSET
from .._messages import plural, say
from .cells import require_for_tables, texts_of
from .files import open_data
from .predict import Kinds, PredictionCounts, check_columns, predicted_blocks
from .readers import DataReader, require_columns

_PURPOSE = say(", which {@group} names")
# Groups whose reasons are printed.
_MAX_LISTED_GROUPS = 10


def read_groups(paths: Iterable[Path], column: str) -> AnyArray:
    """Return the group of every row of some files, one after another, as text."""
    groups = []
    for path in paths:
        file = open_data(path)
        require_columns(file, [column], _PURPOSE)
        file.hold([], texts=[column])
        groups.append(texts_of(file.column(column).to_pylist(), empty=("",)))
    return np.concatenate(groups)


class AdaptedModels:
    """A model, adapted to the rows of every group of a file.

    Without a column of groups all rows of the file are one group. Rows without a group
    are predicted by the model as it is. ``lines`` say what was done.
    """

    def __init__(
        self,
        model: Any,
        kinds: Kinds,
        file: DataReader,
        column: str | None,
        change: str = OFFSET,
    ) -> None:
        self.column = column
        self._own = model[-1] if isinstance(model, Pipeline) else model
        if not hasattr(self._own, "adapt"):
            text = say(
                "{name} cannot be adapted: fit a model with {@method=average}, or "
                "leave out {@adapt}.",
                name=type(self._own).__name__,
            )
            raise ValueError(text)
        check_columns(file, kinds)
        require_columns(file, [] if column is None else [column], _PURPOSE)
        pandas = require_for_tables("pandas")
        # A random key for every row: the rows with the smallest ones are a sample.
        rng = np.random.default_rng(0)
        samples: dict[str, tuple[Any, Array]] = {}
        others = [] if column is None else [column]
        counts = PredictionCounts()
        for block in predicted_blocks(model, kinds, file, others, counts):
            groups = self._groups(block.rows)
            for group in sorted({*groups} - {None}):
                rows = block.encoded[groups == group]
                keys = rng.random(len(rows))
                if group in samples:
                    earlier_rows, earlier_keys = samples[group]
                    rows = pandas.concat([earlier_rows, rows])
                    keys = np.concatenate([earlier_keys, keys])
                kept = np.sort(np.argsort(keys)[:MAX_SAMPLE_ROWS])
                samples[group] = rows.iloc[kept], keys[kept]
        if column is not None and len(samples) == counts.n_rows > 1:
            raise ValueError(
                f"{file.path}: column {column!r} has one value a row, and a group "
                "needs several rows: name the column of the speaker or instrument."
            )
        is_named = hasattr(self._own, "feature_names_in_")
        self._models = {}
        for group, (rows, _) in sorted(samples.items()):
            encoded = rows if is_named else rows.to_numpy()
            self._models[group] = self._own.adapt(encoded, change=change)
        self.lines = self._describe()

    def by_group(self, method: str, block: Any, encoded: Any) -> Array:
        """Return what a method of the model of its group says about every row.

        ``encoded`` are the rows of the block, as the model takes them.
        """
        groups = self._groups(block)
        parts = []
        positions = []
        for group in {*groups}:
            is_member = groups == group
            model = self._models.get(group, self._own)
            parts.append(getattr(model, method)(encoded[is_member]))
            positions.append(np.flatnonzero(is_member))
        # They came group by group: put them into the order of the rows.
        order = np.argsort(np.concatenate(positions))
        return np.asarray(np.concatenate(parts)[order])

    def _groups(self, rows: Any) -> AnyArray:
        if self.column is None:
            return np.full(rows.num_rows, "", dtype=object)
        return texts_of(rows[self.column].to_pylist(), empty=("",))

    def _describe(self) -> list[str]:
        reasons = {
            group: str(model.adaptation_) for group, model in self._models.items()
        }
        if self.column is None:
            return [*reasons.values()]
        n_kept = sum(model.adaptation_.is_kept for model in self._models.values())
        lines = [f"Adapted to {n_kept} of {plural(len(reasons), 'group')}:"]
        listed = list(reasons.items())[:_MAX_LISTED_GROUPS]
        lines += [f"{self.column} {group}: {reason}" for group, reason in listed]
        if len(reasons) > len(listed):
            lines.append(f"and {len(reasons) - len(listed)} more groups.")
        return lines
