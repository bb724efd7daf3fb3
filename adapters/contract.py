"""The adapter contract as checks that every adapter passes: real client library, its platform's emulator, no gateway.

A platform implements `Bench` with the server that it is tested against, and its test file says:

    class TestTelegram(AdapterContract):
        @pytest.fixture
        async def bench(self) -> AsyncIterator[Bench]: ...

Contract: each `test_` method of `AdapterContract` is one promise of `adapters.base`; it makes its own adapters and
stops them. What is broken is an AssertionError whose sentence names the promise.
Limits: what only one platform has is for that platform's own tests; a wait that does not end is ended after PATIENCE.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from adapters.base import (
    Adapter,
    AdapterState,
    CatchesUp,
    Gone,
    InboundMessage,
    OutboundPart,
    Place,
    Refused,
    Reports,
    RetryLater,
    SendError,
    UnknownOutcome,
    Unreadable,
    Verdict,
)

__all__ = ["PATIENCE", "STOP_SECONDS", "AdapterContract", "Bench", "Journal", "Said"]

#: Seconds that anything may take that is waited for here.
PATIENCE = 20.0
#: Seconds that `Adapter.stop` may take, with a little for a busy machine.
STOP_SECONDS = 5.5

_WORDS = " ".join(f"w{number}" for number in range(4000))
_LONG = {
    "plain words": _WORDS,
    "emphasis over everything": f"**{_WORDS}**",
    "a code block": "```py\n" + _WORDS.replace(" ", "\n") + "\n```",
    "characters outside the basic plane": " ".join(f"w{number}😀😀" for number in range(2500)),
    "characters that markup must escape": " ".join(f"w{number}<&_*>" for number in range(2500)),
}


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
        """Let sends go wrong so that this kind must be raised. UnknownOutcome: they are taken, but no answer comes."""
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


class AdapterContract:
    """The promises, one each; subclasses give the fixture `bench`."""

    async def test_a_message_says_where_it_came_from(self, bench: Bench) -> None:
        """Each kind of place, with the key that names the message for ever; all are different."""
        journal = Journal()
        async with _running(bench, journal):
            said = {
                f"from {number}": await bench.say(place, f"from {number}") for number, place in enumerate(bench.places)
            }
            await bench.until(lambda: all(journal.of(text) for text in said))
        for text, one in said.items():
            (message, *_) = journal.of(text)
            _same(message.place, one.place, "a message carries the place that it was said in")
            _same(message.kind, "message", "words are a message")
            _check(message.sender.user_id, "a person has an id")
            _check(not one.key or message.dedupe_key == one.key, f"the key {message.dedupe_key!r} is not {one.key!r}")
        first = [journal.of(text)[0] for text in said]
        told_apart = len({message.place for message in first}), len({message.dedupe_key for message in first})
        _same(told_apart, (len(said), len(said)), "places are told apart, and so are messages")

    async def test_a_command_has_the_place_of_a_message(self, bench: Bench) -> None:
        """However the platform brings it, so that both mean the same conversation and the same person."""
        journal = Journal()
        direct = bench.places[0]
        async with _running(bench, journal):
            message = await bench.say(direct, "a message")
            command = await bench.command(replace(direct, thread=message.place.thread), "new", "Trip")
            await bench.until(lambda: journal.of("a message") and journal.of("/new Trip"))
        (said, *_), (called, *_) = journal.of("a message"), journal.of("/new Trip")
        _same(called.kind, "command", "a command is one")
        _same(called.place, command.place, "a command carries the place that it was given in")
        _same(called.place, said.place, "a command belongs where a message belongs")
        _same(called.sender.user_id, said.sender.user_id, "a person is the same with a command")
        _check(called.addressed, "a command is meant for the account")

    async def test_an_opened_thread_is_the_place_of_its_messages(self, bench: Bench) -> None:
        """Also for a process that did not open it."""
        journal = Journal()
        async with _running(bench, journal) as adapter:
            if not adapter.capabilities.threads:
                return
            room = (await _heard(bench, journal, bench.places[-1], "before")).place
            opened = await adapter.open_thread(room, "A thread")
            _check(opened != room, "an opened thread is another place")
            here = await _heard(bench, journal, opened, "here")
        async with _running(bench, journal, known=journal.taken):
            later = await _heard(bench, journal, opened, "later")
        _same((here.place, later.place), (opened, opened), "messages of a thread carry the place that was opened")

    async def test_a_reply_goes_to_exactly_its_place(self, bench: Bench) -> None:
        """An answer to each kind of place stands there and nowhere else; its receipt names it."""
        journal = Journal()
        async with _running(bench, journal) as adapter:
            wanted = []
            for number, place in enumerate(bench.places):
                message = await _heard(bench, journal, place, f"from {number}")
                receipt = await adapter.send(
                    message.place, OutboundPart(plain=f"to {number}", reply_to=message.message_id)
                )
                _check(receipt.message_id, "a receipt names the message")
                wanted.append((message.place, f"to {number}"))
            _same([(place, text.strip()) for place, text in bench.sent], wanted, "a reply goes to its place")

    async def test_a_long_answer_is_split_within_the_limits_and_complete(self, bench: Bench) -> None:
        """Rendering is the same each time, no part is too long or refused, every word arrives, in order."""
        journal = Journal()
        async with _running(bench, journal) as adapter:
            place = (await _heard(bench, journal, bench.places[0], "hello")).place
            for what, text in _LONG.items():
                parts = adapter.render(text)
                _same(adapter.render(text), parts, f"{what}: rendering is deterministic")
                for part in parts:
                    _check(0 < _length(adapter, part.plain) <= adapter.capabilities.max_length, f"{what}: too long")
                before = len(bench.sent)
                for part in parts:
                    await adapter.send(place, part)
                wanted = re.findall(r"w\d+", text)
                _same(re.findall(r"w\d+", " ".join(part.plain for part in parts)), wanted, f"{what}: plain is whole")
                arrived = "\n".join(sent for _, sent in bench.sent[before:])
                _same(re.findall(r"w\d+", arrived), wanted, f"{what}: what arrives is whole")

    async def test_each_kind_of_error_is_told(self, bench: Bench) -> None:
        """And is about that send alone: nothing of it arrived, and the next one goes out."""
        journal = Journal()
        kinds: tuple[type[SendError], ...] = (RetryLater, Gone, Refused)
        async with _running(bench, journal) as adapter:
            place = (await _heard(bench, journal, bench.places[0], "hello")).place
            for number, kind in enumerate(kinds):
                before = len(bench.sent)
                bench.fail(kind)
                part = OutboundPart(plain=f"answer {number}", idempotency_key=f"k{number}")
                error = await _failing(adapter, place, part)
                _same(type(error), kind, "a refusal is of the kind that it means")
                _same(len(bench.sent), before, f"{kind.__name__} means that nothing was sent")
                _check(not isinstance(error, RetryLater) or error.delay > 0, "a wait is named")
                _check(not any(secret in str(error) for secret in bench.secrets), "an error shows no secret")
                bench.heal()
                await adapter.send(place, part)
            _same(len(bench.sent), len(kinds), "after an error the next send goes out")

    async def test_an_unknown_outcome_is_called_unknown(self, bench: Bench) -> None:
        """And a repeat under the same key is the same message, where the account claims so."""
        journal = Journal()
        part = OutboundPart(plain="answer", idempotency_key="k1")
        async with _running(bench, journal) as adapter:
            place = (await _heard(bench, journal, bench.places[0], "hello")).place
            bench.fail(UnknownOutcome)
            error = await _failing(adapter, place, part)
            _same(type(error), UnknownOutcome, "nobody knows, and nobody says otherwise")
            await bench.until(lambda: len(bench.sent) == 1)
            bench.heal()
            await adapter.send(place, part)
            _check(not adapter.capabilities.idempotent_send or len(bench.sent) == 1, "a key makes one message")

    async def test_nothing_is_confirmed_before_it_was_taken(self, bench: Bench) -> None:
        """While `deliver` runs the platform is told nothing; afterwards it is."""
        journal = Journal()
        journal.held = {"slow"}
        async with _running(bench, journal):
            said = await bench.say(bench.places[0], "slow")
            await bench.until(lambda: journal.tries("slow"))
            _check(not await bench.confirmed(said), "nothing is confirmed before deliver has returned")
            journal.let_go.set()
            await bench.until(lambda: journal.of("slow"))
            await _confirmed(bench, said)

    async def test_what_was_not_taken_comes_again_under_its_key(self, bench: Bench) -> None:
        """After a failure, and after a restart in the middle of a delivery."""
        journal = Journal()
        direct = bench.places[0]
        async with _running(bench, journal):
            first = await _heard(bench, journal, direct, "first")
            journal.failing = {"again"}
            said = await bench.say(replace(direct, thread=first.place.thread), "again")
            await bench.until(lambda: len(journal.tries("again")) > 1)
            _check(not await bench.confirmed(said), "what could not be taken is not confirmed")
            journal.held = {"again"}
        journal.failing, journal.held = set(), set()
        async with _running(bench, journal, known=[first]):
            await bench.until(lambda: journal.of("again"))
            await _confirmed(bench, said)
        keys = {message.dedupe_key for message in journal.tries("again")}
        _same(len(keys), 1, "a message keeps its key however often it comes")
        _check(first.dedupe_key not in keys, "two messages have two keys")

    async def test_one_chat_keeps_its_order(self, bench: Bench) -> None:
        """What one person says in one place is delivered as it was said."""
        journal = Journal()
        said = [f"word {number}" for number in range(10)]
        async with _running(bench, journal):
            thread = (await _heard(bench, journal, bench.places[0], "hello")).place.thread
            for text in said:
                await bench.say(replace(bench.places[0], thread=thread), text)
            await bench.until(lambda: all(journal.of(text) for text in said))
        _same([message.text for message in journal.taken if message.text in said], said, "a chat keeps its order")

    async def test_malformed_events_are_set_aside_and_the_rest_goes_on(self, bench: Bench) -> None:
        """Each is recorded where the account reports them, without secrets; the messages around them are delivered."""
        journal = Journal()
        async with _running(bench, journal) as adapter:
            await _heard(bench, journal, bench.places[0], "before")
            count = await bench.malformed()
            await _heard(bench, journal, bench.places[0], "after")
            if isinstance(adapter, Reports):
                await bench.until(lambda: len(journal.unreadable) >= count)
            _same(adapter.state, AdapterState.CONNECTED, "an account outlives what it cannot read")
        _same({message.text for message in journal.taken}, {"before", "after"}, "nothing is made of malformed events")
        for event in journal.unreadable:
            _same((event.platform, event.account), (adapter.platform, adapter.account), "a record says whose it is")
            shown = f"{event.reason} {event.raw}"
            _check(not any(secret in shown for secret in bench.secrets), "a record shows no secret")

    async def test_stop_takes_seconds_with_everything_in_flight(self, bench: Bench) -> None:
        """Deliveries that do not return and sends that are not answered; of these nobody says that they arrived."""
        journal = Journal()
        journal.held = {"stuck"}
        async with _running(bench, journal) as adapter:
            place = (await _heard(bench, journal, bench.places[0], "hello")).place
            await bench.say(place, "stuck")
            await bench.until(lambda: journal.tries("stuck"))
            bench.hang()
            before = bench.attempts
            sends = [
                asyncio.create_task(_failing(adapter, place, OutboundPart(plain=f"a{number}"))) for number in range(3)
            ]
            await bench.until(lambda: bench.attempts > before)
            async with asyncio.timeout(STOP_SECONDS):
                await adapter.stop()
            async with asyncio.timeout(PATIENCE):
                errors = await asyncio.gather(*sends)
            _same(adapter.state, AdapterState.STOPPED, "a stopped account says so")
            kinds = {type(error) for error in errors}
            _check(UnknownOutcome in kinds, "a send that was cut has an unknown outcome")
            _check(kinds <= {UnknownOutcome, RetryLater}, "a send that was cut is unknown, or had not begun")


@asynccontextmanager
async def _running(bench: Bench, journal: Journal, *, known: Sequence[InboundMessage] = ()) -> AsyncIterator[Adapter]:
    """A started adapter, stopped at the end. known: what an earlier one has delivered."""
    adapter = bench.make()
    if isinstance(adapter, Reports):
        adapter.report_to(journal.report)
    if isinstance(adapter, CatchesUp):
        adapter.resume_from({message.place: message.message_id for message in known})
    try:
        async with asyncio.timeout(PATIENCE):
            await adapter.start(journal.deliver)
        _same((adapter.state, adapter.problem), (AdapterState.CONNECTED, None), "a started account is connected")
        yield adapter
    finally:
        async with asyncio.timeout(STOP_SECONDS):
            await adapter.stop()


async def _heard(bench: Bench, journal: Journal, place: Place, text: str) -> InboundMessage:
    """Say something, and return the message once it was taken."""
    await bench.say(place, text)
    await bench.until(lambda: journal.of(text))
    return journal.of(text)[0]


async def _failing(adapter: Adapter, place: Place, part: OutboundPart) -> SendError:
    """Send, and return the error."""
    try:
        receipt = await adapter.send(place, part)
    except SendError as error:
        return error
    raise AssertionError(f"the platform did not take it, but there is a receipt: {receipt}")


async def _confirmed(bench: Bench, said: Said) -> None:
    """Wait until the platform was told, where platforms are told."""
    async with asyncio.timeout(PATIENCE):
        while await bench.confirmed(said) is False:  # noqa: ASYNC110  (the platform does not say when)
            await asyncio.sleep(0.02)


def _length(adapter: Adapter, text: str) -> int:
    return len(text.encode("utf-16-le")) // 2 if adapter.capabilities.length_unit == "utf16" else len(text)


def _check(holds: object, promise: str) -> None:
    if not holds:
        raise AssertionError(promise)


def _same(found: object, wanted: object, promise: str) -> None:
    if found != wanted:
        raise AssertionError(f"{promise}\n  found:  {str(found)[:2000]}\n  wanted: {str(wanted)[:2000]}")
