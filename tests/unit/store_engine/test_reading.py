"""The readers: consistent, fair, bounded, unable to write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from session_store import InvalidArgument, SessionDB, StoreBusy, StoreError, StoreLost, StoreReadOnly, StoreUnreadable
from session_store.engine import StoreEngine
from session_store.opening import open_reader
from session_store.tx import Rx
from tests.conftest import Elsewhere

FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


async def test_a_query_that_takes_too_long_is_stopped(engine: StoreEngine) -> None:
    """The caller is told within its time and the connection is free again."""
    for _ in range(3):
        with pytest.raises(StoreBusy, match="too long"):
            await engine.read(lambda rx: rx.value(FOREVER), timeout=0.05)

    assert await engine.read(lambda rx: rx.value("SELECT 7")) == 7


async def test_a_cancelled_query_is_stopped_too(engine: StoreEngine) -> None:
    """Otherwise it would keep one of the two readers for ever."""
    for _ in range(4):
        started = threading.Event()

        def query(rx: Rx, started: threading.Event = started) -> Any:
            started.set()
            return rx.value(FOREVER)

        reading = asyncio.create_task(engine.read(query))
        await asyncio.to_thread(started.wait, 10)
        await asyncio.sleep(0.01)  # the statement itself has begun
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    assert await engine.read(lambda rx: rx.value("SELECT 7"), timeout=5) == 7


async def test_a_reader_cannot_write(engine: StoreEngine) -> None:
    """Not by mistake and not by design: there is one writer."""
    with pytest.raises(StoreReadOnly):
        await engine.read(lambda rx: rx.one("INSERT INTO state_meta (key) VALUES ('k') RETURNING key"))


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (lambda rx: rx.value("SELECT nothing"), StoreError),
        (lambda rx: rx.value("SELECT ?", (2**70,)), InvalidArgument),
        (lambda _: next(iter(())), RuntimeError),
        (lambda _: {}.popitem(), KeyError),
    ],
)
async def test_a_query_gets_its_own_error(
    engine: StoreEngine, query: Callable[[Rx], Any], kind: type[Exception]
) -> None:
    """Errors of the database come as ours, bugs as what they are; the readers go on."""
    for _ in range(3):
        with pytest.raises(kind):
            await engine.read(query, timeout=5)

    assert await engine.read(lambda rx: rx.value("SELECT 7")) == 7


async def test_a_query_sees_one_state_from_its_first_to_its_last_statement(
    engine: StoreEngine, elsewhere: Elsewhere
) -> None:
    """Another process commits between two statements of a query: the query does not notice."""
    await engine.write(lambda tx: tx.insert("INSERT INTO state_meta (key, value) VALUES ('k', 'before')"))

    def query(rx: Rx) -> tuple[Any, Any]:
        first = rx.value("SELECT value FROM state_meta WHERE key = 'k'")
        elsewhere("UPDATE state_meta SET value = 'after' WHERE key = 'k'")
        return first, rx.value("SELECT value FROM state_meta WHERE key = 'k'")

    assert await engine.read(query) == ("before", "before")
    assert await engine.read(lambda rx: rx.value("SELECT value FROM state_meta WHERE key = 'k'")) == "after"


async def test_readers_serve_in_the_order_of_asking(engine: StoreEngine) -> None:
    """A caller that asks again and again does not push others back."""
    order: list[int] = []
    gate = threading.Event()

    def wait_at_the_gate(_: Rx) -> None:
        assert gate.wait(30)

    def note(number: int) -> Callable[[Rx], None]:
        return lambda _: order.append(number)

    holder = asyncio.create_task(engine.read(wait_at_the_gate))  # leaves one connection for all others
    await asyncio.sleep(0)
    others = []
    for number in range(10):
        others.append(asyncio.create_task(engine.read(note(number))))
        await asyncio.sleep(0)
    await asyncio.gather(*others)
    gate.set()
    await holder

    assert order == list(range(10))


async def test_waiting_for_a_reader_is_bounded(engine: StoreEngine) -> None:
    """The time limit covers the wait as well."""
    gate = threading.Event()
    holders = [asyncio.create_task(engine.read(lambda _: gate.wait(30))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(StoreBusy, match="readers were busy"):
        await engine.read(lambda rx: rx.value("SELECT 1"), timeout=0.05)
    gate.set()
    await asyncio.gather(*holders)


async def test_text_of_other_tools_that_is_not_utf_8_is_readable(engine: StoreEngine, elsewhere: Elsewhere) -> None:
    """It comes back with replacement characters, from readers and inside operations."""
    elsewhere("INSERT INTO state_meta (key, value) VALUES ('k', CAST(x'6162ff63' AS TEXT))")

    assert await engine.read(lambda rx: rx.value("SELECT value FROM state_meta WHERE key = 'k'")) == "ab\ufffdc"
    assert await engine.write(lambda tx: tx.value("SELECT value FROM state_meta WHERE key = 'k'")) == "ab\ufffdc"


async def test_a_connection_that_met_a_disk_error_is_replaced(
    engine: StoreEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next query opens a new one."""
    opened: list[Path] = []

    def counting(files: Any) -> Any:
        opened.append(files.path)
        return open_reader(files)

    monkeypatch.setattr("session_store.readers.open_reader", counting)

    def fails(rx: Rx) -> None:
        rx.value("SELECT 1")
        raise StoreUnreadable

    for expected in (1, 2):
        with pytest.raises(StoreError):
            await engine.read(fails)
        assert len(opened) == expected
    await engine.read(lambda rx: rx.value("SELECT 1"))
    await engine.read(lambda rx: rx.value("SELECT 1"))
    assert len(opened) == 3


async def test_reading_goes_on_while_the_writer_writes(engine: StoreEngine) -> None:
    """A long transaction holds up no reader."""
    gate = threading.Event()
    writing = asyncio.create_task(engine.write(lambda _: gate.wait(30)))

    assert await engine.read(lambda rx: rx.value("SELECT 7"), timeout=5) == 7

    gate.set()
    await writing


async def test_a_lost_file_is_told_to_readers(db: SessionDB, home: Path) -> None:
    """They would go on reading what nobody else sees any more."""
    await db.create_session("s", "cli")
    (home / "state.db").rename(home / "aside")
    with pytest.raises(StoreLost, match="Put it back"):
        await db.get_session("s")
    (home / "aside").rename(home / "state.db")

    assert await db.get_session("s") is not None
