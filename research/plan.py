"""The experiments on the open questions, as ``questions.toml`` lists them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

# Name of this study in the settings of its store.
KIND = "questions"
# Data sets, families of problems and counterexamples, and the experiments on them.
PLAN: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("questions.toml").read_text("utf-8")
)
EXPERIMENTS: dict[str, dict[str, Any]] = PLAN["experiments"]
# Shares of an unlabeled row at which the objective of a counterexample is computed.
N_GRID_SHARES = 61
