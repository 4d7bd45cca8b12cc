"""What follows from settings and stored rows."""

from types import SimpleNamespace

import numpy as np

from iclda.studies.compare.comparison import Comparison
from iclda.studies.compare.contestants import UNSHRUNK
from iclda.studies.compare.recommendation import recommend
from iclda.studies.compare.summary import summarize_comparison
from iclda.studies.compare.verdict import decide
from tests.helpers.comparisons import changed, contestants, results, rows_json


def verdict(brier=None, n_kept=None, **errors):
    """The verdict on errors; Brier scores of contestants may differ from these."""
    rows = results(**{name: table.tolist() for name, table in errors.items()})
    for name, value in (brier or {}).items():
        losses = np.full(5, value) + 0.01 * np.arange(5)
        rows = [
            changed(r, brier=float(losses.mean()), rows=rows_json(5 * r.part, losses))
            if r.method == name
            else r
            for r in rows
        ]
    names = [name.replace("_unshrunk", UNSHRUNK).replace("_", "-") for name in errors]
    lined_up = contestants(*names)
    return decide(
        summarize_comparison(rows, lined_up, 5), recommend(rows, lined_up), n_kept
    )


def test_curves_show_the_recommended_the_runner_up_the_baseline_and_the_best_outside():
    errors = {"supervised": 0.8, "em": 0.0, "iclda": 0.1, "self_learning": 0.7}
    few = {**errors, "sklearn_lda": 0.9}
    errors = {**few, "sklearn_logistic": 0.75, "moment": 0.9}
    rows = results(
        **{name: [[error, error + 0.1]] * 2 for name, error in errors.items()}
    )
    lined_up = contestants(*(name.replace("_", "-") for name in errors))
    settings = SimpleNamespace(
        contestants=lined_up,
        folds=2,
        n_kept=None,
        classes=("a", "b"),
        is_network=False,
        measure="brier",
        stopped={},
    )
    rows = [changed(each, confusion="[[0, 0, 3], [1, 1, 2]]") for each in rows]
    found = Comparison(settings, rows, 0.0)
    assert found.verdict.method == "em"
    assert found.on_curves == ["em", "iclda", "supervised", "sklearn-logistic"]
    names = [name.replace("_", "-") for name in few]
    some = Comparison(settings, [r for r in rows if r.method in names], 0.0)
    assert set(some.on_curves) == set(names)
    alone = Comparison(settings, [r for r in rows if r.method == "supervised"], 0.0)
    assert alone.on_curves == ["supervised"]
