"""The labeling page in Chromium: by keyboard, on a small screen, with images."""

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


def labels_by_row(path):
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return dict(zip(frame["row"], frame["label"], strict=True))


def answer(page, press):
    """Answer the row on the page, and return its id once the answer is there."""
    title = page.locator("#row-title").text_content()
    # Rows of a table without ids are called Row 2 of rows.csv.
    id = title.removeprefix("Row ").partition(" of ")[0]
    press()
    page.locator("#last", has_text=f"Row {id} is").wait_for()
    return id


def add_class(page, name):
    page.keyboard.press("Enter")
    page.keyboard.type(name)
    page.keyboard.press("Enter")


def test_the_key_of_a_digit_is_that_digit_and_letters_do_not_skip(new_page, tmp_path):
    write_images(tmp_path)
    path = tmp_path / "to_label.csv"
    options = ["--labels", str(path), "--images", str(tmp_path / "images")]
    with running_page("label", str(tmp_path / "features.npy"), *options) as address:
        page = new_page()
        page.goto(address)
        page.locator("#stage img").wait_for()
        expected = {}
        for name in ("1", "0", "s", "other"):
            expected[answer(page, lambda name=name: add_class(page, name))] = name
        shown = page.locator("#classes button").all_text_contents()
        assert shown == ["11", "00", "Ss", "Oother"]
        for key, name in (("0", "0"), ("1", "1"), ("S", "s"), ("o", "other")):
            id = answer(page, lambda key=key: page.keyboard.press(key))
            expected[id] = name
        # Nothing happens: no class has this key.
        before = page.locator("#row-title").text_content()
        page.keyboard.press("2")
        page.keyboard.press("ArrowRight")
        page.locator(
            "#progress", has_text="8 of 120 rows labeled, 1 skipped"
        ).wait_for()
        assert page.locator("#row-title").text_content() != before
        page.keyboard.press("ArrowLeft")
        page.locator("#row-title", has_text=before).wait_for()
        labels = labels_by_row(path)
        assert {row: label for row, label in labels.items() if label} == expected
        page.close()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (390, 664), (1280, 860)])
def test_buttons_stay_at_one_place_in_the_window(new_page, tmp_path, width, height):
    # Texts of one line and of many, which do not fit into the window.
    texts = ["A short text. " * 5, "A long text, line by line.\n" * 60]
    lengths = [texts[k % 2] for k in range(40)]
    cells = {f"column {k}": "Some words" for k in range(30)}
    frame = pd.DataFrame({"text": lengths, **cells})
    frame["text"] = [f"{k}. {text}" for k, text in enumerate(lengths)]
    frame.loc[::3, list(cells)] = None
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--labels", str(tmp_path / "l.csv"), "--target", "label"]
    with running_page("label", str(tmp_path / "rows.csv"), *options) as address:
        page = new_page(width=width, height=height)
        page.goto(address)
        page.locator("#stage .text").wait_for()
        for name in ("good", "neither good nor bad", "bad", "a class of its own"):
            answer(page, lambda name=name: add_class(page, name))
        places = set()
        heights = set()
        for _ in range(8):
            answer(page, lambda: page.keyboard.press("1"))
            boxes = [
                each.bounding_box()
                for each in page.locator("#bar button, #bar input").all()
            ]
            assert max(box["y"] + box["height"] for box in boxes) <= height
            assert min(box["y"] for box in boxes) > height / 3
            # Browsers compute heights to a fraction of a pixel.
            places.add(tuple((round(box["x"]), round(box["y"])) for box in boxes))
            heights.add(page.locator("#stage").bounding_box()["height"])
        assert len(places) == 1
        assert len(heights) > 1
        assert overflow(page) <= 0
        page.close()


def test_a_contradicted_label_is_listed_and_leads_to_its_row(new_page, tmp_path):
    kinds = write_images(tmp_path)
    path = tmp_path / "to_label.csv"
    options = ["--labels", str(path), "--images", str(tmp_path / "images")]
    names = ("red", "blue")
    with running_page("label", str(tmp_path / "features.npy"), *options) as address:
        page = new_page(width=390)
        page.goto(address)
        page.locator("#stage img").wait_for()
        wrong = None
        for k in range(24):
            page.locator("#row-title", has_text="Row ").wait_for()
            id = page.locator("#row-title").text_content().removeprefix("Row ")
            kind = kinds[int(id)]
            if k == 9:
                wrong = id
                kind = 1 - kind
            name = names[kind]
            button = page.locator("#classes button", has_text=name)
            if button.count():
                answer(page, button.click)
            else:
                answer(page, lambda name=name: add_class(page, name))
        listed = page.locator("#suspicious button")
        listed.wait_for()
        assert listed.count() == 1
        right = names[kinds[int(wrong)]]
        assert f"the model says {right}" in listed.text_content()
        listed.click()
        page.locator("#row-title", has_text=f"Row {wrong}, labeled").wait_for()
        assert page.evaluate("scrollY") == 0
        assert page.locator("#skip").text_content() == "Keep"
        page.locator("#classes button", has_text=right).click()
        page.locator("#last", has_text=f"Row {wrong} is {right}").wait_for()
        page.locator("#suspicious-box").wait_for(state="hidden")
        assert labels_by_row(path)[wrong] == right
        page.close()
