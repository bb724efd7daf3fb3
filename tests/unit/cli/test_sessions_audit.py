"""`threadline sessions show --audit`, and --all: who did what, and what the owner sees only when asking for it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from session_store import (
    ClaimRequest,
    NewAttachment,
    NewInbox,
    NewMessage,
    PlaceRef,
    SessionDB,
)
from tests.unit.cli.conftest import Fill, Threadline

GROUP = PlaceRef("telegram", "main", "group", "-7", "17", "Ops")
ARGUMENTS = '{"query": "' + "zebra " * 60 + '"}'
RESULT = json.dumps({"hits": ["the zebra " * 60]})


async def turn(db: SessionDB, number: int, text: str) -> Any:
    """A message in the group is claimed; returns its fence."""
    holder = await db.processes.register("gateway")
    accepted = await db.inbox.accept(
        NewInbox(
            place=GROUP,
            dedupe_key=f"m:-7:{number}",
            kind="message",
            lane="group",
            received_at=time.time(),
            payload={"text": text, "message_id": str(number)},
            sender={"user_id": "43", "name": "Bo", "realm": "", "is_bot": False},
            session_key="group",
            person_id="p1",
        )
    )
    claim = await db.turns.claim(
        ClaimRequest(
            inbox_ids=[accepted.inbox_id],
            turn_id=f"t{number}",
            holder=holder,
            lane="group",
            place=GROUP,
            source="telegram",
            owner="owner",
            new_session_id="s1",
            content=text,
            session_key="group",
            person_id="p1",
            attachments=[NewAttachment("plan.pdf", "file", problem="too large")],
        ),
        lambda _session, _at: None,
    )
    return claim.fence


async def busy_session(db: SessionDB) -> None:
    """A turn with a call, one that somebody stopped, and one that was taken back."""
    fence = await turn(db, 1, "where is the zebra?")
    call = {"id": "c1", "type": "function", "function": {"name": "session_search", "arguments": ARGUMENTS}}
    await db.turns.step(fence, [NewMessage("assistant", None, tool_calls=[call], op_id="o1")])
    await db.turns.step(fence, [NewMessage("tool", RESULT, tool_call_id="c1", tool_name="session_search", op_id="o2")])
    await db.turns.finish(fence, NewMessage("assistant", "In the \x1b[31mattic", op_id="o3"), [])
    fence = await turn(db, 2, "and the lion?")
    await db.turns.interrupt(fence, "stopped", [])


def change(fill: Fill, elsewhere: Any) -> None:
    """The session, with one message changed by its author and one taken back."""
    fill(busy_session)
    elsewhere("INSERT INTO people VALUES ('p1', 'bo', 'Bo', 1)")
    elsewhere("INSERT INTO message_versions VALUES (1, 1, 'edit', 'where is the horse?', 1, 1790000000)")
    elsewhere("UPDATE messages SET rewound = 1 WHERE content = 'and the lion?'")


def test_everything_that_happened_is_told(threadline: Threadline, fill: Fill, elsewhere: Any) -> None:
    """Whole arguments and results, what was taken back or stopped, former words, ids, places and files."""
    change(fill, elsewhere)

    text = threadline("sessions", "show", "s1", "--audit").stdout

    assert "Session s1 of owner, begun " in text
    assert "bo (id 43) said, on Telegram, group -7 “Ops”, thread 17" in text
    assert "changed by its author; before: where is the horse?" in text
    assert f"calls session_search as c1 with {ARGUMENTS}" in text
    assert f"session_search returned for c1\n    {RESULT}" in text
    assert "the agent answered bo, on Telegram, group -7" in text
    assert "file plan.pdf (file), not kept: too large" in text
    assert "(taken back)" in text
    assert "Turn t2: was stopped, stopped." in text
    assert "\x1b" not in text


def test_as_json_it_is_one_object(threadline: Threadline, fill: Fill, elsewhere: Any) -> None:
    """With every column of every message."""
    change(fill, elsewhere)

    told = json.loads(threadline("sessions", "show", "s1", "--audit", "--json").stdout)

    assert set(told) == {"segments", "places"}
    (segment,) = told["segments"]
    assert segment["session"]["id"] == "s1"
    first, called, result, answer, second = segment["messages"]
    assert (first["who"], first["person"], first["user_id"]) == ("bo", "p1", "43")
    assert list(first["place"].values()) == ["telegram", "main", "group", "-7", "17", "Ops"]
    assert first["changes"][0]["before"] == "where is the horse?"
    assert called["message"]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    assert result["message"]["content"] == RESULT
    assert answer["turn"]["state"] == "done"
    assert (second["turn"]["state"], second["message"]["rewound"]) == ("interrupted", 1)
    assert told["places"][0]["how"] == "born"


@pytest.fixture
def strangers(fill: Fill) -> None:
    """One session of the owner, one of somebody else, one of nobody."""

    async def work(db: SessionDB) -> None:
        for owner, title in (("owner", "My own"), ("p2", "Salary"), (None, "Library")):
            await db.create_session(f"of {owner}", "cli", owner=owner, title=title)
            await db.append_message(f"of {owner}", "user", f"zebra of {title}")

    fill(work)


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    "command",
    [
        ("sessions", "list"),
        ("sessions", "list", "--json"),
        ("sessions", "search", "zebra"),
        ("sessions", "search", "zebra", "--json"),
        ("sessions", "export", "-"),
    ],
)
def test_the_owner_sees_all_only_when_asking_for_it(threadline: Threadline, command: tuple[str, ...]) -> None:
    """Without --all neither what is somebody else's nor what is nobody's is there."""
    plain = threadline(*command).stdout
    whole = threadline(*command, "--all").stdout
    assert "of owner" in plain
    for foreign in ("of p2", "Salary", "of None", "Library"):
        assert foreign not in plain
    assert "of p2" in whole
    assert "of None" in whole


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("name", ["of p2", "of p", "Salary", "SAL", "of None", "Library"])
@pytest.mark.parametrize("more", [(), ("--json",), ("--audit",), ("--audit", "--json")])
def test_what_is_not_ones_own_does_not_exist(threadline: Threadline, name: str, more: tuple[str, ...]) -> None:
    """Shown, audited, renamed, deleted, exported: the answer is that for a name that never was."""
    for command in (
        ("show", name, *more),
        ("rename", name, "x"),
        ("delete", name, "--yes"),
        ("export", "-", "--session", name),
    ):
        done = threadline("sessions", *command)
        never = threadline("sessions", *(part.replace(name, "zzz") for part in command))
        assert done.exit_code == never.exit_code == 1
        assert done.stdout == never.stdout == ""
        assert done.stderr == never.stderr.replace("zzz", name)
        assert done.stderr == f"There is no session “{name}”. `threadline sessions list` shows them.\n"
    assert threadline("sessions", "show", name, *more, "--all").exit_code == 0
