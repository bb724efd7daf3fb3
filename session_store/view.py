"""What is still seen of a conversation: its summary and its tail, read by reference.

Contract: a session that continues a compressed one carries `context_from`, the id of the first message that is still
seen, and a summary of what came before it, stored as its own message of role `system` (see `summary_op`). Its view is
the summary and every message from `context_from` on, in whatever segment of the conversation it lies; nothing is
copied. So what was appended to the parent while the summary was made is seen, too. A continuation without
`context_from` (other tools make such) has its own messages only.
`context_view` reads newest first and stops once the messages cost more than `limit`, so its time does not grow with the
history. The oldest exchange may then be cut; who uses the view cuts on at the beginning of an exchange.
Failure: none of its own; an unknown session has an empty view. Limits: what one message costs is an estimate, see
`row_tokens`; at most `MAX_ROWS` messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from session_store.attachments import attachments_of
from session_store.decoding import decode_message
from session_store.lineage import COMPRESSION, live_tip, root_of
from session_store.notes import Annotate, changes_for, notes_of
from session_store.rows import AttachmentRow, MessageRow, SessionRow
from session_store.tx import Row, Rx

__all__ = [
    "MAX_ROWS",
    "View",
    "context_view",
    "is_summary",
    "row_tokens",
    "seen_from",
    "segments",
    "summary_op",
    "text_tokens",
]

MAX_ROWS = 100_000
#: Tokens that a message costs beside its text: role, separators, ids.
MESSAGE_TOKENS = 6

_SUMMARY = "summary:"

_SESSION = "SELECT * FROM sessions WHERE id = ?"
_PARENT = """
SELECT p.id, p.context_from FROM sessions c JOIN sessions p ON p.id = c.parent_session_id
WHERE c.id = ? AND c.kind = 'live' AND c.source <> 'tool' AND p.end_reason = 'compression'
"""
_OLDER = "SELECT 1 FROM messages WHERE session_id = ? AND id < ? LIMIT 1"
_BY_OPERATION = "SELECT * FROM messages WHERE op_id = ? AND rewound = 0"
_BY_ID = "SELECT * FROM messages WHERE id = ? AND rewound = 0"
# What is seen of one segment, newest first; its summary is not part of the tail.
_TAIL = """
SELECT * FROM messages
WHERE session_id = ? AND id >= ? AND rewound = 0 AND (op_id IS NULL OR op_id NOT GLOB 'summary:*')
ORDER BY id DESC LIMIT ?
"""
_TEXTS = ("content", "tool_calls", "reasoning", "reasoning_content", "reasoning_details")
_MORE_TEXTS = ("codex_reasoning_items", "codex_message_items")


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of a conversation: its live session, the summary of what came before, the tail, oldest first.

    whole: False if older messages of the tail were left out, because they cost more than was asked for, or are older
    than what was asked for. files: those of the question.
    """

    session: SessionRow | None = None
    summary: str | None = None
    rows: list[MessageRow] = field(default_factory=list)
    whole: bool = True
    files: list[AttachmentRow] = field(default_factory=list)


def summary_op(session_id: str) -> str:
    """The `op_id` of the message that holds a session's summary."""
    return f"{_SUMMARY}{session_id}"


def is_summary(row: Mapping[str, Any]) -> bool:
    """Whether a message is the summary that a session begins with."""
    return str(row["op_id"] or "").startswith(_SUMMARY)


def text_tokens(text: str) -> int:
    """How many tokens a text costs at most, estimated: a third of its UTF-8 bytes.

    Usual text of Latin letters costs about a quarter of its bytes, Cyrillic and Greek a quarter to a third, Chinese,
    Japanese and Korean up to a third (one token a character). The same text always costs the same.
    """
    return (len(text.encode("utf-8", "surrogatepass")) + 2) // 3


def row_tokens(row: Row) -> int:
    """How many tokens a stored message costs a model at most, estimated from its columns as they are stored."""
    texts = (row[name] for name in (*_TEXTS, *_MORE_TEXTS))
    return MESSAGE_TOKENS + sum(text_tokens(text) for text in texts if isinstance(text, str))


def segments(rx: Rx, tip: SessionRow) -> list[str]:
    """The sessions in which the tail of a conversation lies, newest first."""
    found = [tip["id"]]
    mark = tip["context_from"]
    while mark is not None and rx.one(_OLDER, (found[-1], mark)) is None:
        parent = rx.one(_PARENT, (found[-1],))
        if parent is None or parent["id"] in found:
            break
        found.append(parent["id"])
    return found


def seen_from(rx: Rx, tip: SessionRow) -> int:
    """The id from which on messages of the conversation are seen; 0 when none was ever compressed away."""
    return 0 if tip["context_from"] is None or rx.one(_PARENT, (tip["id"],)) is None else tip["context_from"]


def context_view(  # noqa: PLR0913 - each says what is read, by name
    rx: Rx,
    session_id: str,
    *,
    limit: int | None = None,
    question: int | None = None,
    since: int | None = None,
    annotate: Annotate | None = None,
) -> View:
    """Return what is seen of the conversation that `session_id` belongs to.

    limit: tokens; reading stops at the message that exceeds them. question: a message that is in the view in any case,
    if it is there and was not taken back. since: the oldest message that is read at all. annotate: gives each user
    message its notes.
    """
    tip = _tip(rx, session_id)
    if tip is None:
        return View()
    continues = tip["parent_session_id"] is not None
    summary = rx.one(_BY_OPERATION, (summary_op(tip["id"]),)) if continues else None
    stored, whole = _tail(rx, tip, limit, since or 0)
    if question is not None and all(row["id"] != question for row in stored):
        asked = rx.one(_BY_ID, (question,))
        stored = [asked, *stored] if asked is not None else stored
    rows = [decode_message(row) for row in stored]
    if annotate is not None:
        _annotated(rx, tip, rows, annotate, cut=not whole)
    text = decode_message(summary)["content"] if summary is not None else None
    files = [] if question is None else attachments_of(rx, [question]).get(question, [])
    return View(tip, text if isinstance(text, str) else None, rows, whole, files)


def _tip(rx: Rx, session_id: str) -> SessionRow | None:
    """The live session of the conversation; None for an unknown one."""
    session = cast("SessionRow | None", rx.one(_SESSION, (session_id,)))
    if session is None or session["end_reason"] != COMPRESSION:
        return session
    return cast("SessionRow | None", rx.one(_SESSION, (live_tip(rx, session_id),)))


def _tail(rx: Rx, tip: SessionRow, limit: int | None, since: int) -> tuple[list[Row], bool]:
    """The rows of the tail, oldest first, and whether these are all of it."""
    mark = seen_from(rx, tip)
    found: list[Row] = []
    left = limit
    for segment in segments(rx, tip) if mark else [tip["id"]]:
        for row in rx.each(_TAIL, (segment, mark, MAX_ROWS)):
            if row["id"] < since or (left is not None and left <= 0):
                return _in_order(found), False
            found.append(row)
            left = None if left is None else left - row_tokens(row)
    return _in_order(found), True


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def _annotated(rx: Rx, tip: SessionRow, rows: list[MessageRow], annotate: Annotate, *, cut: bool) -> None:
    """Give the user messages their notes; also of changes to messages that are not seen any more."""
    earlier = root_of(rx, tip["id"]) if cut or tip["context_from"] is not None else None
    notes, changes = notes_of(rx, rows), changes_for(rx, rows, earlier)
    for row in rows:
        if row["role"] == "user":
            row["content"] = annotate(row, notes.get(row["id"]), changes.get(row["id"], ()))
