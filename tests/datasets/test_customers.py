"""The table of customers that comes with the package."""

import hashlib
from importlib import resources

import pytest

from iclda.datasets import load_customers

FILES = resources.files("iclda.datasets") / "data"


def test_sixty_of_four_hundred_customers_have_a_class_and_some_cells_are_empty():
    pytest.importorskip("pandas", reason="tables need iclda[data]")
    customers = load_customers()
    assert customers.shape == (400, 6)
    assert customers["churn"].notna().sum() == 60
    assert set(customers["churn"].dropna()) == {"yes", "no"}
    gaps = customers.drop(columns="churn").isna().sum()
    assert list(gaps.index[gaps > 0]) == ["minutes"]
    assert set(customers["plan"]) == {"basic", "plus", "family"}


def test_the_file_is_the_one_whose_origin_the_notice_beside_it_tells():
    digest = hashlib.sha256((FILES / "customers.csv.bz2").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in (FILES / "LICENSES.md").read_text(encoding="utf-8")
