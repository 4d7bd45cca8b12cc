"""Colors that can be distinguished, and rows that can be drawn."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from iclda import SupervisedLDA
from iclda.methods import BASELINES, METHODS, find_method
from iclda.plots._look import (
    CLASS_COLORS,
    UNDECIDED,
    encode_shown,
    method_styles,
    mix,
    spread,
    to_rgb,
)

# How linear red, green and blue reach readers who lack one kind of cone (Machado et
# al., 2009).
SIGHT = {
    "all cones": np.eye(3),
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
) / np.array([[0.9505], [1.0], [1.089]])


def lab(color, sight="all cones"):
    """Lightness and two hues, in which distances are about those that are seen."""
    shares = to_rgb(color)
    linear = np.where(
        shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4
    )
    xyz = TO_XYZ @ np.clip(np.asarray(SIGHT[sight]) @ linear, 0, 1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_classes_look_alike_to_anyone(sight):
    seen = [lab(color, sight) for color in CLASS_COLORS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 13


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_rows_fade_from_the_color_of_their_class_to_gray(n_classes):
    sure = mix(np.eye(n_classes))
    expected = [to_rgb(CLASS_COLORS[k % len(CLASS_COLORS)]) for k in range(n_classes)]
    assert_allclose(sure, expected, atol=1e-12)
    undecided = mix(np.full((1, n_classes), 1 / n_classes))
    assert_allclose(undecided, [to_rgb(UNDECIDED)], atol=1e-12)
    half = mix([np.eye(n_classes)[0] / 2 + 0.5 / n_classes])
    assert_allclose(half, [(expected[0] + to_rgb(UNDECIDED)) / 2], atol=1e-12)


@pytest.mark.parametrize(
    "names",
    [
        [
            "MCLDA",
            "MomentConstrainedLDA",
            "mclda",
            "moment-constrained",
            "Moment Constrained LDA",
        ],
        ["ICLDA", "ImplicitlyConstrainedLDA", "iclda", "implicitly_constrained"],
    ],
)
def test_a_method_has_its_color_however_it_is_written(names):
    assert {style["color"] for style in method_styles(names).values()} == {
        find_method(names[0]).color
    }


def test_unknown_methods_differ_from_known_ones_and_from_each_other():
    names = [
        *(method.paper_name for method in (*METHODS, *BASELINES)),
        *(f"unknown {k}" for k in range(12)),
    ]
    styles = method_styles(names)
    assert len(
        {(style["color"], style["linestyle"]) for style in styles.values()}
    ) == len(names)


def test_labels_keep_their_distance_and_their_order():
    wanted = [0.5, 0.51, 0.1, 0.52, 0.9]
    placed = spread(wanted, 0.1)
    assert np.argsort(placed).tolist() == np.argsort(wanted).tolist()
    assert min(b - a for a, b in itertools.pairwise(sorted(placed))) >= 0.1 - 1e-12
    assert (placed[2], placed[4]) == (0.1, 0.9)


def test_a_table_that_is_not_read_yet_is_refused_with_what_to_pass():
    model = SupervisedLDA().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    with pytest.raises(
        TypeError, match=r"X is a LazyFrame, .* for example X.collect\(\)"
    ):
        encode_shown(model, pl.LazyFrame({"a": [1.0]}), None, -1)
