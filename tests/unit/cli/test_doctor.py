"""`threadline doctor`: what it finds, what it advises, and that it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline
from tests.unit.store_engine.histories import make_history


def findings(threadline: Threadline) -> dict[str, tuple[str, str]]:
    """What was found, by what it is about."""
    report = json.loads(threadline("doctor", "--json").stdout)
    return {finding["about"]: (finding["state"], finding["words"]) for finding in report["findings"]}


def test_an_empty_home_is_well_and_stays_empty(threadline: Threadline, home: Path) -> None:
    """Nothing is made by looking."""
    done = threadline("doctor")

    assert done.exit_code == 0
    assert "There is no store yet" in done.stdout
    assert list(home.iterdir()) == []


def test_a_store_in_use_is_looked_through(threadline: Threadline, fill: Fill) -> None:
    """Whole, with its index, and nothing stuck."""

    async def talk(db: SessionDB) -> None:
        await db.create_session("s1", "cli")
        await db.append_message("s1", "user", "hello")

    fill(talk)
    found = findings(threadline)

    assert found["store"][0] == found["search index"][0] == found["queues"][0] == "ok"
    assert "looked through and whole" in found["store"][1]


def test_a_damaged_store_is_told(threadline: Threadline, fill: Fill, home: Path) -> None:
    """Exit code 1, and what to do."""

    async def talk(db: SessionDB) -> None:
        await db.create_session("s1", "cli")
        for number in range(300):
            await db.append_message("s1", "user", f"hello {number} " + "x" * 200)

    fill(talk)
    whole = bytearray((home / "state.db").read_bytes())
    middle = len(whole) // 8192 * 4096
    whole[middle : middle + 40_960] = bytes(40_960)
    (home / "state.db").write_bytes(whole)

    done = threadline("doctor")

    assert done.exit_code == 1
    assert "restore a backup" in done.stdout.lower()


def test_wrong_settings_and_open_permissions_are_told(threadline: Threadline, home: Path) -> None:
    """A failure for the one, a warning for the other."""
    (home / "config.yaml").write_text("agent:\n  kind: oracle\n")
    home.chmod(0o755)
    found = findings(threadline)

    assert found["settings"][0] == "failed"
    assert "config.yaml" in found["settings"][1]
    assert found["home"] == ("warning", f"{home} is open to other users. Close it: chmod 700 {home}")
    assert threadline("doctor").exit_code == 1


def test_the_dry_run_says_what_taking_over_would_do(threadline: Threadline, home: Path) -> None:
    """Beforehand, and without doing it."""
    make_history(home / "state.db", 10)
    before = (home / "state.db").read_bytes()

    done = threadline("doctor", "--dry-run-migration")

    assert done.exit_code == 0
    assert "schema version 10 of another tool, 6 sessions, 8 messages" in done.stdout
    assert f"a whole copy is put into {home / 'state.db.v10-backup'}" in done.stdout
    assert "(messages_fts and messages_fts_trigram)" in done.stdout
    assert findings(threadline)["store"][0] == "warning"
    assert (home / "state.db").read_bytes() == before
    assert [entry.name for entry in home.iterdir()] == ["state.db"]


@pytest.mark.parametrize("arguments", [("doctor",), ("doctor", "--dry-run-migration")])
def test_a_file_that_is_refused_is_told(threadline: Threadline, home: Path, arguments: tuple[str, ...]) -> None:
    """In the sentence that opening it would give."""
    make_history(home / "state.db", 11, number=21)

    done = threadline(*arguments)

    assert done.exit_code == 1
    assert "newer schema (version 21" in done.stdout


def test_nothing_to_migrate_is_said(threadline: Threadline) -> None:
    """A new home."""
    assert threadline("doctor", "--dry-run-migration").stdout == "Nothing would be migrated.\n"
