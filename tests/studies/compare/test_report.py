import numpy as np
import pandas as pd

from tests.helpers.table_files import call, write


def test_the_terminal_shows_errors_by_class_if_it_is_asked_to(tmp_path):
    options = (
        "--target",
        "species",
        "--fast",
        "--methods",
        "em",
        "--folds",
        "3",
        "--jobs",
        "1",
    )
    command = ["compare", write(tmp_path), *options, "--out", tmp_path / "out"]
    said = call(*command, "--verbose")[1]
    assert "Errors by class: " in said
    assert "\n  class  rows  wrong   error" in said
    assert "Always predicting 'iris' is wrong 67 % of the time; " in said
    assert "(balanced error)" not in said
    assert "Errors by class: " not in call(*command)[1]


def test_columns_of_noise_teach_nothing_and_uneven_classes_have_a_balanced_error(
    tmp_path,
):
    rng = np.random.default_rng(3)
    n = 200
    labels = np.where(np.arange(n) % 10 < 8, "common", "rare").astype(object)
    labels[100:] = None
    frame = pd.DataFrame({"x": rng.normal(size=n), "species": labels})
    options = "--target", "species", "--fast", "--methods", "em", "--jobs", "1"
    command = ["compare", write(tmp_path, frame), *options, "--out", tmp_path / "out"]
    said = call(*command, "--verbose")[1]
    words = " ".join(said.split())
    answer = words.partition("Answer ")[2]
    assert answer.startswith(
        "100 labels cannot show that anything was learned: always predicting 'common' "
        "is wrong 20 % of the time"
    )
    assert "the mean of their errors (balanced error) is 50.0 % with" in words
    assert "Next:" not in words
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>100 labels cannot show that anything was learned" in page
    assert 'class="chosen"' not in page
