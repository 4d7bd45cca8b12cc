"""Labels that look like mistakes, by held-out predictions of the labeled rows.

Most rows that are predicted wrongly lie where two classes overlap: they are hard, and
their labels are right. A wrong label lies anywhere, and most often in the middle of
another class. ``suspicious_labels`` tells the two apart by ranks instead of by a fixed
probability, because a fit to wrong labels is less sure of every row: its
probabilities already allow for the mistakes.
"""

from __future__ import annotations

import numpy as np

from ._core import AnyArray, Array

# At most this many labels are listed, because a person is to look at each.
_MAX_LISTED_ROWS = 10

# A class needs this many labels to show what its rows look like.
_MIN_ROWS_OF_CLASS = 5

# Classes overlap if more than this share of the labels is contradicted by predictions,
# not counting labels that look suspicious. A contradiction is nothing special then.
_MAX_HARD_SHARE = 0.1

# They also overlap if more than this share is contradicted in all: of so many labels,
# some look suspicious by chance.
_MAX_CONTRADICTED_SHARE = 0.15

# A class is not recognized if more than this share of its labels is contradicted, as
# those of a rare class often are: the model is wrong there, and not the labels. Such a
# class shows nothing about labels of another one either.
_MAX_CONTRADICTED_SHARE_OF_CLASS = 0.5


def suspicious_labels(probabilities: Array, codes: AnyArray) -> AnyArray:
    """Return the labeled rows whose labels held-out predictions clearly contradict.

    A label is clearly contradicted if another class is the likeliest, and if the row
    looks at least as much like a row of that class as half of the rows that have its
    label: the probability of the row's own label, relative to that of the other class,
    is at most their median. At most a tenth of the other labels may be contradicted,
    and at most 15 % of all labels. If there are more, the classes overlap, and none is
    listed. Of both classes, at most half of the labels may be contradicted: a model
    that does not recognize a class cannot judge its labels.

    No label is listed of 100 rows of iris or wine, and one of 300 digits on average. If
    5 of these labels are changed, two to four of the 5 are listed.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities of the classes by fits without the label of the row; NaN in rows
        that were not tested.
    codes : ndarray of shape (n_rows,)
        The class of every row, as a column of ``probabilities``.

    Returns
    -------
    rows : ndarray of int
        At most ten rows, that with the least probable label first.
    """
    is_tested = np.isfinite(probabilities).all(axis=1)
    # Rows that were not tested contradict nothing.
    likeliest = np.where(is_tested, np.nan_to_num(probabilities).argmax(axis=1), codes)
    contradicted = np.flatnonzero(likeliest != codes)
    n_classes = probabilities.shape[1]
    n_tested_of_class = np.bincount(codes[is_tested], minlength=n_classes)
    n_contradicted_of_class = np.bincount(codes[contradicted], minlength=n_classes)
    is_recognized = n_contradicted_of_class <= (
        _MAX_CONTRADICTED_SHARE_OF_CLASS * n_tested_of_class
    )
    is_suspicious = np.zeros(len(codes), dtype=bool)
    for row in contradicted:
        own = codes[row]
        other = likeliest[row]
        if not (is_recognized[own] and is_recognized[other]):
            continue
        of_other_class = probabilities[is_tested & (codes == other)]
        if len(of_other_class) < _MIN_ROWS_OF_CLASS:
            continue
        [share] = _share_of_own(probabilities[[row]], own, other)
        shares = _share_of_own(of_other_class, own, other)
        is_suspicious[row] = share <= np.median(shares)

    n_tested = is_tested.sum()
    n_hard = len(contradicted) - is_suspicious.sum()
    has_overlap = n_hard > _MAX_HARD_SHARE * n_tested
    has_overlap |= len(contradicted) > _MAX_CONTRADICTED_SHARE * n_tested
    if has_overlap:
        return np.array([], dtype=int)
    rows = np.flatnonzero(is_suspicious)
    own_probabilities = probabilities[rows, codes[rows]]
    return rows[np.argsort(own_probabilities, kind="stable")][:_MAX_LISTED_ROWS]


def _share_of_own(probabilities: Array, own: int, other: int) -> Array:
    """Return the share of one class in the probability of two; a half if that is 0."""
    of_both = probabilities[:, own] + probabilities[:, other]
    shares = np.full(len(probabilities), 0.5)
    np.divide(probabilities[:, own], of_both, out=shares, where=of_both > 0)
    return shares
