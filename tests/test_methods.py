"""The table of methods: names, old and new, and what follows from a row."""

import pytest
from typer.testing import CliRunner

from iclda.__main__ import make_app
from iclda.methods import (
    BASELINES,
    CHOSEN_BY_NAME,
    COMPARED,
    FITTED,
    find_method,
    known_method,
)
from iclda.studies.compare.contestants import find_compared


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


@pytest.mark.parametrize(
    ("old", "new"), [("confident", "self-training"), ("Logistic", "sklearn-logistic")]
)
def test_an_old_name_is_found_with_a_warning_that_gives_the_new_one(old, new):
    with pytest.warns(FutureWarning, match=f"{old!r} is named {new!r} now"):
        (method, *_) = find_compared([old])
    assert method.name == new


@pytest.mark.parametrize("options", [["fit", "--method"], ["compare", "--methods"]])
def test_the_command_line_notes_the_new_name_in_one_line(options, tmp_path):
    command, option = options
    told = CliRunner().invoke(
        make_app(), [command, "none.csv", "--target", "y", option, "confident"]
    )
    note = "Note: The method 'confident' is named 'self-training' now; "
    assert [line.startswith(note) for line in told.stderr.splitlines()][:2] == [
        True,
        False,
    ]


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
