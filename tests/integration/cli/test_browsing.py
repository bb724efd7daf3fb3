"""Picking a session on a real terminal, and going on with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.owner import OWNER
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.terminals import at_a_terminal

PROMPT = "\n>"


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with two sessions of the owner and one of somebody else."""

    async def fill() -> None:
        async with SessionDB(home / "state.db") as db:
            for number, (owner, title) in enumerate(((OWNER, "Parser"), (OWNER, "Build"), ("p2", "Salary"))):
                await db.create_session(f"2026010{number}_100000_aaaaaa", "cli", owner=owner, title=title)
                await db.append_message(f"2026010{number}_100000_aaaaaa", "user", f"about the {title.lower()}")

    asyncio.run(fill())
    return home


def test_typing_filters_and_enter_goes_on_there(filled: Path, elsewhere: Elsewhere) -> None:
    """The chat opens in the session with its recap; the screen is as before."""
    with at_a_terminal(filled, "sessions", "browse") as person:
        shown = person.sees("Build", "Parser", "2 sessions. Enter goes on with it, Esc leaves.")
        assert "Salary" not in shown
        person.type("pars")
        person.sees("Filter: pars", "1 session.")
        person.sees_no_more("Build")
        person.press("enter")
        person.sees("Going on with “Parser”: 1 message", "> about the parser", PROMPT)
        person.enter("more of it")
        person.sees("Kept: more of it")
        assert person.leave() == 0
    (row,) = elsewhere("SELECT session_id FROM messages WHERE content = 'more of it'")
    assert row["session_id"] == "20260100_100000_aaaaaa"


@pytest.mark.parametrize("key", ["q", "\x03", "\x1b"])
def test_leaving_changes_nothing(filled: Path, elsewhere: Elsewhere, key: str) -> None:
    """By q, Ctrl-C and Esc."""
    before = elsewhere("SELECT * FROM sessions")
    with at_a_terminal(filled, "sessions", "browse") as person:
        person.sees("2 sessions.")
        person.type(key)
        assert person.ends() == 0
    assert elsewhere("SELECT * FROM sessions") == before


def test_escape_takes_the_filter_away_first(filled: Path) -> None:
    """A `q` behind other letters is a letter."""
    with at_a_terminal(filled, "sessions", "browse") as person:
        person.sees("2 sessions.")
        person.type("buq")
        person.sees("Filter: buq", "Nothing matches.")
        person.type("\x1b")
        person.sees("2 sessions.")
        person.type("\x1b")
        assert person.ends() == 0


def test_a_dumb_terminal_asks_for_a_number(filled: Path) -> None:
    """Until there is one."""
    with at_a_terminal(filled, "sessions", "browse", variables={"TERM": "dumb"}) as person:
        person.sees("   1. Build", "   2. Parser", "Enter alone leaves:")
        person.type("7\r")
        person.sees("That is none of the numbers from 1 to 2.")
        person.type("2\r")
        person.sees("Going on with “Parser”: 1 message")
