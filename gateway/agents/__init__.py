"""The exchangeable agents. `make_agent` gives the configured one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.agents.command import CommandAgent
from gateway.agents.openai import OpenAIAgent
from gateway.agents.recall import RecallAgent

if TYPE_CHECKING:
    from config import Settings
    from gateway.agents.base import Agent

__all__ = ["make_agent"]


def make_agent(settings: Settings) -> Agent:
    """Return the agent that `agent.kind` names."""
    match settings.agent.kind:
        case "recall":
            return RecallAgent()
        case "openai":
            return OpenAIAgent(settings.agent)
        case "command":
            return CommandAgent(settings.agent.command, settings.agent.command_seconds)
