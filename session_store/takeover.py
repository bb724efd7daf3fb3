"""Turns whose process is gone: found, and taken over by exactly one other process.

Contract: a running turn is orphaned when nobody holds its lease (it was left in order, reason 'shutdown') or when the
holder is dead. Taking it over raises the fence, so that a holder that was only asleep can write nothing more; of two
processes that try at once one wins. It counts as a further attempt unless the turn was left in order.
A turn whose session another tool has deleted cannot go on: it is given up, and its input is new again.
Limits: liveness is judged when asked; a process asleep for a minute may lose its turns to others although it lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from session_store import inbox, leases
from session_store.claim import TURN, as_claim, running_turn, the_turn
from session_store.lineage import live_tip, root_of
from session_store.models import Claim, Fence
from session_store.outbox import Account, accounts_json
from session_store.rows import TurnRow
from session_store.sessions import session_row
from session_store.tx import Rx, Tx

__all__ = ["SHUTDOWN", "orphaned", "orphaned_in", "take_over"]

SHUTDOWN = "shutdown"
"""Reason of a running turn that its process left in order, for the next one."""

# Running turns that came in through the accounts ?1, oldest first.
RUNNING_OF = """
SELECT t.id, t.root_id
FROM turns AS t JOIN places AS p ON p.id = t.place_id
JOIN json_each(?1) AS a ON json_extract(a.value, '$[0]') = p.platform AND json_extract(a.value, '$[1]') = p.account
WHERE t.state = 'running' ORDER BY t.rowid LIMIT 10000
"""
# The turn goes to another holder, in the conversation's present session.
TAKE_OVER = """
UPDATE turns SET holder = ?, fence = ?, session_id = ?, attempt = attempt + ?, reason = NULL
WHERE id = ? AND state = 'running'
"""
# A turn without a session ends.
LOSE = "UPDATE turns SET state = 'given_up', reason = 'session deleted', ended_at = ? WHERE id = ?"


def orphaned(rx: Rx, accounts: Sequence[Account], boot_now: float, limit: int) -> list[TurnRow]:
    """Return the orphaned turns of these accounts, oldest first."""
    found: list[TurnRow] = []
    for row in rx.all(RUNNING_OF, (accounts_json(accounts),)):
        if len(found) < limit and _is_orphan(rx, row["root_id"], boot_now):
            found.append(cast("TurnRow", the_turn(rx, row["id"])))
    return found


def orphaned_in(rx: Rx, session_id: str, boot_now: float) -> list[TurnRow]:
    """Return the orphaned turn of the conversation that a session belongs to, if there is one."""
    if session_row(rx, session_id) is None:
        return []
    turn = running_turn(rx, root_of(rx, session_id))
    return [cast("TurnRow", turn)] if turn is not None and _is_orphan(rx, turn["root_id"], boot_now) else []


def _is_orphan(rx: Rx, root_id: str, boot_now: float) -> bool:
    return leases.is_orphaned(rx, leases.lease_of(rx, root_id), boot_now)


def take_over(tx: Tx, turn_id: str, holder: str) -> Claim:
    """Take a running turn over: claimed, busy while its holder lives, or gone when it has ended.

    The holder itself gets it again under a higher fence, so that of two of its workers only the later goes on.
    """
    turn = tx.one(TURN, (turn_id,))
    if turn is None or turn["state"] != "running":
        return Claim("gone")
    number = leases.acquire(tx, turn["root_id"], holder, turn_id, "turn")
    if number is None:
        return Claim("busy")
    if session_row(tx, turn["session_id"]) is None:
        tx.run(LOSE, (tx.now, turn_id))
        inbox.give_back(tx, turn_id)
        leases.release(tx, Fence(turn["root_id"], turn_id, holder, number))
        return Claim("gone")
    counts = turn["reason"] != SHUTDOWN
    tx.run(TAKE_OVER, (holder, number, live_tip(tx, turn["session_id"]), int(counts), turn_id))
    inbox.retake(tx, turn_id, holder, counts=counts)
    return as_claim(tx, the_turn(tx, turn_id))
