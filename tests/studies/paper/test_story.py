"""Sentences that fit the numbers."""

from result_rows import replace_values, table_rows

from iclda._messages import and_list
from iclda.studies.page import duration, p_text, signed
from iclda.studies.paper.story import headline, of_all
from iclda.studies.paper.tables import summarize_tables


def test_the_headline_claims_no_more_than_the_numbers():
    assert headline(summarize_tables(table_rows())).startswith("EM was not erratic")
    assert headline(summarize_tables(table_rows(methods=("LDA", "ICLDA")))).endswith("reproduced")
    erratic = [
        replace_values(row, error=0.45) if row.method == "EMLDA" else row for row in table_rows()
    ]
    assert "not erratic" not in headline(summarize_tables(erratic))


def test_words_for_numbers():
    assert [duration(s) for s in (4.21, 200, 7500)] == ["4.2 s", "3 min 20 s", "2 h 5 min"]
    assert [signed(v) for v in (0.04, -0.04, -1.25, 2)] == [
        "0.0",
        "0.0",
        "\N{MINUS SIGN}1.2",
        "+2.0",
    ]
    assert [p_text(p) for p in (0.0002, 0.04)] == ["< 0.001", "0.040"]
    assert [and_list(n) for n in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert of_all(0, 10) == "none of 10 data sets"
    assert of_all(10, 10) == "all 10 data sets"
    assert of_all(2, 2) == "both data sets"
    assert of_all(1, 1) == "the one data set run"
