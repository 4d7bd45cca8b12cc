"""Rows on a device. Nothing can be read from those of array-api-strict by accident."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.utils.fixes import parse_version

strict = pytest.importorskip("array_api_strict")

from iclda import (
    AverageLDA,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    ImplicitlyConstrainedLeastSquares,
    MomentConstrainedLDA,
    PessimisticLDA,
    SelfLearningLDA,
    SelfTrainingLDA,
    SupervisedLDA,
)
from iclda._core.frame import Frame, frame_of
from iclda._core.labelsums import GivenLabels, LinearRule, StackedRules
from iclda._core.rows import near_boundary
from iclda._core.solvers import on_device as on_device_module
from iclda._core.solvers.attainable import SoftLabels
from iclda._core.solvers.held import hold_in_memory
from iclda._core.solvers.on_device import DeviceSet, hold_where_fast
from iclda._core.solvers.streamed import StreamedSet
from iclda._rows import device, report_as
from iclda._rows.device_blocks import DeviceBlock
from iclda._rows.memory import MemoryRows
from iclda._rows.places import Place, is_out_of_memory, place_of, to_host
from iclda._rows.protocol import Request
from iclda.rows import progress
from tests.helpers.problems import (
    STREAMED,
    change_settings,
    draw_sample,
    near_all,
    problem_of,
)
from tests.helpers.row_sources import array_rows, assert_equal_passes, assert_equal_sums

RNG = np.random.default_rng(31)
X = (RNG.standard_normal((3000, 3)) * [1, 10, 100] + 5).astype(np.float32)
WEIGHTS = RNG.uniform(0.1, 2, len(X))
FRAME = frame_of(X[:100])
RULES = {
    "two, soft": LinearRule(
        5 * RNG.standard_normal((3, 2)), RNG.standard_normal(2), True
    ),
    "two, hard": LinearRule(
        5 * RNG.standard_normal((3, 2)), RNG.standard_normal(2), False
    ),
    "four, soft": LinearRule(
        5 * RNG.standard_normal((3, 4)), RNG.standard_normal(4), True
    ),
    "four, hard": LinearRule(
        5 * RNG.standard_normal((3, 4)), RNG.standard_normal(4), False
    ),
    "codes": GivenLabels(RNG.integers(4, size=len(X)), 4),
    "shares": GivenLabels(RNG.dirichlet(np.ones(4), size=len(X)), 4),
    "stacked": StackedRules(
        RNG.standard_normal((3, 3, 2)), RNG.standard_normal((3, 2))
    ),
}
LARGE = draw_sample(3, n_features=4, n_labeled=40, n_unlabeled=25_000, separation=1.0)


def on(device, array):
    return strict.asarray(array, device=strict.Device(device))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("block_rows", [1, 512, 700])
def test_block_size_changes_nothing_beyond_rounding(block_rows, name):
    n = 40 if block_rows == 1 else len(X)
    rule = RULES[name]
    is_member = np.arange(len(X)) % 3 > 0
    if isinstance(rule, GivenLabels):
        rule = GivenLabels(rule.labels[:n], 4)
    arguments = X[:n], WEIGHTS[:n], is_member[:n]
    expected = MemoryRows(*arguments)
    rows = array_rows(
        on("device1", arguments[0]), *arguments[1:], block_rows=block_rows
    )
    assert_equal_passes(rows, expected, rule, FRAME)
    shares = rows.responsibilities(rule, FRAME)
    assert_allclose(shares, expected.responsibilities(rule, FRAME), atol=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_single_precision_alone_keeps_six_digits_of_the_sums(name):
    rows = array_rows(on("no_float64", X), WEIGHTS)
    expected = MemoryRows(X, WEIGHTS)
    assert not rows.place.is_double
    assert_equal_passes(rows, expected, RULES[name], FRAME, 1e-6)


def test_an_origin_that_single_precision_cannot_hold_costs_nothing():
    rows = (np.float32(1e6) + RNG.integers(-8, 8, size=(2000, 2)) / 2).astype(
        np.float32
    )
    frame = frame_of(rows[:999])
    assert (frame.origin != frame.origin.astype(np.float32)).any()
    rule = LinearRule(RNG.standard_normal((2, 2)), np.zeros(2), True)
    found = array_rows(on("no_float64", rows))
    expected = MemoryRows(rows)
    assert_equal_passes(found, expected, rule, frame, 1e-6)


def test_a_rule_that_single_precision_cannot_hold_costs_no_digits():
    rule = LinearRule(np.zeros((3, 2)), np.array([1 + 2**-24.1, 1]), is_soft=False)
    found = array_rows(on("no_float64", X)).label_sums(rule, FRAME)
    assert_allclose(found.log_sum, rule.intercept[0] * len(X), rtol=1e-12)


def test_long_sums_in_single_precision_keep_their_digits():
    rows = np.full((300_000, 1), 0.1, dtype=np.float32)
    rows[::2] = -0.1
    frame = frame_of(rows)
    found = array_rows(on("no_float64", rows)).moments(frame)
    assert_equal_sums(found, MemoryRows(rows).moments(frame), 1e-7)


@pytest.mark.parametrize("device", ["CPU_DEVICE", "no_float64"])
def test_a_fit_of_many_rows_is_that_in_memory(device):
    rows = LARGE.X_unlabeled.astype(np.float32)
    model = ImplicitlyConstrainedLDA(tol=1e-5).fit(
        LARGE.X, LARGE.y, X_unlabeled=on(device, rows)
    )
    expected = ImplicitlyConstrainedLDA(tol=1e-5).fit(
        LARGE.X, LARGE.y, X_unlabeled=rows
    )
    assert model.converged_
    assert model.n_passes_ == expected.n_passes_ > 2
    assert_allclose(model.objective_, expected.objective_, rtol=1e-5)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-3)


@pytest.fixture
def brought(monkeypatch):
    """Numbers of rows that come back from a device: arrays as wide as LARGE."""
    n_rows = []

    def counted(array):
        found = to_host(array)
        if found.ndim == 2 and found.shape[1] == LARGE.X.shape[1]:
            n_rows.append(len(found))
        return found

    monkeypatch.setattr(device, "to_host", counted)
    return n_rows


@pytest.fixture
def brought_near(monkeypatch):
    """Numbers of rows near boundaries, which come after their weights."""
    n_rows = []

    def near_boundary(*arguments):
        found = DeviceBlock.near_boundary(*arguments)
        n_rows.append(len(found))
        return found

    monkeypatch.setattr(
        device,
        "DeviceBlock",
        type("_", (DeviceBlock,), {"near_boundary": near_boundary}),
    )
    return n_rows


# The average brings what its four fits bring.
SINGLE = {name: each for name, each in STREAMED.items() if each is not AverageLDA}


@pytest.mark.parametrize("classifier", SINGLE.values(), ids=SINGLE)
def test_no_rows_leave_the_device_but_those_of_pilot_sample_and_boundaries(
    classifier, brought, brought_near
):
    rows = np.concatenate([LARGE.X_unlabeled, LARGE.X_unlabeled])
    classifier().fit(LARGE.X, LARGE.y, X_unlabeled=on("device1", rows))
    assert 4096 <= sum(brought) < 4096 + 20_000 + 1000 < len(rows) / 1.9
    is_searched = classifier in (
        ImplicitlyConstrainedLDA,
        PessimisticLDA,
        ImplicitlyConstrainedLeastSquares,
    )
    assert is_searched == bool(brought_near)
    assert max(brought_near, default=0) <= 20_000


# Self-training holds its rows in memory, at most max_rows of the unlabeled ones.
@pytest.mark.parametrize(
    "classifier", [c for c in SINGLE.values() if c is not SelfTrainingLDA]
)
def test_many_labeled_rows_stay_on_the_device_too(classifier, brought):
    y = np.r_[LARGE.y, np.arange(len(LARGE.X_unlabeled)) % 2]
    y[20_000:] = -1
    model = classifier().fit(on("device1", LARGE.rows), on("device1", y))
    assert sum(brought) < 3 * 4096 + 5_040 + 1000
    assert_allclose(model.coef_, classifier().fit(LARGE.rows, y).coef_, rtol=1e-5)


@pytest.fixture
def moved(monkeypatch):
    """Sizes of the arrays that were moved to a device."""
    sizes = []
    put = Place.put_as_is

    def counted(place, array):
        sizes.append(np.size(array))
        return put(place, array)

    monkeypatch.setattr(Place, "put_as_is", counted)
    return sizes


def labeled_in_part(n_classes):
    """Rows of separate classes, and their labels, -1 for one of four rows."""
    y = np.arange(10_000) % n_classes
    rows = 9 * RNG.standard_normal((n_classes, 4))[y] + RNG.standard_normal((len(y), 4))
    return rows, np.where(np.arange(len(y)) % 4, y, -1)


@pytest.mark.parametrize(
    "classifier",
    [SupervisedLDA, MomentConstrainedLDA, SelfLearningLDA, ExpectationMaximizationLDA],
)
def test_a_fit_moves_as_many_arrays_to_the_device_for_many_blocks_as_for_one(
    classifier, moved, monkeypatch
):
    rows, y = labeled_in_part(3)
    classifier().fit(on("device1", rows), y)
    in_one_block = len(moved)
    monkeypatch.setattr(device, "_MIN_BLOCK_ROWS", 500)
    monkeypatch.setattr(device, "_DEVICE_BLOCK_ENTRIES", 0)
    moved.clear()
    classifier().fit(on("device1", rows), y)
    assert len(moved) == in_one_block < 100


def test_sums_of_labeled_rows_take_as_many_moves_and_products_for_many_classes(
    moved, monkeypatch
):
    products = []
    product = DeviceBlock._product

    def counted(block, left, right):
        products.append(left.shape)
        return product(block, left, right)

    monkeypatch.setattr(DeviceBlock, "_product", counted)
    counts = []
    for n_classes in (2, 50):
        rows, y = labeled_in_part(n_classes)
        SupervisedLDA().fit(on("device1", rows), y)
        counts.append((len(moved), len(products)))
        moved.clear()
        products.clear()
    assert counts[0] == counts[1]


@pytest.mark.parametrize("name", ["codes", "shares", "two, soft"])
def test_a_few_members_are_summed_without_reading_the_other_rows(name, monkeypatch):
    is_member = np.arange(len(X)) % 10 == 3
    read = []
    whole = device.ArrayRows._block

    def counted(self, index, frame):
        block = whole(self, index, frame)
        read.append(block.rows.shape[0])
        return block

    monkeypatch.setattr(device.ArrayRows, "_block", counted)
    rows = array_rows(on("device1", X), WEIGHTS, is_member, block_rows=70)
    centers = RNG.standard_normal((RULES[name].n_classes, X.shape[1]))
    for form in (
        lambda rows: rows.moments(FRAME),
        lambda rows: rows.label_sums(RULES[name], FRAME, centers),
    ):
        found = form(rows)
        assert sum(read) == is_member.sum()
        assert max(read) <= device._MIN_BLOCK_ROWS
        read.clear()
        assert_equal_sums(found, form(MemoryRows(X, WEIGHTS, is_member)))


def test_shares_near_0_and_1_cost_the_scatter_about_distant_centers_no_digits():
    centers = 1e6 * np.eye(3)[:2]
    codes = np.arange(len(X)) % 2
    shares = np.abs(np.eye(2)[codes] - 1e-14)
    noise = RNG.standard_normal(X.shape)
    frame = Frame(np.zeros(3), np.ones(3))
    rule = GivenLabels(shares, 2)
    rows = on("device1", centers[codes] + noise)
    found = array_rows(rows).label_sums(rule, frame, centers).scatter
    expected = MemoryRows(to_host(rows)).label_sums(rule, frame, centers).scatter
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("missing", [-1, np.nan], ids=["-1", "NaN"])
@pytest.mark.parametrize("classifier", [MomentConstrainedLDA, ImplicitlyConstrainedLDA])
def test_memory_has_masks_of_rows_on_a_device_and_no_copy_of_y(
    classifier, missing, monkeypatch
):
    # What torch holds is not counted, as if it were on a device.
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device.ArrayRows, "_is_on_cpu", False)
    n_rows = 3_000_000
    rows = torch.asarray(RNG.standard_normal((n_rows, 1)))
    y = np.full(n_rows, missing)
    y[:64] = np.arange(64) % 2
    classifier().fit(rows[:1000], y[:1000])
    tracemalloc.start()
    classifier().fit(rows, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * n_rows < y.nbytes


def room_for(most_rows, monkeypatch):
    """Let the device run out of memory for larger blocks."""
    whole = device.ArrayRows._block

    def limited(self, index, frame):
        if index.stop - index.start > most_rows:
            raise MemoryError("no room")
        return whole(self, index, frame)

    monkeypatch.setattr(device.ArrayRows, "_block", limited)


def test_38_blocks_get_smaller_when_the_device_runs_out_of_memory(monkeypatch):
    rows = np.tile(X, (3, 1))
    expected = array_rows(on("device1", rows)).moments(FRAME)
    room_for(2000, monkeypatch)
    found = array_rows(on("device1", rows)).moments(FRAME)
    assert_equal_sums(found, expected, 1e-12)


def test_38_a_device_without_room_for_a_small_block_is_an_error_that_says_what_to_do(
    monkeypatch,
):
    room_for(100, monkeypatch)
    with pytest.raises(
        MemoryError, match="a block of 1024 rows beside the 3000 x 3 array U: free"
    ):
        array_rows(on("device1", X), name="U").moments(FRAME)


def test_libraries_word_a_lack_of_memory_differently():
    for text in (
        "RESOURCE_EXHAUSTED: Out of memory while trying",
        "CUDA error: out of memory",
    ):
        assert is_out_of_memory(RuntimeError(text))
    assert not is_out_of_memory(RuntimeError("shapes cannot be multiplied"))


def test_a_bad_number_in_rows_that_a_fit_ignores_is_named_as_in_memory():
    rows = LARGE.X_unlabeled.copy()
    y = np.arange(len(rows)) % 2
    rows[12_345, 2] = np.inf
    y[100:] = -1
    for at in (lambda X: X, partial(on, "device1")):
        with pytest.raises(
            ValueError, match="X contains infinity, first in row 12345, column 2"
        ):
            SupervisedLDA().fit(at(rows), y)
        with pytest.raises(
            ValueError, match="X_unlabeled contains infinity, first in row 12345"
        ):
            SupervisedLDA().fit(LARGE.X, LARGE.y, X_unlabeled=at(rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((5, 3)), "X_unlabeled has 3 features, but X of fit has 4"),
        (np.zeros(4), r"must be 2-d, rows x features, got shape \(4,\)"),
        (np.zeros((5, 4), dtype=complex), "X_unlabeled holds .*complex128"),
    ],
)
def test_rows_of_another_shape_or_kind_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        SupervisedLDA().fit(LARGE.X, LARGE.y, X_unlabeled=on("device1", rows))


def test_results_of_no_rows_are_refused_as_in_memory():
    model = SupervisedLDA().fit(LARGE.X, LARGE.y)
    for none in (np.zeros((0, 4)), on("device1", np.zeros((0, 4)))):
        with pytest.raises(
            ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 4\)\)"
        ):
            model.predict(none)
    with pytest.raises(ValueError, match="X has 3 features, but X of fit has 4"):
        model.predict(on("device1", np.zeros((5, 3))))


def test_a_sample_unlike_the_other_rows_costs_no_digits():
    rows = 1e6 + RNG.standard_normal((5000, 2))
    # As if all rows were near zero.
    frame = frame_of(rows[:10] - 1e6)
    moments = array_rows(on("device1", rows)).moments(frame)
    found = moments.covariance * np.outer(frame.scale, frame.scale)
    assert_allclose(found, np.cov(rows.T, ddof=0), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_on_a_boundary_go_to_the_first_class(dtype):
    rows = RNG.uniform(-1, 1, size=(500, 3)).astype(dtype)
    # Up to rounding.
    rows[:, 0] = rows[:, 1] + rows[:, 2]
    coef = np.array([[1.0, 0], [-1, 0], [-1, 0]])
    frame = Frame(np.zeros(3), np.ones(3))
    there = on("device1" if dtype == "float64" else "no_float64", rows)
    found = array_rows(there).label_sums(LinearRule(coef, np.zeros(2), False), frame)
    assert found.counts.tolist() == [500, 0]


METHODS = [
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "score_samples",
    "impute",
]


@pytest.mark.parametrize("method", METHODS)
def test_results_are_where_the_rows_are(method):
    model = ImplicitlyConstrainedLDA().fit(
        LARGE.X, LARGE.y, X_unlabeled=LARGE.X_unlabeled[:50]
    )
    found = getattr(model, method)(on("device1", LARGE.X))
    assert found.device == strict.Device("device1")
    assert_allclose(to_host(found), getattr(model, method)(LARGE.X), rtol=1e-9)


def test_names_of_classes_come_back_as_names():
    names = np.array(["no", "yes"])[LARGE.y]
    model = SupervisedLDA().fit(on("device1", LARGE.X), names)
    assert_array_equal(model.predict(on("device1", LARGE.X)), model.predict(LARGE.X))


@pytest.mark.usefixtures("array_api_dispatch")
def test_under_dispatch_fitted_arrays_follow_x():
    rows = LARGE.rows[:300]
    y = np.r_[LARGE.y, np.full(260, -1)]
    model = ImplicitlyConstrainedLDA().fit(on("device1", rows), y)
    for name in (
        "means_",
        "covariance_",
        "coef_",
        "priors_",
        "responsibilities_",
    ):
        assert getattr(model, name).device == strict.Device("device1")
    assert isinstance(model.classes_, np.ndarray)


@pytest.mark.usefixtures("array_api_dispatch")
@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="scikit-learn had no such rule before 1.9",
)
def test_38_under_dispatch_rows_of_another_library_are_told_how_to_move():
    rows = LARGE.rows[:300]
    y = np.r_[LARGE.y, np.full(260, -1)]
    model = ImplicitlyConstrainedLDA().fit(on("device1", rows), y)
    with pytest.raises(ValueError, match="move_estimator_to"):
        model.predict(rows)
    with config_context(array_api_dispatch=False):
        assert len(model.predict(rows)) == 300


@pytest.fixture
def array_api_dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


def test_weights_and_labels_may_be_on_a_device():
    weights = 1.0 + np.arange(len(LARGE.X)) % 3
    found = SupervisedLDA().fit(
        *(on("device1", a) for a in (LARGE.X, LARGE.y, weights))
    )
    assert isinstance(found.coef_, np.ndarray)
    assert_allclose(
        found.coef_, SupervisedLDA().fit(LARGE.X, LARGE.y, weights).coef_, rtol=1e-9
    )
    scored = found.score(*(on("device1", a) for a in (LARGE.X, LARGE.y, weights)))
    assert scored == found.score(LARGE.X, LARGE.y, weights)


def test_every_pass_tells_how_far_it_is():
    told = []
    there = array_rows(on("device1", X), block_rows=2000)
    with progress(lambda *numbers: told.append(numbers)):
        with report_as(3):
            there.moments(FRAME)
        there.label_sums(RULES["two, soft"], FRAME)
    assert told == [(3, 2000, 3000), (3, 3000, 3000), (0, 2000, 3000), (0, 3000, 3000)]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_systems_are_solved_also_if_rounding_left_a_matrix_indefinite(library):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 6, 8))
    matrices = roots @ np.swapaxes(roots, 1, 2)
    right = rng.normal(size=(2, 6, 3))
    place = place_of(xp.asarray(right))
    indefinite = matrices - 5 * np.eye(6)
    assert np.linalg.eigvalsh(indefinite).min() < -0.1
    for matrix in (matrices, indefinite):
        found = place.fetch(place.solve(place.put(matrix), place.put(right)))
        assert_allclose(matrix @ found, right, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(LARGE.X_unlabeled)
    for sparse in (tensor.to_sparse(), tensor.to_sparse_csr()):
        with pytest.raises(
            TypeError, match=r"X_unlabeled is .*sparse_.*X_unlabeled\.to_dense"
        ):
            SupervisedLDA().fit(LARGE.X, LARGE.y, X_unlabeled=sparse)


def test_rows_of_torch_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X, requires_grad=True)
    expected = MemoryRows(X).moments(FRAME)
    for rows in (tensor, tensor.T.contiguous().T, torch.tensor(np.tile(X, 2))[:, 3:]):
        found = device.open_rows(rows, Request("X")).moments(FRAME)
        assert_equal_sums(found, expected, 1e-11)
    half = tensor.detach().bfloat16()
    found = array_rows(half).moments(FRAME)
    assert_equal_sums(found, MemoryRows(half.float().numpy()).moments(FRAME), 1e-11)
    assert_array_equal(
        array_rows(half).sample(9, 0)[0],
        MemoryRows(half.float().numpy()).sample(9, 0)[0],
    )


def test_jax_without_double_precision_fits_to_single_precision():
    jnp = pytest.importorskip("jax.numpy")
    rows = LARGE.X_unlabeled[:2000].astype(np.float32)
    assert not place_of(jnp.asarray(rows)).is_double
    model = ImplicitlyConstrainedLDA().fit(
        LARGE.X, LARGE.y, X_unlabeled=jnp.asarray(rows)
    )
    expected = ImplicitlyConstrainedLDA().fit(LARGE.X, LARGE.y, X_unlabeled=rows)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-5)
    assert type(model.predict_proba(jnp.asarray(rows))) is type(jnp.asarray(rows))


# Rows held on the device.

close = partial(assert_allclose, rtol=1e-9, atol=1e-11)


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def sample(request):
    return draw_sample(
        5, n_classes=request.param, n_features=4, n_labeled=12, n_unlabeled=300
    )


@pytest.fixture
def problem(sample):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(sample.rows))
    return problem_of(sample, weights=weights)


@pytest.fixture
def in_memory(problem):
    return hold_in_memory(problem, *problem.unlabeled.sample(300, 0))


@pytest.fixture
def on_device(problem, monkeypatch):
    change_settings(monkeypatch, "HOLDING", min_entries_on_device=0)
    place = place_of(on("device1", [0.0]))
    monkeypatch.setattr(type(problem.unlabeled), "held_at", place)
    return hold_where_fast(problem, *problem.unlabeled.sample(300, 0))


@pytest.fixture
def scores(problem):
    return 3 * np.random.default_rng(2).standard_normal(problem.labeled_point.shape)


def test_sums_are_those_of_rows_in_memory(in_memory, on_device, scores):
    stack = np.stack([scores, 100 * scores, -scores])
    found = on_device.soft_points(stack)
    expected = in_memory.soft_points(stack)
    close(found[0], expected[0])
    close(found[1], expected[1])
    close(on_device.label(scores).point, in_memory.label(scores).point)
    close(on_device.label(scores).log_sum, in_memory.label(scores).log_sum)
    for name in ("hard_point", "support", "spread", "scores_of_rows", "shares"):
        close(getattr(on_device, name)(scores), getattr(in_memory, name)(scores))


def test_rows_that_tie_go_to_the_first_class(in_memory, on_device):
    scores = np.zeros(in_memory.labeled_point.shape)
    close(on_device.hard_point(scores), in_memory.hard_point(scores))
    close(on_device.hard_point(scores)[1:], in_memory.labeled_point[1:])


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_derivatives_are_those_of_rows_in_memory(in_memory, on_device, scores, scale):
    found = on_device.label(scale * scores)
    expected = in_memory.label(scale * scores)
    direction = np.random.default_rng(3).standard_normal(scores.shape)
    close(found.product(direction), expected.product(direction))
    close(found.matrix(), expected.matrix())
    assert found.n_near == len(near_boundary(in_memory.shares(scale * scores)))


def test_the_other_rows_keep_their_labels(in_memory, on_device, scores):
    point = 2 * in_memory.labeled_point + 1
    labels = SoftLabels(scores=scores, point=point, log_sum=3.0)
    found = on_device.label_among(labels, is_thinned=True)
    expected = in_memory.label_among(labels, is_thinned=True)
    assert found.is_thinned
    assert found.log_sum == 3.0
    close(found.local_set.labeled_point, expected.local_set.labeled_point)
    close(
        found.local_set.label(-scores).point,
        expected.local_set.label(-scores).point,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [ImplicitlyConstrainedLDA, PessimisticLDA])
def test_a_fit_that_holds_rows_on_the_device_is_that_in_memory(
    monkeypatch, classifier, n_classes
):
    held = []
    change_settings(monkeypatch, "HOLDING", min_entries_on_device=1000)

    def counted(*args):
        held.append(args)
        return DeviceSet(*args)

    monkeypatch.setattr(on_device_module, "DeviceSet", counted)
    few = draw_sample(
        4, n_classes=n_classes, n_features=3, n_labeled=30, n_unlabeled=500
    )
    many = draw_sample(
        4, n_classes=n_classes, n_features=3, n_labeled=30, n_unlabeled=25_000
    )
    for sample in (few, many):
        rows = on("device1", sample.X_unlabeled)
        model = classifier(tol=1e-6).fit(sample.X, sample.y, X_unlabeled=rows)
        expected = classifier(tol=1e-6).fit(
            sample.X, sample.y, X_unlabeled=sample.X_unlabeled
        )
        assert held
        assert model.converged_
        assert model.gap_ <= 1e-6
        assert_allclose(model.objective_, expected.objective_, rtol=1e-5, atol=1e-6)
        held.clear()


def test_rows_are_held_in_memory_where_a_device_is_slow_or_rounds():
    rows = np.zeros((10, 2), dtype=np.float32)
    assert array_rows(on("device1", rows)).held_at is not None
    for name in ("CPU_DEVICE", "no_float64"):
        assert array_rows(on(name, rows)).held_at is None


def test_a_pass_holds_the_rows_near_boundaries_on_the_device(
    problem, on_device, scores
):
    found = StreamedSet(problem, on_device).label(scores)
    close(found.point, on_device.label(scores).point)
    assert found.local_set.place is on_device.place


def test_rows_near_boundaries_are_found_without_indices_from_memory(moved):
    rows = array_rows(on("device1", LARGE.X_unlabeled))
    rule = LinearRule(np.array([[500.0, 0.0]] * LARGE.X.shape[1]), np.zeros(2), True)
    frame = frame_of(LARGE.X)
    expected = MemoryRows(LARGE.X_unlabeled).label_sums(rule, frame, **near_all(rule))
    found = rows.label_sums(rule, frame, **near_all(rule))
    assert 0 < len(expected.near) < rows.n_rows / 3
    assert_allclose(found.near, expected.near, rtol=1e-10)
    assert sum(moved) < 1000 + len(expected.near)
