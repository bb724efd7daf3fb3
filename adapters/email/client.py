"""The mail adapter: one mailbox, from `start` to `stop`.

Contract: as `adapters.base`. `start` returns when the mailbox is open and the sending server took the password, or,
when a server cannot be reached, at once with the state `RETRYING`: connecting goes on in the background. Only what a
changed configuration mends is a `StartError`. `stop` ends the wait for mail at once, gives sends in flight
`STOP_GRACE` seconds and ends those that are left as the one kind of error that is true of them.
Limits: four mails are sent and two attachments fetched at a time; a send ends within `SEND_SECONDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from typing import Final

import structlog

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
from adapters.email.account import MailAccount, tls_context
from adapters.email.composing import Letter, answer, opening
from adapters.email.credentials import NoToken
from adapters.email.fetching import fetch_part
from adapters.email.formatting import MAX_CHARACTERS, render
from adapters.email.imap import FetchedMail, ImapError
from adapters.email.mails import PLATFORM, Arrival, NotForUs, inbound
from adapters.email.receiving import Misconfigured, Receiver, unreachable
from adapters.email.sending import Transmission, login_refusal

__all__ = ["SEND_SECONDS", "STOP_GRACE", "EmailAdapter"]

SEND_SECONDS: Final = 30.0
#: Stopping may take the grace and twice the time to close: less than five seconds in all.
STOP_GRACE: Final = 2.5
CLOSE_SECONDS: Final = 0.75
SENDS_AT_ONCE: Final = 4
#: Each is a connection of its own, and providers allow few of them.
FETCHES_AT_ONCE: Final = 2
#: Seconds until a part is tried again that came before the adapter was started or after it was stopped.
_AWAY: Final = 5.0
#: The same when it found no free place among the mails in flight.
_CROWDED: Final = 1.0

_CAPABILITIES: Final = Capabilities(
    max_length=MAX_CHARACTERS,
    length_unit="characters",
    threads=True,
    idempotent_send=False,
    typing=False,
    edits=False,
)

_log = structlog.get_logger(__name__)


class EmailAdapter:
    """One mailbox."""

    def __init__(self, account: str, mailbox: MailAccount) -> None:
        self._account = account
        self._mailbox = mailbox
        self._state = AdapterState.STOPPED
        self._problem: str | None = None
        self._context: ssl.SSLContext | None = None
        self._reported_to: Report | None = None
        self._receiver: Receiver | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(SENDS_AT_ONCE)
        self._fetches = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._in_flight: set[asyncio.Timeout] = set()
        self._all_sent = asyncio.Event()
        self._all_sent.set()

    @property
    def platform(self) -> str:
        """Always `email`."""
        return PLATFORM

    @property
    def account(self) -> str:
        """Name of the account, as in places."""
        return self._account

    @property
    def capabilities(self) -> Capabilities:
        """What mail can do."""
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
        """Say, before `start`, who keeps a record of mails that cannot be read."""
        self._reported_to = report

    async def start(self, deliver: Deliver) -> None:
        """Connect and begin to deliver; see the module's contract."""
        if self._context is not None:
            raise RuntimeError("This mail adapter was started already; stop it first.")
        self._report(AdapterState.STARTING, None)
        try:
            self._context = context = await asyncio.to_thread(tls_context)
            self._receiver = receiver = Receiver(self._mailbox, context, self._parse, deliver, self._report)
            receiver.keep = self._keep if self._reported_to is not None else None
            await self._first_connect(receiver)
            refusal = await login_refusal(self._mailbox, context)
        except Misconfigured as error:
            await self.stop()
            raise StartError(str(error)) from error
        except BaseException:
            await self.stop()
            raise
        if refusal is not None:
            await self.stop()
            raise StartError(refusal)
        self._receiving = asyncio.create_task(self._receive(receiver), name="email receiver")

    async def stop(self) -> None:
        """Stop receiving at once, let sends in flight end within `STOP_GRACE`, free everything."""
        self._context = None
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving], timeout=CLOSE_SECONDS)
            self._receiving = None
        await self._sent_within(STOP_GRACE)
        for bound in self._in_flight:
            if not bound.expired():
                bound.reschedule(asyncio.get_running_loop().time())
        await self._sent_within(CLOSE_SECONDS)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.disconnect()
        self._report(AdapterState.STOPPED, None)

    def render(self, markdown: str) -> list[OutboundPart]:
        """Format and split an answer; see `adapters.email.formatting`."""
        return render(markdown)

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part; see `adapters.email.sending` for which error means what."""
        letter = answer(self._mailbox, place, part)
        await self._transmit(letter)
        return Receipt(letter.message_id)

    async def fetch(self, reference: str, write: Write) -> None:
        """Fetch an attachment by its number in the mailbox; see `adapters.email.fetching`."""
        async with self._fetches:
            context = self._context
            if context is None:
                raise FetchError("the mail account is not connected", again=True)
            await fetch_part(self._mailbox, context, reference, write)

    async def open_thread(self, place: Place, title: str) -> Place:
        """Send a mail that begins a thread with `title` as its subject; raises a SendError."""
        letter = opening(self._mailbox, place, title)
        await self._transmit(letter)
        return Place(place.platform, place.account, place.chat_type, place.chat, letter.message_id, title or None)

    async def typing(self, place: Place) -> None:
        """Mail shows nothing of the kind."""

    async def _sent_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_sent.wait()

    async def _transmit(self, letter: Letter) -> None:
        """Send a mail, bounded in number and time; only SendErrors leave it."""
        context = self._context
        if context is None:
            raise RetryLater("The mail account is not connected.", _AWAY)
        transmission: Transmission | None = None
        try:
            async with self._bounded(), self._slots:
                transmission = Transmission(self._mailbox, context)
                await transmission.run(letter)
        except SendError:
            raise
        except TimeoutError as error:
            if transmission is None:
                raise RetryLater("Too many mails are being sent at once.", _CROWDED) from error
            raise transmission.interrupted() from error
        except Exception as error:
            raise UnknownOutcome(f"Sending failed in an unforeseen way ({type(error).__name__}: {error}).") from error

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        """End what is done here after `SEND_SECONDS`, or when `stop` says so."""
        async with asyncio.timeout(SEND_SECONDS) as bound:
            self._in_flight.add(bound)
            self._all_sent.clear()
            try:
                yield
            finally:
                self._in_flight.discard(bound)
                if not self._in_flight:
                    self._all_sent.set()

    async def _receive(self, receiver: Receiver) -> None:
        """Receive until cancelled; should it end by itself, the state says so, and whoever started us starts again."""
        try:
            await receiver.run()
        except Exception as error:  # noqa: BLE001  (nobody awaits this task: it must not end without a word)
            reason = f"{type(error).__name__}: {error}"
            _log.error("email_receiver_ended", account=self._account, reason=reason)
            self._report(AdapterState.STOPPED, f"Receiving mail has ended by itself ({reason}).")

    async def _keep(self, reason: str, raw: str) -> None:
        if self._reported_to is not None:
            await self._reported_to(Unreadable(PLATFORM, self._account, reason, raw))

    async def _first_connect(self, receiver: Receiver) -> None:
        try:
            await receiver.connect()
        except NoToken as error:
            self._report(AdapterState.RETRYING, str(error))
        except ImapError as error:
            self._report(AdapterState.RETRYING, unreachable(self._mailbox.imap, error))
        else:
            self._report(AdapterState.CONNECTED, None)

    def _parse(self, mail: FetchedMail, uid_validity: int) -> InboundMessage | NotForUs:
        return inbound(mail, self._mailbox, Arrival(self._account, uid_validity, time.time()))

    def _report(self, state: AdapterState, problem: str | None) -> None:
        if state is not self._state:
            _log.info("email_state", account=self._account, state=state.value, problem=problem)
        self._state = state
        self._problem = problem
