"""Rows that a search returns: hits, and messages with what stands around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from session_store.rows.sessions import MessageRow

__all__ = [
    "MessageWindow",
    "SearchContext",
    "SearchHit",
    "SearchHits",
]


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
