"""What is done about messages that come while the agent works, beyond that they wait.

Contract: everything follows from the store, so it is the same after a restart and for turns of other processes. With
`busy: interrupt` a newer message of a turn's person asks for that turn to end; the message is worked next. Who waits on
a chat platform behind a running turn for more than `TELL_SECONDS` is told so once: one notice for all that wait in the
line at that time. What a running turn may still take in is not told.
Failure: a store that fails is tried again at the next look. Limits: looked at every `LOOK_SECONDS`, or, where turns are
interrupted, soon after every commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import anyio
import structlog

from gateway.bell import Bell
from gateway.places import LOCAL_PLATFORMS
from session_store import NewOutbox, PlaceRef, StoreError

if TYPE_CHECKING:
    from session_store import SessionDB
    from session_store.busy import Behind

__all__ = ["TELL_SECONDS", "WAITING", "Attention"]

TELL_SECONDS = 5.0
LOOK_SECONDS = 1.0
#: Between two looks that commits ring for.
REST_SECONDS = 0.1

WAITING = "I am still working on the former message; this one comes next."

#: Where nobody sits and waits: the page shows it by itself, and a letter takes its time.
_UNTOLD = LOCAL_PLATFORMS | {"email"}

_log = structlog.get_logger(__name__)


class Attention:
    """Looks after the messages of some accounts that wait. steering: running turns take them in by themselves."""

    def __init__(
        self,
        db: SessionDB,
        accounts: Callable[[], Sequence[tuple[str, str]]],
        busy: Literal["queue", "interrupt", "steer"],
        *,
        steering: bool = False,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._interrupts = busy == "interrupt"
        self._steering = steering
        # What needs no second transaction: messages told of, turns asked to end.
        self._done: set[int | str] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        bell = Bell(self._db)
        while True:
            try:
                await self.look()
            except StoreError as error:
                _log.warning("waiting_not_looked_after", error=str(error))
            if self._interrupts:
                await anyio.sleep(REST_SECONDS)
                await bell.wait(LOOK_SECONDS)
            else:
                await anyio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once."""
        waiting = await self._db.busy.behind(self._accounts())
        self._done &= {one.inbox_id for one in waiting} | {one.turn_id for one in waiting}
        for one in waiting:
            if self._interrupts and one.own:
                await self._interrupt(one)
            elif one.first and self._to_be_told(one):
                await self._tell(one)

    async def _interrupt(self, one: Behind) -> None:
        if one.turn_id not in self._done and await self._db.busy.interrupt(one.inbox_id, one.turn_id):
            self._done.add(one.turn_id)

    def _to_be_told(self, one: Behind) -> bool:
        if one.platform in _UNTOLD or one.inbox_id in self._done or (self._steering and one.steers):
            return False
        return time.time() - max(one.received_at, one.turn_started_at) > TELL_SECONDS

    async def _tell(self, one: Behind) -> None:
        place = PlaceRef(one.platform, one.account, one.chat_type, one.chat, one.thread)
        reply_to = None if one.chat_type == "dm" else one.message_id
        await self._db.busy.tell(one.inbox_id, one.turn_id, NewOutbox(place, "notice", WAITING, reply_to))
        self._done.add(one.inbox_id)
