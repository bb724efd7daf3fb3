"""What a model provider is given of a stored history: pairing, order, neighbours, shapes."""

from __future__ import annotations

from typing import Any

import pytest

from session_store import SessionDB
from session_store.conversation import EMPTY, INTERRUPTED, NOTE


def call(call_id: str, name: str = "terminal", arguments: str = "{}") -> dict[str, Any]:
    """Make one call object as providers make them."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.fixture
async def session(db: SessionDB) -> str:
    """An empty session."""
    return await db.create_session("s", "cli")


async def test_a_plain_history_comes_back_in_provider_format(db: SessionDB, session: str) -> None:
    """Roles, contents, calls and results as they were; nothing of the row's bookkeeping."""
    await db.append_message(session, "system", "be brief")
    await db.append_message(session, "user", "list the files")
    await db.append_message(session, "assistant", "looking", tool_calls=[call("c1")])
    await db.append_message(session, "tool", "a.txt", tool_call_id="c1", tool_name="terminal")
    await db.append_message(session, "assistant", "a.txt")
    assert await db.get_messages_as_conversation(session) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": "looking", "tool_calls": [call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "name": "terminal", "content": "a.txt"},
        {"role": "assistant", "content": "a.txt"},
    ]


async def test_order_is_insertion_when_the_clock_steps_back(db: SessionDB, session: str) -> None:
    """A result stamped before its call and a question stamped before both stay where they were stored."""
    await db.append_message(session, "assistant", None, tool_calls=[call("A"), call("B")], timestamp=100.40)
    await db.append_message(session, "tool", "of A", tool_call_id="A", timestamp=100.38)
    await db.append_message(session, "tool", "of B", tool_call_id="B", timestamp=100.41)
    await db.append_message(session, "user", "next", timestamp=99.00)
    conversation = await db.get_messages_as_conversation(session)
    assert [message["role"] for message in conversation] == ["assistant", "tool", "tool", "user"]
    assert [message["content"] for message in conversation] == [None, "of A", "of B", "next"]
    assert [row["timestamp"] for row in await db.get_messages(session)] == [100.40, 100.38, 100.41, 99.00]


@pytest.mark.parametrize("results", [0, 1])
async def test_an_open_call_reads_as_interrupted_and_its_row_stays(db: SessionDB, session: str, results: int) -> None:
    """After a death before the results, or between them: each call is answered, twice the same, nothing is stored."""
    await db.append_message(session, "user", "do both")
    await db.append_message(session, "assistant", "", tool_calls=[call("A"), call("B")])
    for done in ["A", "B"][:results]:
        await db.append_message(session, "tool", "done", tool_call_id=done)
    before = await db.get_messages(session)
    conversation = await db.get_messages_as_conversation(session)
    answers = [(message["tool_call_id"], message["content"]) for message in conversation if message["role"] == "tool"]
    assert answers == [("A", "done" if results else INTERRUPTED), ("B", INTERRUPTED)]
    assert INTERRUPTED == "interrupted, effect unknown"
    assert await db.get_messages_as_conversation(session) == conversation
    assert await db.get_messages(session) == before


async def test_a_late_result_is_placed_behind_its_call(db: SessionDB, session: str) -> None:
    """What was said in between comes after the pair."""
    await db.append_message(session, "assistant", None, tool_calls=[call("A")])
    await db.append_message(session, "user", "are you there?")
    await db.append_message(session, "tool", "late", tool_call_id="A")
    conversation = await db.get_messages_as_conversation(session)
    assert [message["content"] for message in conversation] == [None, "late", "are you there?"]


async def test_results_without_a_call_and_second_results_are_left_out(db: SessionDB, session: str) -> None:
    """A provider would refuse both."""
    await db.append_message(session, "tool", "of nothing", tool_call_id="gone")
    await db.append_message(session, "user", "hello")
    await db.append_message(session, "assistant", None, tool_calls=[call("A")])
    await db.append_message(session, "tool", "first", tool_call_id="A")
    await db.append_message(session, "tool", "second", tool_call_id="A")
    await db.append_message(session, "tool", "no id at all")
    conversation = await db.get_messages_as_conversation(session)
    assert [message["content"] for message in conversation] == ["hello", None, "first"]


async def test_ids_used_again_in_a_later_turn_become_unique(db: SessionDB, session: str) -> None:
    """Models that count from one in every turn: each result stays with the call of its own turn."""
    for turn in ("one", "two"):
        await db.append_message(session, "user", turn)
        await db.append_message(session, "assistant", None, tool_calls=[call("call_1")])
        await db.append_message(session, "tool", f"result {turn}", tool_call_id="call_1")
        await db.append_message(session, "assistant", f"done {turn}")
    conversation = await db.get_messages_as_conversation(session)
    pairs = [(message["tool_call_id"], message["content"]) for message in conversation if message["role"] == "tool"]
    assert pairs == [("call_1", "result one"), ("call_1_2", "result two")]
    calls = [message["tool_calls"][0]["id"] for message in conversation if "tool_calls" in message]
    assert calls == ["call_1", "call_1_2"]


@pytest.mark.parametrize(
    ("stored", "function"),
    [
        ({"id": "x", "function": {"name": "f"}}, {"name": "f", "arguments": "{}"}),
        ({"id": "x", "name": "f", "arguments": {"a": 1}}, {"name": "f", "arguments": '{"a": 1}'}),
        ({"id": "x", "function": {"arguments": ""}}, {"name": "unnamed", "arguments": "{}"}),
        (
            {"id": "x", "function": {"name": "f", "arguments": '{"cut'}},
            {"name": "f", "arguments": '{"unreadable": "{\\"cut"}'},
        ),
        (
            {"id": "x", "function": {"name": "f", "arguments": "[1]"}},
            {"name": "f", "arguments": '{"unreadable": "[1]"}'},
        ),
    ],
)
async def test_a_call_of_any_shape_is_given_as_providers_want_it(
    db: SessionDB, session: str, stored: dict[str, Any], function: dict[str, str]
) -> None:
    """Type, name and readable arguments are always there; a call is never hidden, since it may have run."""
    await db.append_message(session, "assistant", None, tool_calls=[stored])
    message, answer = await db.get_messages_as_conversation(session)
    assert message["tool_calls"] == [{"id": "x", "type": "function", "function": function}]
    assert answer["content"] == INTERRUPTED
    (row,) = await db.get_messages(session)
    assert row["tool_calls"] == [stored]


async def test_a_call_without_an_id_takes_the_result_without_one(db: SessionDB, session: str) -> None:
    """The id is made up, the same one on both sides and at every load."""
    await db.append_message(session, "assistant", None, tool_calls=[{"function": {"name": "f", "arguments": "{}"}}])
    await db.append_message(session, "tool", "result", tool_name="f")
    message, answer = await db.get_messages_as_conversation(session)
    assert answer["content"] == "result"
    assert answer["tool_call_id"] == message["tool_calls"][0]["id"]
    assert await db.get_messages_as_conversation(session) == [message, answer]


async def test_neighbours_of_one_role_become_one_message(db: SessionDB, session: str) -> None:
    """Texts joined by an empty line, parts put behind each other; the rows stay apart."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    await db.append_message(session, "user", "first")
    await db.append_message(session, "user", "second")
    await db.append_message(session, "assistant", "a")
    await db.append_message(session, "assistant", "b", tool_calls=[call("A")])
    await db.append_message(session, "tool", "r", tool_call_id="A")
    await db.append_message(session, "user", "see")
    await db.append_message(session, "user", [picture])
    conversation = await db.get_messages_as_conversation(session)
    assert conversation == [
        {"role": "user", "content": "first\n\nsecond"},
        {"role": "assistant", "content": "a\n\nb", "tool_calls": [call("A")]},
        {"role": "tool", "tool_call_id": "A", "name": "terminal", "content": "r"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture]},
    ]
    assert len(await db.get_messages(session)) == 7


async def test_a_system_row_in_the_middle_speaks_as_a_marked_note(db: SessionDB, session: str) -> None:
    """Only the front may be `system`; several rows there are one message."""
    await db.append_message(session, "system", "one")
    await db.append_message(session, "system", "two")
    await db.append_message(session, "user", "hello")
    await db.append_message(session, "assistant", "hi")
    await db.append_message(session, "system", "the place has changed")
    assert [(message["role"], message["content"]) for message in await db.get_messages_as_conversation(session)] == [
        ("system", "one\n\ntwo"),
        ("user", "hello"),
        ("assistant", "hi"),
        ("user", f"{NOTE} the place has changed"),
    ]


async def test_nothing_empty_is_given(db: SessionDB, session: str) -> None:
    """A user message without text reads as such; an assistant that said nothing is left out."""
    await db.append_message(session, "user", " \n")
    await db.append_message(session, "assistant", "")
    await db.append_message(session, "assistant", None)
    await db.append_message(session, "assistant", [{"type": "text", "text": "  "}])
    assert await db.get_messages_as_conversation(session) == [{"role": "user", "content": EMPTY}]


async def test_content_that_is_no_list_of_parts_is_given_as_json_text(db: SessionDB, session: str) -> None:
    """A tool may store any structure; a single typed part becomes a list."""
    part = {"type": "text", "text": "x"}
    await db.append_message(session, "user", part)
    await db.append_message(session, "assistant", None, tool_calls=[call("A")])
    await db.append_message(session, "tool", {"结果": [1, None]}, tool_call_id="A")
    conversation = await db.get_messages_as_conversation(session)
    assert conversation[0]["content"] == [part]
    assert conversation[2]["content"] == '{"结果": [1, null]}'
    assert (await db.get_messages(session))[2]["content"] == {"结果": [1, None]}


async def test_reasoning_is_on_assistant_messages_only(db: SessionDB, session: str) -> None:
    """An empty `reasoning_content` is kept, an empty `reasoning` is not; JSON columns come decoded."""
    await db.append_message(session, "user", "q", reasoning="r", reasoning_content="rc", reasoning_details=[1])
    await db.append_message(
        session,
        "assistant",
        "a",
        reasoning="",
        reasoning_content="",
        reasoning_details=[{"思": 1}],
        codex_reasoning_items=[{"id": "r1"}],
        codex_message_items=[{"id": "m1", "phase": "final"}],
        finish_reason="stop",
    )
    assert await db.get_messages_as_conversation(session) == [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "a",
            "finish_reason": "stop",
            "reasoning_content": "",
            "reasoning_details": [{"思": 1}],
            "codex_reasoning_items": [{"id": "r1"}],
            "codex_message_items": [{"id": "m1", "phase": "final"}],
        },
    ]


async def test_rows_taken_back_are_left_out_and_their_calls_with_them(
    db: SessionDB, session: str, elsewhere: Any
) -> None:
    """The call of a row taken back takes no result; its result is dropped."""
    await db.append_message(session, "user", "keep")
    taken_back = await db.append_message(session, "assistant", None, tool_calls=[call("A")])
    await db.append_message(session, "tool", "r", tool_call_id="A")
    elsewhere("UPDATE messages SET rewound = 1 WHERE id = ?", taken_back)
    assert await db.get_messages_as_conversation(session) == [{"role": "user", "content": "keep"}]


async def test_any_id_of_a_conversation_replays_its_tip(db: SessionDB, session: str) -> None:
    """Who holds the id from before the compression is given what a model must see now."""
    await db.append_message(session, "user", "long history")
    await db.end_session(session, "compression")
    await db.create_session("s2", "cli", parent_session_id=session)
    await db.append_message(session, "user", "summary and more")
    assert await db.get_messages_as_conversation(session) == [{"role": "user", "content": "summary and more"}]
    assert await db.get_messages_as_conversation("unknown") == []
