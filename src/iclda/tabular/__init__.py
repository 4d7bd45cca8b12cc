"""Tables of users: CSV and Parquet files in, a scikit-learn pipeline out."""

from .encoders import (
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    pipeline,
    preprocessing,
)
from .table import Source, Table, read_table

__all__ = [
    "CategoryEncoder",
    "DateEncoder",
    "NumberEncoder",
    "Source",
    "Table",
    "pipeline",
    "preprocessing",
    "read_table",
]
