"""Numbers and dates as people write them are read as what they mean."""

import numpy as np
import pandas as pd
import pytest

from iclda.tabular.written_values import amount_form, amounts, date_form, dates

AMOUNTS = {
    "dollars": (["$1,889.50", "$20", "-$3.5", None], ".", [1889.5, 20, -3.5, np.nan]),
    "euros": (["1.889,50 €", "20 €"], ",", [1889.5, 20]),
    "percent": (["10%", "12.5 %"], ".", [10, 12.5]),
    "percent with a comma": (["10 %", "12,5 %"], ",", [10, 12.5]),
    "thousands": (["1,000,000", "999"], ".", [1e6, 999]),
    "blanks": (["1 234 567", "12"], ".", [1234567, 12]),
    "codes": (["USD 5", "USD 1,200.25"], ".", [5, 1200.25]),
}
OTHERS = [
    ["1", "2.5"],
    ["$5", "about 3"],
    ["12 kg", "3 kg"],
    ["1,2,3", "1,2"],
    ["$1,889.50", "1.889,50 $"],
    ["AB 12", "CD 13"],
    [],
]
DATES = {
    "day first": (["26/11/2007", "3/12/2007"], "%d/%m/%Y", True),
    "month first": (["11/26/2007", "12/03/2007", None], "%m/%d/%Y", True),
    "undecided": (["03/04/2007", "05/06/2007"], "%d/%m/%Y", False),
    "short years": (["26.11.07", "03.12.07"], "%d.%m.%y", True),
    "times": (["26/11/2007 16:30", "03/12/2007 09:00"], "%d/%m/%Y %H:%M", True),
    "halves of a day": (["11/26/2007 4:30 PM"], "%m/%d/%Y %I:%M %p", True),
    "names": (["12-Mar-2020", "03-May-2020"], "%d-%b-%Y", True),
    "months in May": (["May 12, 2020", "May 3, 2020"], "%b %d, %Y", True),
    "year first": (["2007/11/26"], "%Y/%m/%d", True),
}


@pytest.mark.parametrize(("texts", "sign", "numbers"), AMOUNTS.values(), ids=AMOUNTS)
def test_numbers_with_signs_are_read_by_the_sign_that_fits_all(texts, sign, numbers):
    form = amount_form(texts)
    assert (form.decimal, form.is_sure) == (sign, True)
    found, odd = amounts(pd.Series(texts, dtype=object), sign)
    assert odd is None
    np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize("texts", OTHERS, ids=str)
def test_plain_numbers_and_other_texts_have_no_such_form(texts):
    assert amount_form(texts) is None


def test_thousands_that_may_be_decimals_are_not_sure():
    assert amount_form(["$1,889", "$2,500"]) == (".", False)


@pytest.mark.parametrize(("texts", "form", "is_sure"), DATES.values(), ids=DATES)
def test_the_values_decide_what_comes_first_in_a_date(texts, form, is_sure):
    assert date_form(texts) == (form, is_sure)
    assert not dates([text for text in texts if text], form).isna().any()


@pytest.mark.parametrize(
    "texts",
    [["26/11/2007", "11/26/2007"], ["26/11/2007", "soon"], ["1.5", "2.5"], [None]],
    ids=str,
)
def test_texts_of_several_forms_are_no_dates(texts):
    assert date_form(texts) is None
