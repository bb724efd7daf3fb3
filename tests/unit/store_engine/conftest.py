"""An engine of one's own, and a way to hold its writer still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from session_store.engine import StoreEngine
from session_store.tx import Tx

Hold: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def engine(home: Path) -> AsyncIterator[StoreEngine]:
    """An open engine in the home."""
    opened = StoreEngine(home / "state.db")
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def held(engine: StoreEngine) -> Hold:
    """Make contexts that keep the writer inside a transaction, so that what is submitted meanwhile queues."""

    @asynccontextmanager
    async def hold() -> AsyncIterator[None]:
        inside, leave = threading.Event(), threading.Event()

        def stay(_: Tx) -> None:
            inside.set()
            assert leave.wait(30)

        writing = asyncio.create_task(engine.write(stay))
        await asyncio.to_thread(inside.wait, 30)
        try:
            yield
        finally:
            leave.set()
            await writing

    return hold
