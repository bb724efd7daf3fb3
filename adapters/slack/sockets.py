"""One socket of Socket Mode, from connecting to the end.

Contract: an envelope is confirmed only when the app has taken it, over the socket that it came by. `connect` is one
bounded try; `ended` returns why the socket is of no use any more: Slack said so, it was closed, nothing was heard for
`SILENT_SECONDS`, or it is open but brings nothing. A socket is never repaired, it is replaced: the SDK's own way back
tries a used-up address for ever, measures by the wall clock and may wait in places where nothing ends it.
Limits: while `MOST_WAITING` envelopes wait, nothing more is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.async_base_handler import AsyncBaseSocketModeHandler
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.app import NOT_TAKEN, Aside
from adapters.slack.connection import SDK_LOG

__all__ = ["Line"]

PING_SECONDS = 2.5
SILENT_SECONDS = 8.0
CONNECT_SECONDS = 10.0
MOST_WAITING = 256
_LOOK_SECONDS = 0.25
_CLOSE_SECONDS = 0.75

_log = structlog.get_logger(__name__)


class Line:
    """One socket. Make it inside the running loop, and `close` it whatever happens."""

    def __init__(self, app: AsyncApp, app_token: str, web: AsyncWebClient, aside: Aside) -> None:
        self._client = _Handler(app, app_token, web, aside).client

    async def connect(self, url: str) -> None:
        """Connect and wait for Slack's greeting; raises TimeoutError, or what aiohttp raises."""
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._client.open(url)
            await self._client.greeted.wait()

    async def ended(self, suspected: Callable[[], bool]) -> str:
        """Return why it must be replaced, as soon as it must; `suspected` tells what cannot be seen from here."""
        client = self._client
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.over.wait(), _LOOK_SECONDS)
            if client.reason:
                return client.reason
            if client.current_session is None or client.current_session.closed:
                return "it was closed"
            if client.silent_for() > SILENT_SECONDS:
                return "it is silent"
            if suspected():
                return "it is open, but brings nothing"

    async def drain(self, seconds: float) -> None:
        """Let what came over it be confirmed over it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._client.tasks:
                    await asyncio.wait(self._client.tasks)

    async def close(self) -> None:
        """End it, if need be without the peer."""
        client = self._client
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await client.close()  # type: ignore[no-untyped-call]
        parts = (client.message_processor, client.current_session_monitor, client.message_receiver)
        tasks = [*client.tasks, *(part for part in parts if part is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        await client.aiohttp_client_session.close()


class _Client(SocketModeClient):
    """The SDK's client, for one socket and no second one."""

    def __init__(self, app_token: str, web: AsyncWebClient, aside: Aside) -> None:
        super().__init__(
            app_token,
            logger=SDK_LOG,
            web_client=web,
            auto_reconnect_enabled=False,
            ping_interval=PING_SECONDS,
            on_message_listeners=[self._heard],
            on_error_listeners=[self._broken],
            on_close_listeners=[self._broken],
        )
        self._aside = aside
        self.proxy = web.proxy
        self.message_listeners.append(self._look)
        self.greeted = asyncio.Event()
        self.over = asyncio.Event()
        self.reason = ""
        #: Envelopes in work. Nobody else holds them: a task that is not held may vanish.
        self.tasks: set[asyncio.Future[None]] = set()
        self._room = asyncio.Event()
        self._heard_at = time.monotonic()
        self._pong: float | None = None

    def silent_for(self) -> float:
        """Return the seconds since the last sign of life, counted only while we listen."""
        now = time.monotonic()
        if self.last_ping_pong_time != self._pong or self._full():
            self._pong, self._heard_at = self.last_ping_pong_time, now
        return now - self._heard_at

    async def open(self, url: str) -> None:
        """Connect once; the SDK's own `connect` would try the same address again and again."""
        self.current_session = await self.aiohttp_client_session.ws_connect(
            url,
            autoping=False,
            # Its pong must come in half the time: with the SDK's own choice, a second of delay would end the socket.
            heartbeat=2 * self.ping_interval,
            proxy=self.proxy,
            ssl=self.web_client.ssl if self.web_client.ssl is not None else True,
        )
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
        self.message_receiver = asyncio.ensure_future(self.receive_messages())

    async def connect_to_new_endpoint(self, force: bool = False) -> None:  # noqa: FBT001, FBT002  (the SDK's form)
        """Take note that Slack asks for a new socket; making it is not this one's affair."""
        del force
        self._end("Slack asked for it")

    async def process_message(self) -> None:
        """Begin to work on the next message."""
        raw = await self.message_queue.get()
        self._room.set()
        try:
            message = json.loads(raw)
        except ValueError as error:
            task = asyncio.ensure_future(self._aside.put(raw, f"it is no JSON: {error}"))
        else:
            task = asyncio.ensure_future(self._work(message, raw))
        self.tasks.add(task)
        task.add_done_callback(self._done)

    async def _work(self, message: Any, raw: str) -> None:
        if isinstance(message, dict):
            await self.run_message_listeners(message, raw)
        else:
            await self._aside.put(message, "it is no object")

    async def _heard(self, message: WSMessage) -> None:
        """Note a sign of life, and read on only when not too much waits already."""
        del message
        self._heard_at = time.monotonic()
        while self._full():
            self._room.clear()
            await self._room.wait()

    async def _broken(self, message: WSMessage) -> None:
        del message
        self._end("it was closed")

    async def _look(self, client: AsyncBaseSocketModeClient, message: dict[str, Any], raw: str | None) -> None:
        """Look at each message before the SDK does; it passes over broken envelopes without a word."""
        del client, raw
        if message.get("type") == "hello":
            self.greeted.set()
            return
        envelope = message.get("envelope_id")
        if "payload" not in message and envelope is None:
            return
        if envelope is None or "type" not in message or not isinstance(message.get("payload"), dict | str):
            await self._aside.put(message, "it is no whole envelope")
            if isinstance(envelope, str):
                await self.send_socket_mode_response({"envelope_id": envelope})

    def _full(self) -> bool:
        return self.message_queue.qsize() + len(self.tasks) >= MOST_WAITING

    def _done(self, task: asyncio.Future[None]) -> None:
        self.tasks.discard(task)
        self._room.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("slack_frame_not_taken", reason=str(error) or type(error).__name__)

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.over.set()


class _Handler(AsyncBaseSocketModeHandler):
    """Hands envelopes to the app and confirms those that it has taken."""

    client: _Client

    def __init__(self, app: AsyncApp, app_token: str, web: AsyncWebClient, aside: Aside) -> None:
        self.app = self._bolt = app
        self._aside = aside
        self.client = _Client(app_token, web, aside)
        self.client.socket_mode_request_listeners.append(self.handle)

    async def handle(self, client: AsyncBaseSocketModeClient, req: SocketModeRequest) -> None:
        """Let the app take one envelope, then confirm it."""
        began = time.time()
        try:
            response = await run_async_bolt_app(self._bolt, req)
        except Exception as error:  # noqa: BLE001  (bolt stumbles over odd payloads before the app sees them)
            await self._aside.put(req.payload, f"{type(error).__name__}: {error}")
            response = BoltResponse(status=HTTPStatus.OK)
        if response.status == NOT_TAKEN:
            return
        if response.status != HTTPStatus.OK:
            # It was taken; what bolt made of it afterwards is nothing that Slack could mend by bringing it again.
            response = BoltResponse(status=HTTPStatus.OK)
        try:
            await send_async_response(client, req, response, began)
        except Exception as error:  # noqa: BLE001  (the socket is gone; Slack brings it again, and its key is known)
            _log.info("slack_confirmation_lost", reason=str(error) or type(error).__name__)
