"""Slash commands: told to Discord when they have changed, and answered at once when one is called.

Contract: Discord gives three seconds for a first answer, so a call is deferred as soon as it is seen, whatever waits in
line before it. What the command says goes to the place like every other answer; the deferred response only becomes a
short note that it was taken, or vanishes when there is nothing to say.
Failure: none of this may keep a command from being delivered; what fails here is logged.
Limits: `AT_ONCE` calls are answered at a time, each step within `ANSWER_SECONDS`, for at most 15 minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import discord
import structlog
from discord.http import Route
from discord.webhook.async_ import AsyncWebhookAdapter, async_context

from adapters.base import Verdict
from adapters.discord.connection import GatewayClient, redirect

__all__ = ["Acknowledgement", "Acknowledgements", "SlashCommand", "register"]

ANSWER_SECONDS = 20.0
AT_ONCE = 100
#: The token of an interaction is good for so long.
_LIFETIME_SECONDS = 15 * 60.0
_SHOWN_CHARACTERS = 200
_NOT_TAKEN = "This could not be taken in; please try again."
_APPLICATION_COMMAND = 2
_CHAT_INPUT = 1
_TEXT_OPTION = 3
_IN_SERVERS = 0
_IN_SERVERS_AND_DIRECT_CHATS = [0, 1]
_MAX_SUMMARY = 100

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command as Discord shall list it. argument: what follows it, in a word or two; None if nothing may."""

    name: str
    summary: str
    argument: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the command as it is registered: only where the bot is a member, and in direct chats with it."""
        options = []
        if self.argument is not None:
            options.append(
                {
                    "type": _TEXT_OPTION,
                    "name": "text",
                    "description": self.argument[:_MAX_SUMMARY],
                    "required": False,
                }
            )
        return {
            "type": _CHAT_INPUT,
            "name": self.name.lower(),
            "description": self.summary[:_MAX_SUMMARY],
            "options": options,
            "integration_types": [_IN_SERVERS],
            "contexts": _IN_SERVERS_AND_DIRECT_CHATS,
        }


async def register(client: GatewayClient, commands: Sequence[SlashCommand]) -> None:
    """See to it that Discord lists exactly these commands; nothing is written when it does already."""
    application = client.application_id
    wanted = [command.as_json() for command in commands]
    if application is None:
        return
    listed: Any = await client.rest.get_global_commands(application)
    if sorted(map(_essence, listed), key=repr) == sorted(map(_essence, wanted), key=repr):
        return
    await client.rest.bulk_upsert_global_commands(application, wanted)
    _log.info("discord_commands_registered", names=[command["name"] for command in wanted])


def _essence(command: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells one registered command from another."""
    options = [
        (option.get("type"), option.get("name"), option.get("description"), bool(option.get("required")))
        for option in command.get("options") or []
    ]
    contexts = sorted(command.get("contexts") or [])
    return command.get("type", _CHAT_INPUT), command.get("name"), command.get("description"), options, contexts


class _Webhooks(AsyncWebhookAdapter):
    """The library's way of answering interactions, which has no Authorization and no share in the bot's limits."""

    def __init__(self, api_url: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the library does not say that it returns nothing
        self._api_url = api_url

    async def request(self, route: Route, session: Any, **options: Any) -> Any:
        """Make a call as the library does, at our API."""
        redirect(route, self._api_url)
        return await super().request(route, session, **options)


class Acknowledgement:
    """The answer to one call, as far as Discord wants one."""

    def __init__(self) -> None:
        self._said: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def finish(self, verdict: Verdict | None, text: str = "") -> None:
        """Say what became of the command `text`. None: it could not be taken in."""
        if self._said.done():
            return
        if verdict is None:
            self._said.set_result(_NOT_TAKEN)
        else:
            taken = verdict in {Verdict.ACCEPTED, Verdict.DUPLICATE}
            self._said.set_result(_as_code(text) if taken else None)

    async def answer(self, client: GatewayClient, data: Any) -> None:
        """Defer now; complete when it is known what became of the command."""
        async_context.set(_Webhooks(client.rest.api_url))
        try:
            interaction = discord.Interaction(data=data, state=client.state)
            async with asyncio.timeout(ANSWER_SECONDS):
                await interaction.response.defer(thinking=True)
            async with asyncio.timeout(_LIFETIME_SECONDS):
                said = await self._said
            async with asyncio.timeout(ANSWER_SECONDS):
                if said is None:
                    await interaction.delete_original_response()
                else:
                    await interaction.edit_original_response(content=said)
        except Exception as error:  # noqa: BLE001  (the command itself is delivered all the same)
            _log.warning("discord_interaction_not_answered", error=repr(error))


class Acknowledgements:
    """The open answers of one account."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()

    def begin(self, client: GatewayClient, data: Any) -> Acknowledgement | None:
        """Defer the call of a command; None for any other interaction, or where too many are open."""
        if data.get("type") != _APPLICATION_COMMAND or len(self._open) >= AT_ONCE:
            return None
        acknowledgement = Acknowledgement()
        task = asyncio.create_task(acknowledgement.answer(client, data), name="discord interaction")
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return acknowledgement

    async def close(self, seconds: float) -> None:
        """End what is open; Discord shows those commands as failed."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(set(self._open), timeout=seconds)


def _as_code(text: str) -> str:
    """Return the command as it was given, for everybody to see and without any effect."""
    shown = " ".join(text.replace("`", "'").split())
    return f"`{shown[:_SHOWN_CHARACTERS]}`"
