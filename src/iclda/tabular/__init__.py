"""Tables of users: CSV and Parquet files in, a scikit-learn pipeline out.

There is a reader for each format of files (``csv_files``, ``parquet_files``,
``array_files``) and one of frames (``frames``); what they share is in ``readers``, and
``files`` opens them. ``labels`` finds the class of every row, ``table`` puts features
and labels together, and ``checks`` says what is wrong with them. ``column_types`` and
``encoders`` turn columns into numbers, and ``table_classifier`` is both as one
classifier. ``fit`` and ``predict`` do what their names say; ``training_rows`` and
``suspects`` find rows that an evaluation leaves out, and labels that look wrong.
``summaries`` puts into words what a person should know of all this.
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
from .table_classifier import TableClassifier

__all__ = [
    "AmountEncoder",
    "CategoryEncoder",
    "DateEncoder",
    "NumberEncoder",
    "Source",
    "Table",
    "TableClassifier",
    "WrittenDateEncoder",
    "pipeline",
    "preprocessing",
    "read_table",
]
