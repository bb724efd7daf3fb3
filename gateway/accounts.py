"""One gateway per platform account on this machine: an operating-system lock named by the hash of the account's token.

Contract: the lock dies with the process, whatever kills it, so no stale file ever refuses a start. It is shared by all
homes of the user, because two gateways with one token would take each other's messages whatever home they use.
Failure: `AccountTaken`, one sentence.
Limits: processes of the same user on the same machine; another machine is noticed by the platform itself.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

from gateway.errors import AccountTaken, RuntimeFolderUnsafe

__all__ = ["lock_account", "runtime_folder"]


def runtime_folder() -> Path:
    """Folder for lock files of this user: `$XDG_RUNTIME_DIR/threadline`, else one in the temporary folder, 0700."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "threadline" if base else Path(tempfile.gettempdir()) / f"threadline-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=False, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise RuntimeFolderUnsafe(folder)
    return folder


def lock_account(platform: str, account: str, token: str) -> FileLock:
    """Take the account for this process; keep the returned lock as long as the account is used."""
    name = hashlib.sha256(f"{platform}:{token}".encode()).hexdigest()[:32]
    lock = FileLock(runtime_folder() / f"{platform}-{name}.lock", timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise AccountTaken(platform, account) from error
    return lock
