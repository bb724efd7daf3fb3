"""Handoffs and links: a stored state machine that every step moves on by compare-and-swap.

Contract: requested -> claimed -> completed | failed; requested -> expired; requested or claimed -> cancelled. One
request per conversation is open at a time. A gateway claims a request and then works under the conversation's lease;
when it dies, another one (or its next run) takes the claim over. What is not claimed in `CLAIM_SECONDS` expires; what
is claimed has `COMPLETE_SECONDS`. The completion is the transaction *bind* (binding.py). A thread is opened outside
the store, which cannot be undone: `opening` is counted before and `opened` recorded after it, so that a kill in
between leaves an empty thread at most, and never a conversation that is half there.
Failure: HandoffRefused in a sentence when the request cannot be; False or None from a step whose state has moved on.
Limits: times are the boot clock's; after a restart of the machine open requests are expired or taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from session_store import leases
from session_store.claim import running_turn
from session_store.handoff_requests import BY_ID, BY_OP, CLAIM_SECONDS, END, ROW, as_row, overdue, request
from session_store.lineage import live_tip
from session_store.models import Fence, NewHandoff, NewOutbox, PlaceRef
from session_store.outbox import Account, Origin, accounts_json, add_rows
from session_store.places import place_id
from session_store.processes import boot_clock, this_boot, token_alive
from session_store.rows import HandoffRow
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["CLAIM_SECONDS", "COMPLETE_SECONDS", "Handoffs", "Held", "lease_turn"]

COMPLETE_SECONDS = 900.0

# Open requests to the accounts ?1, oldest first.
OPEN_TO = f"""
{ROW} WHERE state IN ('requested', 'claimed') AND target_id IN (
    SELECT p.id FROM json_each(?1) AS a JOIN places AS p
      ON p.platform = json_extract(a.value, '$[0]') AND p.account = json_extract(a.value, '$[1]'))
ORDER BY id LIMIT 200
"""  # noqa: S608 - joined from constants
WAITING = f"{ROW} WHERE state = 'requested' ORDER BY id LIMIT 200"
CLAIM = """
UPDATE handoffs SET state = 'claimed', holder = ?2, attempts = attempts + 1, deadline = ?3, boot_id = ?4,
    claimed_at = COALESCE(claimed_at, ?5), stage = NULL
WHERE id = ?1 AND state IN ('requested', 'claimed')
"""
STAGE = "UPDATE handoffs SET stage = ? WHERE id = ? AND state = 'claimed' AND holder = ?"
OPENING = "UPDATE handoffs SET opening = opening + 1 WHERE id = ? AND state = 'claimed' AND holder = ?"
OPENED = "UPDATE handoffs SET place_id = ?, note = ? WHERE id = ? AND state = 'claimed' AND holder = ?"


@dataclass(frozen=True, slots=True)
class Held:
    """Whether the conversation could be taken for a handoff: its fence, or the orphaned turn that goes first."""

    fence: Fence | None = None
    orphan: str | None = None


def lease_turn(handoff_id: int) -> str:
    """Return what stands for the turn in the lease that a handoff holds."""
    return f"handoff:{handoff_id}"


def _is_free(rx: Rx, row: Row, holder: str, boot_now: float) -> bool:
    """Whether this gateway may claim it: nobody has, or who has is dead, or it has it itself and left it lying."""
    if row["state"] == "requested":
        return not overdue(row, boot_now)
    return row["holder"] == holder or not token_alive(rx, row["holder"], boot_now)


def claim(tx: Tx, handoff_id: int, holder: str) -> HandoffRow | None:
    """Claim a request, or take over the claim of a dead gateway; None if it is not to be had."""
    row = tx.one(BY_ID, (handoff_id,))
    if row is None or row["state"] not in {"requested", "claimed"} or not _is_free(tx, row, holder, tx.boot_now):
        return None
    tx.run(CLAIM, (handoff_id, holder, tx.boot_now + COMPLETE_SECONDS, this_boot(), tx.now))
    return as_row(tx, tx.all(BY_ID, (handoff_id,))[0])


def hold(tx: Tx, handoff_id: int, holder: str) -> Held:
    """Take the lease of the conversation for a claimed handoff; neither fence nor orphan while it is worked."""
    row = tx.one(BY_ID, (handoff_id,))
    if row is None or (row["state"], row["holder"]) != ("claimed", holder):
        return Held()
    running = running_turn(tx, row["root_id"])
    if running is not None:
        orphaned = leases.is_orphaned(tx, leases.lease_of(tx, row["root_id"]), tx.boot_now)
        return Held(orphan=running["id"] if orphaned else None)
    number = leases.acquire(tx, row["root_id"], holder, lease_turn(handoff_id), row["kind"])
    return Held() if number is None else Held(Fence(row["root_id"], lease_turn(handoff_id), holder, number))


def end(  # noqa: PLR0913 - how it ends, each by name
    tx: Tx,
    handoff_id: int,
    state: Literal["failed", "expired", "cancelled"],
    error: str,
    outbox: Sequence[NewOutbox] = (),
    *,
    holder: str | None = None,
) -> bool:
    """End a handoff that was not completed; False if it has ended otherwise. Its lease is free afterwards."""
    if not tx.run(END, (handoff_id, state, error, tx.now, holder, "requested" if state == "expired" else None)):
        return False
    row = tx.all(BY_ID, (handoff_id,))[0]
    lease = leases.lease_of(tx, row["root_id"])
    if lease is not None and lease["turn_id"] == lease_turn(handoff_id):
        leases.release(tx, Fence(row["root_id"], lease["turn_id"], lease["holder"], lease["fence"]))
    add_rows(tx, outbox, Origin(live_tip(tx, row["root_id"])), op_id=f"handoff:{handoff_id}:ended")
    return True


class Handoffs:
    """Handoffs and links; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def request(self, new: NewHandoff) -> HandoffRow:
        """Enter a request, or find it entered; see `request` of this module for what is refused."""
        return await self._engine.write(lambda tx: request(tx, new))

    async def get(self, op_id: str) -> HandoffRow | None:
        """A request by its name, in whatever state."""
        rows = await self._engine.read(_reading(BY_OP, op_id))
        return rows[0] if rows else None

    async def claimable(self, accounts: Sequence[Account], holder: str) -> list[HandoffRow]:
        """Requests to these accounts that this gateway may claim now, oldest first; its own claims are among them."""

        def query(rx: Rx) -> list[HandoffRow]:
            now = boot_clock()
            rows = rx.all(OPEN_TO, (accounts_json(accounts),))
            return [as_row(rx, row) for row in rows if _is_free(rx, row, holder, now)]

        return await self._engine.read(query)

    async def overdue(self) -> list[HandoffRow]:
        """Requests that nobody has claimed in time."""

        def query(rx: Rx) -> list[HandoffRow]:
            now = boot_clock()
            return [as_row(rx, row) for row in rx.all(WAITING) if overdue(row, now)]

        return await self._engine.read(query)

    async def claim(self, handoff_id: int, holder: str) -> HandoffRow | None:
        """Claim a request, or take over a dead gateway's claim; None if somebody else has it or it has ended."""
        return await self._engine.write(lambda tx: claim(tx, handoff_id, holder))

    async def stage(self, handoff_id: int, holder: str, words: str) -> bool:
        """Say what is being done now; False if the handoff is not ours any more."""
        return await self._engine.write(lambda tx: tx.run(STAGE, (words, handoff_id, holder)) > 0)

    async def hold(self, handoff_id: int, holder: str) -> Held:
        """Take the conversation's lease for a claimed handoff."""
        return await self._engine.write(lambda tx: hold(tx, handoff_id, holder))

    async def opening(self, handoff_id: int, holder: str) -> bool:
        """Record that a thread is about to be opened; False if the handoff is not ours any more."""
        return await self._engine.write(lambda tx: tx.run(OPENING, (handoff_id, holder)) > 0)

    async def opened(self, handoff_id: int, holder: str, place: PlaceRef, note: str | None) -> bool:
        """Record the place where the conversation will go on, and what is different from what was asked."""
        return await self._engine.write(lambda tx: tx.run(OPENED, (place_id(tx, place), note, handoff_id, holder)) > 0)

    async def end(
        self,
        handoff_id: int,
        state: Literal["failed", "expired", "cancelled"],
        error: str,
        outbox: Sequence[NewOutbox] = (),
        *,
        holder: str | None = None,
    ) -> bool:
        """End a handoff without success, with words to who asked; False if it has ended otherwise.

        holder: only as the gateway that has claimed it. Nothing of the conversation has changed.
        """
        return await self._engine.write(lambda tx: end(tx, handoff_id, state, error, outbox, holder=holder))


def _reading(sql: str, value: str) -> Callable[[Rx], list[HandoffRow]]:
    return lambda rx: [as_row(rx, row) for row in rx.all(sql, (value,))]
