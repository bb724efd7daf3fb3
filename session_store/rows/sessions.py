"""Rows of what was said: sessions, their messages with all that stands beside these, people, totals."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from session_store.rows.usage import UsageRow, UsageTotals

__all__ = [
    "AttachmentRow",
    "ChangeRow",
    "MessageRow",
    "NoteRow",
    "PersonRow",
    "PruneKept",
    "SessionExport",
    "SessionListRow",
    "SessionRow",
    "SessionStats",
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
