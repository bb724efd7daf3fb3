"""The event stream of one open page (server-sent events): transport for a `Follower`.

Contract: events `message` (with its id), `notice`, `turn`, `live`, `sessions`, `trouble` (a sentence, or null when it
is over; the stream goes on) and `gone` (the last one). A reconnecting page sends the id of the last row it has and
misses nothing. The stream ends when the page goes away, when the server closes, and after `gone`.
Limits: `MAX_STREAMS` at a time. Nothing is queued: what happens while a slow reader is served is read as one state
afterwards, and a reader that takes nothing for `SEND_SECONDS` is dropped. `HEARTBEAT_SECONDS` without news send a
comment. The few lines of the format are written here rather than by a library, because a stream must end at once when
our server, which owns no signals, closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response

from gateway.web.follow import Event, Follower
from gateway.web.replies import encode
from session_store import StoreClosed, StoreError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from gateway.web.facade import WebFacade
    from gateway.web.window import Window
    from session_store import Subscription

__all__ = ["HEARTBEAT_SECONDS", "MAX_STREAMS", "SEND_SECONDS", "EventStream", "Streams"]

HEARTBEAT_SECONDS = 15.0
SEND_SECONDS = 30.0
MAX_STREAMS = 64

#: Least seconds between two looks, so that a busy store costs a page little; and between looks while it has trouble.
_PACE_SECONDS = 0.03
_TROUBLE_SECONDS = 2.0

_Write = Callable[[bytes], Awaitable[None]]


class Streams:
    """The open streams of one application, and their common end."""

    def __init__(self) -> None:
        self.open: set[EventStream] = set()
        self.closing = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether no further stream may be opened."""
        return len(self.open) >= MAX_STREAMS

    def close(self) -> None:
        """End all streams, those that come later too."""
        self.closing.set()


class EventStream(Response):
    """One stream. session_id None follows only the list of sessions."""

    media_type = "text/event-stream"

    def __init__(
        self,
        facade: WebFacade,
        window: Window,
        streams: Streams,
        *,
        session_id: str | None,
        after: int,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._facade = facade
        self._streams = streams
        self._wake = asyncio.Event()
        self._follower = Follower(facade, window, self._wake.set, session_id=session_id, after=after)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream to its end."""
        del scope
        self._streams.open.add(self)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._stream(receive, send)
            with anyio.move_on_after(1):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._streams.open.discard(self)

    async def _stream(self, receive: Receive, send: Send) -> None:
        changes = self._facade.db.changes.subscribe()  # before the first look, so that nothing falls between
        with self._follower:
            async with anyio.create_task_group() as tasks:
                end = tasks.cancel_scope.cancel

                async def write(chunk: bytes) -> None:
                    with anyio.move_on_after(SEND_SECONDS) as limit:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    if limit.cancelled_caught:
                        end()

                tasks.start_soon(_then, self._streams.closing.wait, end)
                tasks.start_soon(_then, lambda: _disconnected(receive), end)
                tasks.start_soon(_then, lambda: self._watch(changes), end)
                await self._feed(write)
                end()

    async def _feed(self, write: _Write) -> None:
        await write(b": open\n\n")
        trouble: str | None = None
        while not self._follower.gone:
            self._wake.clear()
            try:
                events = await self._follower.look()
            except StoreError as error:
                events = [] if trouble == str(error) else [Event("trouble", {"error": str(error)})]
                trouble = str(error)
                due = time.monotonic() + _TROUBLE_SECONDS
            else:
                if trouble is not None:
                    events.insert(0, Event("trouble", {"error": None}))
                    trouble = None
                due = self._follower.due
            if events:
                await write(b"".join(map(_frame, events)))
            if not self._follower.gone:
                await asyncio.sleep(_PACE_SECONDS)
                await self._pause(due, write)

    async def _pause(self, due: float, write: _Write) -> None:
        """Until something happened or `due` has come, with heartbeats meanwhile."""
        while not self._wake.is_set() and (left := due - time.monotonic()) > 0:
            with anyio.move_on_after(min(left, HEARTBEAT_SECONDS)):
                await self._wake.wait()
                return
            if left > HEARTBEAT_SECONDS:
                await write(b": beat\n\n")

    async def _watch(self, changes: Subscription) -> None:
        """Wake at every commit, until the store is closed."""
        with contextlib.suppress(StoreClosed):
            while True:
                if await changes.wait(HEARTBEAT_SECONDS):
                    self._wake.set()


async def _then(wait: Callable[[], Awaitable[object]], end: Callable[[], None]) -> None:
    await wait()
    end()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _frame(event: Event) -> bytes:
    head = f"event: {event.kind}\n" if event.id is None else f"id: {event.id}\nevent: {event.kind}\n"
    return head.encode() + b"data: " + encode(event.data) + b"\n\n"
