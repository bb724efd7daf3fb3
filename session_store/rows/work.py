"""Rows of work: the two queues, turns, routes, moves between places, and the processes that do it."""

from __future__ import annotations

from typing import Any, TypedDict

from session_store.models import PlaceRef

__all__ = [
    "ControlRow",
    "HandoffRow",
    "HistoryRow",
    "InboxRow",
    "OutboxRow",
    "ProcessRow",
    "RouteRow",
    "TurnRow",
    "UnreadableRow",
]


class InboxRow(TypedDict):
    """One inbox row; payload and sender are decoded; place columns are joined in as place_*."""

    id: int
    platform: str
    account: str
    dedupe_key: str
    kind: str
    place_id: int
    chat_type: str
    chat: str
    thread: str
    place_name: str | None
    session_key: str | None
    session_id: str | None
    lane: str
    person_id: str | None
    sender: dict[str, Any]
    payload: dict[str, Any]
    received_at: float
    state: str
    attempts: int
    turn_id: str | None
    holder: str | None
    error: str | None


class OutboxRow(TypedDict):
    """One outbox row with its place's columns joined in; parts of one answer share their line.

    finishes_message: the platform's id of the message that this part takes the place of, None where there is none.
    """

    id: int
    line: int
    platform: str
    account: str
    place_id: int
    chat_type: str
    chat: str
    thread: str
    place_name: str | None
    place_parent: str | None
    session_id: str | None
    message_id: int | None
    turn_id: str | None
    inbox_id: int | None
    kind: str
    part: int
    parts: int
    body: str
    rendered: str | None
    reply_to: str | None
    finishes: int | None
    finishes_message: str | None
    state: str
    attempts: int
    resends: int
    next_at: float
    holder: str | None
    platform_message_id: str | None
    error: str | None
    created_at: float
    updated_at: float
    again_at: float | None


class TurnRow(TypedDict):
    """One turn."""

    id: str
    root_id: str
    session_id: str
    session_key: str | None
    place_id: int | None
    person_id: str | None
    lane: str
    state: str
    attempt: int
    reason: str | None
    holder: str
    fence: int
    created: int
    reset_reason: str | None
    previous_session_id: str | None
    input_message_id: int | None
    final_message_id: int | None
    started_at: float
    ended_at: float | None


class RouteRow(TypedDict):
    """One route with its place's columns joined in."""

    session_key: str
    session_id: str
    place_id: int
    platform: str
    account: str
    chat_type: str
    chat: str
    thread: str
    person_id: str | None
    created_at: float
    updated_at: float
    linked: int


class ControlRow(TypedDict):
    """One small message between processes."""

    id: int
    kind: str
    root_id: str | None
    turn_id: str | None
    person_id: str | None
    created_at: float
    done_at: float | None


class ProcessRow(TypedDict):
    """One process of the home; alive is judged when read, by its pid on this machine and by its last beat elsewhere.

    asleep: it is there on this machine, but has given no sign for so long that it counts as dead (stopped, or hung).
    """

    token: str
    pid: int
    pid_start: int
    pid_ns: str
    boot_id: str
    host: str
    role: str
    accounts: list[str]
    detail: dict[str, Any]
    started_at: float
    beat: float
    alive: bool
    asleep: bool


class UnreadableRow(TypedDict):
    """An event that no adapter could read; raw is the beginning of it."""

    id: int
    platform: str
    account: str
    reason: str
    raw: str
    times: int
    first_at: float
    last_at: float


class HandoffRow(TypedDict):
    """One handoff or link. `target` is the chat that was asked for, `place` where it goes on once that is known."""

    id: int
    op_id: str
    kind: str
    root_id: str
    target: PlaceRef
    user_id: str | None
    person_id: str
    asked_at: PlaceRef | None
    state: str
    stage: str | None
    opening: int
    place: PlaceRef | None
    note: str | None
    holder: str | None
    attempts: int
    error: str | None
    requested_at: float
    claimed_at: float | None
    ended_at: float | None


class HistoryRow(TypedDict):
    """Where a conversation came to live, how (born, handoff, resume, link, unlink), when and by whom."""

    how: str
    place: PlaceRef
    person_id: str | None
    at: float
