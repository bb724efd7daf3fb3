"""A file from Slack: its address asked for by its id, then read from there, in pieces.

Contract: `fetch_file` hands on every byte or raises. The app's token goes with the request, so only an address of Slack
itself, or of the server that the account is set to, is asked, and no redirection is followed: Slack sends apps without
the right to read files to a page to log in, which must not be taken for the file.
Failure: FetchError. Worth another try: no connection, server trouble, a wait that Slack asks for. Not worth one: a
file that is gone or closed to this app, a missing right.
Limits: each wait for the server is bounded; the whole is not, that is the caller's part.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import aiohttp
from slack_sdk.errors import SlackApiError

from adapters.base import FetchError, Write
from adapters.slack.connection import Connection, ServerTrouble, TooManyRequests, error_code

__all__ = ["fetch_file"]

_PIECE = 65_536
_MAY_PASS = frozenset({"", "fatal_error", "internal_error", "request_timeout", "service_unavailable"})
_PAGE = "text/html"


async def fetch_file(connection: Connection, file_id: str, write: Write) -> None:
    """Fetch one file; see the module."""
    url, is_page = await _address(connection, file_id)
    try:
        async with connection.file(url) as response:
            if response.status != HTTPStatus.OK:
                raise _status(response.status)
            if response.content_type == _PAGE and not is_page:
                raise FetchError("Slack does not give it to this app; it may lack the scope files:read", again=False)
            async for piece in response.content.iter_chunked(_PIECE):
                await write(piece)
    except (TooManyRequests, ServerTrouble, aiohttp.ClientError, TimeoutError) as error:
        raise _passing(error) from error


async def _address(connection: Connection, file_id: str) -> tuple[str, bool]:
    """Return where the file is, and whether it is a web page itself."""
    try:
        answer = await connection.web.files_info(file=file_id)
    except SlackApiError as error:
        code = error_code(error)
        if code == "missing_scope":
            raise FetchError("the Slack app lacks the scope files:read", again=False) from error
        raise FetchError(
            f"Slack does not give it out: {code or 'no answer of its own'}", again=code in _MAY_PASS
        ) from error
    except Exception as error:
        raise _passing(error) from error
    file = answer.get("file")
    url = file.get("url_private_download") or file.get("url_private") if isinstance(file, dict) else None
    if not isinstance(file, dict) or not isinstance(url, str) or not connection.trusts(url):
        raise FetchError("Slack gives no address of its own for it", again=False)
    return url, file.get("mimetype") == _PAGE


def _passing(error: Exception) -> FetchError:
    if isinstance(error, TooManyRequests):
        return FetchError("Slack asks to wait", again=True, delay=error.seconds)
    known = isinstance(error, ServerTrouble | aiohttp.ClientError | asyncio.TimeoutError)
    # What an error says may hold the address.
    return FetchError(f"the connection to Slack failed: {type(error).__name__}", again=known)


def _status(status: int) -> FetchError:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return FetchError("Slack does not give it to this app; it may lack the scope files:read", again=False)
    return FetchError(f"Slack answered with status {status}", again=False)
