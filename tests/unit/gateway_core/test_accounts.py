"""One gateway per account on a machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.accounts import lock_account, runtime_folder
from gateway.errors import AccountTaken, RuntimeFolderUnsafe

ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from gateway.accounts import lock_account
lock = lock_account("telegram", "main", sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime folder of the test's own."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_the_second_holder_of_a_token_is_refused_in_one_sentence() -> None:
    """Whatever name the account has in its home; other tokens are free."""
    first = lock_account("telegram", "main", "1:secret")
    with pytest.raises(AccountTaken, match="already serves the telegram account “second”") as refused:
        lock_account("telegram", "second", "1:secret")
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    lock_account("telegram", "main", "2:secret").release()
    lock_account("slack", "main", "1:secret").release()
    first.release()
    lock_account("telegram", "main", "1:secret").release()


def test_a_killed_holder_leaves_nothing_in_the_way() -> None:
    """The lock dies with the process; the file it leaves is empty and refuses nobody."""
    holder = subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-c", HOLD, "1:secret"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"held"
    with pytest.raises(AccountTaken):
        lock_account("telegram", "main", "1:secret")
    holder.kill()
    holder.communicate(timeout=20)
    lock_account("telegram", "main", "1:secret").release()


def test_the_folder_and_its_files_are_private_and_name_no_token(runtime: Path) -> None:
    """Also when the folder was there with more rights."""
    (runtime / "threadline").mkdir(mode=0o755)
    lock = lock_account("telegram", "main", "1:secret")
    folder = runtime_folder()
    assert folder == runtime / "threadline"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert "secret" not in file.name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_size == 0
    lock.release()


def test_a_folder_that_is_a_link_is_refused(runtime: Path, tmp_path: Path) -> None:
    """In a folder that everybody can write to, somebody else may have put it there."""
    (tmp_path / "elsewhere").mkdir()
    (runtime / "threadline").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeFolderUnsafe, match="XDG_RUNTIME_DIR"):
        runtime_folder()


def test_without_a_runtime_folder_the_temporary_one_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the variable points nowhere; by the user's number, so that users do not share it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr("gateway.accounts.os.getuid", os.getuid)
    monkeypatch.setattr("gateway.accounts.tempfile.gettempdir", lambda: str(tmp_path))
    real = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: not str(path).startswith("/run/user") and real(path))
    assert runtime_folder() == tmp_path / f"threadline-{os.getuid()}"
