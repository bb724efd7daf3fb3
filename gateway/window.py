"""Which of the stored messages a turn shows to the model: as many of the newest as the budget holds.

Contract: `fitted` gives the messages in provider format: the summary, then whole exchanges (a user message and all that
answers it) up to the question and what was done about it already. The question is always in, whatever it costs. Of its
own exchange, should that alone cost too much, the oldest steps are left out; a step is an assistant message with the
results of its calls, never a part of it.
The result is the same for the same rows. While a conversation grows, the beginning stays where it is for as long as it
can: where more is there than the budget holds, the cut is not made as late as possible but in the older half of the
window, at the exchange whose id has the lowest hash. So it moves only when that one has left the half or a lower one
has come into it, about four times in a budget's worth of talk, and what a provider has cached stays good meanwhile.
Limits: tokens are estimated (see `session_store.view.text_tokens`); the budget holds by that estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from session_store.conversation import replay
from session_store.view import MESSAGE_TOKENS, text_tokens

if TYPE_CHECKING:
    from session_store import MessageRow

__all__ = ["Exchange", "Fitted", "exchanges", "fitted", "json_tokens", "message_tokens"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user message and what answers it; the first one of a history may begin without. tokens: what it costs."""

    rows: Sequence[MessageRow]
    tokens: int

    @property
    def first_id(self) -> int:
        """The id of its first message."""
        return self.rows[0]["id"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown. tokens: what it costs. cut: whether anything was left out that is not in the summary."""

    messages: list[dict[str, Any]]
    tokens: int
    cut: bool


def json_tokens(value: object) -> int:
    """What a value costs as JSON."""
    return text_tokens(json.dumps(value, ensure_ascii=False, default=str))


def message_tokens(message: Mapping[str, Any]) -> int:
    """What one provider message costs."""
    cost = MESSAGE_TOKENS
    for name, value in message.items():
        if name in {"role", "finish_reason"} or value is None:
            continue
        cost += text_tokens(value) if isinstance(value, str) else json_tokens(value)
    return cost


def exchanges(rows: Sequence[MessageRow]) -> list[Exchange]:
    """The rows by exchange, in their order. What was said while a turn ran belongs to the exchange of that turn."""
    groups: list[list[MessageRow]] = []
    turn: str | None = None
    for row in rows:
        steered = row["turn_id"] is not None and row["turn_id"] == turn
        if not groups or (row["role"] == "user" and not steered):
            groups.append([])
            turn = row["turn_id"]
        groups[-1].append(row)
    return [Exchange(group, _cost(replay(group))) for group in groups]


def fitted(
    rows: Sequence[MessageRow],
    budget: int,
    *,
    summary: str | None = None,
    question: int | None = None,
    whole: bool = True,
) -> Fitted:
    """Return what of these rows (oldest first, notes applied) is shown within `budget` tokens.

    question: the message to be answered; the last exchange when not given. whole: the rows are all there are.
    """
    parts = exchanges(rows)
    asked = next((place for place, part in enumerate(parts) if any(row["id"] == question for row in part.rows)), None)
    asked = max(len(parts) - 1, 0) if asked is None else asked
    start = _start(parts, budget - _cost(replay([], summary=summary)), asked, whole=whole)
    shown = [row for part in parts[start:] for row in part.rows]
    messages = replay(shown, summary=summary)
    # Joined neighbours, renumbered calls and late results change the sum a little.
    while _cost(messages) > budget and start < asked:
        start += 1
        shown = [row for part in parts[start:] for row in part.rows]
        messages = replay(shown, summary=summary)
    steps = _steps(shown)
    while (excess := _cost(messages) - budget) > 0 and steps:
        gone: set[int] = set()
        while steps and excess > 0:
            step = steps.pop(0)
            gone |= {row["id"] for row in step}
            excess -= _cost(replay(step))
        shown = [row for row in shown if row["id"] not in gone]
        messages = replay(shown, summary=summary)
    return Fitted(messages, _cost(messages), cut=not whole or len(shown) < len(rows))


def _cost(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(message_tokens(message) for message in messages)


def _start(parts: Sequence[Exchange], budget: int, asked: int, *, whole: bool) -> int:
    """The exchange to begin with."""
    left, latest = budget, len(parts)
    candidates: list[int] = []
    for place in reversed(range(len(parts))):
        left -= parts[place].tokens
        if left < 0:
            break
        latest = place
        if left <= budget // 2:
            candidates.append(place)
    if latest == 0 and whole:
        return 0
    # The beginning of what was read may be the middle of an exchange.
    best = min(
        (place for place in candidates if place > 0),
        key=lambda place: _hash(parts[place].first_id),
        default=max(latest, 1),
    )
    return min(best, asked)


def _hash(number: int) -> int:
    """A number that is as good as random, the same for the same id (Knuth's multiplicative hash)."""
    return number * 2_654_435_761 % 2**32


def _steps(rows: Sequence[MessageRow]) -> list[list[MessageRow]]:
    """The steps among these rows, oldest first: each assistant message with the results that follow it."""
    steps: list[list[MessageRow]] = []
    for row in rows:
        if row["role"] == "assistant":
            steps.append([row])
        elif row["role"] == "tool" and steps:
            steps[-1].append(row)
    return steps
