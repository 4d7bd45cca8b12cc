"""Odd problems of all kinds have a finite fit or one clear error, whatever they hold.

``make test-slow`` draws thousands of them, always the same ones. To hunt for more:
``pytest -m slow tests/faults/test_properties.py``, which draws others every time.
"""

import re
import time
import traceback
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from iclda import AutoLDA, MomentConstrainedLDA
from iclda.methods import FITTED, FURTHER
from tests.helpers.changes import assert_finite
from tests.helpers.odd_problems import KINDS, OddProblem

# What the warnings of a fit begin with or say; all others are of NumPy or of nobody.
DOCUMENTED = re.compile(
    r"Rows span \d+ of \d+ dimensions|got no unlabeled rows"
    r"|labeled rows are too few, or too alike|seem to come from elsewhere"
    r"|has degenerated|was learned|far outside of"
)
# Every error says what to do.
WAY_OUT = re.compile(r"pass |rescale|label more rows|weights of similar size|Label ")

quick = settings(max_examples=250, derandomize=True, deadline=None, database=None)
long = settings(max_examples=6000, deadline=None, database=None, print_blob=True)


@st.composite
def odd_problems(
    draw, most_columns=6, most_classes=5, most_unlabeled=40, kinds=tuple(KINDS)
):
    d = draw(st.integers(1, most_columns))
    each = lambda values: st.tuples(*[values] * d)  # noqa: E731
    n_classes = draw(st.integers(2, most_classes))
    powers = st.integers(-90, 90)
    return OddProblem(
        kinds=draw(each(st.sampled_from(kinds))),
        scales=draw(each(st.integers(-6, 6) | st.integers(-140, 140))),
        offsets=draw(st.just(()) | each(st.integers(0, 15))),
        n_classes=n_classes,
        n_labeled=draw(st.integers(n_classes, 4 * n_classes)),
        n_unlabeled=draw(st.integers(0, most_unlabeled)),
        weights=draw(st.none() | st.tuples(powers, powers).map(sorted).map(tuple)),
        shrinkage=draw(st.sampled_from([None, 0.1, "auto", 1e-9, 0.99])),
        separation=draw(st.sampled_from([0.0, 2.0, 50.0])),
        seed=draw(st.integers(0, 999)),
    )


CLASSIFIERS_BY_NAME = {each.name: each.classifier for each in (*FITTED, *FURTHER)} | {
    f"moment-{variant}": partial(MomentConstrainedLDA, variant=variant)
    for variant in ("symmetric", "means-shifted")
}
# Processor time of a fit, which hardly depends on what else runs. Fits of such problems
# take half a second at most.
MAX_SECONDS = 15
names = st.sampled_from(list(CLASSIFIERS_BY_NAME))


def fit(name, problem):
    """The model, or None after a clear error; all warnings must be documented."""
    classifier = AutoLDA if name == "auto" else CLASSIFIERS_BY_NAME[name]
    X, y, weights = problem.draw()
    given = X.copy(), y.copy(), None if weights is None else weights.copy()
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = classifier(shrinkage=problem.shrinkage).fit(X, y, weights)
            assert_finite(model, X[y >= 0])
        except ValueError as raised:
            error = raised
    if error is not None:
        assert not isinstance(error, np.linalg.LinAlgError), error
        assert "iclda" in traceback.extract_tb(error.__traceback__)[-1].filename, error
        assert WAY_OUT.search(str(error)), error
        return None
    for warning in caught:
        is_known = DOCUMENTED.search(str(warning.message))
        assert issubclass(warning.category, ConvergenceWarning) or is_known, warning
    has_converged = getattr(model, "converged_", True)
    assert has_converged or any(
        issubclass(w.category, ConvergenceWarning) for w in caught
    )
    for before, after in zip(given, (X, y, weights), strict=True):
        assert_array_equal(before, after)
    return model


@quick
@given(names, odd_problems())
def test_an_odd_problem_has_a_finite_fit_or_one_clear_error(name, problem):
    fit(name, problem)


# Found by hunts: a class of hardly any weight, a spread that overflows with the terms
# of the graph, quotas that took half a minute, and steps that SciPy 1.14 looked for
# without an end.
FOUND = {
    "sda": OddProblem(
        ("class", "tied", "heavy tails", "collinear", "tied"),
        (69, -20, -116, -34, -72),
        (10, 4, 4, 11, 1),
        *(3, 3, 100, (89, 90), None, 2.0, 560),
    ),
    "em": OddProblem(
        ("tied", "integer", "duplicate"),
        (2, -6, -1),
        (),
        2,
        20,
        5,
        (-90, 90),
        1e-9,
        50.0,
        572,
    ),
    "iclda-proportions": OddProblem(
        ("integer", "binary", "integer"), (3, -5, 0), (), 3, 3, 39, None, None, 50.0, 3
    ),
    "moment-likelihood": OddProblem(
        ("collinear", "integer", "binary", "class"),
        (-45, 2, 1, -4),
        (),
        *(5, 5, 35, None, 1e-9, 0.0, 320),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_mended_stays_so(name):
    fit(name, FOUND[name])


@pytest.mark.slow
@long
@given(
    names | st.just("auto"),
    odd_problems(most_columns=40, most_classes=25, most_unlabeled=500),
)
def test_many_odd_problems_have_a_finite_fit_or_one_clear_error(name, problem):
    begin = time.process_time()
    fit(name, problem)
    assert time.process_time() - begin < MAX_SECONDS


@settings(quick, max_examples=40)
@given(
    names,
    odd_problems(most_columns=3, most_classes=3, kinds=("normal",)),
    st.sampled_from([2.0**-80, 0.125, 2.0**80]),
)
def test_the_unit_of_all_columns_changes_no_fit(name, problem, unit):
    make = partial(CLASSIFIERS_BY_NAME[name], shrinkage=problem.shrinkage)

    def make_scaled():
        scaled = make()
        # The weight ``beta`` of SDA is in squared units of the features.
        return scaled.set_params(beta=0.1 * unit**2) if name == "sda" else scaled

    X, y, _ = problem.draw()
    X /= np.power(10.0, problem.scales)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = make().fit(X, y)
        except ValueError as error:
            with pytest.raises(type(error)):
                make_scaled().fit(unit * X, y)
            return
        scaled = make_scaled().fit(unit * X, y)
    if getattr(model, "converged_", True):
        assert_allclose(
            scaled.predict_proba(unit * X), model.predict_proba(X), rtol=0, atol=1e-6
        )
