"""People's own tables: CSV and Parquet files in, a scikit-learn pipeline out."""

from .encoders import CategoryEncoder, NumberEncoder
from .preparation import pipeline, preprocessing
from .table import Source, Table, read_table

__all__ = [
    "CategoryEncoder",
    "NumberEncoder",
    "Source",
    "Table",
    "pipeline",
    "preprocessing",
    "read_table",
]
