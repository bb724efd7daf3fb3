"""What all tests share: a home of their own, an open store, a look at the file from another process.

The tests never open a database of a running store in this process: a second SQLite library, or a plain `open`, would
drop the locks of the first one. `elsewhere` asks in a process of its own instead, as other tools do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import pytest
from blockbuster import blockbuster_ctx

from session_store import SessionDB

Elsewhere: TypeAlias = Callable[..., list[dict[str, Any]]]

# How long an example takes says nothing on a busy machine; in CI the examples are the same each time.
hypothesis.settings.register_profile("threadline", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("threadline")

OUR_PACKAGES = ["adapters", "config", "gateway", "session_store"]
ASK = """
import json, sqlite3, sys
path, sql, parameters = json.loads(sys.stdin.read())
connection = sqlite3.connect(path, isolation_level=None)
connection.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in connection.execute(sql, parameters)]))
connection.close()
"""


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Our code fails a test when it blocks the event loop."""
    with blockbuster_ctx(scanned_modules=OUR_PACKAGES):
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that `$THREADLINE_HOME` points to; nothing of the user's settings reaches the test."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("THREADLINE_HOME", str(folder))
    return folder


@pytest.fixture
async def db(home: Path) -> AsyncIterator[SessionDB]:
    """An open store in the home."""
    async with SessionDB(home / "state.db") as store:
        yield store


@pytest.fixture
def elsewhere(home: Path) -> Elsewhere:
    """Run one statement on the home's database in another process, with the standard library; returns the rows."""

    def ask(sql: str, *parameters: object, path: Path = home / "state.db") -> list[dict[str, Any]]:
        done = subprocess.run(  # noqa: S603 - our own interpreter and script
            [sys.executable, "-c", ASK],
            input=json.dumps([str(path), sql, parameters]),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    return ask
