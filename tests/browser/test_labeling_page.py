"""The labeling page in Chromium: by keyboard, mouse and touch, on small screens."""

import re
import time
import wave
from contextlib import contextmanager

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
    id = re.split(" of |, ", title.removeprefix("Row "))[0]
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


@contextmanager
def labeling_page(new_page, folder, classes=("RT", "CH"), **options):
    """A page on forty rows, some of which have a class, and the file of its answers."""
    n = 40
    labels = [*classes] * 3
    cells = {
        "row": [f"r{k}" for k in range(n)],
        "size": range(n),
        "label": labels + [None] * (n - len(labels)),
    }
    pd.DataFrame(cells).to_csv(folder / "rows.csv", index=False)
    path = folder / "to_label.csv"
    arguments = [str(folder / "rows.csv"), "--labels", str(path), "--target", "label"]
    with running_page("label", *arguments) as address:
        page = new_page(**options)
        page.goto(address)
        page.locator("#row-title", has_text="Row r").wait_for()
        yield page, path
        # Before the server ends, which the page would report.
        page.close()


def given(path):
    """The answers in the file, by row, without the rows that have none."""
    return {row: label for row, label in labels_by_row(path).items() if label}


def class_button(page, name):
    return page.locator("#classes button", has_text=name)


def focused(page):
    """Id of the element that has the focus; the name of its tag if it has no id."""
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


def by_mouse(button):
    button.click()


def by_touch(button):
    button.tap()


def by_screen_reader(button):
    # Chromium focuses what an assistive technology clicks.
    button.evaluate("(button) => { button.focus(); button.click(); }")


WAYS_TO_CLICK = pytest.mark.parametrize(
    "click", [by_mouse, by_touch, by_screen_reader], ids=lambda click: click.__name__
)


@WAYS_TO_CLICK
def test_after_a_click_on_a_class_enter_names_a_new_one_and_space_does_nothing(
    new_page, tmp_path, click
):
    touch = {"has_touch": click is by_touch}
    with labeling_page(new_page, tmp_path, **touch) as (page, path):
        first = answer(page, lambda: click(class_button(page, "RT")))
        second = answer(page, lambda: add_class(page, "other"))
        none = answer(page, lambda: click(page.locator("#none")))
        third = answer(page, lambda: add_class(page, "fourth"))
        fourth = answer(page, lambda: click(class_button(page, "other")))
        page.keyboard.press("Space")
        page.keyboard.press("Space")
        fifth = answer(page, lambda: page.keyboard.press("1"))
        expected = {first: "RT", second: "other", none: "none of these"}
        expected |= {third: "fourth", fourth: "other", fifth: "CH"}
        assert given(path) == expected


@pytest.mark.parametrize("has_touch", [False, True])
def test_after_a_click_on_another_button_enter_names_a_new_class(
    new_page, tmp_path, has_touch
):
    with labeling_page(new_page, tmp_path, has_touch=has_touch) as (page, path):

        def click(name):
            button = page.locator(name)
            button.tap() if has_touch else button.click()

        expected = {}

        def name_it(name):
            expected[answer(page, lambda: add_class(page, name))] = name
            page.locator("#last", has_text=f"is {name}").wait_for()
            assert given(path) == expected

        # Names begin with keys of classes.
        page.locator("#name").fill("1st new")
        expected[answer(page, lambda: click("#add"))] = "1st new"
        name_it("2nd new")
        click("#skip")
        page.locator("#progress", has_text="1 skipped").wait_for()
        name_it("3rd new")
        click("#back")
        page.locator("#row-title", has_text="labeled 3rd new").wait_for()
        name_it("4th new")
        # A phone has no keys.
        if not has_touch:
            click("#keys")
            click("#keys-box .close")
            name_it("5th new")


def test_tab_passes_over_the_buttons_that_answer(new_page, tmp_path):
    with labeling_page(new_page, tmp_path) as (page, path):
        reached = []
        for _ in range(12):
            page.keyboard.press("Tab")
            reached.append(focused(page))
        assert {"skip", "name", "add", "keys"} <= {*reached}
        assert "BUTTON" not in reached
        assert "none" not in reached
        for button in (class_button(page, "RT"), page.locator("#none")):
            for key in ("Enter", "Space"):
                button.focus()
                assert focused(page) == "BODY"
                page.keyboard.press(key)
                page.keyboard.press("Escape")
        assert "press the key" in page.locator("#classes").get_attribute("aria-label")
        row = answer(page, lambda: page.keyboard.press("2"))
        assert given(path) == {row: "RT"}


def test_a_key_that_is_held_down_answers_one_row(new_page, tmp_path):
    with labeling_page(new_page, tmp_path) as (page, path):

        def hold(key):
            for _ in range(5):
                page.keyboard.down(key)
                # Time to save an answer and to show the next row.
                page.wait_for_timeout(60)
            page.keyboard.up(key)

        def name_a_class():
            page.keyboard.press("Enter")
            page.keyboard.type("other")
            hold("Enter")

        first = answer(page, lambda: hold("1"))
        second = answer(page, name_a_class)
        assert focused(page) == "BODY"
        page.locator("#skip").focus()
        hold("Enter")
        third = answer(page, lambda: page.keyboard.press("2"))
        assert given(path) == {first: "CH", second: "other", third: "RT"}
        assert ", 1 skipped" in page.locator("#progress").text_content()


@pytest.mark.parametrize("button", ["#classes button", "#none", "#add"])
def test_a_double_click_answers_one_row(new_page, tmp_path, button):
    with labeling_page(new_page, tmp_path) as (page, path):
        # Time stands still between the two clicks, however slow the machine is.
        page.clock.install()
        page.reload()
        page.locator("#row-title", has_text="Row r").wait_for()
        page.clock.pause_at(time.time() + 3600)
        if button == "#add":
            page.keyboard.press("Enter")
            page.keyboard.type("other")
        box = page.locator(button).first.bounding_box()
        place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

        def click_again():
            page.mouse.down(click_count=2)
            page.mouse.up(click_count=2)

        row = answer(page, lambda: page.mouse.click(*place))
        title = page.locator("#row-title").text_content()
        click_again()
        # Time to save an answer.
        page.wait_for_timeout(300)
        assert page.locator("#row-title").text_content() == title
        assert focused(page) == "BODY"
        assert {*given(path)} == {row}
        page.clock.run_for(400)
        # Somebody who clicks fast and looks at each row is not slowed down.
        if button != "#add":
            other = answer(page, click_again)
            assert {*given(path)} == {row, other}


def test_a_key_pressed_during_a_click_leaves_the_click_without_a_row(
    new_page, tmp_path
):
    with labeling_page(new_page, tmp_path) as (page, path):
        box = class_button(page, "RT").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        first = answer(page, lambda: page.keyboard.press("1"))
        page.mouse.up()
        # Time to save an answer.
        page.wait_for_timeout(300)
        assert given(path) == {first: "CH"}
        # The next click is meant for the row that is seen.
        second = answer(page, class_button(page, "RT").click)
        assert given(path) == {first: "CH", second: "RT"}


def test_after_a_touch_the_classes_look_alike(new_page, tmp_path):
    look = """(buttons) => buttons.map((button) => {
        const style = getComputedStyle(button);
        return style.border + style.boxShadow + style.outline + style.background;
    })"""
    phone = {"width": 390, "has_touch": True, "is_mobile": True}
    with labeling_page(new_page, tmp_path, **phone) as (page, _):
        buttons = page.locator("#classes button")
        for name in ("RT", "CH"):
            answer(page, class_button(page, name).tap)
            assert len({*buttons.evaluate_all(look)}) == 1
            assert focused(page) == "BODY"
        # A row that has a class shows it.
        page.locator("#back").tap()
        page.locator("#row-title", has_text="labeled CH").wait_for()
        assert len({*buttons.evaluate_all(look)}) == 2


@pytest.mark.parametrize("leave", ["Escape", "class", "skip"])
def test_a_name_that_was_begun_and_left_is_no_part_of_the_next_one(
    new_page, tmp_path, leave
):
    with labeling_page(new_page, tmp_path) as (page, path):
        page.keyboard.press("Enter")
        page.keyboard.type("12 CH")
        if leave == "Escape":
            page.keyboard.press("Escape")
            assert focused(page) == "BODY"
        elif leave == "class":
            answer(page, class_button(page, "RT").click)
        else:
            page.locator("#skip").click()
            page.locator("#progress", has_text="1 skipped").wait_for()
        row = answer(page, lambda: add_class(page, "new"))
        assert given(path)[row] == "new"
        assert len(given(path)) == (2 if leave == "class" else 1)


def test_keys_of_classes_are_text_in_the_name_and_do_nothing_behind_a_dialog(
    new_page, tmp_path
):
    with labeling_page(new_page, tmp_path) as (page, path):
        page.locator("#name").click()
        page.keyboard.type("1")
        page.keyboard.press("Delete")
        page.keyboard.press("ArrowRight")
        page.keyboard.type("21 2")
        assert page.locator("#name").input_value() == "121 2"
        page.keyboard.press("Escape")
        page.locator("#keys").click()
        page.keyboard.press("1")
        page.keyboard.press("Delete")
        page.keyboard.press("Escape")
        row = answer(page, lambda: page.keyboard.press("2"))
        assert given(path) == {row: "RT"}


def test_enter_that_ends_a_composition_does_not_give_the_name(new_page, tmp_path):
    with labeling_page(new_page, tmp_path) as (page, path):
        page.keyboard.press("Enter")
        keyboard = page.context.new_cdp_session(page)
        composed = {"text": "ねこ", "selectionStart": 2, "selectionEnd": 2}
        keyboard.send("Input.imeSetComposition", composed)
        # What Chromium sends while an input method takes the keys, and the end of it.
        processed = {"key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229}
        keyboard.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **processed})
        keyboard.send("Input.insertText", {"text": "ねこ"})
        assert page.locator("#name").input_value() == "ねこ"
        assert focused(page) == "name"
        assert given(path) == {}
        row = answer(page, lambda: page.keyboard.press("Enter"))
        assert given(path) == {row: "ねこ"}


def test_going_back_changes_that_row_alone(new_page, tmp_path):
    with labeling_page(new_page, tmp_path) as (page, path):
        wrong = answer(page, class_button(page, "RT").click)
        page.keyboard.press("Backspace")
        page.locator("#row-title", has_text=f"Row {wrong}, labeled RT").wait_for()
        page.keyboard.press("Space")
        assert answer(page, lambda: add_class(page, "CH")) == wrong
        page.locator("#last", has_text=f"Row {wrong} is CH").wait_for()
        next_row = answer(page, lambda: page.keyboard.press("2"))
        assert given(path) == {wrong: "CH", next_row: "RT"}


def test_what_is_pressed_while_an_answer_is_on_its_way_gives_none(new_page, tmp_path):
    with labeling_page(new_page, tmp_path) as (page, path):
        held = []
        page.route("**/answer", lambda route: held.append(route), times=1)
        first = page.locator("#row-title").text_content().removeprefix("Row ")
        with page.expect_request("**/answer"):
            page.keyboard.press("1")
        page.keyboard.press("2")
        class_button(page, "RT").click()
        page.keyboard.press("Delete")
        # The name that comes too early waits for the row that it was not given to.
        add_class(page, "other")
        [answering] = held
        answering.continue_()
        page.locator("#last", has_text=f"Row {first} is CH").wait_for()
        assert page.locator("#name").input_value() == "other"
        second = answer(page, lambda: page.keyboard.press("Enter"))
        assert given(path) == {first: "CH", second: "other"}


def test_a_state_that_comes_late_does_not_bring_an_answered_row_back(
    new_page, tmp_path
):
    with labeling_page(new_page, tmp_path) as (page, path):
        late = []

        def say_that_a_fit_is_under_way(route):
            response = route.fetch()
            route.fulfill(
                response=response, json={**response.json(), "is_fitting": True}
            )

        def keep(route):
            late.append((route, route.fetch()))

        page.route("**/state", keep, times=1)
        page.route("**/answer", say_that_a_fit_is_under_way, times=1)
        with page.expect_request("**/state"):
            first = answer(page, lambda: page.keyboard.press("1"))
        second = answer(page, lambda: page.keyboard.press("2"))
        third = page.locator("#row-title").text_content()
        [(route, response)] = late
        with page.expect_response("**/state"):
            route.fulfill(response=response)
        # The page looks again once the late state has been dealt with.
        page.wait_for_timeout(100)
        assert page.locator("#row-title").text_content() == third
        answer(page, lambda: page.keyboard.press("1"))
        assert given(path) == {
            first: "CH",
            second: "RT",
            third.removeprefix("Row "): "CH",
        }


def write_sounds(folder, n=8):
    for k in range(n):
        with wave.open(str(folder / f"{k}.wav"), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes(bytes(2 * 8000))
    cells = {
        "row": range(n),
        "path": [f"{k}.wav" for k in range(n)],
        "size": range(n),
        "label": ["RT", "CH"] * 2 + [None] * (n - 4),
    }
    pd.DataFrame(cells).to_csv(folder / "rows.csv", index=False)


def test_enter_names_a_new_class_while_a_sound_has_the_focus(new_page, tmp_path):
    write_sounds(tmp_path)
    path = tmp_path / "l.csv"
    options = ["--labels", str(path), "--target", "label"]
    with running_page("label", str(tmp_path / "rows.csv"), *options) as address:
        page = new_page()
        page.goto(address)

        # A row that goes while its sound is loaded ends a request, which is a problem.
        def wait_for_sound():
            page.wait_for_function(
                "() => document.querySelector('#stage audio')?.readyState === 4"
            )

        wait_for_sound()
        page.locator("#stage audio").focus()
        assert focused(page) == "AUDIO"
        answer(page, lambda: add_class(page, "2nd kind"))
        assert [*given(path).values()] == ["2nd kind"]
        wait_for_sound()
        page.close()
