"""The open questions of the paper: experiments whose stored rows answer them.

``questions.toml`` lists the experiments and their data sets; ``run`` fits and stores, ``report``
draws the answers from the rows.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

QUESTIONS = "questions"  # kind of stores
PLAN = tomllib.loads(files(__package__).joinpath("questions.toml").read_text("utf-8"))
EXPERIMENTS: dict[str, dict[str, Any]] = PLAN["experiments"]
GRID = 61  # shares of an unlabeled row at which the objective of an example is computed
