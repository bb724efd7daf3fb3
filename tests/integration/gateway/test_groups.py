"""Whose a conversation in a group is: two people, the switches, threads, moves, nobody. The real client library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import LocalGateway, telegram_home

GROUP: dict[str, Any] = {"chat_id": -5, "chat_type": "group"}
SUPER: dict[str, Any] = {"chat_id": -100, "chat_type": "supergroup"}
FORUM: dict[str, Any] = SUPER | {"forum": True}
ANN: dict[str, Any] = {"user_id": 42, "name": "Ann"}
BO: dict[str, Any] = {"user_id": 43, "name": "Bo"}
#: An administrator who speaks as the group itself.
ANONYMOUS: dict[str, Any] = {"user_id": 1087968824, "name": "Group"}

Settings = Callable[..., Path]


@pytest.fixture
def settle(configured: Path, telegram: TelegramEmulator) -> Settings:
    """Write the settings of a gateway that also serves Bo."""

    def write(**more: Any) -> Path:
        served = {"allowed_users": ["43"]} | more.pop("telegram", {})
        return telegram_home(configured, telegram.base_url, telegram.token, telegram=served, **more)

    return write


async def ask(telegram: TelegramEmulator, text: str, **how: Any) -> str:
    """Say something to the bot; returns its answer."""
    before = len(telegram.sent)
    telegram.say(f"@gatebot {text}", **how)
    await telegram.until(lambda: len(telegram.sent) > before, 30)
    return telegram.sent[-1].text


def keys(elsewhere: Elsewhere) -> dict[str, int]:
    """How many messages each key's first session has."""
    rows = elsewhere("SELECT session_key, message_count FROM sessions ORDER BY rowid")
    return {row["session_key"].removeprefix("agent:main:telegram:"): row["message_count"] for row in rows}


async def test_two_people_in_one_group_are_kept_apart(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """Neither lists, finds, reads or takes up what the other said, and neither learns that it is there."""
    async with LocalGateway(settle()):
        await ask(telegram, "/new Ann plans", **GROUP, **ANN)
        await ask(telegram, "the zebra is in the attic", **GROUP, **ANN)
        await ask(telegram, "the lion is in the cellar", **GROUP, **BO)
        answers = [
            await ask(telegram, text, **GROUP, **BO)
            for text in ("where is the zebra?", "/search zebra", "/sessions", "/resume", "/resume Ann plans")
        ]
        unknown = await ask(telegram, "/resume Any plans", **GROUP, **BO)
    assert list(keys(elsewhere)) == ["group:-5:user=42", "group:-5:user=43"]
    for answer in answers:
        assert "attic" not in answer
        assert "Ann plans" not in answer.replace("There is no session “Ann plans”.", "")
    assert answers[-1].replace("Ann plans", "Any plans") == unknown


async def test_with_the_switch_off_the_group_is_one_conversation(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The room's, for everybody there alike."""
    async with LocalGateway(settle(group_sessions_per_user=False)):
        await ask(telegram, "the zebra is in the attic", **GROUP, **ANN)
        answer = await ask(telegram, "where is the zebra?", **GROUP, **BO)
    assert "attic" in answer
    ((key, count),) = keys(elsewhere).items()
    assert key == "group:-5"
    assert count > 3
    (session,) = elsewhere("SELECT s.owner = r.id AS rooms, s.room_id = r.id AS there FROM sessions s, rooms r")
    assert session == {"rooms": 1, "there": 1}


@pytest.mark.parametrize(
    ("apart", "sessions"),
    [(0, ["group:-100:thread=17"]), (1, ["group:-100:thread=17:user=42", "group:-100:thread=17:user=43"])],
)
async def test_a_topic_is_shared_unless_the_settings_say_otherwise(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere, apart: int, sessions: list[str]
) -> None:
    """Beside it, the group itself stays by person."""
    async with LocalGateway(settle(thread_sessions_per_user=bool(apart))):
        await ask(telegram, "the zebra is in the attic", topic=17, **FORUM, **ANN)
        answer = await ask(telegram, "where is the zebra?", topic=17, **FORUM, **BO)
        await ask(telegram, "in General", **FORUM, **BO)
    assert ("attic" in answer) is not bool(apart)
    assert list(keys(elsewhere)) == [*sessions, "group:-100:user=43"]


async def test_after_the_group_became_shared_the_old_session_is_still_reached_by_its_person(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """By name, asked first, and by nobody else; from then on it is the room's."""
    async with LocalGateway(settle()):
        await ask(telegram, "/new Ann plans", **GROUP, **ANN)
        await ask(telegram, "the zebra is in the attic", **GROUP, **ANN)
    async with LocalGateway(settle(group_sessions_per_user=False)):
        await ask(telegram, "we talk together now", **GROUP, **BO)
        foreign = await ask(telegram, "/resume --yes Ann plans", **GROUP, **BO)
        asked = await ask(telegram, "/resume Ann plans", **GROUP, **ANN)
        private = await ask(telegram, "/sessions", **ANN)
        taken = await ask(telegram, "/resume --yes Ann plans", **GROUP, **ANN)
        await ask(telegram, "the lion too", **GROUP, **BO)
    assert foreign.startswith("There is no session “Ann plans”.")
    assert "everybody here can then read it" in asked
    assert "Ann plans" in private
    assert taken.startswith("Going on with “Ann plans”")
    rows = elsewhere(
        "SELECT m.content FROM messages m JOIN sessions s ON s.id = m.session_id "
        "WHERE s.title = 'Ann plans' AND m.role = 'user'"
    )
    assert [row["content"] for row in rows] == ["the zebra is in the attic", "the lion too"]
    (row,) = elsewhere("SELECT s.owner = r.id AS rooms FROM sessions s, rooms r WHERE s.title = 'Ann plans'")
    assert row["rooms"] == 1


async def test_after_the_group_was_divided_everybody_still_reaches_what_was_shared(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """It stays the room's, also while somebody goes on with it from their own place."""
    async with LocalGateway(settle(group_sessions_per_user=False)):
        await ask(telegram, "/new Our plans", **GROUP, **ANN)
        await ask(telegram, "the zebra is in the attic", **GROUP, **ANN)
    async with LocalGateway(settle()):
        await ask(telegram, "alone now", **GROUP, **BO)
        taken = [await ask(telegram, "/resume Our plans", **GROUP, **who) for who in (BO, ANN)]
        await ask(telegram, "the lion too", **GROUP, **BO)
    assert all(answer.startswith("Going on with “Our plans”") for answer in taken)
    (row,) = elsewhere("SELECT s.owner = r.id AS rooms FROM sessions s, rooms r WHERE s.title = 'Our plans'")
    assert row["rooms"] == 1
    led = elsewhere(
        "SELECT r.session_key FROM routes r JOIN sessions s ON s.id = r.session_id WHERE title = 'Our plans'"
    )
    assert sorted(row["session_key"].rpartition("-5")[2] for row in led) == ["", ":user=42", ":user=43"]


async def test_a_group_that_moved_keeps_its_people_apart_and_its_sessions_reachable(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """Each goes on in their own session, and finds their former ones in the supergroup."""
    async with LocalGateway(settle()):
        await ask(telegram, "/new Old plans", **GROUP, **ANN)
        await ask(telegram, "the zebra is in the attic", **GROUP, **ANN)
        await ask(telegram, "/new Ann now", **GROUP, **ANN)
        await ask(telegram, "something newer", **GROUP, **ANN)
        await ask(telegram, "the lion is in the cellar", **GROUP, **BO)
        telegram.say(None, **GROUP, migrate_to_chat_id=-100)
        telegram.say(None, **SUPER, migrate_from_chat_id=-5)
        listed = await ask(telegram, "/resume", **SUPER, **BO)
        foreign = await ask(telegram, "/resume Old plans", **SUPER, **BO)
        taken = await ask(telegram, "/resume old plans", **SUPER, **ANN)
        await ask(telegram, "the zebra came down", **SUPER, **ANN)
    assert "Old plans" not in listed
    assert "lion" in listed
    assert foreign.startswith("There is no session “Old plans”.")
    assert taken.startswith("Going on with “Old plans”")
    (row,) = elsewhere(
        "SELECT session_key FROM routes WHERE session_id = (SELECT id FROM sessions WHERE title = 'Old plans')"
    )
    assert row["session_key"] == "agent:main:telegram:group:-100:user=42"
    (count,) = elsewhere("SELECT message_count FROM sessions WHERE title = 'Old plans'")
    assert count["message_count"] == 4


async def test_who_speaks_as_the_group_is_nobody_and_sees_nobodys(
    settle: Settings, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """All anonymous administrators share the room's session; it sees no person's, and brings none in."""
    room = {"id": -100, "type": "supergroup", "title": "Ops"}
    anonymous = SUPER | ANONYMOUS | {"sender_chat": room}
    async with LocalGateway(settle(telegram={"allow_all": True})):
        await ask(telegram, "/new Ann plans", **SUPER, **ANN)
        await ask(telegram, "the zebra is in the attic", **SUPER, **ANN)
        await ask(telegram, "the gate is open", **anonymous)
        answers = [
            await ask(telegram, text, **anonymous)
            for text in ("where is the zebra?", "/sessions", "/resume Ann plans", "/resume --yes Ann plans")
        ]
        found = await ask(telegram, "/search gate", **SUPER, **ANN)
    assert "group:-100" in keys(elsewhere)
    for answer in answers:
        assert "attic" not in answer
        assert "Ann plans" not in answer.replace("There is no session “Ann plans”.", "")
    assert "the gate is open" in found
