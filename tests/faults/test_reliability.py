import json
import subprocess
import sys

import pytest

from fault_table import FAULTS, PAGE, TESTS, page_with_table, places, shown_cases


def test_every_fault_of_the_page_has_a_test_named_after_it():
    assert all(places()[number] for number in FAULTS)
    assert set(places()) == set(FAULTS)


def test_the_page_is_what_the_tests_say():
    text = PAGE.read_text()
    assert text == page_with_table(text, shown_cases(text)), "run python tests/fault_table.py"


# In a process of its own: to collect all tests is to import them.
COUNT = "import fault_table, json; print(json.dumps(fault_table.count_cases()))"


@pytest.mark.slow
def test_the_page_has_the_number_of_cases():
    done = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=TESTS, check=True, stdout=subprocess.PIPE
    )
    counted = {int(number): count for number, count in json.loads(done.stdout).items()}
    assert shown_cases(PAGE.read_text()) == counted, "run python tests/fault_table.py"
