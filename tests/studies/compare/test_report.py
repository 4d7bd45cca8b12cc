import numpy as np
import pandas as pd

from tests.helpers.table_files import call, write


def test_the_terminal_shows_errors_by_class_of_what_is_recommended(tmp_path):
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
    said = call("compare", write(tmp_path), *options, "--out", tmp_path / "out")[1]
    assert "Errors by class: " in said
    assert "\n  class  rows  wrong   error" in said
    assert "Calling every row 'iris' gets 67 % wrong: " in said
    assert "balanced" not in said


def test_columns_of_noise_teach_nothing_and_uneven_classes_have_a_balanced_error(
    tmp_path,
):
    rng = np.random.default_rng(3)
    n = 200
    labels = np.where(np.arange(n) % 10 < 8, "common", "rare").astype(object)
    labels[100:] = None
    frame = pd.DataFrame({"x": rng.normal(size=n), "species": labels})
    options = "--target", "species", "--fast", "--methods", "em", "--jobs", "1"
    said = call("compare", write(tmp_path, frame), *options, "--out", tmp_path / "out")[
        1
    ]
    words = " ".join(said.split())
    answer = words.partition("Answer ")[2]
    assert answer.startswith(
        "100 labels cannot show that anything was learned: calling every row"
    )
    assert "gets 20 % wrong" in answer
    assert "gets 50.0 % wrong (balanced error)" in words
    assert "Next:" not in words
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>100 labels cannot show that anything was learned" in page
    assert 'class="chosen"' not in page
