"""Rows, wherever they are: in memory, in files, on a device, on a Dask cluster.

A backend is a module of this folder with the two functions of ``dispatch.Backend``:
``files``, ``device`` or ``dask``. Its rows derive from ``weighted_rows.WeightedRows``.
Arrays in memory need no backend; ``memory.MemoryRows`` has their sums.
"""

from .dispatch import Backend, backend_of
from .progress import Callback, listen, report_as, unreported
from .weighted_rows import WeightedRows

__all__ = [
    "Backend",
    "Callback",
    "WeightedRows",
    "backend_of",
    "listen",
    "report_as",
    "unreported",
]
