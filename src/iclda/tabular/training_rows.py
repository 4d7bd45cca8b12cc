"""Digests of the labeled rows of a fit, by which an evaluation leaves them out.

A model makes fewer errors on rows whose labels it learned from than on new ones. Its
file holds a digest of each of them, made of the numbers that the classifier reads:

    training = TrainingRows.of(encoded, table.is_labeled)
    training.are_in(encoded_rows_of_another_file)

In a table of few distinct rows, such as one of two categories, a new row may equal a
training row by chance. Its digests show no more than that a file may have the rows of
the fit.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._core import AnyArray
from .cells import require_for_tables

# Rows identify themselves if at most this share of the labeled ones has an equal row in
# the table of the fit.
_MAX_REPEATED_SHARE = 0.05
_DIGEST = np.dtype("<u8")


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The labeled rows of a fit.

    Attributes
    ----------
    digests : ndarray of uint64
        Their digests, sorted, each once.
    are_distinct : bool
        Whether a row with such a digest is one of them, and not just equal to it.
    """

    digests: AnyArray
    are_distinct: bool

    @classmethod
    def of(cls, rows: Any, is_labeled: AnyArray) -> Self:
        """Return the labeled ones among the encoded rows of a fit, a frame."""
        every_digest = _digests_of(rows)
        digests, counts = np.unique(every_digest, return_counts=True)
        times = dict(zip(digests.tolist(), counts.tolist(), strict=True))
        labeled = every_digest[is_labeled]
        n_repeated = sum(times[digest] > 1 for digest in labeled.tolist())
        are_distinct = n_repeated <= _MAX_REPEATED_SHARE * len(labeled)
        return cls(np.unique(labeled), bool(are_distinct))

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Read what ``to_json`` returned; no rows if it is anything else."""
        try:
            digests = np.frombuffer(base64.b64decode(stored["digests"]), _DIGEST)
            return cls(digests, bool(stored["are_distinct"]))
        # Models that were not fitted to a table have none.
        except (KeyError, TypeError, ValueError, binascii.Error):
            return cls(np.array([], dtype=_DIGEST), are_distinct=True)

    def to_json(self) -> Mapping[str, Any]:
        """Return the rows as values that JSON has."""
        text = base64.b64encode(self.digests.astype(_DIGEST).tobytes()).decode()
        return {"digests": text, "are_distinct": self.are_distinct}

    def find(self, rows: Any) -> AnyArray:
        """Return the digest of each encoded row; 0 if it equals no row of the fit."""
        digests = _digests_of(rows)
        is_known = np.isin(digests, self.digests)
        return np.where(is_known, digests, 0)


def _digests_of(rows: Any) -> AnyArray:
    """Return a number for every row of a frame, the same for rows of equal cells."""
    pandas = require_for_tables("pandas")
    # Adding 0.0 turns -0.0 into 0.0.
    numbers = rows.to_numpy(dtype=np.float64) + 0.0
    frame = pandas.DataFrame(numbers)
    digests = pandas.util.hash_pandas_object(frame, index=False)
    return np.asarray(digests, dtype=_DIGEST)
