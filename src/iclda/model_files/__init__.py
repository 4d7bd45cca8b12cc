"""Model files: fitted classifiers kept by skops, with a checksum and an allow-list of types."""

from .save_load import InconsistentModelWarning, load_model, model_details, save_model

__all__ = ["InconsistentModelWarning", "load_model", "model_details", "save_model"]
