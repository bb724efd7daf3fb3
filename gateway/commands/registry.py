"""One registry of slash commands for the terminal, the web and every platform.

Contract: a text is a command when it begins with a slash and one word (`/new`, `/new@gatebot`, `/new a title`);
`/etc/hosts is gone` is not one. A handler reads what it needs and returns its reply with the effects that the store
applies in the same transaction that marks the command as done, so a repeated delivery does nothing twice. An unknown
command is answered with the nearest known one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from adapters.base import Place
    from config import Settings
    from gateway.compression import Compressor
    from gateway.context import Contexts
    from session_store import Effect, Fence, SessionDB, SessionRow, Visibility

__all__ = ["Call", "Command", "CommandContext", "CommandRegistry", "Reply"]

_CALL = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,63})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """A command as it was typed: its name in lower case and the rest of the text.

    addressee: the bot it was meant for, where one is named; adapters take their own name away.
    """

    name: str
    argument: str
    addressee: str = ""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Where and by whom a command was given, and what it may see.

    session: the conversation's live session at this place, None before the first message. owner and room_id are what
    a new session here would get. zone: in which times are written, None for the machine's own.
    fence: of the held conversation, for commands that ask for it and where there is a session.
    """

    db: SessionDB
    place: Place
    session_key: str | None
    session: SessionRow | None
    person_id: str | None
    owner: str
    room_id: str | None
    source: str
    model: str
    user_id: str | None
    visible_to: Visibility
    now: float
    settings: Settings
    contexts: Contexts
    compressor: Compressor
    zone: ZoneInfo | None = None
    fence: Fence | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command answers (Markdown), the effects to apply, and the session the person is in afterwards.

    handoff: the name of the request that was made; who can show its progress does.
    """

    text: str
    effects: Sequence[Effect] = ()
    session_id: str | None = None
    handoff: str | None = None


Handler: TypeAlias = Callable[[CommandContext, str], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. immediate: it does not wait behind the conversation's running turn. aliases are not listed.

    holds: it is worked while the conversation is held. turn: it asks for a turn, and so goes through the inbox at every
    entrance; its handler only says why there is none.
    """

    name: str
    usage: str
    summary: str
    handler: Handler
    immediate: bool = True
    aliases: tuple[str, ...] = ()
    holds: bool = False
    turn: bool = False


class CommandRegistry:
    """The commands by name."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = tuple(commands)
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    @property
    def commands(self) -> Sequence[Command]:
        """All commands in the order of the help."""
        return self._commands

    def parse(self, text: str) -> Call | None:
        """The command in `text`, known or not; None when the text is no command."""
        match = _CALL.fullmatch(text.strip())
        return Call(match[1].lower(), (match[3] or "").strip(), match[2] or "") if match else None

    def immediate(self, call: Call) -> bool:
        """Whether the call may overtake a running turn; unknown commands may, they only get an answer."""
        command = self._by_name.get(call.name)
        return command is None or command.immediate

    def holds(self, call: Call) -> bool:
        """Whether the call is worked while the conversation is held."""
        command = self._by_name.get(call.name)
        return command is not None and command.holds

    def asks_for_a_turn(self, call: Call) -> bool:
        """Whether the call asks for a turn rather than for a reply."""
        command = self._by_name.get(call.name)
        return command is not None and command.turn

    async def run(self, context: CommandContext, call: Call) -> Reply:
        """Work a call; an unknown one gets a suggestion."""
        command = self._by_name.get(call.name)
        if command is None:
            return Reply(self._unknown(call))
        return await command.handler(context, call.argument)

    def _unknown(self, call: Call) -> str:
        nearest = difflib.get_close_matches(call.name, self._by_name, n=1, cutoff=0.5)
        hint = f"Did you mean `/{nearest[0]}`?" if nearest else "Send `/help` for the list."
        return f"There is no command `/{call.name}`. {hint}"
