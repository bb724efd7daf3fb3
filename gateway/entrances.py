"""The platform accounts of a gateway while it runs: started, kept up, their state told, stopped.

Contract: each account is on its own. One that cannot work as configured (`StartError`) is reported in one sentence and
left alone until the gateway is started again. One that fails in an unforeseen way, or whose adapter has ended by
itself, is started again, later each time. The others serve on meanwhile. `prepare` is awaited before each start,
`opened` is called when an account can send.
Limits: an adapter tells its state when it is asked, so an end by itself is noticed within `LOOK_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import anyio
import structlog

from adapters.base import AdapterState, StartError

if TYPE_CHECKING:
    from adapters.base import Adapter, Deliver

__all__ = ["Entrances"]

LOOK_SECONDS = 1.0
STOP_SECONDS = 5.0
LONGEST_WAIT = 60.0

Account: TypeAlias = tuple[str, str]

_log = structlog.get_logger(__name__)


class Entrances:
    """Supervises the adapters of one process."""

    def __init__(
        self,
        adapters: Mapping[Account, Adapter],
        deliver: Deliver,
        opened: Callable[[Account], None],
        prepare: Callable[[Account], Awaitable[None]] | None = None,
    ) -> None:
        self._adapters = adapters
        self._deliver = deliver
        self._opened = opened
        self._prepare = prepare
        self._begun: set[Account] = set()
        self._failed: dict[Account, str] = {}
        self._trouble: dict[Account, str] = {}
        self._news = anyio.Event()

    async def run(self) -> None:
        """Keep every account up until cancelled; returns only when none is left that could work."""
        async with anyio.create_task_group() as tasks:
            for account in self._adapters:
                tasks.start_soon(self._keep, account)

    async def stop(self) -> None:
        """Stop all adapters, `STOP_SECONDS` at most; call it when `run` has ended."""
        with anyio.move_on_after(STOP_SECONDS):
            async with anyio.create_task_group() as tasks:
                for account in self._adapters:
                    tasks.start_soon(self._stop, account)

    def states(self) -> dict[str, dict[str, str | None]]:
        """State word and problem sentence of each account, by `platform/account`."""
        told: dict[str, dict[str, str | None]] = {}
        for account, adapter in self._adapters.items():
            state, problem = adapter.state, adapter.problem
            if account in self._failed:
                state, problem = AdapterState.FAILED, self._failed[account]
            elif account in self._trouble:
                state, problem = AdapterState.RETRYING, self._trouble[account]
            elif account not in self._begun:
                state = AdapterState.STARTING
            told["/".join(account)] = {"state": state.value, "problem": problem}
        return told

    async def news(self, seconds: float) -> None:
        """Return when an account was started or has failed, or after `seconds`; other changes are not told."""
        with anyio.move_on_after(seconds):
            await self._news.wait()
        self._news = anyio.Event()

    async def _keep(self, account: Account) -> None:
        adapter = self._adapters[account]
        failures = 0
        while True:
            began = anyio.current_time()
            try:
                self._begun.add(account)
                if self._prepare is not None:
                    await self._prepare(account)
                await adapter.start(self._deliver)
                self._trouble.pop(account, None)
                self._opened(account)
                self._news.set()
                while adapter.state is not AdapterState.STOPPED:  # noqa: ASYNC110 - it tells only when asked
                    await anyio.sleep(LOOK_SECONDS)
                self._trouble[account] = "It has ended by itself and is started again; the reason is in the log."
                _log.error("account_ended", account="/".join(account))
            except StartError as error:
                self._failed[account] = str(error)
                self._news.set()
                _log.error("account_failed", account="/".join(account), problem=str(error))
                return
            except Exception as error:  # noqa: BLE001 - one account must not take the others down, whatever happens to it
                self._trouble[account] = f"It failed in an unforeseen way and is started again: {type(error).__name__}."
                _log.exception("account_broken", account="/".join(account))
            await self._stop(account)
            failures = 1 if anyio.current_time() - began > LONGEST_WAIT else failures + 1
            await anyio.sleep(min(LONGEST_WAIT, 2.0 ** min(failures - 1, 16)))

    async def _stop(self, account: Account) -> None:
        try:
            await self._adapters[account].stop()
        except Exception:  # noqa: BLE001 - whatever happens to one account, the others are stopped too
            _log.exception("account_not_stopped", account="/".join(account))
