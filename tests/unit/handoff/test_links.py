"""Linked places: one conversation in several places, in one order, and no copy that comes back."""

from __future__ import annotations

from session_store import Compress, PlaceRef, StartSession, TakeLocally, Unlink
from tests.unit.handoff.stage import DIRECT, SESSION, THREAD, Stage

TERMINAL = PlaceRef("cli", "main", "dm", "terminal")


async def linked(stage: Stage) -> None:
    """The conversation is in Ann's direct chat, and linked with a thread."""
    await stage.brought("one")
    await stage.brought("two", THREAD, kind="link")


async def test_what_is_said_and_answered_in_one_place_appears_in_the_other(stage: Stage) -> None:
    """Marked with who and where; where it was said there is only the answer."""
    await linked(stage)
    assert await stage.turn(1, DIRECT, "And the spare one?") == SESSION
    assert (await stage.outgoing(THREAD))[1:] == [
        ("mirror", "**Ann on telegram:** And the spare one?"),
        ("mirror", "**Answer to Ann on telegram:**\n\nre: And the spare one?"),
    ]
    assert (await stage.outgoing(DIRECT))[-1] == ("answer", "re: And the spare one?")
    assert await stage.turn(2, THREAD, "At Bob's") == SESSION
    assert (await stage.outgoing(DIRECT))[-2:] == [
        ("mirror", "**Ann on slack:** At Bob's"),
        ("mirror", "**Answer to Ann on slack:**\n\nre: At Bob's"),
    ]


async def test_a_place_without_a_link_gets_no_copies(stage: Stage) -> None:
    """A conversation that was handed off is in one place."""
    await stage.brought("one")
    await stage.turn(1, DIRECT, "And the spare one?")
    assert [kind for kind, _ in await stage.outgoing(DIRECT)] == ["handoff", "answer"]


async def test_the_direct_chat_of_somebody_who_is_not_served_any_more_gets_no_copies(stage: Stage) -> None:
    """As after a lost telephone; back in the settings, it is linked as before."""
    await linked(stage)
    before = await stage.outgoing(DIRECT)
    await stage.db.people.sync_config({}, {})
    await stage.turn(1, THREAD, "Where is it now?")
    assert await stage.outgoing(DIRECT) == before
    await stage.db.people.sync_config({"telegram": ["42"]}, {})
    await stage.turn(2, THREAD, "And now?")
    assert [kind for kind, _ in await stage.outgoing(DIRECT)][-2:] == ["mirror", "mirror"]


async def test_a_link_does_not_end_by_the_clock(stage: Stage) -> None:
    """It would end in one of its places only."""
    await linked(stage)
    assert await stage.turn(1, DIRECT, "Good morning", judge="daily") == SESSION
    await stage.db.apply([Unlink(SESSION, THREAD, "owner")])
    assert await stage.turn(2, DIRECT, "Good evening", judge="daily") == "fresh-2"


async def test_unlinked_it_is_as_it_was(stage: Stage) -> None:
    """The place that was there before is a plain one again; the other begins anew, and is told."""
    await linked(stage)
    assert await stage.db.links.of_session(SESSION) == [DIRECT, THREAD]
    await stage.db.apply([Unlink(SESSION, THREAD, "owner", "Not here any more.")])
    assert await stage.db.links.of_session(SESSION) == []
    assert (await stage.outgoing(THREAD))[-1] == ("handoff", "Not here any more.")
    await stage.turn(1, DIRECT, "Still there?")
    assert await stage.turn(2, THREAD, "Still there?") == "fresh-2"
    assert (await stage.db.place_history.of_session(SESSION))[-1]["how"] == "unlink"


async def test_a_place_that_begins_a_new_session_has_left_the_link(stage: Stage) -> None:
    """`/new` leads the place elsewhere; the other place gets nothing of that, and goes on."""
    await linked(stage)
    await stage.db.apply([StartSession("key of 42", DIRECT, "telegram", "owner", "new", person_id="owner")])
    assert await stage.db.links.of_session(SESSION) == [THREAD]
    before = await stage.outgoing(THREAD)
    assert await stage.turn(1, DIRECT, "Something else") == "new"
    assert await stage.outgoing(THREAD) == before
    assert await stage.turn(2, THREAD, "Here as before") == SESSION


async def test_taken_to_the_terminal_every_chat_is_told_but_the_one_that_asked(stage: Stage) -> None:
    """That one gets the reply of its command."""
    await linked(stage)
    await stage.db.apply([TakeLocally(SESSION, TERMINAL, "owner", "To the terminal.", "Elsewhere.", DIRECT)])
    assert await stage.db.routes.of_session(SESSION) == []
    assert (await stage.outgoing(THREAD))[-1] == ("handoff", "Elsewhere.")
    assert (await stage.outgoing(DIRECT))[-1] != ("handoff", "To the terminal.")
    assert (await stage.db.place_history.of_session(SESSION))[-1]["place"] == TERMINAL


async def test_a_copy_is_known_as_one_when_another_bot_brings_it_back(stage: Stage) -> None:
    """By its id once it was sent, by its words while it is being sent."""
    await linked(stage)
    await stage.turn(1, DIRECT, "And the spare one?")
    words = "**Ann on telegram:** And the spare one?"
    assert not await stage.db.links.was_copied("slack", "T1/C1", "99.1", words)
    row = next(row for row in await stage.db.outbox.on_its_way(THREAD, None) if row["body"] == words)
    assert await stage.db.outbox.begin(row["id"], stage.gateway)
    assert await stage.db.links.was_copied("slack", "T1/C1", "99.1", words)
    await stage.db.outbox.sent(row["id"], "99.1")
    assert await stage.db.links.was_copied("slack", "T1/C1", "99.1", "formatted otherwise")
    assert not await stage.db.links.was_copied("slack", "T1/C2", "99.1", words)


async def test_compressed_it_lives_on_in_both_places(stage: Stage) -> None:
    """The links are the conversation's, not one session's."""
    await linked(stage)
    held = await stage.db.holding.take(SESSION, stage.gateway, "compression-1", "compression")
    assert held.fence is not None
    first = (await stage.db.get_messages(SESSION))[0]["id"]
    await stage.db.compressions.compress(Compress(held.fence, SESSION, "child", "About a key.", first))
    await stage.db.holding.let_go(held.fence)
    assert await stage.turn(1, DIRECT, "And the spare one?") == "child"
    assert (await stage.outgoing(THREAD))[-2][1] == "**Ann on telegram:** And the spare one?"
    assert (await stage.db.place_history.of_session("child"))[-1]["how"] == "link"
