"""What several transactions take: places, who may see what, messages and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "Home",
    "MessageNote",
    "NewAttachment",
    "NewMessage",
    "PlaceRef",
    "Usage",
    "Visibility",
]


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """A full delivery address. `thread` is '' outside threads and topics; `name` is for people only.

    parent: the chat that a chat hangs on, where what it takes no more may be sent instead; None where that is unknown.
    """

    platform: str
    account: str
    chat_type: str
    chat: str
    thread: str = ""
    name: str | None = field(default=None, compare=False)
    parent: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Visibility:
    """Whose sessions a query may see; the store applies it inside the query.

    owners: ids of persons and rooms. within_room: when set (the asker stands in a shared place), sessions that a
    person owns count only if they live in that room. `None` in place of a Visibility means the library caller, who
    sees everything.
    """

    owners: frozenset[str]
    within_room: str | None = None


@dataclass(frozen=True, slots=True)
class MessageNote:
    """What the agent is told beside a user message: who said it (shared sessions only), and what it answers."""

    sender: str | None = None
    quoted: str | None = None
    quoted_name: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call of a model cost, in tokens as its provider counts them.

    request_id is unique for ever: told twice, it counts once. output_tokens include reasoning_tokens; input_tokens
    include neither cache column. provider and base_url: who was asked.
    """

    request_id: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    provider: str | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One transcript row. content is text, or a list/dict of multimodal parts; tool_calls a list of call objects.

    reasoning is for people; reasoning_content and reasoning_details are what the model's provider wants back unchanged.
    """

    role: Literal["user", "assistant", "tool", "system"]
    content: str | Sequence[Any] | Mapping[str, Any] | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    op_id: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file that came with a message: its name, harmless to show and to save under, and its kind (image, file, ...).

    hash: of the stored file, None when it was not fetched; then `problem` says why. size in bytes, media_type as
    judged by content; where the file was not fetched, both as the platform claimed them.
    """

    name: str
    kind: str
    hash: str | None = None
    size: int | None = None
    media_type: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Home:
    """The chat that a person's conversations go to on a platform, and the identity that they have there."""

    place: PlaceRef
    user_id: str | None = None
