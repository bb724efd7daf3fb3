"""Events that no adapter could read: kept where a person can look, so that they need not block the others.

Contract: one row per raw form and account, however often it is delivered; `KEPT` rows per account, the newest. The raw
form is cut. A repeated record only counts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, cast

from session_store.rows import UnreadableRow
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["KEPT", "RAW_CHARACTERS", "UnreadableEvents"]

KEPT = 500
RAW_CHARACTERS = 4000
REASON_CHARACTERS = 500

ADD = """
INSERT INTO unreadable (platform, account, digest, reason, raw, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (platform, account, digest) DO UPDATE SET times = times + 1, last_at = ?6
"""
# The newest ?3 of an account stay.
TRIM = """
DELETE FROM unreadable WHERE id IN (
    SELECT id FROM unreadable WHERE platform = ?1 AND account = ?2 ORDER BY last_at DESC, id DESC LIMIT 1000 OFFSET ?3)
"""
NEWEST = """
SELECT id, platform, account, reason, raw, times, first_at, last_at FROM unreadable
ORDER BY last_at DESC, id DESC LIMIT ?
"""
COUNT = "SELECT COUNT(*) AS n FROM unreadable"


def record(tx: Tx, platform: str, account: str, reason: str, raw: str) -> None:
    """Keep one event."""
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()
    tx.run(ADD, (platform, account, digest, reason[:REASON_CHARACTERS], raw[:RAW_CHARACTERS], tx.now))
    tx.run(TRIM, (platform, account, KEPT))


def newest(rx: Rx, limit: int) -> list[UnreadableRow]:
    """Return the newest events."""
    return cast("list[UnreadableRow]", rx.all(NEWEST, (limit,)))


class UnreadableEvents:
    """Events that could not be read; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def record(self, platform: str, account: str, reason: str, raw: str) -> None:
        """Keep one event, or count it again. The caller has taken secrets out of `raw`."""
        await self._engine.write(lambda tx: record(tx, platform, account, reason, raw), size=len(raw))

    async def newest(self, limit: int = 50) -> list[UnreadableRow]:
        """The newest events, newest first."""
        return await self._engine.read(lambda rx: newest(rx, limit))

    async def count(self) -> int:
        """How many there are."""
        count: int = await self._engine.read(lambda rx: rx.value(COUNT))
        return count
