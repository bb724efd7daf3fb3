"""What becomes of a message that its author edits or deletes afterwards.

Contract: the event names the message by the dedupe key that it came under, for as long as that key is kept. Before the
claim the text of the waiting row is replaced, or the row withdrawn; afterwards the new text is put on the message, the
former one is kept in `message_versions`, and the next question of the session tells the agent. The event is recorded
in the same transaction, so a repeated delivery changes nothing; no second turn ever begins. Of an album only the
edited part of the text changes. What else the content holds beside the texts it was made of stays.
A delete leaves the text, unless it is to be honoured: then text, versions, what was quoted and the index are blanked,
and the files that came with the message go.
Failure: an event about a message that was never recorded writes nothing. Limits: commands stay as they were, and so
do the files of an album of which a part is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from session_store.attachments import detach
from session_store.content import decode_content, encode_content
from session_store.inbox import DONE, KNOWN, accept
from session_store.jsontext import from_json, to_json
from session_store.models import Change, NewInbox, NewOutbox
from session_store.outbox import Origin, add_rows
from session_store.tx import Row, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["JOINT", "Changed", "deleted", "edited", "joined"]

JOINT = "\n\n"
"""Between the texts that an album is made of."""

# The row under which a message came in, with the message that it became part of.
SUBJECT = """
SELECT i.id, i.kind, i.state, i.payload,
       COALESCE((SELECT m.id FROM messages AS m WHERE m.inbox_id = i.id), t.input_message_id) AS message_id
FROM inbox AS i LEFT JOIN turns AS t ON t.id = i.turn_id
WHERE i.platform = ? AND i.account = ? AND i.dedupe_key = ?
"""
MESSAGE = """
SELECT m.id, m.session_id, m.content, n.parts
FROM messages AS m LEFT JOIN message_notes AS n ON n.message_id = m.id WHERE m.id = ?
"""
# New payload of a row that is not worked yet, or that an interrupted turn would be run with again.
REWRITE = "UPDATE inbox SET payload = ? WHERE id = ? AND payload IS NOT NULL"
WITHDRAW = "UPDATE inbox SET state = 'done', payload = NULL, done_at = ? WHERE id = ? AND state IN ('new', 'set_aside')"
PUT = "UPDATE messages SET content = ?, edited_at = ? WHERE id = ?"
MARK = "UPDATE messages SET edited_at = ? WHERE id = ?"
PARTS = "UPDATE message_notes SET parts = ? WHERE message_id = ?"
KEEP = """
INSERT INTO message_versions (message_id, kind, content, told_after, changed_at)
VALUES (?, ?, ?, (SELECT COALESCE(MAX(id), 0) FROM messages), ?)
"""
FORGET_VERSIONS = "UPDATE message_versions SET content = NULL WHERE message_id = ?"
FORGET_NOTE = "UPDATE message_notes SET quoted = NULL, quoted_name = NULL WHERE message_id = ?"
LATER = "SELECT 1 FROM messages WHERE session_id = ? AND id > ? AND role = 'user' LIMIT 1"


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a message as it was made: the part of each inbox row, and whether it is all of the content."""

    parts: list[tuple[int, str]]

    @property
    def whole(self) -> str:
        return joined([text for _, text in self.parts])

    def with_part(self, inbox_id: int, text: str) -> _Text:
        return _Text([(number, text if number == inbox_id else old) for number, old in self.parts])


def joined(texts: Sequence[str]) -> str:
    """The text of a turn's input: the texts of its rows, those without any left out."""
    return JOINT.join(text for text in texts if text)


def edited(tx: Tx, event: NewInbox, subject: str, text: str, notice: Sequence[NewOutbox]) -> Change:
    """Record that the message of the key `subject` now reads `text`; `notice` goes out if it was the latest one."""
    text = tx.kept(text)
    row = _subject(tx, event, subject)
    if row is None or row["kind"] != "message":
        return Change("unknown")
    if _known(tx, event):
        return Change("repeated")
    payload = from_json(row["payload"]) or {}
    rewritten = to_json({**payload, "text": text})
    if row["message_id"] is not None:
        change = _edited_message(tx, event, row, text, notice)
    elif not payload or payload.get("text") == text:
        return Change("same")
    else:
        _record(tx, event)
        change = Change("waiting")
    if payload and change.status in {"waiting", "recorded"}:
        # Of a running turn, too: should it be run again, its input is what the message says.
        tx.run(REWRITE, (rewritten, row["id"]))
    return change


def _edited_message(tx: Tx, event: NewInbox, row: Row, text: str, notice: Sequence[NewOutbox]) -> Change:
    message = tx.one(MESSAGE, (row["message_id"],))
    if message is None:
        return Change("unknown")
    old = _text_of(message, row["id"])
    new = old.with_part(row["id"], text)
    if new == old:
        return Change("same")
    event_id = _record(tx, event)
    _put(tx, message, "edit", old, new)
    latest = tx.one(LATER, (message["session_id"], message["id"])) is None
    if latest:
        add_rows(tx, notice, Origin(message["session_id"], inbox_id=event_id))
    return Change("recorded", latest=latest)


def deleted(tx: Tx, event: NewInbox, subject: str, *, honour: bool) -> Change:
    """Record that the message of the key `subject` was deleted; honour: forget its text, and do not answer it."""
    row = _subject(tx, event, subject)
    if row is None:
        return Change("unknown")
    if _known(tx, event):
        return Change("repeated")
    _record(tx, event)
    payload = from_json(row["payload"]) or {}
    if row["message_id"] is None:
        if honour:
            tx.run(WITHDRAW, (tx.now, row["id"]))
        return Change("waiting")
    message = tx.all(MESSAGE, (row["message_id"],))
    if not message:
        return Change("unknown")
    if not honour:
        tx.run(KEEP, (message[0]["id"], "delete", None, tx.now))
        tx.run(MARK, (tx.now, message[0]["id"]))
        return Change("recorded")
    if payload:
        tx.run(REWRITE, (to_json({**payload, "text": ""}), row["id"]))
    old = _text_of(message[0], row["id"])
    _put(tx, message[0], "delete", old, old.with_part(row["id"], ""))
    if len(old.parts) == 1 and detach(tx, message[0]["id"]):
        # What stood behind the text was what came with it.
        tx.run(PUT, ("", tx.now, message[0]["id"]))
    tx.run(FORGET_VERSIONS, (message[0]["id"],))
    tx.run(FORGET_NOTE, (message[0]["id"],))
    return Change("recorded")


def _subject(tx: Tx, event: NewInbox, subject: str) -> Row | None:
    return tx.one(SUBJECT, (event.place.platform, event.place.account, subject))


def _known(tx: Tx, event: NewInbox) -> bool:
    return tx.one(KNOWN, (event.place.platform, event.place.account, event.dedupe_key)) is not None


def _record(tx: Tx, event: NewInbox) -> int:
    """Keep the key of the event; there is nothing left to do about it."""
    inbox_id = accept(tx, event).inbox_id
    tx.run(DONE, (tx.now, inbox_id))
    return inbox_id


def _text_of(message: Row, inbox_id: int) -> _Text:
    parts = from_json(message["parts"])
    if isinstance(parts, list):
        return _Text([(int(number), str(text)) for number, text in parts])
    content = decode_content(message["content"])
    return _Text([(inbox_id, content if isinstance(content, str) else _first_text(content))])


def _put(tx: Tx, message: Row, kind: str, old: _Text, new: _Text) -> None:
    """Give a message its new text and keep the former content."""
    content = _replaced(decode_content(message["content"]), old.whole, new.whole)
    tx.run(KEEP, (message["id"], kind, message["content"], tx.now))
    tx.run(PUT, (encode_content(content), tx.now, message["id"]))
    if message["parts"] is not None:
        tx.run(PARTS, (to_json([list(part) for part in new.parts]), message["id"]))


def _replaced(content: Any, old: str, new: str) -> Any:
    """`content` with the text it was made of replaced; what was put behind it, or beside it as parts, stays."""
    if isinstance(content, str):
        behind = content[len(old) :].removeprefix(JOINT) if content.startswith(old) else ""
        return joined([new, behind])
    if not isinstance(content, list):
        return new
    at = _first_text_at(content)
    if at is None:
        return [{"type": "text", "text": new}, *content]
    part = content[at]
    return [*content[:at], {**part, "text": _replaced(str(part["text"]), old, new)}, *content[at + 1 :]]


def _first_text(content: Any) -> str:
    at = _first_text_at(content)
    return "" if at is None else str(content[at]["text"])


def _first_text_at(content: Any) -> int | None:
    if not isinstance(content, list):
        return None
    texts = (
        number
        for number, part in enumerate(content)
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )
    return next(texts, None)


class Changed:
    """Edits and deletes; each method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def edited(self, event: NewInbox, subject: str, text: str, notice: Sequence[NewOutbox] = ()) -> Change:
        """Record an edit. notice: goes out when the message is the latest of its session and was claimed before."""
        return await self._engine.write(lambda tx: edited(tx, event, subject, text, notice), size=len(text))

    async def deleted(self, event: NewInbox, subject: str, *, honour: bool) -> Change:
        """Record a delete. honour: the text is forgotten everywhere; a message that waits is not answered."""
        return await self._engine.write(lambda tx: deleted(tx, event, subject, honour=honour))
