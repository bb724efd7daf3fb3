"""Where a conversation has lived: its birth, and every handoff, link and return since, in order.

Contract: rows are only added, always in the transaction that made them true. The birth is written down with the first
move, from the session's own row, so that a conversation that never moved costs nothing.
Limits: a session without a place (made through the library) has no birth place; readers see the last 200 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from session_store.lineage import root_of
from session_store.places import place_of
from session_store.rows import HistoryRow
from session_store.sessions import session_row
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["How", "PlaceHistory", "born_at", "history_of", "note", "note_move"]

How: TypeAlias = Literal["handoff", "resume", "link", "unlink"]

KNOWN = "SELECT 1 FROM place_history WHERE root_id = ? LIMIT 1"
BORN = """
INSERT INTO place_history (root_id, how, place_id, person_id, at)
SELECT id, 'born', place_id, NULL, started_at FROM sessions WHERE id = ? AND place_id IS NOT NULL
"""
ADD = "INSERT INTO place_history (root_id, how, place_id, person_id, at) VALUES (?, ?, ?, ?, ?)"
LATEST = "SELECT place_id FROM place_history WHERE root_id = ? ORDER BY id DESC LIMIT 1"
OF_ROOT = """
SELECT how, place_id, person_id, at FROM place_history WHERE root_id = ? ORDER BY id DESC LIMIT 200
"""


def born_at(tx: Tx, root_id: str) -> None:
    """Write down where the conversation was born, unless its history has begun; to be called before it moves."""
    if tx.one(KNOWN, (root_id,)) is None:
        tx.run(BORN, (root_id,))


def note(tx: Tx, root_id: str, how: How, place_row: int, person_id: str | None) -> None:
    """Add to the history that somebody brought the conversation to a place (or took it away: unlink)."""
    born_at(tx, root_id)
    tx.run(ADD, (root_id, how, place_row, person_id, tx.now))


def note_move(tx: Tx, root_id: str, how: How, place_row: int, person_id: str | None) -> None:
    """The same, unless that is where it was brought last."""
    born_at(tx, root_id)
    if tx.value(LATEST, (root_id,)) != place_row:
        note(tx, root_id, how, place_row, person_id)


def history_of(rx: Rx, session_id: str) -> list[HistoryRow]:
    """Return the history of the conversation of this session, oldest first; its birth also if it never moved."""
    session = session_row(rx, session_id)
    if session is None:
        return []
    root = session_row(rx, root_of(rx, session_id)) or session
    found: list[HistoryRow] = []
    for row in reversed(rx.all(OF_ROOT, (root["id"],))):
        place = place_of(rx, row["place_id"])
        if place is not None:
            found.append({"how": row["how"], "place": place, "person_id": row["person_id"], "at": row["at"]})
    born = None if found or root["place_id"] is None else place_of(rx, root["place_id"])
    if born is not None:
        found.append({"how": "born", "place": born, "person_id": None, "at": root["started_at"]})
    return found


class PlaceHistory:
    """The history as readers see it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_session(self, session_id: str) -> list[HistoryRow]:
        """Where the conversation of this session has lived, oldest first; nothing for an unknown session."""
        return await self._engine.read(lambda rx: history_of(rx, session_id))
