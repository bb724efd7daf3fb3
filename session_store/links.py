"""Linked places: what is said and answered in a conversation is copied to every place that it is linked with.

Contract: a route with `linked` above 0 is a link; it ends when the route leads to another conversation or goes. Copies
are outbox rows of kind `mirror`, made in the transaction that stored what they copy, so that they come in the order of
the transcript at every place and a crash loses none. They never go where the original was said, nor to the direct chat
of somebody who was known there and is not any more. A copy names who spoke and where; `was_copied` tells a copy that
came back as somebody else's message.
Limits: edits and deletes are not copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_store.content import encode_content, plain_text
from session_store.lineage import root_of
from session_store.models import NewOutbox, PlaceRef, Unlink
from session_store.outbox import Origin, add_rows
from session_store.place_history import note
from session_store.places import place_id, place_of
from session_store.sessions import session_row
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Links", "copy_answer", "copy_question", "is_linked", "link_all", "unlink"]

# The linked places of a conversation, each once.
LINKED = """
SELECT DISTINCT r.place_id FROM sessions AS s JOIN routes AS r ON r.session_id = s.id
WHERE (s.root_id = ?1 OR s.id = ?1) AND r.linked > 0 ORDER BY r.place_id LIMIT 100
"""
# Those of them that copies go to: not the direct chat of somebody who is not known on that platform any more.
SERVED = """
SELECT DISTINCT r.place_id
FROM sessions AS s JOIN routes AS r ON r.session_id = s.id JOIN places AS p ON p.id = r.place_id
WHERE (s.root_id = ?1 OR s.id = ?1) AND r.linked > 0 AND (p.chat_type <> 'dm' OR r.person_id IS NULL
    OR EXISTS (SELECT 1 FROM identities AS i WHERE i.platform = p.platform AND i.person_id = r.person_id))
ORDER BY r.place_id LIMIT 100
"""
ASKED = """
SELECT 1 FROM sessions AS s JOIN routes AS r ON r.session_id = s.id
WHERE (s.root_id = ?1 OR s.id = ?1) AND r.linked = 2 LIMIT 1
"""
# All places of a conversation become linked, those that were asked for stay so.
LINK_ALL = """
UPDATE routes SET linked = 1
WHERE linked = 0 AND session_id IN (SELECT id FROM sessions WHERE root_id = ?1 OR id = ?1)
"""
UNLINK_ALL = """
UPDATE routes SET linked = 0 WHERE session_id IN (SELECT id FROM sessions WHERE root_id = ?1 OR id = ?1)
"""
# The routes of a conversation whose replies go to one place.
LEAVE = """
DELETE FROM routes WHERE place_id = ?2 AND session_id IN (SELECT id FROM sessions WHERE root_id = ?1 OR id = ?1)
"""
ORIGIN = "SELECT origin, place_id FROM turns WHERE id = ?"
# Something of ours in a chat, by its platform id, or by its words while it is being sent.
COPIED = """
SELECT 1 FROM places AS p JOIN outbox AS o ON o.place_id = p.id
WHERE p.platform = ?1 AND p.chat = ?2
    AND (o.platform_message_id = ?3 OR (o.state IN ('sending', 'unknown') AND trim(o.body) = trim(?4))) LIMIT 1
"""


def is_linked(rx: Rx, root_id: str) -> bool:
    """Whether the conversation is linked with any place."""
    return rx.one(LINKED, (root_id,)) is not None


def link_all(tx: Tx, root_id: str) -> None:
    """Link the places where the conversation lives now, since a further one was asked for."""
    tx.run(LINK_ALL, (root_id,))


def copy_question(tx: Tx, root_id: str, said: Origin, content: object) -> None:
    """Queue copies of what somebody said in a turn for the other linked places."""
    _copy(tx, root_id, said, content, "**{origin}:** {text}")


def copy_answer(tx: Tx, root_id: str, said: Origin, content: object) -> None:
    """Queue copies of a turn's answer for the linked places where it was not asked."""
    _copy(tx, root_id, said, content, "**Answer to {origin}:**\n\n{text}")


def _copy(tx: Tx, root_id: str, said: Origin, content: object, form: str) -> None:
    linked = tx.all(SERVED, (root_id,))
    turn = tx.one(ORIGIN, (said.turn_id,)) if linked else None
    text = plain_text(encode_content(content)) if turn is not None else ""
    if turn is None or turn["origin"] is None or not text:
        return
    places = (place_of(tx, row["place_id"]) for row in linked if row["place_id"] != turn["place_id"])
    body = form.format(origin=turn["origin"], text=text)
    add_rows(tx, [NewOutbox(place, "mirror", body) for place in places if place is not None], said)


def unlink(tx: Tx, effect: Unlink) -> bool:
    """Take a conversation away from one of its places; False if it does not live there.

    When no place is left that was asked for, the others are as if there never had been a link.
    """
    if session_row(tx, effect.session_id) is None:
        return False
    root, place = root_of(tx, effect.session_id), place_id(tx, effect.place)
    if not tx.run(LEAVE, (root, place)):
        return False
    if tx.one(ASKED, (root,)) is None:
        tx.run(UNLINK_ALL, (root,))
    note(tx, root, "unlink", place, effect.person_id)
    if effect.farewell is not None:
        add_rows(tx, [NewOutbox(effect.place, "handoff", effect.farewell)], Origin(effect.session_id))
    return True


def linked_of(rx: Rx, session_id: str) -> list[PlaceRef]:
    """Return the places that the conversation of a session is linked with."""
    if session_row(rx, session_id) is None:
        return []
    found = (place_of(rx, row["place_id"]) for row in rx.all(LINKED, (root_of(rx, session_id),)))
    return [place for place in found if place is not None]


class Links:
    """Links as readers see them; they are made by the transaction *bind* and ended by `unlink`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_session(self, session_id: str) -> list[PlaceRef]:
        """The places that the conversation of this session is linked with."""
        return await self._engine.read(lambda rx: linked_of(rx, session_id))

    async def was_copied(self, platform: str, chat: str, message_id: str, text: str) -> bool:
        """Whether a message in a chat is one of ours, under whatever account it was sent."""
        return await self._engine.read(lambda rx: rx.one(COPIED, (platform, chat, message_id, text)) is not None)
