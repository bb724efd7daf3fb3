"""The web entrance as one application: the page, its API, `/health`, behind the guard.

Contract: `create_app` builds without I/O. `/` is served to everybody who knows the address (it holds nothing private);
`/?token=` with the right token sets the cookie and leaves the token out of the address; a wrong one shows the page in
the state in which it asks for the right address. Errors of the store become their sentence: 400 for a wrong argument,
404 for an unknown session, else 503, after which the page tries again.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import NotModifiedResponse, StaticFiles

from gateway.web.api import Api
from gateway.web.auth import SECURITY_HEADERS, Guard, Keyring
from gateway.web.events import Streams
from gateway.web.health import health_reply
from gateway.web.replies import failure
from session_store import NotFound, StoreError

if TYPE_CHECKING:
    import os

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from gateway.web.facade import WebFacade

__all__ = ["create_app"]

_STATIC = Path(__file__).parent / "static"

#: Said here rather than guessed: the system's own table may call scripts plain text, and reading it blocks.
_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}

_log = structlog.get_logger(__name__)


def create_app(facade: WebFacade, *, token: str, host: str, port: int) -> Starlette:
    """Build the application that is served at `host` and `port`. `app.state.streams.close()` ends its event streams."""
    keyring = Keyring(token, port)
    streams = Streams()

    async def page(request: Request) -> Response:
        given = request.query_params.get("token")
        if given is None:
            return _file(_STATIC / "index.html")
        if not keyring.is_token(given):
            return _file(_STATIC / "index.html", HTTPStatus.FORBIDDEN)
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        keyring.set_cookie(response)
        return response

    async def health(_request: Request) -> Response:
        return health_reply(facade.health())

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/health", health),
            *Api(facade, streams).routes(),
            Mount("/static", _Files(directory=_STATIC, check_dir=False)),
        ],
        middleware=[Middleware(Guard, keyring=keyring, host=host)],
        exception_handlers={
            HTTPException: _refused,
            StoreError: _store_failed,
            ClientDisconnect: _left,
            Exception: _failed,
        },
    )
    app.state.streams = streams
    return app


def _file(path: Path, status: int = HTTPStatus.OK, stat: os.stat_result | None = None) -> FileResponse:
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    return FileResponse(path, status, media_type=kind, stat_result=stat)


class _Files(StaticFiles):
    """The page's own files; a browser that has the newest version is told so."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = HTTPStatus.OK,
    ) -> Response:
        """Answer with one file."""
        response = _file(Path(full_path), status_code, stat_result)
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    sentence = error.detail
    if error.status_code == HTTPStatus.NOT_FOUND and sentence == HTTPStatus.NOT_FOUND.phrase:
        sentence = "There is nothing at this address. The page is at /."
    return failure(error.status_code, sentence, error.headers)


async def _store_failed(request: Request, error: Exception) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, ValueError):
        status = HTTPStatus.NOT_FOUND if isinstance(error, NotFound) else HTTPStatus.BAD_REQUEST
    else:
        _log.warning("web_store_failed", path=request.url.path, error=str(error))
    return failure(status, str(error))


async def _left(_request: Request, _error: Exception) -> Response:
    """The other end went away before its request was whole; nobody hears the answer."""
    return failure(HTTPStatus.BAD_REQUEST, "The request ended before it was whole. Send it again.")


async def _failed(request: Request, _error: Exception) -> Response:
    """The last resort; the server logs the error itself."""
    _log.error("web_request_failed", path=request.url.path)
    sentence = "Something failed inside Threadline; the reason is in the gateway's log. Try again."
    return failure(HTTPStatus.INTERNAL_SERVER_ERROR, sentence, SECURITY_HEADERS)
