"""`threadline sessions repair --search`, and what short commands do for a broken index on their way."""

from __future__ import annotations

import json

from session_store import SessionDB, index
from tests.unit.cli.conftest import Fill, Threadline

MESSAGES = 300


async def broken(db: SessionDB) -> None:
    """A session of the owner, and an index that cannot be used."""
    await db.create_session("s", "cli", owner="owner")
    for number in range(MESSAGES):
        await db.append_message("s", "user", f"the word {number}")
    await db._store.write(lambda tx: index.mark_broken(tx, "a test"))  # noqa: SLF001 - as the writer does


def test_the_index_is_built_anew(threadline: Threadline, fill: Fill) -> None:
    """How many messages it holds is said; afterwards it is searched again."""
    fill(broken)

    done = threadline("sessions", "repair", "--search")

    assert (done.exit_code, done.stdout) == (0, "The search index is new; it holds 300 messages.\n")
    (hit,) = json.loads(threadline("search", "word", "299", "--json").stdout)
    assert hit["approximate"] is False


def test_what_to_repair_has_to_be_said(threadline: Threadline, fill: Fill) -> None:
    """Nothing is done otherwise."""
    fill(broken)

    done = threadline("sessions", "repair")

    assert done.exit_code == 2
    assert "--search" in done.stderr


def test_short_commands_alone_mend_a_broken_index(threadline: Threadline, fill: Fill) -> None:
    """Each does a little as it ends, and the totals say how it stands."""
    fill(broken)

    seen = [threadline("sessions", "stats").stdout for _ in range(6)]

    assert "Search index: ok\n" in seen[-1]
