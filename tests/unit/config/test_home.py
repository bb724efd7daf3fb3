"""The home folder and what is made in it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config import ConfigError, Home

posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`THREADLINE_HOME` wins."""
    monkeypatch.setenv("THREADLINE_HOME", str(tmp_path))

    home = Home()

    assert home.path == tmp_path
    assert home.config_file == tmp_path / "config.yaml"
    assert home.env_file == tmp_path / ".env"
    assert home.state_db == tmp_path / "state.db"


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_it_lies_in_the_users_home(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """An empty variable counts as none."""
    monkeypatch.setenv("HOME", os.path.join(os.sep, "somewhere"))  # noqa: PTH118 - a text for the environment
    monkeypatch.setenv("USERPROFILE", os.path.join(os.sep, "somewhere"))  # noqa: PTH118 - the same on Windows
    monkeypatch.delenv("THREADLINE_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("THREADLINE_HOME", value)

    assert Home().path == Path("~/.threadline").expanduser()
    assert Home().path.is_absolute()


def test_a_relative_home_and_a_tilde_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home stays the same when the process changes its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert Home(Path("here")).path == tmp_path / "here"
    assert Home(Path("~/there")).path == Path("~/there").expanduser()


def test_naming_a_home_touches_nothing(tmp_path: Path) -> None:
    """Only `ensure` makes it."""
    home = Home(tmp_path / "a" / "b")

    assert not home.path.exists()
    assert home.ensure() == home
    assert home.path.is_dir()
    assert home.ensure() == home


@posix
def test_a_new_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        home = Home(tmp_path / "home").ensure()
        home.web_token()
    finally:
        os.umask(before)

    assert mode(home.path) == 0o700
    assert mode(home.web_token_file) == 0o600


@posix
@pytest.mark.parametrize(("name", "files"), [("home", []), (".threadline", ["config.yaml"]), ("home", ["state.db"])])
def test_an_open_home_is_closed(tmp_path: Path, name: str, files: list[str]) -> None:
    """A home that was made by hand is closed to others when it is used."""
    folder = tmp_path / name
    folder.mkdir()
    folder.chmod(0o755)
    for file in files:
        (folder / file).touch()

    Home(folder).ensure()

    assert mode(folder) == 0o700


@posix
def test_a_folder_of_others_is_left_as_it_is(tmp_path: Path) -> None:
    """Whoever points the home at a shared folder does not lock it for everybody."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "something").touch()

    Home(folder).ensure()

    assert mode(folder) == 0o755


def test_a_file_in_the_place_of_the_home_is_told(tmp_path: Path) -> None:
    """One sentence that says what to do."""
    (tmp_path / "home").touch()

    with pytest.raises(ConfigError, match=r"is a file; the home must be a folder\. Choose another home"):
        Home(tmp_path / "home").ensure()


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file on the way to it."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"cannot be made \(Not a directory\)\. Choose another home"):
        Home(tmp_path / "file" / "home").ensure()


def test_the_web_token_is_made_once_and_kept(tmp_path: Path) -> None:
    """Every later call, also of another process, gives the same."""
    token = Home(tmp_path).web_token()

    assert len(token) >= 32
    assert Home(tmp_path).web_token() == token
    assert Home(tmp_path / "other").web_token() != token
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "web-token"]


def test_all_who_ask_at_once_get_the_same_web_token(tmp_path: Path) -> None:
    """Gateways and terminals that start together agree on one token."""
    homes = [tmp_path / str(number) for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        for home in homes:
            tokens = set(pool.map(lambda folder: Home(folder).web_token(), [home] * 8))

            assert len(tokens) == 1
            assert [path.name for path in home.iterdir()] == ["web-token"]


def test_processes_agree_on_the_web_token(tmp_path: Path) -> None:
    """The same between processes."""
    script = "from config import Home; print(Home().web_token())"
    environ = os.environ | {"THREADLINE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environ, text=True)  # noqa: S603
        for _ in range(4)
    ]

    tokens = {process.communicate(timeout=30)[0].strip() for process in running}

    assert tokens == {Home(tmp_path).web_token()}


@posix
def test_a_web_token_that_others_can_read_is_closed(tmp_path: Path) -> None:
    """A file copied from a backup may have lost its mode."""
    home = Home(tmp_path)
    token = home.web_token()
    home.web_token_file.chmod(0o644)

    assert home.web_token() == token
    assert mode(home.web_token_file) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"has spaces in it, many", b"\xff\xfe" * 20])
def test_a_spoilt_web_token_is_told(tmp_path: Path, content: bytes) -> None:
    """It is not replaced by itself: somebody may be using it."""
    (tmp_path / "web-token").write_bytes(content)

    with pytest.raises(ConfigError, match=r"holds no usable token; expected at least 16 .* Delete the file"):
        Home(tmp_path).web_token()

    assert (tmp_path / "web-token").read_bytes() == content


def test_a_private_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """What cannot be encoded leaves neither the file nor a draft behind, and an existing file as it was."""
    home = Home(tmp_path)
    home.write_private(home.config_file, "first")

    with pytest.raises(FileExistsError):
        home.write_private(home.config_file, "second")
    with pytest.raises(UnicodeEncodeError):
        home.write_private(home.config_file, "\ud800", replace=True)

    assert home.config_file.read_text() == "first"
    home.write_private(home.config_file, "third", replace=True)
    assert home.config_file.read_text() == "third"
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
