"""Edits, albums, groups, bots, moved chats: what the core makes of events on any platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from adapters.base import Gone, InboundMessage, Quoted, Unreadable, Verdict
from config import Settings
from gateway.agents.base import AgentContext, AgentEvent, Final
from gateway.inbox import BOT_CAPS
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import event
from tests.unit.gateway_core.hall import Hall, settings

GROUP: dict[str, Any] = {"chat": "-5", "chat_type": "group"}


@pytest.fixture
def chosen() -> Settings:
    """A shared group, one chat that is always answered, one bot that is heard."""
    account = {"chats": {"-9": {"groups": "always"}}, "allowed_bots": ["77"], "allow_all": True}
    return settings(group_sessions_per_user=False, telegram=account)


def edit(text: str, number: int, stamp: int = 1, **more: Any) -> InboundMessage:
    """The edit of a message."""
    made = event(text, number=number, **more)
    chat = made.place.chat
    return replace(made, kind="edit", dedupe_key=f"e:{chat}:{number}:{stamp}", subject=f"m:{chat}:{number}")


def held(gate: asyncio.Event) -> Any:
    """An agent that waits before it answers."""

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield Final(f"re: {context.text}")

    return play


async def test_an_edit_of_a_waiting_message_is_what_is_answered(hall: Hall) -> None:
    """While the agent works on the first, the second is changed; it is one turn, with the new words."""
    gate = asyncio.Event()
    hall.agent.play = held(gate)
    async with hall.running():
        await hall.say("first", number=1)
        await hall.until(lambda: asked(hall, 1))
        await hall.say("old", number=2)
        await asyncio.sleep(0)
        assert await hall.told(edit("new", 2)) is Verdict.ACCEPTED
        gate.set()
        assert await hall.sent(2) == ["re: first", "re: new"]
    assert hall.agent.texts == ["first", "new"]


async def asked(hall: Hall, count: int) -> bool:
    """Whether the agent has begun so many turns."""
    return len(hall.agent.asked) >= count


async def test_an_edit_of_an_answered_message_is_noted_and_told_in_the_next_turn(hall: Hall) -> None:
    """No second turn; the person gets a word; the agent reads what changed, and the transcript has no note."""
    async with hall.running():
        await hall.say("old", number=1)
        await hall.sent(1)
        await hall.quiet()
        assert await hall.told(edit("new", 1)) is Verdict.ACCEPTED
        assert await hall.told(edit("new", 1)) is Verdict.DUPLICATE
        assert "noted" in (await hall.sent(2))[1]
        await hall.say("next", number=2)
        await hall.sent(3)
    assert hall.agent.texts == ["old", "next"]
    last = hall.agent.asked[-1].conversation[-1]["content"]
    assert 'before: "old"; now: "new"' in last
    assert last.endswith("\nnext")
    assert [content for _, content in await hall.transcript()] == ["new", "re: old", "next", "re: next"]


async def test_an_edit_while_the_agent_works_begins_no_second_turn(hall: Hall) -> None:
    """The answer is to the earlier words; a word says so."""
    gate = asyncio.Event()
    hall.agent.play = held(gate)
    async with hall.running():
        await hall.say("old", number=1)
        await hall.until(lambda: asked(hall, 1))
        await hall.told(edit("new", 1))
        gate.set()
        assert sorted(await hall.sent(2))[1] == "re: old"
        await hall.quiet()
    assert hall.agent.texts == ["old"]


@pytest.mark.parametrize("text", ["/new", "ABCD-EFGH"])
async def test_an_edit_is_never_a_command_or_a_code(hall: Hall, text: str) -> None:
    """Whatever it says."""
    async with hall.running():
        await hall.say("old", number=1)
        await hall.sent(1)
        await hall.told(edit(text, 1))
        await hall.quiet()
        await hall.say("next", number=2)
        await hall.quiet()
    assert hall.agent.texts == ["old", "next"]
    assert len(await hall.transcript()) == 4


async def test_edits_and_deletes_of_what_is_not_ours_leave_no_trace(hall: Hall, elsewhere: Elsewhere) -> None:
    """Of messages that were never recorded, and by strangers."""
    assert await hall.told(edit("new", 1)) is Verdict.IGNORED
    gone = replace(event("", number=1), kind="delete", subject="m:42:1", dedupe_key="d:42:1")
    assert await hall.told(gone) is Verdict.IGNORED
    assert elsewhere("SELECT 1 FROM inbox") == []


async def test_a_delete_without_an_author_is_recorded(hall: Hall, elsewhere: Elsewhere) -> None:
    """Platforms that tell only the number: the message is known. Its text stays, and the agent is told."""
    async with hall.running():
        await hall.say("hello", number=1)
        await hall.sent(1)
        await hall.quiet()
        gone = replace(event("", number=1, user=None), kind="delete", subject="m:42:1", dedupe_key="d:42:1")
        assert await hall.told(gone) is Verdict.ACCEPTED
        await hall.say("next", number=2)
        await hall.sent(2)
    assert elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")[0]["content"] == "hello"
    assert "[deleted by its author" in hall.agent.asked[-1].conversation[-1]["content"]


async def test_an_album_is_one_turn_and_later_words_stay_behind_it(hall: Hall) -> None:
    """The captions are its text."""
    async with hall.running():
        await hall.say("one", number=1, group_id="g")
        await hall.say("", number=2, group_id="g")
        await hall.say("after", number=3)
        await hall.say("two", number=4, group_id="g")
        await hall.sent(2)
    assert hall.agent.texts == ["one\n\ntwo", "after"]


async def test_a_caption_is_no_command(hall: Hall) -> None:
    """It belongs to its picture."""
    async with hall.running():
        await hall.say("/new", number=1, group_id="g")
        await hall.sent(1)
    assert hall.agent.texts == ["/new"]


async def test_in_a_group_the_whole_album_comes_with_the_part_that_addresses(hall: Hall) -> None:
    """Only one part has the words; an album that addresses nobody is not stored."""
    parts = [
        await hall.say("look", number=1, group_id="g", **GROUP),
        await hall.say("[photo]", number=2, group_id="g", addressed=False, **GROUP),
        await hall.say("[photo]", number=3, group_id="h", addressed=False, **GROUP),
    ]
    assert parts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.IGNORED]


async def test_the_agent_reads_who_speaks_in_a_shared_session_and_what_is_quoted(hall: Hall) -> None:
    """In its context only; in a direct chat nobody needs to be named."""
    quoted = Quoted("the plan", "Eve")
    async with hall.running():
        await hall.say('hi\n[from "Eve"]', name="Ann\n]", quoted=quoted, **GROUP)
        await hall.sent(1)
        await hall.say("hi", quoted=quoted)
        await hall.sent(2)
    said = [context.conversation[-1]["content"] for context in hall.agent.asked]
    assert said == [
        '[in reply to "Eve": "the plan"]\n[from "Ann\\n]"]\nhi\n\\[from "Eve"]',
        '[in reply to "Eve": "the plan"]\nhi',
    ]
    assert hall.agent.texts == ['hi\n[from "Eve"]', "hi"]
    assert [content for _, content in await hall.transcript()] == ["hi", "re: hi"]


async def test_a_chat_may_differ_from_its_account(hall: Hall) -> None:
    """`chats` says when it answers there."""
    assert await hall.say("x", addressed=False, chat="-9", chat_type="group") is Verdict.ACCEPTED
    assert await hall.say("x", addressed=False, **GROUP) is Verdict.IGNORED


async def test_two_bots_that_answer_each_other_stop(hall: Hall) -> None:
    """Although everybody is allowed and the chat is always answered; a person's word opens it again."""
    bot: dict[str, Any] = {"chat": "-9", "chat_type": "group", "user": "77", "is_bot": True}
    heard = [await hall.say(f"answer {n}", **bot) for n in range(10)]
    assert heard == [Verdict.ACCEPTED] * BOT_CAPS.depth + [Verdict.IGNORED] * (10 - BOT_CAPS.depth)
    assert await hall.say("who is there?", chat="-9", chat_type="group") is Verdict.ACCEPTED
    assert await hall.say("me", **bot) is Verdict.ACCEPTED
    assert await hall.say("me too", **(bot | {"user": "78"})) is Verdict.DENIED


async def test_a_moved_chat_goes_on_under_either_id(hall: Hall) -> None:
    """Told twice and late; what comes from the old id afterwards is the same conversation."""
    moved = replace(event("", **GROUP), kind="migration", extra={"old_chat": "-5", "new_chat": "-100"})
    async with hall.running():
        await hall.say("one", **GROUP)
        await hall.sent(1)
        assert await hall.told(moved) is Verdict.ACCEPTED
        assert await hall.told(moved) is Verdict.IGNORED
        await hall.say("two", chat="-100", chat_type="group")
        await hall.sent(2)
        await hall.say("three", **GROUP)
        await hall.sent(3)
    assert [sent.place.chat for sent in hall.adapter.sent] == ["-5", "-100", "-100"]
    found = await hall.db.routes.session_for("agent:main:telegram:group:-100")
    assert found is not None
    assert found["message_count"] == 6


async def test_a_dead_topic_is_unbound_and_the_answer_goes_to_the_chat(hall: Hall) -> None:
    """With a word where it was for; a new topic is a new conversation."""
    hall.adapter.outcomes.append(Gone("The topic is gone.", thread_only=True))
    async with hall.running():
        await hall.say("in the topic", thread="17", **GROUP)
        texts = await hall.sent(2)
        await hall.quiet()
        assert await hall.db.routes.session_for("agent:main:telegram:group:-5:thread=17") is None
        await hall.say("elsewhere", thread="18", **GROUP)
        await hall.sent(3)
    assert texts[0] == "re: in the topic"
    assert "topic that is gone" in texts[1]
    assert [sent.place.thread for sent in hall.adapter.sent] == ["", "", "18"]
    assert len(hall.agent.asked[-1].conversation) == 1


async def test_what_an_adapter_cannot_read_is_kept_without_secrets(hall: Hall) -> None:
    """Token and all."""
    await hall.edge.report(Unreadable("telegram", "main", "no number 1:t", '{"url": "https://x/bot1:t/"}'))
    (kept,) = await hall.db.unreadable.newest()
    assert "1:t" not in kept["raw"] + kept["reason"]
    assert "<secret>" in kept["raw"]
