import numpy as np

from iclda._core.solvers.attainable import hold_all
from iclda._core.solvers.starts import _ascend, evaluate, separate_hills, starting_scores
from problems import draw_sample, problem_of


def test_separate_hills_are_those_found_one_by_one():
    sample = draw_sample(4, n_classes=3, n_features=13, n_labeled=9, n_unlabeled=150)
    problem = problem_of(sample)
    likelihood, held = problem.likelihood, hold_all(problem)
    starts = evaluate(likelihood, held, starting_scores(problem, 60, 0))
    climbers = _ascend(likelihood, held, starts, 8)
    points, values = climbers.points, climbers.values
    way = np.linspace(0, 1, 9)[1:-1, None, None]
    tops = []
    for i in np.argsort(-values, kind="stable"):
        ways = [likelihood.value(points[i] + way * (points[top] - points[i])) for top in tops]
        if all(stops.min() < values[i] - 1e-9 * likelihood.weight for stops in ways):
            tops.append(i)
    assert separate_hills(likelihood, points, values) == tops
    assert 8 < len(tops) < 60
