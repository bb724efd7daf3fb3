"""A small HTTP/1.1 server for emulators: keep-alive, long answers, and full control over the connection.

Contract: one handler call per request; it returns an `Answer`, or None to cut the connection without a word. When the
client goes away while a handler waits, the handler is cancelled, so that a dead client never receives what was meant
for it. Request bodies are forms or JSON; `Request.fields` holds either.
Limits: loopback only, no pipelining, no chunked request bodies, no TLS.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Answer", "Handler", "Request", "WireServer"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        """The body as JSON or as a form; empty without a body."""
        if self.headers.get("content-type", "").startswith("application/json"):
            return json.loads(self.body)
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True, strict_parsing=bool(self.body)))


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: a JSON value, or bytes as they are. slow: seconds before each kilobyte of the body."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    slow: float = 0.0

    def encode(self) -> bytes:
        """Return the whole answer as it goes over the wire."""
        body = self.value if isinstance(self.value, bytes) else json.dumps(self.value).encode()
        head = {"content-type": "application/json", "content-length": str(len(body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        return f"HTTP/1.1 {self.status} Emulated\r\n{lines}\r\n".encode() + body


Handler = Callable[[Request], Awaitable[Answer | None]]


class WireServer:
    """Listens on 127.0.0.1 in the running loop."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one, which `port` then tells."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Link(self._handler, self._links), "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and cut every connection. The port can be listened on again."""
        if self._server is not None:
            self._server.close()
            links = list(self._links)
            for link in links:
                link.cut()
            for link in links:
                await link.gone.wait()
            await self._server.wait_closed()
            self._server = None


class _Link(asyncio.Protocol):
    """One connection: reads a request, runs the handler, writes the answer, and so on."""

    def __init__(self, handler: Handler, links: set[_Link]) -> None:
        self._handler = handler
        self._links = links
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._links.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the handler know that nobody listens any more."""
        del exc
        self._links.discard(self)
        self._transport = None
        self.gone.set()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect; begin when a request is whole."""
        self._received += data
        self._next()

    def cut(self) -> None:
        """End the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        if self._task is None and (request := self._take_request()) is not None:
            self._task = asyncio.create_task(self._serve(request))

    def _take_request(self) -> Request | None:
        head, separator, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not separator:
            return None
        first, _, lines = head.partition(b"\r\n")
        headers = {name.lower(): value for name, value in BytesParser().parsebytes(lines + b"\r\n\r\n").items()}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return None
        self._received = bytearray(rest[length:])
        method, target, _ = first.decode().split(" ", 2)
        address = urlsplit(target)
        return Request(method, address.path, dict(parse_qsl(address.query)), headers, rest[:length])

    async def _write(self, answer: Answer) -> None:
        data = answer.encode()
        if not answer.slow:
            self._put(data)
            return
        head, separator, body = data.partition(b"\r\n\r\n")
        self._put(head + separator)
        for start in range(0, len(body), 1024):
            await asyncio.sleep(answer.slow)
            self._put(body[start : start + 1024])

    def _put(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def _serve(self, request: Request) -> None:
        try:
            answer = await self._handler(request)
        except Exception as error:  # noqa: BLE001  (a broken emulator must be seen by the client, not hang it)
            answer = Answer({"ok": False, "error_code": 599, "description": f"emulator: {error!r}"}, status=599)
        if self._transport is not None:
            if answer is None:
                self.cut()
            else:
                await self._write(answer)
        self._task = None
        self._next()
