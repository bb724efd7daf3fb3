"""`threadline sessions rename|delete|prune`: naming and clearing, never by mistake."""

from __future__ import annotations

import json
import time

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline

DAY = 86_400.0


async def aged(db: SessionDB, session_id: str, days: float, *, owner: str = "owner", ended: bool = True) -> None:
    """Make a session whose last message is so many days old."""
    then = time.time() - days * DAY
    await db.create_session(session_id, "cli", owner=owner, started_at=then, title=f"About {session_id}")
    await db.append_message(session_id, "user", f"said in {session_id}", timestamp=then)
    if ended:
        await db.end_session(session_id, "user_exit")


async def four(db: SessionDB) -> None:
    """One old session of the owner, one of somebody else, one never ended, one recent."""
    await aged(db, "mine", 100)
    await aged(db, "theirs", 100, owner="p2")
    await aged(db, "open", 100, ended=False)
    await aged(db, "recent", 1)


def titles(threadline: Threadline) -> dict[str, str | None]:
    """Title by id."""
    return {row["id"]: row["title"] for row in json.loads(threadline("sessions", "list", "--json").stdout)}


def test_rename_gives_and_takes_a_title(threadline: Threadline, fill: Fill) -> None:
    """Cleaned as titles are; '' removes it."""
    fill(four)

    done = threadline("sessions", "rename", "mine", "  A \x1b[31m new\u202e name ")
    assert done.stdout == "mine is now called “A [31m new name”.\n"
    assert titles(threadline)["mine"] == "A [31m new name"

    assert threadline("sessions", "rename", "mine", "").stdout == "mine has no title now.\n"
    assert titles(threadline)["mine"] is None


def test_a_title_that_is_taken_or_too_long_is_refused(threadline: Threadline, fill: Fill) -> None:
    """In a sentence; the old one stays."""
    fill(four)

    taken = threadline("sessions", "rename", "mine", "about RECENT")
    long = threadline("sessions", "rename", "mine", "x" * 101)

    assert (taken.exit_code, long.exit_code) == (1, 2)
    assert "recent" in taken.stderr
    assert "100" in long.stderr
    assert titles(threadline)["mine"] == "About mine"


def test_delete_asks_and_then_removes_the_whole_conversation(threadline: Threadline, fill: Fill) -> None:
    """Where nobody can be asked it needs --yes."""
    fill(four)

    refused = threadline("sessions", "delete", "mine", said="")
    assert refused.exit_code == 1
    assert refused.stderr.endswith("Nobody can be asked here; use --yes.\n")
    assert "Delete mine “About mine” with 1 message for good?" in refused.stderr
    assert "mine" in titles(threadline)

    assert threadline("sessions", "delete", "mine", "-y").stdout == "mine “About mine” deleted.\n"
    assert "mine" not in titles(threadline)


def test_a_dry_run_shows_what_would_go_and_what_stays(threadline: Threadline, fill: Fill) -> None:
    """Titles and previews of the owner's sessions only; of other people's the number."""
    fill(four)

    done = threadline("sessions", "prune", "--dry-run")

    assert done.exit_code == 0
    assert "About mine" in done.stdout
    assert "1 conversation of other people or rooms\n" in done.stdout
    assert done.stdout.endswith("2 ended conversations without activity for 90 days. As old but left: 1 never ended.\n")
    for private in ("theirs", "About theirs", "said in theirs"):
        assert private not in done.stdout
    assert set(titles(threadline)) == {"mine", "open", "recent"}


def test_prune_deletes_what_the_dry_run_showed(threadline: Threadline, fill: Fill) -> None:
    """Ended and old enough; by whomever."""
    fill(four)

    done = threadline("sessions", "prune", "--older-than", "50", "--yes")

    assert done.stdout.endswith("2 conversations deleted.\n")
    assert set(titles(threadline)) == {"open", "recent"}
    assert json.loads(threadline("sessions", "stats", "--json").stdout)["sessions"] == 2


def test_prune_without_a_person_to_ask_does_nothing(threadline: Threadline, fill: Fill) -> None:
    """It says how."""
    fill(four)

    done = threadline("sessions", "prune", said="")

    assert done.exit_code == 1
    assert "use --yes" in done.stderr
    assert "mine" in titles(threadline)


def test_prune_of_nothing_is_fine(threadline: Threadline, fill: Fill) -> None:
    """Exit code 0, nothing asked; what is old and stays is told."""
    fill(four)

    done = threadline("sessions", "prune", "--source", "telegram")
    assert (done.exit_code, done.stdout) == (0, "0 ended conversations without activity for 90 days.\n")

    assert threadline("sessions", "prune", "--older-than", "1000").exit_code == 0
