"""What is recorded at the two edges: inbox and outbox rows before they are rows, and what recording came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from session_store.models.values import PlaceRef

__all__ = [
    "Accepted",
    "BotCaps",
    "Change",
    "Entrant",
    "InboxKind",
    "MovedChat",
    "NewInbox",
    "NewOutbox",
    "OutboxKind",
    "RenderedPart",
    "ShownAnswer",
]

InboxKind = Literal["message", "edit", "delete", "command", "button", "migration", "member"]
OutboxKind = Literal["answer", "notice", "mirror", "handoff"]


@dataclass(frozen=True, slots=True)
class BotCaps:
    """How far bots are listened to in a chat: messages in a row without a person's, and per period of `seconds`."""

    depth: int
    spoken: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Entrant:
    """A sender as the platform names them. account: the name space of the user id; name: what people see."""

    account: str
    user_id: str
    name: str | None


@dataclass(frozen=True, slots=True)
class NewInbox:
    """One event at the edge, authorized and ready to be recorded (transaction *accept*).

    lane: rows of one lane are worked one after another (the session key, or the root id of a session chosen by id).
    holder: process token when only this process may work the row (terminal); else None.
    entrant: who is merely allowed to speak, whose person is found or made with the row; None if person_id says it all.
    caps: what a bot may say; None for people.
    """

    place: PlaceRef
    dedupe_key: str
    kind: InboxKind
    lane: str
    received_at: float
    payload: Mapping[str, Any]
    sender: Mapping[str, Any]
    session_key: str | None = None
    session_id: str | None = None
    person_id: str | None = None
    entrant: Entrant | None = None
    holder: str | None = None
    caps: BotCaps | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Result of accept: the row, and whether this call made it (False: a repeated delivery, nothing changed).

    inbox_id is 0 when nothing was recorded: bots have said enough in that chat.
    """

    inbox_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What an edit or a delete came to.

    unknown - no such message was ever recorded; nothing was written. repeated - recorded before. same - the text is
    what it was. waiting - no turn had begun: the text was replaced (or the message withdrawn). recorded - on the
    message, for the next turn. latest: the message is the last one that somebody said in its session.
    """

    status: Literal["unknown", "repeated", "same", "waiting", "recorded"]
    latest: bool = False


@dataclass(frozen=True, slots=True)
class MovedChat:
    """A chat of an account that lives on under another id, with the session keys of both (without thread and user)."""

    platform: str
    account: str
    old_chat: str
    new_chat: str
    old_key: str
    new_key: str


@dataclass(frozen=True, slots=True)
class NewOutbox:
    """One thing to deliver. body is Markdown; the owner of the account formats and splits it.

    reply_to: platform message id that is answered, or None. op_id: names it for ever; it is added once.
    over_shown: at the end of a turn, the body instead where the beginning of an answer is shown already: it takes the
    place of that message. None: it stands by itself in any case.
    """

    place: PlaceRef
    kind: OutboxKind
    body: str
    reply_to: str | None = None
    op_id: str | None = None
    over_shown: str | None = None


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The outbox row with the beginning of an answer that is shown while it is made.

    message_id: of the platform, once the row is sent. open: it is sent, or still may be.
    """

    id: int
    message_id: str | None
    open: bool


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """One part as the adapter's formatter made it: `rendered` is JSON that only the adapter understands."""

    body: str
    rendered: str
