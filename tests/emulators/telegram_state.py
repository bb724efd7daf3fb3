"""What the emulated Bot API remembers: chats, bots, updates and what became of them, sent messages, faults to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.emulators.telegram_rules import Refusal

__all__ = ["Bot", "Chat", "Fault", "FaultAction", "Sent", "StoredFile", "Update"]

FaultAction = Literal["refuse", "drop", "hang", "delay", "garbage", "stranger"]


@dataclass(slots=True)
class Update:
    """One update of one bot, and what became of it."""

    update_id: int
    body: dict[str, Any]
    chat_id: int | None = None
    message_id: int | None = None
    deliveries: int = 0
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that a bot sent and the server took."""

    chat_id: int
    message_id: int
    text: str
    thread_id: int | None
    entities: list[dict[str, Any]]
    reply_to: int | None
    at: float


@dataclass(slots=True)
class StoredFile:
    """A file that people sent. path: as getFile tells it; size: as it is told, which need not be true.

    slow: seconds before each kilobyte. asked, fetched: how often getFile was asked for it, and the bytes were.
    """

    file_id: str
    path: str
    data: bytes
    size: int
    slow: float = 0.0
    asked: int = 0
    fetched: int = 0


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the next `times` calls of `method` (None: with all from now on).

    A download is the method `file`.

    refuse answers `status` with `description` and `parameters`; drop cuts the connection; hang never answers; delay
    answers after `seconds`; garbage answers what is no JSON,
    stranger the same with `status`. processed: the call is carried out first all the same (so
    that a processed delay is a window between sending and the receipt).
    formatted_only: only calls with entities. chat_id: only calls for that chat.
    """

    method: str
    action: FaultAction
    times: int | None = 1
    status: int = 400
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    processed: bool = False
    formatted_only: bool = False
    chat_id: int | None = None

    def meets(self, method: str, fields: Mapping[str, Any]) -> bool:
        """Tell whether this call goes wrong, and count it."""
        if self.method != method or self.times == 0:
            return False
        if self.formatted_only and not fields.get("entities"):
            return False
        if self.chat_id is not None and str(self.chat_id) != str(fields.get("chat_id")):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(slots=True)
class Bot:
    """One token. waiting: numbers of updates not yet confirmed, in order. poll: names the newest getUpdates."""

    id: int
    username: str
    waiting: list[int] = field(default_factory=list)
    poll: object = None

    def as_json(self) -> dict[str, Any]:
        """Return the bot as messages carry it."""
        return {"id": self.id, "is_bot": True, "first_name": "Gate", "username": self.username}


@dataclass(slots=True)
class Chat:
    """A chat that the server knows. topics: the open ones, if it is a forum or has topics.

    swallows_topics: what is sent to a topic is put into the main chat without a word.
    moved_to: the supergroup that it has become; nothing can be sent here any more. removed: messages that are gone.
    """

    id: int
    type: str
    title: str | None = None
    forum: bool = False
    topics: set[int] = field(default_factory=set)
    last_message: int = 0
    swallows_topics: bool = False
    moved_to: int | None = None
    removed: set[int] = field(default_factory=set)

    def next_message(self) -> int:
        """Return the number of a new message here."""
        self.last_message += 1
        return self.last_message

    def as_json(self) -> dict[str, Any]:
        """Return the chat as messages carry it."""
        shown: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.type == "private":
            shown["first_name"] = self.title or "Ann"
        else:
            shown["title"] = self.title or "The room"
        if self.forum:
            shown["is_forum"] = True
        return shown

    def check_topic(self, thread: int | None) -> None:
        """Refuse a topic that does not exist; General has no number that could be sent to."""
        if thread is not None and thread not in self.topics and not self.swallows_topics:
            raise Refusal("Bad Request: message thread not found")
