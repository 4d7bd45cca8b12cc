"""The cells of a study."""

from .store import Cell

__all__ = ["Cell"]
