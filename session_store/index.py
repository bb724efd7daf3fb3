"""The search index: feeding it, keeping it true, building it anew.

Contract: `messages_fts` holds every message up to the watermark, apart from those named in messages_fts_queue.
`update` is the last thing in each write transaction and moves the watermark in the same commit as the rows it covers,
so what a transaction stores can be found as soon as it is committed. Rows put in or changed by other tools are caught
up by the next `update`. The index has no copy of its text: it forgets a message when it is told the old tokens, made
again from the old text by the same segmentation; therefore an index of another SEGMENTATION is not touched but built
anew (an older one) or left alone (a newer one, whose process looks after it).
Failure: errors of the driver pass through; the caller repeats its transaction without the index and calls
`mark_broken`. A broken index is neither fed nor searched until `rebuild_step` has replaced it.
Limits: what is indexed of a message is said in document.py. Replacing a whole session row (INSERT OR REPLACE INTO
sessions) is not noticed: its messages keep their scope in the index until they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from session_store.document import document
from session_store.segment import SEGMENTATION
from session_store.tx import Row, Rx, Tx

__all__ = [
    "FED_BY",
    "MERGED",
    "IndexState",
    "discard_documented",
    "forget",
    "forgetting",
    "index_state",
    "mark_broken",
    "merge",
    "pending",
    "rebuild_step",
    "start_rebuild",
    "update",
]

_LIVE: Final = "messages_fts"
_NEXT: Final = "messages_fts_next"
_BLANK: Final = "messages_fts_blank"
#: The second search table of the documented older schema.
_OLD_TRIGRAM: Final = "messages_fts_trigram"
#: Longest text, in characters per message allowed, that one step takes on, so that the write lock is held shortly.
_SHARE: Final = 4096

#: Everything that decides what an update has to do, in one row.
_STATE: Final = """
SELECT (SELECT value FROM state_meta WHERE key = 'fts_watermark') AS watermark,
       (SELECT value FROM state_meta WHERE key = 'fts_segmentation') AS segmentation,
       (SELECT value FROM state_meta WHERE key = 'fts_health') AS health,
       (SELECT value FROM state_meta WHERE key = 'fts_rebuild') AS rebuild,
       (SELECT value FROM state_meta WHERE key = 'fts_schema') AS cookie,
       EXISTS (SELECT 1 FROM messages_fts_queue) AS queued
"""
#: Changes with every change of the schema by anybody.
_COOKIE: Final = "PRAGMA schema_version"
_SET: Final = "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_UNSET: Final = "DELETE FROM state_meta WHERE key = ?"
_MOVE: Final = "UPDATE state_meta SET value = ? WHERE key = ?"

#: Whether the index table is ours, by its definition.
_DEFINITION: Final = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'messages_fts'"
_OURS: Final = "fts5(content,scope,content='',"
#: An id above the watermark that the index holds: something else than `update` has written to it.
_INTRUDER: Final = "SELECT max(id) FROM messages_fts_docsize"
#: Search triggers of the documented older schema; they would feed the index with unsegmented text.
_OLD_TRIGGERS: Final = """
SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages'
    AND name IN ('messages_fts_insert', 'messages_fts_delete', 'messages_fts_update',
                 'messages_fts_trigram_insert', 'messages_fts_trigram_delete', 'messages_fts_trigram_update')
LIMIT 6
"""
_DROP_TRIGGER: Final = "DROP TRIGGER IF EXISTS {name}"

#: The next messages in order, with the owner of their session.
_ROWS: Final = """
SELECT m.id, m.role, m.content, m.tool_name, m.tool_calls, s.owner, s.room_id
FROM messages AS m LEFT JOIN sessions AS s ON s.id = m.session_id
WHERE m.id > ? ORDER BY m.id LIMIT ?
"""
_NEWEST: Final = "SELECT max(id) FROM messages"
#: The oldest entries of the queue.
_QUEUE: Final = """
SELECT message_id AS id, indexed, role, content, tool_name, tool_calls, owner, room_id
FROM messages_fts_queue ORDER BY message_id LIMIT ?
"""
#: How the messages of those entries read now; deleted ones are missing.
_CURRENT: Final = """
SELECT m.id, m.role, m.content, m.tool_name, m.tool_calls, s.owner, s.room_id
FROM messages_fts_queue AS q JOIN messages AS m ON m.id = q.message_id LEFT JOIN sessions AS s ON s.id = m.session_id
WHERE q.message_id <= ? ORDER BY q.message_id LIMIT ?
"""
_DEQUEUE: Final = "DELETE FROM messages_fts_queue WHERE message_id <= ?"
_FORGET_QUEUE: Final = "DELETE FROM messages_fts_queue"
_QUEUED: Final = "SELECT EXISTS (SELECT 1 FROM messages_fts_queue)"

_ADD: Final = "INSERT INTO {table} (rowid, content, scope) VALUES (?, ?, ?)"
_FORGET: Final = "INSERT INTO {table} ({table}, rowid, content, scope) VALUES ('delete', ?, ?, ?)"
#: Merge segments seldom and late: a fifth more writes per second for at most 41 ms of one wait.
_TUNE: Final = "INSERT INTO {table} ({table}, rank) VALUES (?, ?)"
_TUNING: Final = (("automerge", 8), ("crisismerge", 32))
_TUNED: Final = "SELECT count(*) FROM messages_fts_config WHERE k IN ('automerge', 'crisismerge')"
_FORGETTING: Final = "SELECT value FROM state_meta WHERE key = 'fts_forget'"
_BEGUN: Final = "begun"
_MERGE: Final = "INSERT INTO messages_fts (messages_fts, rank) VALUES ('merge', ?)"
_CHANGES: Final = "SELECT total_changes()"
MERGED: Final = 2
"""A merge that changed fewer rows had nothing to merge."""
_CREATE: Final = """
CREATE VIRTUAL TABLE {table} USING fts5(content, scope, content='', tokenize='unicode61 remove_diacritics 2')
"""
_DROP: Final = "DROP TABLE IF EXISTS {table}"
_IS_FTS5: Final = """
SELECT count(*) FROM sqlite_master WHERE name = ? AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'
"""
#: A damaged table cannot even be dropped. These give its inner tables the contents of an empty index first.
_EMPTY: Final = (
    "CREATE TABLE IF NOT EXISTS {table}_data (id INTEGER PRIMARY KEY, block BLOB)",
    "CREATE TABLE IF NOT EXISTS {table}_config (k PRIMARY KEY, v) WITHOUT ROWID",
    "DELETE FROM {table}_data",
    "DELETE FROM {table}_config",
    "INSERT INTO {table}_data SELECT id, block FROM messages_fts_blank_data",
    "INSERT INTO {table}_config SELECT k, v FROM messages_fts_blank_config",
)
_RENAME_NEXT: Final = "ALTER TABLE messages_fts_next RENAME TO messages_fts"


#: What the index is made of: a transaction that writes none of these has nothing for it.
FED_BY: Final = frozenset({"messages", "sessions", "messages_fts_queue", "*"})


class IndexState(NamedTuple):
    """What the index can be used for. watermark: last id it covers; rebuild: how far a new one has come, or None."""

    usable: bool
    foreign: bool
    watermark: int
    rebuild: int | None
    queued: bool
    cookie: str | None


def index_state(rx: Rx) -> IndexState:
    """Read the state. usable: it may be searched and fed; foreign: a newer version of the program looks after it."""
    row = rx.one(_STATE) or {}
    segmentation = _number(row["segmentation"])
    return IndexState(
        usable=segmentation == SEGMENTATION and row["health"] == "ok",
        foreign=segmentation > SEGMENTATION,
        watermark=_number(row["watermark"]),
        rebuild=None if row["rebuild"] is None else _number(row["rebuild"]),
        queued=bool(row["queued"]),
        cookie=row["cookie"],
    )


def update(tx: Tx, limit: int = 512) -> bool:
    """Bring the index up to date with the transaction: changed messages first, then new ones, at most `limit` of each.

    New messages wait while more changed ones are queued than fit. Returns whether something may be left.
    """
    state = index_state(tx)
    if state.foreign:
        return False
    if state.cookie != str(tx.value(_COOKIE)):
        _look_at_schema(tx, state)
        state = index_state(tx)
    if not state.usable and state.rebuild is None:
        return False
    if state.queued and not _drain(tx, state, limit):
        return True
    watermark = _append(tx, _LIVE, state.watermark, limit) if state.usable else state.watermark
    if watermark == state.watermark:
        return False
    tx.run(_MOVE, (str(watermark), "fts_watermark"))
    return bool((tx.value(_NEWEST) or 0) > watermark)


def pending(rx: Rx) -> bool:
    """Whether `rebuild_step` has something to do: messages not indexed as they stand, or a new index to build."""
    state = index_state(rx)
    if state.foreign:
        return False
    return not state.usable or state.queued or state.rebuild is not None or (rx.value(_NEWEST) or 0) > state.watermark


def mark_broken(tx: Tx, reason: str) -> None:
    """Take the index out of use until it is rebuilt. Touches nothing that may be damaged."""
    tx.run(_SET, ("fts_health", f"broken: {reason}"))
    tx.run(_SET, ("fts_watermark", "0"))
    tx.run(_UNSET, ("fts_rebuild",))
    tx.run(_FORGET_QUEUE)


def discard_documented(tx: Tx) -> None:
    """Remove the search tables of the documented older schema with their triggers, whatever state they are in."""
    for row in tx.all(_OLD_TRIGGERS):
        tx.run(_DROP_TRIGGER.format(name=row["name"]))
    for table in (_LIVE, _OLD_TRIGRAM):
        _discard(tx, table)


def forgetting(rx: Rx) -> bool:
    """Whether words were deleted that the index may still hold, in segments that are not merged yet."""
    return rx.value(_FORGETTING) is not None


def forget(tx: Tx, pages: int) -> None:
    """One step of making deleted words leave the index: its segments become one, in which they no longer are.

    pages: how many of them the step may write. Repeat it as long as `forgetting`.
    """
    begun = tx.value(_FORGETTING) == _BEGUN
    before = tx.value(_CHANGES)
    # A negative number begins with all segments, a positive one goes on.
    tx.run(_MERGE, (pages if begun else -pages,))
    if tx.value(_CHANGES) - before < MERGED:
        tx.run(_UNSET, ("fts_forget",))
    elif not begun:
        tx.run(_SET, ("fts_forget", _BEGUN))


def merge(tx: Tx, pages: int) -> None:
    """Merge some segments, as far as enough are alike."""
    tx.run(_MERGE, (pages,))


def start_rebuild(tx: Tx) -> None:
    """Begin a new index, or begin again; `rebuild_step` does the work.

    The present one stays in use meanwhile if it can be used.
    """
    if not index_state(tx).usable:
        _discard(tx, _LIVE)
        tx.run(_CREATE.format(table=_LIVE))
    _discard(tx, _NEXT)
    tx.run(_CREATE.format(table=_NEXT))
    _tune(tx, _NEXT)
    tx.run(_SET, ("fts_rebuild", "0"))


def rebuild_step(tx: Tx, limit: int = 256) -> bool:
    """One step of whatever the index needs: catching up, or the next `limit` messages of a new index, or its swap.

    True: there is more to do. Can be interrupted after any step and goes on where it was, in any process.
    """
    update(tx, limit)
    state = index_state(tx)
    if state.foreign:
        return False
    if state.rebuild is None:
        if state.usable:
            return state.queued or (tx.value(_NEWEST) or 0) > state.watermark
        start_rebuild(tx)
        return True
    if state.queued:
        return True
    done = _append(tx, _NEXT, state.rebuild, limit)
    tx.run(_MOVE, (str(done), "fts_rebuild"))
    if done < (tx.value(_NEWEST) or 0):
        return True
    _swap(tx, done)
    return False


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isascii() and value.isdigit() else 0


def _append(tx: Tx, table: str, after: int, limit: int) -> int:
    """Index the next messages; returns the id of the last one."""
    documents = [made for _, made in _share(tx.each(_ROWS, (after, limit)), limit)]
    if not documents:
        return after
    tx.run_many(_ADD.format(table=table), documents)
    return documents[-1][0]


def _drain(tx: Tx, state: IndexState, limit: int) -> bool:
    """Tell the indexes of the oldest queued changes. True: the queue is empty."""
    old = [(row["indexed"], made) for row, made in _share(tx.each(_QUEUE, (limit,)), limit)]
    last = old[-1][1][0]
    new = [document(row) for row in tx.each(_CURRENT, (last, limit))]
    covering = [(_LIVE, state.watermark)] if state.usable else []
    if state.rebuild is not None:
        covering.append((_NEXT, state.rebuild))
    if {made[0] for indexed, made in old if indexed} - {made[0] for made in new if made[1].strip()}:
        tx.run(_SET, ("fts_forget", "yes"))
    for table, covered in covering:
        tx.run_many(_FORGET.format(table=table), [made for indexed, made in old if indexed and made[0] <= covered])
        tx.run_many(_ADD.format(table=table), [made for made in new if made[0] <= covered])
    tx.run(_DEQUEUE, (last,))
    return not tx.value(_QUEUED)


def _share(rows: Iterable[Row], limit: int) -> Iterator[tuple[Row, tuple[int, str, str]]]:
    """The first rows with their documents, as many as one step may take on; at least one."""
    room = limit * _SHARE
    for row in rows:
        made = document(row)
        yield row, made
        room -= len(made[1])
        if room < 0:
            return


def _look_at_schema(tx: Tx, state: IndexState) -> None:
    """After any change of the schema, see whether the index is still ours alone, and tuned."""
    intruders = [row["name"] for row in tx.all(_OLD_TRIGGERS)]
    for name in intruders:
        tx.run(_DROP_TRIGGER.format(name=name))
    if state.usable:
        definition = "".join(str(tx.value(_DEFINITION)).split())
        if _OURS not in definition:
            mark_broken(tx, "the table is not the one that this program makes")
        elif intruders or (tx.value(_INTRUDER) or 0) > state.watermark:
            mark_broken(tx, "another tool has written to it")
        elif not tx.value(_TUNED):
            _tune(tx, _LIVE)
    tx.run(_SET, ("fts_schema", str(tx.value(_COOKIE))))


def _tune(tx: Tx, table: str) -> None:
    for option, value in _TUNING:
        tx.run(_TUNE.format(table=table), (option, value))


def _discard(tx: Tx, table: str) -> None:
    """Drop an index table, whatever its state."""
    if tx.value(_IS_FTS5, (table,)):
        tx.run(_CREATE.format(table=_BLANK))
        for statement in _EMPTY:
            tx.run(statement.format(table=table))
        tx.run(_DROP.format(table=_BLANK))
    tx.run(_DROP.format(table=table))


def _swap(tx: Tx, watermark: int) -> None:
    tx.run(_DROP.format(table=_LIVE))
    tx.run(_RENAME_NEXT)
    tx.run(_UNSET, ("fts_rebuild",))
    tx.run(_UNSET, ("fts_forget",))
    tx.run(_SET, ("fts_watermark", str(watermark)))
    tx.run(_SET, ("fts_segmentation", str(SEGMENTATION)))
    tx.run(_SET, ("fts_health", "ok"))
    tx.run(_SET, ("fts_schema", str(tx.value(_COOKIE))))
