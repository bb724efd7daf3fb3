"""discord.py's client for one account: pointed at any address, never hurt by one bad event or one impatient caller.

Contract: everything is set on this client's own objects, so accounts and servers of one process do not know of each
other. REST calls go to `api_url`, the gateway is the one that `gateway_url` names or, without it, the API. A dispatch
that cannot be parsed is set aside with a log entry; only a READY that makes no sense ends the client. What the gateway
says about messages and interactions is handed to the `Listener` raw, in order and at once.
Failure: every REST call runs in a task of its own that only `Http.close` cancels. discord.py waits inside a call when
it is told to slow down, and a caller that gave up during a global wait would block every later call for ever.
Limits: a call is given `CALL_SECONDS` per try; a wait longer than `LONGEST_WAIT` is raised as `RateLimited`.

The seams used, all made by discord.py for its own subclasses: `Client._get_state`, the overridable methods of
`HTTPClient`, the parsers of `ConnectionState`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import discord
import structlog
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route
from discord.state import ConnectionState

from adapters.asked import asked_wait

__all__ = [
    "GatewayClient",
    "Http",
    "Listener",
    "NoSessionsLeft",
    "Repeated",
    "as_shown",
    "once",
    "redirect",
    "set_aside",
]

CALL_SECONDS = 15.0
#: Longer waits are not slept through inside a call: the outbox waits better, also over restarts.
LONGEST_WAIT = 10.0
#: Without a sign of life for so long, the gateway connection is made anew.
HEARTBEAT_SECONDS = 60.0
#: Discord resets the token of a bot that identifies too often; a few sessions are left for people's own restarts.
_SPARE_SESSIONS = 20
_LOGGED_CHARACTERS = 4000
_AGAIN_SECONDS = 0.05
_TOO_MANY = 429

# Tells at every start that voice is not supported, which nobody asked for, and of each reconnect with a traceback; the
# state of the adapter says the latter in a sentence. Below WARNING the library logs whole events, tokens included.
logging.getLogger("discord").setLevel(logging.WARNING)
logging.getLogger("discord.client").setLevel(logging.CRITICAL)

_log = structlog.get_logger(__name__)
_once: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("discord_once", default=None)


class NoSessionsLeft(Exception):
    """Too many new sessions today; `delay` seconds from now the count begins anew."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"no new gateway session is allowed for {delay:.0f} s")
        self.delay = delay


class Repeated(Exception):
    """discord.py was about to repeat a call that must be made only once."""


@contextlib.contextmanager
def once() -> Iterator[None]:
    """Within this, only one request leaves: a repeat that discord.py makes by itself raises `Repeated` instead."""
    token = _once.set([])
    try:
        yield
    finally:
        _once.reset(token)


def redirect(route: Route, api_url: str) -> None:
    """Point a route at the API under `api_url`."""
    route.url = api_url + route.url.removeprefix(Route.BASE)


def as_shown(data: Any) -> str:
    """Return an event as people may see it: without secrets, and cut."""
    shown = {**data, "token": "<token>"} if isinstance(data, dict) and "token" in data else data
    return json.dumps(shown, ensure_ascii=True, default=repr)[:_LOGGED_CHARACTERS]


def set_aside(event: str, data: Any, error: BaseException) -> None:
    """Leave a visible record of an event that nobody will see otherwise; secrets in it are not shown."""
    _log.error("discord_event_set_aside", kind=event, reason=f"{type(error).__name__}: {error}", data=as_shown(data))


class Listener(Protocol):
    """What a client tells, always from inside the loop and never for long."""

    def on_session(self, client: GatewayClient) -> None:
        """A new session has begun: what came before it is not delivered by the gateway."""

    def on_event(self, client: GatewayClient, name: str, data: Any) -> None:
        """An event about a message or an interaction, as it came."""

    def on_unreadable(self, name: str, data: Any, error: Exception) -> None:
        """An event of any kind that discord.py, or whoever it was handed to, could not read."""

    def on_thread_gone(self, told: Any) -> None:
        """A thread was deleted; what Discord tells of it, as it came."""

    def on_connection(self, client: GatewayClient) -> None:
        """The connection was lost or is there again."""


class Http(HTTPClient):
    """The REST side, and the door to the gateway."""

    def __init__(self, loop: asyncio.AbstractEventLoop, api_url: str, gateway_url: str | None) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(self._before)
        trace.on_request_end.append(self._after)
        super().__init__(loop, http_trace=trace)
        # The option of the client has a floor of 30 s; what reads this value has none.
        self.max_ratelimit_timeout = LONGEST_WAIT
        self._api_url = api_url.rstrip("/")
        self._gateway_url = gateway_url
        self._told_gateway: str | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._global_until = 0.0

    @property
    def api_url(self) -> str:
        """Where the REST API is."""
        return self._api_url

    @property
    def globally_limited(self) -> bool:
        """Whether Discord has asked the whole account to wait."""
        return asyncio.get_running_loop().time() < self._global_until

    async def request(self, route: Route, **kwargs: Any) -> Any:
        """Make a call as discord.py does, but never end one because its caller lost interest."""
        left = self._global_until - asyncio.get_running_loop().time()
        if left > 0 and self._global_over.is_set():
            # The library sits out a short wait of the whole account, but forgets a long one as soon as it has told it.
            raise discord.RateLimited(left)
        redirect(route, self._api_url)
        kwargs.setdefault("timeout", aiohttp.ClientTimeout(total=CALL_SECONDS))
        call = asyncio.create_task(super().request(route, **kwargs), name=f"discord {route.method} {route.path}")
        self._calls.add(call)
        call.add_done_callback(self._done)
        return await asyncio.shield(call)

    async def find_gateway(self) -> None:
        """Ask the API for the gateway, unless it is configured. Raises NoSessionsLeft before the token is at risk."""
        if self._gateway_url is not None:
            return
        told = await self.request(Route("GET", "/gateway/bot"))
        limit = told.get("session_start_limit") or {}
        if limit.get("remaining", _SPARE_SESSIONS) < min(_SPARE_SESSIONS, limit.get("total", 0)):
            raise NoSessionsLeft(asked_wait(limit["reset_after"] / 1000, 0.0))
        self._told_gateway = told["url"]

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Connect to the gateway; a configured address counts for resumed sessions too."""
        address = self._gateway_url
        if address is None and urlsplit(url).hostname == DiscordWebSocket.DEFAULT_GATEWAY.host:
            address = self._told_gateway
        if address is not None:
            target = urlsplit(address)
            query = "&".join(part for part in (target.query, urlsplit(url).query) if part)
            url = urlunsplit((target.scheme, target.netloc, target.path or "/", query, ""))
        return await super().ws_connect(url, compress=compress)

    async def close(self) -> None:
        """Close every connection; calls in flight end."""
        await super().close()
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    def _done(self, call: asyncio.Task[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # its caller may have gone; then nobody else looks at it

    async def _before(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, params: aiohttp.TraceRequestStartParams
    ) -> None:
        made = _once.get()
        if made is None:
            return
        if made:
            raise Repeated(f"{params.method} {params.url.path} failed")
        made.append(params.method)

    async def _after(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        headers = params.response.headers
        if params.response.status == _TOO_MANY and headers.get("X-RateLimit-Scope") == "global":
            now = asyncio.get_running_loop().time()
            self._global_until = max(self._global_until, now + asked_wait(headers.get("Retry-After"), 0.0))


class _State(ConnectionState["GatewayClient"]):
    """What the client knows of guilds and channels; messages are not kept, and not even parsed."""

    #: Handed on as they came: the library would build, and could fail on, far more than is needed of them.
    RAW = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE")

    def __init__(self, listener: Listener, **options: Any) -> None:
        super().__init__(**options)
        self._listener = listener
        #: The newest connection to the gateway, also while it is still being made.
        self.socket: DiscordWebSocket | None = None
        #: Set when every server that READY named has been told of.
        self.servers_known = asyncio.Event()
        self._awaited: set[str] = set()
        parsers = {name: self._guarded(name, parse) for name, parse in self.parsers.items() if name != "READY"}
        for name in self.RAW:
            parsers[name] = self._guarded(name, self._handed(name))
        self.parsers = {**parsers, "READY": self.parse_ready}

    def parse_ready(self, data: Any) -> None:
        """Begin a session; the listener hears of it before any later event."""
        super().parse_ready(data)
        self._awaited = {guild["id"] for guild in data["guilds"]}
        self.servers_known.clear()
        self._arrived(None)
        client = self._get_client()
        client.connected()
        self._listener.on_session(client)

    async def close(self) -> None:
        """Leave nothing behind: the library waits for servers in a task that it does not end."""
        waiting = self._ready_task
        while waiting is not None and not waiting.done():
            # More than once: before Python 3.12, `wait_for` may swallow a cancellation.
            waiting.cancel()
            await asyncio.wait([waiting], timeout=_AGAIN_SECONDS)
        await super().close()

    def parse_guild_create(self, data: Any) -> None:
        """Learn of a server."""
        try:
            super().parse_guild_create(data)
        finally:
            self._arrived(data.get("id"))

    def parse_thread_delete(self, data: Any) -> None:
        """Hand on which channel a thread had, before the library forgets it."""
        self._listener.on_thread_gone(data)
        super().parse_thread_delete(data)

    def _arrived(self, guild: str | None) -> None:
        self._awaited.discard(guild or "")
        if not self._awaited:
            self.servers_known.set()

    def _handed(self, name: str) -> Callable[[Any], None]:
        def handed(data: Any) -> None:
            self._listener.on_event(self._get_client(), name, data)

        return handed

    def _guarded(self, name: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        def guarded(data: Any) -> None:
            try:
                parse(data)
            except Exception as error:  # noqa: BLE001  (whatever is wrong with it, it must not end the connection)
                self._listener.on_unreadable(name, data, error)

        return guarded

    def _update_references(self, ws: DiscordWebSocket) -> None:
        super()._update_references(ws)
        self.socket = ws


class GatewayClient(discord.Client):
    """One login and its gateway connection. Used once: a closed client is replaced, not opened again."""

    def __init__(self, api_url: str, gateway_url: str | None, listener: Listener) -> None:
        # Read by `_get_state`, which the library's constructor calls.
        self._addresses = (api_url, gateway_url)
        self._listener = listener
        #: Since when (by the loop's clock) there has been no session; None while there is one.
        self.lost_since: float | None = asyncio.get_running_loop().time()
        #: Whether there ever was one.
        self.had_session = False
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
            heartbeat_timeout=HEARTBEAT_SECONDS,
        )

    @property
    def rest(self) -> Http:
        """The REST side."""
        return self._rest

    @property
    def state(self) -> ConnectionState[GatewayClient]:
        """What the library's own objects are made from."""
        return self._connection

    async def wait_for_servers(self, seconds: float) -> None:
        """Return when it is known which channels there are, or after so many seconds: a server may be out of order."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._own_state.servers_known.wait()

    @property
    def logged_in(self) -> bool:
        """Whether calls can be made."""
        return self.user is not None and not self.is_closed()

    def connected(self) -> None:
        """Note that there is a session."""
        self.lost_since = None
        self.had_session = True

    def _get_state(self, **options: Any) -> ConnectionState[GatewayClient]:
        self.http = self._rest = Http(self.loop, *self._addresses)
        self._own_state = _State(
            self._listener,
            dispatch=self.dispatch,
            handlers=self._handlers,
            hooks=self._hooks,
            http=self.http,
            **options,
        )
        return self._own_state

    async def close(self) -> None:
        """Close everything, also a connection that was only being made: its heartbeat is a thread."""
        await super().close()
        socket = self._own_state.socket
        if socket is not None and socket is not self.ws:
            await socket.close(code=1000)

    async def setup_hook(self) -> None:
        """Between login and connection."""
        await self.rest.find_gateway()

    async def on_resumed(self) -> None:
        """Hear that a lost connection goes on where it was."""
        self.connected()
        self._listener.on_connection(self)

    async def on_disconnect(self) -> None:
        """Hear that the connection was lost; the library tries to go on by itself."""
        if self.lost_since is None:
            self.lost_since = asyncio.get_running_loop().time()
        self._listener.on_connection(self)
