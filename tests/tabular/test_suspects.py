"""Labels that look wrong, with what a person needs to check them."""

import numpy as np
import pytest

from iclda.tabular.suspects import Suspect, find_suspects, suspect_lines


def test_a_suspect_has_its_row_number_its_label_and_the_likelier_class():
    codes = np.repeat([0, 1], 20)
    of_first = np.where(codes == 0, 0.9, 0.1)
    of_first[3] = 0.0
    probabilities = np.column_stack([of_first, 1 - of_first])
    rows = np.arange(40) * 10
    assert find_suspects(probabilities, codes, ["no", "yes"], rows) == [
        Suspect(row=30, label="no", predicted="yes", probability=1.0)
    ]


@pytest.mark.parametrize(
    ("probability", "text"), [(1.0, "100.0 %"), (0.9999, "> 99.9 %"), (0.95, "95.0 %")]
)
def test_a_probability_is_not_rounded_up_to_certainty(probability, text):
    suspect = Suspect(row=2, label="no", predicted="yes", probability=probability)
    assert suspect_lines([suspect], None)[-1].endswith(f"  {text}")


def test_no_suspects_take_no_line():
    assert suspect_lines([], 2) == []


@pytest.mark.parametrize(
    ("first_row_number", "end"),
    [
        (2, " (the header is row 1):"),
        (0, " (rows are counted from 0):"),
        (None, ":"),
    ],
)
def test_the_list_says_how_rows_are_counted_unless_ids_name_them(first_row_number, end):
    suspect = Suspect(row=2, label="no", predicted="yes", probability=0.9)
    heading = suspect_lines([suspect], first_row_number)[0]
    assert heading == f"The model contradicts these labels. Check them{end}"
