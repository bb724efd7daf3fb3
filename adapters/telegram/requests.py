"""The requests of python-telegram-bot over aiohttp, which costs a third of the library's own HTTP client.

Contract: as `telegram.request.BaseRequest` has it. A connection that did not come about, in time or at all, is told by
an error whose cause is one of `NEVER_LEFT`: not one byte of the request reached the server then. Redirects are not
followed, since the token is in the address. Proxies are those of the environment at the start.
Limits: `connections` at a time; who finds none free waits as long as for a connection. Nothing is uploaded.
"""

from __future__ import annotations

import ssl
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import getproxies

import aiohttp
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

__all__ = ["NEVER_LEFT", "NO_ADDRESS", "Requests"]

#: Causes that show that not one byte of the request reached the server.
NEVER_LEFT: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.NonHttpUrlClientError,
    aiohttp.ClientConnectionResetError,
)
#: Causes that show that the address is none.
NO_ADDRESS: Final = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)

#: Bytes of a form that is surely handed over with its header lines at once.
_ONE_WRITE: Final = 32_768
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Requests(BaseRequest):
    """The requests of one bot of one kind, over connections of their own. Times in seconds."""

    def __init__(self, connections: int, context: ssl.SSLContext, *, connect: float, read: float) -> None:
        self._connections = connections
        self._context = context
        self._connect = connect
        self._read = read
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        """How long the server may say nothing, where a request does not say otherwise."""
        return self._read

    async def initialize(self) -> None:
        """Prepare; nothing is sent. Safe to repeat."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._context),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
                # Looking for proxies costs as much as a request, so it is not done for each where there are none.
                trust_env=bool(getproxies()),
            )

    async def shutdown(self) -> None:
        """Close every connection; requests under way fail. Safe to repeat."""
        if self._session is not None:
            await self._session.close()

    async def do_request(  # noqa: PLR0913, PLR0917 - the library's
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """Make one request; returns status and body. Of the limits only that of reading can be set for one request."""
        del write_timeout, connect_timeout, pool_timeout
        if self._session is None:
            raise RuntimeError("These requests were not prepared; call `initialize` first.")
        if request_data is not None and request_data.multipart_data:
            raise ValueError("Nothing is uploaded to Telegram.")
        form = None if request_data is None else urlencode(request_data.json_parameters).encode()
        read = self._read if read_timeout is BaseRequest.DEFAULT_NONE else read_timeout
        limits = aiohttp.ClientTimeout(total=None, connect=self._connect, sock_connect=self._connect, sock_read=read)
        try:
            async with self._session.request(
                method, url, data=form, headers=_FORM, timeout=limits, allow_redirects=False
            ) as response:
                return response.status, await response.read()
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            # Some of these errors name the address, and the token is part of it.
            words = f"{type(error).__name__}: {error}".replace(url, "the server")
            raise NetworkError(words) from (error.__cause__ if _unwritten(error, form) else error)


def _unwritten(error: aiohttp.ClientError, form: bytes | None) -> bool:
    """Whether the server had closed the connection before the request was written: a small one is one write."""
    small = form is None or len(form) <= _ONE_WRITE
    return small and isinstance(error.__cause__, aiohttp.ClientConnectionResetError)
