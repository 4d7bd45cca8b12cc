"""Rows, wherever they are: in memory, in files, on a device, on a Dask cluster.

Begin with ``protocol``, which says what a backend supplies, and ``kinds``, the table of
what can be passed as rows. Then read one backend at a time:

- In memory: ``memory`` has the sums of rows that come as NumPy arrays, with ``threads``
  that work on blocks in order. ``chained`` puts several sources together.
- ``files``: rows larger than memory become blocks of equal length. ``readers`` and
  ``batch_readers`` read them, ``parquet`` one file, ``reservoir`` keeps a sample.
- ``device``: arrays of other libraries, on the devices of ``places``, summed by
  ``device_blocks`` or by ``fused`` with the ``kernels``, corrected by ``precision``.
- ``dask``: a cluster, with its ``dask_tasks`` and ``dask_workers``.

All of them use ``checks`` and report ``progress``.
"""

from .dispatch import backend_of
from .progress import Callback, listen, report_as, unreported
from .protocol import Backend, WeightedRows

__all__ = [
    "Backend",
    "Callback",
    "WeightedRows",
    "backend_of",
    "listen",
    "report_as",
    "unreported",
]
