"""The page on which a person labels rows."""

from .server import labeling_site
from .session import LabelingSession
from .shown import ShownRows

__all__ = ["LabelingSession", "ShownRows", "labeling_site"]
