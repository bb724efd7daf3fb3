"""The transaction *bind*: a conversation goes on in a further place, or is taken back to a local one.

Contract: in one commit the claimed handoff is completed, the live session is open again, the key of the next message
there leads to it, the routes of the places that are left are gone (of a link they stay, linked), owner and room are
those of the place, the history is written, and the confirmation is in the transcript and on its way, behind words to
the places concerned. `source` keeps where the session was born. Killed anywhere, it has happened or it has not.
Failure: FenceLost, and nothing written, when the handoff or the lease is not ours any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_store import leases, routes
from session_store.errors import FenceLost
from session_store.hands import give
from session_store.lineage import live_tip, root_of
from session_store.links import link_all
from session_store.messages import insert_message
from session_store.models import Binding, NewOutbox, PlaceRef, TakeLocally
from session_store.outbox import Origin, add_rows
from session_store.place_history import note
from session_store.places import place_id, place_of, touch_member
from session_store.sessions import end_session_row, reopen_session_row, session_row
from session_store.tx import Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Bindings", "bind", "take_locally"]

MINE = "SELECT root_id, kind, person_id, state FROM handoffs WHERE id = ? AND holder = ?"
COMPLETE = (
    "UPDATE handoffs SET state = 'completed', place_id = ?, stage = NULL, error = NULL, ended_at = ? WHERE id = ?"
)
BOUND = "SELECT id FROM messages WHERE op_id = ?"
MOVE = "UPDATE sessions SET session_key = ?, place_id = ? WHERE id = ?"
OWNER = "SELECT owner FROM sessions WHERE id = ?"
# Where it was taken to, it is the one that was used last.
USED = "UPDATE sessions SET resumed_at = ?1, last_active = ?1 WHERE id = ?2"
TOUCH = "UPDATE sessions SET resumed_at = ? WHERE id = ?"
IS_ROOM = "SELECT 1 FROM rooms WHERE id = ?"
IS_PERSON = "SELECT 1 FROM people WHERE id = ?"
RELEASE = "DELETE FROM routes WHERE session_key = ?"
ASK_FOR = "UPDATE routes SET linked = 2 WHERE session_key = ?"


def bind(tx: Tx, binding: Binding) -> int:
    """Let a conversation go on in a place; returns the id of the confirmation. Repeated, it changes nothing."""
    handoff = tx.one(MINE, (binding.handoff_id, binding.fence.holder))
    if handoff is None:
        raise FenceLost
    if handoff["state"] == "completed":
        known: int = tx.value(BOUND, (binding.message.op_id,))
        return known
    leases.check(tx, binding.fence)
    if handoff["state"] != "claimed":
        raise FenceLost
    root: str = handoff["root_id"]
    tip, place, link = live_tip(tx, root), place_id(tx, binding.place), handoff["kind"] == "link"
    reopen_session_row(tx, tip)
    tx.run(TOUCH, (tx.now, tip))
    _displace(tx, binding.session_key, root)
    left = _leave(tx, tip, place, release=not link)
    _give(tx, root, binding, handoff["person_id"])
    note(tx, root, handoff["kind"], place, handoff["person_id"])
    if link:
        link_all(tx, root)
    else:
        tx.run(MOVE, (binding.session_key, place, tip))
    # Who asked may have become another person since the handoff was claimed.
    routes.point(tx, binding.session_key, tip, place, binding.person_id and handoff["person_id"])
    if link:
        tx.run(ASK_FOR, (binding.session_key,))
    message_id = insert_message(tx, tip, binding.message, place_id=place)
    words = [_farewell(left_place, binding.farewell, binding.farewell_shared) for left_place in left]
    add_rows(tx, [*words, binding.confirmation], Origin(tip, message_id))
    tx.run(COMPLETE, (place, tx.now, binding.handoff_id))
    leases.release(tx, binding.fence)
    return message_id


def _leave(tx: Tx, tip: str, place: int | None, *, release: bool) -> list[PlaceRef]:
    """The other places that lead to the conversation, each once; with `release` they do so no longer."""
    left: dict[int, PlaceRef] = {}
    for route in routes.routes_of(tx, tip):
        if release:
            tx.run(RELEASE, (route["session_key"],))
        found = place_of(tx, route["place_id"])
        if route["place_id"] != place and found is not None:
            left[route["place_id"]] = found
    return list(left.values())


def _give(tx: Tx, root_id: str, binding: Binding, asker: str) -> None:
    """Owner and room become those of the place; what belongs to a room stays the room's wherever it goes on."""
    former = tx.all(OWNER, (live_tip(tx, root_id),))[0]["owner"]
    owner = binding.owner or former
    room = binding.room_id or (owner if tx.one(IS_ROOM, (owner,)) is not None else None)
    if owner is None:
        return
    give(tx, root_id, owner, room)
    if owner != former and tx.one(IS_PERSON, (asker,)) is not None and tx.one(IS_ROOM, (owner,)) is not None:
        touch_member(tx, owner, asker)


def _displace(tx: Tx, session_key: str, root_id: str) -> None:
    """What the key led to until now ends, unless that is this conversation or other places lead to it."""
    other = routes.session_for(tx, session_key)
    if other is None or root_of(tx, other["id"]) == root_id:
        return
    if all(route["session_key"] == session_key for route in routes.routes_of(tx, other["id"])):
        end_session_row(tx, other["id"], "session_switch")


def _farewell(place: PlaceRef, private: str, shared: str) -> NewOutbox:
    return NewOutbox(place, "handoff", private if place.chat_type == "dm" else shared)


def take_locally(tx: Tx, effect: TakeLocally) -> bool:
    """Take a conversation out of its chats to a local place; False if it is in no chat."""
    if session_row(tx, effect.session_id) is None:
        return False
    root = root_of(tx, effect.session_id)
    tip, place = live_tip(tx, root), place_id(tx, effect.place)
    left = _leave(tx, tip, place, release=True)
    reopen_session_row(tx, tip)
    tx.run(USED, (tx.now, tip))
    note(tx, root, "handoff", place, effect.person_id)
    told = [one for one in left if one != effect.asked_at]
    words = [_farewell(one, effect.farewell, effect.farewell_shared) for one in told]
    add_rows(tx, words, Origin(tip))
    return bool(left)


class Bindings:
    """The transaction *bind* for gateways."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def bind(self, binding: Binding) -> int:
        """Let the conversation of a claimed handoff go on in its place; returns the id of the confirmation."""
        return await self._engine.write(lambda tx: bind(tx, binding))
