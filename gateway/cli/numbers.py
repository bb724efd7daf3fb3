"""Whole numbers on the command line: what is no such number, or too small or too large, is refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

import typer

__all__ = ["whole_number"]

#: More digits are no number that anything here could mean, nor one that the store could hold.
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}\Z", re.ASCII)


def whole_number(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """A parser of options and arguments, for numbers from `least` to `most` (None: as large as can be)."""
    wanted = f"{least} or more" if most is None else f"from {least} to {most}"

    def parse(text: str | int) -> int:
        if isinstance(text, str) and not _NUMBER.match(text.strip()):
            raise typer.BadParameter(f"“{text}” is not a number. Give a whole number, {wanted}.")
        number = int(text)
        if number < least or (most is not None and number > most):
            raise typer.BadParameter(f"{number} is out of range. Give a whole number, {wanted}.")
        return number

    return parse
