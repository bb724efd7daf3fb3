"""Whatever rows are stored, what is replayed is what strict providers accept."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from session_store import MessageRow
from session_store.conversation import INTERRUPTED, replay

Message = dict[str, Any]

IDS = st.sampled_from(["a", "b", "call_1", "", None, 7])
TEXTS = st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["", "  ", "hi"]))
PARTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=4)}),
        st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.just({"url": "x"})}),
        st.integers(),
    ),
    max_size=3,
)
CONTENTS = st.one_of(TEXTS, TEXTS, PARTS, st.dictionaries(st.text(max_size=3), st.integers(), max_size=2))
ARGUMENTS = st.one_of(
    st.sampled_from(["{}", '{"a": 1}', '{"cut', "[1]", '{"a": NaN}', "", None]), st.dictionaries(st.text(), st.none())
)
CALLS = st.one_of(
    st.fixed_dictionaries(
        {
            "id": IDS,
            "function": st.fixed_dictionaries(
                {"name": st.sampled_from(["f", "look at: it!", "g" * 70, "", None]), "arguments": ARGUMENTS}
            ),
        }
    ),
    st.fixed_dictionaries({"id": IDS, "name": st.just("f"), "arguments": ARGUMENTS}),
    st.fixed_dictionaries({"id": IDS, "type": st.just("function"), "function": st.none()}),
    st.integers(),
    st.none(),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system", "developer", "odd"]),
            "content": CONTENTS,
            "tool_calls": st.one_of(st.none(), st.lists(CALLS, max_size=3)),
            "tool_call_id": st.one_of(st.none(), st.sampled_from(["a", "b", "call_1", ""])),
            "tool_name": st.one_of(st.none(), st.just("f")),
            "timestamp": st.floats(0, 2_000_000_000),
            "rewound": st.sampled_from([0, 0, 0, 1]),
            "reasoning": st.sampled_from([None, None, "", "r"]),
            "reasoning_content": st.sampled_from([None, None, "", "rc"]),
            "reasoning_details": st.sampled_from([None, None, [1]]),
        }
    ),
    max_size=14,
)


def numbered(rows: Sequence[Message], first: int = 1) -> list[MessageRow]:
    """Give the rows ids in their order, and the columns that play no part."""
    rest = {"finish_reason": None, "codex_reasoning_items": None, "codex_message_items": None}
    return [cast("MessageRow", {"id": number, **rest, **row}) for number, row in enumerate(rows, first)]


def check_strict(conversation: Sequence[Message]) -> None:
    """Fail unless a strict provider would accept these messages."""
    seen_ids: set[str] = set()
    awaited: list[str] = []
    previous = ""
    for message in conversation:
        role, content = message["role"], message["content"]
        assert role in {"system", "user", "assistant", "tool"}
        if role == "tool":
            assert message["tool_call_id"] == awaited.pop(0), "a result stands right behind its call, in order"
            assert isinstance(content, str | list)
            previous = role
            continue
        assert not awaited, "every call is answered before anything else is said"
        assert role != previous, "one role does not speak twice in a row"
        assert role != "system" or not previous, "system stands in front"
        if "tool_calls" in message:
            assert role == "assistant"
            assert message["tool_calls"], "a list of calls is not empty"
            for call in message["tool_calls"]:
                assert call["type"] == "function"
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
                assert isinstance(json.loads(call["function"]["arguments"], parse_constant=no_json), dict)
                assert isinstance(call["id"], str)
                assert call["id"]
                assert call["id"] not in seen_ids, "ids are unique"
                seen_ids.add(call["id"])
                awaited.append(call["id"])
        else:
            check_filled(content)
        assert role == "assistant" or not message.keys() - {"role", "content"}
        previous = role
    assert not awaited, "no call is left open"


def no_json(constant: str) -> NoReturn:
    """NaN and the like, which Python alone reads."""
    raise AssertionError(constant)


def check_filled(content: Any) -> None:
    """Fail if there is nothing to read."""
    if isinstance(content, str):
        assert content.strip()
        return
    assert content
    for part in content:
        assert isinstance(part["type"], str)
        assert part["type"] != "text" or part["text"].strip()


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_any_history_is_valid_and_the_same_at_every_load(rows: list[Message]) -> None:
    """Odd roles, shapes, ids, times and losses: valid; a second load is identical and the rows are untouched."""
    stored = numbered(rows)
    before = copy.deepcopy(stored)
    conversation = replay(stored)
    check_strict(conversation)
    assert stored == before
    assert replay(stored) == conversation
    assert replay(list(reversed(stored))) == conversation
    json.dumps(conversation).encode()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_a_crash_anywhere_in_well_formed_turns_is_repaired(calls_per_turn: list[int], data: st.DataObject) -> None:
    """The history is cut at any row, then goes on: valid before and after, what was answered stays answered."""
    rows: list[Message] = []
    for turn, calls in enumerate(calls_per_turn):
        rows += turn_rows(turn, calls, data)
    cut = data.draw(st.integers(0, len(rows)))
    died = rows[:cut]
    check_strict(replay(numbered(died)))
    resumed = numbered([*died, *turn_rows(len(calls_per_turn), 1, data)])
    conversation = replay(resumed)
    check_strict(conversation)
    stored_results = [row["content"] for row in resumed if row["role"] == "tool"]
    given_results = [message["content"] for message in conversation if message["role"] == "tool"]
    assert [result for result in given_results if result != INTERRUPTED] == stored_results
    made = sum(len(row["tool_calls"] or []) for row in resumed)
    assert len(given_results) == made, "no call is hidden: it may have run"


def turn_rows(turn: int, calls: int, data: st.DataObject) -> list[Message]:
    """One turn: a question, calls with their results, an answer; times at random."""

    def row(role: str, content: str | None, **columns: Any) -> Message:
        blank = {"tool_calls": None, "tool_call_id": None, "tool_name": None, "rewound": 0}
        reasoning = {"reasoning": None, "reasoning_content": None, "reasoning_details": None}
        when = data.draw(st.floats(0, 2_000_000_000))
        return {"role": role, "content": content, "timestamp": when, **blank, **reasoning, **columns}

    ids = [f"call_{number}" for number in range(calls)]
    made = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in ids]
    steps = [row("assistant", None, tool_calls=made)] if made else []
    results = [row("tool", f"{turn} {call_id}", tool_call_id=call_id, tool_name="f") for call_id in ids]
    return [row("user", f"question {turn}"), *steps, *results, row("assistant", f"answer {turn}")]
