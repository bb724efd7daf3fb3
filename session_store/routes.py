"""Routes: a session key points at a session, with the place that replies go to.

Contract: one route per key; several may point at one session. A route may hold any session of its conversation; readers
follow it to the live tip. It is written by claim, `/new` and handoff, always in their transaction.
Limits: a session that ended for another reason than compression is still returned; the next claim replaces it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from session_store.lineage import COMPRESSION, conversation_of, live_tip
from session_store.models import PlaceRef
from session_store.rows import RouteRow, SessionRow
from session_store.sessions import session_row
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Routes", "point", "routes_of", "session_for", "unbind"]

TARGET = "SELECT session_id FROM routes WHERE session_key = ?"
# Make or move the route of a key. A link is to a conversation: what leads to another one is not linked.
POINT = """
INSERT INTO routes (session_key, session_id, place_id, person_id, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?5)
ON CONFLICT (session_key) DO UPDATE SET session_id = excluded.session_id, place_id = excluded.place_id,
    person_id = excluded.person_id, updated_at = excluded.updated_at,
    linked = CASE WHEN linked = 0 OR excluded.session_id = session_id
        OR (SELECT root_id FROM sessions WHERE id = excluded.session_id)
            = (SELECT root_id FROM sessions WHERE id = routes.session_id)
        THEN linked ELSE 0 END
"""
# Routes whose replies went to one place.
UNBIND = """
DELETE FROM routes WHERE place_id IN (
    SELECT id FROM places WHERE platform = ? AND account = ? AND chat_type = ? AND chat = ? AND thread = ?)
"""
# All routes of the sessions ?1, with their places.
OF_SESSIONS = """
SELECT r.session_key, r.session_id, r.place_id, p.platform, p.account, p.chat_type, p.chat, p.thread, r.person_id,
       r.created_at, r.updated_at, r.linked
FROM json_each(?1) AS c JOIN routes AS r ON r.session_id = c.value JOIN places AS p ON p.id = r.place_id
ORDER BY r.created_at, r.session_key LIMIT 1000
"""


def session_for(rx: Rx, session_key: str) -> SessionRow | None:
    """Return the tip of the conversation that a key points at, ended or not; None without a route.

    So is a route whose session another tool has deleted without its foreign keys: the next message begins anew there.
    """
    target = rx.value(TARGET, (session_key,))
    session = None if target is None else session_row(rx, target)
    if session is None or session["end_reason"] != COMPRESSION:
        return session
    return session_row(rx, live_tip(rx, session["id"]))


def point(tx: Tx, session_key: str, session_id: str, place_row: int, person_id: str | None) -> None:
    """Make or move the route of a key; replies go to this place."""
    tx.run(POINT, (session_key, session_id, place_row, person_id, tx.now))


def unbind(tx: Tx, place: PlaceRef) -> int:
    """Remove the routes whose replies would go to this very place; returns how many. Their sessions stay."""
    return tx.run(UNBIND, (place.platform, place.account, place.chat_type, place.chat, place.thread))


def routes_of(rx: Rx, session_id: str) -> list[RouteRow]:
    """Return all routes of the conversation that a session belongs to, oldest first; none for an unknown session."""
    if session_row(rx, session_id) is None:
        return []
    return cast("list[RouteRow]", rx.all(OF_SESSIONS, (json.dumps(conversation_of(rx, session_id)),)))


class Routes:
    """Routes as readers see them; they are written by the transactions that need them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def session_for(self, session_key: str) -> SessionRow | None:
        """The live tip behind a key; None without a route. It may have ended: then the next message starts afresh."""
        return await self._engine.read(lambda rx: session_for(rx, session_key))

    async def unbind(self, place: PlaceRef) -> int:
        """Forget what leads to a place that is gone; returns how many routes went. The sessions stay."""
        return await self._engine.write(lambda tx: unbind(tx, place))

    async def of_session(self, session_id: str) -> list[RouteRow]:
        """All routes of the conversation that this session belongs to, oldest first."""
        return await self._engine.read(lambda rx: routes_of(rx, session_id))
