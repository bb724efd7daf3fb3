"""What an adapter is: the protocol, the messages that cross it, and the few kinds of errors it may raise.

Contract: an adapter turns platform events into `InboundMessage`s and hands each to `deliver`; only when `deliver` has
returned is the event durable and may be confirmed to the platform. It sends `OutboundPart`s to places and returns a
receipt, or raises exactly one of the `SendError` kinds. It does no other work: no agent, no store, no blocking call.
Files that come with a message are only described (`Attachment`), never fetched before `deliver`; an adapter whose
messages describe any also offers `FetchesFiles`, and is asked for them once the message is durable. One that can change
what it sent also offers `Edits`.
Limits: `send` is bounded in time by the adapter (30 s); `stop` returns within 5 s, also with sends in flight.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = [
    "Adapter",
    "AdapterState",
    "Attachment",
    "AttachmentKind",
    "Capabilities",
    "CatchesUp",
    "ChatType",
    "Deliver",
    "Edits",
    "FetchError",
    "FetchesFiles",
    "Gone",
    "InboundKind",
    "InboundMessage",
    "OutboundPart",
    "Place",
    "Quoted",
    "Receipt",
    "Refused",
    "Report",
    "Reports",
    "RetryLater",
    "SendError",
    "Sender",
    "StartError",
    "UnknownOutcome",
    "Unreadable",
    "Verdict",
    "Write",
]

ChatType = Literal["dm", "group", "channel", "thread"]
InboundKind = Literal["message", "edit", "delete", "command", "button", "migration", "member", "bounce"]
AttachmentKind = Literal["image", "audio", "voice", "video", "file"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where messages come from and replies go: a full delivery address.

    account is 'main' for the only or first account of a platform, else its configured name. Ids are opaque,
    case-sensitive text. thread is '' outside threads and topics. name is for people only and never part of identity.
    parent: for a thread that is a chat of its own, the chat that it hangs on, if all who read there may read it, too;
    what cannot be sent to the thread any more may go there. No part of identity either.
    """

    platform: str
    account: str
    chat_type: ChatType
    chat: str
    thread: str = ""
    name: str | None = field(default=None, compare=False)
    parent: str | None = field(default=None, compare=False)

    @property
    def private(self) -> bool:
        """Whether only one person and the agent are here."""
        return self.chat_type == "dm"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent an event. user_id None: nobody in particular (anonymous admin, channel post); never authorized by id.

    realm is the name space of user ids: '' where they are global, the workspace id where not.
    """

    user_id: str | None
    name: str = ""
    realm: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Quoted:
    """What a reply answers or quotes, as the reply itself carries it: its text, and whose it was (for people only)."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that comes with a message, as the platform describes it; nothing of it is believed.

    reference: with it alone this account fetches the file, in whatever process and after any restart. Of several forms
    of one picture it names the largest. name, media_type, size (bytes): None where the platform does not tell.
    """

    reference: str
    kind: AttachmentKind
    name: str | None = None
    media_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One event as the adapter saw it; nothing is judged yet.

    dedupe_key: names the platform's event for ever (data model §1: `m:<chat>:<message>` and so on).
    text: the words without the mention of the bot, and a command without the bot's name (`/new@bot` is `/new`; one that
    names another bot keeps it); '' for files without words. addressed: the bot was mentioned, replied to or commanded.
    attachments: the files that come with it, in order.
    message_id, reply_to: platform ids. group_id: album id, equal for all parts of one album. received_at: Unix seconds.
    subject: of an edit or a delete, the `dedupe_key` that the message in question had when it came.
    quoted: what a reply answers, where the platform tells it with the reply.
    extra: facts of this platform that later steps may need; JSON values only. A `migration` names `old_chat` and
    `new_chat` there.
    A `bounce` tells that a message of ours was taken and then not delivered: `subject` is the id in its receipt, `text`
    the reason.
    """

    place: Place
    sender: Sender
    dedupe_key: str
    kind: InboundKind
    text: str
    message_id: str
    received_at: float
    addressed: bool = True
    reply_to: str | None = None
    group_id: str | None = None
    subject: str | None = None
    quoted: Quoted | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()


class Verdict(enum.Enum):
    """What became of a delivered event. Every value means: it may be confirmed to the platform."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    IGNORED = "ignored"


Deliver = Callable[[InboundMessage], Awaitable[Verdict]]
#: Takes the next piece of a file; what it raises must be let through.
Write = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event that could not be understood. raw: as it came, as text, without secrets; it is cut when it is kept."""

    platform: str
    account: str
    reason: str
    raw: str


Report = Callable[[Unreadable], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class OutboundPart:
    """A part of an answer, ready for `send`: plain is always sendable, payload is the formatted form (JSON values)."""

    plain: str
    payload: dict[str, Any] = field(default_factory=dict)
    reply_to: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a send: the platform's message id, and what the person must know about it, if anything.

    thread_gone: it was sent to the chat itself, because the thread of the place does not exist any more.
    """

    message_id: str
    note: str | None = None
    thread_gone: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the platform can do. max_length counts in `length_unit`s after formatting."""

    max_length: int
    length_unit: Literal["utf16", "characters"]
    threads: bool
    idempotent_send: bool
    typing: bool
    edits: bool


class AdapterState(enum.Enum):
    """Where an adapter stands, for the status. STOPPED also when it has ended by itself; `stop`, then `start` again."""

    STARTING = "starting"
    CONNECTED = "connected"
    RETRYING = "retrying"
    FAILED = "failed"
    STOPPED = "stopped"


class StartError(Exception):
    """The adapter can never work as configured (wrong token, missing right): a sentence that says what to change."""


class SendError(Exception):
    """A send did not end in a receipt."""


class RetryLater(SendError):
    """Not sent, surely. Try again after `delay` seconds; whole_account: nothing of this account may be sent before."""

    def __init__(self, message: str, delay: float, *, whole_account: bool = False) -> None:
        super().__init__(message)
        self.delay = delay
        self.whole_account = whole_account


class Gone(SendError):
    """Not sent: the chat, or only its thread, does not exist for us any more.

    moved_to: the chat's new id when the platform said that it lives on under another one. closed: the thread is there
    and may be opened again; until then nothing can be sent to it.
    """

    def __init__(
        self, message: str, *, thread_only: bool = False, moved_to: str | None = None, closed: bool = False
    ) -> None:
        super().__init__(message)
        self.thread_only = thread_only
        self.moved_to = moved_to
        self.closed = closed


class Refused(SendError):
    """Not sent: the platform will never take this part as it is."""


class UnknownOutcome(SendError):
    """Nobody knows whether it was sent (connection lost after the request left)."""


class FetchError(Exception):
    """A file could not be fetched: the reason in a few words for people, without full stop.

    again: another try may work; after `delay` seconds, if the platform names them.
    """

    def __init__(self, reason: str, *, again: bool, delay: float = 0.0) -> None:
        super().__init__(reason)
        self.again = again
        self.delay = delay


class Adapter(Protocol):
    """One account of one platform."""

    @property
    def platform(self) -> str:
        """Name of the platform, as in places."""
        ...

    @property
    def account(self) -> str:
        """Name of the account, as in places."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; constant."""
        ...

    @property
    def state(self) -> AdapterState:
        """Where it stands now."""
        ...

    @property
    def problem(self) -> str | None:
        """One sentence for people while it is not connected, else None."""
        ...

    async def start(self, deliver: Deliver) -> None:
        """Connect and begin to deliver, in tasks of its own; returns when the account is known to work.

        Raises StartError for what only a change of the configuration mends; anything transient is retried inside.
        """
        ...

    async def stop(self) -> None:
        """Stop delivering, let sends in flight end (bounded), free everything. Idempotent."""
        ...

    def render(self, markdown: str) -> Sequence[OutboundPart]:
        """Format and split an answer. Pure, deterministic, never empty for non-empty text, loses no text."""
        ...

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part to exactly this place, or raise one kind of SendError."""
        ...

    async def typing(self, place: Place) -> None:
        """Show that an answer is being made; never raises, never needed."""
        ...

    async def open_thread(self, place: Place, title: str) -> Place:
        """Open a thread or topic in the chat of `place`; returns the place that real messages there will carry."""
        ...


@runtime_checkable
class CatchesUp(Protocol):
    """What an adapter also has whose platform keeps nothing for us: it asks for what came while we were away."""

    def resume_from(self, last: Mapping[Place, str], since: float | None = None) -> None:
        """Say, before `start`, which message id is the newest one known in each place; of others nothing is asked.

        since: Unix time up to which everything was surely taken in, so that nothing older is asked for again.
        """
        ...


@runtime_checkable
class Reports(Protocol):
    """What an adapter also has that can meet events it cannot read: it reports each, confirms it, and goes on."""

    def report_to(self, report: Report) -> None:
        """Say, before `start`, who keeps a record of such events; it returns when the record is durable, or raises."""
        ...


@runtime_checkable
class FetchesFiles(Protocol):
    """What an adapter also has whose messages come with files."""

    async def fetch(self, reference: str, write: Write) -> None:
        """Fetch the file of an `Attachment.reference` and hand its bytes to `write`, in pieces as they come.

        Returns when every byte was written; raises FetchError, and whatever `write` raises (the file is too large).
        While the account is not connected it may wait some seconds for it. Every wait for the platform is bounded; the
        caller bounds the whole and may cancel at any time. Several fetches run at once.
        """
        ...


@runtime_checkable
class Edits(Protocol):
    """What an adapter also has whose platform lets the bot change its own messages: answers are shown while made."""

    async def edit(self, place: Place, message_id: str, part: OutboundPart) -> None:
        """Put `part` in the place of a message that this account sent there; also again, and if nothing changes.

        Raises one kind of SendError. Refused, or Gone: this message can never be made to show the part, be it that it
        is not there any more. After UnknownOutcome the same edit may simply be made again.
        """
        ...

    def edit_pause(self, place: Place) -> float:
        """Seconds from one edit to the next that the platform puts up with in this place, with something to spare."""
        ...
