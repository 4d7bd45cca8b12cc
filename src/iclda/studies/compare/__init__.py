"""Methods compared on people's tables. What a comparison says is in ``sentences.toml``."""

import tomllib
from importlib.resources import files

SENTENCES = tomllib.loads(
    files(__package__).joinpath("sentences.toml").read_text("utf-8")
)
