"""Streamable HTTP for the MCP server, on loopback and behind a token.

Contract: `serve_http` listens, says at which address, and serves until it is cancelled. Every request needs the token
as `Authorization: Bearer`; the Host must be a loopback name with our port, and an Origin, if there is one, must be too,
so that no web page reaches it. Requests are independent of each other: a client may come back after a restart.
Failure: `WebUnavailable` when the address cannot be had. Limits: 4 MB of a request.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway.web.events import Streams
from gateway.web.server import bind, serve_on

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["PATH", "serve_http"]

PATH: Final = "/mcp"
HOST: Final = "127.0.0.1"
_NAMES: Final = ("127.0.0.1", "localhost")


async def serve_http(server: Server[Any], token: str, port: int, listening: Callable[[str], None]) -> None:
    """Serve until cancelled. port: 0 takes any free one. listening: is told the address."""
    listener = await bind(HOST, port)
    port = listener.getsockname()[1]
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=[f"{name}:{port}" for name in _NAMES],
            allowed_origins=[f"http://{name}:{port}" for name in _NAMES],
        ),
    )
    app = Starlette(routes=[Route(PATH, _Guarded(manager.handle_request, token))])
    app.state.streams = Streams()
    async with manager.run():
        await serve_on(app, listener, on_listening=lambda: listening(f"http://{HOST}:{port}{PATH}"))


class _Guarded:
    """Lets requests with the token through."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse with a sentence."""
        given = Headers(scope=scope).get("authorization", "")
        if hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._expected):
            await self._app(scope, receive, send)
            return
        sentence = "The token is missing or wrong. Send it as `Authorization: Bearer TOKEN`."
        refusal = JSONResponse({"error": sentence}, 401, {"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)
