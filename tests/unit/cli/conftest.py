"""What the tests of the commands share: `threadline` called in this process, and a store filled beforehand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import structlog
from typer.testing import CliRunner, Result

from gateway.cli.main import app
from session_store import SessionDB

Threadline: TypeAlias = Callable[..., Result]
Fill: TypeAlias = Callable[[Callable[[SessionDB], Awaitable[object]]], None]


@pytest.fixture
def threadline(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Threadline]:
    """Call `threadline` with these arguments; `said` is what is typed or piped."""
    del home
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, said: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=said, prog_name="threadline")

    yield call
    # A chat makes the logs of its process quiet.
    logging.disable(logging.NOTSET)
    structlog.reset_defaults()


@pytest.fixture
def fill(home: Path) -> Fill:
    """Open the store of the home, hand it over, close it."""

    def run(work: Callable[[SessionDB], Awaitable[object]]) -> None:
        async def inside() -> None:
            async with SessionDB(home / "state.db") as db:
                await work(db)

        asyncio.run(inside())

    return run
