"""Shapes of the rows that the store returns: plain dicts, typed. Columns are those of schema.sql."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

from session_store.models import PlaceRef
from session_store.usage_rows import UsageRow, UsageTotals

__all__ = [
    "AttachmentRow",
    "ChangeRow",
    "ControlRow",
    "HandoffRow",
    "HistoryRow",
    "InboxRow",
    "MessageRow",
    "MessageWindow",
    "NoteRow",
    "OutboxRow",
    "PersonRow",
    "ProcessRow",
    "PruneKept",
    "RouteRow",
    "SearchContext",
    "SearchHit",
    "SearchHits",
    "SessionExport",
    "SessionListRow",
    "SessionRow",
    "SessionStats",
    "TurnRow",
    "UnreadableRow",
]


class SessionRow(TypedDict):
    """One session with every documented column; model_config is the stored JSON text."""

    id: str
    source: str
    user_id: str | None
    model: str | None
    model_config: str | None
    system_prompt: str | None
    parent_session_id: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None
    title: str | None
    api_call_count: int
    owner: str | None
    room_id: str | None
    session_key: str | None
    place_id: int | None
    root_id: str | None
    kind: str
    context_from: int | None
    last_active: float | None
    archived: int
    title_key: str | None
    resumed_at: float | None


class SessionListRow(TypedDict):
    """One line of a list: one row per conversation. preview is the first user message, one line, at most 60 + '...'."""

    id: str
    title: str | None
    source: str
    preview: str
    last_active: float
    started_at: float
    ended_at: float | None
    message_count: int
    model: str | None
    person: str | None


class AttachmentRow(TypedDict):
    """A file that came with a message; hash is None when it was not fetched, and `problem` says why."""

    message_id: int
    position: int
    name: str
    kind: str
    hash: str | None
    size: int | None
    media_type: str | None
    problem: str | None


class MessageRow(TypedDict):
    """One message; content is decoded (text or multimodal list), JSON columns are decoded lists.

    attachments: in exports only, and only where files came with the message.
    """

    id: int
    session_id: str
    role: str
    content: Any
    tool_call_id: str | None
    tool_calls: list[Any] | None
    tool_name: str | None
    timestamp: float
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: Any
    codex_reasoning_items: Any
    codex_message_items: Any
    person_id: str | None
    place_id: int | None
    platform_message_id: str | None
    inbox_id: int | None
    op_id: str | None
    turn_id: str | None
    rewound: int
    edited_at: float | None
    attachments: NotRequired[list[AttachmentRow]]


class NoteRow(TypedDict):
    """What the agent is told beside a user message."""

    message_id: int
    sender: str | None
    quoted: str | None
    quoted_name: str | None
    parts: str | None


class ChangeRow(TypedDict):
    """A change of an earlier message: before and now as text, None where it is not kept."""

    message_id: int
    kind: str
    before: str | None
    now: str | None


class SessionExport(SessionRow):
    """The export object of one session: its columns, its messages, and each call of a model for it."""

    messages: list[MessageRow]
    usage: list[UsageRow]


class MessageWindow(TypedDict):
    """A message with what stands around it, oldest first, and what is told of its session.

    start, end: the session's first and last messages. preview: how the conversation begins, its first 400 characters.
    place_id: where the message, else the session, came from.
    """

    session_id: str
    title: str | None
    source: str
    model: str | None
    started_at: float
    place_id: int | None
    preview: str
    messages: list[MessageRow]
    messages_before: int
    messages_after: int
    start: list[MessageRow]
    end: list[MessageRow]


class SearchContext(TypedDict):
    """A neighbour of a hit; content is cut at 200 characters."""

    role: str
    content: str


class SearchHit(TypedDict):
    """One found message. snippet marks the match with >>> and <<<. approximate: found by scanning, not by the index.

    root_id: the conversation that it belongs to; kind: the session's (see SessionRow).
    """

    id: int
    session_id: str
    role: str
    timestamp: float
    snippet: str
    tool_name: str | None
    context: list[SearchContext]
    source: str
    model: str | None
    session_started: float
    title: str | None
    root_id: str
    kind: str
    approximate: bool


class SearchHits(list[SearchHit]):
    """What a search found, in its order. stopped: time ran out, there may be more."""

    def __init__(self, hits: Iterable[SearchHit] = (), *, stopped: bool = False) -> None:
        super().__init__(hits)
        self.stopped = stopped


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
    """One process of the home; alive is judged when read, by its pid on this machine and by its last beat elsewhere."""

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


class PersonRow(TypedDict):
    """One person."""

    id: str
    name: str | None
    display: str | None
    created_at: float


class PruneKept(TypedDict):
    """Conversations that are old enough for a prune and stay: never ended, archived, or with work under way."""

    open: int
    archived: int
    in_use: int


class SessionStats(TypedDict):
    """Totals of the store. size_bytes counts the database file and its write-ahead log."""

    sessions: int
    messages: int
    by_source: dict[str, int]
    usage: UsageTotals
    size_bytes: int


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
