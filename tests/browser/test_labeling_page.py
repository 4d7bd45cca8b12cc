"""The labeling page in Chromium, by keyboard alone, with generated images."""

import time

import numpy as np
import pandas as pd
import pytest

from tests.helpers.browser import overflow, running_page

pytestmark = pytest.mark.browser


def write_images(folder, n=120):
    """Images of two kinds, red and blue, and features that separate them."""
    from matplotlib.image import imsave

    rng = np.random.default_rng(0)
    kinds = np.arange(n) % 2
    (folder / "images").mkdir()
    for k, kind in enumerate(kinds):
        image = rng.random((24, 24, 3)) * 0.5
        image[..., 2 * kind] = 1.0
        imsave(folder / "images" / f"{k:03d}.png", image)
    np.save(folder / "features.npy", rng.normal(size=(n, 6)) + 3 * kinds[:, None])
    return kinds


def test_an_image_that_does_not_open_is_named_and_can_be_skipped(new_page, tmp_path):
    write_images(tmp_path, n=3)
    for path in (tmp_path / "images").iterdir():
        path.write_bytes(b"no image")
    options = [
        "--labels",
        str(tmp_path / "l.csv"),
        "--images",
        str(tmp_path / "images"),
    ]
    with running_page("label", str(tmp_path / "features.npy"), *options) as address:
        page = new_page()
        page.goto(address)
        page.locator(
            "#stage .note", has_text=".png does not open. Skip the row"
        ).wait_for()
        page.locator("#skip").click()
        page.locator("#progress", has_text="1 skipped").wait_for()
        # Before the server ends, which it would report.
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_ten_rows_are_labeled_by_keyboard(new_page, tmp_path, width, scheme):
    kinds = write_images(tmp_path)
    path = tmp_path / "to_label.csv"
    options = ["--labels", str(path), "--images", str(tmp_path / "images")]
    with running_page("label", str(tmp_path / "features.npy"), *options) as address:
        page = new_page(width=width, color_scheme=scheme)
        page.goto(address)
        page.locator("#stage img").wait_for()
        assert overflow(page) <= 0
        names = []
        began = time.monotonic()
        shown = []
        for _ in range(10):
            title = page.locator("#row-title")
            id = title.text_content().removeprefix("Row ")
            shown.append(id)
            name = ("red", "blue")[kinds[int(id)]]
            if name in names:
                page.keyboard.press(str(names.index(name) + 1))
            else:
                page.keyboard.press("Enter")
                page.keyboard.type(name)
                page.keyboard.press("Enter")
                names.append(name)
            page.locator("#last", has_text=f"Row {id} is").wait_for()
        seconds = time.monotonic() - began
        print(f"ten labels in {seconds:.1f} s")  # noqa: T201
        frame = pd.read_csv(path, dtype=str, keep_default_na=False).set_index("row")
        assert [frame["label"][id] for id in shown] == [
            ("red", "blue")[kinds[int(id)]] for id in shown
        ]
        page.keyboard.press("Backspace")
        page.locator("#row-title", has_text=f"Row {shown[-1]}, labeled").wait_for()
        assert overflow(page) <= 0
        page.close()
