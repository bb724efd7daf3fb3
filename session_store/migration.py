"""Taking over a file of the documented history (see history.py): a copy first, then everything in one transaction.

Contract: `migrate` runs inside the caller's write transaction, under the ticket, after a look that nobody else has done
it meanwhile. Rows keep every value they have; only columns of ours are filled in. The copy beside the file is whole and
on the disk before the first change. Old search tables and their triggers go, ours is filled, so that the first search
finds everything. A process that dies on the way leaves the file as it was, and perhaps a copy.
What is filled in: who owns a session (what came from a terminal or ran by itself is the owner's; what came from a
platform belongs to the person with that user id, and to nobody when there was none; what a session of the owner
started without one is the owner's), which conversation it belongs to,
what kind it is, when it was last used, and the form in which titles are compared. Of titles that are equal (there was a
time without the rule) the newest session keeps it as its own; the others keep their text but do not answer to it.
Failure: the errors of the driver, `StoreFull` when there is no room for the copy; the transaction is the caller's to
undo. Limits: one pass over all messages; about 10,000 of them a second.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from session_store import index
from session_store.driver import connect, driver, store_error
from session_store.errors import InvalidArgument, StoreFull
from session_store.files import StoreFiles
from session_store.history import backup_path
from session_store.lineage import COMPRESSION
from session_store.people import OWNER, ensure_allowed
from session_store.processes import boot_clock
from session_store.schema import missing
from session_store.titles import clean_title, title_key
from session_store.tx import Row, Tx

__all__ = ["migrate"]

_LOG = logging.getLogger(__name__)

_INDEX_STEP: Final = 2_000
#: Room that the copy must leave on the disk.
_SPARE: Final = 16 * 1024 * 1024

#: Sources that no platform stands behind: whoever uses the machine.
_OWN_SOURCES: Final = json.dumps(["cli", "tui", "web", "acp", "api", "api_server", "cron", "batch", "tool"])

#: Sessions of the machine's own entrances are the owner's.
_OWN: Final = "UPDATE sessions SET owner = ? WHERE owner IS NULL AND source IN (SELECT value FROM json_each(?))"
#: Whose the others are: each sender of each platform.
_SENDERS: Final = """
SELECT DISTINCT source, user_id FROM sessions
WHERE owner IS NULL AND user_id IS NOT NULL AND user_id <> '' ORDER BY source, user_id LIMIT 1000000
"""
_OWNED: Final = "UPDATE sessions SET owner = ? WHERE owner IS NULL AND source = ? AND user_id = ?"
#: A run that a session of the owner started is the owner's, whatever its source is called.
_STARTED: Final = """
WITH RECURSIVE started(id, hop) AS (
    SELECT id, 0 FROM sessions WHERE owner = ?1
    UNION
    SELECT c.id, hop + 1 FROM started JOIN sessions AS c ON c.parent_session_id = started.id
    WHERE c.owner IS NULL AND COALESCE(c.user_id, '') = '' AND hop < 1000
)
UPDATE sessions SET owner = ?1 WHERE owner IS NULL AND id IN (SELECT id FROM started)
"""

#: What is needed to tell kinds and conversations, in the order in which sessions were made.
_SESSIONS: Final = """
SELECT id, source, parent_session_id, end_reason, model_config FROM sessions ORDER BY rowid LIMIT -1
"""
_KIND: Final = "UPDATE sessions SET kind = ? WHERE id = ?"
_ROOT: Final = "UPDATE sessions SET root_id = ? WHERE id = ?"
_LAST_ACTIVE: Final = """
UPDATE sessions SET last_active = COALESCE(
    (SELECT max(CASE typeof(m.timestamp) WHEN 'text' THEN unixepoch(m.timestamp) ELSE m.timestamp END)
     FROM messages AS m WHERE m.session_id = sessions.id),
    CASE typeof(started_at) WHEN 'text' THEN unixepoch(started_at) ELSE started_at END, 0)
WHERE last_active IS NULL
"""
#: Titles, the newest session first: it keeps the title of several equal ones.
_TITLES: Final = """
SELECT id, owner, title FROM sessions
WHERE title IS NOT NULL AND title_key IS NULL ORDER BY started_at DESC, rowid DESC LIMIT -1
"""
_TITLE_KEY: Final = "UPDATE sessions SET title_key = ? WHERE id = ?"


def migrate(connection: sqlite3.Connection, files: StoreFiles, version: int) -> None:
    """Take the file over; nothing of it was changed in this transaction before."""
    _LOG.warning("%s has the schema of another tool (version %d) and is taken over", files.path, version)
    copy = _copy(files, version)
    _LOG.warning("A copy of it as it was is in %s", copy)
    tx = Tx(connection, time.time(), boot_clock())
    index.discard_documented(tx)
    for statement in missing(connection):
        connection.execute(statement)
    _settle_owners(tx)
    sessions = tx.all(_SESSIONS)
    _settle_kinds(tx, sessions)
    _settle_roots(tx, sessions)
    tx.run(_LAST_ACTIVE)
    _settle_titles(tx)
    while index.rebuild_step(tx, _INDEX_STEP):
        pass


# --- the copy --------------------------------------------------------------------------------------------------------


def _copy(files: StoreFiles, version: int) -> Path:
    """Make a whole copy beside the file; under its name only when it is on the disk."""
    target = backup_path(files.path, version)
    unfinished = files.path.with_name(f"{files.path.name}.unfinished-backup")
    _refuse_without_room(files)
    unfinished.unlink(missing_ok=True)
    try:
        # A connection of its own: SQLite copies no file through the connection that is about to write to it.
        source = connect(files.path, "ro")
        try:
            copy = connect(unfinished, "rwc", mode_of=files.lock if files.lock.exists() else files.path)
            try:
                source.backup(copy)
            finally:
                copy.close()
        finally:
            source.close()
        unfinished.rename(target)
        _sync_folder(target.parent)
    except driver().module.Error as error:
        unfinished.unlink(missing_ok=True)
        raise store_error(error) from error
    return target


def _refuse_without_room(files: StoreFiles) -> None:
    size = (files.size() or 0) + files.wal_size()
    disk = os.statvfs(files.path.parent)
    if disk.f_bavail * disk.f_frsize < 3 * size + _SPARE:
        raise StoreFull(
            f"{files.path} is of an older form and must be copied before it is taken over, for which the disk has no "
            f"room: about {(3 * size + _SPARE) // 1_000_000} MB are needed. Free some space; it was not changed."
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- what is filled in -----------------------------------------------------------------------------------------------


def _settle_owners(tx: Tx) -> None:
    tx.run(_OWN, (OWNER, _OWN_SOURCES))
    for row in tx.all(_SENDERS):
        person = ensure_allowed(tx, row["source"], "", row["user_id"], None)
        tx.run(_OWNED, (person, row["source"], row["user_id"]))
    tx.run(_STARTED, (OWNER,))


def _settle_kinds(tx: Tx, sessions: list[Row]) -> None:
    parents = {row["id"]: row for row in sessions}
    for row in sessions:
        row["kind"] = _kind(row, parents.get(row["parent_session_id"]))
    tx.run_many(_KIND, [(row["kind"], row["id"]) for row in sessions if row["kind"] != "live"])


def _kind(row: Row, parent: Row | None) -> str:
    """live, branch, scheduled or tool, by the marks that the history left."""
    if row["source"] == "cron":
        return "scheduled"
    marks = _marks(row["model_config"])
    if row["source"] == "tool" or "_delegate_from" in marks:
        return "tool"
    branched = parent is not None and parent["end_reason"] == "branched"
    if branched or "_branched_from" in marks:
        return "branch"
    # What goes on with a session has its source; another one is a run that the session started.
    return "tool" if parent is not None and parent["source"] != row["source"] else "live"


def _marks(model_config: str | None) -> frozenset[str]:
    try:
        found = json.loads(model_config or "{}")
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(found) if isinstance(found, dict) else frozenset()


def _settle_roots(tx: Tx, sessions: list[Row]) -> None:
    """The first session of each conversation; a ring of parents, which only damage makes, is cut where it is met."""
    rows = {row["id"]: row for row in sessions}
    roots: dict[str, str] = {}
    for row in sessions:
        chain = list(_upwards(row, rows, roots))
        root = roots.get(chain[-1], chain[-1])
        roots.update(dict.fromkeys(chain, root))
    tx.run_many(_ROOT, [(root, session) for session, root in roots.items()])


def _upwards(row: Row, rows: dict[str, Row], known: dict[str, str]) -> Iterator[str]:
    """The sessions from this one up over compression edges, to one whose root is known or that continues none."""
    seen: set[str] = set()
    while row["id"] not in seen:
        seen.add(row["id"])
        yield row["id"]
        parent = rows.get(row["parent_session_id"])
        continues = parent is not None and parent["end_reason"] == COMPRESSION and row["kind"] == "live"
        if row["id"] in known or parent is None or not continues:
            return
        row = parent


def _settle_titles(tx: Tx) -> None:
    taken: set[tuple[str, str]] = set()
    for row in tx.all(_TITLES):
        key = _key(row["title"])
        if key is not None and (row["owner"] or "", key) not in taken:
            taken.add((row["owner"] or "", key))
            tx.run(_TITLE_KEY, (key, row["id"]))


def _key(title: object) -> str | None:
    try:
        cleaned = clean_title(title) if isinstance(title, str) else None
    except InvalidArgument:
        return None
    return None if cleaned is None else title_key(cleaned)
