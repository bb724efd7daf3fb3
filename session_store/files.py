"""The files of a store as the file system sees them: names, identity, permissions, the kind of disk.

Contract: only `stat`, `chmod` and `mkdir` by path. Nothing here opens the database or its side files: closing any such
descriptor would drop the locks that SQLite holds for the whole process.
Failure: `StoreLost` when a file is not the one that was opened, `StoreUnsafePlace` on a network or shared file system.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final, NamedTuple

from session_store.errors import StoreLost, StoreReadOnly, StoreUnreadable, StoreUnsafePlace

__all__ = ["FileId", "StoreFiles", "default_path", "file_system_of"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_UNSAFE_SYSTEMS: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "fuse", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    }
)  # fmt: skip
_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_OTHERS: Final = 0o077
#: Bytes of the two side files of a database that has just been opened.
_ROOM: Final = 64 * 1024


class FileId(NamedTuple):
    """What makes a file itself, whatever it is called."""

    device: int
    inode: int


def default_path() -> Path:
    """`state.db` in `$THREADLINE_HOME`, else in `~/.threadline`."""
    home = os.environ.get("THREADLINE_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".threadline") / "state.db"


def file_system_of(path: str, mounts: str) -> str:
    """The type of the file system that holds `path` (absolute, resolved), from the text of mountinfo; '' if unknown."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, separator, rest = line.partition(" - ")
        if not separator:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # of two mounts on one point the later one covers the earlier
            best, kind = len(point), rest.split(" ", 1)[0]
    return kind


class StoreFiles:
    """The database, its two side files and the ticket's lock file. All methods are for a database thread."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self.wal = self._beside("-wal")
        self.shm = self._beside("-shm")
        self.lock = self._beside(".lock")
        self._opened: dict[Path, FileId] = {}
        self._looked_at: list[tuple[str, FileId]] = []

    def refuse_unsafe_place(self) -> None:
        """Raise `StoreUnsafePlace` if the folder lies where SQLite's locks or shared memory do not work."""
        if not _MOUNTS.exists():
            return
        kind = file_system_of(str(self.path), _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
        if kind in _UNSAFE_SYSTEMS or kind.startswith("fuse."):
            raise StoreUnsafePlace(
                f"{self.path} lies on a network or shared file system ({kind}) where SQLite's locks do not work. "
                "Move the home to a local disk."
            )

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def size(self) -> int | None:
        """Bytes of the database file, None if there is none. Raises `StoreUnreadable` if it is not a plain file."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreUnreadable(f"{self.path} cannot be read: {error.strerror}. It was not changed.") from error
        if not stat.S_ISREG(found.st_mode):
            raise StoreUnreadable(f"{self.path} is not a plain file. Choose another home; it was not changed.")
        return found.st_size

    def wal_size(self) -> int:
        """Bytes of the write-ahead log, 0 if there is none."""
        try:
            return self.wal.stat().st_size
        except OSError:
            return 0

    def disk_is_full(self) -> bool:
        """Whether there is no room for what SQLite keeps beside the database while it is open."""
        try:
            disk = os.statvfs(self.path.parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _ROOM

    def prepare_folder(self) -> None:
        """Make the folder, for its owner alone, if it is missing. A folder that exists is left as it is."""
        folder = self.path.parent
        try:
            folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreReadOnly(f"The folder {folder} cannot be made: {error.strerror}.") from error

    def refuse_odd_side_files(self) -> None:
        """Raise `StoreUnreadable` if something else lies where a side file belongs: SQLite would wait, and not say."""
        for path in (self.wal, self.shm):
            try:
                found = path.stat()
            except OSError:
                continue
            if not stat.S_ISREG(found.st_mode):
                raise StoreUnreadable(
                    f"{path} is not a plain file, so the database beside it cannot be used. Move it away; nothing was "
                    "changed."
                )

    def refuse_read_only(self) -> None:
        """Raise `StoreReadOnly` if the database or its folder does not let this user write."""
        for path in (self.path.parent, self.path):
            if path.exists() and not os.access(path, os.W_OK):
                raise StoreReadOnly(f"{path} cannot be written. Check the permissions of the home folder.")

    def make_private(self) -> None:
        """Take the permissions of others away from files that have them (only the owner of a file can)."""
        for path in (self.path, self.wal, self.shm, self.lock):
            try:
                found = path.stat()
                if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
                    path.chmod(_PRIVATE_FILE)
            except FileNotFoundError:
                continue

    def remember(self) -> None:
        """Note which files were opened; to be called while a connection keeps the side files in place."""
        self._opened = {path: _identity(path) for path in (self.path, self.wal, self.shm)}
        self._looked_at = [(str(path), known) for path, known in self._opened.items()]

    def log_is_ours(self) -> bool:
        """Whether the log and its shared memory are still those that were opened."""
        try:
            return all(_identity(path) == self._opened[path] for path in (self.wal, self.shm))
        except OSError:
            return False

    def verify(self) -> None:
        """Raise `StoreLost` unless each path still leads to the file that was opened."""
        for path, known in self._looked_at:
            try:
                found = os.stat(path)  # noqa: PTH116 - done before every transaction, and a `Path` costs as much again
            except OSError as error:
                raise StoreLost(f"{path} was moved or deleted while in use. Put it back, or restart.") from error
            if found.st_ino != known.inode or found.st_dev != known.device:
                raise StoreLost(f"{path} was replaced while in use. Put the old file back, or restart.")


def _identity(path: Path) -> FileId:
    found = path.stat()
    return FileId(found.st_dev, found.st_ino)
