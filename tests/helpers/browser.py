"""A playground that runs, and the Chromium that opens pages.

As a script it says how to get a Chromium where there is none.
"""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOW = """\
No Chromium was found. Install one:
    Debian, Ubuntu   apt install chromium
    Fedora           dnf install chromium
    macOS            brew install --cask chromium
or name one that you have: ICLDA_CHROMIUM=/path/to/chrome make test-browser"""


def find_chromium():
    """Path of a Chromium: ICLDA_CHROMIUM, or the first on the PATH; or None."""
    named = os.environ.get("ICLDA_CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS
        )
        yield browser
        browser.close()


@contextmanager
def running_playground(*arguments):
    """The address that ``iclda playground`` prints, as long as it runs."""
    with running_page("playground", *arguments) as address:
        yield address


@contextmanager
def running_page(*arguments):
    """The address that a command prints, as long as it runs."""
    command = [sys.executable, "-m", "iclda", *arguments, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def watch(page):
    """List errors of a page, and requests to other hosts, as they happen."""
    problems = []
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))

    def note(message):
        if message.type in ("error", "warning"):
            problems.append(f"{message.type}: {message.text}")

    def check(request):
        if not request.url.startswith(
            ("http://127.0.0.1:", "file://", "data:", "blob:")
        ):
            problems.append(f"request: {request.url}")

    page.on("console", note)
    page.on("request", check)
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    return problems


def overflow(page):
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


if __name__ == "__main__" and find_chromium() is None:
    sys.exit(HOW)
