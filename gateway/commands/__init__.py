"""Slash commands: the registry and the commands that every entrance has."""

from __future__ import annotations

from collections.abc import Callable

from gateway.commands.find import SEARCH, SESSIONS
from gateway.commands.history import BRANCH, COMPRESS, RETRY, UNDO
from gateway.commands.info import STATUS, WHOAMI, help_command
from gateway.commands.moving import HANDOFF, LINK, SETHOME, UNLINK
from gateway.commands.registry import Call, Command, CommandContext, CommandRegistry, Reply
from gateway.commands.resume import RESUME
from gateway.commands.session import NEW, STOP, TITLE
from gateway.commands.spending import USAGE

__all__ = ["Call", "Command", "CommandContext", "CommandRegistry", "Reply", "default_registry"]


def default_registry() -> CommandRegistry:
    """All commands."""
    commands: list[Command] = [
        *(NEW, TITLE, RESUME, SESSIONS, SEARCH, STATUS, USAGE),
        *(COMPRESS, UNDO, RETRY, BRANCH),
        *(HANDOFF, LINK, UNLINK, SETHOME),
        *(STOP, WHOAMI),
    ]
    listed: Callable[[], list[Command]] = lambda: commands  # noqa: E731 - the help lists itself too
    commands.append(help_command(listed))
    return CommandRegistry(commands)
