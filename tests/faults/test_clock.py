"""Files of times that a clock cannot have had."""

import os

import numpy as np
import pytest
from table_files import call, write

from iclda import MomentConstrainedLDA, rows
from problems import draw_sample

TIMES = {"1970": 0, "2100": 4_102_444_800}


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_54_files_of_any_time_are_read(tmp_path, time):
    sample = draw_sample(3, n_classes=2, n_features=3, n_labeled=20, n_unlabeled=500)
    path = tmp_path / "rows.npy"
    np.save(path, sample.X_unlabeled)
    os.utime(path, (time, time))
    model = MomentConstrainedLDA().fit(sample.X, sample.y, X_unlabeled=rows.open(path))
    expected = MomentConstrainedLDA().fit(sample.X, sample.y, X_unlabeled=sample.X_unlabeled)
    np.testing.assert_allclose(model.coef_, expected.coef_)


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_54_a_model_and_a_table_of_any_time_are_used(tmp_path, time):
    data, out = write(tmp_path), tmp_path / "m.skops"
    options = ["--target", "species", "--method", "moment", "--out", out, "--quiet"]
    os.utime(data, (time, time))
    assert call("fit", data, *options) == (0, "", "")
    os.utime(out, (time, time))
    assert call("fit", data, *options) == (0, "", "")  # over a file of the future
    os.utime(out, (time, time))
    assert call("predict", out, data, "--out", tmp_path / "p.csv", "--quiet") == (0, "", "")
