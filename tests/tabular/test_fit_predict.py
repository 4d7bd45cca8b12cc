"""What a fit says of itself to people with a table."""

import numpy as np
import pandas as pd
import pytest

from iclda import save_model
from iclda.model_files import model_details
from iclda.tabular import read_table
from iclda.tabular.fit_predict import _error_lines, fit_summary, fit_table


def test_that_nothing_was_learned_comes_first_and_nothing_is_praised(tmp_path):
    rng = np.random.default_rng(0)
    # Every labeled row occurs in both classes: the columns say nothing about them.
    X = np.vstack([np.repeat(rng.normal(size=(20, 4)), 2, axis=0), rng.normal(size=(60, 4))])
    labels = [*["a", "b"] * 20, *[None] * 60]
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(kind=labels)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    model, about = fit_table(read_table(tmp_path / "noise.csv", target="kind"))
    save_model(model, tmp_path / "m.skops", about=about)
    lines = fit_summary(model_details(tmp_path / "m.skops"))
    assert lines[0].endswith("fitted to 40 labeled and 60 unlabeled rows.")
    assert lines[2].startswith("Warning: Nothing was learned from these columns: ")
    said = "\n".join(lines)
    assert said.count("Nothing was learned") == 1
    assert "Chose" not in said
    assert "better than supervised LDA" not in said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (0.30, "too few labels to be sure that this is better than to call every row 'NA'"),
        (0.34, "that looks no better than to call every row 'NA', which gets 32 % wrong."),
    ],
)
def test_an_error_above_the_base_rate_is_not_put_down_to_few_labels(error, words):
    estimate = {"error": error, "text": "some of new rows wrong"}
    about = {"error": estimate, "learned": "unclear", "labeled": {"NA": 68, "yes": 32}}
    (line,) = _error_lines(about)
    assert line.startswith(f"Expect some of new rows wrong: {words}")
