"""The reports of ``compare``, ``evaluate`` and ``reproduce`` in Chromium."""

from itertools import pairwise

import pytest

from tests.helpers.browser import overflow
from tests.helpers.table_files import call, flowers, write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def compared(folder):
    out = folder / "compared"
    data = write(folder, flowers(n=120, n_labeled=45))
    settings = "--repeats", 2, "--folds", 3, "--jobs", 1, "--quiet"
    assert call("compare", data, "--target", "species", "--out", out, *settings)[0] == 0
    return out / "report.html"


@pytest.fixture(scope="module")
def reproduced(folder):
    out = folder / "reproduced"
    settings = "--repeats", 2, "--curve-repeats", 2, "--jobs", 1, "--quiet"
    assert call("reproduce", "--datasets", "Haberman", "--out", out, *settings)[0] == 0
    return out / "report.html"


@pytest.fixture(scope="module")
def evaluated(folder):
    data = write(folder)
    model = folder / "model.skops"
    page = folder / "evaluation.html"
    assert call("fit", data, "--target", "species", "--out", model, "--quiet")[0] == 0
    known = write(folder, flowers(n_labeled=90), "known.csv")
    assert call("evaluate", model, known, "--out", page, "--quiet")[0] == 0
    return page


@pytest.fixture(params=["compared", "reproduced", "evaluated"])
def report(request):
    return request.getfixturevalue(request.param).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_report_fits_the_window_and_loads_without_errors_or_requests(
    new_page, report, width, scheme
):
    page = new_page(width=width, color_scheme=scheme)
    requested = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(report)
    page.wait_for_load_state("networkidle")
    assert [url for url in requested if not url.startswith("data:")] == [report]
    assert overflow(page) <= 0


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_figures_fit_the_window_and_their_text_is_legible(new_page, report, width):
    page = new_page(width=width)
    page.goto(report)
    figures = page.locator("figure").all()
    assert figures
    for figure in figures:
        # Nothing has to be swiped, and one of the two drawings is shown.
        assert figure.evaluate("each => each.scrollWidth <= each.clientWidth")
        shown = [each for each in figure.locator("svg").all() if each.is_visible()]
        assert len(shown) == 1
        size = shown[0].evaluate(
            "svg => Math.min(...[...svg.querySelectorAll('text')].map((text) =>"
            " parseFloat(getComputedStyle(text).fontSize)"
            " * svg.getScreenCTM().a))"
        )
        assert size >= 9


def test_headings_are_in_order_pictures_have_names_and_links_lead_somewhere(
    new_page, report
):
    page = new_page()
    page.goto(report)
    headings = page.locator("h1, h2, h3, h4")
    levels = [
        int(tag[1]) for tag in headings.evaluate_all("all => all.map((h) => h.tagName)")
    ]
    assert levels.index(1) == 0
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(text.strip() for text in headings.all_inner_texts())
    names = page.locator("img, svg").evaluate_all(
        "all => all.filter((each) => !each.closest('[aria-hidden=true]') &&"
        " !each.parentElement.closest('svg')).map((each) => each.getAttribute('alt') ||"
        " each.getAttribute('aria-label') ||"
        " each.querySelector('title')?.textContent || '')"
    )
    assert all(name.strip() for name in names), names
    missing = page.locator("a[href^='#']").evaluate_all(
        "all => all.map((each) => each.hash.slice(1))"
        ".filter((id) => !document.getElementById(id))"
    )
    assert missing == []
