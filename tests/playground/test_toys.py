"""Toy problems: every draw is one of the problem, and repeatable."""

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the playground needs iclda[playground]")

from iclda.playground.toys import (
    DECIMALS,
    LARGEST_COORDINATE,
    PROBLEMS,
    draw_toy_scene,
)

every_toy = pytest.mark.parametrize("toy", PROBLEMS, ids=lambda toy: toy.name)


@every_toy
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_class_has_its_labeled_points_and_all_points_are_on_the_page(toy, seed):
    drawn = draw_toy_scene(toy, seed)
    codes = [point[2] for point in drawn["labeled"]]
    assert np.bincount(codes).tolist() == [toy.n_labeled] * toy.n_classes
    assert len(drawn["unlabeled"]) == 1000
    points = np.array(drawn["labeled"] + drawn["unlabeled"])
    assert np.abs(points[:, :2]).max() <= LARGEST_COORDINATE
    np.testing.assert_array_equal(points, np.round(points, DECIMALS))


@every_toy
def test_a_seed_draws_the_same_points_and_another_seed_others(toy):
    assert draw_toy_scene(toy, 3) == draw_toy_scene(toy, 3)
    assert draw_toy_scene(toy, 3) != draw_toy_scene(toy, 4)


def test_the_true_classes_of_misleading_clusters_lie_across_them():
    (across,) = (toy for toy in PROBLEMS if toy.name == "across")
    points = np.array(draw_toy_scene(across, 0)["unlabeled"])
    # Points are rounded to thousandths after their class is drawn.
    is_clear = np.abs(points[:, 1] - points[:, 0]) > 0.01
    is_above = points[:, 1] > points[:, 0]
    np.testing.assert_array_equal(points[is_clear, 2] == 1, is_above[is_clear])
