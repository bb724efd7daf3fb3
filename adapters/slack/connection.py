"""The HTTP side of Slack: the SDK's Web API client, set up so that nothing waits for ever and no secret is logged.

Contract: every call is bounded by the session's limits below and made once: the SDK would repeat a post whose
connection broke, and so double it. An answer with status 429 is `TooManyRequests` with the wait that Slack names, one
with 5xx is `ServerTrouble`, whatever their bodies hold; other errors are those of the libraries.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.asked import asked_wait
from adapters.slack.fields import as_id, as_text, needed
from adapters.slack.origin import Me

__all__ = ["SDK_LOG", "SENDS_AT_ONCE", "Connection", "ServerTrouble", "TooManyRequests", "error_code"]

SENDS_AT_ONCE = 32
#: For the SDK. Its reports quote the addresses of sockets, which are secrets; ours say the same without. A level of its
#: own also keeps the SDK from composing debug texts for every request.
SDK_LOG = logging.getLogger("adapters.slack.sdk")
SDK_LOG.setLevel(logging.CRITICAL)

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 15.0
_TOTAL_SECONDS = 25.0
#: Seconds to wait for when Slack does not name any, and the most that is believed.
_UNTOLD_WAIT = 5.0
_LONGEST_WAIT = 3600.0
_TOO_MANY = 429
_SERVER_ERROR = 500
#: Whoever has the whole address of a socket receives in our place.
_TICKET = re.compile(r"(\bwss?://[^\s'\"?]*)\?[^\s'\"]*")
_SLACK = ".slack.com"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class TooManyRequests(Exception):
    """Slack asks to wait; nothing was done."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Slack asks to wait for {seconds:.0f} s")
        self.seconds = seconds


class ServerTrouble(Exception):
    """Slack answered that it, not the request, is in trouble (status 5xx)."""


class Connection:
    """One account at one server. Make it inside the running loop; end it with `close`."""

    def __init__(self, bot_token: str, app_token: str, base_url: str) -> None:
        self._app_token = app_token
        self._secrets = (bot_token, app_token)
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_TOTAL_SECONDS, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS),
            connector=aiohttp.TCPConnector(limit=SENDS_AT_ONCE + 8),
            raise_for_status=_told,
        )
        self.web = self._client(bot_token, base_url)
        #: Without the bot's token: nothing that the SDK does by itself can speak in its name.
        self.bare = self._client(None, base_url)

    async def identify(self) -> tuple[Me, frozenset[str] | None]:
        """Ask who we are and what the token may do (None where the server does not tell)."""
        answer = await self.web.auth_test()
        facts: Mapping[str, Any] = {name: answer.get(name) for name in _FACTS}
        team, enterprise = as_id(facts, "team_id"), as_id(facts, "enterprise_id")
        me = Me(
            team=needed(team or enterprise, "team_id"),
            user=needed(as_id(facts, "user_id"), "user_id"),
            bot=as_id(facts, "bot_id") or "",
            name=as_text(facts, "user"),
            enterprise=enterprise or "",
            org_wide=facts["is_enterprise_install"] is True,
        )
        scopes = answer.headers.get("x-oauth-scopes")
        return me, None if scopes is None else frozenset(scope.strip() for scope in scopes.split(","))

    async def open_socket(self) -> str:
        """Ask for the address of a new socket; it can be used once, and soon."""
        answer = await self.bare.apps_connections_open(app_token=self._app_token)
        return needed(as_text({"url": answer.get("url")}, "url") or None, "url")

    def trusts(self, url: str) -> bool:
        """Tell whether the bot's token may go to this address."""
        there, here = urlsplit(url), urlsplit(self.web.base_url)
        if (there.scheme, there.netloc) == (here.scheme, here.netloc):
            return True
        return there.scheme == "https" and f".{there.hostname or ''}".endswith(_SLACK)

    @contextlib.asynccontextmanager
    async def file(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for a file; the answer is as it came, and is to be read inside the context."""
        async with self._session.get(
            url,
            headers={"Authorization": f"Bearer {self.web.token}"},
            allow_redirects=False,
            proxy=self.web.proxy,
            timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS),
        ) as response:
            yield response

    async def close(self) -> None:
        """Close every connection; requests in flight fail."""
        await self._session.close()

    def without_secrets(self, text: str) -> str:
        """Return `text` fit for logs and people."""
        for secret in self._secrets:
            text = text.replace(secret, "<token>")
        return _TICKET.sub(r"\1", text)

    def _client(self, token: str | None, base_url: str) -> AsyncWebClient:
        client = AsyncWebClient(
            token=token, base_url=base_url, session=self._session, retry_handlers=[], logger=SDK_LOG
        )
        host = urlsplit(base_url).hostname or ""
        if host in _LOOPBACK or proxy_bypass(host):
            # The SDK takes the proxy of the environment for every host, also for those that it is not for.
            client.proxy = None
        return client


_FACTS = ("team_id", "enterprise_id", "user_id", "bot_id", "user", "is_enterprise_install")


def error_code(error: SlackApiError) -> str:
    """Return the word by which Slack names what is wrong, or '' when the answer was none of its own."""
    data = getattr(error.response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return code if isinstance(code, str) else ""


async def _told(response: aiohttp.ClientResponse) -> None:
    """Raise for what the status alone says; the SDK loses it when the body is none of Slack's."""
    if response.status == _TOO_MANY:
        response.release()
        raise TooManyRequests(_wait(response.headers.get("Retry-After", "")))
    if response.status >= _SERVER_ERROR:
        response.release()
        raise ServerTrouble(f"Slack answered with status {response.status}")


def _wait(told: str) -> float:
    return asked_wait(told, _UNTOLD_WAIT, _LONGEST_WAIT)
