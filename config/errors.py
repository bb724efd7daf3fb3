"""What can be wrong with the settings, in sentences that name the place, the key, what was found and what is expected.

Contract: a value that may be a secret never gets into a message. All problems of one load are reported together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ConfigError", "Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    where: file (with its line) or variable that it was read from. what: the sentence about it, which names the key.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ConfigError(Exception):
    """The settings cannot be used as they are. Nothing was started or changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
