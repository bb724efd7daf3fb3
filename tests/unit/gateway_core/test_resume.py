"""/resume on a platform: whose sessions are found where, and what the next message goes into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from config import Settings
from gateway.agents.base import AgentContext, AgentEvent, Final
from gateway.owner import OWNER
from gateway.places import web_place
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall, settings

ROOM: dict[str, Any] = {"chat": "-5", "chat_type": "group"}
TOPIC: dict[str, Any] = ROOM | {"thread": "17"}
NAMED: dict[str, Any] = {"chat": "43", "user": "43"}


async def talk(hall: Hall, *texts: str, **how: Any) -> str:
    """Say these one after another; returns the last answer."""
    for text in texts:
        await hall.say(text, **how)
        await hall.quiet()
    return hall.adapter.texts[-1]


async def routed(hall: Hall, key: str = "agent:main:telegram:dm:42") -> str | None:
    """The title, or else the id, of the session behind a key."""
    session = await hall.db.routes.session_for(key)
    return None if session is None else session["title"] or session["id"]


async def test_a_title_leads_back_and_the_next_message_goes_on_there(hall: Hall, elsewhere: Elsewhere) -> None:
    """The chat is told where one was; the session that is left has ended, the other one is open again."""
    async with hall.running():
        await talk(hall, "/new Plans", "first of the plans", "/new Other", "something else")
        told = await talk(hall, '/resume "plans"')
        await talk(hall, "second of the plans")
    assert told.startswith("Going on with “Plans” (begun on Telegram): 2 messages, the last one ")
    assert "> first of the plans" in told
    assert "re: first of the plans" in told
    assert [content for role, content in await hall.transcript() if role == "user"] == [
        "first of the plans",
        "second of the plans",
    ]
    rows = elsewhere("SELECT title, end_reason FROM sessions ORDER BY rowid")
    assert [(row["title"], row["end_reason"]) for row in rows] == [("Plans", None), ("Other", "resumed_other")]


async def test_a_number_means_what_the_list_showed_though_the_order_has_changed(hall: Hall) -> None:
    """The list has the newest first; another session becomes newer before the number is sent."""
    async with hall.running():
        await talk(hall, "/new One", "a", "/new Two", "b", "/new Three", "c")
        listed = await talk(hall, "/resume")
        session = await hall.db.resolve_session_by_title("One")
        assert session is not None
        await hall.db.append_message(session, "user", "newer than all")
        await talk(hall, "/resume 2")
    lines = listed.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["1. Three (this one)", "2. Two", "3. One"]
    assert lines[-1] == "`/resume NUMBER` goes on with one, `/resume TITLE` too."
    assert await routed(hall) == "Two"


async def test_the_numbers_of_sessions_lists_count_too_and_are_ones_own(hall: Hall) -> None:
    """Whoever asked for the last list, in that chat."""
    async with hall.running():
        await talk(hall, "/new One", "a", "/new Two", "b")
        await talk(hall, "/sessions one")
        await talk(hall, "/new Theirs", "c", **NAMED)
        foreign = await talk(hall, "/resume 1", **NAMED)
        await talk(hall, "/resume 1")
        high = await talk(hall, "/resume 2")
    assert foreign == "There is no list that this number could mean. `/resume` alone shows one."
    assert await routed(hall) == "One"
    assert high == "The list has no number 2; it ends with 1. `/resume` shows it again."


@pytest.mark.parametrize("argument", ["latest", "LATEST", "'latest'", "Fir", "fir…", "[First]", "\u200bFirst", "first"])
async def test_many_ways_lead_to_the_same_session(hall: Hall, argument: str) -> None:
    """The keyword, the beginning of a title, quotes, brackets, invisible characters."""
    async with hall.running():
        await talk(hall, "/new First", "a", "/new Second", "b", f"/resume {argument}")
    assert await routed(hall) == "First"


async def test_an_ambiguous_name_lists_the_candidates_and_changes_nothing(hall: Hall, elsewhere: Elsewhere) -> None:
    """With title, entrance, time and id of each."""
    async with hall.running():
        await talk(hall, "/new Plan A", "a", "/new Plan B", "b", "/new Now", "c")
        told = await talk(hall, "/resume plan")
    ids = {row["title"]: row["id"] for row in elsewhere("SELECT id, title FROM sessions")}
    head, first, second = told.splitlines()
    assert head == "“plan” may be any of these; give more of the title or the id:"
    assert first.startswith("- Plan B: Telegram, ")
    assert second.startswith("- Plan A: Telegram, ")
    assert first.endswith(f"`{ids['Plan B']}`")
    assert await routed(hall) == "Now"


async def test_what_is_somebody_elses_is_answered_as_what_is_not_there(hall: Hall) -> None:
    """Title, id and beginning of the id; to the letter."""
    async with hall.running():
        await talk(hall, "/new Salary", "my secret")
        session = (await hall.session())["id"]
        await talk(hall, "hello", **NAMED)
        foreign = [await talk(hall, f"/resume {name}", **NAMED) for name in ("Salary", "Sal", session, session[:-1])]
        unknown = [await talk(hall, f"/resume {name}", **NAMED) for name in ("Celery", "Cel", f"{session}x", "x")]
    for told, name in zip(foreign, ("Salary", "Sal", session, session[:-1]), strict=True):
        assert told == f"There is no session “{name}”. `/resume` lists what there is."
    for told, name in zip(unknown, ("Celery", "Cel", f"{session}x", "x"), strict=True):
        assert told == f"There is no session “{name}”. `/resume` lists what there is."


async def test_the_session_one_is_in_is_not_taken_up_again(hall: Hall, elsewhere: Elsewhere) -> None:
    """Nothing ends by that."""
    async with hall.running():
        told = await talk(hall, "/new First", "a", "/resume first")
    assert told == "That is the session you are in already."
    assert elsewhere("SELECT end_reason FROM sessions") == [{"end_reason": None}]


async def test_without_any_session_there_is_nothing_to_list(hall: Hall) -> None:
    """A sentence, no empty list."""
    async with hall.running():
        assert await talk(hall, "/resume") == "There are no sessions here to go on with yet."


async def test_what_other_places_lead_to_goes_on(hall: Hall, elsewhere: Elsewhere) -> None:
    """A session that another chat is in does not end when it is left here, and both chats may be in one."""
    async with hall.running():
        await talk(hall, "/new Common", "a")
        await talk(hall, "/new Group", "x", **ROOM)
        await talk(hall, "/resume Group")
        await talk(hall, "/resume Common")
        await talk(hall, "still here", **ROOM)
    rows = elsewhere("SELECT title, end_reason, message_count FROM sessions ORDER BY rowid")
    assert [tuple(row.values()) for row in rows] == [("Common", None, 2), ("Group", None, 4)]


async def test_delivered_again_it_is_done_once(hall: Hall, elsewhere: Elsewhere) -> None:
    """One answer, one change."""
    async with hall.running():
        await talk(hall, "/new First", "a", "/new Second", "b")
        before = len(hall.adapter.sent)
        await hall.say("/resume First", number=7)
        await hall.quiet()
        await talk(hall, "/new Third", "c")
        await hall.say("/resume First", number=7)
        await hall.quiet()
    assert await routed(hall) == "Third"
    assert len(hall.adapter.sent) == before + 3
    assert len(elsewhere("SELECT 1 FROM sessions")) == 3


async def test_it_waits_for_the_answer_that_is_being_made(hall: Hall) -> None:
    """What was said before it belongs to the session that was there then."""
    async with hall.running():
        await talk(hall, "/new First", "a", "/new Second", "b")
        await hall.say("one more for the second")
        await hall.say("/resume First")
        await hall.quiet()
    second = await hall.db.resolve_session_by_title("Second")
    assert second is not None
    assert [row["content"] for row in await hall.db.get_messages(second)][-1] == "re: one more for the second"


class TestRooms:
    """Inside a room only what lives there is found."""

    async def test_nothing_private_is_found_or_listed_in_a_room(self, hall: Hall) -> None:
        """Not for the owner either; the answer does not tell whether it is there."""
        async with hall.running():
            await talk(hall, "/new Salary", "my secret")
            await talk(hall, "/new Room plans", "in the topic", **TOPIC)
            listed = await talk(hall, "/resume", **TOPIC)
            private = await talk(hall, "/resume Salary", **TOPIC)
            never = await talk(hall, "/resume Celery", **TOPIC)
            guest = await talk(hall, "/resume --yes Salary", **TOPIC | {"user": "43"})
        assert "Room plans" in listed
        assert "Salary" not in listed
        assert private.replace("Salary", "Celery") == never
        assert "send `/resume --yes`" in private
        assert guest == "There is no session “Salary”. `/resume` lists what there is."

    async def test_the_owner_brings_one_in_by_name_and_then_it_is_the_rooms(
        self, hall: Hall, elsewhere: Elsewhere
    ) -> None:
        """Asked first; from then on the room goes on with it, and the owner still sees it in private."""
        async with hall.running():
            await talk(hall, "/new Roadmap", "north first")
            await talk(hall, "/resume --yes Roadmap", **TOPIC)
            await talk(hall, "and then south", **TOPIC | {"user": "43"})
            found = await talk(hall, "/search north", **TOPIC | {"user": "43"})
            mine = await talk(hall, "/sessions")
        assert "north first" in found
        assert "Roadmap" in mine
        (row,) = elsewhere("SELECT s.owner, s.room_id, r.id FROM sessions s, rooms r WHERE title = 'Roadmap'")
        assert row["owner"] == row["room_id"] == row["id"]

    async def test_unknown_with_yes_reads_as_unknown_without(self, hall: Hall) -> None:
        """Also for the owner."""
        async with hall.running():
            told = await talk(hall, "/resume --yes Celery", **TOPIC)
        assert told.startswith("There is no session “Celery”.")

    async def test_a_rooms_session_taken_up_in_private_sees_only_the_room(self, hall: Hall) -> None:
        """What its turns find becomes part of what the room can read."""
        seen: list[str] = []

        async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
            seen.append(await context.tools.call("session_search", {"query": "zebra"}))
            yield Final("ok")

        async with hall.running():
            await talk(hall, "the zebra is my secret")
            await talk(hall, "/new Herd", "the zebra of the room", **TOPIC)
            await talk(hall, "/new Other herd", "another zebra of the room", **TOPIC)
            told = await talk(hall, "/resume Herd")
            hall.agent.play = play
            await talk(hall, "where is the zebra?")
        assert told.endswith("It belongs to a room: what you say in it, and the answers, can be read there.")
        assert "another zebra of the room" in seen[0]
        assert "secret" not in seen[0]

    async def test_two_people_have_each_their_own_in_one_group(self, hall: Hall) -> None:
        """Neither finds the other's."""
        async with hall.running():
            await talk(hall, "/new Mine", "a", **ROOM)
            await talk(hall, "/new Theirs", "b", **ROOM | {"user": "43"})
            mine = await talk(hall, "/resume Theirs", **ROOM)
            theirs = await talk(hall, "/resume", **ROOM | {"user": "43"})
        assert mine.startswith("There is no session “Theirs”.")
        assert "Theirs" in theirs
        assert "Mine" not in theirs


class TestSwitchChanged:
    """The group was shared by user before, and is one session for all now."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """The settings after the change."""
        return settings(group_sessions_per_user=False)

    async def test_the_old_session_is_reached_by_its_own_person_who_is_asked_first(
        self, hall: Hall, elsewhere: Elsewhere
    ) -> None:
        """It was theirs alone; taken up it is the room's. Nobody else can do that, or learns of it."""
        async with hall.running():
            await talk(hall, "what everybody says", **ROOM)
            (room,) = elsewhere("SELECT id FROM rooms")
            await hall.db.create_session("old", "telegram", owner=OWNER, room_id=room["id"], title="Before")
            await hall.db.append_message("old", "user", "what I said alone")
            other = await talk(hall, "/resume Before", **ROOM | {"user": "43"})
            forced = await talk(hall, "/resume --yes Before", **ROOM | {"user": "43"})
            asked = await talk(hall, "/resume Before", **ROOM)
            (row,) = elsewhere("SELECT owner FROM sessions WHERE id = 'old'")
            assert row["owner"] == OWNER
            await talk(hall, "/resume --yes Before", **ROOM)
            await talk(hall, "now for all", **ROOM | {"user": "43"})
        assert other == forced == "There is no session “Before”. `/resume` lists what there is."
        assert "`/resume --yes Before` does it." in asked
        (row,) = elsewhere("SELECT owner, room_id, message_count FROM sessions WHERE id = 'old'")
        assert (row["owner"], row["room_id"], row["message_count"]) == (room["id"], room["id"], 3)


async def test_what_the_agent_sees_is_the_same_however_the_session_came_here(hall: Hall) -> None:
    """In place, taken up in another chat, on the web page, after a restart of everything: one context, one cost."""

    async def conversation() -> list[dict[str, Any]]:
        return [dict(message) for message in hall.agent.asked[-1].conversation]

    async with hall.running():
        await talk(hall, "/new Plans", "one", "two", "three")
        session_id = (await hall.session())["id"]
        before = await conversation()
        await talk(hall, "/new Elsewhere", "x", **ROOM)
        await talk(hall, "/resume Plans", "/new Other", "y", "/resume Plans", "four")
        here = await conversation()
    assert hall.agent.asked[-1].session_id == session_id
    assert here[: len(before)] == before
    assert [message["content"] for message in here[len(before) :]] == ["re: three", "four"]
    replayed = await hall.db.get_messages_as_conversation(session_id)
    assert replayed[:-1] == here


async def test_on_the_web_page_the_page_goes_there(hall: Hall) -> None:
    """The reply names the session; nothing has a route."""
    desk = hall.workshop.desk
    parse = hall.workshop.commands.parse
    async with hall.running():
        await talk(hall, "/new Plans", "one")
        call = parse("/resume plans")
        assert call is not None
        reply = await desk.local_command(web_place(OWNER), OWNER, None, call)
    assert reply.session_id == (await hall.session())["id"]
    assert reply.text.startswith("Going on with “Plans”: 2 messages")
    assert len(await hall.db.routes.of_session(reply.session_id)) == 1
