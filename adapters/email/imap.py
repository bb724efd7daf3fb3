"""A small IMAP client on asyncio: what it takes to watch one folder, and no more.

Contract: one connection, one folder, one command at a time. Every command ends within `COMMAND_SECONDS`: with its
answer, with `CommandRefused` when the server said no, or with `ConnectionLost` when it said nothing or went away; after
`ConnectionLost` (or a cancelled command) the connection is of no use any more and must be closed. Whatever the server
tells of itself at any moment counts: `news` is set by every report of new mail, also one that comes along with another
answer or in the same packet as the word that idling begins, so that none is missed between a search and the next idle.
Limits: IMAP4rev1 with IDLE; lines up to 1 MiB, literals up to 4 MiB, 10,000 lines in one answer.

Why not a library: the one for asyncio would put the whole program under the GPL, and those over the standard library's
client lose reports that arrive in one packet with the word that idling begins, and wait in threads that cannot be
cancelled.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from typing import Final, TypeVar

from adapters.email.account import Server
from adapters.email.credentials import Credentials
from adapters.email.structure import skeleton
from adapters.email.wire import Line, connected, read_line, reason_of

__all__ = ["CommandRefused", "ConnectionLost", "FetchedMail", "Folder", "ImapClient", "ImapError"]

_T = TypeVar("_T")

CONNECT_SECONDS: Final = 15.0
COMMAND_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 0.5

_MOST_LINES: Final = 10_000
_COUNT: Final = re.compile(rb"\* (\d{1,10}) (EXISTS|EXPUNGE)\b", re.IGNORECASE)
_FETCH: Final = re.compile(rb"\* \d+ FETCH \((.*)\)\s*\Z", re.IGNORECASE | re.DOTALL)
_QUOTED_BODY: Final = re.compile(rb'BODY\[\](?:<0>)? "((?:[^"\\]|\\.)*)"', re.IGNORECASE | re.DOTALL)
_PART: Final = re.compile(
    rb'BODY\[[0-9.]+\](?:<\d+>)? (?:(?P<literal>\{\d+\})|"(?P<quoted>(?:[^"\\]|\\.)*)")', re.IGNORECASE | re.DOTALL
)
_STRUCTURE: Final = re.compile(rb"BODYSTRUCTURE (\(.*)", re.IGNORECASE | re.DOTALL)
_CODE: Final = re.compile(rb"\[([A-Z][A-Z0-9-]*)(?: ([^\]]*))?\]", re.IGNORECASE)


class ImapError(Exception):
    """The mailbox could not be used; says why."""


class ConnectionLost(ImapError):
    """The server cannot be reached, went away, or did not answer in time."""


class CommandRefused(ImapError):
    """The server answered no. code: its machine-readable reason, in upper case, or ''."""

    def __init__(self, words: str, code: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class Folder:
    """The open folder. any_keyword: marks of our own can be kept in it."""

    uid_validity: int
    any_keyword: bool
    writable: bool


@dataclass(frozen=True, slots=True)
class FetchedMail:
    """The first bytes of a mail, and the size of the whole.

    structure: the mail without content, but with all its parts, where that was asked for (see `structure.skeleton`).
    """

    uid: int
    raw: bytes
    size: int
    structure: Message | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing was cut off."""
        return self.size <= len(self.raw)


class ImapClient:
    """One connection. Make it with `open`, end it with `close`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._commands = 0
        self._mails = -1
        self._tag = b""
        self._answer: asyncio.Future[Line] | None = None
        self._go_ahead: asyncio.Future[bool] | None = None
        self._lines: list[Line] = []
        self._lost: str | None = None
        self.capabilities: frozenset[str] = frozenset()
        self.news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="imap reader")

    @classmethod
    async def open(cls, server: Server, context: ssl.SSLContext) -> ImapClient:
        """Connect, with TLS as the server's settings say, and learn what it can; raises ImapError."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await connected(server, context)
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise ConnectionLost(reason_of(error)) from error
        client = cls(reader, writer)
        try:
            await client._learn()
        except BaseException:
            await client.close()
            raise
        return client

    async def login(self, who: Credentials) -> None:
        """Prove who we are; raises CommandRefused for wrong secrets."""
        if who.token and "AUTH=XOAUTH2" not in self.capabilities:
            raise CommandRefused("the server takes no access tokens (XOAUTH2) here", "CANNOT")
        if who.token:
            await self._command(b"AUTHENTICATE XOAUTH2", base64.b64encode(who.xoauth2()))
        elif "AUTH=PLAIN" in self.capabilities:
            secret = base64.b64encode(b"\0".join((b"", who.username.encode(), who.secret.encode())))
            await self._command(b"AUTHENTICATE PLAIN", secret)
        elif "LOGINDISABLED" in self.capabilities:
            raise CommandRefused("the server takes passwords only over an encrypted connection", "PRIVACYREQUIRED")
        else:
            await self._command(b" ".join((b"LOGIN", _quoted(who.username), _quoted(who.secret))))
        await self._learn()

    async def select(self, folder: str) -> Folder:
        """Open a folder for reading and marking."""
        lines, end = await self._command(b"SELECT " + _quoted(_modified_utf7(folder)))
        codes = dict(_codes(line.text) for line in lines if line.text.upper().startswith(b"* OK ["))
        validity = codes.get("UIDVALIDITY", b"")
        if not validity.isdigit():
            raise CommandRefused("the server keeps no lasting numbers of mails in this folder", "")
        return Folder(
            uid_validity=int(validity),
            any_keyword=b"\\*" in codes.get("PERMANENTFLAGS", b""),
            writable=_codes(end.text)[0] != "READ-ONLY",
        )

    async def search(self, criteria: str) -> list[int]:
        """Return the UIDs that match, in order. `news` is false afterwards unless mail came meanwhile."""
        self.news.clear()
        lines, _ = await self._command(b"UID SEARCH " + criteria.encode("ascii"))
        found = [line.text.split()[2:] for line in lines if line.text.upper().startswith(b"* SEARCH")]
        return sorted({int(uid) for uids in found for uid in uids if uid.isdigit()})

    async def fetch(self, uid: int, most: int) -> FetchedMail | None:
        """Return the first `most` bytes of a mail without marking it as read, or None when it is gone."""
        lines, _ = await self._command(b"UID FETCH %d (UID RFC822.SIZE BODY.PEEK[]<0.%d>)" % (uid, most))
        for line in lines:
            match = _FETCH.match(line.text)
            if match is None or _number(match[1], b"UID") != uid or b"BODY[]" not in match[1].upper():
                continue
            raw = line.literals[0] if line.literals else b""
            if quoted := _QUOTED_BODY.search(match[1]):
                raw = re.sub(rb"\\(.)", rb"\1", quoted[1])
            return FetchedMail(uid, raw, _number(match[1], b"RFC822.SIZE") or len(raw))
        return None

    async def fetch_part(self, uid: int, section: str, offset: int, most: int) -> bytes | None:
        """Return up to `most` bytes of a part as it was sent, from `offset` on, without marking the mail as read.

        b"" behind its end; None when the mail or the part is not there.
        """
        asked = f"UID FETCH {uid} (UID BODY.PEEK[{section}]<{offset}.{most}>)"
        lines, _ = await self._command(asked.encode("ascii"))
        for line in lines:
            match = _FETCH.match(line.text)
            if match is None or _number(match[1], b"UID") != uid:
                continue
            told = _PART.search(match[1])
            if told is None:
                return b"" if offset else None
            if told["literal"] is not None:
                return line.literals[0]
            return re.sub(rb"\\(.)", rb"\1", told["quoted"])
        return None

    async def structure(self, uid: int) -> Message | None:
        """Return a mail with all its parts and without their content; None when it is gone or cannot be understood."""
        lines, _ = await self._command(b"UID FETCH %d (UID BODYSTRUCTURE)" % uid)
        for line in lines:
            match = _FETCH.match(line.text)
            told = _STRUCTURE.search(match[1]) if match is not None and _number(match[1], b"UID") == uid else None
            if told is not None:
                return skeleton(told[1], line.literals)
        return None

    async def mark(self, uids: Sequence[int], flags: str) -> None:
        """Add flags to mails."""
        numbers = ",".join(map(str, uids))
        await self._command(f"UID STORE {numbers} +FLAGS.SILENT ({flags})".encode("ascii"))

    async def noop(self) -> None:
        """Let the server report what is new."""
        await self._command(b"NOOP")

    async def idle(self, seconds: float) -> None:
        """Wait until there is news, at most `seconds`; returns at once when there was some already."""
        self._go_ahead = asyncio.get_running_loop().create_future()
        answer = self._send(b"IDLE")
        if await self._bounded(self._go_ahead):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.news.wait()
            self._write(b"DONE\r\n")
        self._judged(await self._bounded(answer))

    async def close(self) -> None:
        """Say goodbye without waiting for an answer and free the connection. Idempotent."""
        if self._lost is None:
            self._write(b"bye LOGOUT\r\n")
        self._reading.cancel()
        await asyncio.wait([self._reading])
        self._end("it was closed")
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.wait_closed()
        self._writer.transport.abort()

    async def _learn(self) -> None:
        lines, _ = await self._command(b"CAPABILITY")
        told = [line.text.upper().split()[2:] for line in lines if line.text.upper().startswith(b"* CAPABILITY")]
        self.capabilities = frozenset(word.decode("ascii", "replace") for words in told for word in words)

    async def _command(self, command: bytes, secret: bytes | None = None) -> tuple[list[Line], Line]:
        """Send a command (and what it waits for, if anything); return its untagged lines and its end."""
        if secret is not None:
            self._go_ahead = asyncio.get_running_loop().create_future()
        answer = self._send(command)
        if secret is not None and self._go_ahead is not None and await self._bounded(self._go_ahead):
            self._write(secret + b"\r\n")
            if not answer.done():
                self._go_ahead = asyncio.get_running_loop().create_future()
                if await self._bounded(self._go_ahead):
                    # It says what is wrong in a form of its own, and refuses in words once that is acknowledged.
                    self._write(b"\r\n")
        end = self._judged(await self._bounded(answer))
        return self._lines, end

    def _send(self, command: bytes) -> asyncio.Future[Line]:
        if self._lost is not None:
            raise ConnectionLost(self._lost)
        self._commands += 1
        self._tag = b"t%d" % self._commands
        self._lines = []
        self._answer = asyncio.get_running_loop().create_future()
        self._write(self._tag + b" " + command + b"\r\n")
        return self._answer

    def _write(self, data: bytes) -> None:
        if self._lost is None:
            self._writer.write(data)

    async def _bounded(self, waited_for: asyncio.Future[_T]) -> _T:
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                return await waited_for
        except TimeoutError as error:
            self._end("the server does not answer")
            raise ConnectionLost("the server does not answer") from error

    def _judged(self, end: Line) -> Line:
        status, _, words = end.text.partition(b" ")[2].partition(b" ")
        if status.upper() != b"OK":
            raise CommandRefused(words.decode("utf-8", "replace").strip(), _codes(words)[0])
        return end

    async def _read(self) -> None:
        """Take what the server says, until the connection ends."""
        try:
            while True:
                self._take(await read_line(self._reader))
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            self._end(reason_of(error))

    def _take(self, line: Line) -> None:
        if line.text.startswith(b"+"):
            self._tell_go_ahead(go_ahead=True)
        elif line.text.startswith(b"* "):
            self._count_mails(line.text)
            if len(self._lines) < _MOST_LINES:
                self._lines.append(line)
        elif line.text.split(b" ", 1)[0] == self._tag and self._answer is not None and not self._answer.done():
            self._tell_go_ahead(go_ahead=False)
            self._answer.set_result(line)

    def _count_mails(self, text: bytes) -> None:
        """Take a report of how many mails there are; the same number again is no news."""
        match = _COUNT.match(text)
        if match is None:
            return
        if match[2].upper() == b"EXPUNGE":
            self._mails -= 1
        elif int(match[1]) != self._mails:
            self._mails = int(match[1])
            self.news.set()

    def _tell_go_ahead(self, *, go_ahead: bool) -> None:
        if self._go_ahead is not None and not self._go_ahead.done():
            self._go_ahead.set_result(go_ahead)

    def _end(self, reason: str) -> None:
        """Wake up everybody who waits: nothing will come any more."""
        self._lost = self._lost or reason
        self.news.set()
        self._tell_go_ahead(go_ahead=False)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionLost(self._lost))
            # Nobody may be waiting any more; then this is no forgotten error.
            self._answer.exception()


def _number(items: bytes, name: bytes) -> int | None:
    match = re.search(rb"(?:\A|[ (])" + re.escape(name) + rb" (\d+)", items, re.IGNORECASE)
    return int(match[1]) if match else None


def _codes(text: bytes) -> tuple[str, bytes]:
    """Return the machine-readable code of an answer with what follows it; ('', b'') without one."""
    match = _CODE.search(text)
    return (match[1].decode("ascii").upper(), match[2] or b"") if match else ("", b"")


def _quoted(text: str) -> bytes:
    if not text.isascii() or any(ord(character) < ord(" ") for character in text):
        raise CommandRefused("the server takes only letters of ASCII in names and passwords", "")
    return b'"' + text.replace("\\", "\\\\").replace('"', '\\"').encode("ascii") + b'"'


def _modified_utf7(name: str) -> str:
    """Return a folder's name as IMAP spells it."""
    pieces = re.split(r"([^ -~]+)", name.replace("&", "&-"))
    for index in range(1, len(pieces), 2):
        encoded = base64.b64encode(pieces[index].encode("utf-16-be", "surrogatepass")).decode("ascii")
        pieces[index] = f"&{encoded.rstrip('=').replace('/', ',')}-"
    return "".join(pieces)
