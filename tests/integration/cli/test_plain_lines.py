"""The chat where no prompt can be drawn: dumb terminals, and output that goes into a file."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.terminals import SLOW_COMMAND, at_a_terminal, environment, eventually

DUMB = {"TERM": "dumb"}


def test_a_dumb_terminal_gets_no_escape_sequences(home: Path) -> None:
    """Each line is a message; answers and commands work as elsewhere."""
    with at_a_terminal(home, variables=DUMB) as person:
        person.sees("\n>")
        person.type("kept in the dark\r")
        person.sees("Kept: kept in the dark")
        person.type("/hlep\r")
        person.sees("Did you mean /help?")
        assert person.leave() == 0
        assert b"\x1b" not in person.raw
        assert person.everything.count("kept in the dark") == 2  # as typed, and in the answer


def test_ctrl_c_ends_the_turn_and_the_talk_goes_on(home: Path) -> None:
    """A second one with nothing between leaves."""
    with at_a_terminal(home, variables=DUMB, command=SLOW_COMMAND) as person:
        person.sees("\n>")
        person.type("hello\r")
        eventually((home / "begun").exists, "the agent works")
        os.kill(person.pid, signal.SIGINT)
        person.sees("Stopped.")
        (home / "gate").touch()
        person.type("again\r")
        person.sees("answer to again")
        # The answer is shown before its turn has quite ended; the prompt comes when it has.
        person.sees("\n>")
        os.kill(person.pid, signal.SIGINT)
        person.sees("Ctrl-C again or Ctrl-D leaves.")
        os.kill(person.pid, signal.SIGINT)
        assert person.ends() == 0


def test_output_into_a_file_is_the_talk_alone(home: Path) -> None:
    """The prompt goes to stderr, where the person sees it."""
    (home / "gate").touch()
    terminal, keyboard = os.openpty()
    os.write(terminal, b"a question\n\x04")
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        SLOW_COMMAND, stdin=keyboard, capture_output=True, env=environment(home), timeout=60, check=False
    )
    os.close(terminal)
    os.close(keyboard)

    assert done.returncode == 0
    assert "> a question\n  1 tool call: look\nanswer to a question\n" in done.stdout.decode()
    assert b"\x1b" not in done.stdout
    assert done.stderr == b"> > "
