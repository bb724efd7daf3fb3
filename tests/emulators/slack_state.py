"""What the emulated Slack remembers: workspaces, channels, events and what became of them, posts, faults to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

__all__ = ["ALL_SCOPES", "Channel", "Event", "Fault", "FaultAction", "Sent", "Socket", "StoredFile", "Workspace"]

FaultAction = Literal["refuse", "drop", "hang", "delay", "garbage"]
ALL_SCOPES = (
    "chat:write,app_mentions:read,im:history,channels:history,groups:history,mpim:history,users:read,channels:read"
)


@dataclass(slots=True)
class Workspace:
    """One installation of the app. org_wide: it is installed for a whole organization."""

    team: str
    bot_token: str
    user: str = "UBOT"
    bot: str = "BBOT"
    name: str = "gatebot"
    enterprise: str = ""
    org_wide: bool = False
    scopes: str | None = ALL_SCOPES
    names: dict[str, str] = field(default_factory=lambda: {"U1": "Ann", "U2": "Bob"})

    @property
    def authorization(self) -> dict[str, Any]:
        """Return the installation as events name it."""
        return {
            "enterprise_id": self.enterprise or None,
            "team_id": None if self.org_wide else self.team,
            "user_id": self.user,
            "is_bot": True,
            "is_enterprise_install": self.org_wide,
        }


@dataclass(slots=True)
class Channel:
    """A conversation that the server knows. posts: time -> the message there, with its root in thread_ts."""

    id: str
    kind: Literal["im", "channel", "group", "mpim"]
    name: str = ""
    archived: bool = False
    joined: bool = True
    posts: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Event:
    """One envelope's content, and what became of it. echo: it only tells of the app's own post."""

    number: int
    type: str
    payload: Any
    ts: str = ""
    echo: bool = False
    deliveries: int = 0
    acks: int = 0
    lost: bool = False
    answers: list[Any] = field(default_factory=list)

    @property
    def acked(self) -> bool:
        """Whether the app has confirmed it at least once."""
        return self.acks > 0


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that the app posted and the server took."""

    channel: str
    ts: str
    text: str | None
    markdown: str | None
    thread: str | None
    team: str
    at: float

    @property
    def words(self) -> str:
        """Return what was posted, in either form."""
        return self.markdown if self.markdown is not None else self.text or ""


@dataclass(slots=True)
class StoredFile:
    """A file that the server keeps. gate: what stands in the way of its bytes."""

    id: str
    data: bytes
    facts: dict[str, Any]
    gate: Literal["open", "login", "redirect", "missing", "cut"] = "open"


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the next `times` calls of `method` (None: with all from now on).

    refuse answers `status` and, where that is 200, Slack's `error`; drop cuts the connection; hang never answers; delay
    answers after `seconds`; garbage answers what is no JSON. processed: the call is carried out first all the same.
    formatted_only: only calls with Markdown. channel: only calls for that one.
    """

    method: str
    action: FaultAction
    times: int | None = 1
    error: str = "internal_error"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    processed: bool = False
    formatted_only: bool = False
    channel: str | None = None

    def meets(self, method: str, fields: Mapping[str, Any]) -> bool:
        """Tell whether this call goes wrong, and count it."""
        if self.method != method or self.times == 0:
            return False
        if self.formatted_only and not fields.get("markdown_text"):
            return False
        if self.channel is not None and self.channel != fields.get("channel"):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(eq=False, slots=True)
class Socket:
    """One open socket. silent: it answers nothing and sends nothing. mute: it answers pings, but brings no events."""

    stream: web.WebSocketResponse
    request: web.Request
    app_token: str
    silent: bool = False
    mute: bool = False
    underway: dict[str, Event] = field(default_factory=dict)

    def abort(self) -> None:
        """Cut the connection without a word."""
        if self.request.transport is not None:
            self.request.transport.abort()
