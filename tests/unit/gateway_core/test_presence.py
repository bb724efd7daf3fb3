"""What an account is told before it starts, and when its life signs are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from adapters.base import AdapterState, Place, StartError
from gateway import presence
from gateway.entrances import Entrances
from gateway.presence import Presence
from session_store import NewInbox, PlaceRef, SessionDB, StoreFull
from tests.unit.gateway_core.fakes import FakeAdapter
from tests.unit.gateway_core.hall import failing

DISCORD = ("discord", "main")
ROOM = PlaceRef("discord", "main", "group", "500")


class CatchingUp(FakeAdapter):
    """An adapter that catches up."""

    told: tuple[Mapping[Place, str], float | None] | None = None

    def resume_from(self, last: Mapping[Place, str], since: float | None = None) -> None:
        """Note it."""
        assert self.state is AdapterState.STOPPED
        self.told = (last, since)


@pytest.fixture
def adapter() -> CatchingUp:
    """An adapter of Discord."""
    return CatchingUp("discord")


@asynccontextmanager
async def beating(kept: Presence) -> AsyncIterator[None]:
    """Life signs are written inside the context."""
    task = asyncio.create_task(kept.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_an_adapter_is_told_what_is_known_before_each_start(db: SessionDB, adapter: CatchingUp) -> None:
    """The newest message of each place, and when the account was last served; other adapters are not asked."""
    for number in ("7", "30", "8"):
        await db.inbox.accept(NewInbox(ROOM, f"m:{number}", "message", "lane", 1.0, {}, {}))
    await db.presence.seen([DISCORD])
    plain = FakeAdapter()
    adapters = {DISCORD: adapter, ("telegram", "main"): plain}
    kept = Presence(db, adapters)

    async def deliver(_message: object) -> None:
        """Nothing comes."""

    opened = asyncio.Event()
    # Its end is final after one start.
    adapter.starts.append(None)
    plain.starts.append(StartError("no"))
    entrances = Entrances(adapters, deliver, lambda _account: opened.set(), kept.prepare)  # type: ignore[arg-type]
    running = asyncio.create_task(entrances.run())
    async with asyncio.timeout(20):
        await opened.wait()
    running.cancel()
    await asyncio.wait({running})
    assert adapter.told == ({Place("discord", "main", "group", "500"): "30"}, await db.presence.last_seen(DISCORD))
    assert adapter.started == 1


async def test_an_account_does_not_start_while_what_it_missed_cannot_be_read(
    db: SessionDB, adapter: CatchingUp
) -> None:
    """Started without, it would never ask for it."""
    kept = Presence(db, {DISCORD: adapter})
    with failing(db.presence, "newest", 1), pytest.raises(StoreFull):
        await kept.prepare(DISCORD)
    await kept.prepare(DISCORD)
    assert adapter.told == ({}, None)


async def test_only_accounts_that_are_connected_for_a_while_are_served(
    db: SessionDB, adapter: CatchingUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that only tries to connect gives no sign, and a store that fails is tried again."""
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(presence, "SETTLED_SECONDS", 0.02)
    retrying = FakeAdapter()
    retrying.state = AdapterState.RETRYING
    adapter.state = AdapterState.CONNECTED
    news = db.changes.subscribe()
    with failing(db.presence, "seen", 2):
        async with beating(Presence(db, {DISCORD: adapter, ("telegram", "main"): retrying})), asyncio.timeout(20):
            while await db.presence.last_seen(DISCORD) is None:
                await news.wait(0.1)
    assert await db.presence.last_seen(("telegram", "main")) is None


async def test_a_start_that_has_only_begun_leaves_the_older_sign(
    db: SessionDB, adapter: CatchingUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was missed is still being fetched: killed now, the next start must ask for it again."""
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.0)
    adapter.state = AdapterState.CONNECTED
    with failing(db.presence, "seen", 0) as written:
        async with beating(Presence(db, {DISCORD: adapter})):
            for _ in range(100):
                await asyncio.sleep(0)
    assert written == []
