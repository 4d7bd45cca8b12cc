import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="the page needs iclda[playground]")

from iclda.labeling.pool import Pool
from iclda.labeling.shown import ShownRows

LONG = (
    "A sentence that is long enough to be shown as text and not as a cell of a table."
)


def opened(path, id="row", images=None):
    return ShownRows(Pool(path, id, "label"), images)


def table(folder, **columns):
    path = folder / "table.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_columns_of_images_and_long_text_are_shown_as_such(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    columns = {"pic": ["a.png", "b.png"], "said": [LONG, LONG], "age": [3, 4]}
    rows = opened(table(tmp_path, **columns))
    first = rows.show(0)
    second = rows.show(1)
    assert (first["kind"], first["problem"], first["text"]) == ("image", "", LONG)
    assert first["fields"] == [("age", "3")]
    assert second["problem"] == f"{tmp_path / 'b.png'} does not exist."


def test_dates_have_a_time_of_day_only_if_one_of_the_column_has(tmp_path):
    days = pd.to_datetime(["2024-05-01", "2024-05-02", None])
    times = pd.to_datetime(["2024-05-01 00:00", "2024-05-02 14:30", None])
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"day": days, "time": times}).to_parquet(path)
    cells = opened(path, "row").pool.cells([0, 2])
    assert cells == {"day": ["2024-05-01", ""], "time": ["2024-05-01 00:00:00", ""]}


def test_sounds_and_classes_in_the_file_are_found(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"x")
    path = table(
        tmp_path, name=["x", "y"], clip=["a.wav", "a.wav"], label=["yes", None]
    )
    rows = opened(path, "name")
    assert rows.show(1)["kind"] == "sound"
    assert (rows.pool.ids, rows.pool.labels) == (["x", "y"], {"x": "yes"})


def test_images_of_a_table_without_ids_are_named_after_row_numbers_from_0(tmp_path):
    pd.DataFrame({"x": np.arange(12.0)}).to_csv(tmp_path / "t.csv", index=False)
    images = tmp_path / "images"
    images.mkdir()
    for k in range(12):
        (images / f"{k}.png").write_bytes(b"x")
    shown = opened(tmp_path / "t.csv", None, str(images)).show(10)
    assert (shown["id"], shown["title"], shown["name"]) == ("12", "Row 12", "10.png")


def test_images_of_a_folder_are_found_by_name_or_else_in_sorted_order(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((3, 2)))
    for k in (0, 1, 2):
        (tmp_path / f"{k}.png").write_bytes(b"x")
    rows = opened(tmp_path / "f.npy", "row", str(tmp_path))
    assert [file.name for file in rows.files] == ["0.png", "1.png", "2.png"]
    (tmp_path / "0.png").rename(tmp_path / "9.png")
    rows = opened(tmp_path / "f.npy", "row", str(tmp_path))
    assert [file.name for file in rows.files] == ["1.png", "2.png", "9.png"]
    (tmp_path / "9.png").unlink()
    with pytest.raises(
        ValueError, match=r"has 2 images and sounds, and .* 3 rows: .*named '0'"
    ):
        opened(tmp_path / "f.npy", "row", str(tmp_path))


@pytest.mark.parametrize(
    ("columns", "id", "images", "message"),
    [
        (
            {"pic": ["a.png"]},
            "row",
            "pic",
            "no file that column 'pic' names exists, for example",
        ),
        (
            {"a": [1]},
            "row",
            "nowhere",
            "no column 'nowhere', and there is no such folder of images",
        ),
        (
            {"a": [1]},
            "row",
            "a",
            "column 'a' does not hold paths of images",
        ),
        (
            {"a": [1, 1], "b": [1, 2]},
            "a",
            None,
            "column 'a' must identify .* '1' occurs 2 times",
        ),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(tmp_path, columns, id, images, message):
    with pytest.raises(ValueError, match=message):
        opened(table(tmp_path, **columns), id, images)


def test_features_alone_are_nothing_to_look_at(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((3, 2)))
    with pytest.raises(
        ValueError, match="nothing to look at: set images to a folder of images"
    ):
        opened(tmp_path / "f.npy")
