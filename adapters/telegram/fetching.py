"""A file from Telegram: asked for by its id through the library, then read from the address that it gives, in pieces.

Contract: `fetch_file` hands on every byte or raises. The library itself would read a whole file into memory, however
large; so the body is streamed with the HTTP client that it stands on, and whoever takes the pieces can say "enough".
Failure: FetchError. Worth another try: no connection, server trouble, flood control, an address that has run out (the
next try asks for a fresh one). Not worth one: a file id that Telegram does not know, a file above its limit.
Limits: each wait for the server is bounded; the whole is not, that is the caller's part. A local Bot API server that
names a path on its own disk instead of an address is not served.
"""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import httpx
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter, TelegramError

from adapters.asked import asked_wait
from adapters.base import FetchError, Write
from adapters.telegram.connection import Connection

__all__ = ["fetch_file"]

_PIECE = 65_536


async def fetch_file(connection: Connection, file_id: str, write: Write) -> None:
    """Fetch one file; see the module."""
    try:
        file = await connection.bot.get_file(file_id)
    except TelegramError as error:
        raise _refused(connection, error) from error
    beginning = f"{connection.bot.base_file_url}/"
    if file.file_path is None or not file.file_path.startswith(beginning):
        raise FetchError("Telegram gives no address for it", again=False)
    address = beginning + quote(file.file_path.removeprefix(beginning))
    try:
        async with connection.files.stream("GET", address) as response:
            if response.status_code != HTTPStatus.OK:
                raise _status(response.status_code)
            async for piece in response.aiter_bytes(_PIECE):
                await write(piece)
    except httpx.HTTPError as error:
        # The address holds the token, and so may the error: only its kind is told.
        raise FetchError(f"the connection to Telegram failed: {type(error).__name__}", again=True) from None


def _refused(connection: Connection, error: TelegramError) -> FetchError:
    reason = connection.without_token(error.message.rstrip("."))
    if isinstance(error, RetryAfter):
        return FetchError(reason, again=True, delay=asked_wait(error.retry_after, 0.0))
    if isinstance(error, BadRequest | Forbidden | InvalidToken):
        too_big = "too big" in reason.lower()
        return FetchError("Telegram does not give out files this large" if too_big else reason, again=False)
    return FetchError(reason, again=True)


def _status(status: int) -> FetchError:
    again = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in {
        HTTPStatus.NOT_FOUND,
        HTTPStatus.GONE,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
    return FetchError(f"Telegram answered with status {status}", again=again)
