"""Counts and names as they stand in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def quoted(names: Sequence[str], most: int) -> str:
    """The first names in quotes, and how many more there are: 'a', 'b' and 3 more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count and its noun: 1 fit, 2 fits."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def printable(text: str) -> str:
    """Text without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
