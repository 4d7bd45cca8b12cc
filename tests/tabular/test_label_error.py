"""The error that labels drawn at random show, where other labels were chosen."""

import numpy as np
import pandas as pd

from iclda.methods import find_method
from iclda.tabular import Table, pipeline
from iclda.tabular.label_error import wrong_on_random


def test_held_out_labels_train_no_fit_and_chosen_ones_are_not_tested():
    """The classes of random rows are noise that only a fit with their labels knows."""
    rng = np.random.default_rng(0)
    labels = np.full(80, None, dtype=object)
    labels[:40] = rng.choice(["a", "b"], 40)
    is_chosen = np.arange(80) < 10
    X = pd.DataFrame(rng.normal(size=(80, 3)))
    seen = []

    class Watched(find_method("supervised").load_class()):
        def fit(self, X, y):
            seen.append(
                {k for k, label in zip(X.index, y, strict=True) if label is not None}
            )
            return super().fit(X, y)

    table = Table(X, labels, "label", (), is_chosen=is_chosen)
    is_wrong = wrong_on_random(pipeline(None, Watched()), table)
    assert len(is_wrong) == 30
    assert all(set(range(10)) <= each for each in seen)
    assert sorted(k for each in seen for k in set(range(40)) - each) == list(
        range(10, 40)
    )
    seen.clear()
    is_training = np.arange(80) >= 5
    wrong_on_random(pipeline(None, Watched()), table, is_training)
    assert not any(each & set(range(5)) for each in seen)
