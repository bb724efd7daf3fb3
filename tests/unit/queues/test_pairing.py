"""Pairing: a code works once and for a while, its success is one whole, and guessing ends."""

from __future__ import annotations

import time

import pytest

from session_store.models import NewOutbox
from session_store.pairing import LOCK_SECONDS, MAX_FAILURES
from session_store.people import ensure_allowed
from tests.unit.queues.bench import HOME, Bench, incoming

WELCOME = NewOutbox(HOME, "notice", "Paired.")


@pytest.fixture(autouse=True)
async def owner(bench: Bench) -> None:
    """A home has an owner."""
    await bench.people.sync_config({}, {})


async def redeem(
    bench: Bench, code: int, user_id: str = "42", key: str = "m:1", display: str | None = "Ada"
) -> str | None:
    """A sender gives the right code."""
    return await bench.pairing.redeem(code, "telegram", "", user_id, display, WELCOME, key)


async def fail(bench: Bench, *keys: str, user_id: str = "42") -> float | None:
    """A sender gives wrong codes, one per message."""
    locked: float | None = None
    for key in keys:
        locked = await bench.pairing.failed("telegram", "", user_id, key)
    return locked


async def test_a_code_makes_the_sender_the_owner(bench: Bench) -> None:
    """Identity, used code, handled message and welcome are there together."""
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    assert await bench.pairing.open_codes("telegram") == [(code, "hash", None)]
    assert await redeem(bench, code) == "owner"
    assert await bench.people.person_of("telegram", "", "42") == ("owner", "pairing")
    assert await bench.pairing.open_codes("telegram") == []
    (row,) = bench.rows("SELECT id, kind, state, payload, dedupe_key FROM inbox")
    assert (row["kind"], row["state"], row["payload"], row["dedupe_key"]) == ("command", "done", None, "m:1")
    assert bench.rows("SELECT body, state, inbox_id FROM outbox") == [
        {"body": "Paired.", "state": "waiting", "inbox_id": row["id"]}
    ]
    assert not (await bench.inbox.accept(incoming("m:1"))).created


async def test_a_code_with_a_name_makes_the_sender_that_person(bench: Bench) -> None:
    """The person is made if there is none of that name; a second code adds an identity."""
    for n, user_id in enumerate(["42", "43"]):
        code = await bench.pairing.create_code("telegram", "ada", f"hash{n}", 3600.0)
        await redeem(bench, code, user_id, f"m:{n}")
    first = await bench.people.person_of("telegram", "", "42")
    second = await bench.people.person_of("telegram", "", "43")
    assert first is not None
    assert first == second
    found = await bench.people.get(first[0])
    assert found is not None
    assert (found["name"], found["display"]) == ("ada", "Ada")


async def test_a_code_works_once(bench: Bench) -> None:
    """The second sender gets nothing."""
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    await redeem(bench, code)
    before = bench.dump()
    assert await redeem(bench, code, "66", "m:2") is None
    assert bench.dump() == before


async def test_the_message_delivered_again_is_not_a_second_pairing(bench: Bench) -> None:
    """Same person, no second welcome, no second code used."""
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    other = await bench.pairing.create_code("telegram", "ada", "hash2", 3600.0)
    await redeem(bench, code)
    before = bench.dump()
    assert await redeem(bench, code) == "owner"
    assert await redeem(bench, other) == "owner"
    assert bench.dump() == before


async def test_a_code_expires(bench: Bench) -> None:
    """Afterwards it is neither offered for comparison nor redeemed."""
    bench.wall = -3601.0
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    bench.wall = 0.0
    assert await bench.pairing.open_codes("telegram") == []
    assert await redeem(bench, code) is None


async def test_a_code_is_for_one_platform(bench: Bench) -> None:
    """It is not offered elsewhere and does not work there."""
    code = await bench.pairing.create_code("discord", None, "hash", 3600.0)
    assert await bench.pairing.open_codes("telegram") == []
    assert await redeem(bench, code) is None


async def test_at_most_three_codes_are_open(bench: Bench) -> None:
    """A fourth withdraws the oldest; other platforms are not touched; the same code again is the same."""
    elsewhere = await bench.pairing.create_code("discord", None, "hash", 3600.0)
    codes = [await bench.pairing.create_code("telegram", None, f"hash{n}", 3600.0) for n in range(4)]
    assert await bench.pairing.create_code("telegram", None, "hash3", 3600.0) == codes[3]
    assert [code.id for code in await bench.pairing.open_codes("telegram")] == codes[:0:-1]
    assert [code.id for code in await bench.pairing.open_codes("discord")] == [elsewhere]
    assert await redeem(bench, codes[0]) is None


async def test_an_allowed_sender_becomes_the_person_of_the_code(bench: Bench) -> None:
    """Nobody else is left who they were; what was theirs goes along (see test_merging)."""
    was = bench.apply(lambda tx: ensure_allowed(tx, "telegram", "", "42", "Ada"))
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    assert await redeem(bench, code) == "owner"
    assert await bench.people.get(was) is None


async def test_an_identity_of_the_config_is_not_changed_by_a_code(bench: Bench) -> None:
    """The config commands; the code stays open."""
    await bench.people.sync_config({}, {"ada": {"telegram": ["42"]}})
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    assert await redeem(bench, code) is None
    assert len(await bench.pairing.open_codes("telegram")) == 1


async def test_five_failures_lock_the_sender_for_an_hour(bench: Bench) -> None:
    """Also against the right code; other senders are not locked."""
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    assert await fail(bench, "1", "2", "3", "4") is None
    assert await bench.pairing.locked_until("telegram", "", "42") is None
    until = await fail(bench, "5")
    assert until is not None
    assert LOCK_SECONDS - 60 < until - time.time() <= LOCK_SECONDS
    assert await bench.pairing.locked_until("telegram", "", "42") == until
    assert await fail(bench, "6") == until
    assert await redeem(bench, code) is None
    assert await bench.pairing.locked_until("telegram", "", "43") is None
    assert await redeem(bench, code, "43") == "owner"


async def test_a_message_delivered_again_is_not_a_second_failure(bench: Bench) -> None:
    """In whatever order the repetitions come."""
    keys = [str(n) for n in range(MAX_FAILURES - 1)]
    assert await fail(bench, *keys, *keys, *reversed(keys)) is None
    assert await fail(bench, "one more") is not None


async def test_a_lock_ends_and_counting_begins_anew(bench: Bench) -> None:
    """The messages that led to it are still known."""
    keys = [str(n) for n in range(MAX_FAILURES)]
    bench.wall = -LOCK_SECONDS - 1
    assert await fail(bench, *keys) is not None
    bench.wall = 0.0
    assert await bench.pairing.locked_until("telegram", "", "42") is None
    assert await fail(bench, *keys, "a", "b", "c", "d") is None
    assert await fail(bench, "e") is not None


async def test_success_forgives_failures(bench: Bench) -> None:
    """Who has mistyped before is not closer to a lock afterwards."""
    code = await bench.pairing.create_code("telegram", None, "hash", 3600.0)
    await fail(bench, "1", "2", "3", "4")
    assert await redeem(bench, code) == "owner"
    assert await fail(bench, "5") is None


async def test_failures_of_yesterday_are_forgotten(bench: Bench) -> None:
    """They neither count on nor fill the table."""
    bench.wall = -90_000.0
    await fail(bench, "1", "2", "3", "4")
    await fail(bench, "1", user_id="43")
    bench.wall = 0.0
    assert await fail(bench, "5") is None
    assert bench.rows("SELECT user_id FROM pairing_failures") == [{"user_id": "42"}]


async def test_a_crowd_of_strangers_does_not_fill_the_store(bench: Bench) -> None:
    """The longest silent of more than ten thousand senders are forgotten."""
    bench.apply(
        lambda tx: tx.run(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100) "
            "INSERT INTO pairing_failures (platform, user_id, failures, updated_at) "
            "SELECT 'telegram', i, 1, ? + i FROM n",
            (tx.now - 20_000.0,),
        )
    )
    await fail(bench, "1", user_id="new")
    assert bench.value("SELECT COUNT(*) FROM pairing_failures") == 10_001
    assert bench.value("SELECT MIN(CAST(user_id AS INTEGER)) FROM pairing_failures WHERE user_id <> 'new'") == 101
