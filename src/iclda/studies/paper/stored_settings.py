"""Settings that a run of the experiments stores with its rows, for the report."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ..store import Store
from .design import WITH_REPLACEMENT


@dataclass(frozen=True)
class StoredSettings:
    """Settings of the runs of a folder, as the store has them by these names.

    Attributes
    ----------
    data : dict
        SHA-256 of every data set.
    shapes : dict
        Numbers of rows, features and classes of every data set.
    origins : dict
        The folder or package that every data set was read from.
    """

    seed: int = 0
    labels: int = 0
    drawing: str = WITH_REPLACEMENT
    data: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = "unknown"
    jobs: int | str = "unknown"
    shapes: dict[str, list[int]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    began: str = "unknown"
    seconds_tables: float = 0.0
    seconds_curves: float = 0.0

    @property
    def seconds(self) -> float:
        return self.seconds_tables + self.seconds_curves


def read_settings(store: Store) -> StoredSettings:
    """Read the settings of a store; those that it lacks have their defaults."""
    stored = store.settings()
    names = [field.name for field in fields(StoredSettings)]
    return StoredSettings(**{name: stored[name] for name in names if name in stored})
