"""What a search gives back: conversations with their passages, as JSON values that stay small.

Contract: reads only, and only what the asker may see. One result per conversation: the session, title, first words,
place and time of its best passage, the passages that match, and around the best one a window of the session, its first
and last messages and how many more there are. Scheduled and tool runs come after what people said.
Limits: named below; a text that is longer is cut, around the words that were found or at its end, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final

from gateway.agents.phrasing import is_own
from gateway.agents.quoting import excerpt
from gateway.phrases import one_line
from session_store.content import encode_content, plain_text

if TYPE_CHECKING:
    from gateway.tools.finding import Find
    from session_store import (
        MessageRow,
        MessageWindow,
        PlaceRef,
        SessionDB,
        SessionListRow,
        SessionRow,
        Visibility,
    )

__all__ = ["MOST_CONVERSATIONS", "SEARCH_TOOL", "Results"]

MOST_CONVERSATIONS: Final = 10
SEARCH_TOOL: Final = "session_search"
_PASSAGES: Final = 6
_PASSAGES_IN_ALL: Final = 24
_READ: Final = 60
_ENDS: Final = 3
_CONTENT: Final = 600
_AROUND_CONTENT: Final = 300
_WHOLE_CONTENT: Final = 2000
_PREVIEW: Final = 60
_FIRST_ROWS: Final = 8

_FOUND: Final = re.compile(r">>>(.{1,80}?)<<<", re.DOTALL)
#: Sessions of these kinds hold nothing that people said.
_LATE: Final = frozenset({"scheduled", "tool"})


class Results:
    """Builds the results of one call; looks up each session and place once."""

    def __init__(self, db: SessionDB, visible_to: Visibility, zone: tzinfo | None) -> None:
        self._db = db
        self._visible_to = visible_to
        self._zone = zone
        self._sessions: dict[str, SessionRow | None] = {}
        self._places: dict[int, PlaceRef | None] = {}

    async def conversations(self, finds: Sequence[Find], limit: int, window: int) -> list[dict[str, Any]]:
        """Return at most `limit` conversations, best find first. window: 0 leaves out what is around."""
        rows = await self._db.get_messages_by_id(
            [find.hit["id"] for find in finds[:_READ]], visible_to=self._visible_to
        )
        found: dict[str, list[tuple[Find, MessageRow]]] = {}
        room = _PASSAGES_IN_ALL
        for find in sorted(finds[:_READ], key=lambda find: find.hit["kind"] in _LATE):
            row = rows.get(find.hit["id"])
            root = find.hit["root_id"]
            if row is None or not room or _repeats(row) or (root not in found and len(found) >= limit):
                continue
            passages = found.setdefault(root, [])
            if len(passages) < _PASSAGES:
                passages.append((find, row))
                room -= 1
        best = [passages[0] for passages in found.values()]
        windows = await self._windows([row["id"] for _, row in best], window)
        return [
            await self._conversation(root, passages, found_around, around=bool(window))
            for (root, passages), found_around in zip(found.items(), windows, strict=True)
        ]

    async def by_title(
        self, rows: Sequence[SessionListRow], known: Collection[str], limit: int, window: int
    ) -> list[dict[str, Any]]:
        """Return conversations that were found by their titles, as far as they are not known by their roots."""
        results: list[dict[str, Any]] = []
        for row in rows:
            session = await self._session(row["id"])
            root = (session["root_id"] if session else None) or row["id"]
            first = await self._first(row["id"])
            if root in known or first is None or len(results) >= limit:
                continue
            (around,) = await self._windows([first["id"]], window)
            results.append(
                {
                    "session_id": row["id"],
                    "title": row["title"],
                    "preview": row["preview"],
                    "when": self._when(row["last_active"]),
                    "source": row["source"],
                    "model": row["model"],
                    "matched_role": "session_title",
                    "match_message_id": first["id"],
                    "snippet": row["title"],
                    "matches": [],
                }
                | (self._around(around, first["id"]) if window else {})
            )
        return results

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

    def facts(self, session: SessionRow | MessageWindow) -> dict[str, Any]:
        """Return what is told of a session that is read."""
        return {
            "title": session["title"],
            "when": self._when(session["started_at"]),
            "source": session["source"],
            "model": session["model"],
        }

    def messages(self, rows: Iterable[MessageRow], anchor: int | None = None) -> list[dict[str, Any]]:
        """Return messages as they are stored; one that is too long is cut at its end."""
        return [self._message(row, anchor, _WHOLE_CONTENT) for row in rows]

    async def _conversation(
        self, root: str, passages: Sequence[tuple[Find, MessageRow]], window: MessageWindow | None, *, around: bool
    ) -> dict[str, Any]:
        hit = passages[0][0].hit
        place = await self._place(window["place_id"] if window else None)
        result = {
            "session_id": hit["session_id"],
            "title": hit["title"],
            "preview": one_line(window["preview"], _PREVIEW) if window else "",
            "when": self._when(hit["timestamp"]),
            "source": hit["source"],
            "model": hit["model"],
            "place": None
            if place is None
            else {"platform": place.platform, "chat_type": place.chat_type, "name": place.name},
            "matched_role": hit["role"],
            "match_message_id": hit["id"],
            "snippet": hit["snippet"],
            "matches": [self._passage(find, matching) for find, matching in passages],
        }
        if root != hit["session_id"]:
            result["parent_session_id"] = root
        return result | (self._around(window, hit["id"]) if around else {})

    def _passage(self, find: Find, row: MessageRow) -> dict[str, Any]:
        words = _FOUND.findall(find.hit["snippet"])
        return {
            "id": row["id"],
            "role": row["role"],
            "when": self._when(row["timestamp"]),
            "content": excerpt(_text(row), words, _CONTENT),
            "complete": find.complete,
        }

    async def _windows(self, ids: Sequence[int], size: int) -> list[MessageWindow | None]:
        return await self._db.get_windows(ids, size, ends=_ENDS if size else 0, visible_to=self._visible_to)

    def _around(self, window: MessageWindow | None, anchor: int) -> dict[str, Any]:
        if window is None:
            return {}
        return {
            "bookend_start": [self._message(row, None, _AROUND_CONTENT) for row in window["start"]],
            "messages": [self._message(row, anchor, _AROUND_CONTENT) for row in window["messages"]],
            "bookend_end": [self._message(row, None, _AROUND_CONTENT) for row in window["end"]],
            "messages_before": window["messages_before"],
            "messages_after": window["messages_after"],
        }

    def _message(self, row: MessageRow, anchor: int | None, most: int) -> dict[str, Any]:
        text = _text(row)
        told: dict[str, Any] = {
            "id": row["id"],
            "role": row["role"],
            "when": self._when(row["timestamp"]),
            "content": text if len(text) <= most else text[: most - 1] + "…",
        }
        if len(text) > most:
            told["cut"] = len(text)
        if row["tool_calls"]:
            told["tool_calls"] = [_called(call, most) for call in row["tool_calls"]]
        told |= {name: value for name in ("tool_name", "tool_call_id") if (value := row.get(name))}
        return told | ({"anchor": True} if row["id"] == anchor else {})

    async def _begins_with(self, session_id: str, message_id: int) -> bool:
        session = await self._session(session_id)
        first = await self._first((session["root_id"] if session else None) or session_id)
        return first is not None and first["id"] == message_id

    async def _first(self, root: str) -> MessageRow | None:
        rows = await self._db.get_messages_after(root, 0, _FIRST_ROWS)
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


def _repeats(row: MessageRow) -> bool:
    """Whether a message only repeats what others said, or is nothing but calls of the search itself."""
    if row["role"] != "assistant":
        return False
    calls = row["tool_calls"]
    searches = isinstance(calls, list) and bool(calls) and not _text(row) and all(map(_is_search, calls))
    return searches or is_own(_text(row))


def _is_search(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and function.get("name") == SEARCH_TOOL


def _called(call: Any, most: int) -> Any:
    """A call with its name and the beginning of its arguments."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return str(call)[:most]
    return {"name": function.get("name"), "arguments": str(function.get("arguments") or "")[:most]}


def _text(row: MessageRow) -> str:
    return plain_text(encode_content(row["content"]))
