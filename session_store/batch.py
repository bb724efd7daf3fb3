"""One batch of operations as one transaction: the part of the writer that runs on the database thread.

Contract: ticket, BEGIN IMMEDIATE, check that the files and the schema number are still ours, each operation in its own
savepoint, index rows last, COMMIT, tell the callers, checkpoint when due, give the ticket back. An operation that fails
is rolled back alone. What fails the batch (disk full, I/O error, lost file, busy too long) raises, and nothing of it is
stored. If the search index refuses, the same operations are done again without index rows and the index is marked
broken. Damage of tables, or a schema number newer than ours, stops all writing; reading goes on.
Operations must be pure functions of their transaction, since a batch may be done twice before it is committed.
Limits: waits at most 2 s for the ticket (16 s in safe mode) and about 18 s for the lock; the caps bound the rest.
"""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from session_store import index
from session_store.changes import ANYTHING
from session_store.driver import driver, store_error
from session_store.errors import (
    IndexDamaged,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreLost,
    StoreNewer,
    StoreReadOnly,
    StoreUnreadable,
)
from session_store.files import StoreFiles
from session_store.processes import boot_clock
from session_store.schema import SCHEMA_NUMBER, declared, pragma
from session_store.ticket import Ticket
from session_store.tx import Tx

__all__ = ["Apply", "Committer", "Deliver", "Outcome"]

_LOG = logging.getLogger(__name__)

TICKET_WAIT: Final = 2.0
TICKET_WAIT_SAFE_MODE: Final = 16.0
#: Longest time that operations of one batch are applied; what is left goes into the next one.
APPLY_TIME: Final = 0.025
BUSY_RETRIES: Final = 15
RETRY_PAUSE: Final = (0.020, 0.150)
#: Lets a waiter of another process have the ticket before we take it again. While no other process seems to write, only
#: every few batches: it would be a fifth of the time of a single message.
COURTESY: Final = 0.0002
COURTESY_ALONE_EVERY: Final = 8
#: So long after a sign of another writer we count as not alone.
CROWDED_FOR: Final = 2.0
CHECKPOINT_COMMITS: Final = 50
#: In safe mode SQLite must not checkpoint by itself at 1000 pages; so many operations stand for them.
CHECKPOINT_OPERATIONS: Final = 500
#: A checkpoint that leaves more pages than this was held up by a reader; so many in a row are reported.
STARVED_PAGES: Final = 4000
STARVED_CHECKPOINTS: Final = 3

#: Errors that concern the file or the disk, not the operation that met them.
_OF_THE_BATCH: Final = (StoreBusy, StoreDamaged, StoreForeign, StoreFull, StoreLost, StoreReadOnly, StoreUnreadable)

Apply: TypeAlias = Callable[[Tx], Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one operation: its result, or the error that concerns it alone."""

    result: Any = None
    error: Exception | None = None


#: Gets the outcomes and the tables that were changed.
Deliver: TypeAlias = Callable[[list[Outcome], Collection[str]], None]


class _IndexTrouble(Exception):
    """The index refused."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Committer:
    """Turns batches into transactions. All methods are for the writer connection's thread."""

    def __init__(self, files: StoreFiles, ticket: Ticket, raw: sqlite3.Connection, *, redact: bool = False) -> None:
        self._files = files
        self._redact = redact
        self._ticket = ticket
        self._data_version = pragma(raw, "data_version")
        self._others = False
        self._crowded_until = 0.0
        self._uncourteous = 0
        #: Why writing has stopped for good, if it has.
        self.stopped: StoreError | None = None
        self._commits = 0
        self._operations = 0
        self._starved = 0
        self._parted = False
        self._index_behind = True
        #: What the operations of the last transaction wrote.
        self._touched: Collection[str] = ()

    def commit(
        self,
        raw: sqlite3.Connection,
        operations: Sequence[Apply],
        deliver: Deliver,
        more: Callable[[], bool],
    ) -> None:
        """Do as many of `operations` as fit into one transaction; `deliver` gets their outcomes after the COMMIT."""
        if self.stopped is not None:
            raise self.stopped
        before = raw.total_changes
        with self.ticket():
            outcomes = self.transact(raw, operations)
            changed: Collection[str] = self._touched if raw.total_changes != before else ()
            if changed and self._others:  # who looks for our change sees theirs as well, whatever that was
                changed, self._others = ANYTHING, False
            self._commits += 1
            self._operations += len(outcomes)
            if self._commits >= CHECKPOINT_COMMITS or (
                driver().safe_mode and self._operations >= CHECKPOINT_OPERATIONS
            ):
                self.checkpoint(raw)
        deliver(outcomes, changed)
        self._uncourteous += 1
        if more() or len(outcomes) < len(operations):
            self._let_others_in()

    def transact(self, raw: sqlite3.Connection, operations: Sequence[Apply]) -> list[Outcome]:
        """One transaction, with the ticket in hand; feeds the search index as far as it is behind."""
        try:
            return self._attempt(raw, operations, None)
        except StoreLost:
            self._part_with_log(raw)
            raise
        except _IndexTrouble as trouble:
            reason = trouble.reason
            damage = self._judge(raw, reason)
            if isinstance(damage, StoreDamaged):
                raise damage from reason
            _LOG.warning("The search index refused and is marked broken; messages are stored without it: %s", reason)
            return self._attempt(raw, operations, str(reason))

    def others_committed(self, raw: sqlite3.Connection) -> bool:
        """Whether another connection has committed something that nobody was told of yet."""
        try:
            self._notice_others(raw)
        except driver().module.Error as error:
            _LOG.debug("Could not ask for changes: %s", error)
        others, self._others = self._others, False
        return others

    def close(self, raw: sqlite3.Connection) -> None:
        """Checkpoint and close, all under the ticket.

        No statistics are made for the planner: those of a small file would be taken for a large one's, and then whole
        tables are read where an index would do. The queries say themselves which way they go.
        """
        held = self._ticket.acquire(TICKET_WAIT)
        try:
            self._files.verify()
            if self.stopped is None and (held or not driver().safe_mode):
                self.checkpoint(raw)
        except StoreLost:
            self._part_with_log(raw)
        finally:
            raw.close()
            if held:
                self._ticket.release()
            self._ticket.close()

    @contextmanager
    def ticket(self) -> Iterator[None]:
        """Hold the ticket if it can be had. In safe mode `StoreBusy` is raised without it."""
        safe_mode = driver().safe_mode
        held = self._ticket.acquire(TICKET_WAIT_SAFE_MODE if safe_mode else TICKET_WAIT)
        if safe_mode and not held:
            raise StoreBusy
        try:
            yield
        finally:
            if held:
                self._ticket.release()

    def checkpoint(self, raw: sqlite3.Connection, how: str = "PASSIVE") -> None:
        """Move the log into the database as far as readers let it; the ticket must be in hand."""
        self._commits = 0
        self._operations = 0
        try:
            row = raw.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        except driver().module.Error as error:
            _LOG.warning("The write-ahead log could not be moved into the database: %s", error)
            return
        left = row["log"] - row["checkpointed"]
        self._starved = self._starved + 1 if left > STARVED_PAGES else 0
        if self._starved and self._starved % STARVED_CHECKPOINTS == 0:
            _LOG.warning("A reader holds on to an old state: %d pages of the write-ahead log cannot be moved", left)

    def _let_others_in(self) -> None:
        if self._uncourteous >= COURTESY_ALONE_EVERY or time.monotonic() < self._crowded_until:
            self._uncourteous = 0
            time.sleep(COURTESY)

    def _part_with_log(self, raw: sqlite3.Connection) -> None:
        """Empty the log into the file that was moved away, once.

        A file that is put in its place would otherwise be opened with the log of the old one, which would be written
        into it. Only once, since from then on the log may be in use by processes that opened the new file.
        """
        if not self._parted:
            self._parted = True
            if self._files.log_is_ours():
                self.checkpoint(raw, "TRUNCATE")

    # --- one transaction ---------------------------------------------------------------------------------------------

    def _attempt(self, raw: sqlite3.Connection, operations: Sequence[Apply], broken: str | None) -> list[Outcome]:
        """One try. broken: why the index is left out and marked, None to feed it."""
        try:
            self._begin(raw)
            tx = Tx(raw, time.time(), boot_clock())
            tx.redact = self._redact
            self._check(raw)
            outcomes = self._apply(raw, tx, operations)
            self._touched = frozenset(tx.touched)
            if broken is None:
                self._feed_index(tx)
            else:
                index.mark_broken(tx, broken)
            self._end(raw, feeding=broken is None)
        except driver().module.Error as error:
            _roll_back(raw)
            raise self._judge(raw, error) from error
        finally:
            _roll_back(raw)
        # A file that was taken away between the check and the commit has taken the commit with it.
        self._files.verify()
        return outcomes

    def _begin(self, raw: sqlite3.Connection) -> None:
        for attempt in range(BUSY_RETRIES + 1):
            try:
                raw.execute("BEGIN IMMEDIATE")
            except driver().module.Error as error:
                if attempt == BUSY_RETRIES or not isinstance(store_error(error), StoreBusy):
                    raise
                time.sleep(random.uniform(*RETRY_PAUSE))  # noqa: S311 - jitter, not a secret
            else:
                return

    def _check(self, raw: sqlite3.Connection) -> None:
        self._files.verify()
        number = pragma(raw, "user_version")
        if number > SCHEMA_NUMBER:
            self.stopped = StoreNewer(
                f"The database was brought to a newer form (schema {number}) while this process ran, so it has stopped "
                "writing. Upgrade and restart it; nothing was lost."
            )
            raise self.stopped
        self._notice_others(raw)

    def _notice_others(self, raw: sqlite3.Connection) -> None:
        known, self._data_version = self._data_version, pragma(raw, "data_version")
        if known != self._data_version:
            self._others = True
            self._crowded_until = time.monotonic() + CROWDED_FOR

    def _apply(self, raw: sqlite3.Connection, tx: Tx, operations: Sequence[Apply]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        until = time.monotonic() + APPLY_TIME
        for apply in operations:
            raw.execute("SAVEPOINT operation")
            try:
                outcome = Outcome(apply(tx))
            except Exception as error:
                ours = store_error(error)
                if not raw.in_transaction or (ours is not error and isinstance(ours, _OF_THE_BATCH)):
                    raise
                raw.execute("ROLLBACK TO operation")
                outcome = Outcome(error=ours)
            raw.execute("RELEASE operation")
            outcomes.append(outcome)
            if time.monotonic() > until:
                break
        return outcomes

    def _feed_index(self, tx: Tx) -> None:
        """Bring the index up to date, unless there is nothing for it; what others wrote, it catches up with."""
        if not (self._index_behind or self._others or index.FED_BY & tx.touched):
            return
        try:
            self._index_behind = index.update(tx)
        except Exception as error:
            ours = store_error(error)
            if isinstance(ours, _OF_THE_BATCH) and not isinstance(ours, StoreDamaged):
                raise
            raise _IndexTrouble(error) from error

    def _end(self, raw: sqlite3.Connection, *, feeding: bool) -> None:
        try:
            raw.execute("COMMIT")
        except driver().module.Error as error:
            # FTS5 writes what it holds at COMMIT, so this is where its damage may show.
            if feeding and isinstance(store_error(error), (IndexDamaged, StoreDamaged)):
                raise _IndexTrouble(error) from error
            raise

    def _judge(self, raw: sqlite3.Connection, error: Exception) -> Exception:
        """Our error; damage of a table stops the writing, damage elsewhere can only be the index's."""
        ours = store_error(error)
        if isinstance(ours, (StoreDamaged, StoreForeign)):
            if _tables_are_whole(raw):
                return IndexDamaged()
            self.stopped = ours = StoreDamaged()
            _LOG.error("The database is damaged, writing has stopped: %s", error)
        return ours


def _roll_back(raw: sqlite3.Connection) -> None:
    if raw.in_transaction:  # SQLite may have done it by itself
        raw.execute("ROLLBACK")


def _tables_are_whole(raw: sqlite3.Connection) -> bool:
    try:
        return all(pragma(raw, f"quick_check('{table}')") == "ok" for table in declared().columns)
    except driver().module.Error:
        return False
