"""Messages: append to a session, read its rows back.

Contract: order is `id`, always; timestamps are for people. The row, the counters and the last activity of its session
change in one transaction. A message for a session that compression ended goes to the live tip of its conversation.
Content comes back as it was given: plain text byte for byte, lists and dicts by value; JSON columns come back decoded.
Idempotence: a repeated `op_id` or `inbox_id` changes nothing and returns the id of the row that is there.
Failure: an unknown session raises `NotFound`; a value that JSON cannot express raises `InvalidArgument`.
Limits: messages taken back (`rewound`) are left out of what is read here; the export has them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from session_store.attachments import attach
from session_store.content import encode_content
from session_store.conversation import replay
from session_store.decoding import JSON_COLUMNS, decode_message
from session_store.errors import InvalidArgument
from session_store.jsontext import to_json
from session_store.lineage import live_tip
from session_store.models import NewAttachment, NewMessage
from session_store.notes import Annotate
from session_store.rows import MessageRow
from session_store.tx import Param, Rx, Tx
from session_store.view import View, context_view

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Messages", "decode_message", "insert_message"]

#: Columns with what people, agents and tools wrote.
_WRITTEN = frozenset({"content", "tool_calls", "reasoning", "reasoning_content", *JSON_COLUMNS})

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]

_BY_OPERATION = "SELECT id FROM messages WHERE op_id = ?"
_BY_INBOX = "SELECT id FROM messages WHERE inbox_id = ?"

# Count one message. Activity never goes back while there are messages, whatever the clock does.
_COUNT = """
UPDATE sessions SET
    message_count = COALESCE(message_count, 0) + 1,
    tool_call_count = COALESCE(tool_call_count, 0) + ?1,
    last_active = CASE WHEN COALESCE(message_count, 0) = 0 THEN ?2 ELSE MAX(COALESCE(last_active, ?2), ?2) END
WHERE id = ?3
"""

# The same for the common case, in which nothing has to be looked up first: the session is its own tip.
_COUNT_UNLESS_COMPRESSED = _COUNT + " AND end_reason IS NOT 'compression'"

# The last rows of a session, newest first; the caller turns them round.
_NEWEST = "SELECT * FROM messages WHERE session_id = ? AND rewound = 0 ORDER BY id DESC LIMIT ? OFFSET ?"

# Rows that came after one that is known.
_AFTER = "SELECT * FROM messages WHERE session_id = ? AND rewound = 0 AND id > ? ORDER BY id LIMIT ?"

# Rows that came before one that is known, newest first; the caller turns them round.
_BEFORE = "SELECT * FROM messages WHERE session_id = ? AND rewound = 0 AND id < ? ORDER BY id DESC LIMIT ?"


# How many messages of the sessions ?1 were taken back.
_TAKEN_BACK = """
SELECT COUNT(*) AS n FROM messages WHERE session_id IN (SELECT value FROM json_each(?1)) AND rewound = 1
"""


def insert_message(  # noqa: PLR0913 - one parameter per column that callers may set
    tx: Tx,
    session_id: str,
    message: NewMessage,
    *,
    person_id: str | None = None,
    place_id: int | None = None,
    platform_message_id: str | None = None,
    inbox_id: int | None = None,
    turn_id: str | None = None,
    timestamp: float | datetime | None = None,
    codex_reasoning_items: object = None,
    codex_message_items: object = None,
) -> int:
    """Append one message, count it, and return its id. A timestamp that is no finite time is replaced by the clock.

    Raises:
        NotFound: no such session.
        InvalidArgument: tool calls or another JSON column hold something that JSON cannot express.
    """
    stored = _already_stored(tx, message.op_id, inbox_id)
    if stored is not None:
        return stored
    when = _moment(timestamp, tx.now)
    calls = len(message.tool_calls) if message.role == "assistant" and message.tool_calls else 0
    if tx.run(_COUNT_UNLESS_COMPRESSED, (calls, when, session_id)) == 0:
        session_id = live_tip(tx, session_id)
        tx.run(_COUNT, (calls, when, session_id))
    columns: dict[str, Param] = {
        "session_id": session_id,
        "role": message.role,
        "content": encode_content(message.content),
        "tool_call_id": message.tool_call_id,
        "tool_calls": to_json(message.tool_calls),
        "tool_name": message.tool_name,
        "timestamp": when,
        "token_count": message.token_count,
        "finish_reason": message.finish_reason,
        "reasoning": message.reasoning,
        "reasoning_content": message.reasoning_content,
        "reasoning_details": to_json(message.reasoning_details),
        "codex_reasoning_items": to_json(codex_reasoning_items),
        "codex_message_items": to_json(codex_message_items),
        "person_id": person_id,
        "place_id": place_id,
        "platform_message_id": platform_message_id,
        "inbox_id": inbox_id,
        "op_id": message.op_id,
        "turn_id": turn_id,
    }
    given = {name: value for name, value in columns.items() if value is not None}
    if tx.redact:
        given |= {name: tx.kept(value) for name, value in given.items() if name in _WRITTEN and isinstance(value, str)}
    return tx.insert(_insert(tuple(given)), tuple(given.values()))


@lru_cache(maxsize=256)
def _insert(columns: tuple[str, ...]) -> str:
    """Return the INSERT of these columns. Those that stay null are left out: binding a null is what costs most."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO messages ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of our own columns


def _already_stored(tx: Tx, op_id: str | None, inbox_id: int | None) -> int | None:
    found = tx.value(_BY_OPERATION, (op_id,)) if op_id is not None else None
    if found is None and inbox_id is not None:
        found = tx.value(_BY_INBOX, (inbox_id,))
    return None if found is None else int(found)


def _moment(timestamp: float | datetime | None, now: float) -> float:
    if isinstance(timestamp, datetime):
        timestamp = timestamp.timestamp()
    return now if timestamp is None or not math.isfinite(timestamp) else float(timestamp)


def _newest(rx: Rx, session_id: str, limit: int | None, offset: int) -> list[MessageRow]:
    rows = rx.all(_NEWEST, (session_id, -1 if limit is None else max(limit, 0), max(offset, 0)))
    return [decode_message(row) for row in reversed(rows)]


def _conversation(rx: Rx, session_id: str, annotate: Annotate | None) -> list[dict[str, Any]]:
    view = context_view(rx, session_id, annotate=annotate)
    return replay(view.rows, summary=view.summary)


def _role(role: str) -> Role:
    if role not in get_args(Role):
        raise InvalidArgument(f"The role {role!r} is unknown. Use one of: {', '.join(get_args(Role))}.")
    return cast("Role", role)


class Messages:
    """The documented operations on messages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def append_message(  # noqa: PLR0913 - the documented parameters
        self,
        session_id: str,
        role: str,
        content: str | Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: object = None,
        codex_reasoning_items: object = None,
        codex_message_items: object = None,
        timestamp: float | datetime | None = None,
        platform_message_id: str | None = None,
        person_id: str | None = None,
        place_id: int | None = None,
        op_id: str | None = None,
        attachments: Sequence[NewAttachment] = (),
    ) -> int:
        """Append a message to the conversation of `session_id` and return the row id.

        op_id: makes a repeated call harmless; it returns the id of the row that the first one stored.
        timestamp: Unix seconds or a datetime; the clock when not given.
        attachments: files that came with it, stored before (see `SessionDB.attachments`).

        Raises:
            NotFound: no such session.
            InvalidArgument: the role is unknown, or a JSON column holds something that JSON cannot express.
        """
        message = NewMessage(
            role=_role(role),
            content=content,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            token_count=token_count,
            finish_reason=finish_reason,
            reasoning=reasoning,
            op_id=op_id,
            reasoning_content=reasoning_content,
            reasoning_details=reasoning_details,
        )

        def op(tx: Tx) -> int:
            message_id = insert_message(
                tx,
                session_id,
                message,
                person_id=person_id,
                place_id=place_id,
                platform_message_id=platform_message_id,
                timestamp=timestamp,
                codex_reasoning_items=codex_reasoning_items,
                codex_message_items=codex_message_items,
            )
            attach(tx, message_id, attachments)
            return message_id

        return await self._engine.write(op, size=len(content) if isinstance(content, str) else 0)

    async def get_messages(self, session_id: str, limit: int | None = None, offset: int = 0) -> list[MessageRow]:
        """Return the messages of this one session, oldest first; none for an unknown session.

        limit, offset: a page counted from the newest message; its rows still come oldest first.
        """
        return await self._engine.read(lambda rx: _newest(rx, session_id, limit, offset))

    async def get_messages_after(self, session_id: str, after_id: int, limit: int = 200) -> list[MessageRow]:
        """Return at most `limit` messages of this session that came after the message `after_id`, oldest first."""
        rows = await self._engine.read(lambda rx: rx.all(_AFTER, (session_id, after_id, max(limit, 0))))
        return [decode_message(row) for row in rows]

    async def get_messages_before(self, session_id: str, before_id: int, limit: int = 200) -> list[MessageRow]:
        """Return the last `limit` messages of this session that came before the message `before_id`, oldest first."""
        rows = await self._engine.read(lambda rx: rx.all(_BEFORE, (session_id, before_id, max(limit, 0))))
        return [decode_message(row) for row in reversed(rows)]

    async def get_messages_as_conversation(
        self, session_id: str, *, annotate: Annotate | None = None
    ) -> list[dict[str, Any]]:
        """Return what a model provider is given of this conversation (see `conversation.replay` and `view`).

        Any id of a conversation leads to its tip, as for `append_message`; an unknown session gives nothing. What was
        compressed is its summary, in front.
        annotate: gives each user message its notes; without it only what was said is returned.
        """
        return await self._engine.read(lambda rx: _conversation(rx, session_id, annotate))

    async def context_view(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        question: int | None = None,
        since: int | None = None,
        annotate: Annotate | None = None,
    ) -> View:
        """Return what is seen of this conversation as rows, the newest as far as `limit` tokens go (see `view`)."""
        return await self._engine.read(
            lambda rx: context_view(rx, session_id, limit=limit, question=question, since=since, annotate=annotate)
        )

    async def taken_back(self, session_ids: Sequence[str]) -> int:
        """Return how many messages of these sessions were taken back; a higher number tells to look again."""
        count = await self._engine.read(lambda rx: rx.value(_TAKEN_BACK, (to_json(list(session_ids)),)))
        return int(count)
