"""What the agent sees of a turn: the history in order, valid, ending with what is to be answered."""

from __future__ import annotations

import json
from zoneinfo import ZoneInfo

from gateway.context import Contexts
from session_store import Branch, NewAttachment, PlaceRef, SessionDB, Visibility

UTC = ZoneInfo("UTC")
OWNER = Visibility(frozenset({"owner"}))
LIMIT = 32_000
CALL = {"id": "c1", "type": "function", "function": {"name": "session_search", "arguments": "{}"}}


async def test_the_conversation_ends_with_the_message_to_be_answered(db: SessionDB) -> None:
    """Ids, text and history of the turn, in order of insertion whatever the clock said."""
    await db.create_session("s", "cli", owner="owner")
    await db.append_message("s", "user", "tea is in the box", timestamp=200)
    await db.append_message("s", "assistant", "Kept.", timestamp=100)
    message_id = await db.append_message("s", "user", "where is tea?", timestamp=50)
    context = await Contexts(db, limit=LIMIT, zone=UTC).build("s", "t", "where is tea?", OWNER, message_id)
    assert (context.session_id, context.turn_id, context.text, context.timezone) == ("s", "t", "where is tea?", "UTC")
    assert [(message["role"], message["content"]) for message in context.conversation] == [
        ("user", "tea is in the box"),
        ("assistant", "Kept."),
        ("user", "where is tea?"),
    ]


async def test_an_agent_that_does_without_the_history_is_shown_the_question_and_what_was_done_about_it(
    db: SessionDB,
) -> None:
    """Nothing older is even read, however long the conversation is."""
    await db.create_session("s", "cli", owner="owner")
    await db.append_message("s", "user", "tea is in the box")
    await db.append_message("s", "assistant", "Kept.")
    question = await db.append_message("s", "user", "where is tea?")
    await db.append_message("s", "assistant", tool_calls=[CALL])
    contexts = Contexts(db, limit=LIMIT, history=False)
    context = await contexts.build("s", "t", "where is tea?", OWNER, question)
    assert [message["role"] for message in context.conversation] == ["user", "assistant", "tool"]
    assert context.conversation[0]["content"] == "where is tea?"
    seen = await contexts.seen("s", question)
    assert [row["id"] for row in seen.view.rows] == [question, question + 1]
    assert not seen.view.whole


async def test_an_open_call_of_an_interrupted_attempt_reads_as_interrupted(db: SessionDB) -> None:
    """Run again, the turn sees what was begun, answered; the stored rows are not touched."""
    await db.create_session("s", "cli", owner="owner")
    await db.append_message("s", "user", "where is tea?")
    await db.append_message("s", "assistant", tool_calls=[CALL])
    before = await db.get_messages("s")
    context = await Contexts(db, limit=LIMIT).build("s", "t", "where is tea?", OWNER)
    *_, call, result = context.conversation
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "c1"
    assert "interrupted" in result["content"]
    assert await db.get_messages("s") == before


async def test_the_tools_see_what_the_asker_sees_and_not_the_question(db: SessionDB) -> None:
    """The search of the turn is bound to the asker; in a continued conversation it knows all its segments."""
    await db.create_session("root", "cli", owner="owner")
    await db.append_message("root", "user", "tea is in the box")
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", owner="owner", parent_session_id="root")
    question = await db.append_message("tip", "user", "where is tea?")
    await db.create_session("other", "cli", owner="p2")
    await db.append_message("other", "user", "tea of somebody else")
    context = await Contexts(db, limit=LIMIT).build("tip", "t", "where is tea?", OWNER, question)
    result = json.loads(await context.tools.call("session_search", {"query": "tea", "include_current": True}))
    assert [[match["content"] for match in found["matches"]] for found in result["results"]] == [["tea is in the box"]]


async def test_an_unknown_session_has_an_empty_conversation(db: SessionDB) -> None:
    """Nothing is made up for a session that was deleted meanwhile."""
    context = await Contexts(db, limit=LIMIT).build("gone", "t", "x", OWNER)
    assert list(context.conversation) == []


async def test_files_are_seen_in_their_own_turn_only(db: SessionDB) -> None:
    """Afterwards their names are left, in the text; a branch keeps them with the message."""
    async with db.attachments.incoming(1000) as incoming:
        await incoming.write(b"a picture")
        digest = await incoming.keep()
    await db.create_session("s", "cli", owner="owner")
    picture = NewAttachment("a.png", "image", digest, 9, "image/png")
    first = await db.append_message("s", "user", "look\n\n[file: a.png]", attachments=[picture])
    contexts = Contexts(db, limit=LIMIT)
    assert [file.name for file in (await contexts.build("s", "t1", "look", OWNER, first)).attachments] == ["a.png"]
    await db.append_message("s", "assistant", "I see.")
    second = await db.append_message("s", "user", "and now?")
    later = await contexts.build("s", "t2", "and now?", OWNER, second)
    assert later.attachments == []
    assert [message["content"] for message in later.conversation] == ["look\n\n[file: a.png]", "I see.", "and now?"]

    holder = await db.processes.register("terminal", [], {})
    held = await db.holding.take("s", holder, "w", "/branch")
    assert held.fence is not None
    await db.apply([Branch(held.fence, "s", "b", PlaceRef("cli", "main", "dm", "owner"))])
    copied = (await db.get_messages("b"))[0]["id"]
    assert [row["hash"] for row in (await db.attachments.of_messages([copied]))[copied]] == [digest]


async def test_what_an_unfinished_history_costs_is_bounded_by_the_budget(db: SessionDB) -> None:
    """However long it is: what is shown, and what is read for it."""
    await db.create_session("s", "cli", owner="owner")
    for number in range(300):
        await db.append_message("s", "user" if number % 2 == 0 else "assistant", f"{number} " + "words " * 100)
    seen = await Contexts(db, limit=5000).seen("s")
    assert 2500 < seen.tokens <= 5000
    assert len(seen.view.rows) < 40
    assert (seen.shown.cut, seen.shown.messages[0]["role"]) == (True, "user")
