import numpy as np
from numpy.testing import assert_allclose
from tables_of_results import changed, contestants, results, rows_json

from iclda.methods import BASELINES, METHODS
from iclda.studies.compare.choice import losses_of_rows, recommend
from iclda.studies.compare.plan import Size, line_up

ERRORS = [[0.2, 0.4], [0.4, 0.4], [0.2, 0.2]]
BOTH = results(supervised=ERRORS, em=ERRORS)


def test_losses_are_means_over_repeats_of_every_row():
    losses, is_wrong = losses_of_rows(BOTH, ["em", "supervised"])
    assert losses.shape == is_wrong.shape == (2, 10)
    assert_allclose(is_wrong.mean(axis=1), np.mean(ERRORS))
    assert_allclose(losses[0, :5], [1, 1 / 3, 0, 0, 0])


def test_a_contestant_that_lacks_a_split_has_no_losses_and_is_not_chosen():
    lacking = [r for r in BOTH if (r.method, r.repeat, r.part) != ("supervised", 1, 0)]
    losses, _ = losses_of_rows(lacking, ["supervised", "em"])
    assert np.isnan(losses[0]).all()
    assert np.isfinite(losses[1]).all()
    assert recommend(lacking, contestants("supervised", "em")).chosen.name == "em"


def test_nothing_fitted_is_no_recommendation():
    assert recommend([], contestants("supervised", "em")) is None


def test_equal_losses_go_to_the_safest_and_shrunk_before_unshrunk():
    names = [
        "em without shrinkage",
        "em",
        "supervised without shrinkage",
        "iclda",
        "sklearn-logistic",
    ]
    names = [*names, "average", "self-training", "sklearn-self-training"]
    rows = [changed(r, rows=rows_json(0, [0.1] * 9)) for r in results(em=ERRORS)]
    rows = [type(r)(**{**vars(r), "method": name}) for r in rows for name in names]
    for left_out, expected in (
        ([], "average"),
        (["average"], "self-training"),
        (["average", "self-training"], "sklearn-logistic"),
        (["average", "self-training", "sklearn-logistic"], "em"),
        (["average", "self-training", "sklearn-logistic", "em"], "iclda"),
        (["average", "self-training", "sklearn-logistic", "em", "iclda"], "sklearn-self-training"),
    ):
        found = recommend(rows, contestants(*(n for n in names if n not in left_out)))
        assert found.chosen.name == expected


def test_unshrunk_variants_are_not_eligible_where_labels_are_few():
    few, many = Size(20, 2, 10), Size(500, 2, 10)
    methods = (*METHODS, *BASELINES)
    eligible = {c.name for c in line_up(methods, (None, "auto"), few) if c.is_eligible}
    assert "em" in eligible
    assert {each.name for each in BASELINES} <= eligible
    assert "em without shrinkage" not in eligible
    assert all(c.is_eligible for c in line_up(methods, (None, "auto"), many))
    assert all(c.is_eligible for c in line_up(methods, (None,), few))


def test_the_best_of_ours_is_named_beside_a_winner_of_scikit_learn():
    rows = results(supervised=ERRORS, em=ERRORS, **{"sklearn-logistic": np.zeros((3, 2))})
    found = recommend(rows, contestants("supervised", "em", "sklearn-logistic"))
    assert (found.chosen.name, found.own.name) == ("sklearn-logistic", "supervised")
    assert found.estimate.n_rows == found.n_rows == 10
