"""Holding a conversation for work that is no turn: compression, taking back, branching.

Contract: `take` gives the lease of a conversation under a fence, if nothing runs there; who holds it has the
conversation for itself, over all processes, until `let_go`. The same `work_id` again gives it again under a higher
fence. What is done meanwhile checks the fence in its own transaction.
Failure: held elsewhere is `busy`, an unknown session `gone`; both change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from session_store import leases
from session_store.claim import blocked
from session_store.lineage import live_tip, root_of
from session_store.models import Fence
from session_store.rows import SessionRow
from session_store.sessions import session_row
from session_store.tx import Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Held", "Holding", "take"]


@dataclass(frozen=True, slots=True)
class Held:
    """What became of `take`. session: the live session, when held.

    orphan: only when busy, the turn in the way if its process is gone; it must be taken over first.
    """

    status: Literal["held", "busy", "gone"]
    fence: Fence | None = None
    session: SessionRow | None = None
    orphan: str | None = None


def take(tx: Tx, session_id: str, holder: str, work_id: str, purpose: str) -> Held:
    """Take the conversation of a session; see the module."""
    if session_row(tx, session_id) is None:
        return Held("gone")
    root_id = root_of(tx, session_id)
    mine = leases.lease_of(tx, root_id)
    if mine is None or (mine["holder"], mine["turn_id"]) != (holder, work_id):
        in_the_way = blocked(tx, root_id, tx.boot_now)
        if in_the_way is not None:
            return Held("busy", orphan=in_the_way.orphan)
    number = leases.acquire(tx, root_id, holder, work_id, purpose)
    if number is None:
        return Held("busy")
    return Held("held", Fence(root_id, work_id, holder, number), session_row(tx, live_tip(tx, session_id)))


class Holding:
    """Takes and lets go of conversations; each method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, session_id: str, holder: str, work_id: str, purpose: str) -> Held:
        """Take the conversation that a session belongs to for work of this process. purpose: for people who look."""
        return await self._engine.write(lambda tx: take(tx, session_id, holder, work_id, purpose))

    async def let_go(self, fence: Fence) -> None:
        """Give the conversation back; nothing happens if it was lost meanwhile."""
        await self._engine.write(lambda tx: leases.release(tx, fence))
