"""Messages that come while the agent works: who waits behind what, and the three things that can be done about it.

Contract: `behind` finds new messages whose conversation has a running turn, by whatever route they came. `interrupt`
asks, like a stop, for that turn to be ended because its person said something newer; the request names the turn, is
durable, and is closed with the turn. `steer` makes waiting messages part of the running turn under its fence: they are
stored in the transcript and taken in one transaction, and until then they are inbox rows like any other. `tell` queues
a notice to who waits. Only messages of the turn's own person interrupt or steer it.
Failure: FenceLost from `steer` when the turn is not ours any more; then nothing was taken. The others do nothing, and
say so, once the message or the turn is no longer in the way of the other.
Limits: `behind` looks at the oldest 500 waiting messages; `steer` takes at most 20 at a time, and none behind one that
cannot be taken: a command, a message of somebody else or from elsewhere, a part of an album, one with files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from session_store import leases
from session_store.claim import the_turn
from session_store.inbox import take
from session_store.jsontext import from_json
from session_store.links import copy_question
from session_store.messages import insert_message
from session_store.models import Fence, MessageNote, NewMessage, NewOutbox
from session_store.notes import add_note
from session_store.outbox import Account, Origin, accounts_json, add_rows
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Behind", "Busy", "Steered"]

# New messages of the accounts ?1 whose conversation has a running turn, oldest first.
BEHIND = """
SELECT i.id, i.lane, i.received_at, i.person_id, p.platform, p.account, p.chat_type, p.chat, p.thread,
       json_extract(i.payload, '$.message_id') AS message_id,
       t.id AS turn_id, t.started_at, t.lane AS turn_lane, t.person_id AS turn_person
FROM json_each(?1) AS a
JOIN inbox AS i ON i.state IN ('new', 'taken') AND i.platform = json_extract(a.value, '$[0]')
     AND i.account = json_extract(a.value, '$[1]')
JOIN places AS p ON p.id = i.place_id
LEFT JOIN routes AS r ON i.session_id IS NULL AND r.session_key = i.session_key
JOIN sessions AS s ON s.id = COALESCE(i.session_id, r.session_id)
JOIN turns AS t ON t.root_id = COALESCE(s.root_id, s.id) AND t.state = 'running'
WHERE i.state = 'new' AND i.kind = 'message' ORDER BY i.id LIMIT 500
"""
WAITS = "SELECT lane, session_key, person_id FROM inbox WHERE id = ? AND state = 'new'"
RUNS = "SELECT root_id, session_id, person_id FROM turns WHERE id = ? AND state = 'running'"
ASKED = "SELECT 1 FROM control WHERE turn_id = ? AND kind = 'cancel' AND done_at IS NULL"
ASK = "INSERT INTO control (kind, root_id, turn_id, person_id, created_at) VALUES ('cancel', ?, ?, ?, ?)"
# The first and the last new row of a lane.
ENDS = "SELECT MIN(id) AS first, MAX(id) AS last FROM inbox WHERE state = 'new' AND lane = ?"
# The last row that a notice in this lane was meant for: keys from ?1 to ?2, the number at position ?3.
TOLD = "SELECT MAX(CAST(substr(op_id, ?3) AS INTEGER)) AS id FROM outbox WHERE op_id >= ?1 AND op_id < ?2"
# What waits in the lane of a turn and may be worked by its holder.
NEXT = """
SELECT id, kind, place_id, person_id, payload, received_at FROM inbox
WHERE state = 'new' AND lane = ? AND (holder IS NULL OR holder = ?) ORDER BY id LIMIT 20
"""
SENDER = "SELECT sender FROM message_notes WHERE message_id = ?"


@dataclass(frozen=True, slots=True)
class Behind:
    """A new message behind a running turn.

    first: it is the oldest waiting message of its lane. own: it is of the turn's person. steers: it came by the turn's
    own way, too. message_id: its platform id, if it has one.
    """

    inbox_id: int
    turn_id: str
    platform: str
    account: str
    chat_type: str
    chat: str
    thread: str
    message_id: str | None
    received_at: float
    turn_started_at: float
    first: bool
    own: bool
    steers: bool


@dataclass(frozen=True, slots=True)
class Steered:
    """A message that became part of a running turn."""

    message_id: int
    inbox_id: int
    text: str


def behind(rx: Rx, accounts: Sequence[Account]) -> list[Behind]:
    """Return what waits behind running turns, oldest first."""
    seen: set[str] = set()
    found = []
    for row in rx.all(BEHIND, (accounts_json(accounts),)):
        own = row["person_id"] is not None and row["person_id"] == row["turn_person"]
        where = (row["platform"], row["account"], row["chat_type"], row["chat"], row["thread"], row["message_id"])
        times = (row["received_at"], row["started_at"])
        flags = (row["lane"] not in seen, own, own and row["lane"] == row["turn_lane"])
        found.append(Behind(row["id"], row["turn_id"], *where, *times, *flags))
        seen.add(row["lane"])
    return found


def interrupt(tx: Tx, inbox_id: int, turn_id: str) -> bool:
    """Ask for a turn to end for a newer message of its person; False if there is no reason any more."""
    row, turn = tx.one(WAITS, (inbox_id,)), tx.one(RUNS, (turn_id,))
    if row is None or turn is None or row["person_id"] is None or row["person_id"] != turn["person_id"]:
        return False
    if tx.one(ASKED, (turn_id,)) is None:
        tx.insert(ASK, (turn["root_id"], turn_id, row["person_id"], tx.now))
    return True


def tell(tx: Tx, inbox_id: int, turn_id: str, notice: NewOutbox) -> bool:
    """Queue a notice for the first message that waits in its lane; once for all that wait there now."""
    row, turn = tx.one(WAITS, (inbox_id,)), tx.one(RUNS, (turn_id,))
    if row is None or turn is None:
        return False
    ends = tx.all(ENDS, (row["lane"],))[0]
    prefix = f"wait:{row['lane']}:"
    told: int | None = tx.value(TOLD, (prefix, f"{prefix[:-1]};", len(prefix) + 1))
    if ends["first"] != inbox_id or (told is not None and told >= inbox_id):
        return False
    add_rows(tx, [notice], Origin(turn["session_id"], inbox_id=inbox_id), op_id=f"{prefix}{ends['last']}")
    return True


def steer(tx: Tx, fence: Fence) -> list[Steered]:
    """Make the messages that wait behind a turn part of it; see the module."""
    leases.check(tx, fence)
    turn = the_turn(tx, fence.turn_id)
    taken = []
    for row in tx.all(NEXT, (turn["lane"], fence.holder)):
        payload: dict[str, Any] = from_json(row["payload"]) or {}
        if not _steers(row, payload, turn):
            break
        text = str(payload.get("text", ""))
        message_id = insert_message(
            tx,
            turn["session_id"],
            NewMessage("user", text),
            person_id=row["person_id"],
            place_id=row["place_id"],
            platform_message_id=payload.get("message_id"),
            inbox_id=row["id"],
            turn_id=fence.turn_id,
            timestamp=row["received_at"],
        )
        add_note(tx, message_id, _note(tx, turn, payload), None)
        take(tx, row["id"], fence.holder, fence.turn_id)
        copy_question(tx, fence.root_id, Origin(turn["session_id"], message_id, fence.turn_id, row["id"]), text)
        taken.append(Steered(message_id, row["id"], text))
    return taken


def _steers(row: Row, payload: dict[str, Any], turn: Row) -> bool:
    same = row["person_id"] is not None and row["person_id"] == turn["person_id"]
    plain = not payload.get("group_id") and not payload.get("attachments")
    return row["kind"] == "message" and same and row["place_id"] == turn["place_id"] and plain


def _note(rx: Rx, turn: Row, payload: dict[str, Any]) -> MessageNote:
    """What is told beside it: the same name as beside the turn's first message, and what it quotes."""
    quoted = payload.get("quoted")
    quote = quoted if isinstance(quoted, dict) else {}
    sender: str | None = rx.value(SENDER, (turn["input_message_id"],))
    return MessageNote(sender, quote.get("text"), quote.get("name") or None)


class Busy:
    """What waits behind running turns; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def behind(self, accounts: Sequence[Account]) -> list[Behind]:
        """New messages of these accounts whose conversation has a running turn, oldest first."""
        return await self._engine.read(lambda rx: behind(rx, accounts))

    async def interrupt(self, inbox_id: int, turn_id: str) -> bool:
        """Ask for a running turn to be ended for a newer message of its person; False if one of both is gone."""
        return await self._engine.write(lambda tx: interrupt(tx, inbox_id, turn_id))

    async def tell(self, inbox_id: int, turn_id: str, notice: NewOutbox) -> bool:
        """Queue a notice for a message that waits behind a turn; False if it does not, or was told already.

        Only the first message of a lane is told, and with it all that wait behind it at that time.
        """
        return await self._engine.write(lambda tx: tell(tx, inbox_id, turn_id, notice))

    async def steer(self, fence: Fence) -> list[Steered]:
        """Make what waits behind a turn of ours part of it; returns the messages in the order of the transcript."""
        return await self._engine.write(lambda tx: steer(tx, fence))
