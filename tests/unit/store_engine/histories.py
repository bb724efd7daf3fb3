"""Files of the documented older schema, versions 1 to 11, made with the standard library as other tools made them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

SESSIONS = """CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id))"""
MESSAGES = """CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER)"""
EXTERNAL = """
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES ('delete', old.id, old.content); END;
CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content); END;
"""
TRIGRAM = """
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, content=messages, content_rowid=id, tokenize='trigram');
CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, new.content); END;
"""
INLINE = """
CREATE VIRTUAL TABLE messages_fts USING fts5(content);
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tokenize='trigram');
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content)
    VALUES (new.id, coalesce(new.content, '') || ' ' || coalesce(new.tool_name, '') || coalesce(new.tool_calls, ''));
END;
CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, coalesce(new.content, '')); END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN DELETE FROM messages_fts WHERE rowid = old.id; END;
"""
#: What each version added, in columns.
ADDED = {
    2: ["messages finish_reason TEXT"],
    3: ["sessions title TEXT"],
    5: [
        "sessions cache_read_tokens INTEGER DEFAULT 0",
        "sessions cache_write_tokens INTEGER DEFAULT 0",
        "sessions reasoning_tokens INTEGER DEFAULT 0",
        "sessions billing_provider TEXT",
        "sessions billing_base_url TEXT",
        "sessions billing_mode TEXT",
        "sessions estimated_cost_usd REAL",
        "sessions actual_cost_usd REAL",
        "sessions cost_status TEXT",
        "sessions cost_source TEXT",
        "sessions pricing_version TEXT",
    ],
    6: ["messages reasoning TEXT", "messages reasoning_details TEXT", "messages codex_reasoning_items TEXT"],
    7: ["messages reasoning_content TEXT"],
    8: ["sessions api_call_count INTEGER DEFAULT 0"],
    9: ["messages codex_message_items TEXT"],
}
TITLES_SINCE, UNIQUE_SINCE, TRIGRAM_SINCE, INLINE_SINCE = 3, 4, 10, 11


def make_history(path: Path, version: int, *, number: int | None = None, wal: bool = False) -> None:
    """Make a small file of this version. number: what it says of itself, if that is something else."""
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
    connection.execute("INSERT INTO schema_version VALUES (?)", (version if number is None else number,))
    connection.execute("CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute("INSERT INTO state_meta VALUES ('last_auto_prune', '12.5')")
    connection.execute(SESSIONS)
    connection.execute(MESSAGES)
    connection.execute("CREATE INDEX idx_sessions_source ON sessions(source)")
    connection.execute("CREATE INDEX idx_messages_session ON messages(session_id, timestamp)")
    for since, columns in ADDED.items():
        if version >= since:
            for column in columns:
                table, _, definition = column.partition(" ")
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")
    if version >= UNIQUE_SINCE:
        connection.execute("CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL")
    if version >= INLINE_SINCE:
        connection.executescript(INLINE)
    else:
        connection.executescript(EXTERNAL)
    if TRIGRAM_SINCE <= version < INLINE_SINCE:
        connection.executescript(TRIGRAM)
    _fill(connection, version)
    connection.close()


def _fill(connection: sqlite3.Connection, version: int) -> None:
    """A compressed conversation from the terminal, a branch, a scheduled run, and a chat of somebody on a platform."""
    sessions = [
        ("20250101_first1", "cli", "user_1", None, 100.0, "compression", "{}"),
        ("20250102_second", "cli", "user_1", "20250101_first1", 200.0, "branched", "{}"),
        ("20250103_branch", "cli", None, "20250102_second", 300.0, None, '{"_branched_from": "20250102_second"}'),
        ("20250104_timer1", "cron", None, None, 400.0, None, "no JSON"),
        ("20250105_telegr", "telegram", "42", None, 500.0, None, None),
        ("20250106_nobody", "telegram", None, None, 600.0, None, None),
    ]
    connection.executemany(
        """INSERT INTO sessions (id, source, user_id, parent_session_id, started_at, ended_at, end_reason, model_config)
        VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?6 IS NULL THEN NULL ELSE ?5 + 50 END, ?6, ?7)""",
        sessions,
    )
    calls = json.dumps(
        [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"q": "上海"}'}}]
    )
    messages = [
        ("20250101_first1", "user", "Deploy the harbour lights to src/main.py", None, None, None, 101.0),
        ("20250101_first1", "assistant", None, None, calls, None, 101.5),
        ("20250101_first1", "tool", "done in 7 seconds", "c1", None, "terminal", 101.4),
        ("20250102_second", "assistant", "我们去北京吧 tomorrow", None, None, None, 201.0),
        ("20250103_branch", "user", "What about the violet branch?", None, None, None, 301.0),
        ("20250104_timer1", "assistant", "Nightly report", None, None, None, 401.0),
        ("20250105_telegr", "user", "Grüße из Москвы", None, None, None, 501.0),
        ("20250106_nobody", "user", "a channel post", None, None, None, 601.0),
    ]
    connection.executemany(
        """INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp)
        VALUES (?, ?, ?, ?, ?, ?, ?)""",
        messages,
    )
    if version >= TITLES_SINCE:
        connection.execute("UPDATE sessions SET title = 'Harbour' WHERE id = '20250101_first1'")
        connection.execute("UPDATE sessions SET title = 'Harbour #2' WHERE id = '20250102_second'")
    if version == TITLES_SINCE:  # before the rule
        connection.execute("UPDATE sessions SET title = 'Harbour' WHERE id = '20250103_branch'")
