"""Serving inside the gateway's own loop."""

from __future__ import annotations

import asyncio
import signal
import socket

import anyio
import httpx
import pytest
from starlette.applications import Starlette

from gateway.errors import WebUnavailable
from gateway.web.server import serve
from tests.unit.web.conftest import TOKEN, Served, free_port
from tests.unit.web.desk import FakeDesk, session


async def test_it_says_when_it_listens_and_then_answers(served: Served) -> None:
    """Whoever waits for `on_listening` can connect."""
    async with httpx.AsyncClient(base_url=served.url) as client:
        response = await client.get("/health")

    assert response.status_code == 200
    assert "server" not in response.headers


async def test_a_taken_port_is_a_sentence(app: Starlette) -> None:
    """It names the port and the setting."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = int(other.getsockname()[1])
        with pytest.raises(WebUnavailable, match=rf"Port {port} on 127\.0\.0\.1 is in use.*web\.port"):
            await serve(app, "127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
async def test_an_address_that_is_not_ours_is_a_sentence(app: Starlette, host: str) -> None:
    """It names the setting."""
    with pytest.raises(WebUnavailable, match=r"web\.host"):
        await serve(app, host, free_port())


async def test_open_streams_do_not_hold_up_the_end(served: Served, desk: FakeDesk) -> None:
    """They end at once, in order, and the port is free again."""
    await session(desk.db, "s")
    async with (
        httpx.AsyncClient(base_url=served.url, headers={"authorization": f"Bearer {TOKEN}"}) as client,
        client.stream("GET", "/api/events?session=s") as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == ": open"
        async with asyncio.timeout(10):
            await served.stop()
            rest = [line async for line in lines]

    assert served.task.done()
    assert ": beat" not in rest
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", served.port))


async def test_a_cancelled_task_group_ends_it_in_order(app: Starlette) -> None:
    """The gateway stops its parts by cancelling their group; that must not cut the end short."""
    listening = asyncio.Event()
    port = free_port()
    async with asyncio.timeout(10), anyio.create_task_group() as group:

        async def run() -> None:
            await serve(app, "127.0.0.1", port, on_listening=listening.set)

        group.start_soon(run)
        await listening.wait()
        group.cancel_scope.cancel()

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


async def test_signals_stay_with_their_owner(served: Served) -> None:
    """The daemon decides what SIGTERM and SIGINT mean."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    assert served.task.done() is False
    assert not any("uvicorn" in getattr(handler, "__module__", "") for handler in handlers if handler)
