"""Measure the playground in Chromium: from a request of a drag to the painted frame.

    python benchmarks/bench_playground.py

A labeled point is dragged around among 1,000 unlabeled points with all methods chosen.
``frame`` is the time from sending the points to the frame that shows their fits;
``lag`` begins at the first movement that the frame includes, also one that waited for
the frame before. Needs the extras ``playground`` and ``browser``, and a Chromium.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

# The tests of the page have what opens it in a browser.
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers.browser import open_browser, running_playground

SHARES = (0.1, 0.5, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--steps", type=int, default=150, help="movements of the pointer"
    )
    steps = parser.parse_args().steps
    print(
        f"{'problem':10}{'frames':>8}{'frame, ms':>18}{'lag, ms':>18}"
        "   (10 %, median, 95 %)"
    )
    with running_playground() as address, open_browser() as browser:
        for toy in ("between", "across", "three", "four"):
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(address)
            page.locator("#timing", has_text="ms").wait_for()
            for box in page.locator("#methods input[type=checkbox]").all():
                box.check()
            page.select_option("#toy", toy)
            page.fill("#used", "1000")
            page.wait_for_timeout(1500)
            drag_around(page, steps)
            found = {
                name: np.array(
                    page.evaluate(
                        "name => performance.getEntriesByName(name)"
                        ".map((each) => each.duration)",
                        f"drag {name}",
                    )
                )
                for name in ("frame", "lag")
            }
            texts = [
                ", ".join(f"{q:.0f}" for q in np.quantile(v, SHARES))
                for v in found.values()
            ]
            print(f"{toy:10}{len(found['frame']):8}{texts[0]:>18}{texts[1]:>18}")
            page.close()


def drag_around(page, steps: int) -> None:
    """Drag the first labeled point along a circle, a movement in about 16 ms."""
    page.evaluate("performance.clearMeasures()")
    page.focus("#plane")
    page.keyboard.press("n")
    box = page.locator("canvas").bounding_box()
    reach = 4.5
    where = [page.locator(f"#selected-{axis}").input_value() for axis in "xy"]
    x, y = (float(value) / reach for value in where)
    half = box["width"] / 2
    at = box["x"] + half * (1 + x), box["y"] + half * (1 - y)
    page.mouse.move(*at)
    page.mouse.down()
    for step in range(steps):
        angle = 2 * math.pi * step / 60
        page.mouse.move(
            at[0] + 60 * math.sin(angle), at[1] + 60 * (1 - math.cos(angle))
        )
        page.wait_for_timeout(16)
    page.mouse.up()
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
