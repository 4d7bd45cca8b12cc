from fault_table import FAULTS, PAGE, page_with_table, places


def test_every_fault_of_the_page_has_a_test_named_after_it():
    assert all(places()[number] for number in FAULTS)
    assert set(places()) == set(FAULTS)


def test_the_page_is_what_the_tests_say():
    text = PAGE.read_text()
    assert text == page_with_table(text), "run python tests/fault_table.py"
