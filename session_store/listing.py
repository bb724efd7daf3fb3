"""Lists of conversations, and totals.

Contract: a list has one row per conversation: id, title, source, model and end of its tip, `started_at` and the first
user message of its root, messages counted over all its segments. Newest activity first; filtered before limited. Only
conversations that people hold are listed (live ones and branches, not archived).
Activity is the newest message time of the tip; a clock that stepped back does not lower it. Rows of other tools, which
carry no `last_active`, are judged by their messages.
Failure: nothing found is an empty list, never an error.
Limits: one statement per owner whom the asker may see and one for the page, whatever its length. What other tools
append later to a session made here counts for its place in the list from our next message on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from session_store.content import plain_text
from session_store.lineage import CHAIN_OF_TIPS, IS_TIP
from session_store.models import Visibility
from session_store.rows import SessionListRow, SessionStats
from session_store.titles import one_line, title_key
from session_store.tx import Row, Rx
from session_store.usage import totals

__all__ = ["describe", "list_rows", "stats"]

PREVIEW = 60

# The latest tips, by activity. ?1 owner, ?2 room, ?3 source, ?4 text in the title, ?5 limit.
# The halves are the rows that carry their activity (read along its index) and those that do not.
_TIPS = """
SELECT * FROM (
    SELECT s.id, s.last_active AS active, s.rowid AS born FROM sessions s
    WHERE s.last_active IS NOT NULL AND /*listed*/
    ORDER BY s.last_active DESC, s.rowid DESC LIMIT ?5)
UNION ALL
SELECT * FROM (
    SELECT s.id, COALESCE((SELECT MAX(m.timestamp) FROM messages m WHERE m.session_id = s.id), s.started_at) AS active,
        s.rowid AS born
    FROM sessions s
    WHERE s.last_active IS NULL AND /*listed*/
    ORDER BY active DESC, s.rowid DESC LIMIT ?5)
""".replace(
    "/*listed*/",
    """/*scope*/ AND s.archived = 0 AND s.kind IN ('live', 'branch') AND (?3 IS NULL OR s.source = ?3)
    AND (?4 IS NULL OR INSTR(COALESCE(s.title_key, LOWER(s.title)), ?4) > 0) AND """
    + IS_TIP,
)
_TIPS_OF_ALL = _TIPS.replace("/*scope*/", "?1 IS NULL AND ?2 IS NULL")
_TIPS_OF_OWNER = _TIPS.replace("/*scope*/", "s.owner = ?1 AND (?2 IS NULL OR s.room_id = ?2 OR s.owner = ?2)")

# What a list says of the tips given as a JSON array, in that order. Long texts are cut for the preview,
# but not those that encode parts (they begin with the record separator).
_DESCRIBE = """
WITH RECURSIVE page(tip, place) AS (SELECT value, key FROM json_each(?1)),
/*chain*/,
whole(tip, root, top, messages) AS (
    SELECT chain.tip, chain.id, MAX(chain.hop), SUM(COALESCE(s.message_count, 0))
    FROM chain JOIN sessions s ON s.id = chain.id
    GROUP BY chain.tip
)
SELECT s.id, s.title, s.source,
    (SELECT CASE WHEN SUBSTR(m.content, 1, 1) = CHAR(30) OR LENGTH(m.content) <= 4096 THEN m.content
            ELSE SUBSTR(m.content, 1, 4096) END
     FROM messages m
     WHERE m.session_id = whole.root AND m.role = 'user' AND m.content IS NOT NULL AND m.rewound = 0
     ORDER BY m.id LIMIT 1) AS preview,
    COALESCE(s.last_active, (SELECT MAX(m.timestamp) FROM messages m WHERE m.session_id = s.id), s.started_at)
        AS last_active,
    r.started_at, s.ended_at, whole.messages AS message_count, s.model,
    COALESCE(p.name, p.display, o.name) AS person
FROM page
JOIN whole ON whole.tip = page.tip
JOIN sessions s ON s.id = page.tip
JOIN sessions r ON r.id = whole.root
LEFT JOIN people p ON p.id = s.owner
LEFT JOIN rooms o ON o.id = s.owner
ORDER BY page.place
""".replace("/*chain*/", CHAIN_OF_TIPS)

_TOTALS = "SELECT (SELECT COUNT(*) FROM sessions) AS sessions, (SELECT COUNT(*) FROM messages) AS messages"
_BY_SOURCE = (
    "SELECT source, COUNT(*) AS sessions FROM sessions GROUP BY source ORDER BY sessions DESC, source LIMIT 1000"
)
_PAGES = "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"
_FILE = "SELECT file FROM pragma_database_list() WHERE name = 'main'"


def list_rows(  # noqa: PLR0913 - one parameter per filter
    rx: Rx,
    source: str | None = None,
    limit: int = 20,
    offset: int = 0,
    *,
    visible_to: Visibility | None = None,
    search: str | None = None,
) -> list[SessionListRow]:
    """Return one page of the list. search: text that the title contains, letter case and spelling form aside."""
    wanted = title_key(one_line(search)) if search else None
    start, size = max(offset, 0), max(limit, 0)
    filters = (source, wanted or None, start + size)
    if visible_to is None:
        tips = rx.all(_TIPS_OF_ALL, (None, None, *filters))
    else:
        owners = sorted(visible_to.owners - {""})
        tips = [tip for owner in owners for tip in rx.all(_TIPS_OF_OWNER, (owner, visible_to.within_room, *filters))]
    tips.sort(key=lambda tip: (tip["active"], tip["born"]), reverse=True)
    return describe(rx, [tip["id"] for tip in tips[start : start + size]])


def describe(rx: Rx, tips: Sequence[str]) -> list[SessionListRow]:
    """Return the list rows of these tips, in their order."""
    rows = rx.all(_DESCRIBE, (json.dumps(tips),))
    return [cast("SessionListRow", row | {"preview": _preview(row)}) for row in rows]


def _preview(row: Row) -> str:
    text = one_line(plain_text(row["preview"])) if row["preview"] else ""
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "..."


def stats(rx: Rx) -> SessionStats:
    """Return the totals: session rows, message rows, session rows per source, tokens, bytes on disk."""
    counts = rx.one(_TOTALS) or {}
    return {
        "sessions": counts["sessions"],
        "messages": counts["messages"],
        "by_source": {row["source"]: row["sessions"] for row in rx.all(_BY_SOURCE)},
        "usage": totals(rx),
        "size_bytes": int(rx.value(_PAGES) or 0) + _wal_bytes(rx),
    }


def _wal_bytes(rx: Rx) -> int:
    """Size of the write-ahead log; nothing but SQLite may open it, asking for its size is harmless."""
    file = rx.value(_FILE)
    try:
        return Path(f"{file}-wal").stat().st_size if file else 0
    except OSError:
        return 0
