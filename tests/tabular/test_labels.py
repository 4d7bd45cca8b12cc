"""Labels of a file of their own: in the order of the rows, or joined by ids."""

import pytest

from tests.helpers.table_texts import read, write

FEATURES = "size,name,class\n1,p,x\n2,q,y\n3,r,x\n4,s,y\n"


def read_with(folder, labels, features=FEATURES, **options):
    write(folder, labels, "labels.csv")
    return read(
        folder, features, labels=folder / "labels.csv", **{"target": None, **options}
    )


def test_labels_of_another_file_follow_the_rows_or_are_joined_by_ids(tmp_path):
    table = read_with(tmp_path, "kind\na\n\nb\n\n", drop="name,class")
    assert (table.target, table.labels.tolist()) == ("kind", ["a", None, "b", None])
    assert [source.n_rows for source in table.sources] == [4, 4]
    joined = read_with(tmp_path, "name,kind\nr,b\np,a\n", id="name", drop="class")
    assert joined.labels.tolist() == ["a", None, "b", None]
    assert list(joined.features) == ["size"]


def test_the_target_of_the_table_gives_way_to_that_of_the_labels(tmp_path):
    table = read_with(tmp_path, "name,class\nr,b\np,a\n", id="name", target="class")
    assert table.labels.tolist() == ["a", None, "b", None]
    assert list(table.features) == ["size"]
    assert "'class' holds the target, which is taken from" in table.notes[0]


BAD_LABELS = {
    "another length": (
        "kind\na\nb\n",
        {},
        r"labels\.csv has 2 rows, and .*data\.csv has 4: .* set id to a column",
    ),
    "unknown ids": (
        "name,kind\np,a\nv,b\nw,a\nx,b\ny,a\n",
        {"id": "name"},
        r"no row of .*data\.csv has the 'name' 'v', 'w', 'x' and 1 more\.",
    ),
    "double ids": (
        "name,kind\np,a\nq,b\np,b\n",
        {"id": "name"},
        r"labels\.csv: column 'name' must .*'p' occurs 2 times",
    ),
    "no target": (
        "a,b,c\n1,2,3\n",
        {},
        r"one of 'a', 'b', 'c'\. If another file holds them, set labels to",
    ),
    "a wrong target": (
        "kind\na\nb\n",
        {"target": "kid"},
        "Did you mean 'kind' for 'kid'",
    ),
}


@pytest.mark.parametrize(
    ("labels", "options", "message"), BAD_LABELS.values(), ids=BAD_LABELS
)
def test_labels_that_do_not_fit_are_refused_with_the_way_out(
    tmp_path, labels, options, message
):
    with pytest.raises(ValueError, match=message):
        read_with(tmp_path, labels, **options)
