"""The playground in Chromium: what is on the screen is what the library computes."""

import io
import json
import re

import numpy as np
import pytest

import iclda
from iclda.playground.toys import LARGEST_COORDINATE as LARGEST
from iclda.playground.toys import PROBLEMS, draw_toy_scene
from tests.helpers.browser import overflow, running_playground

pytestmark = pytest.mark.browser

# Two frames, and longer than the page waits after a drag. Timers of a page fire in
# order: what it was about to send is sent by then, however busy the machine is.
REST = """() => new Promise((end) => requestAnimationFrame(() =>
    requestAnimationFrame(() => setTimeout(end, 400))))"""


@pytest.fixture(scope="module")
def address():
    with running_playground() as address:
        yield address


@pytest.fixture
def open_page(new_page, address):
    def opened(state="", **options):
        page = new_page(**options)
        page.goto(f"{address}#{state}" if state else address)
        page.locator("#timing", has_text="ms").wait_for()
        return page

    return opened


class Requests:
    """Scenes that a page sends, and the answers to them."""

    def __init__(self, page):
        self.page = page
        self.answers = []
        self.n_sent = 0
        self.under_way = set()
        page.on("request", self._note_request)
        page.on("response", self._note_answer)

    def _note_request(self, request):
        if request.url.endswith("/fit"):
            self.n_sent += 1
            self.under_way.add(request)

    def _note_answer(self, response):
        if response.url.endswith("/fit"):
            self.under_way.discard(response.request)
            self.answers.append(response)

    def settled(self):
        """The last scene at rest and its answer, once nothing is under way."""
        is_at_rest = False
        while not is_at_rest:
            was_answered = bool(self.answers) and not self.under_way
            n_before = self.n_sent
            self.page.evaluate(REST)
            is_at_rest = was_answered and self.n_sent == n_before
        response = self.answers[-1]
        sent = json.loads(response.request.post_data)
        assert not sent["dragged"]
        return sent, response.json()


def at(page, x, y):
    """Pixels on the page of a point of the plane."""
    box = page.locator("#plane canvas").bounding_box()
    half = box["width"] / 2
    return box["x"] + half * (1 + x / LARGEST), box["y"] + half * (1 - y / LARGEST)


def click(page, x, y):
    page.mouse.click(*at(page, x, y))


def drag(page, start, end, steps=12):
    page.mouse.move(*at(page, *start))
    page.mouse.down()
    page.mouse.move(*at(page, *end), steps=steps)
    page.mouse.up()


def rows_of(sent):
    labeled = np.array(sent["labeled"], dtype=float).reshape(-1, 3)
    unlabeled = np.array([p[:2] for p in sent["unlabeled"]], dtype=float).reshape(-1, 2)
    y = np.concatenate([labeled[:, 2], np.full(len(unlabeled), -1)]).astype(int)
    return np.concatenate([labeled[:, :2], unlabeled]), y


def pixels(page):
    """The colors of the plane, pixel by pixel, and the coordinates of their centers."""
    # Reads PNG without a further package.
    from matplotlib.image import imread

    image = imread(io.BytesIO(page.screenshot()))[..., :3] * 255
    box = page.locator("#plane canvas").bounding_box()
    x, y = (
        2 * LARGEST * ((np.arange(n) + 0.5 - box[start]) / box["width"] - 0.5)
        for n, start in ((image.shape[1], "x"), (image.shape[0], "y"))
    )
    rows, columns = (np.abs(values) < LARGEST - 0.02 for values in (y, x))
    return image[rows][:, columns], *np.meshgrid(x[columns], -y[rows])


def assert_line_is_on_the_screen(page, color, classifier):
    """All pixels of a color lie on the boundary, and all of it has the color."""
    image, x, y = pixels(page)
    wanted = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    is_line = np.abs(image - wanted).sum(axis=-1) < 24
    size = 2 * LARGEST / len(image)
    a, b = classifier.coef_[0]
    distance = np.abs(a * x + b * y + classifier.intercept_[0]) / np.hypot(a, b)
    assert is_line.sum() > len(image) / 4
    assert distance[is_line].max() < 3 * size
    # Points drawn over the line hide a part of it.
    assert is_line[distance < 0.5 * size].mean() > 0.8


def test_the_boundary_on_the_screen_is_that_of_the_library_before_and_after_a_drag(
    open_page,
):
    page = open_page()
    requests = Requests(page)
    page.uncheck("#shading")
    page.uncheck("#use-em")
    page.uncheck("#use-supervised")
    page.fill("#used", "120")
    sent, _ = requests.settled()
    X, y = rows_of(sent)
    assert (y < 0).sum() == 120
    before = iclda.ImplicitlyConstrainedLDA().fit(X, y)
    assert_line_is_on_the_screen(page, "#c0509f", before)
    drag(page, X[0], (-3.0, 3.2))
    page.mouse.move(5, 5)
    page.locator("#plane").press("Escape")
    sent, _ = requests.settled()
    X, y = rows_of(sent)
    np.testing.assert_allclose(X[0], [-3.0, 3.2], atol=0.02)
    after = iclda.ImplicitlyConstrainedLDA().fit(X, y)
    assert np.abs(after.coef_ - before.coef_).max() > 0.05
    assert_line_is_on_the_screen(page, "#c0509f", after)


def test_points_of_four_classes_and_unlabeled_ones_are_added_by_clicks(open_page):
    page = open_page()
    requests = Requests(page)
    page.click("#clear")
    page.locator("#message", has_text="no labeled points").wait_for()
    places = {"0": (-3, -3), "1": (3, -3), "2": (3, 3), "3": (-3, 3), "x": (0, 0)}
    for code, (x, y) in places.items():
        page.locator(f"#tool-{code}").check(force=True)
        for dx, dy in ((0, 0), (0.6, 0.1), (0.2, 0.7)):
            click(page, x + dx, y + dy)
        if code == "0":
            page.locator(
                "#message", has_text="All labeled points are of class A"
            ).wait_for()
    sent, answer = requests.settled()
    assert [point[2] for point in sent["labeled"]] == [
        0,
        0,
        0,
        1,
        1,
        1,
        2,
        2,
        2,
        3,
        3,
        3,
    ]
    np.testing.assert_allclose(sent["labeled"][3][:2], [3, -3], atol=0.02)
    assert [point[2] for point in sent["unlabeled"]] == [None] * 3
    assert page.locator("#message").is_hidden()
    assert answer["classes"] == [0, 1, 2, 3]
    X, y = rows_of(sent)
    found = (
        page.locator("tr", has_text="supervised LDA")
        .locator(".number")
        .nth(1)
        .inner_text()
    )
    expected = iclda.SupervisedLDA().fit(X, y)
    likelihood = expected.log_likelihood(X[y >= 0], y[y >= 0]).mean()
    assert float(found.replace("\u2212", "-")) == pytest.approx(likelihood, abs=6e-4)


def test_a_link_opens_the_same_page_in_another_run(open_page, new_page):
    page = open_page()
    requests = Requests(page)
    page.select_option("#toy", "three")
    page.check("#use-moment")
    page.check("#show-moment")
    page.fill("#shrinkage", "0.2")
    page.fill("#used", "77")
    drag(page, draw_toy_scene(PROBLEMS[2], 253)["labeled"][4][:2], (-2.5, 2.5))
    sent, _ = requests.settled()
    page.click("#share")
    link = page.input_value("#link")
    assert link == page.url
    with running_playground(link) as address:
        assert address.partition("#")[2] == link.partition("#")[2]
        other = new_page()
        again = Requests(other)
        other.goto(address)
        found, _ = again.settled()
        assert found == sent
        assert other.input_value("#used") == "77"
        assert other.is_checked("#show-moment")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("nonsense", "not one of the playground"),
        ("v=1&lc=0&l=!!!!", "characters that no link"),
        ("v=1&lc=9&l=AAAAAA", "there is no class 9"),
        (
            "v=1&uc=" + "x" * 6000 + "&u=" + "A" * 32000,
            "6000 points, and the playground draws",
        ),
    ],
)
def test_a_bad_link_opens_the_first_problem_with_a_message(open_page, state, message):
    page = open_page(state)
    page.locator("#message", has_text=message).wait_for()
    assert page.locator("#headline", has_text="of these points wrong").is_visible()


def test_a_likelihood_that_comes_with_more_mistakes_is_no_good_news(open_page):
    page = open_page()
    requests = Requests(page)
    page.select_option("#toy", "across")
    page.check("#show-em")
    fits = requests.settled()[1]["fits"]
    wrong, other = (
        f"{100 * fits[name]['wrong']:.1f}\u00a0%" for name in ("em", "supervised")
    )
    assert fits["em"]["wrong"] > fits["supervised"]["wrong"]
    expected = f"gets {wrong} of these points wrong, supervised LDA {other}"
    assert page.inner_text("#headline").endswith(expected)
    assert "a higher likelihood may come with more mistakes" in page.inner_text(
        "#sentence"
    )
    row = page.locator("tr", has_text="expectation maximization")
    assert row.locator(".more").inner_text() == wrong
    style = (
        "(each) => [getComputedStyle(each).color, "
        "getComputedStyle(each).backgroundColor]"
    )
    green = page.locator(".fewer").first.evaluate(style)[0]
    assert green not in row.locator("*").evaluate_all(f"all => all.flatMap({style})")


def test_all_is_done_by_keys(open_page):
    page = open_page()
    requests = Requests(page)
    page.click("#clear")
    plane, said = page.locator("#plane"), page.locator("#said")
    page.keyboard.press("Tab")
    plane.focus()
    for key in ("1", *["ArrowLeft"] * 3, "Enter"):
        page.keyboard.press(key)
    assert "Added. Class A, labeled point 1 of 1, at -0.30, 0.00" in said.text_content()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Enter")
    sent, _ = requests.settled()
    assert sent["labeled"] == [[-0.3, 0, 0], [0.5, 0.5, 1]]
    page.keyboard.press("p")
    assert "Class A, labeled point 1 of 2" in said.text_content()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    sent, _ = requests.settled()
    assert sent["labeled"][0] == [-0.8, 0.3, 0]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("z")
    sent, _ = requests.settled()
    assert sent["labeled"][0] == [-0.8, 0.3, 0]
    page.keyboard.press("n")
    page.keyboard.press("0")
    page.keyboard.press("l")
    sent, _ = requests.settled()
    assert (sent["labeled"], len(sent["unlabeled"])) == ([[0.5, 0.5, 1]], 1)
    page.keyboard.press("z")
    page.keyboard.press("n")
    page.keyboard.press("Delete")
    sent, _ = requests.settled()
    assert len(sent["labeled"]) == 1


def test_a_screen_reader_hears_the_finding_at_rest_and_every_control_has_a_name(
    open_page,
):
    page = open_page()
    page.locator("#live", has_text="of these points wrong").wait_for(state="attached")
    assert page.locator("#live").get_attribute("aria-live") == "polite"
    for control in page.locator("input, select, button, [role=application]").all():
        name = control.evaluate(
            "each => each.getAttribute('aria-label') || each.textContent.trim() ||"
            " [...(each.labels ?? [])]"
            ".map((label) => label.textContent.trim()).join(' ')"
        )
        assert name, control.evaluate("each => each.outerHTML")
    levels = page.locator("h1, h2").evaluate_all(
        "all => all.map((each) => each.tagName)"
    )
    assert levels[0] == "H1"
    assert levels.count("H1") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1280])
def test_the_page_fits_the_window_and_its_text_stands_out(open_page, width, scheme):
    page = open_page(width=width, color_scheme=scheme)
    assert overflow(page) <= 0
    color, ground = page.evaluate(
        "() => { const style = getComputedStyle(document.body);"
        " return [style.color, style.backgroundColor] }"
    )
    light, dark = (luminance(each) for each in (color, ground))
    assert (light > dark) == (scheme == "dark")
    assert (max(light, dark) + 0.05) / (min(light, dark) + 0.05) > 7


def luminance(color):
    channels = np.array([int(part) for part in re.findall(r"\d+", color)[:3]]) / 255
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_server_that_has_ended_is_a_message(browser):
    page = browser.new_page()
    with running_playground() as address:
        page.goto(address)
        page.locator("#timing", has_text="ms").wait_for()
    page.click("#redraw")
    page.locator("#message", has_text="has been ended").wait_for()
    page.close()
