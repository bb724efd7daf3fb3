"""What the store does in quiet moments: catch the index up, rebuild it, merge its segments, shrink the log.

Contract: `step` does one bounded piece of work (some tens of milliseconds) under the ticket and says whether there is
more; the writer calls it when nobody has written for a while, and stops as soon as somebody does. Every piece can be
interrupted by a crash and is taken up again, by any process.
Failure: a rebuild that fails three times in this process is left alone and said so; messages stay searchable by scan.
Other errors pass through. Runs on the writer connection's thread.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import Final

from session_store import index
from session_store.batch import Apply, Committer
from session_store.errors import IndexDamaged
from session_store.files import StoreFiles
from session_store.tx import Rx

__all__ = ["Upkeep"]

_LOG = logging.getLogger(__name__)

REBUILD_ATTEMPTS: Final = 3
#: Shrinking the log waits for readers (at most the writer's busy time-out), so it is kept for logs of this size.
LARGE_LOG: Final = 64 * 1024 * 1024
#: Pages of the index that one merge step may write.
MERGE_PAGES: Final = 200
#: Seconds between two times that the whole index is merged because something was deleted.
FORGET_EVERY: Final = 3600.0


class Upkeep:
    """Remembers what is still worth doing."""

    def __init__(self, files: StoreFiles, committer: Committer) -> None:
        self._files = files
        self._committer = committer
        self._failed_rebuilds = 0
        self._merge = False
        self._shrink = False
        self._forgets_again = 0.0

    def begin(self) -> None:
        """Something was written since the last quiet moment, so everything may be worth doing again."""
        self._merge = True
        self._shrink = True

    def step(self, raw: sqlite3.Connection) -> bool:
        """One piece of work. False: there is nothing more to do until something is written."""
        if self._committer.stopped is not None:
            return False
        if self._failed_rebuilds < REBUILD_ATTEMPTS and index.pending(Rx(raw)):
            self._catch_up(raw)
            return True
        if self._forgets(raw):
            return True
        if self._merge:
            self._merge = index.index_state(Rx(raw)).usable and self._merge_some(raw)
            return True
        if self._shrink:
            self._shrink = False
            if self._files.wal_size() > LARGE_LOG:
                self._files.verify()
                with self._committer.ticket():
                    self._committer.checkpoint(raw, "TRUNCATE")
        return False

    def mend(self, raw: sqlite3.Connection) -> bool:
        """One piece of what should not wait for a quiet moment that may never come. False: there is nothing to do.

        That is a new index, if the present one cannot be used, and deleted words.
        """
        if self._committer.stopped is not None or self._failed_rebuilds >= REBUILD_ATTEMPTS:
            return False
        state = index.index_state(Rx(raw))
        if state.foreign:
            return False
        if state.usable:
            return self._forgets(raw)
        self._catch_up(raw)
        return True

    def _forgets(self, raw: sqlite3.Connection) -> bool:
        """Let deleted words leave the index, at most once an hour, since the whole of it is written for that."""
        if (
            not index.forgetting(Rx(raw))
            or time.monotonic() < self._forgets_again
            or not index.index_state(Rx(raw)).usable
        ):
            return False
        trouble = self._run(raw, lambda tx: index.forget(tx, MERGE_PAGES))
        if trouble is not None or not index.forgetting(Rx(raw)):
            self._forgets_again = time.monotonic() + FORGET_EVERY
        return True

    def _catch_up(self, raw: sqlite3.Connection) -> None:
        trouble = self._run(raw, index.rebuild_step)
        if trouble is not None:
            self._failed_rebuilds += 1
            _LOG.warning("The search index could not be brought up to date: %s", trouble)
            if self._failed_rebuilds == REBUILD_ATTEMPTS:
                _LOG.error("The search index is left as it is until a restart; search scans the messages meanwhile")

    def _merge_some(self, raw: sqlite3.Connection) -> bool:
        before = raw.total_changes
        trouble = self._run(raw, lambda tx: index.merge(tx, MERGE_PAGES))
        if isinstance(trouble, IndexDamaged):
            reason = str(trouble.__cause__)
            _LOG.warning("The search index is damaged and marked broken: %s", reason)
            self._run(raw, lambda tx: index.mark_broken(tx, reason))
        return trouble is None and raw.total_changes - before >= index.MERGED

    def _run(self, raw: sqlite3.Connection, apply: Apply) -> Exception | None:
        """Do one thing in a transaction of its own; returns its trouble, damage of the index included."""
        with self._committer.ticket():
            try:
                (outcome,) = self._committer.transact(raw, [apply])
            except IndexDamaged as error:  # FTS5 may tell at the end of the savepoint only
                return error
        return outcome.error
