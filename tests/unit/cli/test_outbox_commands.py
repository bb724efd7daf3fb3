"""`threadline outbox`: what a person sees of what is to be delivered, and what they can do about it."""

from __future__ import annotations

import json

from session_store import NewInbox, NewOutbox, PlaceRef, SessionDB
from tests.unit.cli.conftest import Fill, Threadline

MINE = PlaceRef("telegram", "main", "dm", "42", name="Ann")
THEIRS = PlaceRef("telegram", "main", "dm", "43")


async def some(db: SessionDB) -> None:
    """1 waits with an error, 2 has failed, 3 is another person's, 4 was sent."""
    await db.create_session("mine", "telegram", owner="owner")
    await db.create_session("theirs", "telegram", owner="somebody")
    mine = [NewOutbox(MINE, "answer", "an answer\nof two lines"), NewOutbox(MINE, "answer", "the second")]
    ids = await db.outbox.add(mine, session_id="mine")
    ids += await db.outbox.add([NewOutbox(THEIRS, "answer", "a secret")], session_id="theirs")
    ids += await db.outbox.add([NewOutbox(MINE, "answer", "long ago")], session_id="mine")
    assert ids == [1, 2, 3, 4]
    holder = await db.processes.register("gateway")
    for outbox_id in (1, 2, 4):
        assert await db.outbox.begin(outbox_id, holder)
    await db.outbox.retry(1, 3600.0, "Too many requests.")
    await db.outbox.fail(2, "The chat is \x1b[31mgone.")
    await db.outbox.sent(4, "900")


def test_the_list_tells_where_when_why_and_what(threadline: Threadline, fill: Fill) -> None:
    """Everything but other people's words, and nothing that acts on the terminal."""
    fill(some)
    done = threadline("outbox", "list")
    assert done.exit_code == 0
    assert "1  waiting  telegram/main 42 (Ann), " in done.stdout
    assert "1 attempt, next " in done.stdout
    assert "an answer of two lines" in done.stdout
    assert "Too many requests." in done.stdout
    assert "2  failed" in done.stdout
    assert "\x1b" not in done.stdout
    assert "3  waiting  telegram/main 43" in done.stdout
    assert "secret" not in done.stdout
    assert "long ago" not in done.stdout


def test_the_json_list_has_the_same_and_the_counts(threadline: Threadline, fill: Fill) -> None:
    """States can be chosen; what is hidden is null."""
    fill(some)
    report = json.loads(threadline("outbox", "list", "--json", "--state", "waiting", "--state", "sent").stdout)
    assert [(part["id"], part["state"], part["text"]) for part in report["parts"]] == [
        (1, "waiting", "an answer of two lines"),
        (3, "waiting", None),
        (4, "sent", "long ago"),
    ]
    assert report["counts"] == {"waiting": 2, "failed": 1, "sent": 1}
    assert "2 parts more" in threadline("outbox", "list", "--limit", "1").stdout


def test_replies_to_commands_show_their_words_to_who_gave_them(threadline: Threadline, fill: Fill) -> None:
    """They belong to no session; the row of the command tells whose they are."""

    async def replies(db: SessionDB) -> None:
        for number, (place, person) in enumerate(((MINE, "owner"), (THEIRS, "somebody"))):
            row = NewInbox(place, f"m:{number}", "command", f"lane {number}", 1.0, {}, {}, person_id=person)
            accepted = await db.inbox.accept(row)
            await db.inbox.complete(accepted.inbox_id, outbox=[NewOutbox(place, "notice", f"for {person}")])

    fill(replies)
    parts = json.loads(threadline("outbox", "list", "--json").stdout)["parts"]
    assert [part["text"] for part in parts] == ["for owner", None]


def test_an_empty_list_says_so_and_a_state_that_is_none_is_refused(threadline: Threadline) -> None:
    """Wrong usage is exit code 2."""
    assert "Nothing is waiting" in threadline("outbox", "list").stdout
    refused = threadline("outbox", "list", "--state", "wating")
    assert (refused.exit_code, "wating" in refused.stderr) == (2, True)


def test_a_failed_part_is_tried_again(threadline: Threadline, fill: Fill) -> None:
    """What cannot be is said, and the rest is done all the same."""
    fill(some)
    done = threadline("outbox", "retry", "2", "4", "99")
    assert done.exit_code == 1
    assert "2 waits to be sent again." in done.stdout
    assert "4 is left as it is: it was sent." in done.stderr
    assert "There is no part 99." in done.stderr
    parts = json.loads(threadline("outbox", "list", "--json").stdout)["parts"]
    assert {part["id"]: part["state"] for part in parts} == {1: "waiting", 2: "waiting", 3: "waiting"}


def test_dropping_needs_a_yes(threadline: Threadline, fill: Fill) -> None:
    """Where nobody can be asked nothing happens without --yes."""
    fill(some)
    refused = threadline("outbox", "drop", "1", said="y\n")
    assert (refused.exit_code, "--yes" in refused.stderr) == (1, True)
    done = threadline("outbox", "drop", "1", "2", "--yes")
    assert (done.exit_code, done.stdout) == (0, "1 is dropped.\n2 is dropped.\n")
    again = threadline("outbox", "drop", "1", "--yes")
    assert (again.exit_code, "dropped before" in again.stderr) == (1, True)
    assert json.loads(threadline("outbox", "list", "--json").stdout)["counts"]["dropped"] == 2
