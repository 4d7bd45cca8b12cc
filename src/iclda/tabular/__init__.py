"""Tables of users: CSV and Parquet files in, a scikit-learn pipeline out.

There is a reader for each format of files (``csv_files``, ``parquet_files``,
``array_files``) and one of frames (``frames``); what they share is in ``readers``, and
``files`` opens them. ``labels`` finds the class of every row, ``table`` puts features
and labels together, and ``checks`` says what is wrong with them. ``column_types`` and
``encoders`` turn columns into numbers. ``fit`` and ``predict`` do what their names say,
and ``summaries`` puts into words what a person should know of both.
"""

from .column_types import pipeline, preprocessing
from .encoders import (
    AmountEncoder,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    WrittenDateEncoder,
)
from .readers import Source
from .table import Table, read_table

__all__ = [
    "AmountEncoder",
    "CategoryEncoder",
    "DateEncoder",
    "NumberEncoder",
    "Source",
    "Table",
    "WrittenDateEncoder",
    "pipeline",
    "preprocessing",
    "read_table",
]
