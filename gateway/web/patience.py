"""How long the web server waits for the other end of a connection, and how many connections it keeps.

Contract: `PatientProtocol` is uvicorn's HTTP/1.1 with limits that uvicorn does not have. The head of a request must be
there `HEAD_SECONDS` after the connection, or after the answer before it, its body `BODY_SECONDS` after its head,
however slowly the bytes come; what was written must be taken within `TAKE_SECONDS`. A connection that breaks a limit is
cut without an answer, as is every one beyond `MAX_CONNECTIONS`. A request that has arrived may be worked on for as long
as it takes, and an event stream may be open for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["BODY_SECONDS", "HEAD_SECONDS", "MAX_CONNECTIONS", "TAKE_SECONDS", "PatientProtocol"]

HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
TAKE_SECONDS = 60.0
#: More than the server answers at a time, so that those beyond that are told so.
MAX_CONNECTIONS = 320

_log = structlog.get_logger(__name__)


class PatientProtocol(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Begin to wait for a request, unless there are too many who do."""
        super().connection_made(transport)
        #: What is waited for, and until when; nothing while the server itself is at work.
        self._awaited: object = None
        self._limit: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        if len(self.connections) > MAX_CONNECTIONS:
            self._cut("too many connections")
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        for timer in (self._limit, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Work what has come, and look at what is missing."""
        super().handle_events()
        self._watch()

    def pause_writing(self) -> None:
        """Hear that the other end does not take what was written."""
        super().pause_writing()
        self._taking = self.loop.call_later(TAKE_SECONDS, self._cut, "an answer that nobody takes")

    def resume_writing(self) -> None:
        """Hear that it does."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _watch(self) -> None:
        awaited = self.conn.their_state
        if awaited is self._awaited:
            return
        self._awaited = awaited
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if awaited is h11.IDLE:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._cut, "a request that does not come")
        elif awaited is h11.SEND_BODY:
            self._limit = self.loop.call_later(BODY_SECONDS, self._cut, "a body that does not come")

    def _cut(self, reason: str) -> None:
        _log.info("web_connection_cut", reason=reason, peer=self.client[0] if self.client else None)
        self.transport.abort()
