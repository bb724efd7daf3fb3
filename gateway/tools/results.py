"""What a search gives back: conversations with their passages, as JSON values that stay small.

Contract: reads only, and only sessions that the search has found or the list has shown, so visibility is settled
before. One result per conversation: the session, title, first words, place and time of its best passage, the passages
that match and what was said around the best one. Tool output is left out of what is around.
Limits: named below; a passage that is longer is cut around the words that were found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final

from gateway.agents.phrasing import is_own
from gateway.agents.quoting import excerpt, one_line
from session_store.content import encode_content, plain_text

if TYPE_CHECKING:
    from gateway.tools.finding import Find
    from session_store import MessageRow, PlaceRef, SearchHit, SessionDB, SessionListRow, SessionRow

__all__ = ["MOST_CONVERSATIONS", "SEARCH_TOOL", "Results"]

MOST_CONVERSATIONS: Final = 10
SEARCH_TOOL: Final = "session_search"
_PASSAGES: Final = 6
_PASSAGES_IN_ALL: Final = 24
_READ: Final = 60
_CONTENT: Final = 600
_AROUND: Final = 2
_AROUND_CONTENT: Final = 240
_AROUND_ROWS: Final = 8
_PREVIEW: Final = 60

_FOUND: Final = re.compile(r">>>(.{1,80}?)<<<", re.DOTALL)


class Results:
    """Builds the results of one search; looks up each session and place once."""

    def __init__(self, db: SessionDB, zone: tzinfo | None) -> None:
        self._db = db
        self._zone = zone
        self._sessions: dict[str, SessionRow | None] = {}
        self._places: dict[int, PlaceRef | None] = {}

    async def conversations(self, finds: Sequence[Find], limit: int) -> list[dict[str, Any]]:
        """Return at most `limit` conversations, in the order of their best find."""
        found: dict[str, dict[str, Any]] = {}
        passages = 0
        for find in finds[:_READ]:
            session = await self._session(find.hit["session_id"])
            root = (session["root_id"] or session["id"]) if session else find.hit["session_id"]
            known = found.get(root)
            if passages >= _PASSAGES_IN_ALL or (known is None and len(found) >= limit):
                continue
            if known is not None and len(known["matches"]) >= _PASSAGES:
                continue
            row = await self._row(find.hit)
            if row is None or (row["role"] == "assistant" and (is_own(_text(row)) or _only_searches(row))):
                continue
            passages += 1
            if known is None:
                found[root] = known = await self._conversation(root, session, find.hit, row)
            known["matches"].append(self._passage(find, row))
        return list(found.values())

    async def sessions(
        self, rows: Sequence[SessionListRow], here: Collection[str], question_id: int | None
    ) -> list[dict[str, Any]]:
        """Return listed sessions; the current one is left out as long as nothing but the question was said in it."""
        return [
            {
                "session_id": row["id"],
                "title": row["title"],
                "preview": row["preview"],
                "when": self._when(row["last_active"]),
                "source": row["source"],
                "message_count": row["message_count"],
            }
            for row in rows
            if row["id"] not in here or question_id is None or not await self._begins_with(row["id"], question_id)
        ]

    async def _conversation(
        self, root: str, session: SessionRow | None, hit: SearchHit, row: MessageRow
    ) -> dict[str, Any]:
        place = await self._place(row["place_id"] or (session["place_id"] if session else None))
        return {
            "session_id": hit["session_id"],
            "title": hit["title"],
            "preview": await self._preview(root),
            "when": self._when(hit["timestamp"]),
            "source": hit["source"],
            "place": None
            if place is None
            else {"platform": place.platform, "chat_type": place.chat_type, "name": place.name},
            "match_message_id": hit["id"],
            "snippet": hit["snippet"],
            "matches": [],
            "messages": await self._around(row),
        }

    def _passage(self, find: Find, row: MessageRow) -> dict[str, Any]:
        words = _FOUND.findall(find.hit["snippet"])
        return {
            "id": row["id"],
            "role": row["role"],
            "when": self._when(row["timestamp"]),
            "content": excerpt(_text(row), words, _CONTENT),
            "complete": find.complete,
        }

    async def _around(self, row: MessageRow) -> list[dict[str, Any]]:
        before = await self._db.get_messages_before(row["session_id"], row["id"], _AROUND_ROWS)
        after = await self._db.get_messages_after(row["session_id"], row["id"], _AROUND_ROWS)
        window = [*_spoken(before)[-_AROUND:], row, *_spoken(after)[:_AROUND]]
        return [
            {"id": near["id"], "role": near["role"], "content": one_line(_text(near), _AROUND_CONTENT)}
            for near in window
        ]

    async def _row(self, hit: SearchHit) -> MessageRow | None:
        rows = await self._db.get_messages_after(hit["session_id"], hit["id"] - 1, 1)
        return rows[0] if rows and rows[0]["id"] == hit["id"] else None

    async def _preview(self, root: str) -> str:
        first = await self._first(root)
        return one_line(_text(first), _PREVIEW) if first else ""

    async def _begins_with(self, session_id: str, message_id: int) -> bool:
        session = await self._session(session_id)
        first = await self._first((session["root_id"] if session else None) or session_id)
        return first is not None and first["id"] == message_id

    async def _first(self, root: str) -> MessageRow | None:
        rows = await self._db.get_messages_after(root, 0, _AROUND_ROWS)
        return next((row for row in rows if row["role"] == "user"), None)

    async def _session(self, session_id: str) -> SessionRow | None:
        if session_id not in self._sessions:
            self._sessions[session_id] = await self._db.get_session(session_id)
        return self._sessions[session_id]

    async def _place(self, place_id: int | None) -> PlaceRef | None:
        if place_id is None:
            return None
        if place_id not in self._places:
            self._places[place_id] = await self._db.places.get(place_id)
        return self._places[place_id]

    def _when(self, seconds: float) -> str:
        try:
            return datetime.fromtimestamp(seconds, self._zone).strftime("%Y-%m-%d %H:%M")
        except (OverflowError, ValueError, OSError):
            return ""


def _spoken(rows: Sequence[MessageRow]) -> list[MessageRow]:
    return [row for row in rows if row["role"] in {"user", "assistant"} and _text(row)]


def _only_searches(row: MessageRow) -> bool:
    """Whether a message is nothing but calls of the search itself."""
    calls = row["tool_calls"]
    return isinstance(calls, list) and bool(calls) and not _text(row) and all(map(_is_search, calls))


def _is_search(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and function.get("name") == SEARCH_TOOL


def _text(row: MessageRow) -> str:
    return plain_text(encode_content(row["content"]))
