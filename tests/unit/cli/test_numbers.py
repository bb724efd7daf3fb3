"""Numbers on the command line: what is none is refused in a sentence of ours, for every command alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from gateway.cli.main import app
from gateway.cli.numbers import whole_number
from tests.unit.cli.conftest import Threadline


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its path."""
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], (*path, name))


def numbers() -> list[tuple[str, ...]]:
    """A call of each command with something else where a number is wanted."""
    calls = []
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if "int" in str(parameter.type_descriptor.annotation):
                option = () if parameter.param_type_name == "argument" else (parameter.opts[0],)
                calls.append((*path, *option, "many"))
    return calls


@pytest.mark.parametrize("call", numbers(), ids=" ".join)
def test_what_is_no_number_is_named_with_what_is_wanted(threadline: Threadline, call: tuple[str, ...]) -> None:
    """In words of ours, as wrong usage."""
    refused = threadline(*call)

    assert refused.exit_code == 2
    assert "“many” is not a number. Give a whole number, " in refused.stderr


def test_there_are_such_commands() -> None:
    """The test above looks at some."""
    assert len(numbers()) >= 6


@pytest.mark.parametrize("text", ["", "x", "1.5", "٣", "1e3", "9" * 19, "0x10", "1_000"])
def test_only_plain_digits_are_a_number(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(typer.BadParameter, match="is not a number"):
        whole_number(1)(text)


@pytest.mark.parametrize(("number", "wanted"), [("0", "1 or more"), ("-3", "1 or more")])
def test_a_number_that_is_too_small_is_told_from_where_on(number: str, wanted: str) -> None:
    """And what it was."""
    with pytest.raises(typer.BadParameter, match=f"{number} is out of range. Give a whole number, {wanted}."):
        whole_number(1)(number)


def test_numbers_within_both_bounds_are_taken() -> None:
    """The bounds themselves, too."""
    parse = whole_number(1, 500)
    assert [parse("1"), parse(" 500 "), parse("+7"), parse(20)] == [1, 500, 7, 20]
    with pytest.raises(typer.BadParameter, match="from 1 to 500"):
        parse("501")


def test_help_names_arguments_without_the_programs_word_for_their_type(threadline: Threadline) -> None:
    """For every command that takes some."""
    looked = 0
    for path, command in commands(typer.main.get_command(app)):
        if any(parameter.param_type_name == "argument" for parameter in command.params):
            shown = threadline(*path, "--help").stdout
            arguments = shown.split("Arguments:")[1].split("Options:")[0]
            assert "<" not in arguments.split("]")[0], shown
            assert "list[" not in shown
            looked += 1
    assert looked >= 4
