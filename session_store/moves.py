"""A chat lives on under another id: everything of it moves at once, and whatever still names the old id follows.

Contract: one transaction moves addresses, routes, session keys, rooms and what waits in inbox and outbox; dedupe keys
stay. It is remembered, so that an event or an answer that still names the old chat is taken for the new one
(`places.present`). If the new chat was heard of first, both are made one: its route goes to the older conversation, the
other session stays and can be found; its room becomes the older room. Repeated, or told from the other side, nothing
changes. Message ids of the old chat mean nothing in the new one, so replies that wait answer none and
answers that were shown there while they were made come anew.
Failure: nothing is moved, and nothing remembered, of a chat that is not known under its old id.
Limits: it takes time with the number of sessions and turns, which is why it happens once per chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_store.models import MovedChat
from session_store.places import MOVED
from session_store.tx import Param, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Moves", "move_chat"]

KNOWN = """
SELECT 1 FROM places WHERE platform = ?1 AND account = ?2 AND chat = ?3
UNION ALL SELECT 1 FROM rooms WHERE platform = ?1 AND account = ?2 AND chat = ?3 LIMIT 1
"""
# Chains end at the last chat; what pointed at the old one points at the new one.
REMEMBER = """
INSERT INTO moved_chats (platform, account, old_chat, new_chat, moved_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (platform, account, old_chat) DO UPDATE SET new_chat = ?4
"""
FOLLOW = "UPDATE moved_chats SET new_chat = ?4 WHERE platform = ?1 AND account = ?2 AND new_chat = ?3"
# A chat that was moved away from is never the goal of its own move.
NEVER_BACK = "DELETE FROM moved_chats WHERE platform = ? AND account = ? AND old_chat = ?"
PLACES = (
    "SELECT id, chat_type, thread FROM places WHERE platform = ? AND account = ? AND chat = ? ORDER BY id LIMIT 100000"
)
SAME_PLACE = """
SELECT id FROM places WHERE platform = ? AND account = ? AND chat_type = ? AND chat = ? AND thread = ''
"""
RENAME_PLACE = "UPDATE places SET chat = ?, thread = '' WHERE id = ?"
# What names a place, for an address that both chats have.
REPOINT = (
    "UPDATE routes SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE inbox SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE outbox SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE turns SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE sessions SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE messages SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE handoffs SET target_id = ?1 WHERE target_id = ?2",
    "UPDATE handoffs SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE handoffs SET asked_at_id = ?1 WHERE asked_at_id = ?2",
    "UPDATE home_places SET place_id = ?1 WHERE place_id = ?2",
    "UPDATE place_history SET place_id = ?1 WHERE place_id = ?2",
)
DROP_PLACE = "DELETE FROM places WHERE id = ?"
UNANSWERED = "UPDATE outbox SET reply_to = NULL WHERE place_id = ? AND state IN ('waiting', 'sending')"
# Beginnings of answers whose turns still run: their messages are in the old chat and are not edited any more.
LEFT_BEHIND = """
UPDATE outbox SET platform_message_id = NULL
WHERE place_id = ?1 AND id IN (
    SELECT finishes FROM outbox WHERE place_id = ?1 AND state IN ('waiting', 'sending')
    UNION SELECT b.id FROM turns AS t JOIN outbox AS b ON b.op_id = 'shown:' || t.id WHERE t.state = 'running')
"""
UNNUMBERED = """
UPDATE inbox SET payload = json_set(payload, '$.message_id', NULL, '$.reply_to', NULL)
WHERE place_id = ? AND state IN ('new', 'taken') AND payload IS NOT NULL
"""
# Keys and lanes that begin with the old chat's key ?1, at a boundary: the same behind the new chat's key ?2. A key
# ends, or goes on with ':', a lane also with ' '.
_BEGINS = "({0} = ?1 OR ({0} > ?1 AND substr({0}, 1, length(?1) + 1) IN (?1 || ':', ?1 || ' ')))"
_REKEY = "UPDATE {table} SET {column} = ?2 || substr({column}, length(?1) + 1) WHERE {where}"
# A route of the new chat that the older conversation takes over.
TAKEN_OVER = f"""
DELETE FROM routes WHERE session_key IN (
    SELECT ?2 || substr(session_key, length(?1) + 1) FROM routes WHERE {_BEGINS.format("session_key")})
"""  # noqa: S608 - joined from constants
REKEY = tuple(
    _REKEY.format(table=table, column=column, where=_BEGINS.format(column))
    for table, column in (
        ("routes", "session_key"),
        ("sessions", "session_key"),
        ("turns", "session_key"),
        ("turns", "lane"),
        ("inbox", "session_key"),
        ("inbox", "lane"),
    )
)
ROOM = "SELECT id FROM rooms WHERE platform = ? AND account = ? AND chat = ?"
RENAME_ROOM = "UPDATE rooms SET chat = ? WHERE id = ?"
# Titles are unique per owner: those of the younger room give way.
UNTITLE = """
UPDATE sessions SET title = NULL, title_key = NULL
WHERE owner = ?2 AND title_key IN (SELECT title_key FROM sessions WHERE owner = ?1 AND title_key IS NOT NULL)
"""
OWN = "UPDATE sessions SET owner = ?1 WHERE owner = ?2"
HOUSE = "UPDATE sessions SET room_id = ?1 WHERE room_id = ?2"
MEMBERS = """
INSERT INTO room_members (room_id, person_id, first_at, last_at)
SELECT ?1, person_id, first_at, last_at FROM room_members WHERE room_id = ?2
ON CONFLICT (room_id, person_id) DO UPDATE SET
    first_at = MIN(first_at, excluded.first_at), last_at = MAX(last_at, excluded.last_at)
"""
LEAVE = "DELETE FROM room_members WHERE room_id = ?"
DROP_ROOM = "DELETE FROM rooms WHERE id = ?"


def move_chat(tx: Tx, move: MovedChat) -> bool:
    """Move everything of a chat; False if there is nothing to move."""
    old = (move.platform, move.account, move.old_chat)
    if move.old_chat == move.new_chat or tx.one(KNOWN, old) is None:
        return False
    tx.run(NEVER_BACK, (move.platform, move.account, move.new_chat))
    tx.run(FOLLOW, (*old, move.new_chat))
    tx.run(REMEMBER, (*old, move.new_chat, tx.now))
    for place in tx.all(PLACES, old):
        address = (move.platform, move.account, place["chat_type"], move.new_chat)
        _move_place(tx, place["id"], address)
    keys: tuple[Param, Param] = (move.old_key, move.new_key)
    tx.run(TAKEN_OVER, keys)
    for statement in REKEY:
        tx.run(statement, keys)
    _move_room(tx, old, (move.platform, move.account, move.new_chat))
    return True


def _move_place(tx: Tx, place: int, address: tuple[str, str, str, str]) -> None:
    tx.run(LEFT_BEHIND, (place,))
    tx.run(UNANSWERED, (place,))
    tx.run(UNNUMBERED, (place,))
    same = tx.value(SAME_PLACE, address)
    if same is None:
        tx.run(RENAME_PLACE, (address[3], place))
        return
    for statement in REPOINT:
        tx.run(statement, (same, place))
    tx.run(DROP_PLACE, (place,))


def _move_room(tx: Tx, old: tuple[str, str, str], new: tuple[str, str, str]) -> None:
    elder, younger = tx.value(ROOM, old), tx.value(ROOM, new)
    if elder is None:
        return
    if younger is not None:
        for statement in (UNTITLE, OWN, HOUSE, MEMBERS):
            tx.run(statement, (elder, younger))
        tx.run(LEAVE, (younger,))
        tx.run(DROP_ROOM, (younger,))
    tx.run(RENAME_ROOM, (new[2], elder))


class Moves:
    """Chats that live on elsewhere."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def move_chat(self, move: MovedChat) -> bool:
        """Move everything of a chat to its new id; False if nothing is known of it under the old one."""
        return await self._engine.write(lambda tx: move_chat(tx, move))

    async def moved_to(self, platform: str, account: str, chat: str) -> str | None:
        """The id under which a chat lives on, or None if it has not moved."""
        return await self._engine.read(lambda rx: _moved_to(rx, platform, account, chat))


def _moved_to(rx: Rx, platform: str, account: str, chat: str) -> str | None:
    found: str | None = rx.value(MOVED, (platform, account, chat))
    return found
