"""The ticket: one holder, bounded waits, late wins given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_store.ticket import Ticket

SHORT = 0.05
LONG = 20.0


@pytest.fixture
def tickets(tmp_path: Path) -> Iterator[Callable[..., Ticket]]:
    """Make tickets of one lock file, as several processes would; all are closed at the end."""
    made: list[Ticket] = []

    def make(*, patient: bool = False) -> Ticket:
        made.append(Ticket(tmp_path / "state.db.lock", patient=patient))
        return made[-1]

    yield make
    for ticket in made:
        ticket.close()


def no_helper_waits() -> None:
    """Wait until all helper threads have ended."""
    for thread in threading.enumerate():
        if thread.name == "threadline-ticket":
            thread.join(LONG)
            assert not thread.is_alive()


def test_only_one_holds_it(tickets: Callable[..., Ticket]) -> None:
    """While one holds the ticket another waits its time and goes on without."""
    holder, other = tickets(), tickets()
    assert holder.acquire(SHORT)

    assert not other.acquire(SHORT)

    holder.release()


def test_a_waiter_gets_it_when_it_is_released(tickets: Callable[..., Ticket]) -> None:
    """Waiting ends with the release, not with the time limit."""
    holder, other = tickets(), tickets()
    assert holder.acquire(SHORT)
    results: list[bool] = []
    waiter = threading.Thread(target=lambda: results.append(other.acquire(LONG)))
    waiter.start()
    while not any(thread.name == "threadline-ticket" for thread in threading.enumerate()):
        time.sleep(0.001)
    holder.release()
    waiter.join(LONG)

    assert results == [True]
    assert not holder.acquire(SHORT)


def test_a_stopped_holder_costs_one_wait_only(tickets: Callable[..., Ticket]) -> None:
    """While the first wait still stands, further ones are skipped at once."""
    holder, other = tickets(), tickets()
    assert holder.acquire(SHORT)
    assert not other.acquire(SHORT)

    started = threading.active_count()
    assert not other.acquire(LONG * 100)  # would outlast the test if it waited
    assert threading.active_count() == started

    holder.release()


def test_a_late_win_is_given_back(tickets: Callable[..., Ticket]) -> None:
    """What nobody waits for any more must not stay locked."""
    holder, late, third = tickets(), tickets(), tickets()
    assert holder.acquire(SHORT)
    assert not late.acquire(SHORT)
    holder.release()
    no_helper_waits()

    assert third.acquire(SHORT)
    third.release()
    assert late.acquire(SHORT)


def test_a_patient_ticket_joins_its_own_wait(tickets: Callable[..., Ticket]) -> None:
    """In safe mode nobody may write without the ticket, so a second call waits on."""
    holder, patient = tickets(), tickets(patient=True)
    assert holder.acquire(SHORT)
    assert not patient.acquire(SHORT)
    threading.Timer(SHORT, holder.release).start()

    assert patient.acquire(LONG)


def test_closing_while_the_helper_waits_leaves_nothing_locked(tickets: Callable[..., Ticket]) -> None:
    """The helper closes the file itself when its wait ends."""
    holder, gone, third = tickets(), tickets(), tickets()
    assert holder.acquire(SHORT)
    assert not gone.acquire(SHORT)
    gone.close()
    holder.close()
    no_helper_waits()

    assert third.acquire(SHORT)


def test_a_lock_file_that_cannot_be_made_is_no_failure(tmp_path: Path) -> None:
    """The ticket is manners only."""
    assert not Ticket(tmp_path / "missing" / "lock", patient=False).acquire(SHORT)


def test_the_lock_file_is_private_and_empty(tickets: Callable[..., Ticket], tmp_path: Path) -> None:
    """It carries no state."""
    assert tickets().acquire(SHORT)

    assert (tmp_path / "state.db.lock").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state.db.lock").stat().st_size == 0
