"""Connections that ask slowly, or take slowly, or are too many."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import structlog.testing

from gateway.web import patience
from tests.unit.web.conftest import TOKEN, Served
from tests.unit.web.desk import FakeDesk, session

#: A person's whole request fits into it, and a test does not wait long.
SHORT = 0.3
HEAD = (
    b"POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits for tests."""
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "TAKE_SECONDS"):
        monkeypatch.setattr(patience, name, SHORT)


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection without any library that would keep to the rules."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def until_cut(reader: asyncio.StreamReader) -> bytes:
    """What came before the connection was cut."""
    came = b""
    async with asyncio.timeout(10):
        try:
            while piece := await reader.read(65536):
                came += piece
        except ConnectionError:
            pass
    return came


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_a_request_that_does_not_come_is_not_waited_for(served: Served, said: bytes) -> None:
    """Neither one that never begins nor one that never ends its head, however often a byte of it comes."""
    async with connected(served) as (reader, writer):

        async def drip() -> None:
            writer.write(said)
            while said:
                writer.write(b"x")
                await asyncio.sleep(SHORT / 5)

        dripping = asyncio.create_task(drip())
        assert await until_cut(reader) == b""
        dripping.cancel()


@pytest.mark.usefixtures("impatient")
async def test_a_body_that_does_not_come_is_not_waited_for(served: Served) -> None:
    """The half message is not taken in, and its end is no error of ours."""
    with structlog.testing.capture_logs() as logs:
        async with connected(served) as (reader, writer):
            writer.write(HEAD % (served.port, TOKEN.encode(), 100) + b'{"text": "half')
            assert await until_cut(reader) == b""
        await served.stop()
    assert [line["event"] for line in logs if line["log_level"] != "debug"] == ["web_connection_cut"]


@pytest.mark.usefixtures("impatient")
async def test_an_answered_connection_may_rest_no_longer_than_a_new_one(served: Served) -> None:
    """It gets its answer first."""
    async with connected(served) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % served.port)
        assert (await until_cut(reader)).startswith(b"HTTP/1.1 200")


@pytest.mark.usefixtures("impatient")
async def test_an_event_stream_stays_open_however_long_nothing_is_said(served: Served, desk: FakeDesk) -> None:
    """Its request has come; the answer takes as long as the page is open."""
    await session(desk.db, "s")
    async with (
        httpx.AsyncClient(base_url=served.url, headers={"authorization": f"Bearer {TOKEN}"}) as client,
        client.stream("GET", "/api/events?session=s") as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == ": open"
        await asyncio.sleep(3 * SHORT)
        desk.live.notice("s", "still here")
        async with asyncio.timeout(10):
            assert [line async for line in _until(lines, "still here")]


@pytest.mark.usefixtures("impatient")
async def test_an_answer_that_nobody_takes_is_given_up(served: Served, desk: FakeDesk) -> None:
    """The connection of a page that does not read is cut, so that it cannot be held for ever."""
    await session(desk.db, "s")
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.setblocking(False)  # noqa: FBT003 - the standard library's own
    loop = asyncio.get_running_loop()
    await loop.sock_connect(wire, ("127.0.0.1", served.port))
    ask = b"GET /static/app.js HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % served.port
    with wire, structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(30):
            while not [line for line in logs if line["event"] == "web_connection_cut"]:
                try:
                    await asyncio.wait_for(loop.sock_sendall(wire, ask), SHORT)
                except (TimeoutError, ConnectionError):
                    await asyncio.sleep(SHORT / 5)
    assert [line["reason"] for line in logs if line["event"] == "web_connection_cut"] == ["an answer that nobody takes"]


async def test_connections_beyond_the_limit_are_cut(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were there before go on."""
    monkeypatch.setattr(patience, "MAX_CONNECTIONS", 2)
    async with connected(served) as (reader, writer), connected(served), connected(served) as (late, _):
        assert await until_cut(late) == b""
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % served.port)
        assert (await until_cut(reader)).startswith(b"HTTP/1.1 200")


async def _until(lines: AsyncIterator[str], words: str) -> AsyncIterator[str]:
    """The lines up to the one with these words."""
    async for line in lines:
        if words in line:
            yield line
            return
