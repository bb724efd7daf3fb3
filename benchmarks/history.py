"""A long history in a store: sessions of several people with the messages of corpus.py, some with identifiers.

Deterministic: the same count gives the same history. Written in large transactions with the store's own tables and
index code, since storing is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.corpus import messages
from session_store import SessionDB, index
from session_store.driver import connect
from session_store.processes import boot_clock
from session_store.tx import Tx, dict_row

__all__ = ["LITERALS", "OWNER", "build"]

OWNER: Final = "owner"
"""Whose half of the sessions are; forty others share the rest."""
LITERALS: Final = (
    "#{0}", "src/m{0}/main.py", "user{0}@mail.example", r"C:\tmp\f{0}", "error:E{0}", "chat-send-{0}", "{0}%",
    "foo_bar{0}.baz()", "don't-{0}",
)  # fmt: skip
"""Shapes of identifiers; a number is put in."""
_NUMBERS: Final = 400
_SEED: Final = 7
_CHUNK: Final = 2000
_SESSION: Final = 40
_OTHERS: Final = 40
_MARKED: Final = 0.05
_TOOL_OUTPUT: Final = 3000

_ADD_SESSION: Final = """
INSERT INTO sessions (id, source, model, started_at, owner, message_count, last_active, root_id)
VALUES (?, ?, 'recall', ?, ?, ?, ?, ?)
"""
_ADD: Final = "INSERT INTO messages (session_id, role, content, tool_name, timestamp) VALUES (?, ?, ?, ?, ?)"


def build(path: Path, count: int) -> int:
    """Make a store of `count` messages; return the bytes of their text."""
    asyncio.run(_make(path))
    connection = connect(path, "rw")
    connection.row_factory = dict_row
    for setting in ("synchronous = OFF", "cache_size = -64000", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    size = 0
    rows = _rows(count)
    while chunk := list(itertools.islice(rows, _CHUNK)):
        connection.execute("BEGIN IMMEDIATE")
        sessions = {row[0]: row for row in chunk}
        connection.executemany(_ADD_SESSION, [_session(row) for row in sessions.values()])
        connection.executemany(_ADD, chunk)
        index.update(Tx(connection, time.time(), boot_clock()), _CHUNK)
        connection.execute("COMMIT")
        size += sum(len(row[2].encode()) for row in chunk)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return size


async def _make(path: Path) -> None:
    async with SessionDB(path):
        pass


def _session(row: tuple[str, str, str, str | None, float]) -> tuple[str | float | int, ...]:
    session_id, at = row[0], row[4]
    number = int(session_id.rpartition("-")[2])
    owner = OWNER if number % 2 == 0 else f"person{number % _OTHERS}"
    source = ("cli", "telegram", "slack")[number % 3]
    return session_id, source, at, owner, _SESSION, at + _SESSION, session_id


def _rows(count: int) -> Iterator[tuple[str, str, str, str | None, float]]:
    chance = random.Random(_SEED)  # noqa: S311 - repeatable text, not a secret
    for number, text in enumerate(itertools.islice(messages(_SEED), count)):
        tool = len(text) > _TOOL_OUTPUT
        role = "tool" if tool else ("user", "assistant")[number % 2]
        if chance.random() < _MARKED:
            text += " " + chance.choice(LITERALS).format(chance.randrange(_NUMBERS))  # noqa: PLW2901 - the same message
        # Chunks hold whole sessions, so that each session is written once.
        yield f"session-{number // _SESSION}", role, text, "shell" if tool else None, 1_700_000_000.0 + number
