"""Answers shown while they are made, in the store: begun once, under the fence, in order; the end is linked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from session_store.errors import FenceLost
from session_store.models import Fence, MovedChat, NewMessage, NewOutbox, PlaceRef, RenderedPart, ShownAnswer
from session_store.moves import Moves
from session_store.outbox import Outbox
from session_store.shown import Shown
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench, fence

PART = RenderedPart("Once …", '{"form": "once"}')
BEGINNING = NewOutbox(HOME, "answer", "", reply_to="77")
FINAL = NewMessage("assistant", "Once upon a time.", op_id="t1.final")
END = [NewOutbox(HOME, "answer", "Once upon a time.", reply_to="77", over_shown="Once upon a time.")]
STOP = [NewOutbox(HOME, "notice", "Stopped.", over_shown="Once\n\nStopped.")]
RESET = NewOutbox(HOME, "notice", "A new session begins.", op_id="reset:t1")


async def begun(bench: Bench, held: Fence) -> ShownAnswer:
    """A beginning, which waits to be posted."""
    shown = await Shown(bench).begin(held, BEGINNING, PART)
    assert shown is not None
    return shown


async def posted(bench: Bench, held: Fence, message_id: str = "900") -> ShownAnswer:
    """A beginning that was posted."""
    shown = await begun(bench, held)
    assert await bench.outbox.begin(shown.id, "A")
    await bench.outbox.sent(shown.id, message_id)
    return shown


async def end_of(outbox: Outbox) -> tuple[str, int | None, str | None]:
    """What is due: its words, what it finishes, and the message of that."""
    (row,) = await outbox.due(TELEGRAM)
    return row["body"], row["finishes"], row["finishes_message"]


async def test_a_beginning_is_a_part_that_is_sent_like_any_other(bench: Bench) -> None:
    """Split already, in the name of its turn, and there once."""
    held = fence(await bench.claimed())
    shown = await begun(bench, held)
    (row,) = await bench.outbox.due(TELEGRAM)
    assert (row["id"], row["body"], row["rendered"], row["turn_id"]) == (shown.id, PART.body, PART.rendered, "t1")
    assert await begun(bench, held) == ShownAnswer(shown.id, None, open=True)
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.sent(shown.id, "900")
    assert await begun(bench, held) == ShownAnswer(shown.id, "900", open=True)
    assert bench.value("SELECT COUNT(*) FROM outbox") == 1


async def test_only_who_holds_the_turn_begins(bench: Bench) -> None:
    """A process that slept shows nothing."""
    held = fence(await bench.claimed())
    with pytest.raises(FenceLost):
        await begun(bench, replace(held, number=held.number + 1))
    assert bench.value("SELECT COUNT(*) FROM outbox") == 0


async def test_nothing_is_begun_where_something_waits(bench: Bench) -> None:
    """What must come first is queued once, whatever is tried how often; elsewhere nothing is in the way."""
    held = fence(await bench.claimed())
    await bench.outbox.add([NewOutbox(GROUP, "notice", "elsewhere")])
    shown = Shown(bench)
    assert await shown.begin(held, BEGINNING, PART, [RESET]) is None
    assert await shown.begin(held, BEGINNING, PART, [RESET]) is None
    first, second = await bench.outbox.due(TELEGRAM)
    assert {first["body"], second["body"]} == {"elsewhere", RESET.body}
    reset = first if first["body"] == RESET.body else second
    await bench.outbox.begin(reset["id"], "A")
    assert await shown.begin(held, BEGINNING, PART, [RESET]) is None, "being sent is not yet sent"
    await bench.outbox.sent(reset["id"], "899")
    assert await shown.begin(held, BEGINNING, PART, [RESET]) is not None
    await bench.turns.finish(held, FINAL, [RESET, *END])
    assert bench.value("SELECT COUNT(*) FROM outbox WHERE body = ?", RESET.body) == 1


async def test_the_end_takes_the_place_of_what_was_posted(bench: Bench) -> None:
    """The link is in the transaction that ends the turn."""
    held = fence(await bench.claimed())
    shown = await posted(bench, held)
    await bench.turns.finish(held, FINAL, END)
    assert await end_of(bench.outbox) == ("Once upon a time.", shown.id, "900")


async def test_the_end_is_not_due_before_the_fate_of_the_beginning_is_known(bench: Bench) -> None:
    """Whoever sends; then it edits, or stands alone."""
    held = fence(await bench.claimed())
    shown = await begun(bench, held)
    await bench.outbox.begin(shown.id, "A")
    await bench.turns.finish(held, FINAL, END)
    assert await bench.outbox.due(TELEGRAM) == []
    await bench.outbox.unknown(shown.id, "cut", resend=False)
    assert await end_of(bench.outbox) == ("Once upon a time.", shown.id, None)


async def test_a_beginning_that_was_surely_not_posted_is_dropped(bench: Bench) -> None:
    """Also one that was told to wait; one that may be there is sent again first."""
    held = fence(await bench.claimed())
    shown = await begun(bench, held)
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.retry(shown.id, 60.0, "slow down")
    await bench.turns.interrupt(held, "stopped", STOP)
    assert await end_of(bench.outbox) == ("Stopped.", None, None)

    again = fence(await bench.claimed("m:2", "t2"))
    (row,) = await bench.outbox.due(TELEGRAM)
    await bench.outbox.drop([row["id"]])
    shown = await begun(bench, again)
    await bench.outbox.begin(shown.id, "A")
    assert await bench.outbox.unknown(shown.id, "cut", resend=True)
    await bench.turns.interrupt(again, "stopped", STOP)
    assert (await end_of(bench.outbox))[0] == PART.body
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.sent(shown.id, "901")
    assert await end_of(bench.outbox) == ("Once\n\nStopped.", shown.id, "901")


async def test_an_edit_that_a_dead_process_left_is_made_again_whatever_the_rule(bench: Bench) -> None:
    """It can do no harm, so nothing is held and nothing counted."""
    held = fence(await bench.claimed())
    await posted(bench, held)
    await bench.turns.finish(held, FINAL, END)
    (row,) = await bench.outbox.due(TELEGRAM)
    await bench.outbox.begin(row["id"], "A")
    bench.kill("A")
    assert await bench.outbox.recover(TELEGRAM, resend=False) == 1
    (again,) = await bench.outbox.due(TELEGRAM)
    assert (again["id"], again["finishes_message"], again["resends"]) == (row["id"], "900", 0)


async def test_an_end_that_cannot_be_put_there_is_a_message_of_its_own(bench: Bench) -> None:
    """Recorded, so that it stays so after a crash."""
    held = fence(await bench.claimed())
    await posted(bench, held)
    await bench.turns.finish(held, FINAL, END)
    (row,) = await bench.outbox.due(TELEGRAM)
    await bench.outbox.begin(row["id"], "A")
    await bench.outbox.stand_alone(row["id"], "the message is gone")
    assert await end_of(bench.outbox) == ("Once upon a time.", None, None)


async def test_the_end_follows_a_beginning_that_had_to_give_way(bench: Bench) -> None:
    """Its topic was gone, so it went to the chat."""
    topic = replace(HOME, thread="17")
    held = fence(await bench.claimed())
    shown = await Shown(bench).begin(held, replace(BEGINNING, place=topic), PART)
    assert shown is not None
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.redirect(shown.id, HOME, "topic gone", "It was for a topic that is gone.")
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.sent(shown.id, "900")
    (notice,) = await bench.outbox.due(TELEGRAM)
    await bench.outbox.drop([notice["id"]])
    await bench.turns.finish(held, FINAL, [replace(END[0], place=topic)])
    (row,) = await bench.outbox.due(TELEGRAM)
    assert (row["thread"], row["finishes_message"]) == ("", "900")


@pytest.mark.parametrize("ended", [False, True])
async def test_nothing_is_edited_in_a_chat_that_moved_away(bench: Bench, *, ended: bool) -> None:
    """The same number is another message in the new chat: the answer comes anew there."""
    room = PlaceRef("telegram", "main", "group", "-5")
    held = fence(await bench.claimed())
    shown = await Shown(bench).begin(held, replace(BEGINNING, place=room), PART)
    assert shown is not None
    await bench.outbox.begin(shown.id, "A")
    await bench.outbox.sent(shown.id, "900")
    move = MovedChat("telegram", "main", "-5", "-100", "agent:old", "agent:new")
    if not ended:
        assert await Moves(bench).move_chat(move)
    await bench.turns.finish(held, FINAL, [replace(END[0], place=room)])
    if ended:
        assert await Moves(bench).move_chat(move)
    (row,) = await bench.outbox.due(TELEGRAM)
    assert (row["chat"], row["finishes_message"], row["body"]) == ("-100", None, "Once upon a time.")
