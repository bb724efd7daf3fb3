"""The wire below IMAP: connecting, with TLS as the settings say, and whole answer lines with the literals in them.

Contract: `connected` returns after the greeting; with STARTTLS everything heard before it is forgotten. `read_line`
reads one line.
Failure: `OSError`, `EOFError` or `asyncio.LimitOverrunError`, which `reason_of` puts in words for people.
Limits: lines up to `LONGEST_LINE`, literals up to `LONGEST_LITERAL`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass
from typing import Final

from adapters.email.account import Server

__all__ = ["LONGEST_LINE", "LONGEST_LITERAL", "Line", "connected", "read_line", "reason_of"]

LONGEST_LINE: Final = 1 << 20
LONGEST_LITERAL: Final = 4 << 20
_MOST_LITERALS: Final = 10_000
_LITERAL: Final = re.compile(rb"\{(\d{1,10})\+?\}\r\n\Z")


@dataclass(frozen=True, slots=True)
class Line:
    """One answer line; literals are taken out, their announcements stay."""

    text: bytes
    literals: tuple[bytes, ...] = ()


async def connected(server: Server, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect and hear the greeting; with STARTTLS, everything heard before it is forgotten."""
    reader, protocol = _ears()
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: protocol, server.host, server.port, ssl=context if server.tls == "tls" else None
    )
    try:
        await _greeted(reader)
        if server.tls == "starttls":
            transport.write(b"tls STARTTLS\r\n")
            await _agreed_to_tls(reader)
            reader, protocol = _ears()
            transport = await _encrypted(transport, protocol, server.host, context)
    except BaseException:
        transport.abort()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())


def _ears() -> tuple[asyncio.StreamReader, asyncio.StreamReaderProtocol]:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    return reader, asyncio.StreamReaderProtocol(reader)


async def _greeted(reader: asyncio.StreamReader) -> None:
    greeting = (await read_line(reader)).text
    if not greeting.upper().startswith((b"* OK", b"* PREAUTH")):
        raise ConnectionError(f"it greets with {greeting[:80].decode('ascii', 'replace')!r}")


async def _agreed_to_tls(reader: asyncio.StreamReader) -> None:
    while not (answer := (await read_line(reader)).text).startswith(b"tls "):
        pass
    if not answer.upper().startswith(b"TLS OK"):
        raise ConnectionError("it refuses STARTTLS")


async def _encrypted(
    plain: asyncio.Transport, protocol: asyncio.StreamReaderProtocol, host: str, context: ssl.SSLContext
) -> asyncio.Transport:
    """Go over to TLS with new ears: what was said before may be anybody's words."""
    transport = await asyncio.get_running_loop().start_tls(plain, protocol, context, server_hostname=host)
    if transport is None:
        raise ConnectionError("the connection ended during STARTTLS")
    protocol.connection_made(transport)
    return transport


async def read_line(reader: asyncio.StreamReader) -> Line:
    """Read one answer line with the literals in it."""
    text = await reader.readuntil(b"\r\n")
    literals: list[bytes] = []
    while announced := _LITERAL.search(text):
        size = int(announced[1])
        if size > LONGEST_LITERAL or len(literals) == _MOST_LITERALS:
            raise ConnectionError("the server sends more than was asked for")
        literals.append(await reader.readexactly(size))
        text += await reader.readuntil(b"\r\n")
        if len(text) > LONGEST_LINE:
            raise ConnectionError("the server sends more than was asked for")
    return Line(text.removesuffix(b"\r\n"), tuple(literals))


def reason_of(error: BaseException) -> str:
    """Return why a connection is of no use, in a few words for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, EOFError):
        return "the server closed the connection"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, asyncio.LimitOverrunError):
        return "it sends lines without end"
    return str(error) or type(error).__name__
