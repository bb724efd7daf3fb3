"""Names, places and permissions of the files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from session_store import SessionDB, StoreLost, StoreUnreadable, StoreUnsafePlace
from session_store import files as files_module
from session_store.files import StoreFiles, default_path, file_system_of

MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:30 / /home rw - ext4 /dev/vdb rw
31 21 0:31 / /mnt/my\\040share rw shared:1 - nfs4 server:/x rw
32 21 0:32 / /mnt/host rw - virtiofs host rw
33 21 0:33 / /mnt/ssh rw - fuse.sshfs you@there:/ rw
34 21 0:34 / /mnt/usb rw - fuseblk /dev/sdb1 rw
35 32 0:35 / /mnt/host/inner rw - ext4 /dev/vdc rw
36 21 0:36 / /twice rw - ext4 /dev/vdd rw
37 36 0:37 / /twice rw - 9p share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/state.db", "ext4"),
        ("/home/me/state.db", "ext4"),
        ("/homework/state.db", "ext4"),
        ("/mnt/my share/state.db", "nfs4"),
        ("/mnt/host/state.db", "virtiofs"),
        ("/mnt/host/inner/state.db", "ext4"),
        ("/mnt/ssh/a/b", "fuse.sshfs"),
        ("/twice/state.db", "9p"),
    ],
)
def test_the_innermost_and_latest_mount_decides(path: str, kind: str) -> None:
    """A path lies on the longest mount point that contains it; of two on one point the later one counts."""
    assert file_system_of(path, MOUNTS) == kind


@pytest.mark.parametrize(
    ("system", "refused"),
    [
        *((system, True) for system in ("nfs", "nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs")),
        *((system, False) for system in ("ext4", "fuseblk", "tmpfs", "overlay")),
    ],
)
async def test_a_home_on_a_network_file_system_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    refused: bool,  # noqa: FBT001 - a parametrised value
) -> None:
    """One sentence that names the place and the kind of disk; not even the folder is made."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"21 1 0:1 / / rw - {system} source rw\n")
    monkeypatch.setattr(files_module, "_MOUNTS", mounts)
    path = tmp_path / "home" / "state.db"

    if refused:
        with pytest.raises(StoreUnsafePlace, match=rf"state\.db.*\({system}\).*local disk"):
            await SessionDB(path).open()
        assert not path.parent.exists()
    else:
        async with SessionDB(path):
            assert path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_everything_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Folder 0700, files 0600: what people say to their agent is nobody else's."""
    folder = tmp_path / "home"
    before = os.umask(umask)
    try:
        async with SessionDB(folder / "state.db") as db:
            await db.create_session("s", "cli")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)

    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm", "state.db.lock"), 0o600)
    assert not stat.S_IMODE(folder.stat().st_mode) & 0o077


async def test_loose_permissions_are_tightened_at_opening(db: SessionDB, home: Path) -> None:
    """A database that others could read, after a restore for example, is private again."""
    await db.close()
    (home / "state.db").chmod(0o644)

    async with SessionDB(home / "state.db"):
        assert stat.S_IMODE((home / "state.db").stat().st_mode) == 0o600


def test_the_default_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`$THREADLINE_HOME` first, else a folder in the user's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("THREADLINE_HOME", raising=False)
    assert default_path() == tmp_path / ".threadline" / "state.db"

    monkeypatch.setenv("THREADLINE_HOME", "/srv/line")
    assert default_path() == Path("/srv/line/state.db")


async def test_a_link_to_the_database_keeps_its_side_files_beside_the_target(home: Path, tmp_path: Path) -> None:
    """Two names of one file must not make two write-ahead logs."""
    link = tmp_path / "link.db"
    link.symlink_to(home / "state.db")

    async with SessionDB(link) as db, SessionDB(home / "state.db") as same:
        await db.create_session("s", "cli")
        assert await same.get_session("s") is not None

    assert {path.name for path in tmp_path.iterdir()} == {"home", "link.db"}


def test_a_replaced_side_file_is_noticed(tmp_path: Path) -> None:
    """Each of the three files must be the one that was opened."""
    files = StoreFiles(tmp_path / "state.db")
    for path in (files.path, files.wal, files.shm):
        path.touch()
    files.remember()
    files.verify()

    for path in (files.path, files.wal, files.shm):
        aside = path.rename(tmp_path / "aside")
        with pytest.raises(StoreLost, match=r"moved or deleted.*Put it back"):
            files.verify()
        path.touch()
        with pytest.raises(StoreLost, match="replaced"):
            files.verify()
        aside.rename(path)
        files.verify()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
async def test_a_folder_in_place_of_a_side_file_is_named_at_once(home: Path, suffix: str) -> None:
    """With what to do; to SQLite it would be an error that may pass, to be waited out."""
    path = home / "state.db"
    async with SessionDB(path):
        pass
    odd = home / f"state.db{suffix}"
    odd.mkdir()
    with pytest.raises(StoreUnreadable, match=rf"{odd} is not a plain file.*Move it away"):
        async with SessionDB(path):
            pass
    odd.rmdir()
    async with SessionDB(path) as db:
        assert await db.get_session("s") is None
