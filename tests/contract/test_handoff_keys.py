"""The key of a handed-off place is the key of the next real message there, byte for byte, also after a restart.

Real client libraries at emulated platforms, the whole gateway. The conversation begins in the terminal, with a tool
call in it, and its session goes on under its own id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.base import Place
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.gateways import LocalGateway, threadline
from tests.worlds import DiscordWorld, SlackWorld, TelegramWorld, World, settings_of

SESSION = "20261129_090000_abc123"
CALL = {"id": "call-1", "type": "function", "function": {"name": "session_search", "arguments": '{"query": "key"}'}}


@dataclass(frozen=True, slots=True)
class Way:
    """A home on a platform, and what the place looks like where the conversation goes on."""

    world: Callable[[], World]
    home: Callable[[Any], Place]
    key: str
    refuses_threads: bool = False
    more: tuple[tuple[str, Any], ...] = ()


WAYS = {
    "telegram direct chat": Way(
        TelegramWorld, lambda world: world.direct, "agent:main:telegram:dm:42", refuses_threads=True
    ),
    "telegram private topic": Way(TelegramWorld, lambda world: world.direct, "agent:main:telegram:dm:42:thread={}"),
    "telegram forum topic": Way(TelegramWorld, lambda world: world.forum, "agent:main:telegram:group:-100:thread={}"),
    "telegram group": Way(TelegramWorld, lambda world: world.group, "agent:main:telegram:group:-200:user=42"),
    "telegram group, one session for the room": Way(
        TelegramWorld,
        lambda world: world.group,
        "agent:main:telegram:group:-200",
        more=(("group_sessions_per_user", False),),
    ),
    "discord direct chat": Way(DiscordWorld, lambda world: world.direct, "agent:main:discord:dm:742"),
    "discord channel": Way(DiscordWorld, lambda world: world.channel, "agent:main:discord:thread:{}"),
    "slack direct chat": Way(SlackWorld, lambda world: world.direct, "agent:main:slack:dm:T1/D1"),
    "slack channel": Way(SlackWorld, lambda world: world.channel, "agent:main:slack:group:T1/C1:thread={}"),
    "slack channel, threads apart by person": Way(
        SlackWorld,
        lambda world: world.channel,
        "agent:main:slack:group:T1/C1:thread={}:user=U1",
        more=(("thread_sessions_per_user", True),),
    ),
}


@pytest.fixture(autouse=True)
async def begun(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation of the owner in the terminal, with a tool call; locks of accounts are the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    async with SessionDB(home / "state.db") as db:
        await db.people.sync_config({}, {})
        await db.create_session(SESSION, "cli", owner="owner", title="The key")
        await db.append_message(SESSION, "user", "Where is the key?")
        await db.append_message(SESSION, "assistant", None, tool_calls=[CALL])
        await db.append_message(SESSION, "tool", "under the mat", tool_call_id="call-1", tool_name="session_search")
        await db.append_message(SESSION, "assistant", "Under the mat.")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_the_key_after_a_handoff_is_the_key_of_the_next_message(
    way: Way, home: Path, elsewhere: Elsewhere
) -> None:
    """`/sethome` in the chat, `threadline handoff`, a message in the new place; a restart; another message."""
    world = way.world()
    async with world.server:
        (home / "config.yaml").write_text(yaml.safe_dump(settings_of(world, **dict(way.more))), encoding="utf-8")
        chat = way.home(world)
        if way.refuses_threads and isinstance(world, TelegramWorld):
            world.server.fail(
                "createForumTopic", "refuse", times=None, description="Bad Request: the chat is not a forum"
            )
        async with LocalGateway(home):
            if isinstance(world, DiscordWorld):
                await world.until(lambda: world.server.gateway.connected)
            world.say("/sethome", chat, mention=not chat.private)
            await world.until(lambda: any("home" in text for _, text in world.heard))
            done = await threadline(home, "handoff", "The key", world.name, "--yes")
            assert done.code == 0, done.err
            await world.until(lambda: any("goes on here" in text for _, text in world.heard))
            place, welcome = next((where, text) for where, text in world.heard if "goes on here" in text)
            assert bool(place.thread or place.chat_type == "thread") == ("{}" in way.key)
            assert "Under the mat" in welcome
            (route,) = elsewhere("SELECT session_key, session_id FROM routes")
            assert route == {"session_key": way.key.format(place.thread or place.chat), "session_id": SESSION}
            await _answered(world, place, "The key was moved")
        async with LocalGateway(home):
            if isinstance(world, DiscordWorld):
                await world.until(lambda: world.server.gateway.connected)
            await _answered(world, place, "The spare key is at Bob's")
    keys = [row["session_key"] for row in elsewhere("SELECT session_key FROM inbox WHERE kind = 'message' ORDER BY id")]
    assert keys == [route["session_key"]] * 2
    rows = elsewhere("SELECT session_id, role, content, tool_calls FROM messages ORDER BY id")
    assert {row["session_id"] for row in rows} == {SESSION}
    roles = [row["role"] for row in rows]
    assert roles == ["user", "assistant", "tool", "assistant", "assistant", "user", "assistant", "user", "assistant"]
    assert rows[1]["tool_calls"] is not None
    assert elsewhere("SELECT source FROM sessions") == [{"source": "cli"}]


async def _answered(world: World, place: Place, text: str) -> None:
    """Say something there and wait for the answer there; only in groups without threads the bot is addressed."""
    before = len(world.heard)
    alone = place.private or bool(place.thread) or place.chat_type == "thread"
    world.say(text, place, mention=not alone)
    await world.until(lambda: any(where == place for where, _ in world.heard[before:]))
