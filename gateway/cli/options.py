"""Options and arguments that several commands share, each with the same words, and the form of their help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

__all__ = [
    "AsJson",
    "Continue",
    "Everything",
    "Resume",
    "SessionId",
    "Source",
    "TakingUpCommand",
    "Wanted",
    "Yes",
    "sub_command",
    "wanted",
    "with_optional_title",
]

Continue = Annotated[
    str | None,
    typer.Option(
        "--continue",
        "-c",
        metavar="[TITLE]",
        help="Take up the session last used in a terminal, or the one with this title.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        "-r",
        metavar="SESSION",
        help="Take up a session from anywhere: its id, its title, the beginning of either, or 'latest'.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Everything = Annotated[bool, typer.Option("--all", help="Also what is other people's or nobody's: the whole home.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Source = Annotated[
    str | None, typer.Option(metavar="ENTRANCE", help="Only sessions born there: cli, web, telegram, ...")
]
SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, a unique beginning of it, or a title.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which session a chat is to take up. name: as it was typed, None for the one last used in a terminal."""

    name: str | None = None


def wanted(continued: str | None, resumed: str | None) -> Wanted | None:
    """What -c and -r come to; None when neither was given. Both, or an empty name, are wrong usage."""
    if continued is not None and resumed is not None:
        raise typer.BadParameter("Give either -c or -r, not both.")
    if resumed is not None and not resumed.strip():
        raise typer.BadParameter("Say which session: its id, its title, or 'latest'. `-c` alone takes the last one.")
    if continued is not None:
        return Wanted(continued if continued.strip() else None)
    return None if resumed is None else Wanted(resumed)


def with_optional_title(arguments: Sequence[str]) -> list[str]:
    """Arguments in which a -c that stands alone has an empty title, as the parser wants one."""
    given = list(arguments)
    options = given[: given.index("--")] if "--" in given else given
    for number, argument in enumerate(options):
        follows = options[number + 1] if number + 1 < len(options) else "-"
        if argument in {"-c", "--continue"} and follows.startswith("-"):
            given[number] = "--continue="
    return given


#: An argument as the library writes it, `{ID}` or `{WORDS...}...`.
_BRACED = re.compile(r"^\{(.*?)(?:\.\.\.)?\}(\.\.\.)?$")
#: More than the first sentence of any help; in a list of commands that sentence stands whole, on two lines if need be.
_WHOLE_SENTENCE = 1000


class PlainCommand(TyperCommand):
    """A command whose help names its arguments as its usage does, without braces and the program's word for their type.

    In a list of commands its first sentence is not cut.
    """

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = _no_type  # type: ignore[attr-defined]  # an argument has it

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the line of usage: `ID`, `WORDS...`."""
        return [_BRACED.sub(r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]

    def get_short_help_str(self, limit: int = _WHOLE_SENTENCE) -> str:
        """The first sentence, however wide the list is."""
        return super().get_short_help_str(max(limit, _WHOLE_SENTENCE))


def _no_type(**_: Any) -> None:
    """What is shown of the type of an argument."""


class TakingUpCommand(PlainCommand):
    """A command with -c, whose title may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every command does."""
        return super().parse_args(ctx, with_optional_title(args))


class _Commands(typer.Typer):
    """An app whose commands are plain ones."""

    def command(self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **how: Any) -> Any:
        """Register a command as every app does."""
        return super().command(name, cls=cls or PlainCommand, **how)


def sub_command(summary: str | None = None) -> typer.Typer:
    """The app of a sub-command, with plain help as `threadline --help` has it.

    summary: what a group of commands is for; without commands it shows its help. None: the app is one command.
    """
    return _Commands(help=summary, no_args_is_help=summary is not None, rich_markup_mode=None, add_completion=False)
