"""The lease of a conversation: at most one process and one turn work it at a time, over all processes.

Contract: pure functions of the write transaction. A lease has a holder (process token), a turn and a fence. The fence
number grows with every acquisition and never shrinks, because rows stay. Every durable step calls `check` in its own
transaction, so a process that slept through its lease cannot write. A lease may be taken when it is free, when its
holder is dead, or when its beat is older than 60 s by the boot clock.
Failure: `check` raises FenceLost; a holder that is not registered gets InvalidArgument.
Limits: one level; nested work (compression inside a turn) uses the turn's fence.
"""

from __future__ import annotations

from session_store.errors import FenceLost, InvalidArgument
from session_store.models import Fence
from session_store.processes import BEAT_LIMIT, ONE, is_alive, is_self
from session_store.tx import Row, Rx, Tx

__all__ = ["acquire", "beat", "check", "holds", "is_free", "is_orphaned", "lease_of", "release"]

# The lease of a conversation with its holder.
GET = "SELECT root_id, holder, turn_id, purpose, fence, beat, boot_id FROM leases WHERE root_id = ?"
# Take a lease: a new row starts at fence 1, every later acquisition raises it.
TAKE = """
INSERT INTO leases (root_id, holder, turn_id, purpose, fence, beat, boot_id) VALUES (?, ?, ?, ?, 1, ?, ?)
ON CONFLICT (root_id) DO UPDATE SET holder = excluded.holder, turn_id = excluded.turn_id, purpose = excluded.purpose,
    fence = fence + 1, beat = excluded.beat, boot_id = excluded.boot_id
RETURNING fence
"""
HELD = "SELECT 1 AS held FROM leases WHERE root_id = ? AND turn_id = ? AND holder = ? AND fence = ?"
RELEASE = """
UPDATE leases SET holder = NULL, turn_id = NULL, purpose = NULL
WHERE root_id = ? AND turn_id = ? AND holder = ? AND fence = ?
"""
BEAT = "UPDATE leases SET beat = ? WHERE holder = ?"


def lease_of(rx: Rx, root_id: str) -> Row | None:
    """Return the lease row of a conversation, or None if it never had a turn."""
    return rx.one(GET, (root_id,))


def is_free(rx: Rx, lease: Row | None, boot_now: float) -> bool:
    """Whether a lease may be taken: nobody holds it, or who holds it is dead or has not renewed it for too long."""
    if lease is None or lease["holder"] is None:
        return True
    holder = rx.one(ONE, (lease["holder"],))
    if holder is None or holder["boot_id"] != lease["boot_id"] or not is_alive(holder, boot_now):
        return True
    return bool(boot_now - lease["beat"] > BEAT_LIMIT)


def is_orphaned(rx: Rx, lease: Row | None, boot_now: float) -> bool:
    """Whether the work under a lease is up for another holder.

    As `is_free`, but a process never finds its own work orphaned: after a sleep its beat is late, and it goes on.
    """
    if not is_free(rx, lease, boot_now):
        return False
    holder = None if lease is None or lease["holder"] is None else rx.one(ONE, (lease["holder"],))
    return holder is None or not is_self(holder)


def acquire(tx: Tx, root_id: str, holder: str, turn_id: str, purpose: str) -> int | None:
    """Take the lease of a conversation for a turn; returns the new fence number, or None while another one holds it.

    The turn that holds it already gets it again with a higher fence: of two workers of one turn only the later goes on.
    """
    lease = lease_of(tx, root_id)
    mine = lease is not None and (lease["holder"], lease["turn_id"]) == (holder, turn_id)
    if not mine and not is_free(tx, lease, tx.boot_now):
        return None
    process = tx.one(ONE, (holder,))
    if process is None:
        raise InvalidArgument("This process is not registered, so nobody could see that it lives. Register it first.")
    number: int = tx.run_returning(TAKE, (root_id, holder, turn_id, purpose, tx.boot_now, process["boot_id"]))
    return number


def holds(rx: Rx, fence: Fence) -> bool:
    """Whether this fence is still the one of its conversation."""
    return rx.value(HELD, (fence.root_id, fence.turn_id, fence.holder, fence.number)) is not None


def check(rx: Rx, fence: Fence) -> None:
    """Raise FenceLost unless this fence still holds its conversation."""
    if not holds(rx, fence):
        raise FenceLost


def release(tx: Tx, fence: Fence) -> None:
    """Give the lease back; its row stays so that the fence only grows."""
    tx.run(RELEASE, (fence.root_id, fence.turn_id, fence.holder, fence.number))


def beat(tx: Tx, holder: str) -> int:
    """Renew all leases of a process; returns how many it holds."""
    return tx.run(BEAT, (tx.boot_now, holder))
