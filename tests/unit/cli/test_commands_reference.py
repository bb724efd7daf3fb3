"""`docs/reference/commands.md` says what the commands are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gateway.cli.main import app
from gateway.commands import default_registry
from tests.unit.cli.conftest import Threadline

pytestmark = pytest.mark.documents

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below this one with its whole name, itself first."""
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], f"{path} {name}")


def names_of(parameter: Any) -> str:
    """How an argument or option is written, with its value."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or 'TEXT'}"
    return ", ".join(f"`{name}{value}`" for name in sorted(parameter.opts, key=len, reverse=True))


def rows(command: Any) -> list[str]:
    """The rows of a command's table: arguments and options as --help tells them."""
    told = [each for each in command.params if each.name not in {"install_completion", "show_completion"}]
    return [f"| {names_of(each)} | {each.help} |" for each in told]


def sections() -> dict[str, str]:
    """The text under each heading that names a command."""
    text = REFERENCE.read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} `(threadline[^`]*)`\n", text, flags=re.MULTILINE)
    return {
        name: re.split(r"^## ", body, flags=re.MULTILINE)[0]
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_every_command_is_documented_as_it_is_and_no_other() -> None:
    """What it does, its arguments and its options, in the words of --help, in that order."""
    documented = sections()
    found = dict(commands(typer.main.get_command(app), "threadline"))

    assert list(documented) == list(found)
    for name, command in found.items():
        assert inspect.cleandoc(command.help or "").split("\n")[0] in documented[name], name
        assert re.findall(r"^\| `.*\|$", documented[name], flags=re.MULTILINE) == rows(command), name


def test_every_slash_command_is_documented_as_it_is_and_no_other() -> None:
    """In the order of /help."""
    text = REFERENCE.read_text(encoding="utf-8")

    told = re.findall(r"^\| (`/.*`) \| (.*) \|$", text, flags=re.MULTILINE)

    assert told == [(f"`{command.usage}`", command.summary) for command in default_registry().commands]


@pytest.mark.parametrize("name", [name for name, _ in commands(typer.main.get_command(app), "threadline")])
def test_help_is_plain_and_looks_alike_for_every_command(threadline: Threadline, name: str) -> None:
    """No frames, no names of types, and completion is a matter of the whole program."""
    shown = threadline(*name.split()[1:], "--help").stdout

    assert shown.startswith(f"Usage: {name}")
    assert "╭" not in shown
    assert "<bool>" not in shown
    assert "{" not in shown
    assert "......" not in shown
    assert ("--install-completion" in shown) == (name == "threadline")


@pytest.mark.parametrize("name", ["threadline", "threadline sessions", "threadline outbox"])
def test_what_a_command_is_for_is_not_cut_in_a_list_of_commands(
    threadline: Threadline, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On the width that terminals begin with."""
    monkeypatch.setenv("COLUMNS", "80")

    listed = threadline(*name.split()[1:], "--help").stdout.partition("Commands:\n")[2]

    assert listed
    assert not [line for line in listed.splitlines() if line.endswith("...")]
