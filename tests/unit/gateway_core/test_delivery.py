"""What goes out: in order per place, exactly where it belongs, with a receipt for every outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from adapters.base import Gone, Receipt, Refused, RetryLater, UnknownOutcome
from config import Settings
from gateway import delivery
from gateway.delivery import AT_ONCE, Delivery, patience
from session_store import NewOutbox, PlaceRef, StoreFull
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import PART, FakeAdapter
from tests.unit.gateway_core.hall import Hall, failing, settings

Row = dict[str, Any]


def place(chat: str = "42", *, thread: str = "", account: str = "main", chat_type: str = "dm") -> PlaceRef:
    """An address."""
    return PlaceRef("telegram", account, chat_type, chat, thread)


async def owe(
    hall: Hall, *bodies: str, to: PlaceRef | None = None, kind: Any = "answer", reply_to: str | None = None
) -> None:
    """Answers to be sent."""
    await hall.db.outbox.add([NewOutbox(to or place(), kind, body, reply_to) for body in bodies])


def parts(elsewhere: Elsewhere) -> list[Row]:
    """All rows of the outbox, in the order of their line."""
    return elsewhere("SELECT * FROM outbox ORDER BY line, part")


def states(elsewhere: Elsewhere) -> list[str]:
    """Their states."""
    return [row["state"] for row in parts(elsewhere)]


async def test_parts_go_out_in_order_and_each_has_its_receipt(hall: Hall, elsewhere: Elsewhere) -> None:
    """Formatted first, then split; the first part answers the message, every part has a key of its own."""
    await owe(hall, f"one{PART}two{PART}three", "four", reply_to="7")
    async with hall.running():
        assert await hall.sent(4) == ["one", "two", "three", "four"]
    assert [sent.reply_to for sent in hall.adapter.sent] == ["7", None, None, "7"]
    keys = [sent.key for sent in hall.adapter.sent]
    assert len(set(keys)) == 4
    rows = parts(elsewhere)
    assert states(elsewhere) == ["sent"] * 4
    assert [row["part"] for row in rows] == [1, 2, 3, 1]
    assert all(row["platform_message_id"] for row in rows)
    assert {row["attempts"] for row in rows} == {1}


async def test_a_part_that_must_wait_blocks_its_own_place_only(hall: Hall, elsewhere: Elsewhere) -> None:
    """Flood control in one chat leaves the others alone."""
    hall.adapter.outcomes.append(RetryLater("slow down", 3600.0))
    await owe(hall, "blocked 1", "blocked 2")
    async with hall.running():
        await hall.until(lambda: _tried(hall, 1))
        await owe(hall, "free 1", "free 2", to=place("43"))
        assert await hall.sent(2) == ["free 1", "free 2"]
    first, second = parts(elsewhere)[:2]
    assert (first["state"], first["error"], first["attempts"]) == ("waiting", "slow down", 1)
    assert 3590 < first["next_at"] - time.time() <= 3600
    assert (second["state"], second["attempts"]) == ("waiting", 0)


async def _tried(hall: Hall, count: int) -> bool:
    return len(hall.adapter.tried) >= count and (await hall.db.outbox.counts()).get("sending", 0) == 0


async def test_the_wait_that_the_platform_names_is_kept_and_then_it_is_sent(hall: Hall) -> None:
    """Not before, and in order."""
    hall.adapter.outcomes.append(RetryLater("slow down", 0.2))
    await owe(hall, "one", "two")
    async with hall.running():
        began = time.monotonic()
        assert await hall.sent(2) == ["one", "two"]
    assert time.monotonic() - began >= 0.2
    assert [one.text for one in hall.adapter.tried] == ["one", "one", "two"]


async def test_a_wait_for_the_whole_account_stops_every_place_of_it(hall: Hall) -> None:
    """A refused token is not tried for each chat."""
    hall.adapter.outcomes.append(RetryLater("token refused", 3600.0, whole_account=True))
    await owe(hall, "one")
    async with hall.running():
        await hall.until(lambda: _tried(hall, 1))
        await owe(hall, "two", to=place("43"))
        await hall.db.processes.beat(hall.holder)
        await hall.db.processes.beat(hall.holder)
        assert (await hall.db.outbox.counts())["waiting"] == 2
    assert len(hall.adapter.tried) == 1


async def test_accounts_are_independent_and_none_sends_more_than_its_share(hall: Hall) -> None:
    """An account whose sends hang does not take the other's."""
    other = FakeAdapter(account="second")
    hall.adapter.gate.clear()
    both = Delivery(
        hall.db,
        {("telegram", "main"): hall.adapter, ("telegram", "second"): other},
        hall.holder,
        unknown="resend",
    )
    for chat in range(3 * AT_ONCE):
        await owe(hall, f"hung {chat}", to=place(str(chat)))
    await owe(hall, "quick", to=place("1", account="second"))
    both.open(("telegram", "main"))
    both.open(("telegram", "second"))
    task = asyncio.create_task(both.run())
    await hall.until(lambda: _have(other, 1))
    await hall.until(lambda: _sending(hall, AT_ONCE))
    hall.adapter.gate.set()
    await hall.until(lambda: _have(hall.adapter, 3 * AT_ONCE))
    assert hall.adapter.most_sending == AT_ONCE
    both.close()
    await task


async def test_a_backlog_of_some_places_keeps_nobody_else_waiting(hall: Hall) -> None:
    """Twice as many chats as may be served at once owe a lot; who comes later is served in the next round."""
    crowd = [place(f"9{chat}") for chat in range(2 * AT_ONCE)]
    for number in range(10):
        for chat in crowd:
            await owe(hall, f"{number} to {chat.chat}", to=chat)
    await owe(hall, "newcomer", to=place("42"))
    async with hall.running():
        said = await hall.sent(10 * len(crowd) + 1)
    assert said.index("newcomer") <= 2 * len(crowd)
    assert [text for text in said if text.endswith(" to 90")] == [f"{number} to 90" for number in range(10)]


async def _have(adapter: FakeAdapter, count: int) -> bool:
    return len(adapter.sent) >= count


async def test_nothing_goes_out_before_the_account_is_open(hall: Hall) -> None:
    """Answers of the last run wait for the adapter instead of failing against one that has not started."""
    await owe(hall, "early")
    waiting = Delivery(hall.db, {("telegram", "main"): hall.adapter}, hall.holder, unknown="resend")
    task = asyncio.create_task(waiting.run())
    for _ in range(30):
        await hall.db.processes.beat(hall.holder)
    assert hall.adapter.tried == []
    waiting.open(("telegram", "main"))
    await hall.until(lambda: _have(hall.adapter, 1))
    waiting.close()
    await task


async def test_a_send_of_unknown_outcome_is_sent_once_more_and_counted(hall: Hall, elsewhere: Elsewhere) -> None:
    """The second unknown outcome is left as it is and blocks nothing."""
    hall.adapter.outcomes.extend([UnknownOutcome("cut"), UnknownOutcome("cut again")])
    await owe(hall, "one", "two")
    async with hall.running():
        assert await hall.sent(1) == ["two"]
    first, second = parts(elsewhere)
    assert (first["state"], first["resends"], first["error"]) == ("unknown", 1, "cut again")
    assert second["state"] == "sent"
    assert [one.text for one in hall.adapter.tried] == ["one", "one", "two"]


async def test_an_error_that_no_adapter_should_raise_is_an_unknown_outcome(hall: Hall, elsewhere: Elsewhere) -> None:
    """Whatever a library does, nobody knows what became of the send, and delivery goes on."""
    hall.adapter.outcomes.extend([KeyError("oops"), Receipt("9")])
    await owe(hall, "one")
    async with hall.running():
        assert await hall.sent(1) == ["one"]
    (row,) = parts(elsewhere)
    assert (row["state"], row["resends"], row["platform_message_id"]) == ("sent", 1, "9")


class TestHold:
    """A home that would rather miss an answer than see it twice."""

    @pytest.fixture
    def chosen(self) -> Settings:
        """Settings that hold unknown sends."""
        return settings(delivery={"unknown": "hold"})

    async def test_an_unknown_outcome_is_held(self, hall: Hall, elsewhere: Elsewhere) -> None:
        """It is not sent again; what follows goes out."""
        hall.adapter.outcomes.append(UnknownOutcome("cut"))
        await owe(hall, "one", "two")
        async with hall.running():
            assert await hall.sent(1) == ["two"]
        assert states(elsewhere) == ["unknown", "sent"]
        assert [one.text for one in hall.adapter.tried] == ["one", "two"]


@pytest.mark.parametrize("error", [Refused("never"), Gone("chat not found")])
async def test_what_will_never_be_taken_has_failed_visibly(hall: Hall, elsewhere: Elsewhere, error: Exception) -> None:
    """Later parts and later answers still go."""
    hall.adapter.outcomes.append(error)
    await owe(hall, f"one{PART}two", "three")
    async with hall.running():
        assert await hall.sent(2) == ["two", "three"]
    rows = parts(elsewhere)
    assert [row["state"] for row in rows] == ["failed", "sent", "sent"]
    assert rows[0]["error"] == str(error)


async def test_an_answer_whose_topic_is_gone_goes_to_the_chat_with_a_word(hall: Hall, elsewhere: Elsewhere) -> None:
    """Every part of it, in order, and where it was for; nothing is lost."""
    hall.adapter.outcomes.append(Gone("The topic is gone.", thread_only=True))
    topic = place("-5", thread="17", chat_type="group")
    await owe(hall, f"one{PART}two", to=topic, reply_to="3")
    async with hall.running():
        one, two, word = await hall.sent(3)
    assert (one, two) == ("one", "two")
    assert "topic that is gone" in word
    assert {(sent.place.chat, sent.place.thread, sent.reply_to) for sent in hall.adapter.sent} == {("-5", "", None)}
    assert states(elsewhere) == ["sent", "sent", "sent"]


async def test_a_topic_that_is_gone_in_the_middle_of_an_answer_loses_no_part(hall: Hall) -> None:
    """What was sent there stays there; the rest goes to the chat."""
    hall.adapter.outcomes.extend([Receipt("1"), Gone("The topic is gone.", thread_only=True)])
    await owe(hall, f"one{PART}two{PART}three", to=place("-5", thread="17", chat_type="group"))
    async with hall.running():
        texts = await hall.sent(4)
    assert texts[:3] == ["one", "two", "three"]
    assert [sent.place.thread for sent in hall.adapter.sent] == ["17", "", "", ""]


async def test_an_answer_to_a_group_that_moved_goes_to_where_it_is_now(hall: Hall) -> None:
    """The platform told the new chat; the answer is sent there, and what waits behind it."""
    hall.adapter.outcomes.append(Gone("The group is now -100.", moved_to="-100"))
    await owe(hall, "one", "two", to=place("-5", chat_type="group"), reply_to="3")
    async with hall.running():
        assert await hall.sent(2) == ["one", "two"]
    assert {(sent.place.chat, sent.reply_to) for sent in hall.adapter.sent} == {("-100", None)}


async def test_a_chat_that_moved_to_itself_is_gone(hall: Hall, elsewhere: Elsewhere) -> None:
    """No circle."""
    hall.adapter.outcomes.append(Gone("moved", moved_to="42"))
    await owe(hall, "one")
    async with hall.running():
        await hall.quiet()
    assert states(elsewhere) == ["failed"]


async def test_what_the_platform_put_elsewhere_is_told_once(hall: Hall, elsewhere: Elsewhere) -> None:
    """A receipt's note reaches the person, and a note about the note does not."""
    note = "Telegram put this into the main chat."
    hall.adapter.outcomes.extend([Receipt("1", note), Receipt("2", note)])
    await owe(hall, "one", to=place("-5", thread="17", chat_type="group"))
    async with hall.running():
        assert await hall.sent(2) == ["one", note]
        await hall.quiet()
    assert [(sent.place.chat, sent.place.thread) for sent in hall.adapter.sent] == [("-5", "17"), ("-5", "")]
    assert len(parts(elsewhere)) == 2


async def test_what_cannot_be_formatted_has_failed_and_stops_nothing(hall: Hall, elsewhere: Elsewhere) -> None:
    """The next answer of the place goes out."""
    hall.adapter.unrenderable = "bad"
    await owe(hall, "bad", "good")
    async with hall.running():
        assert await hall.sent(1) == ["good"]
    first, _ = parts(elsewhere)
    assert first["state"] == "failed"
    assert "no form for this" in first["error"]


async def test_an_answer_of_nothing_is_dropped(hall: Hall, elsewhere: Elsewhere) -> None:
    """A formatter that leaves nothing to send blocks nothing."""
    await owe(hall, PART, "good")
    async with hall.running():
        assert await hall.sent(1) == ["good"]
    assert states(elsewhere) == ["dropped", "sent"]


async def test_a_long_answer_is_formatted_off_the_event_loop(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formatting takes time that grows with the text."""
    threads: list[bool] = []
    real = hall.adapter.render

    def render(markdown: str) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return real(markdown)

    monkeypatch.setattr(hall.adapter, "render", render)
    await owe(hall, "short", "x" * (delivery.LONG_TEXT + 1))
    async with hall.running():
        await hall.sent(2)
    assert threads == [True, False]


async def test_what_is_tried_for_a_day_is_given_up(hall: Hall, elsewhere: Elsewhere) -> None:
    """It has failed visibly; what follows is sent."""
    await owe(hall, "old", "new")
    elsewhere("UPDATE outbox SET created_at = created_at - 90000, attempts = 20 WHERE body = 'old'")
    hall.adapter.outcomes.append(RetryLater("away", 0.0))
    async with hall.running():
        assert await hall.sent(1) == ["new"]
    first, _ = parts(elsewhere)
    assert first["state"] == "failed"
    assert "given up after a day: away" in first["error"]


async def test_a_clock_that_jumped_ahead_gives_nothing_up_that_was_hardly_tried(hall: Hall) -> None:
    """An old row is tried some times before."""
    await owe(hall, "old")
    hall.adapter.outcomes.append(RetryLater("away", 0.0))
    await hall.db.outbox.counts()
    with pytest.MonkeyPatch.context() as patch:
        real = time.time
        patch.setattr("gateway.delivery.time.time", lambda: real() + 10 * 86_400)
        async with hall.running():
            assert await hall.sent(1) == ["old"]


def test_patience_grows_after_some_tries_and_never_goes_below_what_was_asked() -> None:
    """The platform's wait is kept exactly as long as it helps."""
    assert [patience(1.0, attempts) for attempts in (1, 2, 3)] == [1.0, 1.0, 1.0]
    assert [patience(1.0, attempts) for attempts in (4, 5, 6)] == [2.0, 4.0, 8.0]
    assert patience(1.0, 1000) == delivery.LONGEST_WAIT
    assert patience(500.0, 1000) == 500.0


async def test_a_receipt_that_cannot_be_written_is_written_later_and_nothing_is_sent_twice(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place waits for its receipt, other places go on."""
    monkeypatch.setattr(delivery, "STORE_RETRY_SECONDS", 0.01)
    await owe(hall, "one", "two")
    with failing(hall.db.outbox, "sent", 5):
        async with hall.running():
            assert await hall.sent(2) == ["one", "two"]
    assert states(elsewhere) == ["sent", "sent"]
    assert len(hall.adapter.tried) == 2


async def test_a_begin_of_unknown_outcome_is_begun_again(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error came after the commit: nothing was sent, so it is surely not sent twice."""
    monkeypatch.setattr(delivery, "STORE_RETRY_SECONDS", 0.01)
    await owe(hall, "one")
    with failing(hall.db.outbox, "begin", 2, after=True):
        async with hall.running():
            assert await hall.sent(1) == ["one"]
    assert len(hall.adapter.tried) == 1
    assert states(elsewhere) == ["sent"]


@pytest.mark.parametrize("method", ["recover", "due", "next_due", "begin"])
async def test_a_store_that_fails_for_a_while_ends_nothing(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """At the start and later: delivery goes on as soon as it can."""
    monkeypatch.setattr(delivery, "STORE_RETRY_SECONDS", 0.01)
    await owe(hall, "one")
    with failing(hall.db.outbox, method, 3):
        async with hall.running():
            assert await hall.sent(1) == ["one"]


async def test_a_send_left_by_a_dead_process_is_settled_as_unknown_and_sent_again(
    hall: Hall, elsewhere: Elsewhere
) -> None:
    """Once, and the store has counted it; a live process's send is left alone."""
    await owe(hall, "dead", to=place("1"))
    await owe(hall, "alive", to=place("2"))
    elsewhere("UPDATE outbox SET rendered = '{}', state = 'sending', holder = 'gone', attempts = 1 WHERE body = 'dead'")
    elsewhere(
        "UPDATE outbox SET rendered = '{}', state = 'sending', holder = ?, attempts = 1 WHERE body = 'alive'",
        hall.holder,
    )
    async with hall.running():
        await hall.until(lambda: _have(hall.adapter, 1))
    dead, alive = parts(elsewhere)
    assert (dead["state"], dead["resends"]) == ("sent", 1)
    assert alive["state"] == "sending"
    assert hall.adapter.texts == ["dead"]


async def test_a_process_that_seemed_alive_at_the_start_is_seen_to_be_dead_later(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed container's process is judged by its last beat, which may be fresh when the next one starts."""
    monkeypatch.setattr(delivery, "RECOVER_SECONDS", 0.0)
    other = await hall.db.processes.register("gateway", [])
    await owe(hall, "one")
    elsewhere("UPDATE outbox SET rendered = '{}', state = 'sending', holder = ?", other)
    async with hall.running():
        await hall.db.processes.beat(hall.holder)
        assert hall.adapter.sent == []
        elsewhere("UPDATE processes SET boot_id = 'another' WHERE token = ?", other)
        assert await hall.sent(1) == ["one"]


async def test_a_split_that_a_kill_cut_off_is_done_again_whole(hall: Hall, elsewhere: Elsewhere) -> None:
    """Before it nothing has happened, after it every part is there; a second one changes nothing."""
    await owe(hall, f"one{PART}two")
    with failing(hall.db.outbox, "begin", 1000, after=True):
        async with hall.running():
            await hall.until(lambda: _rows(hall, 2))
            hall.delivery.halt()
    assert [row["body"] for row in parts(elsewhere)] == ["one", "two"]
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as following, following.running():
        assert await following.sent(2) == ["one", "two"]
    assert states(elsewhere) == ["sent", "sent"]


async def _rows(hall: Hall, count: int) -> bool:
    return sum((await hall.db.outbox.counts()).values()) >= count


async def test_closing_sends_what_is_due_and_leaves_what_must_wait(hall: Hall, elsewhere: Elsewhere) -> None:
    """A drain does not wait for flood control."""
    hall.adapter.outcomes.append(RetryLater("slow down", 3600.0))
    await owe(hall, "later")
    await owe(hall, "now", to=place("43"))
    async with hall.running():
        pass
    assert hall.delivery.ended.is_set()
    assert states(elsewhere) == ["waiting", "sent"]


async def test_halting_begins_no_send_and_writes_the_receipts_of_those_under_way(
    hall: Hall, elsewhere: Elsewhere
) -> None:
    """What was being sent is known, what was not begun waits."""
    hall.adapter.gate.clear()
    await owe(hall, "under way", "next")
    async with hall.running():
        await hall.until(lambda: _sending(hall))
        hall.delivery.halt()
        hall.adapter.gate.set()
    assert states(elsewhere) == ["sent", "waiting"]


async def _sending(hall: Hall, count: int = 1) -> bool:
    return hall.adapter.sending == count


async def test_halting_with_a_broken_store_ends_all_the_same(hall: Hall, elsewhere: Elsewhere) -> None:
    """The receipt is lost with the process: an unknown outcome for the next start."""
    hall.adapter.gate.clear()
    await owe(hall, "one")
    with failing(hall.db.outbox, "sent", 1000, StoreFull):
        async with hall.running():
            await hall.until(lambda: _sending(hall))
            hall.delivery.halt()
            hall.adapter.gate.set()
    assert states(elsewhere) == ["sending"]


async def test_a_row_that_nobody_can_read_has_failed_and_stops_nothing(hall: Hall, elsewhere: Elsewhere) -> None:
    """A damaged form is not the end of the gateway, and not tried for ever."""
    await owe(hall, "bad", "good")
    elsewhere("UPDATE outbox SET rendered = '{no json' WHERE body = 'bad'")
    async with hall.running():
        assert await hall.sent(1) == ["good"]
    first, _ = parts(elsewhere)
    assert first["state"] == "failed"
    assert "could not be sent" in first["error"]
