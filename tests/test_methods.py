"""The table of methods: names, and what follows from a row."""

import pytest

from iclda.methods import (
    BASELINES,
    CHOSEN_BY_NAME,
    COMPARED,
    FITTED,
    find_method,
    known_method,
)


@pytest.mark.parametrize("method", COMPARED, ids=lambda method: method.name)
def test_a_method_is_found_by_each_of_its_names(method):
    assert find_method(method.name, COMPARED) is method
    assert find_method(method.paper_name.lower(), COMPARED) is method
    if not (method.options or method.is_outside):
        assert find_method(method.class_name, COMPARED) is method
    assert known_method(f"{method.name} (0.1)") is method


def test_self_training_is_the_class_of_this_package():
    assert find_method("self-training").class_name == "SelfTrainingLDA"
    assert find_method("SelfTraining").class_name == "SelfTrainingLDA"
    assert find_method("sklearn-self-training", COMPARED).is_outside


def test_methods_of_scikit_learn_are_fitted_only_where_they_are_offered():
    for method in BASELINES:
        assert find_method(method.name, CHOSEN_BY_NAME) is method
        with pytest.raises(ValueError, match="can be compared, but not chosen here"):
            find_method(method.name)


def test_a_classifier_gets_the_parameters_that_it_has():
    made = find_method("iclda-proportions").classifier(shrinkage=0.1, seed=3)
    assert (made.proportions, made.shrinkage, made.random_state) == ("labeled", 0.1, 3)
    assert find_method("em").classifier(priors=[0.5, 0.5], seed=3).priors == [0.5, 0.5]
    assert {"random_state", "n_starts"}.isdisjoint(find_method("em").parameters)
    assert all(method.classifier(proportions="labeled") for method in FITTED)
