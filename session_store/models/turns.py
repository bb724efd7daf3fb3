"""Turns: what a claim needs, what it came to, and the fence that every later step shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from session_store.models.values import MessageNote, NewAttachment, PlaceRef

__all__ = [
    "Claim",
    "ClaimRequest",
    "Fence",
    "Purpose",
]

Purpose = Literal["turn", "summary", "title", "handoff"]


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of holding a conversation. Every durable step checks it in its own transaction."""

    root_id: str
    turn_id: str
    holder: str
    number: int


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What the transaction *claim* needs to know.

    inbox_ids: the rows that make this turn's input (an album has several), oldest first.
    turn_id: made by the caller, so that a claim with an unknown outcome can be repeated without harm.
    session_id: the session chosen by id, or None to go by `session_key`.
    new_session_id: used if a session must be made. owner: person or room id of a new session.
    room_id: the room of the place, None in private places.
    content, platform_message_id: the user message. note: what is told beside it. attachments: what came with it.
    texts: the text of each row as it was read; the claim is `changed` if one was edited since. None: not looked at.
    origin: who speaks and where (Markdown), for the copies at linked places.
    """

    inbox_ids: Sequence[int]
    turn_id: str
    holder: str
    lane: str
    place: PlaceRef
    source: str
    owner: str
    new_session_id: str
    content: str | Sequence[Any]
    session_key: str | None = None
    session_id: str | None = None
    person_id: str | None = None
    room_id: str | None = None
    platform_message_id: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    user_id: str | None = None
    note: MessageNote | None = None
    texts: Sequence[str] | None = None
    attachments: Sequence[NewAttachment] = ()
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed turn, or why there is none.

    status:
    claimed - this process works it now; busy - another live process or turn holds the conversation (wait, the rows stay
    new); gone - the rows are no longer new (somebody else worked them); changed - a text was edited since it was read
    (read the rows again).
    reset_reason: why an older session was ended for this message ('idle', 'daily'), or None.
    orphan: only when busy, the turn in the way if its process is gone; it must be taken over before this claim can win.
    spoken_in: the rooms in which the person of the turn has spoken.
    """

    status: Literal["claimed", "busy", "gone", "changed"]
    fence: Fence | None = None
    session_id: str | None = None
    message_id: int | None = None
    created: bool = False
    reset_reason: str | None = None
    previous_session_id: str | None = None
    attempt: int = 1
    orphan: str | None = None
    spoken_in: frozenset[str] = frozenset()
