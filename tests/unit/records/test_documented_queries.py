"""The documented SELECTs, run by another program on the same file, give the right rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from session_store import SessionDB

Elsewhere = Callable[..., list[dict[str, Any]]]

ANCESTORS = """
WITH RECURSIVE lineage AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s
    JOIN lineage l ON s.id = l.parent_session_id
)
SELECT id, title, started_at, parent_session_id FROM lineage
"""
DESCENDANTS = """
WITH RECURSIVE descendants AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s
    JOIN descendants d ON s.parent_session_id = d.id
)
SELECT id, title, started_at FROM descendants
"""
LATEST = """
SELECT s.*,
    COALESCE(
        (SELECT SUBSTR(m.content, 1, 63)
         FROM messages m
         WHERE m.session_id = s.id AND m.role = 'user' AND m.content IS NOT NULL
         ORDER BY m.timestamp, m.id LIMIT 1),
        ''
    ) AS preview,
    COALESCE(
        (SELECT MAX(m2.timestamp) FROM messages m2 WHERE m2.session_id = s.id),
        s.started_at
    ) AS last_active
FROM sessions s
ORDER BY s.started_at DESC
LIMIT 20
"""
BY_MODEL = """
SELECT model,
       COUNT(*) as session_count,
       SUM(input_tokens) as total_input,
       SUM(output_tokens) as total_output,
       SUM(estimated_cost_usd) as total_cost
FROM sessions
WHERE model IS NOT NULL
GROUP BY model
ORDER BY total_cost DESC
"""
BY_TOKENS = """
SELECT id, title, model, input_tokens + output_tokens AS total_tokens,
       estimated_cost_usd
FROM sessions
ORDER BY total_tokens DESC
LIMIT 10
"""


@pytest.fixture
async def store(db: SessionDB, elsewhere: Elsewhere) -> SessionDB:
    """A compressed conversation, a branch of it and an empty session, with tokens and costs."""
    await db.create_session("root", "cli", model="m1", started_at=100, title="Fix")
    await db.append_message("root", "system", "rules", timestamp=100)
    await db.append_message("root", "user", "x" * 80, timestamp=101)
    await db.append_message("root", "assistant", "ok", timestamp=150)
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", model="m2", parent_session_id="root", started_at=200, title="Fix #2")
    await db.append_message("tip", "user", "go on", timestamp=210)
    await db.create_session("branch", "web", model="m1", parent_session_id="tip", kind="branch", started_at=300)
    await db.create_session("empty", "cli", started_at=50)
    use = "UPDATE sessions SET input_tokens = ?, output_tokens = ?, estimated_cost_usd = ? WHERE id = ?"
    elsewhere(use, 1000, 200, 0.5, "root")
    elsewhere(use, 3000, 100, 2.0, "tip")
    elsewhere(use, 10, 5, 0.25, "branch")
    return db


@pytest.mark.usefixtures("store")
def test_ancestors_and_descendants(elsewhere: Elsewhere) -> None:
    """The lineage over the documented parent column."""
    assert elsewhere(ANCESTORS, "branch") == [
        {"id": "branch", "title": None, "started_at": 300.0, "parent_session_id": "tip"},
        {"id": "tip", "title": "Fix #2", "started_at": 200.0, "parent_session_id": "root"},
        {"id": "root", "title": "Fix", "started_at": 100.0, "parent_session_id": None},
    ]
    assert elsewhere(DESCENDANTS, "root") == [
        {"id": "root", "title": "Fix", "started_at": 100.0},
        {"id": "tip", "title": "Fix #2", "started_at": 200.0},
        {"id": "branch", "title": None, "started_at": 300.0},
    ]


@pytest.mark.usefixtures("store")
def test_latest_sessions_with_preview_and_activity(elsewhere: Elsewhere) -> None:
    """Newest start first; the preview is the first user message; the computed activity is the one we store."""
    rows = elsewhere(LATEST)
    seen = [(row["id"], row["preview"], row["last_active"], row["message_count"]) for row in rows]
    assert seen == [
        ("branch", "", 300.0, 0),
        ("tip", "go on", 210.0, 1),
        ("root", "x" * 63, 150.0, 3),
        ("empty", "", 50.0, 0),
    ]
    stored = elsewhere("SELECT last_active FROM sessions ORDER BY started_at DESC")
    assert [row["last_active"] for row in stored] == [300.0, 210.0, 150.0, 50.0]


@pytest.mark.usefixtures("store")
def test_tokens_by_model_and_by_session(elsewhere: Elsewhere) -> None:
    """Sums and order of the documented reports."""
    assert elsewhere(BY_MODEL) == [
        {"model": "m2", "session_count": 1, "total_input": 3000, "total_output": 100, "total_cost": 2.0},
        {"model": "m1", "session_count": 2, "total_input": 1010, "total_output": 205, "total_cost": 0.75},
    ]
    assert [(row["id"], row["title"], row["total_tokens"]) for row in elsewhere(BY_TOKENS)] == [
        ("tip", "Fix #2", 3100),
        ("root", "Fix", 1200),
        ("branch", None, 15),
        ("empty", None, 0),
    ]


async def test_documented_columns_hold_what_the_documents_say(db: SessionDB, elsewhere: Elsewhere) -> None:
    """JSON columns are JSON text, times are Unix seconds, plain content is the text itself."""
    await db.create_session("s", "cli", model_config={"t": 1}, started_at=1.5)
    calls = [{"id": "call_1", "function": {"name": "terminal", "arguments": "{}"}}]
    await db.append_message(
        "s", "assistant", "Вот ответ...", tool_calls=calls, token_count=150, finish_reason="stop", reasoning="ход",
        reasoning_details=[1], codex_reasoning_items=[2], codex_message_items=[3], timestamp=2.5,
    )  # fmt: skip
    (session,) = elsewhere("SELECT model_config, started_at, message_count, tool_call_count FROM sessions")
    assert session == {"model_config": '{"t": 1}', "started_at": 1.5, "message_count": 1, "tool_call_count": 1}
    (row,) = elsewhere("SELECT * FROM messages")
    assert (row["content"], row["reasoning"], row["finish_reason"]) == ("Вот ответ...", "ход", "stop")
    assert (row["timestamp"], row["token_count"]) == (2.5, 150)
    assert json.loads(row["tool_calls"]) == calls
    lists = [json.loads(row[name]) for name in ("reasoning_details", "codex_reasoning_items", "codex_message_items")]
    assert lists == [[1], [2], [3]]
