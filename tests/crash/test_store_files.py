"""The files change under a running store: it stops, says so, and goes on when they are back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_store import SessionDB, StoreError, StoreFull, StoreLost
from tests.conftest import Elsewhere
from tests.crash.store_children import assert_consistent, child, stored


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm"])
async def test_a_moved_file_stops_the_writing_until_it_is_back(home: Path, elsewhere: Elsewhere, name: str) -> None:
    """Writing on would go where nobody looks: what is refused is not stored, what is accepted is."""
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        await db.append_message("s", "user", "before", op_id="before")
        (home / name).rename(home / "aside")
        with pytest.raises(StoreLost, match=name):
            await db.append_message("s", "user", "lost", op_id="lost")
        (home / "aside").rename(home / name)
        await db.append_message("s", "user", "after", op_id="after")

    assert stored(elsewhere, "s") == ["before", "after"]
    assert_consistent(elsewhere)


async def test_a_replaced_database_is_not_written_to(home: Path, elsewhere: Elsewhere) -> None:
    """A restored backup is another file: nothing is written to either until the store is opened anew."""
    async with SessionDB(home / "other.db") as other:
        await other.create_session("restored", "cli")
    db = await SessionDB(home / "state.db").open()
    try:
        await db.create_session("s", "cli")
        (home / "other.db").replace(home / "state.db")
        for _ in range(2):
            with pytest.raises(StoreLost, match="replaced"):
                await db.create_session("t", "cli")
    finally:
        await db.close()

    assert elsewhere("SELECT id FROM sessions") == [{"id": "restored"}]
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed by a write", "noticed at closing"])
async def test_the_log_of_the_old_file_does_not_reach_the_new_one(
    home: Path,
    elsewhere: Elsewhere,
    noticed: bool,  # noqa: FBT001 - a parametrised value
) -> None:
    """A file put in place of a running store's must not be opened with that store's log, which would ruin it."""
    async with SessionDB(home / "other.db") as other:
        await other.create_session("restored", "cli")
        await other.append_message("restored", "user", "old words")
    async with SessionDB(home / "state.db") as db:
        await db.create_session("s", "cli")
        for number in range(20):
            await db.append_message("s", "user", f"{number} " + "words " * 500)
        (home / "state.db").rename(home / "aside")
        (home / "other.db").rename(home / "state.db")
        if noticed:
            with pytest.raises(StoreLost):
                await db.create_session("t", "cli")
            assert (home / "state.db-wal").stat().st_size == 0

    assert elsewhere("SELECT id FROM sessions") == [{"id": "restored"}]
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    aside = home / "aside"
    assert elsewhere("SELECT count(*) AS n FROM messages", path=aside) == [{"n": 20}]
    assert elsewhere("PRAGMA integrity_check", path=aside) == [{"integrity_check": "ok"}]


async def test_a_deleted_database_is_not_made_anew(home: Path) -> None:
    """An empty one in its place would hide that the old one is gone."""
    db = await SessionDB(home / "state.db").open()
    try:
        await db.create_session("s", "cli")
        (home / "state.db").unlink()
        with pytest.raises(StoreLost, match="deleted"):
            await db.create_session("t", "cli")
        with pytest.raises(StoreLost, match="deleted"):
            await db.get_session("s")
    finally:
        await db.close()

    assert not (home / "state.db").exists()


async def test_a_log_without_its_database_is_not_thrown_away(home: Path, elsewhere: Elsewhere) -> None:
    """It may hold what was said last; beginning anew over it would delete that."""
    with child("append", home / "state.db", "s", 1) as writer:
        writer.until("ack")
        writer.send(signal.SIGKILL)
        writer.rest()
    (home / "state.db").rename(home / "aside")
    with pytest.raises(StoreLost, match=r"state\.db-wal is there"):
        await SessionDB(home / "state.db").open()
    (home / "aside").rename(home / "state.db")

    assert set(stored(elsewhere, "s")) >= set(writer.acknowledged)


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    place = home / "disk"
    place.mkdir()
    mount = ["/bin/mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603 - a fixed command
        pytest.skip("cannot mount a small disk here")
    yield place
    subprocess.run(["/bin/umount", "-l", str(place)], check=True)  # noqa: S603 - a fixed command


async def test_a_full_disk_is_told_and_work_goes_on_by_itself(small_disk: Path, elsewhere: Elsewhere) -> None:
    """The caller is told, nothing is half done, reading works, and with space the next write succeeds."""
    path = small_disk / "state.db"
    acknowledged: list[str] = []
    ballast = small_disk / "ballast"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
        ballast.write_bytes(bytes(1024 * 1024))
        with pytest.raises(StoreFull, match="Free some space"):
            await _append_without_end(db, acknowledged)
        assert len(await db.get_messages("s")) == len(acknowledged)

        ballast.unlink()
        await db.append_message("s", "user", "after", op_id="after")

    assert [row["op_id"] for row in elsewhere("SELECT op_id FROM messages ORDER BY id", path=path)] == [
        *acknowledged,
        "after",
    ]
    assert elsewhere("PRAGMA integrity_check", path=path) == [{"integrity_check": "ok"}]


async def test_a_store_that_cannot_be_opened_on_a_full_disk_says_that_it_is_full(small_disk: Path) -> None:
    """Not "the disk reported an error": whoever reads it must know what to do. With space it opens."""
    path = small_disk / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    with pytest.raises(StoreFull, match="Free some space"):
        await SessionDB(path).open()

    (small_disk / "ballast").unlink()
    async with SessionDB(path) as db:
        assert await db.get_session("s") is not None


async def _append_without_end(db: SessionDB, acknowledged: list[str]) -> None:
    for number in range(10_000):
        await db.append_message("s", "user", f"{number} " + "long text " * 500, op_id=f"a{number}")
        acknowledged.append(f"a{number}")


async def test_a_file_that_may_not_grow_fails_cleanly(home: Path, elsewhere: Elsewhere) -> None:
    """A limit of the system looks like a broken disk: told, and over as soon as the limit is lifted."""
    script = Path(__file__).with_name("store_limited.py")
    with child("append", home / "state.db", "first", 1, 0.05) as first:
        first.until("done")
    done = subprocess.run(  # noqa: S603, ASYNC221 - our own interpreter and script
        [sys.executable, str(script), str(home / "state.db")],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": str(script.parents[2])},
    )
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "after"
    assert lines[0].split()[0] in {kind.__name__ for kind in StoreError.__subclasses__()}

    assert stored(elsewhere, "limited")[-1] == "after"
    assert_consistent(elsewhere)
