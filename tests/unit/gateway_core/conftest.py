"""A hall to test in, and a look at what was logged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog

from config import Settings
from session_store import SessionDB
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, settings


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[Any]]:
    """What was logged; nothing is printed."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture
def chosen() -> Settings:
    """The settings of the hall; tests override it with others."""
    return settings()


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    """The agent of the hall."""
    fake = FakeAgent()
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: fake)
    return fake


@pytest.fixture
async def hall(db: SessionDB, agent: FakeAgent, chosen: Settings) -> AsyncIterator[Hall]:
    """The core of a gateway on the test's home."""
    async with Hall.open(db, agent, chosen) as opened:
        yield opened
