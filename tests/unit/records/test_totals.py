"""Totals of the store."""

from __future__ import annotations

from pathlib import Path

from session_store import SessionDB


async def test_totals_count_rows_per_source_and_bytes_on_disk(db: SessionDB, home: Path) -> None:
    """An empty store has a size too; the size is that of the pages and of the log."""
    empty = await db.stats()
    assert (empty["sessions"], empty["messages"], empty["by_source"]) == (0, 0, {})
    for session_id, source in {"a": "cli", "b": "cli", "c": "telegram"}.items():
        await db.create_session(session_id, source)
        await db.append_message(session_id, "user", "x" * 100_000)
    stats = await db.stats()
    assert (stats["sessions"], stats["messages"]) == (3, 3)
    assert stats["by_source"] == {"cli": 2, "telegram": 1}
    log = (home / "state.db-wal").stat().st_size
    assert log > 0
    assert stats["size_bytes"] >= log + 300_000
    assert stats["size_bytes"] > empty["size_bytes"]
