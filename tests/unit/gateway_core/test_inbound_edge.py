"""What may come in, what it leaves behind, and what it leaves behind when it may not."""

from __future__ import annotations

import pytest

from adapters.base import Verdict
from config import Settings
from gateway.access import Admission, Gate, entrant
from gateway.places import place_ref
from gateway.platforms import served_accounts
from session_store import NewInbox, SessionDB, StoreFull
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import event
from tests.unit.gateway_core.hall import Hall, failing, settings

TABLES = ("inbox", "places", "rooms", "people", "identities", "sessions", "pairing_failures")


def traces(elsewhere: Elsewhere) -> dict[str, int]:
    """How many rows each table has that an event could leave a trace in."""
    return {table: elsewhere(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in TABLES}  # noqa: S608 - our names


async def test_what_an_owner_says_is_recorded_whole(hall: Hall) -> None:
    """The row holds place, sender, text and key, and waits in the lane of its session."""
    message = event("hello", number=7, at=1_000_000.0, reply_to="5")
    assert await hall.told(message) is Verdict.ACCEPTED
    (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    assert (row["platform"], row["account"], row["chat_type"], row["chat"], row["thread"]) == (
        "telegram",
        "main",
        "dm",
        "42",
        "",
    )
    assert row["kind"] == "message"
    assert row["dedupe_key"] == "m:42:7"
    assert row["person_id"] == "owner"
    assert row["session_key"] == row["lane"] == "agent:main:telegram:dm:42"
    assert row["received_at"] == 1_000_000.0
    assert row["payload"]["text"] == "hello"
    assert row["payload"]["message_id"] == "7"
    assert row["payload"]["reply_to"] == "5"
    assert row["sender"]["user_id"] == "42"


async def test_the_same_event_again_changes_nothing(hall: Hall) -> None:
    """A second delivery is a duplicate, also with another text and after the first was worked."""
    assert await hall.say("hello", number=7) is Verdict.ACCEPTED
    assert await hall.say("hello", number=7) is Verdict.DUPLICATE
    async with hall.running():
        await hall.quiet()
        assert await hall.say("other words", number=7) is Verdict.DUPLICATE
        await hall.quiet()
    assert hall.agent.texts == ["hello"]


async def test_equal_numbers_in_other_chats_are_other_events(hall: Hall) -> None:
    """Message ids count per chat."""
    assert await hall.say("one", number=7) is Verdict.ACCEPTED
    assert await hall.say("two", number=7, chat="43", user="43") is Verdict.ACCEPTED


@pytest.mark.parametrize(
    "how",
    [
        {"chat": "66", "user": "66"},
        {"chat": "-5", "chat_type": "group", "user": "66"},
        {"chat": "-5", "chat_type": "group", "user": None},
        {"chat": "-6", "chat_type": "channel", "user": None},
        {"chat": "42", "user": "42", "is_bot": True},
        {"chat": "42", "user": "42", "account": "unknown"},
        {"chat": "66", "user": ""},
    ],
)
async def test_who_is_not_served_leaves_no_trace_but_a_count(
    hall: Hall, elsewhere: Elsewhere, how: dict[str, str | None]
) -> None:
    """Strangers, shared identities, bots and foreign accounts: nothing is stored, only counted."""
    before = traces(elsewhere)
    assert await hall.say("let me in", **how) is Verdict.DENIED
    assert await hall.say("/status", **how) is Verdict.DENIED
    assert traces(elsewhere) == before
    assert sum(hall.edge.refused.values()) == 2


async def test_a_group_is_answered_when_it_addresses_the_bot(hall: Hall, elsewhere: Elsewhere) -> None:
    """What is not addressed is not stored, and neither is who said it."""
    before = traces(elsewhere)
    room = {"chat": "-5", "chat_type": "group"}
    assert await hall.say("among us", addressed=False, **room) is Verdict.IGNORED
    assert await hall.say("among us", addressed=False, user="44", **room) is Verdict.IGNORED
    assert traces(elsewhere) == before
    assert await hall.say("you there", **room) is Verdict.ACCEPTED


async def test_a_topic_that_is_being_talked_in_is_always_answered(hall: Hall) -> None:
    """Once a topic has a route, nobody needs to mention the bot there; other topics and General still do."""
    topic = {"chat": "-5", "chat_type": "group", "thread": "17"}
    assert await hall.say("hm", addressed=False, **topic) is Verdict.IGNORED
    async with hall.running():
        await hall.say("you there", **topic)
        await hall.quiet()
    assert await hall.say("and now?", addressed=False, **topic) is Verdict.ACCEPTED
    assert await hall.say("hm", addressed=False, **topic | {"thread": "18"}) is Verdict.IGNORED
    assert await hall.say("hm", addressed=False, **topic | {"thread": ""}) is Verdict.IGNORED


class TestAlways:
    """An account that answers everything in groups."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """Settings with that account."""
        return settings(telegram={"groups": "always"})

    async def test_nobody_needs_to_address_it(self, hall: Hall) -> None:
        """Whoever may speak is answered; others are not."""
        room = {"chat": "-5", "chat_type": "group", "addressed": False}
        assert await hall.say("among us", **room) is Verdict.ACCEPTED
        assert await hall.say("among us", user="66", **room) is Verdict.DENIED


@pytest.mark.parametrize("kind", ["edit", "delete", "button", "migration", "member", "bounce"])
async def test_other_kinds_of_events_are_not_recorded(hall: Hall, elsewhere: Elsewhere, kind: str) -> None:
    """An edit never becomes a second message, and so on."""
    before = traces(elsewhere)
    assert await hall.say("hello", kind=kind, dedupe_key="e:42:7:1") is Verdict.IGNORED
    assert traces(elsewhere) == before


async def test_a_command_for_another_bot_is_not_answered(hall: Hall, elsewhere: Elsewhere) -> None:
    """Also where everything else is answered: in a direct chat."""
    before = traces(elsewhere)
    assert await hall.say("/new@otherbot now", kind="message", addressed=False) is Verdict.IGNORED
    assert traces(elsewhere) == before


async def test_commands_that_may_overtake_have_a_lane_of_their_own(hall: Hall) -> None:
    """/status goes beside a running turn, /new waits behind it."""
    await hall.say("hello")
    await hall.say("/status")
    await hall.say("/new chapter")
    rows = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
    lanes = {row["payload"]["text"]: row["lane"] for row in rows}
    assert lanes["/new chapter"] == lanes["hello"]
    assert lanes["/status"] != lanes["hello"]
    assert [row["kind"] for row in rows] == ["message", "command", "command"]


async def test_a_store_that_fails_lets_the_platform_deliver_again(hall: Hall) -> None:
    """The error is raised, nothing is lost: the next delivery is accepted."""
    with failing(hall.db.inbox, "accept", 1), pytest.raises(StoreFull):
        await hall.say("hello", number=7)
    assert await hall.say("hello", number=7) is Verdict.ACCEPTED


class TestEverybody:
    """An account that serves everybody."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """Settings with that account."""
        return settings(telegram={"allow_all": True})

    async def test_strangers_become_people_of_their_own(self, hall: Hall) -> None:
        """Two strangers are two people; the second word of one makes no third."""
        for user in ("66", "67", "66"):
            assert await hall.say("hello", chat=user, user=user) is Verdict.ACCEPTED
        rows = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
        people = [row["person_id"] for row in rows]
        assert people[0] == people[2] != people[1]
        assert None not in people
        assert "owner" not in people

    async def test_whom_the_platform_does_not_name_is_nobody_in_particular(self, hall: Hall) -> None:
        """A channel post is worked without a person."""
        assert await hall.say("news", chat="-6", chat_type="channel", user=None) is Verdict.ACCEPTED
        (row,) = await hall.db.inbox.pending([("telegram", "main")], hall.holder)
        assert row["person_id"] is None


async def test_who_is_allowed_is_a_person_as_long_as_the_settings_say_so(db: SessionDB) -> None:
    """Taken off the list, the same identity is refused, although it is known; put back, it is the same person."""
    served = served_accounts(settings())
    without = served_accounts(settings(telegram={"allowed_users": []}))
    people: list[str | None] = []
    for _ in range(2):
        message = event("hello", chat="44", user="44")
        admission = await Gate(served, db).admit(message)
        assert admission == Admission()
        assert isinstance(admission, Admission)
        assert not isinstance(await Gate(without, db).admit(message), Admission)
        row = NewInbox(
            place=place_ref(message.place),
            dedupe_key=message.dedupe_key,
            kind="message",
            lane="44",
            received_at=message.received_at,
            payload={},
            sender={},
            entrant=entrant(admission, message.sender),
        )
        stored = await db.inbox.get((await db.inbox.accept(row)).inbox_id)
        assert stored is not None
        people.append(stored["person_id"])
    assert people[0] == people[1] not in {None, "owner"}


async def test_ids_are_told_apart_by_case(db: SessionDB) -> None:
    """`ab` is allowed, `AB` is a stranger."""
    served = served_accounts(settings())
    account = served["telegram", "main"]
    fitted = {("telegram", "main"): type(account)(account.token, account.base_url, frozenset({"ab"}), False, "mention")}  # noqa: FBT003 - as the dataclass has it
    assert isinstance(await Gate(fitted, db).admit(event("x", user="ab")), Admission)
    assert not isinstance(await Gate(fitted, db).admit(event("x", user="AB")), Admission)
