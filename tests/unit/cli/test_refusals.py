"""Homes and stores that cannot be used: one sentence, exit code 1, nothing changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline

CALLS = [("sessions", "list"), ("chat", "-q", "hello"), ("gateway", "status"), ("pair", "telegram")]


def everything(home: Path) -> dict[str, bytes]:
    """All files below the home, to see that nothing changed."""
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def refused(threadline: Threadline, home: Path, *arguments: str) -> str:
    """Call, check that it was refused in one sentence and changed nothing; returns the sentence."""
    before = everything(home)

    done = threadline(*arguments)

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert everything(home) == before
    return done.stderr


@pytest.mark.parametrize("arguments", CALLS)
def test_a_database_of_somebody_else(threadline: Threadline, home: Path, arguments: tuple[str, ...]) -> None:
    """It is named."""
    with sqlite3.connect(home / "state.db") as theirs:
        theirs.execute("CREATE TABLE notes (text)")
    theirs.close()

    assert "is not a Threadline database" in refused(threadline, home, *arguments)


def test_a_file_that_is_no_database(threadline: Threadline, home: Path) -> None:
    """Whatever it is."""
    (home / "state.db").write_bytes(b"just some text, long enough to be looked at as a database header " * 10)

    assert "is not a Threadline database" in refused(threadline, home, "sessions", "list")


@pytest.mark.parametrize("arguments", CALLS)
def test_a_newer_database(threadline: Threadline, home: Path, fill: Fill, arguments: tuple[str, ...]) -> None:
    """Upgrade is what helps."""

    async def nothing(_db: SessionDB) -> None:
        pass

    fill(nothing)
    with sqlite3.connect(home / "state.db") as newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()

    assert "Upgrade this one" in refused(threadline, home, *arguments)


def test_a_network_file_system(threadline: Threadline, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's locks do not work there."""
    monkeypatch.setattr("session_store.files.file_system_of", lambda *_: "nfs")

    assert "network or shared file system (nfs)" in refused(threadline, home, "sessions", "list")


def test_a_home_that_cannot_be_written(threadline: Threadline, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is named."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and real(path, mode))

    sentence = refused(threadline, home, "sessions", "list")

    assert sentence == f"{home} cannot be written. Check the permissions of the home folder.\n"


def test_a_database_that_cannot_be_read(threadline: Threadline, home: Path) -> None:
    """A folder in its place."""
    (home / "state.db").mkdir()

    assert "state.db is not a plain file" in refused(threadline, home, "sessions", "list")


def test_a_home_that_is_a_file(threadline: Threadline, home: Path) -> None:
    """Another one must be chosen."""
    home.rmdir()
    home.write_text("in the way", encoding="utf-8")

    done = threadline("sessions", "list")

    assert done.exit_code == 1
    assert "is a file; the home must be a folder" in done.stderr


def test_wrong_settings_stop_the_chat_and_nothing_that_needs_none(threadline: Threadline, home: Path) -> None:
    """What was said stays readable while the settings are mended."""
    (home / "config.yaml").write_text("bussy: queue\n", encoding="utf-8")

    assert "bussy is not a known key; did you mean busy?" in refused(threadline, home, "chat", "-q", "hello")
    assert threadline("sessions", "list").exit_code == 0
    assert "No gateway is running" in threadline("gateway", "status").stdout
