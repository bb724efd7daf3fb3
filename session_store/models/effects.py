"""Effects of slash commands: each is carried out in the transaction that marks its command as handled.

Who carries which out is said in session_store/effects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from session_store.models.moves import NewHandoff
from session_store.models.turns import Fence
from session_store.models.values import Home, PlaceRef, Usage, Visibility

__all__ = [
    "Branch",
    "Compress",
    "Effect",
    "OfferSessions",
    "RequestHandoff",
    "RequestStop",
    "ResumeSession",
    "Retitle",
    "SetHome",
    "StartSession",
    "TakeBack",
    "TakeLocally",
    "Unlink",
]


@dataclass(frozen=True, slots=True)
class StartSession:
    """Effect of `/new`: a fresh session; the one that is left is ended with `reason`.

    session_key: its route is moved to the fresh session; None where sessions are chosen by id.
    leaves: the session to end where there is no route (terminal, web); with a key the route tells.
    """

    session_key: str | None
    place: PlaceRef
    source: str
    owner: str
    new_session_id: str
    room_id: str | None = None
    person_id: str | None = None
    title: str | None = None
    model: str | None = None
    user_id: str | None = None
    leaves: str | None = None
    reason: str = "new_command"


@dataclass(frozen=True, slots=True)
class Retitle:
    """Effect of `/title`: the session gets this title (rules of titles.py; None or '' removes it)."""

    session_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class RequestStop:
    """Effect of `/stop`: the process that works the running turn of this conversation ends it for good."""

    root_id: str
    person_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeSession:
    """Effect of `/resume`: this place leads to the conversation of `session_id` from now on, open again at its tip.

    visible_to: what the asker may see; looked at again when it is done. session_key: whose route is moved, None where
    sessions are chosen by id; then `leaves` names the session that one comes from. What is left ends with `reason`
    unless other places lead to it. given_to: owner and room that the conversation gets, None to leave them.
    """

    session_id: str
    place: PlaceRef
    visible_to: Visibility
    session_key: str | None = None
    person_id: str | None = None
    leaves: str | None = None
    given_to: tuple[str, str] | None = None
    reason: str = "resumed_other"


@dataclass(frozen=True, slots=True)
class OfferSessions:
    """Effect of a numbered list: what each number means to this asker, until the next list or for a day."""

    asker: str
    session_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class SetHome:
    """Effect of `/sethome`: the chat becomes the person's home on its platform."""

    person_id: str
    home: Home


@dataclass(frozen=True, slots=True)
class RequestHandoff:
    """Effect of `/handoff` and `/link`: the request is there for the gateway that owns the account."""

    handoff: NewHandoff


@dataclass(frozen=True, slots=True)
class TakeLocally:
    """Effect of `/handoff cli`: the conversation leaves its chats for the terminal or the web page.

    place: of the terminal or page. asked_at: gets the command's reply and no farewell.
    """

    session_id: str
    place: PlaceRef
    person_id: str
    farewell: str
    farewell_shared: str
    asked_at: PlaceRef | None = None


@dataclass(frozen=True, slots=True)
class Unlink:
    """Effect of `/unlink`: the conversation no longer lives in this place. farewell: for that place, if it is told."""

    session_id: str
    place: PlaceRef
    person_id: str | None = None
    farewell: str | None = None


@dataclass(frozen=True, slots=True)
class Compress:
    """What the transaction *compress* needs; as an effect, that of `/compress`.

    fence: the conversation is held. session_id: its live session. child_id: of the continuation, chosen by the caller.
    summary: of everything before `context_from`, the id of the first message that stays in sight.
    title: what the continuation is called unless somebody took that title meanwhile; None: nothing.
    usage: what the summary cost. notice: goes to every place that the conversation lives in.
    """

    fence: Fence
    session_id: str
    child_id: str
    summary: str
    context_from: int
    title: str | None = None
    usage: Sequence[Usage] = ()
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Effect of `/undo`: what is seen of the held conversation from this message on is taken back."""

    fence: Fence
    session_id: str
    first_id: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Effect of `/branch`: the place goes on in a branch of the held conversation.

    session_key: whose route is moved, None where sessions are chosen by id. title: None makes one from the parent's.
    """

    fence: Fence
    session_id: str
    branch_id: str
    place: PlaceRef
    title: str | None = None
    session_key: str | None = None
    person_id: str | None = None


Effect: TypeAlias = (
    StartSession
    | Retitle
    | RequestStop
    | ResumeSession
    | OfferSessions
    | SetHome
    | RequestHandoff
    | TakeLocally
    | Unlink
    | Compress
    | TakeBack
    | Branch
)
