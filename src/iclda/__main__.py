"""``python -m iclda`` is the command ``iclda``."""

from .cli import main

main()
