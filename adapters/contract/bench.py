"""What the checks of the contract need: a platform as a test sees it, a journal of what was delivered, and helpers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from adapters.base import (
    Adapter,
    AdapterState,
    CatchesUp,
    InboundMessage,
    OutboundPart,
    Place,
    Reports,
    SendError,
    Unreadable,
    Verdict,
)

__all__ = [
    "PATIENCE",
    "STOP_SECONDS",
    "Bench",
    "Journal",
    "Said",
    "check",
    "confirmed",
    "failing",
    "heard",
    "length",
    "running",
    "same",
]

#: Seconds that anything may take that is waited for here.
PATIENCE = 20.0
#: Seconds that `Adapter.stop` may take, with a little for a busy machine.
STOP_SECONDS = 5.5


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a person said: where it must be delivered, and its platform's name for it (for the bench alone).

    key: the `dedupe_key` that it must carry, for ever; '' where only the platform knows it.
    """

    place: Place
    handle: object
    key: str = ""


class Bench(Protocol):
    """A platform with one account, `main`, as a test needs it."""

    @property
    def places(self) -> Sequence[Place]:
        """One place of each kind that the platform has, the direct chat first."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """What must never be shown."""
        ...

    @property
    def sent(self) -> Sequence[tuple[Place, str]]:
        """What the platform took from the account, in order: where it stands, and its words."""
        ...

    @property
    def attempts(self) -> int:
        """How many sends have reached the platform, with whatever outcome."""
        ...

    def make(self) -> Adapter:
        """Return a new adapter of the account, as a new process would make it."""
        ...

    async def say(self, place: Place, text: str) -> Said:
        """Let a person say something in a place; a place without thread begins a conversation, if that is how it is."""
        ...

    async def command(self, place: Place, name: str, argument: str) -> Said:
        """Let the same person give a command in a place, in the form that the platform has for commands."""
        ...

    async def malformed(self) -> int:
        """Bring events that cannot be read in the place that people talk in; returns how many."""
        ...

    async def confirmed(self, said: Said) -> bool | None:
        """Whether the platform was told that this was taken in; None where platforms are not told."""
        ...

    def fail(self, kind: type[SendError]) -> None:
        """Let sends and edits go wrong so that this kind must be raised; UnknownOutcome: taken, but no answer comes."""
        ...

    def remove(self) -> None:
        """Take the account's last message away, as a person would; of use where the account can edit."""
        ...

    def hang(self) -> None:
        """Let no send be answered any more."""
        ...

    def heal(self) -> None:
        """Let sends go well again."""
        ...

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Return once the condition holds; TimeoutError when it does not."""
        ...


class Journal:
    """A `deliver` that remembers. failing: texts that it cannot take; held: texts that it takes after `let_go`."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
        self.unreadable: list[Unreadable] = []
        self.failing: set[str] = set()
        self.held: set[str] = set()
        self.let_go = asyncio.Event()

    async def deliver(self, message: InboundMessage) -> Verdict:
        """Take a message, or fail, or wait; a key that is known is a duplicate."""
        self.tried.append(message)
        if message.text in self.held:
            await self.let_go.wait()
        if message.text in self.failing:
            raise OSError("disk full")
        known = message.dedupe_key in {taken.dedupe_key for taken in self.taken}
        self.taken.append(message)
        return Verdict.DUPLICATE if known else Verdict.ACCEPTED

    async def report(self, event: Unreadable) -> None:
        """Keep a record of what could not be read."""
        self.unreadable.append(event)

    def of(self, text: str) -> list[InboundMessage]:
        """What was taken with this text."""
        return [message for message in self.taken if message.text == text]

    def tries(self, text: str) -> list[InboundMessage]:
        """Every delivery of this text, taken or not."""
        return [message for message in self.tried if message.text == text]


@asynccontextmanager
async def running(bench: Bench, journal: Journal, *, known: Sequence[InboundMessage] = ()) -> AsyncIterator[Adapter]:
    """A started adapter, stopped at the end. known: what an earlier one has delivered."""
    adapter = bench.make()
    if isinstance(adapter, Reports):
        adapter.report_to(journal.report)
    if isinstance(adapter, CatchesUp):
        adapter.resume_from({message.place: message.message_id for message in known})
    try:
        async with asyncio.timeout(PATIENCE):
            await adapter.start(journal.deliver)
        same((adapter.state, adapter.problem), (AdapterState.CONNECTED, None), "a started account is connected")
        yield adapter
    finally:
        async with asyncio.timeout(STOP_SECONDS):
            await adapter.stop()


async def heard(bench: Bench, journal: Journal, place: Place, text: str) -> InboundMessage:
    """Say something, and return the message once it was taken."""
    await bench.say(place, text)
    await bench.until(lambda: journal.of(text))
    return journal.of(text)[0]


async def failing(adapter: Adapter, place: Place, part: OutboundPart) -> SendError:
    """Send, and return the error."""
    try:
        receipt = await adapter.send(place, part)
    except SendError as error:
        return error
    raise AssertionError(f"the platform did not take it, but there is a receipt: {receipt}")


async def confirmed(bench: Bench, said: Said) -> None:
    """Wait until the platform was told, where platforms are told."""
    async with asyncio.timeout(PATIENCE):
        while await bench.confirmed(said) is False:  # noqa: ASYNC110  (the platform does not say when)
            await asyncio.sleep(0.02)


def length(adapter: Adapter, text: str) -> int:
    """The length of a text as the platform counts it."""
    return len(text.encode("utf-16-le")) // 2 if adapter.capabilities.length_unit == "utf16" else len(text)


def check(holds: object, promise: str) -> None:
    """Fail with the promise that is broken, unless it holds."""
    if not holds:
        raise AssertionError(promise)


def same(found: object, wanted: object, promise: str) -> None:
    """Fail with the promise that is broken, and what was found, unless both are the same."""
    if found != wanted:
        raise AssertionError(f"{promise}\n  found:  {str(found)[:2000]}\n  wanted: {str(wanted)[:2000]}")
