"""The ticket: an flock that makes the writers of all processes queue politely.

Contract: one empty file beside the database, made 0600, never deleted. The kernel wakes waiters in turn, which SQLite's
own lock does not. The ticket is manners, SQLite's lock is the truth: who waits too long goes on without it. A wait for
an flock cannot be timed out in place, so a helper thread waits; a win that comes too late is given back at once. While
the helper still waits (the holder may be stopped), the ticket is not tried again: a stopped holder costs nobody twice.
A patient ticket (safe mode, where nobody may write without it) joins that wait instead.
Failure: `acquire` returns False; a lock file that cannot be made counts as that. All methods are for one thread.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path
from typing import Final

__all__ = ["Ticket"]

_LOG = logging.getLogger(__name__)
_MODE: Final = 0o600


class Ticket:
    """The place of this process in the queue of writers."""

    def __init__(self, path: Path, *, patient: bool) -> None:
        self._path = path
        self._patient = patient
        self._descriptor: int | None = None
        self._state = threading.Condition()
        self._wanted = False
        self._won = False
        self._waiting = False
        self._closed = False

    def open(self) -> None:
        """Make the lock file if it is missing, without queueing."""
        self._open()

    def acquire(self, timeout: float) -> bool:
        """Take the ticket within `timeout` seconds. False: it is not ours."""
        descriptor = self._open()
        if descriptor is None:
            return False
        with self._state:
            waiting = self._waiting
        if not waiting:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            except OSError as error:
                _LOG.warning("The write ticket %s cannot be locked: %s", self._path, error)
                return False
            else:
                return True
        elif not self._patient:
            return False
        if self._wait(descriptor, timeout):
            return True
        _LOG.warning("The write ticket %s has been held by another process for %.1f s", self._path, timeout)
        return False

    def release(self) -> None:
        """Give the ticket to the next in line."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the queue. A helper that still waits closes the file when its wait ends."""
        with self._state:
            self._closed = True
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None and not self._waiting:
                os.close(descriptor)

    def _open(self) -> int | None:
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
            except OSError as error:
                _LOG.warning("The write ticket %s cannot be opened: %s", self._path, error)
        return self._descriptor

    def _wait(self, descriptor: int, timeout: float) -> bool:
        with self._state:
            self._wanted = True
            if not self._waiting:
                self._waiting = True
                threading.Thread(target=self._help, args=(descriptor,), name="threadline-ticket", daemon=True).start()
            self._state.wait_for(lambda: self._won, timeout)
            won, self._won, self._wanted = self._won, False, False
        return won

    def _help(self, descriptor: int) -> None:
        """In the helper thread: wait as long as it takes, then hand the lock over or give it back."""
        locked = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            locked = False
            _LOG.warning("The write ticket %s cannot be locked: %s", self._path, error)
        with self._state:
            self._waiting = False
            if locked and self._wanted:
                self._won = True
                self._state.notify_all()
            elif locked:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            if self._closed:
                os.close(descriptor)
