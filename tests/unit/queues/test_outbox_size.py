"""The outer edge, size: finding what is due does not get slower with what was sent or what waits behind.

Work is measured in steps of SQLite's virtual machine, which are the same on every machine.
"""

from __future__ import annotations

import time

import pytest

from session_store.outbox import due
from session_store.tx import Rx
from tests.unit.queues.bench import TELEGRAM, Bench

FILL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO outbox (line, platform, account, place_id, kind, body, state, created_at, updated_at)
SELECT ?4 + i, 'telegram', 'main', 1 + i % ?2, 'answer', 'x', ?3, 0, 0 FROM n
"""
PLACES = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO places (platform, account, chat_type, chat, created_at) SELECT 'telegram', 'main', 'dm', i, 0 FROM n
"""


def steps(bench: Bench) -> int:
    """How many steps one look takes, in hundreds."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    def look(rx: Rx) -> None:
        bench.connection.set_progress_handler(count, 100)
        due(rx, TELEGRAM, time.time(), 64)
        bench.connection.set_progress_handler(None, 0)

    bench.look(look)
    return taken


@pytest.mark.parametrize("state", ["sent", "waiting"])
def test_many_rows_cost_no_more_than_few(bench: Bench, state: str) -> None:
    """A hundred thousand sent rows, or as many waiting behind the heads of the same places: the same work."""
    bench.apply(lambda tx: tx.run(PLACES))
    bench.apply(lambda tx: tx.run(FILL, (500, 500, "waiting", 0)))
    few = steps(bench)
    bench.apply(lambda tx: tx.run(FILL, (100_000, 500, state, 1000)))
    assert steps(bench) <= few * 1.2
    assert len(bench.look(lambda rx: due(rx, TELEGRAM, time.time(), 64))) == 64
