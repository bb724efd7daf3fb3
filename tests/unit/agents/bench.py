"""An agent of the kind `openai` against the server on loopback, without a store: events in, events out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from config import Agent
from gateway.agents.base import AgentContext, AgentEvent, TextDelta, Usage
from gateway.agents.openai import OpenAIAgent
from tests.servers.openai_server import KEY, MODEL, OpenAIServer

__all__ = ["FakeTools", "agent_for", "asked", "context", "events", "text_of"]

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@dataclass
class FakeTools:
    """One tool that notes what it is asked."""

    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    definitions: Sequence[Mapping[str, Any]] = (TOOL,)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Say what was asked."""
        self.calls.append((name, arguments))
        return f"result of {name} {len(self.calls)}"


def asked(text: str) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": text}


def context(
    text: str = "hello", *earlier: Mapping[str, Any], tools: FakeTools | None = None, **more: Any
) -> AgentContext:
    """What the agent sees: these messages, then the question."""
    return AgentContext("s", "t", text, [*earlier, asked(text)], tools or FakeTools(), 1_764_400_000.0, **more)


def agent_for(server: OpenAIServer, **changes: Any) -> OpenAIAgent:
    """An agent that asks this server."""
    given: dict[str, Any] = {"kind": "openai", "base_url": server.base_url, "api_key": SecretStr(KEY), "model": MODEL}
    return OpenAIAgent(Agent(**given | changes))


async def events(agent: OpenAIAgent, seen: AgentContext) -> list[AgentEvent]:
    """All events of a turn."""
    return [event async for event in agent.run(seen)]


def text_of(happened: Sequence[AgentEvent]) -> str:
    """What was shown live."""
    return "".join(event.text for event in happened if isinstance(event, TextDelta))


def usages(happened: Sequence[AgentEvent]) -> list[Usage]:
    """What was spent."""
    return [event for event in happened if isinstance(event, Usage)]
