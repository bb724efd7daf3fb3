"""Serving the application inside the gateway's own event loop.

Contract: `bind` takes the address, so that the port is known before the application is made (port 0 takes any free
one). `serve_on` says when it listens, serves until it is cancelled, and then ends within `STOP_SECONDS`: event streams
at once, other requests as soon as they are answered. `serve` does both. No signal handlers are installed and no access
log is written (an address may hold the token). Who sends or takes too slowly is cut off (`gateway.web.patience`).
Failure: an address that cannot be had is a `WebUnavailable` with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING

import anyio
import uvicorn

from gateway.errors import WebUnavailable
from gateway.web.patience import PatientProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.applications import Starlette

__all__ = ["STOP_SECONDS", "bind", "serve", "serve_on"]

STOP_SECONDS = 4.0
_DRAIN_SECONDS = 2
_MAX_CONNECTIONS = 256
_BACKLOG = 128


async def serve(app: Starlette, host: str, port: int, *, on_listening: Callable[[], None] | None = None) -> None:
    """Bind, then serve until cancelled; `on_listening` is called once when connections are accepted."""
    await serve_on(app, await bind(host, port), on_listening=on_listening)


async def serve_on(app: Starlette, listener: socket.socket, *, on_listening: Callable[[], None] | None = None) -> None:
    """Serve on a bound socket until cancelled, then close it; `on_listening` as in `serve`."""
    server = _Server(_config(app), on_listening)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="web")
    try:
        await asyncio.shield(serving)
    finally:
        app.state.streams.close()
        server.should_exit = True
        # Shielded, because a cancelled task group would cut every wait short; bounded by the two limits.
        with anyio.CancelScope(shield=True):
            await asyncio.wait({serving}, timeout=STOP_SECONDS)
            serving.cancel()
            await asyncio.wait({serving}, timeout=1.0)
        listener.close()


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its owner and tells when it listens."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self._on_listening is not None:
            self._on_listening()


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        limit_concurrency=_MAX_CONNECTIONS,
    )


async def bind(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 takes any free one. Raises `WebUnavailable`."""
    name = host.strip("[]")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name or None, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        msg = f"The web address {host!r} is not known on this machine. Set web.host to 127.0.0.1 or an address of it."
        raise WebUnavailable(msg) from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.settimeout(0)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise WebUnavailable(_why(error, host, port)) from error
    return listener


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use, by another program or by a gateway that runs already "
            "(`threadline gateway status` tells). Stop it, or set web.port to a free port; 0 takes any."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} may not be opened by this user. Set web.port to a number above 1023."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set web.host to 127.0.0.1 or an address of it."
    return f"The web page cannot listen on {host} port {port}: {error.strerror or error}."
