"""The feed of live text."""

from __future__ import annotations

from gateway.live import MAX_NOTICE_SESSIONS, MAX_NOTICES, MAX_TEXT, MAX_TURNS, LiveFeed


def test_a_reader_sees_the_newest_state_and_not_a_queue() -> None:
    """However often something is published between two looks, there is one text to read."""
    feed = LiveFeed()
    for length in range(1000):
        feed.publish("s", "t1", "x" * length)
    live = feed.text("s")

    assert live is not None
    assert (live.turn_id, live.text) == ("t1", "x" * 999)


def test_every_change_wakes_the_readers_of_that_session_only() -> None:
    """Text, the end of the turn and notices wake; other sessions and former readers do not."""
    feed = LiveFeed()
    woken: list[str] = []
    with feed.subscribe("s", lambda: woken.append("first")), feed.subscribe("s", lambda: woken.append("second")):
        feed.publish("s", "t1", "a")
        feed.publish("other", "t2", "a")
        feed.finish("s", "t1")
        feed.notice("s", "note")
    feed.publish("s", "t3", "b")

    assert woken == ["first", "second"] * 3


def test_the_end_of_an_older_turn_does_not_end_the_newer_one() -> None:
    """A late `finish` names a turn that is not live any more."""
    feed = LiveFeed()
    feed.publish("s", "t1", "old")
    feed.publish("s", "t2", "new")
    feed.finish("s", "t1")
    live = feed.text("s")

    assert live is not None
    assert live.text == "new"
    feed.finish("s", "t2")
    assert feed.text("s") is None


def test_versions_tell_texts_apart_even_when_they_are_equal() -> None:
    """A reader knows by the version alone whether it has seen the state."""
    feed = LiveFeed()
    feed.publish("s", "t1", "same")
    first = feed.text("s")
    feed.publish("s", "t1", "same")
    second = feed.text("s")

    assert first is not None
    assert second is not None
    assert second.version > first.version


def test_nothing_grows_without_bound() -> None:
    """Turns that never end, endless answers and talkative commands are all cut at their limits."""
    feed = LiveFeed()
    for number in range(MAX_TURNS + 10):
        feed.publish(f"s{number}", "t", "y" * (MAX_TEXT + 10))
    for number in range(MAX_NOTICE_SESSIONS + 10):
        for _ in range(MAX_NOTICES + 10):
            feed.notice(f"n{number}", "note")
    newest = feed.text(f"s{MAX_TURNS + 9}")

    assert newest is not None
    assert len(newest.text) == MAX_TEXT
    assert feed.text("s0") is None
    assert feed.notices("n0") == []
    assert len(feed.notices(f"n{MAX_NOTICE_SESSIONS + 9}")) == MAX_NOTICES


def test_the_same_command_answered_again_replaces_its_notice() -> None:
    """A repeated sending shows one answer; other notices stay."""
    feed = LiveFeed()
    feed.notice("s", "first", reply_to="c1")
    feed.notice("s", "other")
    seen = feed.notices("s")[-1].number
    feed.notice("s", "again", reply_to="c1", goto="s2")

    assert [notice.text for notice in feed.notices("s")] == ["other", "again"]
    assert [(notice.text, notice.goto) for notice in feed.notices("s", after=seen)] == [("again", "s2")]
