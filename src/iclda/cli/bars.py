"""How commands that run for a while show how far they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RESUMABLE = "What was computed is kept: run the same command to go on."


@contextmanager
def shown_progress(quiet: bool, unit: str = "cells") -> Iterator[Any]:
    """Bars on a terminal, lines elsewhere, or nothing."""
    from ..experiments.progress import bars, lines, nothing

    if quiet:
        yield nothing
    elif sys.stderr.isatty():
        with bars(unit) as advance:
            yield advance
    else:
        yield lines(unit)
