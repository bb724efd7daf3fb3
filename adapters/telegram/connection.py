"""The HTTP side of Telegram: python-telegram-bot's bot, set up so that nothing waits for ever and no secret is logged.

Contract: every call is bounded (`connect` and `read` limits below). An answer with status 5xx is a
`ServerTrouble`, so that it can be told from a refusal; one with status 3xx or 4xx that does not have Telegram's form is
`NotTelegram`: the login page of a network, a proxy or a firewall, which has not passed the request on. Other errors are
those of the library. Updates come as the server sent them: one that cannot be parsed must not hide the others.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import ssl
from typing import Any

import httpx
from telegram import Bot
from telegram.error import NetworkError
from telegram.request import BaseRequest, RequestData

from adapters.telegram.requests import Requests
from adapters.telegram.updates import Me

__all__ = ["FETCHES_AT_ONCE", "SENDS_AT_ONCE", "Connection", "NotTelegram", "ServerTrouble"]

#: More parallel requests make this HTTP stack slower, not faster.
SENDS_AT_ONCE = 8
#: Downloads of files in parallel; they have connections of their own, so that sends never wait for them.
FETCHES_AT_ONCE = 4
#: What is asked for. Everything else is never sent to us.
ALLOWED_UPDATES = ("message", "edited_message", "channel_post", "edited_channel_post")
BATCH = 100

_CONNECT_SECONDS = 5.0
_POOL_SECONDS = 5.0
_READ_SECONDS = 12.0
#: How much longer than asked for the server may take to answer a long poll.
_POLL_GRACE = 10.0
_REDIRECT = 300
_SERVER_ERROR = 500

# The library's own switch to the coming type of `RetryAfter.retry_after`; without it every flood wait is a warning.
os.environ.setdefault("PTB_TIMEDELTA", "1")
# These log whole addresses, and the token is part of every address.
for _name in ("httpx", "httpcore", "telegram"):
    logging.getLogger(_name).setLevel(logging.WARNING)
# Answers that make no sense are told by us; the library adds where in its own code it noticed.
logging.getLogger("telegram.request").setLevel(logging.CRITICAL)


class ServerTrouble(NetworkError):
    """The server answered that it, not the request, is in trouble (status 5xx)."""


class NotTelegram(NetworkError):
    """Something else answered in Telegram's place, so nothing has reached it."""


class _Request(Requests):
    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *args: Any, **kwargs: Any
    ) -> tuple[int, bytes]:
        """Make the request, but keep server errors apart."""
        status, payload = await super().do_request(url, method, request_data, *args, **kwargs)
        if status >= _SERVER_ERROR:
            raise ServerTrouble(f"Telegram answered with status {status}")
        if status >= _REDIRECT and not _of_telegram(payload):
            raise NotTelegram(f"something else answers in its place, with status {status} (a login page, a firewall)")
        return status, payload


def _of_telegram(payload: bytes) -> bool:
    try:
        answer = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and "ok" in answer


class _Bot(Bot):
    async def raw_updates(self, offset: int | None, seconds: int) -> Any:
        """Return the answer of getUpdates unparsed; the library's own method fails for the whole batch."""
        return await self._post(
            "getUpdates",
            {"offset": offset, "timeout": seconds, "limit": BATCH, "allowed_updates": list(ALLOWED_UPDATES)},
            read_timeout=seconds + _POLL_GRACE,
        )


class Connection:
    """One bot account at one server. Make it with `open`, end it with `close`."""

    def __init__(self, bot: _Bot, token: str, files: httpx.AsyncClient) -> None:
        self._bot = bot
        self._token = token
        self._files = files

    @classmethod
    async def open(cls, token: str, base_url: str) -> Connection:
        """Prepare the client; nothing is sent yet. Raises InvalidToken for an empty token."""
        context = await asyncio.to_thread(_tls)
        head, _, tail = base_url.rpartition("/")
        bot = _Bot(
            token,
            base_url=base_url,
            base_file_url=f"{head}/file/{tail}",
            request=_request(SENDS_AT_ONCE, context),
            get_updates_request=_request(1, context),
        )
        files = httpx.AsyncClient(
            verify=context,
            timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS, pool=_POOL_SECONDS),
            limits=httpx.Limits(max_connections=FETCHES_AT_ONCE),
        )
        return cls(bot, token, files)

    @property
    def bot(self) -> Bot:
        """The library's bot, for calls."""
        return self._bot

    @property
    def files(self) -> httpx.AsyncClient:
        """The client for downloads."""
        return self._files

    async def identify(self) -> Me:
        """Ask who we are and see to it that updates can be polled; what is waiting there is kept."""
        await self._bot.initialize()
        await self._bot.delete_webhook(drop_pending_updates=False)
        return Me(self._bot.id, self._bot.username)

    async def updates(self, offset: int | None, seconds: int) -> list[Any]:
        """Long-poll for at most `seconds`; asking with an offset confirms every update before it."""
        answer = await self._bot.raw_updates(offset, seconds)
        if not isinstance(answer, list):
            raise ServerTrouble(f"Telegram answered a {type(answer).__name__} where a list of updates was due")
        return answer

    async def remove_webhook(self) -> None:
        """Take the account back from a webhook, keeping what is waiting."""
        await self._bot.delete_webhook(drop_pending_updates=False)

    async def close(self) -> None:
        """Close every connection; requests in flight fail."""
        try:
            await self._files.aclose()
        finally:
            await self._bot.shutdown()

    def without_token(self, text: str) -> str:
        """Return `text` fit for logs and people."""
        return text.replace(self._token, "<token>")


def _request(connections: int, context: ssl.SSLContext) -> BaseRequest:
    return _Request(connections, context, connect=_CONNECT_SECONDS, read=_READ_SECONDS)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the one TLS context of the process: making one is slow and takes memory."""
    return httpx.create_ssl_context()
