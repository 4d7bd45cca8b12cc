import numpy as np
import pandas as pd

from iclda import compare
from iclda.methods import FAINT
from iclda.studies.compare.report import _colors_text, highlight
from tests.helpers.table_files import call, flowers, write


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


def test_figures_highlight_the_recommended_method_the_baseline_and_the_best_outside(
    tmp_path,
):
    names = ["em", "self-learning", "moment", "sklearn-lda", "sklearn-logistic"]
    options = {"methods": names, "repeats": 2, "folds": 2, "fast": True}
    found = compare(flowers(), target="species", shrinkage="auto", **options)
    colors = highlight(found)
    assert set(colors) == {"supervised", *names}
    # Four methods at most are not gray, fewer if one is two of these.
    shown = {name for name, color in colors.items() if color != FAINT}
    assert found.verdict.method in shown
    assert found.summary.baseline in shown
    assert len(shown & {"sklearn-lda", "sklearn-logistic"}) == 1
    assert len(shown) <= 3
    assert len({colors[name] for name in shown}) == len(shown)
    page = found.save(tmp_path)["report"].read_text()
    assert "95 %" not in page
    assert page.count("90 %") >= 2


def test_captions_explain_only_what_their_figures_show(tmp_path):
    """Dots of three values or fewer would coincide, and are not drawn."""
    options = {
        "target": "species",
        "methods": ["em", "sklearn-lda"],
        "folds": 2,
        "fast": True,
    }
    for repeats, n_captions in ((2, 0), (5, 1)):
        found = compare(flowers(), repeats=repeats, **options)
        page = found.save(tmp_path)["report"].read_text()
        assert page.count("small dots are single repeats") == n_captions
    assert "Blue: sklearn-lda" in page
    assert "Blue: sklearn-lda" in _colors_text(found, found.on_curves)
    assert "Blue" not in _colors_text(found, ["supervised", "em"])
