"""Answers that are shown while they are made: their beginning is a row of the outbox, their end takes its place.

Contract: the beginning of a turn's answer is stored before anything of it is posted, under the turn's fence and once
per turn, and then goes out like any part: in order, with a receipt. The end of the turn is linked to it in the
transaction that ends the turn, so that whoever sends the end edits that message and posts no second one, also after a
crash. A beginning that was surely not posted by then is dropped; one whose outcome nobody knows leaves the end a
message of its own.
Failure: FenceLost when the turn is not the caller's any more.
Limits: one message per turn; nothing is begun in a place where something waits, so that order stays order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from session_store import inbox, leases
from session_store.models import Fence, NewOutbox, RenderedPart, ShownAnswer
from session_store.outbox import Origin, add_rows
from session_store.places import place_id
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Shown", "add_ending"]

SESSION = "SELECT session_id FROM turns WHERE id = ?"
BEGINNING = "SELECT id, place_id, state, resends, platform_message_id FROM outbox WHERE op_id = ?"
# Whether anything is still to be sent to a place.
WAITS = """
SELECT 1 FROM outbox WHERE state IN ('waiting', 'sending') AND platform = ? AND account = ? AND place_id = ? LIMIT 1
"""
SPLIT = "UPDATE outbox SET rendered = ? WHERE id = ?"
# A beginning that was surely never posted.
UNPOSTED = "DELETE FROM outbox WHERE id = ? AND state = 'waiting' AND resends = 0"
# The end goes where its beginning stands, which is another place when that had to give way.
FINISHES = "UPDATE outbox SET finishes = ?, place_id = ? WHERE id = ?"


def begin(
    tx: Tx, fence: Fence, row: NewOutbox, part: RenderedPart, before: Sequence[NewOutbox] = ()
) -> ShownAnswer | None:
    """Store the beginning of a turn's answer; see `Shown.begin`."""
    leases.check(tx, fence)
    known = _beginning(tx, fence.turn_id)
    if known is not None:
        return ShownAnswer(known["id"], known["platform_message_id"], known["state"] in {"waiting", "sending", "sent"})
    origin = Origin(tx.value(SESSION, (fence.turn_id,)), None, fence.turn_id, inbox.origin_of(tx, fence.turn_id))
    add_rows(tx, before, origin)
    if tx.one(WAITS, (row.place.platform, row.place.account, place_id(tx, row.place))) is not None:
        return None
    (new,) = add_rows(tx, [replace(row, body=part.body, op_id=_name(fence.turn_id))], origin)
    tx.run(SPLIT, (part.rendered, new))
    return ShownAnswer(new, None, open=True)


def add_ending(tx: Tx, rows: Sequence[NewOutbox], origin: Origin) -> list[int]:
    """Queue what a turn ends with; what may stand over its beginning takes the place of that."""
    shown = None
    if origin.turn_id is not None and any(row.over_shown is not None for row in rows):
        shown = _standing(tx, origin.turn_id)
    if shown is None:
        return add_rows(tx, rows, origin)
    bodies = [row if row.over_shown is None else replace(row, body=row.over_shown) for row in rows]
    ids = add_rows(tx, bodies, origin)
    for row, new in zip(rows, ids, strict=True):
        if row.over_shown is not None:
            tx.run(FINISHES, (shown["id"], shown["place_id"], new))
    return ids


def _standing(tx: Tx, turn_id: str) -> Row | None:
    """Return the beginning that the platform has or may get; one that it surely will not get is dropped."""
    shown = _beginning(tx, turn_id)
    if shown is None or tx.run(UNPOSTED, (shown["id"],)):
        return None
    return shown if shown["state"] in {"waiting", "sending", "sent"} else None


def _beginning(rx: Rx, turn_id: str) -> Row | None:
    return rx.one(BEGINNING, (_name(turn_id),))


def _name(turn_id: str) -> str:
    return f"shown:{turn_id}"


class Shown:
    """Answers that are shown while they are made."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(
        self, fence: Fence, row: NewOutbox, part: RenderedPart, before: Sequence[NewOutbox] = ()
    ) -> ShownAnswer | None:
        """Store the beginning of a turn's answer, or find the one that an earlier run of the turn has left.

        row: where it goes and what it answers. part: the beginning, formatted. before: what must be sent first, each
        with its op_id. None: something waits for that place; try again when it is sent.
        """
        return await self._engine.write(lambda tx: begin(tx, fence, row, part, before))
