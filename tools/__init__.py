"""Programs of the maintainers, most of them run by `make`: ``python -m tools.NAME``."""
