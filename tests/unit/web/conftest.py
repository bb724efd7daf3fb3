"""A page's server in front of a real store: without a network for single requests, on a free port for streams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from gateway.web.app import create_app
from gateway.web.auth import Keyring
from gateway.web.server import serve
from session_store import SessionDB
from tests.unit.web.desk import FakeDesk

TOKEN = "sesame-1234567890"  # noqa: S105 - made for these tests
PORT = 8737


@pytest.fixture
async def desk(db: SessionDB) -> FakeDesk:
    """The gateway behind the page."""
    return FakeDesk(db, await db.processes.register("gateway", ["web/main"]))


@pytest.fixture
def shut(home: Path) -> FakeDesk:
    """The gateway with a store that is not even open: for what must be answered before it."""
    return FakeDesk(SessionDB(home / "state.db"), "nobody")


@pytest.fixture
def door(shut: FakeDesk) -> Starlette:
    """The application over it."""
    return create_app(shut, token=TOKEN, host="127.0.0.1", port=PORT)


@pytest.fixture
def app(desk: FakeDesk) -> Starlette:
    """The application as it is served on the usual address."""
    return create_app(desk, token=TOKEN, host="127.0.0.1", port=PORT)


def browser(app: Starlette, **headers: str) -> httpx.AsyncClient:
    """A client of `app` with these headers (underscores stand for dashes)."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),
        base_url=f"http://127.0.0.1:{PORT}",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.fixture
async def owner(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """The owner's own client, with the token."""
    async with browser(app, authorization=f"Bearer {TOKEN}") as client:
        yield client


@pytest.fixture
def cookie() -> str:
    """The cookie of a browser that has opened the right address."""
    keyring = Keyring(TOKEN, PORT)
    return f"{keyring.cookie_name}={keyring.cookie_value}"


@dataclass(frozen=True, slots=True)
class Served:
    """A running server. stop: end it and wait."""

    app: Starlette
    port: int
    task: asyncio.Task[None]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop it as its owner does."""
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=10)


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def served(desk: FakeDesk) -> AsyncIterator[Served]:
    """The page on a real port."""
    port = free_port()
    app = create_app(desk, token=TOKEN, host="127.0.0.1", port=port)
    listening = asyncio.Event()
    task = asyncio.create_task(serve(app, "127.0.0.1", port, on_listening=listening.set))
    async with asyncio.timeout(10):
        await listening.wait()
    server = Served(app, port, task)
    yield server
    await server.stop()
