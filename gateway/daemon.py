"""The gateway: wiring, supervision, start and stop.

Contract: `Daemon.run` serves until it is told to stop (SIGTERM or SIGINT, unless the caller says otherwise), then
drains: no new turn begins, running ones get a moment to end and are left in order for the next start, what is due goes
out, platforms and page are closed. Each phase has its limit, all together less than 10 s, whatever hangs.
An account that cannot work as configured is reported in one sentence and the others serve on. A second gateway with
the same account, or on the same web address, is refused.
Failure: a part that dies unexpectedly ends the daemon with its error; everything durable is in the store, so the next
start goes on where this one ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import anyio.to_thread
import structlog

from adapters.base import Reports
from gateway.accounts import lock_account
from gateway.attention import Attention
from gateway.delivery import Delivery
from gateway.entrances import Entrances
from gateway.handoff import Handoffs
from gateway.heart import Heart
from gateway.inbox import InboundEdge
from gateway.lanes import Lanes
from gateway.platforms import make_adapters, served_accounts
from gateway.presence import Presence
from gateway.recovery import Recovery
from gateway.stopping import told_to_stop
from gateway.web.app import create_app
from gateway.web.server import bind, serve_on
from gateway.web.token import web_token
from gateway.webdesk import WebDesk
from gateway.workshop import Workshop
from session_store import SessionDB, StoreError

if TYPE_CHECKING:
    import socket

    from adapters.base import Adapter, Place
    from config import Home, Settings
    from gateway.platforms import Served

__all__ = ["Daemon"]

#: Seconds of the phases of the drain: for turns to end by themselves; for those left to be written down and for what is
#: due to go out; for whatever is still under way after platforms and page were closed (which has limits of its own).
TURNS_SECONDS = 2.5
FLUSH_SECONDS = 1.5
LAST_SECONDS = 0.5

#: How often the state of the accounts is looked at, and how often mere counts are told again.
STATUS_SECONDS = 1.0
COUNTS_SECONDS = 30.0

#: Where one reaches what listens on every address.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound

_log = structlog.get_logger(__name__)

Told = Callable[[], Awaitable[object]]


class Daemon:
    """One gateway process."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings

    async def run(self, announce: Callable[[str], None], told: Told = told_to_stop) -> None:
        """Serve until `told` returns. `announce` gets the address of the web chat, with its token, once it answers."""
        settings, served = self._settings, served_accounts(self._settings)
        async with AsyncExitStack() as stack:
            for (platform, account), facts in served.items():
                lock = await anyio.to_thread.run_sync(lock_account, platform, account, facts.token)
                stack.callback(lock.release)
            # The platforms' libraries are many files: not on the event loop.
            adapters = await anyio.to_thread.run_sync(make_adapters, served)
            token = await anyio.to_thread.run_sync(web_token, self._home, self._settings)
            listener = await bind(settings.web.host, settings.web.port)
            stack.callback(listener.close)
            db = await stack.enter_async_context(SessionDB(self._home.state_db, redact=settings.redact == "store"))
            names = ["web/main", *("/".join(name) for name in adapters)]
            heart = await stack.enter_async_context(Heart(db, "gateway", names))
            service = await _Service.prepare(settings, served, adapters, db, heart)
            await service.run(listener, token, announce, told)


class _Service:
    """The running parts of a gateway."""

    def __init__(
        self,
        settings: Settings,
        served: Mapping[tuple[str, str], Served],
        adapters: Mapping[tuple[str, str], Adapter],
        workshop: Workshop,
        heart: Heart,
    ) -> None:
        db, holder = workshop.db, workshop.holder
        self._settings = settings
        self._workshop = workshop
        self._heart = heart
        self._accounts = [("web", "main"), *adapters]
        self._delivery = Delivery(db, adapters, holder, unknown=settings.delivery.unknown, streaming=workshop.streaming)
        self._edge = InboundEdge(settings, served, db, workshop.commands)
        for adapter in adapters.values():
            if isinstance(adapter, Reports):
                adapter.report_to(self._edge.report)
        self._presence = Presence(db, adapters)
        self._entrances = Entrances(adapters, self._edge.accept, self._delivery.open, self._presence.prepare)
        self._attention = Attention(db, self._owned, settings.busy, steering=workshop.steering)
        self._lanes = Lanes(db, self._owned, holder, workshop.desk)
        self._recovery = Recovery(db, workshop.desk, self._owned)
        self._handoffs = Handoffs(workshop, adapters)
        self._rows_ended = anyio.Event()
        self._web_ended = anyio.Event()

    @classmethod
    async def prepare(
        cls,
        settings: Settings,
        served: Mapping[tuple[str, str], Served],
        adapters: Mapping[tuple[str, str], Adapter],
        db: SessionDB,
        heart: Heart,
    ) -> _Service:
        """Put the parts together."""

        async def typing(place: Place) -> None:
            adapter = adapters.get((place.platform, place.account))
            if adapter is not None and adapter.capabilities.typing:
                await adapter.typing(place)

        workshop = await Workshop.prepare(settings, db, heart.token, typing=typing, adapters=adapters)
        return cls(settings, served, adapters, workshop, heart)

    async def run(self, listener: socket.socket, token: str, announce: Callable[[str], None], told: Told) -> None:
        """Serve until told to stop, then drain."""
        address = _address(self._settings.web.host, listener)
        receiving, serving_web = anyio.CancelScope(), anyio.CancelScope()
        listening, stopping = anyio.Event(), anyio.Event()

        async def wait() -> None:
            await told()
            stopping.set()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve_web, serving_web, listener, token, listening)
                await listening.wait()
                tasks.start_soon(self._heart.beat, self._workshop.runner)
                tasks.start_soon(self._heart.obey, self._workshop.runner)
                tasks.start_soon(self._presence.run)
                tasks.start_soon(self._attention.run)
                tasks.start_soon(self._workshop.titler.run)
                tasks.start_soon(self._workshop.streaming.run)
                tasks.start_soon(self._work_rows)
                tasks.start_soon(self._receive, receiving)
                tasks.start_soon(self._report, address)
                tasks.start_soon(wait)
                # Whoever reads that it runs may tell it to stop in that moment: by then it must be listening.
                await anyio.lowlevel.checkpoint()
                announce(f"{address}/?token={token}")
                await stopping.wait()
                _log.info("draining")
                receiving.cancel()
                await self._drain(serving_web)
                tasks.cancel_scope.cancel()
        finally:
            # Also after a part has died; what was stopped already is stopped at once.
            with anyio.CancelScope(shield=True):
                await self._entrances.stop()

    async def _serve_web(
        self, scope: anyio.CancelScope, listener: socket.socket, token: str, listening: anyio.Event
    ) -> None:
        desk = WebDesk(self._workshop, self._entrances.states, lambda: self._heart.well)
        port: int = listener.getsockname()[1]
        app = create_app(desk, token=token, host=self._settings.web.host, port=port)
        with scope:
            await serve_on(app, listener, on_listening=listening.set)
        self._web_ended.set()

    async def _work_rows(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._lanes.run)
            tasks.start_soon(self._recovery.run)
            tasks.start_soon(self._handoffs.run)
            tasks.start_soon(self._delivery.run)
        self._rows_ended.set()

    async def _receive(self, scope: anyio.CancelScope) -> None:
        with scope:
            await self._entrances.run()

    async def _drain(self, serving_web: anyio.CancelScope) -> None:
        runner = self._workshop.runner
        self._lanes.close()
        self._recovery.close()
        self._handoffs.close()
        self._workshop.desk.close()
        with anyio.move_on_after(TURNS_SECONDS):
            await runner.idle()
        runner.leave_all()
        self._delivery.close()
        with anyio.move_on_after(FLUSH_SECONDS):
            await runner.idle()
            await self._delivery.ended.wait()
        self._delivery.halt()
        serving_web.cancel()
        await self._entrances.stop()
        await self._web_ended.wait()
        with anyio.move_on_after(LAST_SECONDS):
            await self._rows_ended.wait()

    def _owned(self) -> Sequence[tuple[str, str]]:
        return self._accounts

    async def _report(self, address: str) -> None:
        """Keep current what `gateway status` shows of this process; an adapter tells its state only when asked."""
        told: object = None
        told_at = anyio.current_time()
        while True:
            states, refused = self._entrances.states(), dict(self._edge.refused)
            due = told_at + COUNTS_SECONDS <= anyio.current_time()
            if states != told or due:
                try:
                    await self._heart.tell({"address": address, "accounts": states, "refused": refused})
                    told, told_at = states, anyio.current_time()
                except StoreError as error:
                    _log.warning("status_not_told", error=str(error))
                    await anyio.sleep(STATUS_SECONDS)
            await self._entrances.news(STATUS_SECONDS)


def _address(host: str, listener: socket.socket) -> str:
    """The web chat's address as a browser on this machine takes it."""
    shown = _EVERYWHERE.get(host.strip("[]"), host.strip("[]"))
    port: int = listener.getsockname()[1]
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
