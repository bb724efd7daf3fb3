"""A stage for each test."""

from __future__ import annotations

import pytest

from session_store import SessionDB
from tests.unit.handoff.stage import Stage


@pytest.fixture
async def stage(db: SessionDB) -> Stage:
    """A store with a conversation of the owner and a living gateway."""
    made = Stage(db)
    await made.begin()
    return made
