"""A place is led to another conversation (`/resume`), and the numbers of the lists that somebody was shown.

Contract: one transaction: the route points there, the conversation is open again, what was left has ended unless other
places lead to it, the conversation belongs to its new owner where that was asked for. Repeated, it changes no more.
Failure: NotFound, and nothing changed, when the asker cannot see the session (any more).
"""

from __future__ import annotations

import json

from session_store import routes
from session_store.errors import NotFound
from session_store.finding import visible_tip
from session_store.hands import give
from session_store.jsontext import from_json
from session_store.lineage import live_tip, root_of
from session_store.models import OfferSessions, ResumeSession
from session_store.place_history import note_move
from session_store.places import place_id
from session_store.sessions import end_session_row, reopen_session_row, session_row
from session_store.tx import Rx, Tx

__all__ = ["OFFER_SECONDS", "left_behind", "offer", "offered", "resume"]

OFFER_SECONDS = 86_400.0
"""How long the numbers of a list are kept."""

_TOUCH = "UPDATE sessions SET resumed_at = ? WHERE id = ?"
_OFFER = """
INSERT INTO offered (asker, session_ids, offered_at) VALUES (?, ?, ?)
ON CONFLICT (asker) DO UPDATE SET session_ids = excluded.session_ids, offered_at = excluded.offered_at
"""
_FORGET = "DELETE FROM offered WHERE offered_at < ?"
_OFFERED = "SELECT session_ids FROM offered WHERE asker = ? AND offered_at >= ?"


def resume(tx: Tx, wanted: ResumeSession) -> str:
    """Lead a place to a conversation; returns its live tip."""
    tip = visible_tip(tx, wanted.session_id, wanted.visible_to)
    if tip is None:
        raise NotFound("There is no such session any more. `/resume` lists what there is.")
    left = left_behind(tx, wanted.session_key, wanted.leaves)
    if left is not None and root_of(tx, left) != root_of(tx, tip):
        others = [route for route in routes.routes_of(tx, left) if route["session_key"] != wanted.session_key]
        if not others:
            end_session_row(tx, left, wanted.reason)
    reopen_session_row(tx, tip)
    tx.run(_TOUCH, (tx.now, tip))
    if wanted.given_to is not None:
        give(tx, tip, *wanted.given_to)
    place = place_id(tx, wanted.place)
    note_move(tx, root_of(tx, tip), "resume", place, wanted.person_id)
    if wanted.session_key is not None:
        routes.point(tx, wanted.session_key, tip, place, wanted.person_id)
    return tip


def left_behind(rx: Rx, session_key: str | None, leaves: str | None) -> str | None:
    """The tip of the conversation that is left: the route's, or the one named where there is no route."""
    if session_key is not None:
        old = routes.session_for(rx, session_key)
        return None if old is None else old["id"]
    if leaves is None or session_row(rx, leaves) is None:
        return None
    return live_tip(rx, leaves)


def offer(tx: Tx, offered_now: OfferSessions) -> None:
    """Keep what the numbers of a list mean to its reader."""
    tx.run(_FORGET, (tx.now - OFFER_SECONDS,))
    tx.run(_OFFER, (offered_now.asker, json.dumps(list(offered_now.session_ids)), tx.now))


def offered(rx: Rx, asker: str, now: float) -> list[str]:
    """Return the sessions of the list that this asker was shown last, in the order of the numbers."""
    kept = rx.value(_OFFERED, (asker, now - OFFER_SECONDS))
    return [] if kept is None else [str(one) for one in from_json(kept) or []]
