"""The Telegram adapter: one bot account, from `start` to `stop`.

Contract: as `adapters.base`. `start` returns when Telegram has told who the bot is, or, when Telegram cannot be
reached, at once with the state `RETRYING`: connecting goes on in the background. Only what a changed configuration
mends is a `StartError`. Nothing that waits at Telegram is ever dropped. `stop` cancels the long poll at once, gives
sends in flight `STOP_GRACE` seconds and ends those that are left with `UnknownOutcome`.
Limits: eight requests at a time besides the long poll; a send ends within `SEND_SECONDS`. Four downloads of files at a
time; one that comes while the account is not connected waits `CONNECT_SECONDS` for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import structlog
from telegram.error import InvalidToken, TelegramError

from adapters.base import (
    AdapterState,
    Capabilities,
    Deliver,
    FetchError,
    InboundMessage,
    OutboundPart,
    Place,
    Receipt,
    Report,
    RetryLater,
    SendError,
    StartError,
    UnknownOutcome,
    Unreadable,
    Write,
)
from adapters.telegram.connection import FETCHES_AT_ONCE, SENDS_AT_ONCE, Connection
from adapters.telegram.fetching import fetch_file
from adapters.telegram.formatting import MAX_UNITS, render
from adapters.telegram.polling import Poller, backoff, problem_of
from adapters.telegram.requests import NO_ADDRESS
from adapters.telegram.sending import create_topic, edit_part, edit_pause, send_part, show_typing
from adapters.telegram.updates import PLATFORM, Me, inbound

__all__ = ["SEND_SECONDS", "STOP_GRACE", "TelegramAdapter"]

START_SECONDS = 20.0
SEND_SECONDS = 30.0
TYPING_SECONDS = 5.0
CONNECT_SECONDS = 20.0
#: Stopping may take the grace and three times the time to close: less than five seconds in all.
STOP_GRACE = 2.5
CLOSE_SECONDS = 0.75
#: Seconds until a part is tried again that came before the adapter was started or after it was stopped.
_AWAY = 5.0
#: The same when it found no free place among the requests in flight.
_CROWDED = 1.0

_CAPABILITIES = Capabilities(
    max_length=MAX_UNITS, length_unit="utf16", threads=True, idempotent_send=False, typing=True, edits=True
)

_log = structlog.get_logger(__name__)


class TelegramAdapter:
    """One bot. `base_url` is what the token is appended to, also for a local server: `https://api.telegram.org/bot`."""

    def __init__(self, account: str, token: str, base_url: str = "https://api.telegram.org/bot") -> None:
        self._account = account
        self._token = token
        self._base_url = base_url
        self._state = AdapterState.STOPPED
        self._problem: str | None = None
        self._connection: Connection | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(SENDS_AT_ONCE)
        self._fetches = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._open = asyncio.Event()
        self._in_flight: set[asyncio.Timeout] = set()
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self._stopping = False
        self._reported: Report | None = None

    @property
    def platform(self) -> str:
        """Always `telegram`."""
        return PLATFORM

    @property
    def account(self) -> str:
        """Name of the account, as in places."""
        return self._account

    @property
    def capabilities(self) -> Capabilities:
        """What Telegram can do."""
        return _CAPABILITIES

    @property
    def state(self) -> AdapterState:
        """Where it stands now."""
        return self._state

    @property
    def problem(self) -> str | None:
        """One sentence for people while it is not connected, else None."""
        return self._problem

    def report_to(self, report: Report) -> None:
        """Say who keeps a record of updates that cannot be read; without it they are only logged."""
        self._reported = report

    async def start(self, deliver: Deliver) -> None:
        """Connect and begin to deliver; see the module's contract."""
        if self._connection is not None:
            raise RuntimeError("This Telegram adapter was started already; stop it first.")
        self._stopping = False
        self._report(AdapterState.STARTING, None)
        try:
            self._connection = connection = await Connection.open(self._token, self._base_url)
            me = await self._identify(connection)
            self._open.set()
        except InvalidToken:
            await self.stop()
            # The library's error quotes the token, so it is not kept as the cause.
            raise StartError(
                f"Telegram refused the token of account {self._account!r} at {self._base_url}; "
                "check both under platforms.telegram."
            ) from None
        except BaseException:
            await self.stop()
            raise
        self._receiving = asyncio.create_task(self._receive(connection, me, deliver), name="telegram receiver")

    async def stop(self) -> None:
        """Stop receiving at once, let sends in flight end within `STOP_GRACE`, free everything."""
        self._stopping = True
        self._open.clear()
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving], timeout=CLOSE_SECONDS)
            self._receiving = None
        await self._sent_within(STOP_GRACE)
        for bound in self._in_flight:
            if not bound.expired():
                bound.reschedule(asyncio.get_running_loop().time())
        await self._sent_within(CLOSE_SECONDS)
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(TimeoutError, TelegramError, httpx.HTTPError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.close()
        self._report(AdapterState.STOPPED, None)

    def render(self, markdown: str) -> list[OutboundPart]:
        """Format and split an answer; see `adapters.telegram.formatting`."""
        return render(markdown)

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part; see `adapters.telegram.sending` for which error means what."""
        async with self._request() as connection:
            return await send_part(connection.bot, place, part)

    async def edit(self, place: Place, message_id: str, part: OutboundPart) -> None:
        """Edit a message of the bot; see `adapters.telegram.sending` for which error means what."""
        async with self._request() as connection:
            await edit_part(connection.bot, place, message_id, part)

    def edit_pause(self, place: Place) -> float:
        """Seconds from one edit to the next."""
        return edit_pause(place)

    async def fetch(self, reference: str, write: Write) -> None:
        """Fetch a file by its Telegram id; see `adapters.telegram.fetching`."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._open.wait()
        except TimeoutError as error:
            raise FetchError("the Telegram account is not connected", again=True) from error
        async with self._fetches:
            connection = self._connection
            if connection is None:
                raise FetchError("the Telegram account is not connected", again=True)
            await fetch_file(connection, reference, write)

    async def open_thread(self, place: Place, title: str) -> Place:
        """Create a forum topic named `title`, cut to 128 characters; raises a SendError."""
        async with self._request() as connection:
            return await create_topic(connection.bot, place, title)

    async def typing(self, place: Place) -> None:
        """Show the typing mark for some seconds, if it is no trouble."""
        connection = self._connection
        if connection is None or self._stopping or self._slots.locked():
            return
        try:
            async with asyncio.timeout(TYPING_SECONDS), self._slots:
                await show_typing(connection.bot, place)
        except Exception as error:  # noqa: BLE001  (decoration: no failure of it may reach a turn)
            _log.debug("telegram_typing_failed", reason=connection.without_token(str(error)))

    async def _sent_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_sent.wait()

    @contextlib.asynccontextmanager
    async def _request(self) -> AsyncIterator[Connection]:
        """Bound a request in number and time; only SendErrors leave it."""
        connection = self._connection
        if connection is None or self._stopping:
            raise RetryLater("The Telegram account is not connected.", _AWAY)
        sending = False
        try:
            async with asyncio.timeout(SEND_SECONDS) as bound:
                self._in_flight.add(bound)
                self._all_sent.clear()
                try:
                    async with self._slots:
                        sending = True
                        yield connection
                finally:
                    self._in_flight.discard(bound)
                    if not self._in_flight:
                        self._all_sent.set()
        except SendError:
            raise
        except TimeoutError as error:
            if not sending:
                raise RetryLater("Too much is being sent to Telegram at once.", _CROWDED) from error
            raise UnknownOutcome("Telegram did not answer in time; nobody knows whether it was sent.") from error
        except Exception as error:
            reason = connection.without_token(f"{type(error).__name__}: {error}")
            raise UnknownOutcome(f"Sending failed in an unforeseen way ({reason}).") from error

    async def _identify(self, connection: Connection) -> Me | None:
        """Return who we are, or None when Telegram cannot be asked now."""
        try:
            async with asyncio.timeout(START_SECONDS):
                me = await connection.identify()
        except InvalidToken:
            raise
        except Exception as error:
            if isinstance(error.__cause__, NO_ADDRESS):
                raise StartError(f"{self._base_url!r} is no address of a Telegram server: check base_url.") from error
            self._report(AdapterState.RETRYING, connection.without_token(problem_of(error)))
            return None
        self._report(AdapterState.CONNECTED, None)
        return me

    async def _receive(self, connection: Connection, me: Me | None, deliver: Deliver) -> None:
        """Receive until cancelled; should it end by itself, the state says so, and whoever started us starts again."""
        try:
            await self._poll(connection, me, deliver)
        except Exception as error:  # noqa: BLE001  (nobody awaits this task: it must not end without a word)
            reason = connection.without_token(f"{type(error).__name__}: {error}")
            _log.error("telegram_receiver_ended", account=self._account, reason=reason)
            self._report(AdapterState.STOPPED, f"Receiving from Telegram has ended by itself ({reason}).")

    async def _poll(self, connection: Connection, me: Me | None, deliver: Deliver) -> None:
        """Find out who we are, however long it takes, then poll."""
        failures = 0
        while me is None:
            failures += 1
            await asyncio.sleep(backoff(failures))
            try:
                me = await self._identify(connection)
            except InvalidToken as error:
                self._report(AdapterState.FAILED, problem_of(error))
        known = me

        def parse(update: Mapping[str, Any]) -> InboundMessage | None:
            return inbound(update, known, self._account, time.time())

        async def set_aside(reason: str, raw: str) -> None:
            if self._reported is None:
                _log.error("telegram_update_set_aside", account=self._account, reason=reason, update=raw)
            else:
                await self._reported(Unreadable(PLATFORM, self._account, reason, raw))

        await Poller(connection, parse, deliver, self._report, set_aside).run()

    def _report(self, state: AdapterState, problem: str | None) -> None:
        if state is not self._state:
            _log.info("telegram_state", account=self._account, state=state.value, problem=problem)
        self._state = state
        self._problem = problem
