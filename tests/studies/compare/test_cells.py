import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_val_score

from iclda.methods import COMPARED, Method, find_method
from iclda.model_selection import SemiSupervisedKFold
from iclda.studies.compare.cells import CellData, build_classifier, encode, fit_cell
from iclda.studies.compare.contestants import UNSHRUNK, Size, line_up
from iclda.studies.compare.splits import REPEATED_FOLDS, UNLABELED_CURVE, Splits
from iclda.studies.store import cells_of
from iclda.tabular import pipeline, preprocessing
from tests.helpers.comparisons import contestants, make_table

CELL = cells_of(REPEATED_FOLDS, {"t": range(4)}, 1)[0]
NAMES = (
    "supervised",
    f"supervised{UNSHRUNK}",
    f"em{UNSHRUNK}",
    "self-learning",
    "moment",
    "iclda",
)


def table(**columns):
    rng = np.random.default_rng(5)
    colors = np.array(["red", "green", "blue"], dtype=object)[rng.integers(3, size=64)]
    colors[::9] = None
    weights = np.where(rng.random(64) < 0.2, np.nan, 1000 + rng.standard_normal(64))
    return make_table(color=colors, weight=weights, **columns)


def data(made, n_labeled=None, names=NAMES):
    splits = Splits(made.labels, 4, 2, n_labeled, seed=3)
    return CellData(made.features, splits, contestants(*names))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_whole_pipeline_in_cross_validation(name):
    made = table()
    (contestant,) = contestants(name)
    cells = cells_of(REPEATED_FOLDS, {"t": range(4)}, 2)
    found = [fit_cell(cell, {"t": data(made)}, [name])[0] for cell in cells]
    model = pipeline(
        preprocessing(made.features),
        build_classifier(contestant, 3, Size(18, 2, 8)),
    )
    cv = SemiSupervisedKFold(4, n_repeats=2, unlabeled=None, random_state=3)
    scores = cross_val_score(
        model, made.features, made.labels, cv=cv, scoring="accuracy"
    )
    assert_allclose([1 - each.values["error"] for each in found], scores)


def test_nothing_is_learned_from_test_rows():
    made = table()
    cell = cells_of(REPEATED_FOLDS, {"t": range(4)}, 1)[1]
    before = data(made)
    rows = before.splits.cell_rows(cell)
    changed = made.features.copy()
    changed.loc[rows.test, "weight"] = 1e9
    changed.loc[rows.test, "color"] = "never seen"
    after = replace(before, features=changed)
    assert np.array_equal(encode(before, rows).train, encode(after, rows).train)


def test_a_failed_fit_is_a_result_with_its_traceback_and_the_others_go_on(monkeypatch):
    def fail(self, **options):
        raise RuntimeError("no such luck")

    made = data(make_table())
    good = Method.classifier
    monkeypatch.setattr(
        Method,
        "classifier",
        lambda self, **options: (fail if self.name == "em" else good)(self, **options),
    )
    found = fit_cell(CELL, {"t": made}, NAMES)
    (failure,) = [each for each in found if each.failure is not None]
    assert failure.method == f"em{UNSHRUNK}"
    assert "no such luck" in failure.failure
    assert failure.values == {}
    assert all("error" in each.values for each in found if each is not failure)


def test_rows_that_cannot_be_encoded_fail_every_fit_of_their_cell():
    made = data(make_table())
    times = [[hour] for hour in range(len(made.features))]
    broken = CellData(made.features.assign(when=times), *list(vars(made).values())[1:])
    found = fit_cell(CELL, {"t": broken}, NAMES)
    assert len(found) == len(NAMES)
    assert all("neither numbers nor text" in each.failure for each in found)


def test_a_search_over_many_unknowns_starts_once():
    many = Size(500, 2, 10)
    slow = Size(500, 11, 99)
    (contestant,) = line_up(
        [replace(find_method("iclda"), name="my iclda")], [None], many
    )
    assert build_classifier(contestant, 0, many).n_starts == 32
    assert build_classifier(contestant, 0, slow).n_starts == 1
    assert build_classifier(contestant, 7, many).get_params()["random_state"] == 7
    assert build_classifier(contestant, 0, many).unlabeled is None


def test_every_method_is_fitted():
    names = [method.name for method in COMPARED]
    for result in fit_cell(CELL, {"t": data(make_table(), names=names)}, names):
        assert result.failure is None, result.failure


def test_rows_of_the_comparison_are_stored_with_their_losses_those_of_curves_are_not():
    given = data(make_table())
    (found,) = fit_cell(CELL, {"t": given}, ["supervised"])
    stored = np.array(json.loads(found.values["rows"])).T
    rows, losses, is_wrong, codes, ranking = stored
    tested = given.splits.cell_rows(CELL).test
    assert rows.tolist() == tested.tolist()
    assert losses.mean() == pytest.approx(found.values["brier"])
    assert is_wrong.mean() == pytest.approx(found.values["error"])
    assert codes.tolist() == given.splits.labels.codes[tested].tolist()
    for code in (0, 1):
        above = ranking[codes == code].mean()
        assert 1 - above == pytest.approx(found.values["auc"])
    (point,) = fit_cell(
        cells_of(UNLABELED_CURVE, {"t": [4]}, 1)[0], {"t": given}, ["supervised"]
    )
    assert "rows" not in point.values
