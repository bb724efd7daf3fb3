"""What an agent is: it turns a context into events. It is exchangeable; nothing else knows its kind.

Contract: `run` is an async generator. Each event is made durable *before* the next one is asked for, so an agent that
yields `ToolCalls` and then works finds the calls stored when it goes on; `Usage` is told before the event that it paid
for, and stored with that. The last event is `Final`. An agent raises
`AgentError` with a sentence for the person when it cannot answer. It must stop soon when its task is cancelled.
`summarize` writes what a reader needs to go on with a conversation without having read it; `Titling` is for agents that
can also name one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from session_store import Usage

__all__ = [
    "Agent",
    "AgentContext",
    "AgentError",
    "AgentEvent",
    "AttachedFile",
    "Birth",
    "Final",
    "Prompting",
    "Reasoning",
    "Sparing",
    "Steerable",
    "Steering",
    "SummaryRequest",
    "TextDelta",
    "Titling",
    "ToolBox",
    "ToolCalls",
    "ToolResult",
    "Usage",
    "Written",
]


class AgentError(Exception):
    """The agent could not answer; the message is a sentence for the person."""


class ToolBox(Protocol):
    """The tools of one turn, bound to what the asker may see."""

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """What a model is told about the tools, as OpenAI-shaped functions (JSON Schema)."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool; returns its result as text (JSON). Errors of the tool are part of the result text."""
        ...


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A stored file: where it lies (to be read only, never run), its harmless name, its type as judged by content."""

    path: Path
    name: str
    media_type: str
    size: int


class Steering(Protocol):
    """What the person says while their turn runs."""

    async def take(self) -> Sequence[str]:
        """The texts of what was said since the last call, oldest first; they are in the transcript when it returns.

        Called between two steps: after the results of all calls so far, before the model is asked again. What is not
        taken is a turn of its own afterwards.
        """
        ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """All that an agent sees of a turn.

    conversation: provider format (`role`, `content`, `tool_calls`, `tool_call_id`), valid for strict providers, ends
    with the user message that is to be answered. text: that message's text, with the names of the files that came with
    it and the words of text files. words: what the person wrote, without those; None: the same as `text`.
    attachments: the stored files of that message, for agents that can look at them; of earlier messages only the names
    are left. now: Unix seconds. system_prompt: the session's own, as it was when the session began.
    """

    session_id: str
    turn_id: str
    text: str
    conversation: Sequence[Mapping[str, Any]]
    tools: ToolBox
    now: float
    timezone: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    steering: Steering | None = None
    words: str | None = None
    attachments: Sequence[AttachedFile] = ()
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought before it answered, in the fields that its provider wants back unchanged.

    text: for people. content and details: `reasoning_content` and `reasoning_details` of the provider's message.
    """

    text: str | None = None
    content: str | None = None
    details: Any = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer while it is made; shown live, not stored by itself."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """An assistant message with tool calls, stored before the tools run. Calls are OpenAI-shaped objects with ids."""

    calls: Sequence[Mapping[str, Any]]
    text: str | None = None
    reasoning: Reasoning | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call."""

    call_id: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Final:
    """The whole final answer, as Markdown."""

    text: str
    finish_reason: str = "stop"
    reasoning: Reasoning | None = None


AgentEvent: TypeAlias = TextDelta | ToolCalls | ToolResult | Usage | Final


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What is to be summarised, and for whom.

    history: provider format, oldest first; an earlier summary is its first message. purpose: `compression` (the summary
    takes the place of the history in what the model sees) or `handoff` (a few sentences for a person who goes on
    elsewhere). focus: what to keep above all, in the person's words. limit: characters at most.
    """

    session_id: str
    history: Sequence[Mapping[str, Any]]
    purpose: Literal["compression", "handoff"] = "compression"
    focus: str | None = None
    limit: int = 8_000


@dataclass(frozen=True, slots=True)
class Written:
    """A text that an agent wrote beside a turn, and what that cost."""

    text: str
    usage: Sequence[Usage] = ()


class Agent(Protocol):
    """One kind of agent."""

    @property
    def model(self) -> str:
        """Name stored in `sessions.model`."""
        ...

    def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        ...

    async def summarize(self, request: SummaryRequest) -> Written:
        """Summarise a conversation. Raises AgentError; stops soon when its task is cancelled. Never empty."""
        ...


@dataclass(frozen=True, slots=True)
class Birth:
    """How a session begins, as far as its agent is told: never who may see what, and no secrets.

    entrance: the platform in words (`Telegram`, `terminal`). shared: several people speak there. place: the name of the
    room or chat, if it has one. person: the name of who speaks, in a private place. now: Unix seconds. timezone: the
    name of the zone in which times are told, None for the machine's own.
    """

    entrance: str
    shared: bool
    now: float
    place: str | None = None
    person: str | None = None
    timezone: str | None = None


@runtime_checkable
class Prompting(Protocol):
    """What an agent also has whose sessions carry a system prompt."""

    def system_prompt(self, birth: Birth) -> str:
        """The prompt of a session that begins now. It is stored with the session and never changes."""
        ...


@runtime_checkable
class Titling(Protocol):
    """What an agent also has that can name a conversation."""

    async def title(self, history: Sequence[Mapping[str, Any]]) -> Written | None:
        """A title of three to seven words in the language of the conversation, None when there is none to give.

        Raises AgentError. history: provider format, the first exchange.
        """
        ...


@runtime_checkable
class Sparing(Protocol):
    """What an agent also has that may do without what was said before; what it does not look at is not read."""

    @property
    def needs_history(self) -> bool:
        """Whether its `AgentContext.conversation` begins before the message that is to be answered."""
        ...


@runtime_checkable
class Steerable(Protocol):
    """What an agent also has that can take in further messages while it works; see `AgentContext.steering`."""

    @property
    def steerable(self) -> bool:
        """Whether it does."""
        ...
