"""Nothing but SQLite opens the database, its log or its shared memory.

Closing any other descriptor of these files drops the locks of the whole process, and that has destroyed databases.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OPENERS = re.compile(
    r"(^|\.)(open|fdopen|read_text|read_bytes|write_text|write_bytes|copy|copy2|copyfile|copytree|move|mmap|truncate)$"
)
DATABASE_PATHS = re.compile(r"state_db|db_path|state\.db|-wal|-shm")
#: The store's own calls that open something, each with what it opens.
ALLOWED = {
    ("files.py", "_MOUNTS.read_text"),  # the kernel's list of mounts
    ("blobs.py", "os.open"),  # a draft under files/, named by chance
    ("blobs.py", "os.fdopen"),  # the same
    ("blobs.py", "self.path(digest).open"),  # a file under files/, named by its hash
    ("processes.py", "Path('/proc/sys/kernel/random/boot_id').read_text"),  # the kernel
    ("processes.py", "Path(f'/proc/{pid}/stat').read_bytes"),  # the kernel
    ("schema.py", "resources.files('session_store').joinpath(name).read_text"),  # our .sql files
    ("migration.py", "os.open"),  # the folder, to sync it
    ("ticket.py", "os.open"),  # the lock file, which is not the database
    ("db.py", "self._store.open"),  # ours: opens through SQLite
    ("db.py", "self.open"),
    ("engine.py", "HopConnection.open"),
    ("readers.py", "HopConnection.open"),
    ("opening.py", "ticket.open"),
}


def opening_calls(path: Path) -> Iterator[tuple[str, str]]:
    """Every call in a module that may open a file: what is called, and the whole call."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and OPENERS.search(ast.unparse(node.func)):
            yield ast.unparse(node.func), ast.unparse(node)


def test_the_store_opens_only_what_is_listed() -> None:
    """A new call must be looked at and entered above with its reason."""
    found = {
        (path.name, called)
        for path in sorted((ROOT / "session_store").glob("*.py"))
        for called, _ in opening_calls(path)
    }

    assert found <= ALLOWED, f"look at {found - ALLOWED}"


@pytest.mark.parametrize("package", ["adapters", "config", "gateway"])
def test_no_other_package_opens_a_database_path(package: str) -> None:
    """Backups, copies and checks go through the store."""
    found = [
        f"{path.relative_to(ROOT)}: {call}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for _, call in opening_calls(path)
        if DATABASE_PATHS.search(call)
    ]

    assert not found


WATCHED = """
import asyncio, sys
from session_store import SessionDB, StoreError

def watch(event, arguments):
    if event in ("open", "os.truncate", "shutil.copyfile") and str(arguments[0]).endswith((".db", "-wal", "-shm")):
        print("opened", event, arguments[0], flush=True)

sys.addaudithook(watch)

async def main():
    for _ in range(2):
        async with SessionDB(sys.argv[1]) as db:
            await db.create_session("s", "cli", title="one")
            await db.append_message("s", "user", "hello")
            await db.search_messages("hello")
            await db.changes.wait(0.2)
            await db.stats()
            [one async for one in db.iter_sessions()]
            await db.delete_session("s")
    try:
        await SessionDB(sys.argv[2]).open()
    except StoreError:
        print("refused")
asyncio.run(main())
"""


def test_a_running_store_opens_nothing_behind_sqlites_back(tmp_path: Path) -> None:
    """Python itself reports every file it opens; none is one of ours, not even when a foreign file is refused."""
    foreign = tmp_path / "foreign.db"
    foreign.write_text("not a database " * 1000)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", WATCHED, str(tmp_path / "state.db"), str(foreign)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.stdout == "refused\n", done.stdout + done.stderr
