"""What an agent is: it turns a context into events. It is exchangeable; nothing else knows its kind.

Contract: `run` is an async generator. Each event is made durable *before* the next one is asked for, so an agent that
yields `ToolCalls` and then works finds the calls stored when it goes on. The last event is `Final`. An agent raises
`AgentError` with a sentence for the person when it cannot answer. It must stop soon when its task is cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = [
    "Agent",
    "AgentContext",
    "AgentError",
    "AgentEvent",
    "AttachedFile",
    "Final",
    "Steerable",
    "Steering",
    "TextDelta",
    "ToolBox",
    "ToolCalls",
    "ToolResult",
]


class AgentError(Exception):
    """The agent could not answer; the message is a sentence for the person."""


class ToolBox(Protocol):
    """The tools of one turn, bound to what the asker may see."""

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
    are left. now: Unix seconds.
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


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer while it is made; shown live, not stored by itself."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """An assistant message with tool calls, stored before the tools run. Calls are OpenAI-shaped objects with ids."""

    calls: Sequence[Mapping[str, Any]]
    text: str | None = None


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


AgentEvent: TypeAlias = TextDelta | ToolCalls | ToolResult | Final


class Agent(Protocol):
    """One kind of agent."""

    @property
    def model(self) -> str:
        """Name stored in `sessions.model`."""
        ...

    def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        ...


@runtime_checkable
class Steerable(Protocol):
    """What an agent also has that can take in further messages while it works; see `AgentContext.steering`."""

    @property
    def steerable(self) -> bool:
        """Whether it does."""
        ...
