"""The gateway: wiring, supervision, start and stop.

Contract: `Daemon.run` serves until SIGTERM or SIGINT, then drains: no new turn begins, running ones get `DRAIN_SECONDS`
to end (then they are left in order for the next start), what is due goes out, platforms are closed; all within 10 s.
An account that cannot work as configured is reported in one sentence and the others serve on. A second gateway with
the same account, or on the same web address, is refused.
Failure: a part that dies unexpectedly ends the daemon with its error; everything durable is in the store, so the next
start goes on where this one ended.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from adapters.base import AdapterState, StartError
from gateway.accounts import lock_account
from gateway.delivery import Delivery
from gateway.heart import Heart
from gateway.inbox import InboundEdge
from gateway.lanes import Lanes
from gateway.platforms import make_adapters, served_accounts
from gateway.recovery import Recovery
from gateway.web.app import create_app
from gateway.web.server import serve
from gateway.webdesk import WebDesk
from gateway.workshop import Workshop
from session_store import SessionDB

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from adapters.base import Adapter, Place
    from config import Home, Settings

__all__ = ["Daemon"]

DRAIN_SECONDS = 4.0
FLUSH_SECONDS = 1.5
STATUS_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Daemon:
    """One gateway process."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self._served = served_accounts(settings)
        self._adapters: dict[tuple[str, str], Adapter] = {}
        self._failed: dict[tuple[str, str], str] = {}

    async def run(self, announce: Callable[[str], None]) -> None:
        """Serve until told to stop. `announce` gets the address of the web chat once it answers."""
        async with AsyncExitStack() as stack:
            for (platform, account), served in self._served.items():
                stack.callback(lock_account(platform, account, served.token).release)
            self._adapters = make_adapters(self._served)
            db = await stack.enter_async_context(SessionDB(self._home.state_db))
            names = ["web/main", *(f"{platform}/{account}" for platform, account in self._adapters)]
            heart = await stack.enter_async_context(Heart(db, "gateway", names))
            await self._serve(db, heart, announce)

    async def _serve(self, db: SessionDB, heart: Heart, announce: Callable[[str], None]) -> None:
        workshop = await Workshop.prepare(self._settings, db, heart.token, typing=self._typing)
        edge = InboundEdge(self._settings, self._served, db, workshop.commands)
        lanes = Lanes(db, self._accounts, heart.token, workshop.desk.handle)
        recovery = Recovery(db, workshop.desk, self._accounts)
        delivery = Delivery(db, self._adapters, heart.token, unknown=self._settings.delivery.unknown)
        async with anyio.create_task_group() as tasks:
            address = await tasks.start(self._serve_web, WebDesk(workshop, self._health))
            tasks.start_soon(heart.beat)
            tasks.start_soon(heart.obey, workshop.runner)
            tasks.start_soon(recovery.run)
            async with anyio.create_task_group() as serving:
                serving.start_soon(lanes.run)
                serving.start_soon(delivery.run)
                starting = anyio.CancelScope()
                tasks.start_soon(self._start_adapters, edge, starting)
                tasks.start_soon(self._report, heart, address)
                announce(f"{address}/?token={self._web_token()}")
                await _until_told()
                _log.info("draining")
                starting.cancel()
                await self._drain(workshop, lanes, delivery)
            tasks.cancel_scope.cancel()

    async def _serve_web(self, desk: WebDesk, *, task_status: TaskStatus[str]) -> None:
        """Serve the page until cancelled; tells the address once it answers."""
        web = self._settings.web
        app = create_app(desk, token=self._web_token(), host=web.host, port=web.port)
        shown = "127.0.0.1" if web.host in {"0.0.0.0", "::"} else web.host  # noqa: S104 - compared, not bound
        listening = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, app, web.host, web.port, on_listening=listening.set))
            await listening.wait()
            task_status.started(f"http://{shown}:{web.port}")

    def _web_token(self) -> str:
        token = self._settings.web.token
        return token.get_secret_value() if token is not None else self._home.web_token()

    def _accounts(self) -> Sequence[tuple[str, str]]:
        return [("web", "main"), *self._adapters]

    async def _typing(self, place: Place) -> None:
        adapter = self._adapters.get((place.platform, place.account))
        if adapter is not None and adapter.capabilities.typing:
            await adapter.typing(place)

    async def _start_adapters(self, edge: InboundEdge, scope: anyio.CancelScope) -> None:
        async def start(name: tuple[str, str], adapter: Adapter) -> None:
            try:
                await adapter.start(edge.accept)
            except StartError as error:
                self._failed[name] = str(error)
                _log.error("account_failed", account="/".join(name), problem=str(error))

        with scope:
            async with anyio.create_task_group() as tasks:
                for name, adapter in self._adapters.items():
                    tasks.start_soon(start, name, adapter)

    async def _stop_adapters(self) -> None:
        async with anyio.create_task_group() as tasks:
            for adapter in self._adapters.values():
                tasks.start_soon(adapter.stop)

    async def _drain(self, workshop: Workshop, lanes: Lanes, delivery: Delivery) -> None:
        lanes.close()
        with anyio.move_on_after(DRAIN_SECONDS):
            await workshop.runner.idle()
        workshop.runner.leave_all()
        delivery.close()
        with anyio.move_on_after(FLUSH_SECONDS):
            await delivery.ended.wait()
        delivery.halt()
        await self._stop_adapters()

    def _health(self) -> dict[str, dict[str, str | None]]:
        """State and problem of each account, by `platform/account`."""
        states: dict[str, dict[str, str | None]] = {}
        for name, adapter in self._adapters.items():
            failed = self._failed.get(name)
            state = AdapterState.FAILED if failed else adapter.state
            states["/".join(name)] = {"state": state.value, "problem": failed or adapter.problem}
        for sentence in self._settings.unavailable():
            states[sentence.split()[0]] = {"state": AdapterState.FAILED.value, "problem": sentence}
        return states

    async def _report(self, heart: Heart, address: str) -> None:
        """Keep the stored status current."""
        told: object = None
        while True:
            detail = {"address": address, "accounts": self._health()}
            if detail != told:
                await heart.tell(detail)
                told = detail
            await anyio.sleep(STATUS_SECONDS)


async def _until_told() -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            _log.info("told_to_stop", signal=signal.Signals(number).name)
            return
