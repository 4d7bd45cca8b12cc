"""CSV files: the same rows however they are spelled, and errors with row and column."""

import gzip
import re
import subprocess

import pandas as pd
import pytest

from iclda.tabular import read_table
from tests.helpers.table_texts import TEXT, read, write

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
    expected = read(tmp_path, TEXT)
    found = read(tmp_path, spelled, "other.csv")
    pd.testing.assert_frame_equal(found.features, expected.features)
    assert found.labels.tolist() == expected.labels.tolist()


def test_cells_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    text = 'x,"a, ""quoted""\nname",class\n1,"p\nq",u\n2,5" pipe,v\n3,"p\nq",v\n'
    table = read(tmp_path, text)
    assert table.features.columns.tolist() == ["x", 'a, "quoted"\nname']
    assert table.features.iloc[:, 1].tolist() == ["p\nq", '5" pipe', "p\nq"]


REFUSED = {
    "empty": (
        b"",
        "data.csv has no data rows: fill it, delete it, or name another file.",
    ),
    "header only": (b"x,class\n", "data.csv has no data rows"),
    "one line": (b"1,a," * 400_000, "has no end of row 1 in its first megabyte"),
    "open quote": (
        b'x,class\n1,a\n2,"b\n' + b"1,a\n" * 40_000,
        "row 3: a cell has a quote that is never closed",
    ),
    "long name": (b"x" * 200_000 + b",class\n1,a\n", "field larger than field limit"),
    "long row": (
        b"x,class\n1,a\n2," + b"b" * 3_000_000 + b"\n",
        "a row is over a megabyte",
    ),
    "utf-16 cut off": (
        "x,class\n1,a\n2,b\n".encode("utf-16")[:-1],
        "begins like UTF-16 text, but its end is cut off or byte 32 is damaged",
    ),
    "utf-16 without a mark": (
        "x,class\n1,ä\n".encode("utf-16-le"),
        "is not UTF-8 text: it seems to be UTF-16 text without a byte order mark",
    ),
    "latin-1": (
        "x,class\n1,a\n2,café crème\n".encode("latin-1"),
        "byte 17 cannot be read. If it is Latin-1 or Windows-1252 text, '2,café crème' "
        "stands there, and `iconv -f WINDOWS-1252 -t UTF-8 ",
    ),
    "sqlite": (b"SQLite format 3\0\xff\n1\n", "it is an SQLite database. Save it as"),
    "name twice": (b"x,x,class\n1,2,a\n", "has 2 columns called 'x'"),
    "zero byte": (b"x\0,class\n1,a\n", "holds a zero byte: rename it"),
    "no such column": (
        b"x,clas\n1,a\n",
        "hold the classes: set target to the column that does. Did you mean 'clas' for "
        "'class'?",
    ),
    "names separated by blanks": (
        b"x class\n1 a\n2 b\n",
        "It has a single column, because its names are separated by blanks: separate",
    ),
    "short row": (b"x,class\n1,a\n2\n", "Row #3: Expected 2 columns, got 1"),
    "latin-1 far down": (
        b"x,class\n" + b"1,a\n" * 300_000 + b"1,\xe9\n",
        "row 300002, column 'class' must hold text: "
        "it is not UTF-8 text, save the file",
    ),
    "no label": (
        b"x,class\n1,\n2,\n",
        "got empty cells only (0 labeled rows). Label rows of each class; `iclda ask`",
    ),
    "one class": (b"x,class\n1,a\n2,\n", "at least 2 classes, got 'a' (1 labeled row)"),
    "measurements": (
        b"x,class\n1,1.5\n2,2\n",
        "with fractions or infinity, for example 1.5",
    ),
    "only the target": (
        b"class\na\nb\n",
        "no column to learn from besides the target: add a column of numbers",
    ),
    "too many cells": (
        b"x,class\n1,a\n2,3,b\n",
        "Expected 2 columns, got 3: 2,3,b. Quote a cell that holds the separator",
    ),
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


def test_the_command_that_an_error_names_converts_the_file(tmp_path):
    path = tmp_path / "my data.csv"
    write(tmp_path, "x,class\n1,café\n2,thé\n".encode("latin-1"), path.name)
    with pytest.raises(ValueError, match="is not UTF-8 text") as error:
        read_table(path, target="class")
    command = re.search("`(.*)` converts it", str(error.value))[1]
    subprocess.run(command, shell=True, check=True)
    table = read_table(tmp_path / "my data-utf8.csv", target="class")
    assert table.classes == ("café", "thé")


def test_other_files_and_folders_are_refused(tmp_path):
    (tmp_path / "data.csv.zip").write_bytes(b"PK\x03\x04\xff\xfe\n\n")
    with pytest.raises(ValueError, match=r"it is a zip archive\. Unpack it"):
        read_table(tmp_path / "data.csv.zip", target="class")
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
