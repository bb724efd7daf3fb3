"""Rows of what models cost and of how the store was used. What includes what: see `session_store.usage`."""

from __future__ import annotations

from typing import TypedDict

__all__ = [
    "Insights",
    "ModelInsight",
    "ModelUsage",
    "Moment",
    "NotableSession",
    "SourceInsight",
    "ToolInsight",
    "UsageRow",
    "UsageTotals",
]


class UsageRow(TypedDict):
    """One call of a model, in tokens; see `session_store.usage` for what includes what."""

    id: int
    request_id: str
    session_id: str
    turn_id: str | None
    purpose: str
    model: str | None
    provider: str | None
    base_url: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    created_at: float


class ModelUsage(TypedDict):
    """The calls of one model. read_tokens: what it was given, the cached part included."""

    model: str | None
    calls: int
    read_tokens: int
    output_tokens: int


class UsageTotals(TypedDict):
    """Sums over sessions. total_tokens: input, both cache columns and output; reasoning is inside the output."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    total_tokens: int
    models: list[ModelUsage]


class ModelInsight(ModelUsage):
    """The calls of one model in a time."""

    reasoning_tokens: int
    cache_read_tokens: int


class SourceInsight(TypedDict):
    """Where conversations of a time were born."""

    source: str
    conversations: int
    messages: int


class ToolInsight(TypedDict):
    """A tool, and how often it was called."""

    name: str
    calls: int


class Moment(TypedDict):
    """A quarter of an hour, by its beginning in Unix seconds, and how many messages people sent in it."""

    moment: int
    messages: int


class NotableSession(TypedDict):
    """A session of which there is much."""

    id: str
    title: str | None
    messages: int


class Insights(TypedDict):
    """How the store was used since a moment. read_tokens: the cached part included."""

    since: float
    conversations: int
    messages: int
    user_messages: int
    tool_calls: int
    active_seconds: float
    model_calls: int
    read_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cache_read_tokens: int
    models: list[ModelInsight]
    sources: list[SourceInsight]
    tools: list[ToolInsight]
    moments: list[Moment]
    notable: list[NotableSession]
