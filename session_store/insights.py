"""How the store was used in a time: how much, by which models, where, with which tools, when.

Contract: counts what happened since a moment, in conversations that the asker may see: messages that were not taken
back, calls of models. A conversation counts if anything was said in it then. `moments` are quarters of an hour with how
many messages people sent in each, so that whoever shows them can name hours and days of any zone. Active time is the
time between messages of one session, gaps of more than `LONGEST_PAUSE` seconds counted as that.
Failure: the store's errors. Limits: one walk over the messages of the sessions that were active since then, within the
time that a query may take.
"""

from __future__ import annotations

import json
from typing import cast

from session_store.models import Visibility
from session_store.rows import Insights, NotableSession
from session_store.tx import Param, Row, Rx
from session_store.visible import only_visible, visible_params

__all__ = ["LONGEST_PAUSE", "QUARTER", "insights"]

LONGEST_PAUSE = 300.0
QUARTER = 900
_NOTABLE = 3

# Sessions that may have been active. ?1 and ?2 visibility, ?3 since, ?4 source.
_SESSIONS = """
SELECT s.id, COALESCE(s.root_id, s.id) AS root, s.source FROM sessions s
WHERE COALESCE(s.last_active, s.started_at) >= ?3 AND (?4 IS NULL OR s.source = ?4) AND /*visible*/
LIMIT 1000000
"""

# Messages of the sessions in the JSON array ?1, since ?2.
_SAID = """
FROM json_each(?1) AS wanted JOIN messages AS m ON m.session_id = wanted.value
WHERE m.timestamp >= ?2 AND m.rewound = 0
"""
_PER_SESSION = """
WITH said AS (
    SELECT m.session_id, m.role,
        m.timestamp - LAG(m.timestamp) OVER (PARTITION BY m.session_id ORDER BY m.id) AS pause
    /*said*/
)
SELECT session_id, COUNT(*) AS messages, SUM(role = 'user') AS user_messages, SUM(role = 'tool') AS tool_calls,
    SUM(MIN(MAX(COALESCE(pause, 0), 0), /*longest*/)) AS active_seconds
FROM said GROUP BY session_id LIMIT 1000000
""".replace("/*said*/", _SAID).replace("/*longest*/", str(LONGEST_PAUSE))
_MOMENTS = """
SELECT CAST(m.timestamp / /*quarter*/ AS INTEGER) * /*quarter*/ AS moment, COUNT(*) AS messages
/*said*/ AND m.role = 'user' GROUP BY moment ORDER BY moment LIMIT 1000000
""".replace("/*said*/", _SAID).replace("/*quarter*/", str(QUARTER))
_TOOLS = """
SELECT COALESCE(m.tool_name, 'unnamed') AS name, COUNT(*) AS calls
/*said*/ AND m.role = 'tool' GROUP BY 1 ORDER BY calls DESC, 1 LIMIT 1000
""".replace("/*said*/", _SAID)

# What models cost since ?2 in the sessions of ?1.
_MODELS = """
SELECT COALESCE(u.model, 'unnamed') AS model, COUNT(*) AS calls,
    SUM(u.input_tokens + u.cache_read_tokens + u.cache_write_tokens) AS read_tokens,
    SUM(u.output_tokens) AS output_tokens, SUM(u.reasoning_tokens) AS reasoning_tokens,
    SUM(u.cache_read_tokens) AS cache_read_tokens
FROM json_each(?1) AS wanted JOIN usage AS u ON u.session_id = wanted.value
WHERE u.created_at >= ?2
GROUP BY 1 ORDER BY read_tokens + SUM(u.output_tokens) DESC, 1 LIMIT 1000
"""
_TITLES = "SELECT id, title FROM sessions WHERE id IN (SELECT value FROM json_each(?1)) LIMIT 100"


def insights(rx: Rx, since: float, source: str | None = None, visible_to: Visibility | None = None) -> Insights:
    """Return what happened since a moment (Unix seconds); source: only in sessions born there."""
    sessions = rx.all(only_visible(_SESSIONS, visible_to), (*visible_params(visible_to), since, source))
    by_id = {row["id"]: row for row in sessions}
    asked: tuple[Param, Param] = (json.dumps(list(by_id)), since)
    talked = rx.all(_PER_SESSION, asked)
    models = rx.all(_MODELS, asked)
    return cast(
        "Insights",
        {
            "since": since,
            "conversations": len({by_id[row["session_id"]]["root"] for row in talked}),
            "messages": _sum(talked, "messages"),
            "user_messages": _sum(talked, "user_messages"),
            "tool_calls": _sum(talked, "tool_calls"),
            "active_seconds": float(_sum(talked, "active_seconds")),
            "model_calls": _sum(models, "calls"),
            "read_tokens": _sum(models, "read_tokens"),
            "output_tokens": _sum(models, "output_tokens"),
            "reasoning_tokens": _sum(models, "reasoning_tokens"),
            "cache_read_tokens": _sum(models, "cache_read_tokens"),
            "models": models,
            "sources": _sources(by_id, talked),
            "tools": rx.all(_TOOLS, asked),
            "moments": rx.all(_MOMENTS, asked),
            "notable": _notable(rx, talked),
        },
    )


def _sum(rows: list[Row], name: str) -> int:
    return sum(row[name] for row in rows)


def _sources(sessions: dict[str, Row], talked: list[Row]) -> list[Row]:
    """Conversations and messages by where they were born, most messages first."""
    found: dict[str, tuple[set[str], int]] = {}
    for row in talked:
        session = sessions[row["session_id"]]
        roots, messages = found.get(session["source"], (set(), 0))
        found[session["source"]] = (roots | {session["root"]}, messages + row["messages"])
    rows = [
        {"source": source, "conversations": len(roots), "messages": messages}
        for source, (roots, messages) in found.items()
    ]
    return sorted(rows, key=lambda row: (-int(row["messages"]), str(row["source"])))


def _notable(rx: Rx, talked: list[Row]) -> list[NotableSession]:
    """The sessions with the most messages."""
    most = sorted(talked, key=lambda row: (-row["messages"], row["session_id"]))[:_NOTABLE]
    titles = {row["id"]: row["title"] for row in rx.all(_TITLES, (json.dumps([row["session_id"] for row in most]),))}
    return [
        {"id": row["session_id"], "title": titles.get(row["session_id"]), "messages": row["messages"]} for row in most
    ]
