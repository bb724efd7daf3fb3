"""A conversation changes hands: from a person to a room, or from one person to another.

Contract: all segments move together, in the caller's transaction. A title that the new owner has already gets the next
free number, so that both keep a name. Whoever owned it and loses it to a room counts as a member of that room, so that
they still see it. The search index follows by its triggers.
Failure: NotFound for an unknown session; then nothing changed.
"""

from __future__ import annotations

from session_store.lineage import conversation_of
from session_store.naming import free_title, title_holder
from session_store.places import touch_member
from session_store.sessions import session_row
from session_store.titles import split_number, title_key
from session_store.tx import Tx

__all__ = ["give", "give_session"]

_IS_PERSON = "SELECT 1 FROM people WHERE id = ?"
_IS_ROOM = "SELECT 1 FROM rooms WHERE id = ?"
# Titles are unique per owner at every moment, so the title moves after the owner has changed.
_UNTITLE = "UPDATE sessions SET title = NULL, title_key = NULL WHERE id = ?"
_GIVE = "UPDATE sessions SET owner = ?, room_id = ? WHERE id = ?"
_TITLE = "UPDATE sessions SET title = ?, title_key = ? WHERE id = ?"


def give(tx: Tx, session_id: str, owner: str, room_id: str | None) -> None:
    """Make the conversation of a session this owner's (a person or a room), living in this room (None: in none)."""
    for segment in conversation_of(tx, session_id):
        give_session(tx, segment, owner, room_id)


def give_session(tx: Tx, session_id: str, owner: str, room_id: str | None) -> None:
    """The same for one segment alone."""
    session = session_row(tx, session_id)
    if session is None or (session["owner"], session["room_id"]) == (owner, room_id):
        return
    title, former = session["title"], session["owner"]
    if title is not None and former != owner:
        tx.run(_UNTITLE, (session_id,))
        if title_holder(tx, owner, title) is not None:
            title = free_title(tx, split_number(title)[0], owner)
    tx.run(_GIVE, (owner, room_id, session_id))
    if title is not None and former != owner:
        tx.run(_TITLE, (title, title_key(title), session_id))
    lost_to_a_room = former not in {None, owner} and owner == room_id
    if lost_to_a_room and tx.one(_IS_ROOM, (owner,)) is not None and tx.one(_IS_PERSON, (former,)) is not None:
        touch_member(tx, owner, str(former))
