"""What a person sees and decides of outgoing rows: what is on its way, tried again by hand, dropped by hand.

Contract: looking changes nothing. Only rows that nobody is sending are changed: `try_again` leads from unknown and
failed to waiting, with fresh patience and in the row's old position; `drop` from waiting, unknown and failed to
dropped. Both tell, for every id that was asked for, in which state the row was, so a repeated call is seen as such.
Limits: lists are cut at their limit; settled rows are there for 30 days.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from session_store.models import PlaceRef
from session_store.rows import OutboxRow
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["DROPPABLE", "OPEN_STATES", "RETRIABLE", "ROW", "SETTLED_STATES", "OutboxCare"]

OPEN_STATES = ("waiting", "sending")
SETTLED_STATES = ("sent", "unknown", "failed", "dropped")
RETRIABLE = frozenset({"unknown", "failed"})
DROPPABLE = frozenset({"waiting", "unknown", "failed"})

ROW = """
SELECT o.id, o.line, o.platform, o.account, o.place_id, p.chat_type, p.chat, p.thread,
       p.name AS place_name, p.parent AS place_parent, o.session_id, o.message_id,
       o.turn_id, o.inbox_id, o.kind, o.part, o.parts, o.body, o.rendered, o.reply_to, o.state, o.attempts, o.resends,
       o.finishes, (SELECT s.platform_message_id FROM outbox AS s
                    WHERE s.id = o.finishes AND s.place_id = o.place_id AND s.state = 'sent') AS finishes_message,
       o.next_at, o.holder, o.platform_message_id, o.error, o.created_at, o.updated_at, o.again_at
"""
# Rows still to be sent in the states ?1 (JSON), in the order of their lines, at most ?2.
OPEN = f"""
{ROW} FROM outbox AS o JOIN places AS p ON p.id = o.place_id
WHERE o.state IN ('waiting', 'sending') AND o.state IN (SELECT value FROM json_each(?1))
ORDER BY o.line, o.part LIMIT ?2
"""  # noqa: S608 - joined from constants
# Rows settled in the state ?1, the newest ?2 of them.
SETTLED = f"""
{ROW} FROM outbox AS o JOIN places AS p ON p.id = o.place_id
WHERE o.state IN ('sent', 'unknown', 'failed', 'dropped') AND o.state = ?1
ORDER BY o.updated_at DESC, o.id DESC LIMIT ?2
"""
# What is to be sent to one place, or for one session, in order.
ON_ITS_WAY = f"""
{ROW} FROM outbox AS o JOIN places AS p ON p.id = o.place_id
WHERE o.state IN ('waiting', 'sending')
  AND (o.session_id = ?1
       OR (p.platform = ?2 AND p.account = ?3 AND p.chat_type = ?4 AND p.chat = ?5 AND p.thread = ?6))
ORDER BY o.line, o.part LIMIT ?7
"""
# What did not surely arrive there since ?8.
NOT_ARRIVED = f"""
{ROW} FROM outbox AS o JOIN places AS p ON p.id = o.place_id
WHERE o.state IN ('sent', 'unknown', 'failed', 'dropped') AND o.state IN ('unknown', 'failed') AND o.updated_at >= ?8
  AND (o.session_id = ?1
       OR (p.platform = ?2 AND p.account = ?3 AND p.chat_type = ?4 AND p.chat = ?5 AND p.thread = ?6))
ORDER BY o.id LIMIT ?7
"""
STATE = "SELECT state FROM outbox WHERE id = ?"
# A person wants it sent all the same: it waits again, as patiently as a new one. The error stays to be seen.
AGAIN = """
UPDATE outbox SET state = 'waiting', attempts = 0, resends = 0, next_at = 0, holder = NULL, again_at = ?1,
    updated_at = ?1
WHERE id = ?2 AND state IN ('unknown', 'failed')
"""
DROP_BY_HAND = """
UPDATE outbox SET state = 'dropped', holder = NULL, updated_at = ?1
WHERE id = ?2 AND state IN ('waiting', 'unknown', 'failed')
"""


def listed(rx: Rx, states: Sequence[str], limit: int) -> list[OutboxRow]:
    """Return rows in these states, oldest first; of settled ones the newest `limit` of each state are looked at."""
    found: list[Row] = []
    if any(state in OPEN_STATES for state in states):
        found += rx.all(OPEN, (json.dumps(list(states)), limit))
    for state in states:
        if state in SETTLED_STATES:
            found += rx.all(SETTLED, (state, limit))
    found.sort(key=lambda row: (row["line"], row["part"]))
    return cast("list[OutboxRow]", found[:limit])


def try_again(tx: Tx, ids: Sequence[int]) -> dict[int, str | None]:
    """Have rows sent again; returns the state in which each was, None for one that is not there."""
    return _changed(tx, AGAIN, ids)


def drop(tx: Tx, ids: Sequence[int]) -> dict[int, str | None]:
    """Never send these rows; returns the state in which each was, None for one that is not there."""
    return _changed(tx, DROP_BY_HAND, ids)


def _changed(tx: Tx, statement: str, ids: Sequence[int]) -> dict[int, str | None]:
    before: dict[int, str | None] = {}
    for outbox_id in dict.fromkeys(ids):
        before[outbox_id] = tx.value(STATE, (outbox_id,))
        tx.run(statement, (tx.now, outbox_id))
    return before


class OutboxCare:
    """The part of the outbox that people look at; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def listed(self, states: Sequence[str], limit: int = 100) -> list[OutboxRow]:
        """Rows in the given states, in the order in which they go out, at most `limit`."""
        return await self._engine.read(lambda rx: listed(rx, states, limit))

    async def on_its_way(self, place: PlaceRef, session_id: str | None, limit: int = 200) -> list[OutboxRow]:
        """What is still to be sent to a place, or for a session wherever it goes, in order."""
        where = (session_id, place.platform, place.account, place.chat_type, place.chat, place.thread, limit)
        return await self._engine.read(lambda rx: cast("list[OutboxRow]", rx.all(ON_ITS_WAY, where)))

    async def not_arrived(
        self, place: PlaceRef, session_id: str | None, since: float, limit: int = 200
    ) -> list[OutboxRow]:
        """What failed, or has an unknown outcome, since then (Unix seconds), for the same."""
        where = (session_id, place.platform, place.account, place.chat_type, place.chat, place.thread, limit, since)
        return await self._engine.read(lambda rx: cast("list[OutboxRow]", rx.all(NOT_ARRIVED, where)))

    async def try_again(self, ids: Sequence[int]) -> dict[int, str | None]:
        """Put unknown and failed rows back to waiting; returns the state in which each was, None for an unknown id."""
        return await self._engine.write(lambda tx: try_again(tx, ids))

    async def drop(self, ids: Sequence[int]) -> dict[int, str | None]:
        """Give up waiting, unknown and failed rows for good; returns the same."""
        return await self._engine.write(lambda tx: drop(tx, ids))
