"""Rows are opened once, whatever reads them."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

from iclda._rows import files
from iclda.model_selection import rows_to_label
from tests.helpers.problems import every_classifier

TRUE = np.arange(60) % 2
X = np.random.default_rng(3).standard_normal((60, 3)) + 2.0 * TRUE[:, None]
Y = np.where(np.arange(60) < 20, TRUE, -1)


@pytest.fixture
def opened(monkeypatch):
    """How often each argument was opened, by its name."""
    counts = Counter()
    open_rows = files.open_rows

    def counting(X, request, *arguments):
        counts[request.name] += 1
        return open_rows(X, request, *arguments)

    monkeypatch.setattr(files, "open_rows", counting)
    return counts


def parquet_file(folder, rows, name="rows"):
    path = folder / f"{name}.parquet"
    columns = {f"c{j}": column for j, column in enumerate(rows.T)}
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@every_classifier
def test_fit_and_predict_open_every_argument_once(classifier, opened, tmp_path):
    labeled_file = parquet_file(tmp_path, X[:40], "first")
    further_file = parquet_file(tmp_path, X[40:], "further")
    model = classifier().fit(labeled_file, Y[:40], X_unlabeled=further_file)
    assert opened == {"X": 1, "X_unlabeled": 1}
    opened.clear()
    predicted = model.predict(labeled_file)
    assert opened == {"X": 1}
    assert_array_equal(predicted, model.predict(pa.parquet.read_table(labeled_file)))


def test_weights_and_bounds_open_no_argument_again(opened, tmp_path):
    from iclda import SelfLearningLDA

    path = parquet_file(tmp_path, X)
    weights = np.linspace(0.5, 2, len(X))
    model = SelfLearningLDA().fit(path, Y, weights)
    assert opened == {"X": 1}
    opened.clear()
    model.gain_bounds(path, Y, weights)
    assert opened == {"X": 1}


def test_rows_to_label_opens_its_rows_once(opened, tmp_path):
    path = parquet_file(tmp_path, X)
    chosen = rows_to_label(path, 5, Y)
    assert opened == {"X": 1}
    assert_array_equal(chosen, rows_to_label(X, 5, Y))
