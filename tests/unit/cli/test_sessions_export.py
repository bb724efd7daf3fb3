"""`threadline sessions export`: JSON lines, whole or not at all, for the owner alone."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from session_store import SessionDB
from tests.unit.cli.conftest import Fill, Threadline


async def three(db: SessionDB) -> None:
    """Two sessions of the owner, one of somebody else."""
    for session_id, source, owner in (("a1", "cli", "owner"), ("b2", "web", "owner"), ("c3", "cli", "p2")):
        await db.create_session(session_id, source, owner=owner)
        await db.append_message(session_id, "user", f"said in {session_id}\nsecond line \u2028 \x85 日本")


def lines(text: str) -> list[dict[str, Any]]:
    """The objects of JSON lines, however a reader splits lines."""
    return [json.loads(line) for line in text.splitlines()]


def test_all_sessions_of_the_owner_go_to_stdout(threadline: Threadline, fill: Fill) -> None:
    """One a line, with their messages; nothing of other people."""
    fill(three)

    done = threadline("sessions", "export", "-")

    assert (done.exit_code, done.stderr) == (0, "")
    assert [(row["id"], row["messages"][0]["content"][:10]) for row in lines(done.stdout)] == [
        ("a1", "said in a1"),
        ("b2", "said in b2"),
    ]


def test_a_source_or_a_session_can_be_chosen(threadline: Threadline, fill: Fill) -> None:
    """By the beginning of its id too."""
    fill(three)

    assert [row["id"] for row in lines(threadline("sessions", "export", "-", "--source", "web").stdout)] == ["b2"]
    assert [row["id"] for row in lines(threadline("sessions", "export", "-", "--session", "a").stdout)] == ["a1"]


def test_a_file_is_private_and_whole(threadline: Threadline, fill: Fill, tmp_path: Path) -> None:
    """0600, and no draft stays beside it."""
    fill(three)
    target = tmp_path / "out" / "all.jsonl"
    target.parent.mkdir()

    done = threadline("sessions", "export", str(target))

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"2 sessions written to {target}.\n"
    assert len(lines(target.read_text(encoding="utf-8"))) == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(target.parent.iterdir()) == [target]


def test_a_file_that_is_there_is_replaced_only_when_asked(threadline: Threadline, fill: Fill, tmp_path: Path) -> None:
    """With --force, and then at once."""
    fill(three)
    target = tmp_path / "all.jsonl"
    target.write_text("precious", encoding="utf-8")

    refused = threadline("sessions", "export", str(target))

    assert refused.exit_code == 1
    assert refused.stderr == f"{target} exists already. Choose another name or use --force.\n"
    assert target.read_text(encoding="utf-8") == "precious"
    assert threadline("sessions", "export", str(target), "--force").exit_code == 0
    assert len(lines(target.read_text(encoding="utf-8"))) == 2


def test_an_unknown_session_leaves_nothing_behind(threadline: Threadline, fill: Fill, tmp_path: Path) -> None:
    """The file is not even begun."""
    fill(three)

    done = threadline("sessions", "export", str(tmp_path / "one.jsonl"), "--session", "zzz")

    assert done.exit_code == 1
    assert not (tmp_path / "one.jsonl").exists()


@pytest.mark.parametrize("name", ["missing/all.jsonl", "folder"])
def test_a_place_that_cannot_be_written_is_a_sentence(
    threadline: Threadline, fill: Fill, tmp_path: Path, name: str
) -> None:
    """A missing folder, a folder instead of a file."""
    fill(three)
    (tmp_path / "folder").mkdir()

    done = threadline("sessions", "export", str(tmp_path / name), "--force")

    assert done.exit_code == 1
    assert done.stderr.startswith(f"{tmp_path / name} cannot be written: ")


def test_what_is_no_file_is_written_to_and_never_replaced(threadline: Threadline, fill: Fill, tmp_path: Path) -> None:
    """A named pipe stays one."""
    fill(three)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    done = threadline("sessions", "export", str(pipe))

    assert done.exit_code == 0
    assert len(lines(os.read(reader, 65_536).decode())) == 2
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_secrets_are_left_out_when_that_is_asked_for(threadline: Threadline, fill: Fill, home: Path) -> None:
    """`redact: export`: the store keeps what was said, the export does not tell it."""
    secret = "ghp_" + "a1B2" * 9

    async def talk(db: SessionDB) -> None:
        await db.create_session("20260101_000000_aaaaaa", "cli", owner="owner")
        await db.append_message("20260101_000000_aaaaaa", "user", f"the deploy key is {secret}")

    fill(talk)
    assert secret in threadline("sessions", "export", "-").stdout

    (home / "config.yaml").write_text("redact: export\n")
    redacted = threadline("sessions", "export", "-").stdout

    assert secret not in redacted
    assert "the deploy key is [redacted" in redacted
