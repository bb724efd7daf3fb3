"""Two people turn out to be one: everything of the one becomes the other's.

Contract: one transaction, the caller's. Sessions with their titles, the rooms that were spoken in, homes, routes, open
work and who said what all change over; the search index follows by its triggers. It happens only when nobody is left
who could be the former person: no identity, and no name in the settings or from a pairing. Else only the identity went.
Limits: who said what is followed in the sessions of both and in their rooms, which is everywhere a person can speak.
"""

from __future__ import annotations

from session_store.hands import give_session
from session_store.tx import Tx

__all__ = ["PERSON_COLUMNS", "merge_if_gone"]

_LEFT = (
    "SELECT 1 FROM people WHERE id = ?1 AND name IS NULL AND NOT EXISTS (SELECT 1 FROM identities WHERE person_id = ?1)"
)
_SESSIONS = "SELECT id, room_id FROM sessions WHERE owner = ? ORDER BY rowid LIMIT 1000000"
_SAID = """
UPDATE messages SET person_id = ?2 WHERE person_id = ?1 AND session_id IN (
    SELECT id FROM sessions WHERE owner IN (?1, ?2)
    UNION SELECT s.id FROM room_members AS m JOIN sessions AS s ON s.room_id = m.room_id WHERE m.person_id = ?1)
"""
_ROOMS = """
INSERT INTO room_members (room_id, person_id, first_at, last_at)
SELECT room_id, ?2, first_at, last_at FROM room_members WHERE person_id = ?1
ON CONFLICT (room_id, person_id) DO UPDATE SET
    first_at = MIN(first_at, excluded.first_at), last_at = MAX(last_at, excluded.last_at)
"""
_HOMES = "UPDATE OR IGNORE home_places SET person_id = ?2 WHERE person_id = ?1"
_OTHER = (
    "UPDATE routes SET person_id = ?2 WHERE person_id = ?1",
    "UPDATE turns SET person_id = ?2 WHERE person_id = ?1",
    "UPDATE inbox SET person_id = ?2 WHERE person_id = ?1",
    "UPDATE control SET person_id = ?2 WHERE person_id = ?1",
    "UPDATE handoffs SET person_id = ?2 WHERE person_id = ?1",
    "UPDATE place_history SET person_id = ?2 WHERE person_id = ?1",
)
_FORGET = (
    "DELETE FROM room_members WHERE person_id = ?",
    "DELETE FROM home_places WHERE person_id = ?",
    "DELETE FROM people WHERE id = ?",
)

#: The tables in which a person is named by `person_id`, all of which a merge follows (identities are gone by then).
PERSON_COLUMNS = frozenset(
    {
        "control",
        "handoffs",
        "home_places",
        "identities",
        "inbox",
        "messages",
        "place_history",
        "room_members",
        "routes",
        "turns",
    }
)


def merge_if_gone(tx: Tx, former: str, into: str) -> bool:
    """Merge a person into another if nobody can be the former one any more; returns whether that was so."""
    if former == into or tx.one(_LEFT, (former,)) is None:
        return False
    tx.run(_SAID, (former, into))
    for session in tx.all(_SESSIONS, (former,)):
        give_session(tx, session["id"], into, session["room_id"])
    tx.run(_ROOMS, (former, into))
    tx.run(_HOMES, (former, into))
    for statement in _OTHER:
        tx.run(statement, (former, into))
    for statement in _FORGET:
        tx.run(statement, (former,))
    return True
