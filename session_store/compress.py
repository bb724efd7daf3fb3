"""The transaction *compress*: the older part of a conversation gives way to a summary, in a new session.

Contract: under the fence of the conversation, in one transaction: the live session ends for the reason `compression`;
its continuation is made with the same source, owner, room, key, place, user, model and system prompt, titled `X #2`
after `X` (without a title when it has none); it begins with the summary and its `context_from` names the first message
that is still seen beside it (see view.py); every route of the conversation leads to it. Nothing is copied and nothing
deleted. What was appended to the old session while the summary was made is seen in the new one. The same `child_id`
again changes nothing.
`failed` counts attempts that came to nothing and says when the next one may be made by itself; who is to be told is
told once, until one succeeds.
Failure: FenceLost, and nothing changed, when the conversation was taken over; the attempt may be repeated.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from session_store import leases
from session_store.errors import FenceLost
from session_store.lineage import live_tip, root_of
from session_store.messages import insert_message
from session_store.models import Compress, Fence, NewMessage, NewOutbox
from session_store.naming import free_title, title_holder
from session_store.outbox import Origin, add_rows
from session_store.places import place_of
from session_store.sessions import insert_session, retitle, session_row
from session_store.titles import split_number
from session_store.tx import Rx, Tx
from session_store.usage import record_usage
from session_store.view import summary_op

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Compressed", "Compressions", "compress", "wanted_title"]

#: Seconds until the next attempt that is made by itself: after the first failure, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 600.0, 86_400.0

_END = "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?"
_MARK = "UPDATE sessions SET context_from = ? WHERE id = ?"
_REPOINT = """
UPDATE routes SET session_id = ?1
WHERE session_id IN (SELECT id FROM sessions WHERE root_id = ?2 OR id = ?2)
"""
_FAILURES = "SELECT failures, next_at FROM compression_failures WHERE root_id = ?"
_FAIL = """
INSERT INTO compression_failures (root_id, failures, next_at, reason) VALUES (?1, 1, ?2, ?3)
ON CONFLICT (root_id) DO UPDATE SET failures = failures + 1, next_at = excluded.next_at, reason = excluded.reason
"""
_FORGET_FAILURES = "DELETE FROM compression_failures WHERE root_id = ?"
# Where the answers of a conversation go: its routes' places, each once.
_PLACES = """
SELECT DISTINCT place_id FROM routes
WHERE session_id IN (SELECT id FROM sessions WHERE root_id = ?1 OR id = ?1) ORDER BY place_id LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class Compressed:
    """What the conversation goes on as."""

    session_id: str
    title: str | None


def wanted_title(rx: Rx, session_id: str) -> str | None:
    """The title that a continuation of this session would get; None if it has none."""
    session = session_row(rx, session_id)
    if session is None or session["title"] is None:
        return None
    return free_title(rx, split_number(session["title"])[0], session["owner"])


def compress(tx: Tx, wanted: Compress) -> Compressed:
    """Compress a conversation; see the module."""
    made = session_row(tx, wanted.child_id)
    if made is not None:
        return Compressed(made["id"], made["title"])
    leases.check(tx, wanted.fence)
    parent = session_row(tx, wanted.session_id)
    if parent is None or live_tip(tx, wanted.session_id) != wanted.session_id:
        raise FenceLost
    root_id = root_of(tx, parent["id"])
    title = wanted.title
    if title is not None and title_holder(tx, parent["owner"], title) is not None:
        title = wanted_title(tx, parent["id"])
    tx.run(_END, (tx.now, parent["id"]))
    insert_session(
        tx,
        wanted.child_id,
        parent["source"],
        model=parent["model"],
        model_config=parent["model_config"],
        system_prompt=parent["system_prompt"],
        user_id=parent["user_id"],
        parent_session_id=parent["id"],
    )
    if title is not None:
        retitle(tx, wanted.child_id, title)
    # Compression is no activity: neither lists nor the reset policy take it for one.
    when = parent["last_active"] if parent["last_active"] is not None else parent["started_at"]
    summary = NewMessage("system", wanted.summary, op_id=summary_op(wanted.child_id))
    insert_message(tx, wanted.child_id, summary, timestamp=when)
    tx.run(_MARK, (wanted.context_from, wanted.child_id))
    tx.run(_REPOINT, (wanted.child_id, root_id))
    record_usage(tx, wanted.child_id, wanted.usage, "summary")
    tx.run(_FORGET_FAILURES, (root_id,))
    _tell(tx, root_id, wanted.child_id, wanted.notice)
    return Compressed(wanted.child_id, title)


def failed(tx: Tx, fence: Fence, session_id: str, reason: str, notice: str) -> bool:
    """Note an attempt that came to nothing; returns whether it is the first since the last success."""
    leases.check(tx, fence)
    row = tx.one(_FAILURES, (fence.root_id,))
    before = 0 if row is None else int(row["failures"])
    pause = min(FIRST_PAUSE * 4.0 ** min(before, 8), LONGEST_PAUSE)
    tx.run(_FAIL, (fence.root_id, tx.now + pause, reason))
    if before == 0:
        _tell(tx, fence.root_id, session_id, notice)
    return before == 0


def _tell(tx: Tx, root_id: str, session_id: str, notice: str | None) -> None:
    """Queue a word to every place that the conversation lives in."""
    if not notice:
        return
    places = [place_of(tx, row["place_id"]) for row in tx.all(_PLACES, (root_id,))]
    add_rows(tx, [NewOutbox(place, "notice", notice) for place in places if place is not None], Origin(session_id))


class Compressions:
    """Compressing conversations; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def compress(self, wanted: Compress) -> Compressed:
        """Compress a conversation that is held; see the module."""
        return await self._engine.write(lambda tx: compress(tx, wanted), size=len(wanted.summary))

    async def wanted_title(self, session_id: str) -> str | None:
        """The title that a continuation of this session would get; None if it has none."""
        return await self._engine.read(lambda rx: wanted_title(rx, session_id))

    async def failed(self, fence: Fence, session_id: str, reason: str, notice: str) -> bool:
        """Note a failed attempt; the first since the last success puts `notice` to the conversation's places.

        Returns whether it was the first.
        """
        return await self._engine.write(lambda tx: failed(tx, fence, session_id, reason, notice))

    async def paused_until(self, root_id: str) -> float:
        """When compression may be tried by itself again, Unix seconds; 0 if nothing failed.

        A pause that would last longer than there are pauses was written before the clock stepped back; it is over.
        """
        row = await self._engine.read(lambda rx: rx.one(_FAILURES, (root_id,)))
        until = 0.0 if row is None else float(row["next_at"])
        return until if until <= time.time() + LONGEST_PAUSE else 0.0
