"""What the emulated Discord remembers: people, channels, messages, what was sent, faults to come."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "APPLICATION",
    "Bot",
    "Call",
    "Channel",
    "Fault",
    "FaultAction",
    "Kind",
    "Limit",
    "Sent",
    "Stored",
    "User",
    "iso",
    "snowflake",
]

APPLICATION = "1000"
_EPOCH_MS = 1_420_070_400_000
_counter = itertools.count(1)

FaultAction = Literal["refuse", "limit", "drop", "hang", "delay", "garbage"]
#: Names of the types of channels, and their numbers.
Kind = {"text": 0, "dm": 1, "voice": 2, "announcement": 5, "thread": 11, "private": 12, "forum": 15}


def snowflake() -> str:
    """Return a new id: later ones are greater, and tell when they were made."""
    return str((int(time.time() * 1000) - _EPOCH_MS << 22) | (next(_counter) & 0x3FFFFF))


def iso(at: float) -> str:
    """Return a time as Discord writes it."""
    fraction = f"{at % 1:.6f}"[1:]
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + fraction + "+00:00"


@dataclass(slots=True)
class User:
    """Somebody with an account."""

    id: str
    name: str
    bot: bool = False
    nick: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the user as payloads carry one."""
        return {
            "id": self.id,
            "username": self.name.lower().replace(" ", "_"),
            "global_name": None if self.bot else self.name,
            "discriminator": "0",
            "avatar": None,
            "bot": self.bot,
            "public_flags": 0,
        }

    def as_member(self) -> dict[str, Any]:
        """Return what messages in servers say of the user as a member."""
        return {
            "nick": self.nick,
            "roles": [],
            "joined_at": "2026-01-01T00:00:00+00:00",
            "deaf": False,
            "mute": False,
            "flags": 0,
        }


@dataclass(slots=True)
class Bot:
    """One token. content: Message Content Intent is switched on in the portal. commands: as registered."""

    token: str
    user: User
    application: str
    role: str
    content: bool = True
    commands: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Channel:
    """A channel, thread or direct chat.

    hidden: the bot may not see it. mute: the bot may see but not write. unlisted: sessions are not told of it, so that
    clients have to ask.
    """

    id: str
    kind: int
    name: str | None = None
    guild: str | None = None
    parent: str | None = None
    owner: str | None = None
    recipient: str | None = None
    locked: bool = False
    archived: bool = False
    hidden: bool = False
    mute: bool = False
    unlisted: bool = False
    archive_minutes: int = 1440
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def thread(self) -> bool:
        """Whether this is a thread or a post of a forum."""
        return self.kind in {10, 11, 12}

    @property
    def last(self) -> str | None:
        """Id of the last message."""
        return next(reversed(self.messages), None)


@dataclass(slots=True)
class Limit:
    """How many messages a channel takes in so many seconds; told to clients in the headers of each answer."""

    count: int
    seconds: float
    windows: dict[str, tuple[float, int]] = field(default_factory=dict)

    def take(self, channel: str) -> tuple[bool, dict[str, str]]:
        """Count a message; returns whether there was room for it, and the headers."""
        now = time.monotonic()
        began, used = self.windows.get(channel, (now, 0))
        if now - began >= self.seconds:
            began, used = now, 0
        room = used < self.count
        self.windows[channel] = (began, used + room)
        return room, {
            "X-RateLimit-Limit": str(self.count),
            "X-RateLimit-Remaining": str(self.count - used - room),
            "X-RateLimit-Reset-After": f"{began + self.seconds - now:.3f}",
            "X-RateLimit-Bucket": "messages",
        }


@dataclass(slots=True)
class Stored:
    """One file. address: instead of its true one. gate: whether its address gives it out, or how it does not."""

    id: str
    data: bytes
    name: str
    content_type: str | None
    server: str
    address: Any = None
    gate: Literal["open", "redirect", "gone", "trouble", "cut", "hang"] = "open"
    signature: int = 1

    @property
    def facts(self) -> dict[str, Any]:
        """The file as a message tells of it, with an address that works until `expire`."""
        true = f"{self.server}/attachments/{self.id}/{self.name}?ex={self.signature}"
        return {
            "id": self.id,
            "filename": self.name,
            "size": len(self.data),
            "content_type": self.content_type,
            "url": true if self.address is None else self.address,
        }

    def expire(self) -> None:
        """Let every address that was told run out."""
        self.signature += 1


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that a bot sent and the server took."""

    channel: str
    message_id: str
    text: str
    nonce: str | None
    reply_to: str | None
    mentions: Any
    bot: str
    at: float


@dataclass(slots=True)
class Call:
    """One interaction, and how the bot answered it. answer: deferred, edited text, or None when deleted."""

    id: str
    token: str
    began: float
    channel: str
    deferred: bool = False
    ephemeral: bool = False
    text: str | None = None
    deleted: bool = False


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the next `times` calls of `operation` (None: with all from now on).

    refuse answers `status` with `code` and `message`; limit answers 429 with `seconds`, `everywhere` for the whole
    account, `via` as Discord itself does (without: its front door); drop cuts the connection; hang never answers; delay
    answers after `seconds`; garbage answers what is no JSON. processed: the call is carried out first all the same.
    channel: only calls for that channel.
    """

    operation: str
    action: FaultAction
    times: int | None = 1
    status: int = 400
    code: int = 0
    message: str = "Emulated"
    seconds: float = 0.0
    everywhere: bool = False
    via: bool = True
    processed: bool = False
    channel: str | None = None

    def meets(self, operation: str, parameters: Mapping[str, str]) -> bool:
        """Tell whether this call goes wrong, and count it."""
        if self.operation != operation or self.times == 0:
            return False
        if self.channel is not None and self.channel != parameters.get("channel"):
            return False
        if self.times is not None:
            self.times -= 1
        return True
