"""The gateway killed with SIGKILL at each step of a handoff, and at random moments of it.

The next gateway completes it: one confirmation in one place, the session whole and in that place. The worst that is
left is a topic in which nothing was said.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from session_store import Home, NewHandoff, PlaceRef, SessionDB
from tests.conftest import Elsewhere
from tests.gateways import GatewayProcess, eventually
from tests.worlds import TelegramWorld, settings_of

DOOMED = [sys.executable, str(Path(__file__).with_name("doomed_gateway.py"))]
HOME = PlaceRef("telegram", "main", "dm", "42")
STEPS = ("claim", "hold", "opening", "thread", "opened", "bind")
MOMENTS = [*(f"after {step}" for step in STEPS), "before bind"]
SAID = ["Where is the key?", "Under the mat."]
STATES = "SELECT op_id, state, attempts FROM handoffs ORDER BY id"
ROUTES = "SELECT session_key, session_id FROM routes"


async def asked(home: Path, number: int) -> str:
    """A conversation of its own, with a request to bring it to Ann's direct chat; returns the session's id."""
    session_id = f"session-{number}"
    async with SessionDB(home / "state.db") as db:
        await db.people.sync_config({}, {})
        await db.create_session(session_id, "cli", owner="owner", title=f"The key {number}")
        for role, text in zip(("user", "assistant"), SAID, strict=True):
            await db.append_message(session_id, role, text)
        await db.handoffs.request(NewHandoff(f"op-{number}", "handoff", session_id, Home(HOME, "42"), "owner"))
    return session_id


@asynccontextmanager
async def town(home: Path) -> AsyncIterator[TelegramWorld]:
    """Telegram, and a home that knows it."""
    world = TelegramWorld()
    async with world.server:
        world.server.chat(42)
        (home / "config.yaml").write_text(yaml.safe_dump(settings_of(world)), encoding="utf-8")
        yield world


async def arrived(world: TelegramWorld, home: Path, elsewhere: Elsewhere, session_id: str) -> None:
    """A whole gateway finishes what is left; the next message in the place continues the session."""
    async with GatewayProcess(home).running() as gateway:
        await world.until(lambda: world.heard)
        (place, words), *more = world.heard
        assert (more, "goes on here" in words, "Under the mat" in words) == ([], True, True)
        world.say("It was moved", place)
        await world.until(lambda: len(world.heard) == 2)
        await gateway.stop()
    assert elsewhere(ROUTES) == [
        {"session_key": f"agent:main:telegram:dm:42:thread={place.thread}", "session_id": session_id}
    ]
    rows = elsewhere("SELECT session_id, content FROM messages ORDER BY id")
    assert {row["session_id"] for row in rows} == {session_id}
    assert [row["content"] for row in rows[:2]] == SAID
    assert rows[2]["content"] == "This conversation goes on in a thread of a direct chat on Telegram (“The key 1”)."
    assert [row["content"] for row in rows[3:4]] == ["It was moved"]
    assert len(rows) == 5
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_handoff_killed_at_any_step_is_completed_once_by_the_next_gateway(
    home: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Nothing is half there in between: until it is bound, nothing has changed."""
    async with town(home) as world:
        session_id = await asked(home, 1)
        doomed = GatewayProcess(home, TEST_DIES_AT=moment)
        monkeypatch.setattr("tests.gateways.COMMAND", DOOMED)
        await doomed.dies()
        monkeypatch.undo()
        ((state, attempts),) = [(row["state"], row["attempts"]) for row in elsewhere(STATES)]
        bound = moment == "after bind"
        assert (state, attempts) == ("completed" if bound else "claimed", 1)
        assert len(elsewhere(ROUTES)) == int(bound)
        await arrived(world, home, elsewhere, session_id)
        empty = len(world.server.chats[42].topics) - 1
        assert empty == int(moment == "after thread")


@pytest.mark.timeout(250)
async def test_a_handoff_among_random_kills_arrives_whole_or_not_at_all(home: Path, elsewhere: Elsewhere) -> None:
    """Kills at random moments after the request; what was given up says so, and its session is where it was."""
    await among_kills(home, elsewhere, 6)


@pytest.mark.soak
async def test_two_hundred_handoffs_among_kills(home: Path, elsewhere: Elsewhere) -> None:
    """The same for long."""
    await among_kills(home, elsewhere, 200)


async def among_kills(home: Path, elsewhere: Elsewhere, kills: int) -> None:
    """Ask for a handoff and kill the gateway soon after its start, so many times; then let it work in peace."""
    chance = random.Random(7)  # noqa: S311 - repeatable, no secret
    async with town(home) as world:
        for number in range(kills):
            await asked(home, number)
            gateway = GatewayProcess(home)
            await gateway.start()
            await asyncio.sleep(chance.uniform(0.0, 0.6))
            await gateway.kill()
        async with GatewayProcess(home).running() as gateway:
            await eventually(lambda: all_over(elsewhere), 90)
            await world.until(lambda: len(world.heard) >= completed(elsewhere))
            await gateway.stop()
    states = [row["state"] for row in elsewhere(STATES)]
    sys.stdout.write(f"{kills} kills: {dict(Counter(states))}, {len(world.server.chats[42].topics)} topics\n")
    assert len(states) == kills
    assert set(states) <= {"completed", "failed", "expired"}
    routed = {row["session_id"] for row in elsewhere(ROUTES)}
    assert routed == {f"session-{number}" for number, state in enumerate(states) if state == "completed"}
    for number, state in enumerate(states):
        rows = elsewhere("SELECT content FROM messages WHERE session_id = ?", f"session-{number}")
        assert len(rows) == (3 if state == "completed" else 2)
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


async def all_over(elsewhere: Elsewhere) -> bool:
    """Whether every request has ended."""
    rows = await asyncio.to_thread(elsewhere, STATES)
    return not {"requested", "claimed"} & {row["state"] for row in rows}


def completed(elsewhere: Elsewhere) -> int:
    """How many have arrived."""
    return sum(row["state"] == "completed" for row in elsewhere(STATES))
