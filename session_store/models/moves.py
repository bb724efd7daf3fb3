"""Conversations that go on elsewhere: the request, and what the transaction *bind* needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from session_store.models.edges import NewOutbox
from session_store.models.turns import Fence
from session_store.models.values import Home, NewMessage, PlaceRef, Visibility

__all__ = [
    "Binding",
    "NewHandoff",
]


@dataclass(frozen=True, slots=True)
class NewHandoff:
    """A request to bring a conversation to a further place (kind `link`: to live there as well).

    op_id names the request for ever. session_id: any session of the conversation. target: the chat to go to, with who
    asks there. asked_at: where it was asked, None where somebody waits for the outcome (terminal).
    visible_to: what the asker may see; a conversation beyond it is not found.
    """

    op_id: str
    kind: Literal["handoff", "link"]
    session_id: str
    target: Home
    person_id: str
    asked_at: PlaceRef | None = None
    visible_to: Visibility | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """What the transaction *bind* needs: a claimed handoff and the place where the conversation goes on.

    session_key: of the next message there. person_id: of the route, None in shared sessions. room_id: of the place,
    None in private ones; owner: who the conversation belongs to from now on, None: as before.
    message: the confirmation for the transcript, with an op_id. confirmation: the same for the place.
    farewell: for the places that are left (of a link: that stay), and the same for shared ones, where less is said.
    """

    handoff_id: int
    fence: Fence
    place: PlaceRef
    session_key: str
    message: NewMessage
    confirmation: NewOutbox
    farewell: str
    farewell_shared: str
    person_id: str | None = None
    room_id: str | None = None
    owner: str | None = None
