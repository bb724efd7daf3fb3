"""Whose sessions somebody may see from where they stand; the store applies the answer inside every query.

Contract: pure. In a private place a person sees their own sessions and those of rooms they have spoken in. In a group,
channel or thread only what lives in that room is seen: the room's own sessions and, from a session that is theirs
alone, the person's own sessions there. Inside a shared session only the room's, whoever asks, so that nothing private
is ever quoted into a room. The terminal and the web are private places of the owner.

Failure: what is unknown sees nothing. A place without a person and without a room gives a visibility without owners,
and so does a group whose room is not known.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from adapters.base import Place
from session_store.models import Visibility

if TYPE_CHECKING:
    from session_store import SessionRow

__all__ = ["narrowed", "visibility"]


def visibility(
    person_id: str | None,
    place: Place,
    room_id: str | None,
    rooms_spoken_in: Collection[str],
    *,
    shared: bool,
) -> Visibility:
    """Return what `person_id` sees in `place`.

    room_id: the room of the place; None in private places, except where a direct chat of nobody known has a scope of
    its own. rooms_spoken_in: ids of the rooms the person has spoken in. shared: whether the session is a room's.
    """
    if place.private:
        rooms = rooms_spoken_in if person_id else ()
        return Visibility(owners=frozenset(owner for owner in (person_id, room_id, *rooms) if owner))
    if not room_id:
        return Visibility(owners=frozenset())
    owners = {room_id} if shared or not person_id else {room_id, person_id}
    return Visibility(owners=frozenset(owners), within_room=room_id)


def narrowed(visible_to: Visibility, session: SessionRow | None) -> Visibility:
    """Return what a turn in `session` may see of this: in a session that lives in a room no more than the room's.

    Such a session may be worked from a private place (it was taken up there), and what its turns find becomes part of
    what the room can read.
    """
    room_id = session["room_id"] if session is not None else None
    if session is None or room_id is None or visible_to.within_room == room_id:
        return visible_to
    return Visibility(owners=visible_to.owners & {room_id, session["owner"]}, within_room=room_id)
