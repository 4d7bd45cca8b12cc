"""Help in plain lines: choices and words instead of the types that typer shows."""

from __future__ import annotations

import re
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

_TYPE = re.compile(r" ?<[\w ]+>")  # such as <path>
_ANY = re.compile(r"; x>=0|; 0<=x<=\d+")
_LEAST, _RANGE = re.compile(r"x>=(\d+)"), re.compile(r"(\d+)<=x<=(\d+)")
_HYPHEN, _UNBROKEN = "-", "\N{NON-BREAKING HYPHEN}"


class _PlainHelp:
    """Usage and options without braces, names of Python types and formulas."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        titles = {"argument": "Arguments", "option": "Options"}
        lines: dict[str, list[tuple[str, str]]] = {title: [] for title in titles.values()}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            record = param.get_help_record(ctx)
            if record is not None:
                names, text = record
                text = _LEAST.sub(r"\1 or more", _ANY.sub("", text))
                text = _RANGE.sub(r"\1 to \2", text)
                row = _TYPE.sub("", names), text.replace(_HYPHEN, _UNBROKEN)
                lines[titles[param.param_type_name]].append(row)
        for title, rows in lines.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        # A line may not end within a name.
        formatter.buffer = [text.replace(_UNBROKEN, _HYPHEN) for text in formatter.buffer]


class PlainCommand(_PlainHelp, TyperCommand):
    """A command with such help; errors show the value of an option, as not every typer does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            problems: Any = getattr(error.__cause__, "errors", list)()  # of pydantic, if it is used
            if problems:
                error.message += f", got {problems[0]['input']!r}."
            raise


class PlainGroup(_PlainHelp, TyperGroup):
    """All commands, with such help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
