"""Whose a session is, and that nothing private is ever quoted into a room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from config import Settings
from gateway.agents.base import AgentContext, AgentEvent, Final
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall, settings

ROOM: dict[str, Any] = {"chat": "-5", "chat_type": "group"}
TOPIC: dict[str, Any] = ROOM | {"thread": "17"}


async def talk(hall: Hall, text: str, **how: Any) -> str:
    """Say something; returns the answer."""
    await hall.say(text, **how)
    await hall.quiet()
    return hall.adapter.texts[-1]


def owners(elsewhere: Elsewhere) -> list[tuple[str, bool]]:
    """Owner of each session, and whether it lives in a room; oldest first."""
    rows = elsewhere("SELECT owner, room_id, session_key, place_id FROM sessions ORDER BY started_at, rowid")
    assert all(row["owner"] and row["session_key"] and row["place_id"] for row in rows)
    return [(row["owner"], row["room_id"] is not None) for row in rows]


async def test_direct_chats_and_per_user_group_sessions_belong_to_the_person(hall: Hall, elsewhere: Elsewhere) -> None:
    """Two people in one group have two sessions; topics are shared and the room's."""
    async with hall.running():
        await talk(hall, "private")
        await talk(hall, "in the group", **ROOM)
        await talk(hall, "in the group too", user="43", **ROOM)
        await talk(hall, "in the topic", **TOPIC)
        await talk(hall, "in the topic too", user="43", **TOPIC)
    found = owners(elsewhere)
    assert len(found) == 4
    assert found[0] == ("owner", False)
    assert found[1] == ("owner", True)
    assert found[2][0] not in {"owner", None}
    assert found[2][1]
    assert found[3][0].startswith("r")
    (topic,) = elsewhere("SELECT message_count FROM sessions WHERE owner LIKE 'r%'")
    assert topic["message_count"] == 4


class TestShared:
    """Groups with one session for the room."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """Settings for that."""
        return settings(group_sessions_per_user=False)

    async def test_a_shared_group_session_is_the_rooms(self, hall: Hall, elsewhere: Elsewhere) -> None:
        """Both people speak in one session."""
        async with hall.running():
            await talk(hall, "one", **ROOM)
            await talk(hall, "two", user="43", **ROOM)
        ((owner, in_room),) = owners(elsewhere)
        assert owner.startswith("r")
        assert in_room


async def test_tools_in_a_room_see_only_the_room(hall: Hall) -> None:
    """What the owner said in private is not found from a topic, and what was said in the room is found in private."""
    seen: dict[str, str] = {}

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        seen[context.text] = await context.tools.call("session_search", {"query": "zebra", "include_current": True})
        yield Final("ok")

    async with hall.running():
        await talk(hall, "the zebra is my secret")
        await talk(hall, "the zebra of the room", **TOPIC)
        await talk(hall, "zebra of another", chat="43", user="43")
        hall.agent.play = play
        await talk(hall, "ask in the topic", **TOPIC)
        await talk(hall, "ask in private")
        await talk(hall, "ask as another", chat="43", user="43")
        await talk(hall, "ask as a guest", chat="44", user="44")
    assert "of the room" in seen["ask in the topic"]
    assert "secret" not in seen["ask in the topic"]
    assert "of another" not in seen["ask in the topic"]
    assert "secret" in seen["ask in private"]
    assert "of the room" in seen["ask in private"]
    assert "of another" not in seen["ask in private"]
    assert "of another" in seen["ask as another"]
    assert "secret" not in seen["ask as another"]
    assert "of the room" not in seen["ask as another"]
    assert "zebra" not in seen["ask as a guest"].replace('"query": "zebra"', "")


async def test_commands_in_a_room_see_only_the_room(hall: Hall) -> None:
    """/sessions and /search too, also for the owner."""
    async with hall.running():
        await talk(hall, "the zebra is my secret")
        await talk(hall, "the zebra of the room", **TOPIC)
        found = await talk(hall, "/search zebra", **TOPIC)
        listed = await talk(hall, "/sessions", **TOPIC)
        mine = await talk(hall, "/sessions")
    assert "of the room" in found
    assert "secret" not in found
    assert "secret" not in listed
    assert "secret" in mine
    assert "of the room" in mine


class TestEverybody:
    """An account that serves everybody."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """Settings for that."""
        return settings(telegram={"allow_all": True})

    async def test_nobody_in_particular_gets_a_scope_of_the_place(self, hall: Hall, elsewhere: Elsewhere) -> None:
        """A channel post has an owner too: the room."""
        async with hall.running():
            await talk(hall, "news", chat="-6", chat_type="channel", user=None)
        ((owner, in_room),) = owners(elsewhere)
        assert owner.startswith("r")
        assert in_room
