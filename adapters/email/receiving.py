"""The folder watched: every new mail handed on at least once, in order per correspondent, and marked only afterwards.

Contract: a mail is new until it carries our mark, a keyword; where a server keeps no keywords of others, until it
is read. The mark is set when `deliver` has returned for the mail, so a mail whose delivery failed, or that a crash kept
from being marked, is found again, with the same key. What was delivered is not handed on twice by this process.
Correspondents do not wait for each other. Mails that are not for us, or cannot be understood, are logged and marked.
New mail is told by the server (IDLE, begun anew every `IDLE_SECONDS`), or looked for every `POLL_SECONDS` where it
cannot. Every failure waits before the next try.
Limits: mails of the last `DAYS` days, so that an old mailbox does not come back to life; `BATCH` mails at a time, of
each its first `MOST_BYTES` and, where there is more, what parts it has; one delivery is given `DELIVER_SECONDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from adapters.base import AdapterState, Deliver, InboundMessage, Verdict
from adapters.email.account import MailAccount, Server, refused_login
from adapters.email.credentials import NoToken, credentials
from adapters.email.imap import CommandRefused, ConnectionLost, FetchedMail, Folder, ImapClient, ImapError
from adapters.email.mails import NotForUs

__all__ = ["Misconfigured", "Receiver", "unreachable"]

#: Shorter than the 29 minutes after which servers may hang up, and than what most routers remember of a silent line.
IDLE_SECONDS: Final = 9 * 60.0
POLL_SECONDS: Final = 30.0
DELIVER_SECONDS: Final = 60.0
DAYS: Final = 14
BATCH: Final = 20
MOST_BYTES: Final = 2_000_000
KEYWORD: Final = "$Threadline"
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 30.0
#: How long until refused secrets are tried again: only a person can mend them.
_REFUSED_WAIT: Final = 60.0
_LOGGED_BYTES: Final = 4000
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Answers to a login that mean "not now" rather than "never".
_NOT_NOW: Final = frozenset({"UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG", "OVERQUOTA"})

_log = structlog.get_logger(__name__)

Parse = Callable[[FetchedMail, int], InboundMessage | NotForUs]
Keep = Callable[[str, str], Awaitable[None]]
Tell = Callable[[AdapterState, str | None], None]


class Misconfigured(Exception):
    """Only a change of the configuration mends it: a sentence that says which."""


class _NotKept(Exception):
    """A mail could neither be read nor recorded."""


class Receiver:
    """Connects, fetches, delivers and marks, until cancelled."""

    def __init__(
        self, account: MailAccount, context: ssl.SSLContext, parse: Parse, deliver: Deliver, tell: Tell
    ) -> None:
        self._account = account
        self._context = context
        self._parse = parse
        self._deliver = deliver
        self._tell = tell
        self._open: tuple[ImapClient, Folder] | None = None
        self._uid_validity = 0
        self._taken: dict[int, bool] = {}
        self._failures = 0
        self._pushes = True
        #: Keeps a record of a mail that cannot be read (reason, mail); without it such mails are only logged.
        self.keep: Keep | None = None

    async def connect(self) -> None:
        """Open the folder; raises Misconfigured or ImapError."""
        await self.disconnect()
        client = await ImapClient.open(self._account.imap, self._context)
        try:
            await self._log_in(client)
            folder = await self._select(client)
        except CommandRefused as error:
            await client.close()
            raise ConnectionLost(f"it says: {error}") from error
        except BaseException:
            await client.close()
            raise
        if folder.uid_validity != self._uid_validity:
            self._taken.clear()
            self._uid_validity = folder.uid_validity
        self._open = client, folder

    async def disconnect(self) -> None:
        """Close the connection, if there is one."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened[0].close()

    async def run(self) -> None:
        """Receive for ever; ends only by cancellation."""
        while True:
            try:
                if self._open is None:
                    await self.connect()
                await self._watch()
            except Exception as error:  # noqa: BLE001  (a loop that must outlive whatever one connection meets)
                await self.disconnect()
                await self._failed(error)

    async def _log_in(self, client: ImapClient) -> None:
        try:
            await client.login(await credentials(self._account))
        except NoToken as error:
            if error.lasting:
                raise Misconfigured(str(error)) from error
            raise
        except CommandRefused as error:
            if error.code in _NOT_NOW:
                raise
            if error.code == "PRIVACYREQUIRED":
                raise Misconfigured(
                    f"The mail server {self._account.imap.host} takes passwords only over an encrypted connection: "
                    "set imap_tls under platforms.email to tls or starttls."
                ) from error
            raise Misconfigured(refused_login(self._account, self._account.imap, str(error))) from error

    async def _select(self, client: ImapClient) -> Folder:
        try:
            folder = await client.select(self._account.folder)
        except CommandRefused as error:
            if error.code in _NOT_NOW:
                raise
            raise Misconfigured(
                f"The folder {self._account.folder!r} of {self._account.address} cannot be opened ({error}); "
                "check platforms.email.folder."
            ) from error
        if not folder.writable:
            raise Misconfigured(
                f"The folder {self._account.folder!r} of {self._account.address} can only be read, so nothing in it "
                "can be marked as handled; choose another one with platforms.email.folder."
            )
        return folder

    async def _failed(self, error: Exception) -> None:
        self._failures += 1
        refused = isinstance(error, Misconfigured)
        if refused or isinstance(error, NoToken):
            problem = str(error)
        elif isinstance(error, ImapError):
            problem = unreachable(self._account.imap, error)
        else:
            problem = f"Receiving mail fails in an unforeseen way ({error!r}); this is tried again until it works."
        _log.warning("email_receiving_failed", problem=problem, failures=self._failures)
        self._tell(AdapterState.FAILED if refused else AdapterState.RETRYING, problem)
        await asyncio.sleep(_REFUSED_WAIT if refused else _backoff(self._failures))

    async def _watch(self) -> None:
        """Take what is new, wait for more; ends with the connection."""
        while self._open is not None:
            client, folder = self._open
            problem, more = await self._round(client, folder)
            if problem is not None:
                self._failures += 1
                self._tell(AdapterState.RETRYING, problem)
                await asyncio.sleep(_backoff(self._failures))
                continue
            self._failures = 0
            self._tell(AdapterState.CONNECTED, None)
            if not more:
                await self._news(client)

    async def _news(self, client: ImapClient) -> None:
        """Return when there may be new mail."""
        if self._pushes and "IDLE" in client.capabilities:
            try:
                await client.idle(IDLE_SECONDS)
            except CommandRefused as error:
                _log.warning("email_idle_refused", host=self._account.imap.host, reason=str(error))
                self._pushes = False
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await client.news.wait()
        await client.noop()

    async def _round(self, client: ImapClient, folder: Folder) -> tuple[str | None, bool]:
        """Deliver and mark a batch; returns what went wrong, and whether there is more to do at once."""
        found = await client.search(_criteria(folder))
        self._taken = {uid: self._taken[uid] for uid in found if uid in self._taken}
        fresh = [uid for uid in found if uid not in self._taken]
        lines: dict[str, list[tuple[int, InboundMessage]]] = {}
        problem: str | None = None
        for uid in fresh[:BATCH]:
            try:
                message = await self._read(client, folder, uid)
            except _NotKept as error:
                problem = str(error)
                continue
            if message is not None:
                lines.setdefault(message.place.chat, []).append((uid, message))
        async with asyncio.TaskGroup() as tasks:
            deliveries = [tasks.create_task(self._deliver_in_order(line)) for line in lines.values()]
        await self._mark(client, folder)
        problems = [problem, *(done.result() for done in deliveries)]
        progress = any(uid in self._taken for uid in fresh)
        return next(filter(None, problems), None), progress and len(fresh) > BATCH

    async def _read(self, client: ImapClient, folder: Folder, uid: int) -> InboundMessage | None:
        """Fetch and parse one mail; what is no message for the gateway counts as taken."""
        mail = await client.fetch(uid, MOST_BYTES)
        if mail is None:
            return None
        if not mail.whole:
            mail = replace(mail, structure=await client.structure(uid))
        try:
            message = self._parse(mail, folder.uid_validity)
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, it must not block the others)
            await self._set_aside(mail, str(error))
            return None
        if isinstance(message, NotForUs):
            _log.info("email_ignored", uid=uid, reason=message.reason)
            self._taken[uid] = False
            return None
        return message

    async def _set_aside(self, mail: FetchedMail, reason: str) -> None:
        """Leave a visible record of a mail that nobody will see otherwise."""
        raw = mail.raw[:_LOGGED_BYTES].decode("ascii", "backslashreplace")
        _log.error("email_set_aside", uid=mail.uid, reason=reason, mail=raw)
        if self.keep is not None:
            try:
                async with asyncio.timeout(DELIVER_SECONDS):
                    await self.keep(reason, raw)
            except Exception as error:
                why = str(error) or type(error).__name__
                raise _NotKept(
                    f"A mail that cannot be read could not be recorded ({why}); it is tried again."
                ) from error
        self._taken[mail.uid] = False

    async def _deliver_in_order(self, line: list[tuple[int, InboundMessage]]) -> str | None:
        """Deliver the mails of one correspondent; stops at the first that fails and returns what is wrong."""
        for uid, message in line:
            try:
                async with asyncio.timeout(DELIVER_SECONDS):
                    verdict = await self._deliver(message)
            except Exception as error:  # noqa: BLE001  (any failure means: not durable, so not marked)
                _log.warning("email_delivery_failed", uid=uid, error=repr(error))
                reason = str(error) or type(error).__name__
                return f"A mail could not be taken in ({reason}); it stays in the mailbox and is tried again."
            self._taken[uid] = verdict is not Verdict.DENIED
        return None

    async def _mark(self, client: ImapClient, folder: Folder) -> None:
        """Mark what was taken; what nobody here has read stays unread, so that people see it in the mailbox."""
        read = [uid for uid, by_us in self._taken.items() if by_us]
        unread = [uid for uid, by_us in self._taken.items() if not by_us]
        flags = KEYWORD if folder.any_keyword else "\\Seen"
        for uids, wanted in ((read, f"{flags} \\Seen" if folder.any_keyword else flags), (unread, flags)):
            if uids:
                await client.mark(uids, wanted)


def unreachable(server: Server, error: ImapError) -> str:
    """Return a sentence for people about a server that does not work now."""
    return f"The mail server {server.host} cannot be reached ({error}); this is tried again until it works."


def _criteria(folder: Folder) -> str:
    since = datetime.now(UTC).date() - timedelta(days=DAYS)
    new = f"UNKEYWORD {KEYWORD}" if folder.any_keyword else "UNSEEN"
    return f"{new} UNDELETED UNDRAFT SINCE {since.day}-{_MONTHS[since.month - 1]}-{since.year}"


def _backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: 1, 2, 4 ... 30, less up to a third at random."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return longest * random.uniform(0.67, 1.0)  # noqa: S311  (spreads load, guards nothing)
