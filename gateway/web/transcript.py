"""Stored messages as the page shows them.

Contract: `Presenter.show` turns rows into JSON values, in order, one per row that people should see: rewound rows and
system prompts are left out. Tool calls are folded to count and names, with arguments and results cut for the eye; the
store keeps them whole. Names of places and people are looked up once per presenter.
Files that came with a message are named, with an address for those that are kept.
Limits: long pages are rendered on a worker thread, so that the event loop never waits for Markdown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from gateway.web.render import markdown, plain
from session_store.content import encode_content, plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_store import AttachmentRow, MessageRow, PlaceRef, SessionDB

__all__ = ["MAX_ARGUMENTS", "MAX_RESULT", "OWNER", "Presenter", "Shown"]

MAX_ARGUMENTS = 2_000
MAX_RESULT = 8_000
OWNER = "owner"

#: Characters that are rendered on the loop at once; about a millisecond.
_INLINE = 2_000

Shown = dict[str, Any]


class Presenter:
    """Presents rows of one reader. Short-lived: names that change later are seen by the next one."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._places: dict[int, PlaceRef | None] = {}
        self._people: dict[str, str] = {}
        self._files: dict[int, list[AttachmentRow]] = {}

    async def show(self, rows: Sequence[MessageRow]) -> list[Shown]:
        """Present rows, oldest first."""
        visible = [row for row in rows if not row["rewound"] and row["role"] != "system"]
        self._files = await self._db.attachments.of_messages([row["id"] for row in visible if row["role"] == "user"])
        for row in visible:
            await self._look_up(row)
        if sum(len(str(row["content"] or "")) for row in visible) <= _INLINE:
            return [self._one(row) for row in visible]
        return await anyio.to_thread.run_sync(lambda: [self._one(row) for row in visible])

    async def _look_up(self, row: MessageRow) -> None:
        place_id, person_id = row["place_id"], row["person_id"]
        if place_id is not None and place_id not in self._places:
            self._places[place_id] = await self._db.places.get(place_id)
        if person_id is not None and person_id != OWNER and person_id not in self._people:
            person = await self._db.people.get(person_id)
            self._people[person_id] = "" if person is None else person["name"] or person["display"] or ""

    def _one(self, row: MessageRow) -> Shown:
        text = _text(row["content"])
        shown: Shown = {
            "id": row["id"],
            "role": row["role"],
            "time": row["timestamp"],
            "turn": row["turn_id"],
            "html": plain(text) if row["role"] == "user" else "" if row["role"] == "tool" else markdown(text),
        }
        if row["role"] == "tool":
            shown["result"] = {
                "call_id": row["tool_call_id"],
                "name": row["tool_name"] or "tool",
                "text": _cut(text, MAX_RESULT),
            }
        if row["tool_calls"]:
            shown["tools"] = _fold(row["tool_calls"])
        if row["edited_at"] is not None:
            shown["edited"] = True
        if row["finish_reason"] in {"stopped", "error"}:
            shown["end"] = row["finish_reason"]
        if row["id"] in self._files:
            shown["files"] = [_file(file) for file in self._files[row["id"]]]
        self._whence(row, shown)
        return shown

    def _whence(self, row: MessageRow, shown: Shown) -> None:
        place = self._places.get(row["place_id"]) if row["place_id"] is not None else None
        if place is not None:
            shown["place"] = {"platform": place.platform, "name": place.name or ""}
            if place.platform == "web" and row["role"] == "user" and row["platform_message_id"]:
                shown["client_id"] = row["platform_message_id"]
        person_id = row["person_id"]
        if row["role"] == "user" and person_id is not None and person_id != OWNER:
            shown["who"] = self._people.get(person_id) or "Somebody else"


def _file(row: AttachmentRow) -> Shown:
    """A file as the page shows it; without an address when it was not fetched."""
    address = f"/api/files/{row['message_id']}/{row['position']}" if row["hash"] is not None else None
    return {"name": row["name"], "kind": row["kind"], "size": row["size"], "url": address}


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return plain_text(encode_content(content))


def _fold(calls: Sequence[Any]) -> Shown:
    """Tool calls as count, names (in order, each once) and the calls themselves."""
    folded = []
    for call in calls:
        inner = call.get("function", call) if isinstance(call, dict) else {}
        arguments = inner.get("arguments", "")
        folded.append(
            {
                "id": call.get("id") if isinstance(call, dict) else None,
                "name": str(inner.get("name") or "tool"),
                "arguments": _cut(_readable(arguments), MAX_ARGUMENTS),
            }
        )
    names = list(dict.fromkeys(call["name"] for call in folded))
    return {"count": len(folded), "names": names, "calls": folded}


def _readable(arguments: Any) -> str:
    """JSON on one line with its own characters, not escapes; anything else as it is."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps(arguments, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit:,} more characters"
