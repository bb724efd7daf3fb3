"""The recap of a conversation: what is shown when one goes on with it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.recap import Entry, recap_of, told
from session_store import SessionDB

CALL = {"id": "c", "type": "function", "function": {"name": "session_search", "arguments": "{}"}}


async def talk(db: SessionDB, exchanges: int, **session: Any) -> None:
    """A session `s` of so many exchanges."""
    await db.create_session("s", "cli", owner="owner", **session)
    for number in range(exchanges):
        await db.append_message("s", "user", f"question {number}")
        await db.append_message("s", "assistant", f"answer {number}")


async def test_ten_exchanges_are_shown_and_the_rest_is_counted(db: SessionDB) -> None:
    """The newest ones, oldest first."""
    await talk(db, 12)
    recap = await recap_of(db, "s")
    assert recap is not None
    assert [entry.text for entry in recap.entries if entry.kind == "said"] == [f"question {n}" for n in range(2, 12)]
    assert (recap.messages, recap.earlier, recap.before()) == (24, 4, "... 4 earlier messages")


async def test_a_short_conversation_is_shown_whole(db: SessionDB) -> None:
    """Nothing came before it."""
    await talk(db, 1)
    recap = await recap_of(db, "s")
    assert recap is not None
    assert recap.entries == [Entry("said", "question 0"), Entry("answered", "answer 0", whole=True)]
    assert recap.before() == ""


async def test_questions_take_a_line_and_answers_three_but_the_last_answer_is_whole(db: SessionDB) -> None:
    """300 characters of a question; 200 characters or three lines of an answer."""
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "word\n" * 200)
    await db.append_message("s", "assistant", "a\n\nb\nc\nd\ne")
    await db.append_message("s", "user", "again")
    await db.append_message("s", "assistant", "x" * 500)
    await db.append_message("s", "user", "and")
    await db.append_message("s", "assistant", "line\n" * 9 + "y" * 500)
    recap = await recap_of(db, "s")
    assert recap is not None
    said, lines, again, long, _, last = (entry.text for entry in recap.entries)
    assert "\n" not in said
    assert len(said) <= 300
    assert lines == "a\nb\nc …"
    assert again == "again"
    assert long == "x" * 199 + "…"
    assert last.count("line") == 9
    assert last.endswith("y" * 500)


async def test_calls_are_folded_and_what_they_brought_is_hidden(db: SessionDB) -> None:
    """Also reasoning and system prompts; calls that led to nothing yet are shown too."""
    await db.create_session("s", "cli", system_prompt="be brief")
    await db.append_message("s", "system", "secret system words")
    await db.append_message("s", "user", "look")
    for _ in range(2):
        await db.append_message("s", "assistant", None, tool_calls=[CALL], reasoning="secret thoughts")
        await db.append_message("s", "tool", "secret result", tool_name="session_search", tool_call_id="c")
    await db.append_message("s", "assistant", "found", reasoning="secret thoughts")
    await db.append_message("s", "user", "again")
    await db.append_message("s", "assistant", None, tool_calls=[CALL])
    recap = await recap_of(db, "s")
    assert recap is not None
    assert recap.entries == [
        Entry("said", "look"),
        Entry("tools", "[2 tool calls: session_search x2]"),
        Entry("answered", "found", whole=True),
        Entry("said", "again"),
        Entry("tools", "[1 tool call: session_search]"),
    ]
    assert "secret" not in told(recap, 0.0)


async def test_pictures_are_named_and_nothing_acts_on_a_terminal(db: SessionDB) -> None:
    """What is no text has a name; escape sequences are gone."""
    await db.create_session("s", "cli", title="T")
    await db.append_message("s", "user", [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}])
    await db.append_message("s", "assistant", "red \x1b[31mtext\x1b[0m\a and \u202eturned")
    recap = await recap_of(db, "s")
    assert recap is not None
    assert [entry.text for entry in recap.entries] == ["see [image]", "red [31mtext[0m and turned"]


async def test_segments_are_one_conversation(db: SessionDB) -> None:
    """Any of their ids gives the same recap, headed by the live tip."""
    await talk(db, 2, title="Plans")
    await db.end_session("s", "compression")
    await db.create_session("t", "cli", parent_session_id="s", title="Plans #2")
    await db.append_message("t", "user", "question 2")
    first, second = await recap_of(db, "s"), await recap_of(db, "t")
    assert first == second
    assert first is not None
    assert first.session["id"] == "t"
    assert [entry.text for entry in first.entries if entry.kind == "said"] == [f"question {n}" for n in range(3)]
    assert first.head(first.session["last_active"] or 0.0) == "Going on with “Plans #2”: 5 messages, the last one now."


async def test_a_chat_is_told_the_last_exchange_without_markup(db: SessionDB) -> None:
    """Nothing that somebody wrote formats or mentions there."""
    await db.create_session("s", "cli", title="A *plan*")
    await db.append_message("s", "user", "tell @everyone")
    await db.append_message("s", "assistant", "**told** `them`")
    recap = await recap_of(db, "s", 2)
    assert recap is not None
    text = told(recap, recap.session["last_active"] or 0.0)
    assert text == (
        "Going on with “A \\*plan\\*” (begun in the terminal): 2 messages, the last one now.\n\n"
        "> tell @\u2060everyone\n\n\\*\\*told\\*\\* \\`them\\`"
    )


async def test_an_empty_line_of_a_quote_takes_no_room(db: SessionDB) -> None:
    """What is cut short shows words, not the marks of a quote."""
    await db.create_session("s", "cli")
    for answer in ("I found this:\n\n> The key\n>\n> is under the mat\n> of the door", "Kept."):
        await db.append_message("s", "user", "where?")
        await db.append_message("s", "assistant", answer)
    recap = await recap_of(db, "s")
    assert recap is not None
    answers = [entry.text for entry in recap.entries if entry.kind == "answered"]
    assert answers == ["I found this:\n> The key\n> is under the mat …", "Kept."]


@pytest.mark.parametrize("messages", [0, 1])
async def test_an_empty_session_has_a_recap_too(db: SessionDB, messages: int) -> None:
    """There is nothing in it."""
    await db.create_session("s", "cli")
    if messages:
        await db.append_message("s", "tool", "of nobody", tool_call_id="x")
    recap = await recap_of(db, "s")
    assert recap is not None
    assert recap.entries == []
    assert await recap_of(db, "unknown") is None
