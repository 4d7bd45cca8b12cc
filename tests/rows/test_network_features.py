import numpy as np

from iclda._rows.network_features import are_network_features

FEATURES = np.random.default_rng(0).normal(size=(200, 80)) * np.linspace(1, 20, 80)


def test_features_of_a_network_are_many_measured_columns_in_one_unit():
    assert are_network_features(FEATURES)
    assert not are_network_features(FEATURES[:, :63])
    assert not are_network_features(FEATURES * 10.0 ** (np.arange(80) % 4))
    assert not are_network_features((FEATURES > 0).astype(float))
    few = np.hstack([FEATURES[:, :20], (FEATURES > 0)[:, 20:]])
    assert not are_network_features(few)


def test_one_column_in_another_unit_makes_a_table():
    columns = FEATURES.copy()
    columns[:, 7] *= 1e4
    assert not are_network_features(columns)


def test_columns_that_hardly_vary_are_still_features():
    columns = FEATURES.copy()
    columns[:, 7] = 1e-9 * columns[:, 7]
    assert are_network_features(columns)
