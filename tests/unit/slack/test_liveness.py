"""Suspecting a socket by the echoes of our own posts."""

from __future__ import annotations

import pytest

import adapters.slack.liveness as liveness_module
from adapters.slack.liveness import ECHO_SECONDS, Echoes


class Clock:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """Return the set time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that echoes are measured by."""
    clock = Clock()
    monkeypatch.setattr(liveness_module, "time", clock)
    return clock


@pytest.fixture
def echoes() -> Echoes:
    """An account that is told of its posts in direct chats."""
    echoes = Echoes()
    echoes.heard(("D1", "1.0"))
    return echoes


def test_a_missing_echo_is_suspicious_once(clock: Clock, echoes: Echoes) -> None:
    """After that, nothing is judged until an echo has come again."""
    echoes.posted("D1", "2.0")
    clock.now += ECHO_SECONDS - 1
    assert not echoes.overdue()
    clock.now += 1
    assert echoes.overdue()

    echoes.posted("D1", "3.0")
    clock.now += 2 * ECHO_SECONDS
    assert not echoes.overdue()


def test_an_echo_that_came_first_is_not_missed(clock: Clock, echoes: Echoes) -> None:
    """The event may be faster than the answer to the post."""
    echoes.heard(("D1", "2.0"))
    echoes.posted("D1", "2.0")
    clock.now += 2 * ECHO_SECONDS

    assert not echoes.overdue()


def test_any_event_is_a_sign_of_life(clock: Clock, echoes: Echoes) -> None:
    """Somebody else's words came over the socket, too."""
    echoes.posted("D1", "2.0")
    clock.now += 1
    echoes.heard(None)
    clock.now += 2 * ECHO_SECONDS

    assert not echoes.overdue()


def test_nothing_is_expected_where_no_echo_ever_came(clock: Clock, echoes: Echoes) -> None:
    """An app may be told of mentions in channels only."""
    echoes.posted("C1", "2.0")
    clock.now += 2 * ECHO_SECONDS

    assert not echoes.overdue()
