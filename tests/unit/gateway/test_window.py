"""What of a history is shown within a budget, whatever the history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.window import fitted, message_tokens
from session_store import MessageRow
from tests.unit.records.test_conversation_repair import ROWS, check_strict

COLUMNS = MessageRow.__annotations__
WORDS = "words that are said "


def row(number: int, role: str, content: Any = None, **more: Any) -> MessageRow:
    """A stored message, decoded."""
    return dict.fromkeys(COLUMNS) | {"id": number, "role": role, "content": content, "rewound": 0} | more  # type: ignore[return-value]


def exchange(first: int, question: str, answer: str, calls: int = 0) -> list[MessageRow]:
    """A question, steps with one call each, and the answer."""
    rows = [row(first, "user", question)]
    for number in range(calls):
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        rows.append(row(first + 1 + 2 * number, "assistant", tool_calls=[call]))
        rows.append(row(first + 2 + 2 * number, "tool", answer, tool_call_id="c", tool_name="look"))
    rows.append(row(first + 1 + 2 * calls, "assistant", answer))
    return rows


def history(sizes: Sequence[tuple[int, int, int]]) -> list[MessageRow]:
    """Exchanges, each of so many words asked, answered, and calls."""
    rows: list[MessageRow] = []
    for asked, answered, calls in sizes:
        first = rows[-1]["id"] + 1 if rows else 1
        rows += exchange(first, f"q{first} " + WORDS * asked, f"a{first} " + WORDS * answered, calls)
    return rows


SIZES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60), st.integers(0, 4)), max_size=30)


def cost(messages: Sequence[dict[str, Any]]) -> int:
    """What they cost by the estimate."""
    return sum(message_tokens(message) for message in messages)


def check_valid(messages: Sequence[dict[str, Any]]) -> None:
    """What strict providers ask for: every call answered right behind its message, no result without a call."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    assert open_calls == []


@given(
    sizes=SIZES,
    budget=st.integers(50, 5000),
    summary=st.none() | st.text(max_size=200),
    steps=st.integers(0, 4),
    whole=st.booleans(),
)
def test_whatever_is_stored_what_is_shown_is_valid_within_the_budget_and_has_the_question(
    sizes: list[tuple[int, int, int]], budget: int, summary: str | None, steps: int, *, whole: bool
) -> None:
    """The question alone may exceed the budget; nothing else may, and no call is without its result."""
    rows = history(sizes)
    number = rows[-1]["id"] + 1 if rows else 1
    rows += exchange(number, "the question", WORDS * 20, steps)[:-1]
    shown = fitted(rows, budget, summary=summary, question=number, whole=whole)
    check_valid(shown.messages)
    assert any(message["role"] == "user" and message["content"] == "the question" for message in shown.messages)
    assert shown.tokens == cost(shown.messages)
    least = cost(fitted([rows[-1 - 2 * steps]], budget, summary=summary, question=number).messages)
    assert shown.tokens <= max(budget, least)


@given(rows=ROWS, budget=st.integers(20, 600), summary=st.none() | st.text(max_size=50), whole=st.booleans())
def test_however_odd_the_rows_are_what_is_shown_is_what_strict_providers_accept(
    rows: list[dict[str, Any]], budget: int, summary: str | None, *, whole: bool
) -> None:
    """Odd roles, shapes and ids, late and lost results: valid, in the budget, with the question."""
    stored = [row(number, "user", "") | given for number, given in enumerate(rows, 1)]
    question = row(len(stored) + 1, "user", "the question")
    shown = fitted([*stored, question], budget, summary=summary, question=question["id"], whole=whole)  # type: ignore[list-item]
    check_strict(shown.messages)
    assert "the question" in json.dumps(shown.messages[-1]["content"])
    least = cost(fitted([question], budget, summary=summary, question=question["id"]).messages)
    assert shown.tokens <= max(budget, least)


@given(SIZES, st.integers(200, 5000))
def test_what_is_shown_begins_with_a_question_and_has_no_gap(sizes: list[tuple[int, int, int]], budget: int) -> None:
    """Whole exchanges, the newest ones, unless the question's own must be shortened."""
    rows = [*history(sizes), row(100_000, "user", "the question")]
    shown = fitted(rows, budget, question=100_000)
    assert shown.messages[0]["role"] == "user"
    everything = fitted(rows, 10**9, question=100_000).messages
    texts = [message["content"] for message in everything]
    assert [message["content"] for message in shown.messages] == texts[len(texts) - len(shown.messages) :]
    assert shown.cut == (len(shown.messages) < len(everything))


def test_a_history_that_fits_is_shown_whole() -> None:
    """Nothing is left out without need."""
    rows = history([(1, 2, 1)] * 10)
    shown = fitted(rows, 100_000)
    assert not shown.cut
    assert len(shown.messages) == 40


def test_the_beginning_moves_seldom_while_a_conversation_grows() -> None:
    """Of 300 turns few begin elsewhere than the one before; in between, each is the beginning of the next one."""
    rows: list[MessageRow] = []
    budget, moves, before = 3000, 0, list[dict[str, Any]]()
    for _ in range(300):
        number = rows[-1]["id"] + 1 if rows else 1
        rows += exchange(number, f"q{number} " + WORDS, f"a{number} " + WORDS * 2)
        shown = fitted(rows[:-1], budget, question=number).messages
        moves += before != shown[: len(before)]
        before = shown
        assert cost(shown) <= budget
    assert moves <= 30


def test_of_a_question_whose_own_steps_are_too_much_the_newest_steps_are_shown() -> None:
    """An interrupted turn that is run again: its question is in, and whole steps of it."""
    rows = exchange(1, "the question", WORDS * 50, 10)[:-1]
    shown = fitted(rows, 2000, question=1)
    check_valid(shown.messages)
    assert shown.cut
    assert shown.messages[0]["content"] == "the question"
    assert shown.messages[-1]["content"] == rows[-1]["content"]
    assert 1000 < shown.tokens <= 2000
