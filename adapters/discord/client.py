"""The Discord adapter: one bot account, from `start` to `stop`.

Contract: as `adapters.base`. `start` returns when the first session has begun, or, when Discord cannot be reached, with
the state `RETRYING`: connecting goes on in the background. Only what a changed configuration mends is a `StartError`,
or the state `FAILED` when it happens later. A repeated send is safe for some minutes (see `adapters.discord.sending`).
`resume_from` tells, before `start`, what was the last message of each place, so that what came since is fetched.
Limits: `AT_ONCE` calls and `FETCHES_AT_ONCE` fetches at a time; a send ends within `SEND_SECONDS`, for the caller: the
call itself goes on, since discord.py must not be interrupted in it, and its repeat carries the same nonce. `stop` gives
it `STOP_GRACE` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import structlog

from adapters.base import (
    AdapterState,
    Capabilities,
    Deliver,
    FetchError,
    OutboundPart,
    Place,
    Receipt,
    Report,
    RetryLater,
    StartError,
    UnknownOutcome,
    Unreadable,
    Write,
)
from adapters.discord.channels import Channels
from adapters.discord.connection import GatewayClient
from adapters.discord.events import PLATFORM
from adapters.discord.fetching import fetch_file
from adapters.discord.formatting import MAX_UNITS, render
from adapters.discord.intake import Intake
from adapters.discord.sending import EDIT_PAUSE, channel_number, edit_part, send_part
from adapters.discord.slash import SlashCommand, register
from adapters.discord.supervisor import CLOSE_SECONDS, Supervisor
from adapters.discord.threads import open_thread

__all__ = ["SEND_SECONDS", "STOP_GRACE", "DiscordAdapter"]

API_URL = "https://discord.com/api/v10"
START_SECONDS = 20.0
SEND_SECONDS = 30.0
#: Stopping may take the grace and three times the time to close: less than five seconds in all.
STOP_GRACE = 2.0
AT_ONCE = 64
_TYPING_AT_ONCE = 8
FETCHES_AT_ONCE = 4
#: How long a fetch waits for an account that is only starting.
CONNECT_SECONDS = 10.0
#: Seconds until a part is tried again that came while there was no connection, and one that found no free place.
_AWAY = 5.0
_CROWDED = 1.0

_CAPABILITIES = Capabilities(
    max_length=MAX_UNITS, length_unit="utf16", threads=True, idempotent_send=True, typing=True, edits=True
)

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class DiscordAdapter:
    """One bot. gateway_url None: the API is asked for it. commands: what Discord lists behind the slash."""

    def __init__(
        self,
        account: str,
        token: str,
        api_url: str = API_URL,
        gateway_url: str | None = None,
        commands: Sequence[SlashCommand] = (),
    ) -> None:
        self._account = account
        self._token = token
        self._addresses = (api_url, gateway_url)
        self._commands = tuple(commands)
        self._channels = Channels(account)
        self._last: dict[Place, str] = {}
        self._since: float | None = None
        self._reported_to: Report | None = None
        self._state = AdapterState.STOPPED
        self._problem: str | None = None
        self._failing: dict[str, str] = {}
        self._intake: Intake | None = None
        self._supervisor: Supervisor | None = None
        self._running: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._calls: set[asyncio.Task[Any]] = set()
        self._asides: set[asyncio.Task[None]] = set()
        self._fetches = asyncio.Semaphore(FETCHES_AT_ONCE)

    @property
    def platform(self) -> str:
        """Always `discord`."""
        return PLATFORM

    @property
    def account(self) -> str:
        """Name of the account, as in places."""
        return self._account

    @property
    def capabilities(self) -> Capabilities:
        """What Discord can do."""
        return _CAPABILITIES

    @property
    def state(self) -> AdapterState:
        """Where it stands now."""
        if self._state is AdapterState.CONNECTED and self._failing:
            return AdapterState.RETRYING
        return self._state

    @property
    def problem(self) -> str | None:
        """One sentence for people while it is not connected, or cannot take in what comes, else None."""
        if self._state is AdapterState.CONNECTED and self._failing:
            return next(iter(self._failing.values()))
        return self._problem

    def resume_from(self, last: Mapping[Place, str], since: float | None = None) -> None:
        """Say, before `start`, which message is the last known one in each place; see `adapters.base.CatchesUp`."""
        self._last = dict(last)
        self._since = since

    def report_to(self, report: Report) -> None:
        """Say, before `start`, who keeps a record of events that cannot be read."""
        self._reported_to = report

    async def start(self, deliver: Deliver) -> None:
        """Connect and begin to deliver; see the module's contract."""
        if self._running is not None:
            raise RuntimeError("This Discord adapter was started already; stop it first.")
        self._report(AdapterState.STARTING, None)
        self._first = asyncio.Event()
        self._failing.clear()
        self._intake = Intake(self._channels, deliver, self._trouble, self._last, self._since)
        self._intake.keep = self._keep if self._reported_to is not None else None
        self._supervisor = Supervisor(self._make_client, self._token, self._report)
        self._running = asyncio.create_task(self._run(self._supervisor), name="discord supervisor")
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    await self._first.wait()
        except BaseException:
            await self.stop()
            raise
        if self._state is AdapterState.FAILED:
            problem = self._problem
            await self.stop()
            raise StartError(f"Account {self._account!r}: {problem}")
        if self._state is AdapterState.STARTING:
            self._report(AdapterState.RETRYING, "Discord has not answered yet; this is tried until it works.")

    async def stop(self) -> None:
        """Stop receiving at once, let sends in flight end within `STOP_GRACE`, free everything."""
        self._supervisor = None
        intake, self._intake = self._intake, None
        for aside in self._asides:
            aside.cancel()
        waits: list[Coroutine[Any, Any, Any]] = []
        if self._calls:
            waits.append(asyncio.wait(set(self._calls), timeout=STOP_GRACE))
        if intake is not None:
            self._last, self._since = intake.known(), None
            waits.append(intake.close(CLOSE_SECONDS))
        await asyncio.gather(*waits)
        for call in self._calls:
            # The client is thrown away, so it does not matter any more that interrupted calls harm it.
            call.cancel()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running], timeout=3 * CLOSE_SECONDS)
            self._running = None
        self._report(AdapterState.STOPPED, None)

    def render(self, markdown: str) -> list[OutboundPart]:
        """Format and split an answer; see `adapters.discord.formatting`."""
        return render(markdown)

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part; see `adapters.discord.sending` for which error means what."""
        client = self._client()
        parent = self._channels.parent_of(client, place.chat) or place.parent
        return await self._call(send_part(client, place, part, parent))

    async def edit(self, place: Place, message_id: str, part: OutboundPart) -> None:
        """Edit a message of the bot; see `adapters.discord.sending` for which error means what."""
        await self._call(edit_part(self._client(), place, message_id, part))

    def edit_pause(self, _place: Place) -> float:
        """Seconds from one edit to the next."""
        return EDIT_PAUSE

    async def fetch(self, reference: str, write: Write) -> None:
        """Fetch a file by the ids of its message and its own; see `adapters.discord.fetching`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._first.wait()
        async with self._fetches:
            try:
                client = self._client()
            except RetryLater as error:
                raise FetchError("the Discord account is not connected", again=True) from error
            await fetch_file(client, self._addresses[0], reference, write)

    async def open_thread(self, place: Place, title: str) -> Place:
        """Open a public thread or forum post named `title`; see `adapters.discord.threads`. Raises a SendError."""
        opened = await self._call(open_thread(self._client(), place, title))
        self._channels.learn(opened)
        return opened

    async def typing(self, place: Place) -> None:
        """Show the typing mark for some seconds, if it is no trouble."""
        supervisor = self._supervisor
        client = supervisor.client if supervisor is not None else None
        if client is not None and client.logged_in and len(self._asides) < _TYPING_AT_ONCE:
            self._aside(_show_typing(client, place))

    # --- what the client tells ---------------------------------------------------------------------------------------

    def on_session(self, client: GatewayClient) -> None:
        """Catch up, and see to it that the commands are listed."""
        if self._intake is None:
            return
        self._report(AdapterState.CONNECTED, None)
        self._intake.begin(client)
        if self._commands:
            self._aside(_register(client, self._commands))

    def on_connection(self, client: GatewayClient) -> None:
        """Tell whether there is a connection."""
        if self._intake is None or client.is_closed() or not client.had_session:
            return  # in the latter two cases the supervisor tells why
        if client.lost_since is None:
            self._report(AdapterState.CONNECTED, None)
        else:
            self._report(AdapterState.RETRYING, "The connection to Discord was lost; it is being made anew.")

    def on_event(self, client: GatewayClient, name: str, data: Any) -> None:
        """Take in a message or a command."""
        if self._intake is not None:
            self._intake.take(client, name, data)

    def on_unreadable(self, name: str, data: Any, error: Exception) -> None:
        """Have it recorded."""
        if self._intake is not None:
            self._intake.put_aside(name, data, error)

    def on_thread_gone(self, told: Any) -> None:
        """Remember where answers go that were meant for the thread."""
        self._channels.learn_thread(told)

    async def _run(self, supervisor: Supervisor) -> None:
        """Keep connected; should that end by itself, the state says so, and whoever started us starts again."""
        try:
            await supervisor.run()
        except Exception as error:  # noqa: BLE001  (nobody awaits this task: it must not end without a word)
            reason = f"{type(error).__name__}: {error}".replace(self._token, "<token>")
            _log.error("discord_supervisor_ended", account=self._account, reason=reason)
            self._report(AdapterState.STOPPED, f"Receiving from Discord has ended by itself ({reason}).")

    def _make_client(self) -> GatewayClient:
        return GatewayClient(*self._addresses, self)

    def _report(self, state: AdapterState, problem: str | None) -> None:
        if state is not self._state:
            _log.info("discord_state", account=self._account, state=state.value, problem=problem)
        self._state = state
        self._problem = problem
        if state is not AdapterState.STARTING:
            self._first.set()

    def _trouble(self, channel: str, problem: str | None) -> None:
        if problem is None:
            self._failing.pop(channel, None)
        else:
            self._failing[channel] = problem

    async def _keep(self, reason: str, raw: str) -> None:
        if self._reported_to is not None:
            await self._reported_to(Unreadable(PLATFORM, self._account, reason, raw))

    # --- calls -------------------------------------------------------------------------------------------------------

    def _client(self) -> GatewayClient:
        client = self._supervisor.client if self._supervisor is not None else None
        if client is None or not client.logged_in:
            raise RetryLater("The Discord account is not connected.", _AWAY)
        return client

    async def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Bound a call in number and time, without ever interrupting it."""
        if len(self._calls) >= AT_ONCE:
            work.close()
            raise RetryLater("Too much is being sent to Discord at once.", _CROWDED)
        call = asyncio.create_task(work, name="discord call")
        self._calls.add(call)
        call.add_done_callback(self._called)
        await asyncio.wait([call], timeout=SEND_SECONDS)
        if not call.done():
            raise UnknownOutcome("Discord did not answer in time; nobody knows whether it was sent.")
        if call.cancelled():
            raise UnknownOutcome("Discord was left while this was being sent; nobody knows whether it was.")
        return call.result()

    def _called(self, call: asyncio.Task[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # the caller may have gone; then nobody else looks at it

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work, name="discord aside")
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)


async def _show_typing(client: GatewayClient, place: Place) -> None:
    try:
        await client.rest.send_typing(channel_number(place))
    except Exception as error:  # noqa: BLE001  (decoration: no failure of it may reach a turn)
        _log.debug("discord_typing_failed", error=repr(error))


async def _register(client: GatewayClient, commands: Sequence[SlashCommand]) -> None:
    try:
        await register(client, commands)
    except Exception as error:  # noqa: BLE001  (typed commands work all the same)
        _log.warning("discord_commands_not_registered", error=repr(error))
