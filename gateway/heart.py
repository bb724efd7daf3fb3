"""The life signs of this process in the store: registration, beats of process and leases, stop requests, old rows.

Contract: `Heart` registers the process when entered and removes it when left in order; a killed process is recognised
by its process id and start time. Every `BEAT_SECONDS` the process and the leases it holds are beaten, and work on a
conversation that another process took over meanwhile is dropped. Requests to stop a turn that runs here are carried
out; they stay open until the turn is settled, so that a turn which must be run again is stopped again.
Failure: a store that cannot be written is tried again at the next beat, and `well` says so; after 60 s others may take
over. Limits: rows that were settled long ago, and files that no message names any more, are removed once an hour, the
first time a while after the start, so that a process that lives only for a question has nothing to do with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import anyio
import structlog

from gateway.bell import Bell
from session_store import StoreError

if TYPE_CHECKING:
    from types import TracebackType

    from gateway.turns import TurnRunner
    from session_store import SessionDB

__all__ = ["Heart"]

BEAT_SECONDS = 10.0
SWEEP_SECONDS = 3600.0
FIRST_SWEEP_SECONDS = 60.0
RETRY_SECONDS = 1.0
#: Between two looks for requests to stop, however much is committed.
LOOK_REST_SECONDS = 0.1

_log = structlog.get_logger(__name__)


class Heart:
    """Registration and beats of one process. `well`: whether the last beat was written."""

    def __init__(self, db: SessionDB, role: str, accounts: Sequence[str] = ()) -> None:
        self._db = db
        self._role = role
        self._accounts = list(accounts)
        self.token = ""
        self.well = True

    async def __aenter__(self) -> Self:
        self.token = await self._db.processes.register(self._role, self._accounts, {})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._db.processes.remove(self.token)
            except StoreError as failure:
                _log.warning("process_not_removed", error=str(failure))

    async def tell(self, detail: Mapping[str, Any]) -> None:
        """What `gateway status` shows of this process."""
        await self._db.processes.set_detail(self.token, detail)

    async def beat(self, runner: TurnRunner) -> None:
        """Beat until cancelled, drop what `runner` has lost, forget old rows once an hour."""
        sweep_at = anyio.current_time() + FIRST_SWEEP_SECONDS
        while True:
            try:
                await self._db.processes.beat(self.token)
                await self._db.turns.beat(self.token)
                self.well = True
                await runner.drop_lost()
                if anyio.current_time() >= sweep_at:
                    sweep_at = anyio.current_time() + SWEEP_SECONDS
                    await self._sweep()
            except StoreError as error:
                self.well = False
                _log.warning("beat_failed", error=str(error))
            await anyio.sleep(BEAT_SECONDS)

    async def _sweep(self) -> None:
        await self._db.processes.forget_dead()
        await self._db.inbox.forget()
        await self._db.outbox.sweep()
        await self._db.control.expire()
        await self._db.attachments.sweep()

    async def obey(self, runner: TurnRunner) -> None:
        """Carry out stop requests for turns that run here, until cancelled."""
        bell = Bell(self._db, "control", "turns", rest=LOOK_REST_SECONDS)
        while True:
            try:
                # A turn that is claimed but does not run yet is stopped at the next look, which must come soon.
                missed = False
                for request in await self._db.control.open_for(self.token):
                    if request["root_id"] is not None and request["kind"] in {"stop", "cancel"}:
                        newer = request["kind"] == "cancel"
                        missed |= not runner.stop(request["root_id"], request["turn_id"], newer=newer)
                await bell.wait(RETRY_SECONDS if missed else BEAT_SECONDS)
            except StoreError as error:
                _log.warning("control_unreadable", error=str(error))
                await anyio.sleep(RETRY_SECONDS)
