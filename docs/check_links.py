"""Check the links inside a built site.

python docs/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Targets of a page, and what it loads or links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.targets.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    found = [
        path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    ]
    pages = {path.resolve(): Page(path) for path in found}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            known = pages.get(target)
            anchor = unquote(parts.fragment)
            is_missing = anchor and known and anchor not in known.targets
            if is_missing or not target.is_file():
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    if not pages:
        broken.append(f"no pages in {site}")
    return broken


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    sys.exit("\n".join(["Broken links:", *found]) if found else 0)
