"""Handing a conversation off from the shell and from the terminal's chat, without a gateway that would take it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from session_store import HandoffRow, Home, PlaceRef, SessionDB
from tests.terminals import COMMAND, at_a_terminal, environment, threadline

SESSION = "20261129_120000_abcdef"
CHAT = PlaceRef("telegram", "main", "dm", "42")
PROMPT = "\n>"


@pytest.fixture
def begun(home: Path) -> Path:
    """A home with Telegram, which nobody serves, and a conversation of the owner who has a home there."""
    telegram = {"enabled": True, "token": "1:t", "base_url": "http://127.0.0.1:9"}
    settings = {"owner": {"telegram": ["42"]}, "web": {"port": 0}, "platforms": {"telegram": telegram}}
    (home / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    async def fill() -> None:
        async with SessionDB(home / "state.db") as db:
            await db.people.sync_config({"telegram": ["42"]}, {})
            await db.create_session(SESSION, "cli", owner="owner", title="The key")
            await db.append_message(SESSION, "user", "Where is the key?")
            await db.append_message(SESSION, "assistant", "Under the mat.")
            await db.home_places.set("owner", Home(CHAT, "42"))

    asyncio.run(fill())
    return home


def handoffs(home: Path) -> list[HandoffRow]:
    """The requests that wait for a gateway, in order."""

    async def look() -> list[HandoffRow]:
        async with SessionDB(home / "state.db") as db:
            return await db.handoffs.claimable([(CHAT.platform, CHAT.account)], "somebody")

    return asyncio.run(look())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["The key", "nowhere"], 1, "There is no platform “nowhere”"),
        (["The key", "slack"], 1, "Slack is not enabled here"),
        (["The key", "telegram:-5"], 1, "No chat “-5” of yours is known"),
        (["No such title", "telegram"], 1, "There is no session"),
        (["The key"], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_is_one_sentence(begun: Path, arguments: list[str], code: int, words: str) -> None:
    """And nothing is asked for."""
    done = threadline(begun, "handoff", *arguments)
    assert done.returncode == code
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert handoffs(begun) == []


@contextmanager
def waiting(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A shell in which `threadline handoff` waits for a gateway; it has said so."""
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [*COMMAND, "handoff", "The key", "telegram"], env=environment(home), stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stderr is not None
        assert "No running gateway serves Telegram now" in process.stderr.readline()
        yield process


def test_ctrl_c_calls_it_off(begun: Path) -> None:
    """It says at once that nobody is there, and afterwards that nothing has changed."""
    with waiting(begun) as process:
        assert [row["state"] for row in handoffs(begun)] == ["requested"]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "the conversation is where it was" in said
    assert process.returncode == 130
    assert handoffs(begun) == []


def test_a_second_terminal_is_told_that_it_is_on_its_way(begun: Path) -> None:
    """And does not disturb the first one."""
    with waiting(begun) as process:
        second = threadline(begun, "handoff", SESSION, "telegram")
        assert second.returncode == 1
        assert "on its way to another place already" in second.stderr.decode()
        assert [row["state"] for row in handoffs(begun)] == ["requested"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_in_the_chat_one_types_on_and_ctrl_c_calls_it_off(begun: Path) -> None:
    """Progress and outcome stand above the prompt."""
    with at_a_terminal(begun, "-r", "The key") as person:
        person.sees(PROMPT)
        person.type("/handoff telegram")
        person.press("enter")
        person.sees("Bringing this conversation to a direct chat on Telegram")
        person.sees("No running gateway serves Telegram now")
        person.press("ctrl-c")
        person.sees("The handoff was cancelled; the conversation is where it was.")
    assert handoffs(begun) == []


def test_what_came_back_is_what_continue_takes_up(begun: Path) -> None:
    """Also if another conversation was begun in the terminal meanwhile."""

    async def in_a_chat() -> None:
        async with SessionDB(begun / "state.db") as db:
            await db.create_session("elsewhere", "telegram", owner="owner", title="From afar")
            await db.append_message("elsewhere", "user", "The train leaves at noon")

    asyncio.run(in_a_chat())
    assert threadline(begun, "chat", "-q", "something else").returncode == 0
    done = threadline(begun, "handoff", "From afar", "cli", "--json")
    assert json.loads(done.stdout) == {
        "session": "elsewhere",
        "state": "completed",
        "place": "cli",
        "left_chats": False,
    }
    shown = threadline(begun, "chat", "-c", "-q", "when does the train leave?")
    assert b"noon" in shown.stdout
    assert "It came this way" not in threadline(begun, "sessions", "show", "elsewhere").stdout.decode()
