"""Delivery addresses, rooms and who has spoken in them.

Contract: one row per address; it is found or made by its five parts and keeps the newest name and parent that were
seen. A room is the scope of shared sessions: one per chat, whatever the thread. Members only grow. A repeated operation
changes nothing.
Limits: the store does not judge whether a chat is shared; callers ask for a room only where it is.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from session_store.models import PlaceRef
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Places", "ensure_room", "find_place", "place_id", "place_of", "present", "rooms_of", "touch_member"]

# The row of an address.
FIND_PLACE = """
SELECT id, name, parent FROM places WHERE platform = ? AND account = ? AND chat_type = ? AND chat = ? AND thread = ?
"""
# The address of a row.
GET_PLACE = "SELECT platform, account, chat_type, chat, thread, name, parent FROM places WHERE id = ?"
ADD_PLACE = """
INSERT INTO places (platform, account, chat_type, chat, thread, name, parent, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
# What is newly told of an address replaces what was known; what is not told stays.
TELL_PLACE = "UPDATE places SET name = COALESCE(?, name), parent = COALESCE(?, parent) WHERE id = ?"
# Under which id a chat lives on.
MOVED = "SELECT new_chat FROM moved_chats WHERE platform = ? AND account = ? AND old_chat = ?"
# The room of a chat; threads and topics belong to their chat's room.
FIND_ROOM = "SELECT id, name FROM rooms WHERE platform = ? AND account = ? AND chat = ?"
ADD_ROOM = "INSERT INTO rooms (id, platform, account, chat, name, created_at) VALUES (?, ?, ?, ?, ?, ?)"
NAME_ROOM = "UPDATE rooms SET name = ? WHERE id = ?"
# Rooms that a person has spoken in.
ROOMS_OF = "SELECT room_id FROM room_members WHERE person_id = ? LIMIT 10000"
TOUCH_MEMBER = """
INSERT INTO room_members (room_id, person_id, first_at, last_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (room_id, person_id) DO UPDATE SET last_at = MAX(last_at, excluded.last_at)
"""


def present(rx: Rx, place: PlaceRef) -> PlaceRef:
    """Return the address under which the place is reached now: a chat that has moved has no threads of before."""
    if place.chat_type == "dm":
        return place
    chat = rx.value(MOVED, (place.platform, place.account, place.chat))
    return place if chat is None else replace(place, chat=chat, thread="")


def place_id(tx: Tx, place: PlaceRef) -> int:
    """Find or make the row of an address, where it is now; a new name or parent replaces the old one."""
    place = present(tx, place)
    address = (place.platform, place.account, place.chat_type, place.chat, place.thread)
    row = tx.one(FIND_PLACE, address)
    if row is None:
        return tx.insert(ADD_PLACE, (*address, place.name, place.parent, tx.now))
    found: int = row["id"]
    if any(new not in {None, row[name]} for name, new in (("name", place.name), ("parent", place.parent))):
        tx.run(TELL_PLACE, (place.name, place.parent, found))
    return found


def find_place(rx: Rx, place: PlaceRef) -> int | None:
    """Return the row of an address, where it is now, or None if nothing was ever said there."""
    place = present(rx, place)
    row = rx.one(FIND_PLACE, (place.platform, place.account, place.chat_type, place.chat, place.thread))
    return None if row is None else int(row["id"])


def place_of(rx: Rx, row_id: int) -> PlaceRef | None:
    """Return the address of a place row, or None if there is no such row."""
    row = rx.one(GET_PLACE, (row_id,))
    return None if row is None else PlaceRef(**row)


def find_room(rx: Rx, place: PlaceRef) -> str | None:
    """Return the room of this place's chat, or None if nobody has asked for it yet."""
    place = present(rx, place)
    row = rx.one(FIND_ROOM, (place.platform, place.account, place.chat))
    return None if row is None else str(row["id"])


def ensure_room(tx: Tx, place: PlaceRef) -> str:
    """Find or make the room of this place's chat. A thread's name is not the room's name."""
    place = present(tx, place)
    name = None if place.thread else place.name
    row = tx.one(FIND_ROOM, (place.platform, place.account, place.chat))
    if row is None:
        room = f"r{secrets.token_hex(6)}"
        tx.run(ADD_ROOM, (room, place.platform, place.account, place.chat, name, tx.now))
        return room
    if name is not None and name != row["name"]:
        tx.run(NAME_ROOM, (name, row["id"]))
    return str(row["id"])


def touch_member(tx: Tx, room_id: str, person_id: str) -> None:
    """Note that a person has spoken in a room now."""
    tx.run(TOUCH_MEMBER, (room_id, person_id, tx.now))


def rooms_of(rx: Rx, person_id: str) -> frozenset[str]:
    """Return the rooms in which a person has spoken."""
    return frozenset(str(row["room_id"]) for row in rx.all(ROOMS_OF, (person_id,)))


class Places:
    """Addresses and rooms; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, row_id: int) -> PlaceRef | None:
        """Return the address of a place row, or None."""
        return await self._engine.read(lambda rx: place_of(rx, row_id))

    async def room_of(self, place: PlaceRef) -> str:
        """Return the room of this place's chat; it is made at first sight (one write), afterwards only read."""
        known = await self._engine.read(lambda rx: find_room(rx, place))
        return known if known is not None else await self._engine.write(lambda tx: ensure_room(tx, place))

    async def rooms_of(self, person_id: str) -> frozenset[str]:
        """Return the rooms in which a person has spoken."""
        return await self._engine.read(lambda rx: rooms_of(rx, person_id))
