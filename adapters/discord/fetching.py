"""A file from Discord: its message asked for anew, since addresses run out, then read from there, in pieces.

Contract: `fetch_file` hands on every byte or raises. Only an address of Discord's own, or of the server that the
account is set to, is asked; nothing secret goes with the request, and no redirection is followed.
Failure: FetchError. Worth another try: no connection, server trouble, a wait that Discord asks for, an address that has
run out meanwhile. Not worth one: a message or file that is gone or closed to the bot.
Limits: each wait for the server is bounded; the whole is not, that is the caller's part.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import discord

from adapters.asked import asked_wait
from adapters.base import FetchError, Write
from adapters.discord.connection import GatewayClient
from adapters.discord.described import file_ids, forwarded
from adapters.discord.fields import MalformedEvent, as_list, as_mapping

__all__ = ["WAIT_SECONDS", "fetch_file"]

#: How long one wait for the server may take: for the connection, and for each next piece.
WAIT_SECONDS = 15.0
_PIECE: Final = 65_536
_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
_MAY_PASS: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS})


async def fetch_file(client: GatewayClient, api_url: str, reference: str, write: Write) -> None:
    """Fetch one file; see the module. api_url: where the account's server is."""
    url = await _address(client, reference)
    if not _trusted(url, api_url):
        raise FetchError("Discord gives no address of its own for it", again=False)
    wait = aiohttp.ClientTimeout(total=None, connect=WAIT_SECONDS, sock_read=WAIT_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=wait, auto_decompress=False) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status != HTTPStatus.OK:
                again = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status in _MAY_PASS
                raise FetchError(f"Discord answered with status {response.status}", again=again)
            async for piece in response.content.iter_chunked(_PIECE):
                await write(piece)
    except (aiohttp.ClientError, TimeoutError) as error:
        # The address is signed, and the error may hold it: only its kind is told.
        raise FetchError(f"the connection to Discord failed: {type(error).__name__}", again=True) from None


async def _address(client: GatewayClient, reference: str) -> str:
    """Return where the file is now."""
    ids = file_ids(reference)
    if ids is None:
        raise FetchError("it is no file of Discord", again=False)
    channel, message, number = ids
    try:
        told: Any = await client.rest.get_message(channel, message)
    except Exception as error:
        raise _refused(error) from error
    try:
        parts = [as_mapping(told, "a message"), *forwarded(told)]
        files = [as_mapping(file, "a file") for part in parts for file in as_list(part.get("attachments"), "files")]
    except MalformedEvent as error:
        raise FetchError("Discord gave an answer that makes no sense", again=True) from error
    for file in files:
        if file.get("id") == number:
            return str(file.get("url"))
    raise FetchError("it was taken out of its message", again=False)


def _refused(error: Exception) -> FetchError:
    if isinstance(error, discord.RateLimited):
        return FetchError("Discord asks to wait", again=True, delay=asked_wait(error.retry_after, 0.0))
    if isinstance(error, discord.NotFound):
        return FetchError("its message does not exist any more", again=False)
    if isinstance(error, discord.Forbidden):
        return FetchError("the bot lacks the permission Read Message History there", again=False)
    if isinstance(error, discord.HTTPException):
        return FetchError(f"Discord answered with status {error.status}", again=True, delay=_told_wait(error))
    return FetchError(f"the connection to Discord failed: {type(error).__name__}", again=True)


def _told_wait(error: discord.HTTPException) -> float:
    headers: Mapping[str, Any] = getattr(error.response, "headers", {})
    return asked_wait(headers.get("Retry-After"), 0.0)


def _trusted(url: str, api_url: str) -> bool:
    """Tell whether an address is Discord's, or on the configured server."""
    try:
        asked, own = urlsplit(url), urlsplit(api_url)
        known = asked.scheme == "https" and asked.hostname in _HOSTS and asked.port in {None, 443}
    except ValueError:
        return False
    return known or (asked.scheme, asked.netloc) == (own.scheme, own.netloc)
