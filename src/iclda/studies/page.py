"""From a view to a page: one look for all reports, every name in them escaped."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from .requirements import require


def fill(template: str, view: Mapping[str, Any], package: str) -> str:
    """A template of a package, filled in; it can extend ``page.html.j2`` of this one."""
    jinja2 = require("jinja2")

    def load(name: str) -> str:
        home = __package__ if name == "page.html.j2" else package
        return files(home).joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text: str = environment.get_template(template).render(view)
    return text
