"""What stands around a message: a window of its session, the session's first and last messages, how many there are.

Contract: messages that were taken back are left out and not counted. A window holds its own message, so that going on
from its last one repeats that one and misses none. The first and last messages never overlap the window, and those of
them that say nothing are passed over. Everything of one call is read in one view of the database.
Failure: a message that is not in the session (or taken back, or not visible) has no window: None.
Limits: 50 messages on each side, 10 at each end; counts stop at 10,000.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from session_store.content import plain_text
from session_store.decoding import decode_message
from session_store.models import Visibility
from session_store.rows import MessageRow, MessageWindow
from session_store.tx import Rx
from session_store.visible import only_visible, visible_params

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Surroundings"]

_SIDE_MOST: Final = 50
_END_MOST: Final = 10
_BY_ID_MOST: Final = 1000
_PREVIEW: Final = 400

#: Messages by their ids, as far as they are visible. 3: the ids.
_BY_ID: Final = """
SELECT m.* FROM json_each(?3) AS wanted CROSS JOIN messages AS m ON m.id = wanted.value
JOIN sessions AS s ON s.id = m.session_id
WHERE m.rewound = 0 AND /*visible*/
"""
#: What is told of the session of a message.
_SESSION: Final = """
SELECT title, source, model, started_at, place_id, COALESCE(root_id, id) AS root_id FROM sessions WHERE id = ?
"""
#: The first words of a conversation.
_FIRST_SAID: Final = """
SELECT content FROM messages
WHERE session_id = ? AND role = 'user' AND content IS NOT NULL AND rewound = 0 ORDER BY id LIMIT 1
"""
_BEFORE: Final = "SELECT * FROM messages WHERE session_id = ? AND id < ? AND rewound = 0 ORDER BY id DESC LIMIT ?"
_AFTER: Final = "SELECT * FROM messages WHERE session_id = ? AND id > ? AND rewound = 0 ORDER BY id LIMIT ?"
#: The first messages before an id that say something, and the last ones after it.
_FIRST: Final = """
SELECT * FROM messages WHERE session_id = ? AND id < ? AND rewound = 0 AND content <> '' AND role <> 'tool'
ORDER BY id LIMIT ?
"""
_LAST: Final = """
SELECT * FROM messages WHERE session_id = ? AND id > ? AND rewound = 0 AND content <> '' AND role <> 'tool'
ORDER BY id DESC LIMIT ?
"""
_COUNT_BEFORE: Final = """
SELECT count(*) FROM (SELECT 1 FROM messages WHERE session_id = ? AND id < ? AND rewound = 0 LIMIT 10000)
"""
_COUNT_AFTER: Final = """
SELECT count(*) FROM (SELECT 1 FROM messages WHERE session_id = ? AND id > ? AND rewound = 0 LIMIT 10000)
"""


class Surroundings:
    """Reading around messages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get_messages_by_id(
        self, ids: Collection[int], *, visible_to: Visibility | None = None
    ) -> dict[int, MessageRow]:
        """Return those of at most 1,000 messages that are there, by id."""
        wanted = json.dumps(list(ids)[:_BY_ID_MOST])
        rows = await self._engine.read(
            lambda rx: rx.all(only_visible(_BY_ID, visible_to), (*visible_params(visible_to), wanted))
        )
        return {row["id"]: decode_message(row) for row in rows}

    async def get_windows(
        self, message_ids: Sequence[int], size: int, *, ends: int = 0, visible_to: Visibility | None = None
    ) -> list[MessageWindow | None]:
        """Return the window of each message.

        size: messages on each side, at most 50. ends: how many of the session's first and last messages, at most 10.
        """
        size, ends = min(max(size, 0), _SIDE_MOST), min(max(ends, 0), _END_MOST)
        return await self._engine.read(
            lambda rx: [_window(rx, message_id, size, ends, visible_to) for message_id in message_ids]
        )


def _window(rx: Rx, message_id: int, size: int, ends: int, visible_to: Visibility | None) -> MessageWindow | None:
    anchor = rx.one(only_visible(_BY_ID, visible_to), (*visible_params(visible_to), json.dumps([message_id])))
    if anchor is None:
        return None
    session_id = anchor["session_id"]
    session = rx.one(_SESSION, (session_id,)) or {}
    before = rx.all(_BEFORE, (session_id, message_id, size))[::-1]
    after = rx.all(_AFTER, (session_id, message_id, size))
    first = before[0]["id"] if before else message_id
    last = after[-1]["id"] if after else message_id
    start = rx.all(_FIRST, (session_id, first, ends)) if ends else []
    end = rx.all(_LAST, (session_id, last, ends))[::-1] if ends else []
    return MessageWindow(
        session_id=session_id,
        title=session["title"],
        source=session["source"],
        model=session["model"],
        started_at=session["started_at"],
        place_id=anchor["place_id"] or session["place_id"],
        preview=_preview(rx, session["root_id"]),
        messages=[decode_message(row) for row in (*before, anchor, *after)],
        messages_before=rx.value(_COUNT_BEFORE, (session_id, first)),
        messages_after=rx.value(_COUNT_AFTER, (session_id, last)),
        start=[decode_message(row) for row in start],
        end=[decode_message(row) for row in end],
    )


def _preview(rx: Rx, root: str) -> str:
    return plain_text(rx.value(_FIRST_SAID, (root,)))[:_PREVIEW]
