"""From what the gateway says to `deliver`: in order per channel, at least once, and what was missed is fetched.

Contract: an event takes its place in the line of its channel before anything is awaited. A delivery that fails is
tried again until it works, and the later ones of its channel wait. Discord keeps nothing for us, so every session that
begins anew first fetches, by REST, what came after the last message known of each channel; this takes its place in the
same lines before any live event, so that the order holds. Doubles are the store's to tell. A line that was too long to
take a message is mended in the same way. An event that cannot be understood is recorded by `keep`, tried again until
that works, or logged where nobody keeps a record; then the line goes on.
Failure: a channel whose messages cannot be fetched now is tried again every `MEND_SECONDS`; its live messages do not
wait for that. One that is gone or closed to us is left.
Limits: `CHANNELS` channels, those with the newest messages; of each the newest `PAGES` hundreds of what was missed,
delivered the oldest first. Edits and deletions of that time are not told; a command that finds no room is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import discord
import structlog

from adapters.base import Deliver, InboundMessage, Place, Verdict
from adapters.discord import events
from adapters.discord.channels import Channels
from adapters.discord.connection import GatewayClient, as_shown, set_aside
from adapters.discord.fields import MalformedEvent, as_mapping, snowflake
from adapters.discord.lines import Job, Lines
from adapters.discord.slash import Acknowledgement, Acknowledgements
from adapters.discord.waiting import backoff

__all__ = ["CHANNELS", "DELIVER_SECONDS", "MEND_SECONDS", "PAGE", "PAGES", "Intake"]

DELIVER_SECONDS = 60.0
CHANNELS = 50
PAGE = 100
PAGES = 5
MEND_SECONDS = 60.0
#: How long a catch-up waits for the servers of a new session: they tell where nothing was said, so need not be asked.
_SERVERS_SECONDS = 2.0
_SEEN = 5000
#: How far Discord's clock and ours may differ, and the first time that an id can tell.
_CLOCKS_SECONDS = 60.0
_FIRST_DAY = 1_420_070_400.0
#: The line of events that name no channel.
_NOWHERE = ""

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)

#: Called with a channel and what is wrong with taking in its messages, or None when that is over.
Trouble = Callable[[str, str | None], None]
#: Keeps a record of an event that cannot be read: the reason, and the event without secrets.
Keep = Callable[[str, str], Awaitable[None]]
#: What no later try can mend.
_FINAL = (discord.Forbidden, discord.NotFound, MalformedEvent)


@dataclass(frozen=True, slots=True)
class _Gap:
    """After this message something may be missing. cached: what the client knows of the channel tells whether it is."""

    after: int
    guild_id: str | None = None
    cached: bool = False


class Intake:
    """Everything between one account's gateway and the store. Made for one run, which `close` ends."""

    def __init__(
        self,
        channels: Channels,
        deliver: Deliver,
        trouble: Trouble,
        last: Mapping[Place, str],
        since: float | None = None,
    ) -> None:
        self._channels = channels
        self._deliver = deliver
        self._trouble = trouble
        #: Without it, events that cannot be read are only logged.
        self.keep: Keep | None = None
        self._lines = Lines(self._drained)
        self._answers = Acknowledgements()
        self._client: GatewayClient | None = None
        self._closed = False
        self._mending: asyncio.TimerHandle | None = None
        #: The newest message handled in each place by channel, the least recently used first.
        self._seen: dict[str, tuple[Place, int]] = {}
        self._gaps: dict[str, _Gap] = {}
        #: Channels whose line had no room: nothing more is taken there before what was left is fetched.
        self._overrun: set[str] = set()
        earliest = 0 if since is None else _snowflake(since - _CLOCKS_SECONDS)
        for place, number in last.items():
            if place.chat.isdigit() and number.isdigit():
                self._note(place, max(int(number), earliest))

    def begin(self, client: GatewayClient) -> None:
        """A session began with nothing to resume: look for what was missed, before anything new."""
        self._client = client
        newest = sorted(self._seen.items(), key=lambda item: item[1][1], reverse=True)[:CHANNELS]
        for channel_id, (_, number) in newest:
            old = self._gaps.get(channel_id)
            self._gaps[channel_id] = _Gap(number if old is None else min(number, old.after), cached=old is None)
        for channel_id in list(self._gaps):
            self._mend(channel_id)
        self._mend_later()

    def take(self, client: GatewayClient, name: str, data: Any) -> None:
        """Put an event into the line of its channel; one that names none is set aside in a line of its own."""
        if self._closed:
            return
        try:
            channel_id = snowflake(as_mapping(data, "an event"), "channel_id")
        except MalformedEvent as error:
            self.put_aside(name, data, error)
            return
        answer = self._answers.begin(client, data) if name == "INTERACTION_CREATE" else None

        async def job() -> None:
            await self._work(client, name, data, answer)

        if channel_id not in self._overrun and self._lines.put(channel_id, job):
            return
        _log.warning("discord_line_full", channel=channel_id, kind=name)
        if name == "MESSAGE_CREATE":
            self._overrun.add(channel_id)
            self._gaps.setdefault(channel_id, _Gap(int(snowflake(data, "id")) - 1, data.get("guild_id")))
            self._mend_later()
        if answer is not None:
            answer.finish(None)

    def put_aside(self, name: str, data: Any, error: Exception) -> None:
        """Record an event that cannot be read, in a line of its own; where that has no room, it is only logged."""

        async def job() -> None:
            await self._set_aside(name, data, error)

        if not self._lines.put(_NOWHERE, job):
            set_aside(name, data, error)

    def known(self) -> dict[Place, str]:
        """Return the newest message handled in each place, or, where something is missing, the one before the gap."""
        told = {}
        for channel_id, (place, number) in self._seen.items():
            gap = self._gaps.get(channel_id)
            told[place] = str(number if gap is None else min(number, gap.after))
        return told

    async def close(self, seconds: float) -> None:
        """Stop taking and delivering. What was not delivered is fetched by the next run."""
        self._closed = True
        if self._mending is not None:
            self._mending.cancel()
        await asyncio.gather(self._lines.close(seconds), self._answers.close(seconds))

    # --- one event ---------------------------------------------------------------------------------------------------

    async def _work(
        self, client: GatewayClient, name: str, data: dict[str, Any], answer: Acknowledgement | None
    ) -> None:
        verdict: Verdict | None = None
        text = ""
        try:
            place = await self._place(data["channel_id"], data.get("guild_id"), client)
            for message in _read(client, name, data, place):
                text = message.text
                verdict = await self._until_delivered(message)
            if name == "MESSAGE_CREATE":
                self._note(place, int(data["id"]))
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, it must not block the others)
            await self._set_aside(name, data, error)
        finally:
            if answer is not None:
                answer.finish(verdict, text)

    async def _place(self, channel_id: str, guild_id: str | None, client: GatewayClient) -> Place:
        """Return the place of a channel, asking for as long as Discord cannot be reached."""
        failures = 0
        while True:
            try:
                return await self._channels.place_of(self._client or client, channel_id, guild_id)
            except _FINAL:
                raise
            except Exception as error:  # noqa: BLE001  (whatever a library raises here, the message must not be lost)
                failures += 1
                _log.warning("discord_channel_unknown", channel=channel_id, error=repr(error), failures=failures)
            await asyncio.sleep(backoff(failures))

    async def _until_delivered(self, message: InboundMessage) -> Verdict:
        async def deliver() -> Verdict:
            return await self._deliver(message)

        return await self._until_durable(message.place.chat, message.dedupe_key, deliver)

    async def _set_aside(self, name: str, data: Any, error: Exception) -> None:
        """Leave a lasting record of an event that nobody will see otherwise."""
        keep = self.keep
        if keep is None:
            set_aside(name, data, error)
            return

        async def kept() -> None:
            await keep(f"{name}: {str(error) or type(error).__name__}", as_shown(data))

        channel = data.get("channel_id") if isinstance(data, dict) else None
        await self._until_durable(channel if isinstance(channel, str) else _NOWHERE, name, kept)

    async def _until_durable(self, channel: str, key: str, hand_on: Callable[[], Awaitable[_T]]) -> _T:
        """Hand something on until that works."""
        failures = 0
        while True:
            try:
                async with asyncio.timeout(DELIVER_SECONDS):
                    taken = await hand_on()
            except Exception as error:  # noqa: BLE001  (any failure means: not durable, so it must be tried again)
                failures += 1
                _log.warning("discord_delivery_failed", key=key, error=repr(error), failures=failures)
                reason = str(error) or type(error).__name__
                self._trouble(
                    channel, f"A message could not be taken in ({reason}); this is tried again until it works."
                )
            else:
                self._trouble(channel, None)
                return taken
            await asyncio.sleep(backoff(failures))

    def _note(self, place: Place, number: int) -> None:
        """Remember how far a channel is."""
        self._channels.learn(place)
        _, before = self._seen.pop(place.chat, (place, 0))
        self._seen[place.chat] = (place, max(number, before))
        if len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]

    # --- what was missed ---------------------------------------------------------------------------------------------

    def _mend(self, channel_id: str) -> None:
        self._lines.put(channel_id, self._catching_up(channel_id))

    def _mend_later(self) -> None:
        if self._gaps and self._mending is None and not self._closed:
            self._mending = asyncio.get_running_loop().call_later(MEND_SECONDS, self._mend_all)

    def _mend_all(self) -> None:
        self._mending = None
        for channel_id in set(self._gaps) - self._overrun:
            self._mend(channel_id)
        self._mend_later()

    def _drained(self) -> None:
        """There is room again: what was left out is fetched, and whatever comes now is put behind it."""
        for channel_id in list(self._overrun):
            if not self._closed and not self._lines.waits(channel_id):
                self._overrun.discard(channel_id)
                if not self._lines.put(channel_id, self._catching_up(channel_id)):
                    self._overrun.add(channel_id)

    def _catching_up(self, channel_id: str) -> Job:
        async def job() -> None:
            client, gap = self._client, self._gaps.pop(channel_id, None)
            if client is None or gap is None:
                return
            mended = False
            try:
                await self._catch_up(client, channel_id, gap)
                mended = True
            except _FINAL as error:
                _log.warning("discord_catch_up_refused", channel=channel_id, error=str(error))
                mended = True
            except Exception as error:  # noqa: BLE001  (trouble with one channel must not stop the others)
                _log.warning("discord_catch_up_failed", channel=channel_id, error=repr(error))
            finally:
                if not mended:
                    # What was left out meanwhile comes after this, so the older gap is the wider one.
                    self._gaps[channel_id] = gap
                    self._mend_later()

        return job

    async def _catch_up(self, client: GatewayClient, channel_id: str, gap: _Gap) -> None:
        """Fetch and deliver what a channel holds after its gap, the oldest first."""
        await client.wait_for_servers(_SERVERS_SECONDS)
        newest = getattr(client.get_channel(int(channel_id)), "last_message_id", None)
        if gap.cached and newest is not None and newest <= gap.after:
            return
        known = self._seen.get(channel_id)
        place = known[0] if known is not None else await self._place(channel_id, gap.guild_id, client)
        for data in sorted(await self._missed(client, channel_id, gap.after), key=_number):
            await self._fetched(client, place, data)

    async def _missed(self, client: GatewayClient, channel_id: str, after: int) -> list[Any]:
        """Return what a channel holds after a message; of very much, the newest."""
        missed = await _page(client, channel_id, after=after)
        if len(missed) < PAGE:
            return missed
        missed = []
        before: int | None = None
        for _ in range(PAGES):
            page = [data for data in await _page(client, channel_id, before=before) if _number(data) > after]
            missed += page
            if len(page) < PAGE:
                return missed
            before = min(map(_number, page))
        _log.error("discord_catch_up_cut", channel=channel_id, messages=len(missed))
        return missed

    async def _fetched(self, client: GatewayClient, place: Place, data: Any) -> None:
        try:
            for message in _read(client, "MESSAGE_CREATE", data, place):
                await self._until_delivered(message)
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, it must not block the others)
            await self._set_aside("MESSAGE_CREATE", data, error)
        if number := _number(data):
            self._note(place, number)


def _read(client: GatewayClient, name: str, data: Any, place: Place) -> list[InboundMessage]:
    """Return what an event means to us."""
    now = time.time()
    me = _me(client, place)
    match name:
        case "MESSAGE_CREATE":
            read = [events.said(data, place, me, now)]
        case "MESSAGE_UPDATE":
            read = [events.edited(data, place, me, now)]
        case "MESSAGE_DELETE":
            read = [events.deleted(data.get("id"), place, now)]
        case "MESSAGE_DELETE_BULK":
            numbers = data.get("ids")
            if not isinstance(numbers, list):
                raise MalformedEvent("no list of deleted messages")
            read = [events.deleted(number, place, now) for number in numbers]
        case _:
            read = [events.called(data, place, now)]
    return [message for message in read if message is not None]


def _me(client: GatewayClient, place: Place) -> events.Me:
    """Return who we are in a place."""
    guild = getattr(client.get_channel(int(place.chat)), "guild", None)
    role = guild.self_role if isinstance(guild, discord.Guild) else None
    return events.Me(
        id=str(client.user.id) if client.user is not None else "",
        application=str(client.application_id or ""),
        role=str(role.id) if role is not None else "",
    )


async def _page(
    client: GatewayClient, channel_id: str, *, before: int | None = None, after: int | None = None
) -> list[Any]:
    page: Any = await client.rest.logs_from(int(channel_id), PAGE, before=before, after=after)
    if not isinstance(page, list):
        raise MalformedEvent(f"a history that is none: {page!r:.100}")
    return page


def _snowflake(at: float) -> int:
    """Return the id that a message of this time would have at least."""
    return discord.utils.time_snowflake(datetime.fromtimestamp(max(at, _FIRST_DAY), UTC))


def _number(data: Any) -> int:
    """Return the id of a message by which history is ordered; what has none comes first."""
    number = data.get("id") if isinstance(data, dict) else None
    return int(number) if isinstance(number, str) and number.isascii() and number.isdigit() else 0
