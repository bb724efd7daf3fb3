"""People: identities of the config, of pairing, and of merely allowed senders."""

from __future__ import annotations

import pytest

from session_store.errors import InvalidArgument
from session_store.people import assign, ensure_allowed
from tests.unit.queues.bench import Bench


async def person(bench: Bench, name: str) -> str:
    """The id of a named person."""
    return str(bench.value("SELECT id FROM people WHERE name = ?", name))


async def test_the_config_names_the_owner_and_others(bench: Bench) -> None:
    """The owner has a fixed id; every other name is a person of its own, with or without identities."""
    await bench.people.sync_config({"telegram": ["42"], "slack": ["U1"]}, {"ada": {"telegram": ["43"]}, "bob": {}})
    assert await bench.people.person_of("telegram", "", "42") == ("owner", "config")
    assert await bench.people.person_of("slack", "T1", "U1") == ("owner", "config")
    assert await bench.people.person_of("telegram", "", "43") == (await person(bench, "ada"), "config")
    assert await bench.people.person_of("telegram", "", "44") is None
    assert await bench.people.person_of("discord", "", "42") is None
    found = await bench.people.get(await person(bench, "bob"))
    assert found is not None
    assert found["name"] == "bob"
    assert await bench.people.get("nobody") is None


async def test_the_same_config_again_changes_nothing(bench: Bench) -> None:
    """Every start brings the store in line; people keep their ids."""
    people = {"ada": {"telegram": ["43"]}}
    await bench.people.sync_config({"telegram": ["42"]}, people)
    before = bench.dump()
    await bench.people.sync_config({"telegram": ["42"]}, people)
    assert bench.dump() == before


async def test_what_the_config_no_longer_names_is_no_identity_any_more(bench: Bench) -> None:
    """Access ends; the person, and what they own, stays."""
    await bench.people.sync_config({"telegram": ["42"]}, {"ada": {"telegram": ["43"]}})
    ada = await person(bench, "ada")
    await bench.people.sync_config({"telegram": ["42"]}, {})
    assert await bench.people.person_of("telegram", "", "43") is None
    assert await bench.people.get(ada) is not None


async def test_an_identity_moves_with_its_line_in_the_config(bench: Bench) -> None:
    """From one person to the other."""
    await bench.people.sync_config({"telegram": ["42"]}, {"ada": {"telegram": ["43"]}})
    await bench.people.sync_config({"telegram": ["43"]}, {"ada": {"telegram": ["42"]}})
    assert await bench.people.person_of("telegram", "", "43") == ("owner", "config")
    assert await bench.people.person_of("telegram", "", "42") == (await person(bench, "ada"), "config")


async def test_an_identity_named_for_two_people_is_refused(bench: Bench) -> None:
    """Nobody knows whose it is; nothing changes."""
    before = bench.dump()
    with pytest.raises(InvalidArgument, match="telegram identity 42 is named for owner and for ada"):
        await bench.people.sync_config({"telegram": ["42"]}, {"ada": {"telegram": ["42"]}})
    assert bench.dump() == before


async def test_the_config_commands_over_pairing(bench: Bench) -> None:
    """It takes an identity from another person; one paired to the same person stays paired and outlives its line."""
    await bench.people.sync_config({}, {"ada": {}})
    ada = await person(bench, "ada")
    bench.apply(lambda tx: assign(tx, "telegram", "", "43", (ada, "pairing")))
    bench.apply(lambda tx: assign(tx, "telegram", "", "44", (ada, "pairing")))
    await bench.people.sync_config({"telegram": ["44"]}, {"ada": {"telegram": ["43"]}})
    assert await bench.people.person_of("telegram", "", "43") == (ada, "pairing")
    assert await bench.people.person_of("telegram", "", "44") == ("owner", "config")


async def test_the_config_and_pairing_mean_the_same_person_by_one_name(bench: Bench) -> None:
    """Whichever came first, a name is one person."""
    await bench.people.sync_config({}, {"ada": {}})
    ada = await person(bench, "ada")
    await bench.people.sync_config({}, {"ada": {"telegram": ["43"]}, "owner": {"slack": ["U1"]}})
    assert await person(bench, "ada") == ada
    assert await bench.people.person_of("slack", "T1", "U1") == ("owner", "config")


def enter(bench: Bench, platform: str, account: str, user_id: str, name: str) -> str:
    """An allowed sender's event is recorded; returns the person."""
    return bench.apply(lambda tx: ensure_allowed(tx, platform, account, user_id, name))


async def test_an_allowed_sender_is_a_person_of_their_own(bench: Bench) -> None:
    """The same one every time, under the newest name; per name space of ids."""
    first = enter(bench, "slack", "T1", "U1", "Ada")
    assert enter(bench, "slack", "T1", "U1", "Ada") == first
    assert enter(bench, "slack", "T1", "U1", "Ada L.") == first
    assert enter(bench, "slack", "T1", "U1", "") == first
    found = await bench.people.get(first)
    assert found is not None
    assert (found["name"], found["display"]) == (None, "Ada L.")
    assert await bench.people.person_of("slack", "T1", "U1") == (first, "allowed")
    assert enter(bench, "slack", "T2", "U1", "Another") != first


async def test_an_allowed_sender_who_is_known_stays_who_they_are(bench: Bench) -> None:
    """The list of allowed senders makes nobody else of the owner, nor renames them."""
    await bench.people.sync_config({"telegram": ["42"]}, {})
    before = bench.dump()
    assert enter(bench, "telegram", "", "42", "Someone") == "owner"
    assert bench.dump() == before


async def test_the_config_finds_a_sender_who_was_only_allowed_before(bench: Bench) -> None:
    """An older identity in one workspace does not hide the one that the config names for all of them."""
    was = enter(bench, "slack", "T1", "U1", "Ada")
    await bench.people.sync_config({"slack": ["U1"]}, {})
    assert await bench.people.person_of("slack", "T1", "U1") == ("owner", "config")
    assert await bench.people.get(was) is None


async def test_ids_are_opaque(bench: Bench) -> None:
    """Case and white space are part of an id."""
    await bench.people.sync_config({"slack": ["U1"]}, {})
    assert await bench.people.person_of("slack", "", "u1") is None
    assert await bench.people.person_of("slack", "", "U1 ") is None
