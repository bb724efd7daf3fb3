"""What an account missed while nobody served it: from where its adapter asks, and since when.

Contract: before an adapter that catches up is started, it is told the newest message known in each of the
`PLACES` places used last, and when the account was last served. That time is written again and again, for accounts
that have been connected for `SETTLED_SECONDS` without a break: until then what came during the absence may still be
fetched, and a new start must ask for it once more.
Failure: a store that cannot be read keeps the account from starting, since what was missed would be lost; the caller
tries again. A time that cannot be written is written at the next beat; meanwhile the older one only asks for more.
Limits: the time is that of this machine; adapters allow for clocks that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import structlog

from adapters.base import AdapterState, CatchesUp
from gateway.places import place_of_ref
from session_store import StoreError

if TYPE_CHECKING:
    from adapters.base import Adapter
    from session_store import SessionDB

__all__ = ["Presence"]

PLACES = 50
BEAT_SECONDS = 10.0
SETTLED_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class Presence:
    """Keeps the life signs of the accounts of one process."""

    def __init__(self, db: SessionDB, adapters: Mapping[tuple[str, str], Adapter]) -> None:
        self._db = db
        self._adapters = adapters
        self._since: dict[tuple[str, str], float] = {}

    async def prepare(self, account: tuple[str, str]) -> None:
        """Tell the adapter of an account, which is about to be started, from where to catch up; if it does."""
        self._since.pop(account, None)
        adapter = self._adapters[account]
        if isinstance(adapter, CatchesUp):
            newest = await self._db.presence.newest(account, PLACES)
            since = await self._db.presence.last_seen(account)
            adapter.resume_from({place_of_ref(ref): number for ref, number in newest}, since)

    async def run(self) -> None:
        """Write the life signs until cancelled."""
        while True:
            await anyio.sleep(BEAT_SECONDS)
            served = self._settled()
            try:
                if served:
                    await self._db.presence.seen(served)
            except StoreError as error:
                _log.warning("presence_not_written", error=str(error))

    def _settled(self) -> list[tuple[str, str]]:
        now = anyio.current_time()
        for account, adapter in self._adapters.items():
            if adapter.state is AdapterState.CONNECTED:
                self._since.setdefault(account, now)
            else:
                self._since.pop(account, None)
        return [account for account, since in self._since.items() if now - since >= SETTLED_SECONDS]
