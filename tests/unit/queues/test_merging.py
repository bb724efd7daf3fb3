"""Somebody who was merely allowed turns out to be a person that is known: everything of theirs goes along."""

from __future__ import annotations

import pytest

from session_store import NewOutbox, PlaceRef, SessionDB, Visibility
from session_store.merging import PERSON_COLUMNS
from tests.conftest import Elsewhere
from tests.unit.queues.bench import incoming, never, request

CHAT = PlaceRef("telegram", "main", "dm", "42")
GROUP = PlaceRef("telegram", "main", "group", "-7")


@pytest.fixture
async def guest(db: SessionDB, elsewhere: Elsewhere) -> str:
    """A person who wrote from Telegram before anybody knew who they are."""
    await db.people.sync_config({}, {})
    person = "p0123456789ab"
    elsewhere("INSERT INTO people VALUES (?, NULL, 'Ada', 1)", person)
    elsewhere("INSERT INTO identities VALUES ('telegram', '', '42', ?, 'allowed', 1)", person)
    room = await db.places.room_of(GROUP)
    await db.create_session("theirs", "telegram", owner=person, title="Plans")
    await db.append_message("theirs", "user", "the zebra in private", person_id=person)
    await db.create_session("alone in the group", "telegram", owner=person, room_id=room)
    await db.append_message("alone in the group", "user", "the zebra of the group", person_id=person)
    await db.create_session("of the room", "telegram", owner=room, room_id=room)
    await db.append_message("of the room", "user", "the zebra of all", person_id=person)
    await db.create_session("mine", "cli", owner="owner", title="plans")
    return person


async def pair(db: SessionDB, name: str | None = None) -> str | None:
    """Prove the identity with a code."""
    code = await db.pairing.create_code("telegram", name, "hash", 3600.0)
    notice = NewOutbox(place=CHAT, kind="notice", body="Paired.")
    return await db.pairing.redeem(code, "telegram", "", "42", "Ada", notice, "m:42:1")


def joined(elsewhere: Elsewhere, person: str, room: str) -> None:
    """They spoke in the room."""
    elsewhere("INSERT INTO room_members VALUES (?, ?, 1, 2)", room, person)


async def test_sessions_titles_rooms_and_words_go_along(db: SessionDB, guest: str, elsewhere: Elsewhere) -> None:
    """In one transaction; a title that was taken gets a number; nothing names the former person any more."""
    room = await db.places.room_of(GROUP)
    joined(elsewhere, guest, room)
    assert await pair(db) == "owner"
    owners = {row["id"]: (row["owner"], row["room_id"], row["title"]) for row in elsewhere("SELECT * FROM sessions")}
    assert owners == {
        "theirs": ("owner", None, "Plans #2"),
        "alone in the group": ("owner", room, None),
        "of the room": (room, room, None),
        "mine": ("owner", None, "plans"),
    }
    assert await db.places.rooms_of("owner") == {room}
    assert await db.people.get(guest) is None
    assert {row["person_id"] for row in elsewhere("SELECT person_id FROM messages")} == {"owner"}


async def test_what_they_said_is_found_by_the_person_they_are(db: SessionDB, guest: str, elsewhere: Elsewhere) -> None:
    """The search index follows; nobody finds it as the former person."""
    joined(elsewhere, guest, await db.places.room_of(GROUP))

    async def found(*owners: str) -> set[str]:
        hits = await db.search_messages("zebra", visible_to=Visibility(frozenset(owners)))
        return {hit["session_id"] for hit in hits}

    assert await found("owner") == set()
    assert await found(guest) == {"theirs", "alone in the group"}
    await pair(db)
    assert await found("owner") == {"theirs", "alone in the group"}
    assert await found(guest) == set()
    assert await found("owner", *await db.places.rooms_of("owner")) == {"theirs", "alone in the group", "of the room"}


async def test_a_named_person_gets_them_too(db: SessionDB, guest: str) -> None:
    """`threadline pair telegram --as ada`."""
    person = await pair(db, "ada")
    assert person not in {None, guest, "owner"}
    row = await db.get_session("theirs")
    assert row is not None
    assert row["owner"] == person


async def test_the_settings_do_the_same(db: SessionDB, guest: str) -> None:
    """Naming the identity there says who it is."""
    await db.people.sync_config({"telegram": ["42"]}, {})
    row = await db.get_session("theirs")
    assert row is not None
    assert row["owner"] == "owner"
    assert await db.people.get(guest) is None


async def test_somebody_with_another_identity_stays_who_they_are(db: SessionDB, guest: str) -> None:
    """Only the identity changes hands; what was said until then stays with them."""
    await db.people.sync_config({}, {"ada": {"telegram": ["42"], "slack": ["U1"]}})
    ada = await db.people.person_of("slack", "T1", "U1")
    row = await db.get_session("theirs")
    assert ada is not None
    assert row is not None
    assert row["owner"] == ada[0]
    assert await db.people.get(guest) is None
    await db.people.sync_config({"telegram": ["42"]}, {"ada": {"slack": ["U1"]}})
    row = await db.get_session("theirs")
    assert row is not None
    assert row["owner"] == ada[0]


async def test_what_is_claimed_while_they_are_paired_is_theirs(db: SessionDB, guest: str, elsewhere: Elsewhere) -> None:
    """A gateway has read the message, and fetches its files, say; the session that it begins is not nobody's."""
    holder = await db.processes.register("gateway", ["telegram/main"])
    row = (await db.inbox.accept(incoming("m:42:0", place=CHAT, person_id=guest))).inbox_id
    read = request([row], holder=holder, owner=guest, person_id=guest)
    assert await pair(db) == "owner"
    claim = await db.turns.claim(read, never)
    assert claim.status == "claimed"
    (session,) = elsewhere("SELECT owner FROM sessions WHERE id = ?", claim.session_id)
    (message,) = elsewhere("SELECT person_id FROM messages WHERE id = ?", claim.message_id)
    (route,) = elsewhere("SELECT person_id FROM routes")
    assert (session["owner"], message["person_id"], route["person_id"]) == ("owner", "owner", "owner")


async def test_a_merge_follows_every_table_that_names_a_person(db: SessionDB, elsewhere: Elsewhere) -> None:
    """A table that is added later is not forgotten."""
    del db
    tables = elsewhere(
        "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c ON c.name = 'person_id' "
        "WHERE m.type = 'table'"
    )
    assert {row["name"] for row in tables} == PERSON_COLUMNS
