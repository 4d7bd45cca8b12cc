"""One Chromium for all tests; pages that may report no error and not go online."""

import pytest

from tests.helpers.browser import HOW, find_chromium, open_browser, watch


@pytest.fixture(scope="session")
def browser():
    pytest.importorskip("playwright", reason="pages are tested with iclda[browser]")
    if find_chromium() is None:
        pytest.skip(HOW)
    with open_browser() as browser:
        yield browser


@pytest.fixture
def new_page(browser):
    """Make pages of any size and color scheme.

    None may have had a problem in the end.
    """
    made = []

    def make(width=1280, height=860, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        # A page that shows nothing by then hangs, even on a busy machine.
        context.set_default_timeout(240_000)
        page = context.new_page()
        made.append((context, watch(page)))
        return page

    yield make
    for context, problems in made:
        context.close()
        assert not problems
