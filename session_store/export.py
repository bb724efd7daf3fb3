"""Sessions as objects for other programs: the row of a session with all its messages.

Contract: an export object has every column of the session, every message of it in order, those taken back included,
and every call of a model; it can always be written as JSON, whatever is stored. Files that came with a message are
named with it, by their hash.
Each segment of a compressed conversation is an object of its own, tied to the others by `parent_session_id` and
`root_id`.
Failure: an unknown session gives None; a session deleted while it is read is left out.
Limits: `iter_sessions` holds one session in memory and reads its messages in pages, each page a consistent view;
messages that arrive meanwhile are included. The order of sessions is that of their ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, cast

from session_store.attachments import attachments_of
from session_store.jsontext import plain
from session_store.messages import decode_message
from session_store.models import Visibility
from session_store.rows import MessageRow, SessionExport, SessionRow, UsageRow
from session_store.tx import Rx
from session_store.usage import calls_after
from session_store.visible import only_visible, visible_params

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["export", "iter_exports"]

_MESSAGES_PER_PAGE = 500
_IDS_PER_PAGE = 200

_SESSION = "SELECT * FROM sessions WHERE id = ?"
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?"

# Ids after the last one seen. ?1 and ?2 visibility, ?3 source, ?4 last id seen, ?5 limit.
_IDS = """
SELECT s.id FROM sessions s
WHERE s.id > ?4 AND (?3 IS NULL OR s.source = ?3) AND /*visible*/
ORDER BY s.id LIMIT ?5
"""


async def export(engine: Engine, session_id: str) -> SessionExport | None:
    """Return the export object of this very session, or None."""
    row = await engine.read(lambda rx: rx.one(_SESSION, (session_id,)))
    if row is None:
        return None
    session = cast("SessionRow", plain(row))
    messages = await _all_messages(engine, session_id)
    return {**session, "messages": messages, "usage": await _all_usage(engine, session_id)}


async def _all_messages(engine: Engine, session_id: str) -> list[MessageRow]:
    messages: list[MessageRow] = []

    def page(rx: Rx) -> list[MessageRow]:
        after = messages[-1]["id"] if messages else 0
        read = [decode_message(row) for row in rx.all(_MESSAGES, (session_id, after, _MESSAGES_PER_PAGE))]
        attached = attachments_of(rx, [row["id"] for row in read])
        for row in read:
            if row["id"] in attached:
                row["attachments"] = attached[row["id"]]
        return read

    more = True
    while more:
        read = await engine.read(page)
        messages += read
        more = len(read) == _MESSAGES_PER_PAGE
    return messages


async def _all_usage(engine: Engine, session_id: str) -> list[UsageRow]:
    rows: list[UsageRow] = []
    more = True
    while more:
        last = rows[-1]["id"] if rows else 0
        read = await engine.read(partial(calls_after, session_id=session_id, after_id=last, limit=_MESSAGES_PER_PAGE))
        rows += read
        more = len(read) == _MESSAGES_PER_PAGE
    return rows


async def iter_exports(
    engine: Engine, source: str | None, visible_to: Visibility | None
) -> AsyncIterator[SessionExport]:
    """Yield the export objects of the sessions that the asker may see, one in memory at a time."""
    last, more = "", True

    def page(rx: Rx) -> list[str]:
        params = (*visible_params(visible_to), source, last, _IDS_PER_PAGE)
        return [row["id"] for row in rx.all(only_visible(_IDS, visible_to), params)]

    while more:
        ids = await engine.read(page)
        for session_id in ids:
            exported = await export(engine, session_id)
            if exported is not None:
                yield exported
        last, more = ids[-1] if ids else "", len(ids) == _IDS_PER_PAGE
