"""/sethome, /handoff, /link and /unlink as people type them: who may bring what where, and what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from adapters.base import Verdict
from config import Settings
from gateway.commands import Call
from gateway.owner import OWNER
from gateway.places import TERMINAL
from session_store import Home, PlaceRef
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall, settings

FORUM = PlaceRef("telegram", "main", "group", "-100")
HISTORY = "SELECT how FROM place_history ORDER BY id"


@pytest.fixture
def chosen() -> Settings:
    """Telegram is served, where a bot is let in; Slack is not enabled."""
    return settings(telegram={"allowed_bots": ["44"]})


@pytest.fixture
async def town(hall: Hall) -> AsyncIterator[Hall]:
    """The hall while it works."""
    stop = asyncio.Event()

    async def serve() -> None:
        async with hall.running(handing=True):
            await stop.wait()

    # Scopes must end in the task that began them; a fixture's two halves are two tasks.
    serving = asyncio.create_task(serve())
    yield hall
    stop.set()
    await serving


async def answers(hall: Hall, *texts: str, count: int | None = None, **how: object) -> list[str]:
    """What is sent when somebody says this, one text after the other."""
    before = len(hall.adapter.sent)
    for text in texts:
        await hall.say(text, **how)
        await hall.quiet()
    await hall.sent(before + (len(texts) if count is None else count))
    return [one.text for one in hall.adapter.sent[before:]]


async def typed(hall: Hall, text: str, session_id: str | None = None) -> str:
    """What the terminal answers to a command."""
    call = hall.workshop.commands.parse(text)
    assert isinstance(call, Call)
    return (await hall.workshop.desk.local_command(TERMINAL, OWNER, session_id, call)).text


async def begun(hall: Hall) -> str:
    """A conversation of the owner in the terminal."""
    await hall.db.create_session("begun", "cli", owner=OWNER, title="The key")
    await hall.db.append_message("begun", "user", "Where is the key?")
    return "begun"


async def test_a_home_is_the_chat_without_its_thread(town: Hall) -> None:
    """What goes home gets a thread of its own."""
    (said,) = await answers(town, "/sethome", chat="-100", chat_type="group", thread="17")
    assert "your home on Telegram" in said
    assert await town.db.home_places.of_person(OWNER, "telegram") == [Home(FORUM, "42")]


async def test_who_may_make_which_chat_their_home(town: Hall) -> None:
    """Everybody their own direct chat, only the owner a shared place; a local entrance needs none."""
    (refused,) = await answers(town, "/sethome", chat="-100", chat_type="group", user="43")
    assert "only by the owner" in refused
    (said,) = await answers(town, "/sethome", chat="43", user="43")
    assert "your home" in said
    person = await town.db.people.person_of("telegram", "", "43")
    assert person is not None
    assert len(await town.db.home_places.of_person(person[0], "telegram")) == 1
    assert await town.db.home_places.of_person(OWNER, "telegram") == []
    assert "say `/sethome` there" in await typed(town, "/sethome")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/handoff", "Say where to"),
        ("/handoff nowhere", "There is no platform “nowhere”"),
        ("/handoff slack", "Slack is not enabled here"),
        ("/handoff telegram", "You have no home on Telegram yet"),
        ("/handoff telegram:-999", "No chat “-999” of yours is known"),
        ("/handoff cli", "No chat leads to this conversation"),
        ("/link", "Nothing is linked yet"),
        ("/link cli", "need no link"),
        ("/unlink", "linked with no place"),
    ],
)
async def test_what_cannot_be_is_said_in_a_sentence(town: Hall, text: str, words: str, elsewhere: Elsewhere) -> None:
    """And nothing is asked for."""
    assert words in await typed(town, text, await begun(town))
    assert elsewhere("SELECT * FROM handoffs") == []


async def test_a_place_without_a_session_has_nothing_to_move(town: Hall) -> None:
    """The same for every one of them."""
    for text in ("/handoff telegram", "/handoff cli", "/link telegram"):
        assert "no session here yet" in await typed(town, text)


async def test_a_shared_place_is_asked_about_first(town: Hall) -> None:
    """Everybody there will read it."""
    await town.db.home_places.set(OWNER, Home(FORUM, "42"))
    asked = await typed(town, "/handoff telegram", await begun(town))
    assert "everybody there will read" in asked
    assert "`/handoff telegram --yes`" in asked
    assert "Bringing this conversation" in await typed(town, "/handoff telegram --yes", "begun")
    (welcome,) = await town.sent(1)
    assert "goes on here" in welcome


async def test_a_direct_chat_of_somebody_else_is_not_known(town: Hall) -> None:
    """Not to the owner either; their own is."""
    await answers(town, "Hello", chat="43", user="43")
    session_id = await begun(town)
    assert "No chat “43” of yours" in await typed(town, "/handoff telegram:43", session_id)
    await answers(town, "Hello")
    assert "Bringing this conversation" in await typed(town, "/handoff telegram:42", session_id)
    await town.sent(3)


async def test_a_guest_moves_between_their_own_direct_chats_only(town: Hall) -> None:
    """Neither into the group, though it is known, nor to the terminal."""
    await answers(town, "Hello", chat="-100", chat_type="group")
    await answers(town, "Mine", chat="43", user="43")
    (refused, local) = await answers(town, "/handoff telegram:-100", "/handoff cli", chat="43", user="43")
    assert "No chat “-100” of yours" in refused
    assert "are the owner's" in local


async def test_the_home_of_an_account_that_is_not_one_s_own_any_more_is_none(town: Hall, elsewhere: Elsewhere) -> None:
    """As after a lost telephone: what is private must not be brought to whoever has it now."""
    await answers(town, "/sethome")
    await town.db.people.sync_config({"telegram": ["99"]}, {})
    assert "You have no home on Telegram yet" in await typed(town, "/handoff telegram", await begun(town))
    await town.db.people.sync_config({}, {})
    assert "No chat “42” of yours" in await typed(town, "/handoff telegram:42", "begun")
    assert elsewhere("SELECT * FROM handoffs") == []
    await town.db.people.sync_config({"telegram": ["42"]}, {})
    assert "Bringing this conversation" in await typed(town, "/handoff telegram", "begun")
    await town.sent(2)


TOPIC: dict[str, Any] = {"chat": "-100", "chat_type": "group", "thread": "17"}


async def test_a_guest_takes_no_room_s_conversation_along(town: Hall, elsewhere: Elsewhere) -> None:
    """Neither away nor to read along for ever, where it is and where they have taken it up; the room keeps it."""
    await answers(town, "Where do we meet?", **TOPIC)
    await answers(town, "At the lake", **TOPIC, user="43")
    await answers(town, "/sethome", chat="43", user="43")
    room = elsewhere("SELECT id FROM sessions WHERE owner = room_id")[0]["id"]
    asked = ("/handoff telegram", "/link telegram")
    for said in await answers(town, *asked, **TOPIC, user="43"):
        assert "belongs to the room" in said
    await answers(town, f"/resume {room}", chat="43", user="43")
    for said in await answers(town, *asked, chat="43", user="43"):
        assert "belongs to the room" in said
    assert elsewhere("SELECT * FROM handoffs") == []


async def test_a_guest_leaves_a_room_s_link_only_with_their_own_chat(town: Hall, elsewhere: Elsewhere) -> None:
    """What the owner has linked stays so for everybody else."""
    await answers(town, "Where do we meet?", **TOPIC)
    await answers(town, "At the lake", **TOPIC, user="43")
    await answers(town, "Hello")
    room = elsewhere("SELECT id FROM sessions WHERE owner = room_id")[0]["id"]
    await answers(town, f"/resume {room}", chat="43", user="43")
    await answers(town, "/link telegram:42", **TOPIC, count=4)
    refused, left = await answers(town, "/unlink telegram:-100", "/unlink", chat="43", user="43")
    assert "belongs to the room" in refused
    assert "has left" in left
    places = elsewhere(
        "SELECT p.chat FROM routes AS r JOIN places AS p ON p.id = r.place_id WHERE linked > 0 ORDER BY 1"
    )
    assert [row["chat"] for row in places] == ["-100", "42"]


async def test_back_in_the_terminal_the_chat_lets_go(town: Hall, elsewhere: Elsewhere) -> None:
    """The next message there begins a new session; the conversation is whole."""
    await answers(town, "Where is the key?")
    session_id = (await town.session())["id"]
    (said,) = await answers(town, "/handoff cli")
    assert f"`threadline -r {session_id}`" in said
    assert "begins a new session" in said
    assert await town.db.routes.session_for("agent:main:telegram:dm:42") is None
    await answers(town, "And now?")
    assert (await town.session())["id"] != session_id
    assert [row["how"] for row in elsewhere(HISTORY)] == ["born", "handoff"]


async def test_a_link_is_listed_and_left(town: Hall) -> None:
    """Where it is said; the place that stays is told nothing new."""
    await answers(town, "Where is the key?")
    town.adapter.threads.append("7")
    await town.db.home_places.set(OWNER, Home(FORUM, "42"))
    said: Sequence[str] = await answers(town, "/link telegram --yes", count=3)
    assert any("is linked with this place" in text for text in said)
    assert any("what is said in one place appears in the other" in text for text in said)
    (listed,) = await answers(town, "/link")
    left = await answers(town, "/unlink telegram:-100", count=2)
    assert "- a thread of a group on Telegram" in listed
    assert any("has left a thread of a group on Telegram" in text for text in left)
    assert (await answers(town, "/link"))[0].startswith("Say with what")


async def test_what_another_account_of_this_home_has_sent_is_not_heard(town: Hall, elsewhere: Elsewhere) -> None:
    """Two bots in one chat, each let in by the other, would copy to each other for ever."""
    await answers(town, "Where is the key?")
    (number,) = (row["platform_message_id"] for row in elsewhere("SELECT platform_message_id FROM outbox"))
    verdict = await town.say("re: Where is the key?", user="44", is_bot=True, number=int(number))
    assert verdict is Verdict.IGNORED
    assert await town.say("Something of its own", user="44", is_bot=True) is Verdict.ACCEPTED
