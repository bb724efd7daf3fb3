"""Files by their content: one file per SHA-256 under `files/` beside the database.

Contract: `files/<first two hex digits>/<hash>`, files 0600 and folders 0700, never executable. A file appears whole or
not at all: it is written as a draft in the same folder tree, flushed to the disk and put in its place in one step. The
same content is kept once, however often it comes. All functions are for a worker thread.
Failure: StoreFull when the disk is full, StoreReadOnly for whatever else keeps a file from being written.
Limits: what a killed process left half written is removed by `remove_drafts`; contents are not compared again later.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from session_store.errors import InvalidArgument, StoreError, StoreFull, StoreReadOnly
from session_store.files import default_path

__all__ = ["Blobs", "Draft"]

_HASH: Final = re.compile(r"[0-9a-f]{64}\Z")
_SHELF: Final = re.compile(r"[0-9a-f]{2}\Z")
_DRAFT: Final = ".draft-"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Blobs:
    """The files of one store. database: its path, None for the usual one; nothing is touched until a file comes."""

    def __init__(self, database: str | os.PathLike[str] | None) -> None:
        self._database = database

    @cached_property
    def folder(self) -> Path:
        """Where the files lie."""
        return Path(os.path.realpath(self._database or default_path())).parent / "files"

    def path(self, digest: str) -> Path:
        """Where the file with this hash lies, or would lie. InvalidArgument for what is no hash."""
        if not _HASH.match(digest):
            raise InvalidArgument("A file is named by its SHA-256: 64 hexadecimal digits.")
        return self.folder / digest[:2] / digest

    def draft(self) -> Draft:
        """Begin a file."""
        with _told_apart(self.folder):
            self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            return Draft(self, self.folder / f"{_DRAFT}{secrets.token_hex(8)}")

    def touch(self, digest: str) -> bool:
        """Make a file count as new again, so that no sweep takes it; False if it is not there."""
        try:
            os.utime(self.path(digest))
        except FileNotFoundError:
            return False
        return True

    def read(self, digest: str, most: int) -> bytes:
        """The beginning of a file, at most `most` bytes. FileNotFoundError if it is not there."""
        with self.path(digest).open("rb") as file:
            return file.read(most)

    def older_than(self, seconds: float) -> list[str]:
        """Hashes of the files that were neither stored nor touched for so long."""
        before = time.time() - seconds
        return [path.name for path in self._all() if _HASH.match(path.name) and _modified(path) < before]

    def remove(self, digests: Iterable[str], seconds: float) -> int:
        """Remove files, except those that were touched again within the last `seconds`; returns how many went."""
        before = time.time() - seconds
        gone = 0
        for path in map(self.path, digests):
            if _modified(path) < before:
                with contextlib.suppress(OSError):
                    path.unlink()
                    gone += 1
        return gone

    def remove_drafts(self, seconds: float) -> int:
        """Remove what was begun more than `seconds` ago and never kept; returns how many went."""
        before = time.time() - seconds
        gone = 0
        for path in _entries(self.folder):
            if path.name.startswith(_DRAFT) and _modified(path) < before:
                with contextlib.suppress(OSError):
                    path.unlink()
                    gone += 1
        return gone

    def _all(self) -> Iterator[Path]:
        for shelf in _entries(self.folder):
            if _SHELF.match(shelf.name):
                yield from _entries(shelf)


class Draft:
    """A file on its way in. End it with `keep` or `discard`; both may be repeated, the first one counts."""

    def __init__(self, blobs: Blobs, path: Path) -> None:
        self._blobs = blobs
        self._path = path
        self._hash = hashlib.sha256()
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb")
        self.size = 0

    def write(self, data: bytes) -> None:
        """Add a piece."""
        with _told_apart(self._path):
            self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def keep(self) -> str:
        """Put the file in its place and return its hash. The file that is there already stays if it is whole."""
        digest = self._hash.hexdigest()
        target = self._blobs.path(digest)
        with _told_apart(target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if not self._is_there(target):
                target.parent.mkdir(mode=_FOLDER_MODE, exist_ok=True)
                self._path.replace(target)
                for folder in (target.parent, target.parent.parent):
                    _flush(folder)
        self.discard()
        return digest

    def discard(self) -> None:
        """Let go of what is not kept."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _is_there(self, target: Path) -> bool:
        try:
            return target.stat().st_size == self.size and self._blobs.touch(target.name)
        except FileNotFoundError:
            return False


def _flush(folder: Path) -> None:
    """Make the names in a folder durable, where the system knows how."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _modified(path: Path) -> float:
    """When a file was last touched; one that is gone is as new as can be."""
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


@contextlib.contextmanager
def _told_apart(path: Path) -> Iterator[None]:
    """Turn errors of the file system into ours."""
    try:
        yield
    except OSError as error:
        ours: StoreError = StoreReadOnly(f"{path.parent} cannot be written: {error.strerror}.")
        if error.errno in _FULL:
            ours = StoreFull()
        raise ours from error
