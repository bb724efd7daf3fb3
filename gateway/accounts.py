"""One gateway per platform account on this machine: an operating-system lock named by the hash of the account's token.

Contract: the lock dies with the process, whatever kills it, so no stale file ever refuses a start. It is shared by all
homes of the user, because two gateways with one token would take each other's messages whatever home they use.
Failure: `AccountTaken` or `RuntimeFolderUnsafe`, one sentence each.
Limits: processes of the same user on the same machine; another machine is noticed by the platform itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

from gateway.errors import AccountTaken, RuntimeFolderUnsafe

__all__ = ["lock_account", "runtime_folder"]


def runtime_folder() -> Path:
    """The private folder for lock files of this user, made if it is not there. Blocks for a moment.

    `threadline` in `$XDG_RUNTIME_DIR`, else in `/run/user/<uid>` (so that a service without that variable and a login
    shell with it find the same locks), else `threadline-<uid>` in the temporary folder.
    """
    user = os.getuid()
    for base in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}"):
        if base and Path(base).is_dir() and os.access(base, os.W_OK):
            return _private(Path(base) / "threadline")
    return _private(Path(tempfile.gettempdir()) / f"threadline-{user}")


def _private(folder: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    # In a folder that everybody can write to, somebody else may have been there first.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RuntimeFolderUnsafe(folder)
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def lock_account(platform: str, account: str, token: str) -> FileLock:
    """Take the account for this process; keep the returned lock as long as the account is used. Blocks for a moment."""
    name = hashlib.sha256(f"{platform}:{token}".encode()).hexdigest()[:32]
    # Not bound to a thread: it may be released by another one than took it.
    lock = FileLock(runtime_folder() / f"{platform}-{name}.lock", timeout=0, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise AccountTaken(platform, account) from error
    return lock
