"""The core of a gateway over a real store, with a fake platform and a fake agent; a test says what runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from adapters.base import AdapterState, InboundMessage, Verdict
from config import Settings
from gateway.attention import Attention
from gateway.delivery import Delivery
from gateway.handoff import Handoffs
from gateway.heart import Heart
from gateway.inbox import InboundEdge
from gateway.lanes import Lanes
from gateway.platforms import served_accounts
from gateway.recovery import Recovery
from gateway.workshop import Workshop
from session_store import MessageRow, SessionDB, SessionRow, StoreFull
from tests.unit.gateway_core.fakes import FakeAdapter, FakeAgent, event

__all__ = ["Hall", "failing", "settings"]

T = TypeVar("T")
OWN = [("telegram", "main")]


def settings(**changes: Any) -> Settings:
    """Settings with one Telegram account: user 42 is the owner, 43 is named, 44 is merely allowed."""
    telegram: dict[str, Any] = {"enabled": True, "token": "1:t", "allowed_users": ["44"]}
    given: dict[str, Any] = {
        "owner": {"telegram": ["42"]},
        "people": {"colleague": {"telegram": ["43"]}},
        "platforms": {"telegram": telegram | changes.pop("telegram", {})},
    }
    return Settings(**given | changes)


class Hall:
    """One process's parts. `open` makes it; `running` lets rows be worked and answers go out."""

    def __init__(self, db: SessionDB, workshop: Workshop, agent: FakeAgent, heart: Heart, adapter: FakeAdapter) -> None:
        self.db = db
        self.workshop = workshop
        self.agent = agent
        self.heart = heart
        self.holder = workshop.holder
        self.adapter = adapter
        self.edge = InboundEdge(workshop.settings, served_accounts(workshop.settings), db, workshop.commands)
        steering = workshop.steering
        self.attention = Attention(db, lambda: OWN, workshop.settings.busy, steering=steering)
        self.lanes = Lanes(db, lambda: OWN, self.holder, workshop.desk)
        self.recovery = Recovery(db, workshop.desk, lambda: OWN)
        self.handoffs = Handoffs(workshop, {OWN[0]: adapter})
        unknown = workshop.settings.delivery.unknown
        streaming = workshop.streaming
        self.delivery = Delivery(db, {OWN[0]: adapter}, self.holder, unknown=unknown, streaming=streaming)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, db: SessionDB, agent: FakeAgent, chosen: Settings, adapter: FakeAdapter | None = None
    ) -> AsyncIterator[Hall]:
        """A registered process. The agent must be the one that `make_agent` gives."""
        account = adapter or FakeAdapter()
        async with Heart(db, "gateway", ["telegram/main"]) as heart:
            workshop = await Workshop.prepare(chosen, db, heart.token, adapters={OWN[0]: account})
            yield cls(db, workshop, agent, heart, account)

    @asynccontextmanager
    async def running(
        self, *, recovering: bool = False, sending: bool = True, handing: bool = False
    ) -> AsyncIterator[None]:
        """Work rows and send answers inside the context; ends in order."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.heart.obey, self.workshop.runner)
            tasks.start_soon(self.attention.run)
            tasks.start_soon(self.workshop.streaming.run)
            async with anyio.create_task_group() as serving:
                serving.start_soon(self.lanes.run)
                if sending:
                    self.delivery.open(OWN[0])
                    serving.start_soon(self.delivery.run)
                if handing:
                    self.adapter.state = AdapterState.CONNECTED
                    serving.start_soon(self.handoffs.run)
                if recovering:
                    serving.start_soon(self.recovery.run)
                try:
                    yield
                finally:
                    self.lanes.close()
                    self.recovery.close()
                    self.handoffs.close()
                    self.workshop.desk.close()
                    self.workshop.runner.leave_all()
                    self.delivery.close()
            tasks.cancel_scope.cancel()

    async def say(self, text: str, **how: Any) -> Verdict:
        """An event comes in."""
        return await self.edge.accept(event(text, **how))

    async def told(self, message: InboundMessage) -> Verdict:
        """This very event comes in."""
        return await self.edge.accept(message)

    async def until(self, look: Callable[[], Awaitable[T]], seconds: float = 20.0) -> T:
        """What `look` gives, as soon as it gives something; it is asked after every commit."""
        news = self.db.changes.subscribe()
        async with asyncio.timeout(seconds):
            while not (seen := await look()):
                await news.wait(0.2)
            return seen

    async def sent(self, count: int) -> list[str]:
        """The texts of the sent parts, once there are so many and the store knows."""

        async def enough() -> bool:
            return len(self.adapter.sent) >= count and (await self.db.outbox.counts()).get("sending", 0) == 0

        await self.until(enough)
        return self.adapter.texts

    async def quiet(self) -> None:
        """Return when nothing waits to be worked or sent."""

        async def settled() -> bool:
            rows, parts = await self.db.inbox.counts(), await self.db.outbox.counts()
            open_rows = rows["new"] + rows["taken"] + parts.get("waiting", 0) + parts.get("sending", 0)
            return open_rows == 0

        await self.until(settled)

    async def session(self, chat: str = "42") -> SessionRow:
        """The session that a direct chat's route points at."""
        found = await self.db.routes.session_for(f"agent:main:telegram:dm:{chat}")
        assert found is not None
        return found

    async def transcript(self, chat: str = "42") -> list[tuple[str, Any]]:
        """Roles and contents of a direct chat's session."""
        rows: list[MessageRow] = await self.db.get_messages((await self.session(chat))["id"])
        return [(row["role"], row["content"]) for row in rows]


@contextlib.contextmanager
def failing(
    part: object, name: str, times: int, error: Callable[[], Exception] = StoreFull, *, after: bool = False
) -> Any:
    """The next calls of a store's method fail; with `after`, once their work is done. Yields the calls so far."""
    real = getattr(part, name)
    calls: list[Mapping[str, Any]] = []

    async def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs)
        if len(calls) > times:
            return await real(*args, **kwargs)
        if after:
            await real(*args, **kwargs)
        raise error()

    setattr(part, name, call)
    try:
        yield calls
    finally:
        setattr(part, name, real)
