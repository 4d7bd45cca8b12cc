"""Names that moved to ``engine``, ``measures`` and ``_statistics``."""

from .._statistics import corrected_t_test, holm
from .engine import rng_of
from .measures import LEVEL

__all__ = ["LEVEL", "corrected_t_test", "holm", "rng_of"]
