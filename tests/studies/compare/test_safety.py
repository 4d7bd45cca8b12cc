import json

import numpy as np
import pandas as pd
import pytest
from tables_of_results import contestants, make_table, table_of

pytest.importorskip("jinja2", reason="reports need iclda[experiments]")

from iclda._progress import show_nothing
from iclda.methods import COMPARED, FITTED, FURTHER, find_method
from iclda.studies.compare.cell_fits import CellData, encode, fit_cell
from iclda.studies.compare.findings import json_summary, read_findings, write_files
from iclda.studies.compare.lines import answer_lines
from iclda.studies.compare.plan import COMPARISON, Splits, line_up
from iclda.studies.compare.run import ComparisonPlan, open_run
from iclda.studies.compare.safety import find_bounds
from iclda.studies.store import cells_of

NAMES = "supervised", "em", "iclda"


def fitted(made, names, repeats=1):
    splits = Splits(made.labels, 4, repeats, None, seed=3)
    data = CellData(made.features, splits, contestants(*names), "impute", seed=3)
    cells = cells_of(COMPARISON, {"t": range(4)}, repeats)
    return data, cells, [fit_cell(cell, {"t": data}, names) for cell in cells]


def test_bounds_are_those_of_the_fit_to_the_training_rows():
    data, cells, found = fitted(make_table(), NAMES)
    for cell, (supervised, em, _) in zip(cells, found, strict=True):
        encoded = encode(data, data.splits.take(cell))
        model = data.contestants[1].classifier(3, encoded.size).fit(encoded.train, encoded.y)
        bounds = model.gain_bounds(encoded.train, encoded.y)
        assert json.loads(em.values["bounds"])["worst"] == pytest.approx(bounds.worst)
        assert "bounds" not in supervised.values


def test_only_the_first_repeat_has_bounds():
    _, cells, found = fitted(make_table(), ("em",), repeats=2)
    has_bounds = ["bounds" in fits[0].values for fits in found]
    assert has_bounds == [cell.repeat == 0 for cell in cells]


def test_every_method_is_fitted_and_has_bounds_if_it_has_a_density_and_uses_unlabeled_rows():
    names = [method.name for method in (*FITTED, *FURTHER)]
    _, _, (found, *_) = fitted(make_table(), names)
    for result in found:
        assert result.failure is None, result.failure
        method = find_method(result.method, COMPARED)
        has_bounds = hasattr(method.classifier(), "gain_bounds")
        assert ("bounds" in result.values) == (has_bounds and method.uses_unlabeled)


def few_labels():
    """More columns than labels: free fits give nearly all rows to one class."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.standard_normal((300, 80)) + 0.3 * y[:, None]
    labels = np.where(y, "yes", "no").astype(object)
    labels[16:] = None
    return table_of(pd.DataFrame(X, columns=[f"x{k}" for k in range(80)]), labels)


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    out = tmp_path_factory.mktemp("degenerate") / "out"
    methods = tuple(map(find_method, ("iclda", "iclda-proportions", "supervised")))
    options = {"shrinkages": (0.5,), "repeats": 2, "folds": 2}
    with open_run(ComparisonPlan(few_labels(), out, methods, **options)) as opened:
        opened.compare(show_nothing)
    return read_findings(out)


def test_a_comparison_says_which_fits_degenerated_and_what_keeps_them_from_it(findings):
    counts = {
        name: sum(r.values["is_degenerate"] for r in findings.compared if r.method == name)
        for name in ("iclda", "iclda-proportions", "supervised")
    }
    assert counts["iclda"] > 0
    assert counts["iclda-proportions"] == counts["supervised"] == 0
    said = " ".join(" ".join(answer_lines(findings, 400)).split())
    assert f"share of the labels: iclda in {counts['iclda']} of 4 splits." in said
    assert "iclda-proportions holds the class proportions of the labels" in said


def test_a_comparison_says_what_its_fits_can_lose(findings, tmp_path):
    said = " ".join(" ".join(answer_lines(findings, 400)).split())
    words = "of the 284 another class than supervised LDA, which does not use them."
    assert words in said
    paths = write_files(tmp_path, findings)
    summary = json_summary(findings, paths)
    assert summary["safety"] == findings.safety
    assert summary["bounds"]["disagreement"] == findings.bounds.disagreement
    page = " ".join(paths["report"].read_text().split())
    assert words in page
    assert "Whatever the true classes of the 284 unlabeled rows are" in page


def test_bounds_hold_in_every_split(findings):
    (sentence,) = [text for text in findings.safety if "can change" in text]
    contestant, bounds = find_bounds(findings)
    stored = [r.values.get("bounds") for r in findings.compared if r.method == contestant.name]
    shares = [json.loads(text)["disagreement"] for text in stored if text]
    assert len(shares) == 2  # folds of the first repeat
    assert bounds.disagreement == max(shares)
    assert f"by {100 * max(shares):.1f} percentage points at most" in sentence


def test_variants_take_part_in_comparisons():
    variant = find_method("iclda-proportions")
    size = Splits(few_labels().labels, 2, 1, None, seed=0).size(80)
    (contestant,) = line_up([variant], (0.5,), size)
    assert contestant.classifier(0, size).proportions == "labeled"
    assert contestant.name == "iclda-proportions"
