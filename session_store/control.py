"""Small messages between processes: so far, "stop this turn".

Contract: a stop is for one running turn and names it; the process that holds that turn reads it (`open_for`), stops and
marks it done. Whatever settles the turn marks its messages done in the same transaction. A second request for the same
turn is the same request. A turn taken over keeps its stop: stopped work is not resumed.
Limits: rows are removed a day after they are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from session_store.rows import ControlRow
from session_store.tx import Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Control", "close_for_turn", "request_stop"]

_KEEP_SECONDS = 86_400.0

RUNNING = "SELECT id FROM turns WHERE root_id = ? AND state = 'running' LIMIT 1"
OPEN_STOP = "SELECT 1 AS open FROM control WHERE turn_id = ? AND kind = 'stop' AND done_at IS NULL"
ADD_STOP = "INSERT INTO control (kind, root_id, turn_id, person_id, created_at) VALUES ('stop', ?, ?, ?, ?)"
# Open messages for the turns that a process runs.
OPEN_FOR = """
SELECT c.id, c.kind, c.root_id, c.turn_id, c.person_id, c.created_at, c.done_at
FROM control AS c JOIN turns AS t ON t.id = c.turn_id
WHERE c.done_at IS NULL AND t.state = 'running' AND t.holder = ? ORDER BY c.id LIMIT 200
"""
DONE = "UPDATE control SET done_at = ? WHERE id = ? AND done_at IS NULL"
CLOSE = "UPDATE control SET done_at = ? WHERE turn_id = ? AND done_at IS NULL"
# Messages whose turn has ended without reading them.
EXPIRE = """
UPDATE control SET done_at = ?1 WHERE done_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.id = control.turn_id AND t.state = 'running')
"""
FORGET = "DELETE FROM control WHERE done_at < ?"


def request_stop(tx: Tx, root_id: str, person_id: str | None) -> bool:
    """Ask for the running turn of a conversation to be stopped; False if none runs."""
    turn = tx.value(RUNNING, (root_id,))
    if turn is None:
        return False
    if tx.one(OPEN_STOP, (turn,)) is None:
        tx.insert(ADD_STOP, (root_id, turn, person_id, tx.now))
    return True


def close_for_turn(tx: Tx, turn_id: str) -> None:
    """Mark everything done that was meant for a turn, because the turn is over."""
    tx.run(CLOSE, (tx.now, turn_id))


def expire(tx: Tx) -> None:
    """Close what nobody will read any more and forget what was done long ago."""
    tx.run(EXPIRE, (tx.now,))
    tx.run(FORGET, (tx.now - _KEEP_SECONDS,))


class Control:
    """Messages between processes; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def request_stop(self, root_id: str, person_id: str | None) -> bool:
        """Ask for the running turn of a conversation to be stopped, in whatever process; False if none runs."""
        return await self._engine.write(lambda tx: request_stop(tx, root_id, person_id))

    async def open_for(self, holder: str) -> list[ControlRow]:
        """Open messages for the turns that this process runs, oldest first."""
        return cast("list[ControlRow]", await self._engine.read(lambda rx: rx.all(OPEN_FOR, (holder,))))

    async def done(self, control_id: int) -> None:
        """Mark a message as read and acted upon."""
        await self._engine.write(lambda tx: tx.run(DONE, (tx.now, control_id)))

    async def expire(self) -> None:
        """Close messages whose turn is over and remove old ones."""
        await self._engine.write(expire)
