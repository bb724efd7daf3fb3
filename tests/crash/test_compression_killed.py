"""kill -9 while a conversation is compressed, taken back or branched: it has happened or it has not."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest

from session_store import SessionDB
from tests.conftest import Elsewhere

CHILD = Path(__file__).with_name("compress_child.py")
ROOT = Path(__file__).parents[2]


async def killed(home: Path, session_id: str, command: str, step: str, after: float | None = None) -> str:
    """Work a command in a process that is killed at a step, or so many seconds after it was ready; what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        str(home),
        session_id,
        command,
        step,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    said = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    if after is not None:
        await asyncio.sleep(after)
        if process.returncode is None:
            process.kill()
    said += (await asyncio.wait_for(process.stdout.read(), 60)).decode()
    await process.wait()
    return said


async def told(home: Path) -> str:
    """A conversation of three exchanges; returns its session."""
    async with SessionDB(home / "state.db") as db:
        await db.people.sync_config({}, {})
        await db.create_session("s", "cli", owner="owner", title="X")
        for text in ("one", "two", "three"):
            await db.append_message("s", "user", text)
            await db.append_message("s", "assistant", f"re: {text}")
    return "s"


async def seen(db: SessionDB) -> list[str]:
    """What is seen of the conversation of `s`, a summary as `summary`."""
    view = await db.context_view("s")
    return (["summary"] if view.summary is not None else []) + [str(row["content"]) for row in view.rows]


WHOLE = ["one", "re: one", "two", "re: two", "three", "re: three"]
#: What is seen afterwards if it has happened.
AFTER = {"/compress": ["summary", "three", "re: three"], "/undo": WHOLE[:4], "/branch": WHOLE}
STEPS = ["held", "summed", "writing", "written"]
#: Whether it has happened after a kill at a step; in the middle of writing either may be.
EXPECTED = {"held": False, "summed": False, "written": True}


@pytest.mark.parametrize(
    ("command", "step"),
    [*(("/compress", step) for step in STEPS), ("/undo", "writing"), ("/branch", "writing")],
)
async def test_killed_at_any_step_it_has_happened_or_it_has_not(
    home: Path, elsewhere: Elsewhere, command: str, step: str
) -> None:
    """And it can be done (again) at once: nobody waits for the dead process."""
    session_id = await told(home)
    assert await killed(home, session_id, command, step) == "ready\n"
    async with SessionDB(home / "state.db") as db:
        _check(elsewhere, await seen(db), command, step)
        before = len(await db.list_sessions())
    assert "done" in await killed(home, session_id, command, "none")
    async with SessionDB(home / "state.db") as db:
        assert len(await db.list_sessions()) == before + (command == "/branch")
    assert elsewhere("SELECT holder FROM leases") == [{"holder": None}]


def _check(elsewhere: Elsewhere, now: list[str], command: str, step: str) -> None:
    """Whole, or as it is afterwards; sessions and counters fit; nothing was lost."""
    children = elsewhere("SELECT id, kind, parent_session_id FROM sessions WHERE id <> 's'")
    ended = elsewhere("SELECT end_reason FROM sessions WHERE id = 's'")[0]["end_reason"]
    done = bool(children) if command != "/undo" else now != WHOLE
    if step in EXPECTED:
        assert done == EXPECTED[step]
    assert now == (AFTER[command] if done else WHOLE)
    assert (ended == "compression") == (done and command == "/compress")
    assert len(children) == (done and command != "/undo")
    kept = elsewhere("SELECT content FROM messages WHERE session_id = 's' ORDER BY id")
    assert [row["content"] for row in kept] == WHOLE
    for row in elsewhere("SELECT id, message_count FROM sessions"):
        there = elsewhere("SELECT COUNT(*) AS n FROM messages WHERE session_id = ? AND rewound = 0", row["id"])
        assert row["message_count"] == there[0]["n"]
    assert elsewhere("PRAGMA foreign_key_check") == []


async def _random(folder: Path, elsewhere: Elsewhere, times: int, chance: random.Random) -> set[bool]:
    outcomes: set[bool] = set()
    for number in range(times):
        home = folder / str(number)
        home.mkdir(mode=0o700)
        command = chance.choice(list(AFTER))
        session_id = await told(home)
        await killed(home, session_id, command, "none", chance.uniform(0.0, 0.08))

        def ask(sql: str, *parameters: object, path: Path = home / "state.db") -> list[dict[str, object]]:
            return elsewhere(sql, *parameters, path=path)

        async with SessionDB(home / "state.db") as db:
            now = await seen(db)
        _check(ask, now, command, "none")
        assert ask("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        outcomes.add(now != WHOLE or len(ask("SELECT id FROM sessions")) > 1)
    return outcomes


@pytest.mark.soak
async def test_two_hundred_kills_at_random_instants(tmp_path: Path, elsewhere: Elsewhere) -> None:
    """The same at any instant; both outcomes are seen."""
    outcomes = await _random(tmp_path, elsewhere, 200, random.Random(7))  # noqa: S311 - repeatable, no secret
    assert outcomes == {True, False}
