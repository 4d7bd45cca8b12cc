import gzip
import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from iclda.tabular import read_table
from iclda.tabular.encoders import kinds_of

TEXT = "size,color,class\n1.5,red,a\n2,blue,b\n,red,\n4,,\n"


def write(folder, text, name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def read(folder, text, name="data.csv", target="class", **options):
    return read_table(write(folder, text, name), target=target, **options)


def test_features_keep_the_order_of_the_file_and_labels_are_text_or_none(tmp_path):
    table = read(tmp_path, TEXT)
    assert table.features.columns.tolist() == ["size", "color"]
    assert_array_equal(table.features["size"], [1.5, 2, np.nan, 4])
    assert table.features["color"].isna().tolist() == [False, False, False, True]
    assert table.labels.tolist() == ["a", "b", None, None]
    assert table.is_labeled.tolist() == [True, True, False, False]
    assert table.classes == ("a", "b")
    assert table.target == "class"


def test_the_digest_is_that_of_the_bytes(tmp_path):
    table = read(tmp_path, TEXT)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert [(s.n_rows, s.sha256) for s in table.sources] == [(4, digest)]


SPELLINGS = {
    "semicolons": TEXT.replace(",", ";").encode(),
    "decimal commas": TEXT.replace(",", ";").replace("1.5", "1,5").encode(),
    "bars": TEXT.replace(",", "|").encode(),
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "windows line ends": TEXT.replace("\n", "\r\n").encode(),
    "old line ends": TEXT.replace("\n", "\r").encode(),
    "mixed line ends": TEXT.replace("\n", "\r\n", 2).encode(),
    "no last line end": TEXT[:-1].encode(),
    "quotes": TEXT.replace("red", '"red"').replace("size", '"size"').encode(),
    "blank lines": ("\n" + TEXT.replace("\n", "\n\n")).encode(),
    "blanks around": TEXT.replace("red", " red ").replace(",a", ", a").encode(),
    "words for nothing": TEXT.replace("b\n,", "b\nNA,")
    .replace("4,,", "4,null,")
    .encode(),
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
def test_a_table_is_the_same_however_it_is_spelled(tmp_path, spelled):
    expected, found = read(tmp_path, TEXT), read(tmp_path, spelled, "other.csv")
    pd.testing.assert_frame_equal(found.features, expected.features)
    assert found.labels.tolist() == expected.labels.tolist()


def test_cells_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    text = 'x,"a, ""quoted""\nname",class\n1,"p\nq",u\n2,5" pipe,v\n3,"p\nq",v\n'
    table = read(tmp_path, text)
    assert table.features.columns.tolist() == ["x", 'a, "quoted"\nname']
    assert table.features.iloc[:, 1].tolist() == ["p\nq", '5" pipe', "p\nq"]


def test_parquet_gives_what_csv_gives(tmp_path):
    frame = pd.DataFrame(
        {
            "number": [1.5, None, 3.0, 4.0],
            "whole": pd.array([1, None, 3, 4], dtype="Int8"),
            "text": ["red", "blue", None, "red"],
            "flag": pd.array([True, None, False, True], dtype="boolean"),
            "kind": pd.Categorical(["p", "q", None, "p"]),
            "class": ["a", "b", None, None],
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    tables = [
        read_table(tmp_path / f"data.{kind}", target="class")
        for kind in ("csv", "parquet")
    ]
    pd.testing.assert_frame_equal(tables[0].features, tables[1].features)
    assert tables[0].labels.tolist() == tables[1].labels.tolist()


LABELS = {
    "categories, one of them unused": pa.DictionaryArray.from_arrays(
        [0, 1, None], ["1", "2", "9"]
    ),
    "uint64": pa.array([1, 2, None], pa.uint64()),
    "floats with nan": pa.array([1.0, 2.0, float("nan")]),
    "text of floats": pa.array(["1.0", "2", ""]),
    "categories": pa.array(["1", "2", None]).dictionary_encode(),
    "large text": pa.array([" 1", "2 ", " "], pa.large_string()),
}


@pytest.mark.parametrize("values", LABELS.values(), ids=LABELS)
def test_numbers_become_class_names_the_short_way(tmp_path, values):
    pq.write_table(
        pa.table({"x": [1.0, 2.0, 3.0], "class": values}), tmp_path / "data.parquet"
    )
    table = read_table(tmp_path / "data.parquet", target="class")
    assert table.labels.tolist() == ["1", "2", None]


def test_1_and_1_point_0_are_one_class_only_where_all_labels_are_numbers(tmp_path):
    assert read(tmp_path, "x,class\n1,1\n2,1.0\n3,2e0\n").classes == ("1", "2")
    assert read(tmp_path, "x,class\n1,1\n2,1.0\n3,two\n").classes == ("1", "1.0", "two")
    assert read(tmp_path, "x,class\n1,007\n2,012\n").classes == ("007", "012")


@pytest.mark.parametrize("mark", ["?", "unknown", "-1", "-1.0", "NA"])
def test_a_value_of_the_target_can_mark_unlabeled_rows(tmp_path, mark):
    cell = mark.removesuffix(".0")
    table = read(tmp_path, f"x,class\n1,1\n2,2\n3,{cell}\n4,\n", unlabeled=mark)
    assert table.labels.tolist() == ["1", "2", None, None]


@pytest.mark.parametrize("word", ["NA", "nan", "?", "unknown"])
@pytest.mark.parametrize("others", [("EU", "US"), ("0", "1")])
def test_words_for_nothing_are_classes_unless_told_and_a_note_says_so(
    tmp_path, word, others
):
    text = (
        f"x,class\n1.5,{others[0]}\n2,{others[1]}\n3,{word}\n4,{word}\n,{word}\nNA,\n"
    )
    table = read(tmp_path, text)
    assert table.labels.tolist() == [*others, word, word, word, None]
    assert table.warnings == (
        f"{word!r} in 'class' is a class: "
        f"pass unlabeled={word!r} if it marks unlabeled rows.",
    )
    told = read(tmp_path, text, unlabeled=word)
    assert told.labels.tolist() == [*others, None, None, None, None]
    assert told.warnings == ()
    assert told.features["x"].isna().tolist() == [False] * 4 + [True] * 2


def test_minus_one_is_a_class_unless_told_and_a_note_says_so(tmp_path):
    text = "x,class\n1.5,0\n2,1\n3,-1\n4,-1\n"
    table = read(tmp_path, text)
    assert table.classes == ("-1", "0", "1")
    assert table.warnings[0].startswith("'-1' in 'class' is a class")
    assert read(tmp_path, text, unlabeled="-1").warnings == ()
    assert read(tmp_path, "x,class\n1,1\n2.5,-1\n").warnings == ()


def test_rows_of_a_second_file_are_unlabeled_whatever_they_say(tmp_path):
    write(tmp_path, "class,color,size\na,green,9\nb,red,8.5\n", "more.csv")
    table = read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")
    assert table.features["size"].tolist()[4:] == [9, 8.5]
    assert table.features["color"].tolist()[4:] == ["green", "red"]
    assert table.labels.tolist()[4:] == [None, None]
    assert [source.n_rows for source in table.sources] == [4, 2]


def test_a_column_without_values_in_one_of_two_files_takes_the_kind_of_the_other(
    tmp_path,
):
    write(tmp_path, "x,flag,text\n1,,\n2,,\n", "more.csv")
    first = "x,flag,text,class\n1,True,p,a\n2,False,p,b\n"
    table = read(tmp_path, first, unlabeled_file=tmp_path / "more.csv")
    assert table.features["flag"].dropna().tolist() == [True, False]
    assert kinds_of(table.features[["flag", "text"]]) == {
        "flag": "boolean",
        "text": "category",
    }


def test_row_numbers_without_a_name_are_left_out_and_with_one_are_pointed_at(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 5.0, 2.0], "class": ["a", "b", None]})
    frame.to_csv(tmp_path / "index.csv")
    table = read_table(tmp_path / "index.csv", target="class")
    assert table.features.columns.tolist() == ["x"]
    assert table.notes == (
        "Column '(column 1)' has no name and numbers the rows: it was left out.",
    )
    table = read(tmp_path, "id,x,class\n1,1,a\n2,5,b\n3,2,\n")
    assert table.features.columns.tolist() == ["id", "x"]
    assert table.notes[0].startswith("Column 'id' looks like an id or a row number")


def test_empty_columns_are_left_out_with_a_note(tmp_path):
    table = read(tmp_path, "x,nothing,class,\n1,,a,\n5,NA,b,\n")
    assert table.features.columns.tolist() == ["x"]
    assert table.notes[0] == "Column 'nothing' is empty in all rows: it was left out."
    assert "'(column 4)'" in table.notes[1]


REFUSED = {
    "empty": (b"", "data.csv holds no rows below the names of its columns in row 1"),
    "header only": (b"x,class\n", "holds no rows below the names"),
    "open quote": (
        b'x,class\n1,a\n2,"b\n' + b"1,a\n" * 40_000,
        "row 3: a cell has a quote that is never closed",
    ),
    "long name": (b"x" * 200_000 + b",class\n1,a\n", "field larger than field limit"),
    "long row": (
        b"x,class\n1,a\n2," + b"b" * 3_000_000 + b"\n",
        "a row is over a megabyte",
    ),
    "utf-16": (
        "x,class\n1,a\n".encode("utf-16"),
        "is not UTF-8 text: byte 0 cannot be read",
    ),
    "name twice": (b"x,x,class\n1,2,a\n", "has 2 columns called 'x'"),
    "zero byte": (b"x\0,class\n1,a\n", "holds a zero byte: rename it"),
    "no such column": (
        b"x,clas\n1,a\n",
        "hold the classes: name it by target. Did you mean 'clas' for 'class'?",
    ),
    "short row": (b"x,class\n1,a\n2\n", "Row #3: Expected 2 columns, got 1"),
    "latin-1 far down": (
        b"x,class\n" + b"1,a\n" * 300_000 + b"1,\xe9\n",
        "row 300002, column 'class': must hold text: "
        "it is not UTF-8 text, save the file",
    ),
    "no label": (
        b"x,class\n1,\n2,\n",
        "got empty cells only (0 labeled rows). Label rows of each class, for example",
    ),
    "one class": (b"x,class\n1,a\n2,\n", "at least 2 classes, got 'a' (1 labeled row)"),
    "measurements": (
        b"x,class\n1,1.5\n2,2\n",
        "with fractions or infinity, for example 1.5",
    ),
    "only the target": (b"class\na\nb\n", "no column to learn from besides the target"),
    "many classes": (
        b"x,class\n" + b"".join(b"1,%d\n" % i for i in range(60)),
        "60 different values in 60 labeled rows",
    ),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_with_place_and_value(
    tmp_path, content, message
):
    write(tmp_path, content)
    with pytest.raises(ValueError, match=r"data\.csv") as error:
        read_table(tmp_path / "data.csv", target="class")
    assert message in str(error.value)


def test_other_files_and_folders_are_refused(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"PK\x03\x04\xff\xfe\n\n")
    with pytest.raises(ValueError, match=r"not UTF-8 text.*'CSV UTF-8'"):
        read_table(tmp_path / "data.xlsx", target="class")
    with pytest.raises(ValueError, match=r"is a folder without \.npy files"):
        read_table(tmp_path, target="class")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "data.csv", target="class")


@pytest.mark.parametrize("name", ["data.parquet", "data.csv.gz"])
@pytest.mark.parametrize("keep", [12, -10])
def test_a_parquet_or_packed_file_that_is_cut_off_is_refused(tmp_path, name, keep):
    frame = pd.DataFrame({"x": [1.0, 2.0], "class": ["a", "b"]})
    frame.to_parquet(tmp_path / name) if name.endswith("parquet") else frame.to_csv(
        tmp_path / name
    )
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:keep])
    with pytest.raises(ValueError, match=rf"{name} cannot be read"):
        read_table(tmp_path / name, target="class")


@pytest.mark.parametrize("name", ["data.TSV.gz", "data.txt"])
def test_the_suffix_tells_the_kind_of_file(tmp_path, name):
    text = TEXT.replace(",", "\t").encode()
    found = read(tmp_path, gzip.compress(text) if name.endswith("gz") else text, name)
    pd.testing.assert_frame_equal(found.features, read(tmp_path, TEXT).features)


def test_options_that_name_nothing_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="no row has the unlabeled value 'x' in column 'class'"
    ):
        read(tmp_path, TEXT, unlabeled="x")
    with pytest.raises(ValueError, match=r"no column 'colour'. Did you mean 'color'"):
        read(tmp_path, TEXT, drop=["colour"])
    with pytest.raises(ValueError, match="'class' is the target and cannot be dropped"):
        read(tmp_path, TEXT, drop=["class"])


def test_options_may_be_a_number_or_one_name(tmp_path):
    table = read(
        tmp_path, "x,color,class\n1,p,-1\n2,p,1\n3,p,2\n", unlabeled=-1, drop="color"
    )
    assert (table.labels.tolist(), list(table.features)) == ([None, "1", "2"], ["x"])
    with pytest.raises(ValueError, match="has no column 3"):
        read(tmp_path, TEXT, target=3)


def test_a_second_file_needs_the_columns_of_the_first_and_their_kinds(tmp_path):
    write(tmp_path, "size\n1\n", "more.csv")
    with pytest.raises(
        ValueError, match=r"more\.csv has no column 'color', which .*data\.csv has"
    ):
        read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")
    write(tmp_path, "size,color\nlarge,red\n", "more.csv")
    with pytest.raises(
        ValueError, match=r"Column 'size' holds other kinds of .*'large'"
    ):
        read(tmp_path, TEXT, unlabeled_file=tmp_path / "more.csv")


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
        r"labels\.csv has 2 rows, and .*data\.csv 4: .* column of ids by id\.",
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
    "no target": ("a,b,c\n1,2,3\n", {}, r"out of 'a', 'b', 'c'. labels names"),
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


def test_many_classes_of_one_label_are_classes_where_rows_are_many(tmp_path):
    text = "x,class\n" + "".join(f"{k},{k if k < 60 else ''}\n" for k in range(1_200))
    assert len(read(tmp_path, text).classes) == 60


LISTS = [[float(k), k / 2] for k in range(4)]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32()), pa.list_(pa.float16(), 2), pa.large_list(pa.int8())],
    ids=str,
)
def test_lists_of_numbers_are_a_feature_a_number(tmp_path, kind):
    number = kind.value_type.to_pandas_dtype()
    lists = [[number(v) for v in row] for row in LISTS]
    columns = {
        "embedding": pa.array(lists, kind),
        "size": [1.0, 2, 3, 5],
        "class": list("abab"),
    }
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", target="class")
    assert sorted(table.features) == ["embedding_0", "embedding_1", "size"]
    assert_array_equal(table.features[["embedding_0", "embedding_1"]], lists)
    only = read_table(tmp_path / "data.parquet", target="class", keep="embedding")
    assert list(only.features) == ["embedding_0", "embedding_1"]


BAD_LISTS = {
    "another length": ([1.0], "1 numbers"),
    "no list": (None, "no numbers"),
    "nan": ([1.0, np.nan], "NaN, infinity or an empty entry"),
    "an empty entry": ([1.0, None], "NaN, infinity or an empty entry"),
}


@pytest.mark.parametrize(("bad", "message"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_lists_that_cannot_be_used_are_named_with_their_row(tmp_path, bad, message):
    lists = [*LISTS[:2], bad, LISTS[3]]
    pq.write_table(
        pa.table({"e": lists, "class": list("abab")}), tmp_path / "data.parquet"
    )
    place = r"data\.parquet, column 'e', row 3 must hold a list of 2 numbers"
    with pytest.raises(ValueError, match=f"{place}.*holds {message}"):
        read_table(tmp_path / "data.parquet", target="class")
    pq.write_table(
        pa.table({"e": lists, "x": [1.0, 2, 4, 5], "class": list("abab")}),
        tmp_path / "data.parquet",
    )
    table = read_table(tmp_path / "data.parquet", target="class", drop="e")
    assert list(table.features) == ["x"]
