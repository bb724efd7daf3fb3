"""The Slack adapter: one installation of one app, from `start` to `stop`.

Contract: as `adapters.base`. `start` returns when Slack has told who the app is and the first socket is up, or, when
Slack cannot be reached, at once with the state `RETRYING`: connecting goes on in the background. Only what a changed
configuration mends is a `StartError`. `resume_from` tells, before `start`, from where to ask for what was missed.
`stop` ends receiving at once (what is not confirmed stays with Slack), gives sends in flight `STOP_GRACE` seconds and
ends those that are left with `UnknownOutcome`.
Limits: `SENDS_AT_ONCE` requests at a time; a send ends within `SEND_SECONDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

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
    SendError,
    StartError,
    UnknownOutcome,
    Write,
)
from adapters.slack.absence import Absence
from adapters.slack.app import Aside, make_app
from adapters.slack.catching import CatchUp, Marks
from adapters.slack.connection import SENDS_AT_ONCE, Connection
from adapters.slack.directory import Directory
from adapters.slack.events import PLATFORM, Rules
from adapters.slack.fetching import fetch_file
from adapters.slack.fields import is_ts
from adapters.slack.formatting import MAX_CHARACTERS, render
from adapters.slack.intake import Exchange, Intake
from adapters.slack.liveness import Echoes
from adapters.slack.origin import Me
from adapters.slack.problems import deaf_to, final_problem, passing_problem
from adapters.slack.receiving import Receiver, backoff
from adapters.slack.responses import Responses
from adapters.slack.sending import EDIT_PAUSE, Sender
from adapters.slack.sockets import Line

__all__ = ["SEND_SECONDS", "STOP_GRACE", "SlackAdapter"]

START_SECONDS = 20.0
FIRST_SOCKET_SECONDS = 10.0
SEND_SECONDS = 30.0
TYPING_SECONDS = 5.0
#: Stopping may take the grace and the times to close: less than five seconds in all.
STOP_GRACE = 2.5
CLOSE_SECONDS = 0.75
FETCHES_AT_ONCE = 4
#: Seconds until a part is tried again that came before the adapter was started or after it was stopped.
_AWAY = 5.0
#: The same when it found no free place among the requests in flight.
_CROWDED = 1.0
_STATUS = "is thinking..."

_CAPABILITIES = Capabilities(
    max_length=MAX_CHARACTERS, length_unit="characters", threads=True, idempotent_send=False, typing=True, edits=True
)

_log = structlog.get_logger(__name__)


class SlackAdapter:
    """One app in one workspace or organization. `base_url` is the address of the Web API.

    reply_in_thread: a post in a channel is answered in the thread that it begins. dm_threads: threads in direct chats
    are conversations of their own; Slack's assistant threads always are.
    """

    def __init__(  # noqa: PLR0913  (what the settings of an account say)
        self,
        account: str,
        bot_token: str,
        app_token: str,
        base_url: str = "https://slack.com/api/",
        *,
        reply_in_thread: bool = True,
        dm_threads: bool = False,
    ) -> None:
        self._rules = Rules(account, reply_in_thread, dm_threads)
        self._bot_token = bot_token
        self._app_token = app_token
        self._base_url = base_url
        self._exchange = Exchange.of(app_token, base_url)
        self._state = AdapterState.STOPPED
        self._problem: str | None = None
        self._connection: Connection | None = None
        self._directory: Directory | None = None
        self._sender: Sender | None = None
        self._responses = Responses(lambda _: False)
        self._intake: Intake | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._reported_to: Report | None = None
        self._settled = asyncio.Event()
        self._echoes = Echoes()
        self._marks = Marks()
        self._since: float | None = None
        self._open = asyncio.Event()
        self._fetches = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._slots = asyncio.Semaphore(SENDS_AT_ONCE)
        self._in_flight: set[asyncio.Timeout] = set()
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self._stopping = False

    @property
    def platform(self) -> str:
        """Always `slack`."""
        return PLATFORM

    @property
    def account(self) -> str:
        """Name of the account, as in places."""
        return self._rules.account

    @property
    def capabilities(self) -> Capabilities:
        """What Slack can do."""
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
        """Say, before `start`, who keeps a record of events that cannot be read."""
        self._reported_to = report

    def resume_from(self, last: Mapping[Place, str], since: float | None = None) -> None:
        """Say, before `start`, which message is the last known one in each place; see `adapters.slack.catching`."""
        for place, message_id in last.items():
            self._marks.note(place, message_id)
        self._since = since

    async def start(self, deliver: Deliver) -> None:
        """Connect and begin to deliver; see the module's contract."""
        if self._connection is not None:
            raise RuntimeError("This Slack adapter was started already; stop it first.")
        self._stopping = False
        self._settled.clear()
        self._report(AdapterState.STARTING, None)
        self._connection = connection = Connection(self._bot_token, self._app_token, self._base_url)
        self._responses = Responses(connection.trusts)
        self._sender = Sender(connection.web, self.account, self._responses)
        self._open.set()
        me: Me | None = None
        url: str | None = None
        try:
            async with asyncio.timeout(START_SECONDS):
                me = await self._identify(connection)
                url = await self._first_socket(connection)
        except StartError:
            await self.stop()
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, it may pass by itself)
            self._report(AdapterState.RETRYING, connection.without_secrets(passing_problem(error)))
        except BaseException:
            await self.stop()
            raise
        self._receiving = asyncio.create_task(self._receive(connection, me, url, deliver), name="slack receiver")
        if url is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), FIRST_SOCKET_SECONDS)

    async def stop(self) -> None:
        """Stop receiving at once, let sends in flight end within `STOP_GRACE`, free everything."""
        self._stopping = True
        self._open.clear()
        sending = asyncio.create_task(self._end_sends())
        await self._end_receiving()
        await sending
        connection, self._connection = self._connection, None
        directory, self._directory = self._directory, None
        self._sender = None
        if directory is not None:
            await directory.close()
        if connection is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.close()
        self._report(AdapterState.STOPPED, None)

    def render(self, markdown: str) -> list[OutboundPart]:
        """Format and split an answer; see `adapters.slack.formatting`."""
        return render(markdown)

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part; see `adapters.slack.sending` for which error means what."""
        async with self._request() as sender:
            receipt = await sender.send(place, part)
        if is_ts(receipt.message_id):
            self._echoes.posted(place.chat.rpartition("/")[2], receipt.message_id)
        return receipt

    async def edit(self, place: Place, message_id: str, part: OutboundPart) -> None:
        """Edit a message of the app; see `adapters.slack.sending` for which error means what."""
        async with self._request() as sender:
            await sender.edit(place, message_id, part)

    def edit_pause(self, _place: Place) -> float:
        """Seconds from one edit to the next."""
        return EDIT_PAUSE

    async def fetch(self, reference: str, write: Write) -> None:
        """Fetch a file by its Slack id; see `adapters.slack.fetching`."""
        try:
            async with asyncio.timeout(FIRST_SOCKET_SECONDS):
                await self._open.wait()
        except TimeoutError as error:
            raise FetchError("the Slack account is not connected", again=True) from error
        async with self._fetches:
            connection = self._connection
            if connection is None:
                raise FetchError("the Slack account is not connected", again=True)
            await fetch_file(connection, reference, write)

    async def open_thread(self, place: Place, title: str) -> Place:
        """Post `title` for a thread to hang on; raises a SendError.

        In a direct chat whose threads are no conversations of their own, the chat itself is the place of what is said
        there.
        """
        async with self._request() as sender:
            ts = await sender.open_thread(place, title)
        self._echoes.posted(place.chat.rpartition("/")[2], ts)
        thread = "" if place.private and not self._rules.dm_threads else ts
        return Place(place.platform, place.account, place.chat_type, place.chat, thread, place.name)

    async def typing(self, place: Place) -> None:
        """Show in an assistant thread that an answer is being made; Slack has no other place for it."""
        sender = self._sender
        if sender is None or self._stopping or self._slots.locked() or not (place.private and place.thread):
            return
        try:
            async with asyncio.timeout(TYPING_SECONDS), self._slots:
                await sender.show_status(place, _STATUS)
        except Exception as error:  # noqa: BLE001  (decoration: no failure of it may reach a turn)
            _log.debug("slack_status_failed", reason=type(error).__name__)

    async def _end_receiving(self) -> None:
        intake, self._intake = self._intake, None
        if intake is not None:
            await intake.close()
        receiving, self._receiving = self._receiving, None
        if receiving is not None:
            receiving.cancel()
            await asyncio.wait([receiving], timeout=STOP_GRACE)
        if intake is not None:
            self._exchange.leave(intake)

    async def _end_sends(self) -> None:
        await self._sent_within(STOP_GRACE)
        for bound in self._in_flight:
            if not bound.expired():
                bound.reschedule(asyncio.get_running_loop().time())
        await self._sent_within(CLOSE_SECONDS)

    async def _sent_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_sent.wait()

    @contextlib.asynccontextmanager
    async def _request(self) -> AsyncIterator[Sender]:
        """Bound a request in number and time; only SendErrors leave it."""
        sender = self._sender
        if sender is None or self._stopping:
            raise RetryLater("The Slack account is not connected.", _AWAY)
        sending = False
        try:
            async with asyncio.timeout(SEND_SECONDS) as bound:
                self._in_flight.add(bound)
                self._all_sent.clear()
                try:
                    async with self._slots:
                        sending = True
                        yield sender
                finally:
                    self._in_flight.discard(bound)
                    if not self._in_flight:
                        self._all_sent.set()
        except SendError:
            raise
        except TimeoutError as error:
            if not sending:
                raise RetryLater("Too much is being sent to Slack at once.", _CROWDED) from error
            raise UnknownOutcome("Slack did not answer in time; nobody knows whether it was sent.") from error
        except Exception as error:
            raise UnknownOutcome(f"Sending failed in an unforeseen way ({error!r}).") from error

    async def _identify(self, connection: Connection) -> Me:
        """Return who we are; raises StartError for what only a changed configuration mends."""
        try:
            me, scopes = await connection.identify()
        except Exception as error:
            self._refuse(error, "bot_token")
            raise
        if scopes is not None:
            useless, missing = deaf_to(scopes, self.account)
            if useless is not None:
                raise StartError(useless)
            if missing:
                _log.warning("slack_scopes_missing", account=self.account, not_told_of=missing)
        return me

    async def _first_socket(self, connection: Connection) -> str:
        try:
            return await connection.open_socket()
        except Exception as error:
            self._refuse(error, "app_token")
            raise

    def _refuse(self, error: Exception, key: str) -> None:
        problem = final_problem(error, self.account, key)
        if problem is not None:
            # The library's error may quote what was sent, so it is not kept as the cause.
            raise StartError(problem) from None

    async def _receive(self, connection: Connection, me: Me | None, url: str | None, deliver: Deliver) -> None:
        """Receive until cancelled; should it end by itself, the state says so, and whoever started us starts again."""
        try:
            await self._find_out_and_receive(connection, me, url, deliver)
        except Exception as error:  # noqa: BLE001  (nobody awaits this task: it must not end without a word)
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            reason = connection.without_secrets(f"{type(cause).__name__}: {cause}")
            _log.error("slack_receiver_ended", account=self.account, reason=reason)
            self._report(AdapterState.STOPPED, f"Receiving from Slack has ended by itself ({reason}).")

    async def _find_out_and_receive(
        self, connection: Connection, me: Me | None, url: str | None, deliver: Deliver
    ) -> None:
        """Find out who we are, however long it takes, then receive."""
        failures = 0
        while me is None:
            failures += 1
            await asyncio.sleep(backoff(failures))
            try:
                async with asyncio.timeout(START_SECONDS):
                    me = await self._identify(connection)
            except StartError as error:
                self._report(AdapterState.FAILED, str(error))
            except Exception as error:  # noqa: BLE001  (tried until it works)
                self._report(AdapterState.RETRYING, connection.without_secrets(passing_problem(error)))
        self._directory = Directory(connection.web, own_user=me.user)
        self._intake = intake = Intake(
            me, self._rules, self._directory, self._echoes, self._marks, self._responses, deliver
        )
        self._exchange.join(intake)
        aside = Aside(self.account, self._reported_to)
        app = make_app(connection.bare, self._exchange.take, aside)

        def make_line() -> Line:
            return Line(app, self._app_token, connection.bare, aside)

        absence = Absence(CatchUp(connection.web, me, intake.take, aside), intake, self._echoes, self._since)
        try:
            await Receiver(connection, make_line, self.account, self._report, absence).run(url)
        finally:
            await absence.close()

    def _report(self, state: AdapterState, problem: str | None) -> None:
        if state is not self._state:
            _log.info("slack_state", account=self.account, state=state.value, problem=problem)
        self._state = state
        self._problem = problem
        if state is not AdapterState.STARTING:
            self._settled.set()
