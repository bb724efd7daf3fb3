"""What comes in: where it was said, under which key, confirmed when, in which order."""

from __future__ import annotations

from dataclasses import replace

from adapters.base import AdapterState, Reports
from adapters.contract.bench import Bench, Journal, check, confirmed, heard, running, same

__all__ = ["InboundChecks"]


class InboundChecks:
    """What comes in."""

    async def test_a_message_says_where_it_came_from(self, bench: Bench) -> None:
        """Each kind of place, with the key that names the message for ever; all are different."""
        journal = Journal()
        async with running(bench, journal):
            said = {
                f"from {number}": await bench.say(place, f"from {number}") for number, place in enumerate(bench.places)
            }
            await bench.until(lambda: all(journal.of(text) for text in said))
        for text, one in said.items():
            (message, *_) = journal.of(text)
            same(message.place, one.place, "a message carries the place that it was said in")
            same(message.kind, "message", "words are a message")
            check(message.sender.user_id, "a person has an id")
            check(not one.key or message.dedupe_key == one.key, f"the key {message.dedupe_key!r} is not {one.key!r}")
        first = [journal.of(text)[0] for text in said]
        told_apart = len({message.place for message in first}), len({message.dedupe_key for message in first})
        same(told_apart, (len(said), len(said)), "places are told apart, and so are messages")

    async def test_a_command_has_the_place_of_a_message(self, bench: Bench) -> None:
        """However the platform brings it, so that both mean the same conversation and the same person."""
        journal = Journal()
        direct = bench.places[0]
        async with running(bench, journal):
            message = await bench.say(direct, "a message")
            command = await bench.command(replace(direct, thread=message.place.thread), "new", "Trip")
            await bench.until(lambda: journal.of("a message") and journal.of("/new Trip"))
        (said, *_), (called, *_) = journal.of("a message"), journal.of("/new Trip")
        same(called.kind, "command", "a command is one")
        same(called.place, command.place, "a command carries the place that it was given in")
        same(called.place, said.place, "a command belongs where a message belongs")
        same(called.sender.user_id, said.sender.user_id, "a person is the same with a command")
        check(called.addressed, "a command is meant for the account")

    async def test_nothing_is_confirmed_before_it_was_taken(self, bench: Bench) -> None:
        """While `deliver` runs the platform is told nothing; afterwards it is."""
        journal = Journal()
        journal.held = {"slow"}
        async with running(bench, journal):
            said = await bench.say(bench.places[0], "slow")
            await bench.until(lambda: journal.tries("slow"))
            check(not await bench.confirmed(said), "nothing is confirmed before deliver has returned")
            journal.let_go.set()
            await bench.until(lambda: journal.of("slow"))
            await confirmed(bench, said)

    async def test_what_was_not_taken_comes_again_under_its_key(self, bench: Bench) -> None:
        """After a failure, and after a restart in the middle of a delivery."""
        journal = Journal()
        direct = bench.places[0]
        async with running(bench, journal):
            first = await heard(bench, journal, direct, "first")
            journal.failing = {"again"}
            said = await bench.say(replace(direct, thread=first.place.thread), "again")
            await bench.until(lambda: len(journal.tries("again")) > 1)
            check(not await bench.confirmed(said), "what could not be taken is not confirmed")
            journal.held = {"again"}
        journal.failing, journal.held = set(), set()
        async with running(bench, journal, known=[first]):
            await bench.until(lambda: journal.of("again"))
            await confirmed(bench, said)
        keys = {message.dedupe_key for message in journal.tries("again")}
        same(len(keys), 1, "a message keeps its key however often it comes")
        check(first.dedupe_key not in keys, "two messages have two keys")

    async def test_one_chat_keeps_its_order(self, bench: Bench) -> None:
        """What one person says in one place is delivered as it was said."""
        journal = Journal()
        said = [f"word {number}" for number in range(10)]
        async with running(bench, journal):
            thread = (await heard(bench, journal, bench.places[0], "hello")).place.thread
            for text in said:
                await bench.say(replace(bench.places[0], thread=thread), text)
            await bench.until(lambda: all(journal.of(text) for text in said))
        same([message.text for message in journal.taken if message.text in said], said, "a chat keeps its order")

    async def test_malformed_events_are_set_aside_and_the_rest_goes_on(self, bench: Bench) -> None:
        """Each is recorded where the account reports them, without secrets; the messages around them are delivered."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            await heard(bench, journal, bench.places[0], "before")
            count = await bench.malformed()
            await heard(bench, journal, bench.places[0], "after")
            if isinstance(adapter, Reports):
                await bench.until(lambda: len(journal.unreadable) >= count)
            same(adapter.state, AdapterState.CONNECTED, "an account outlives what it cannot read")
        same({message.text for message in journal.taken}, {"before", "after"}, "nothing is made of malformed events")
        for event in journal.unreadable:
            same((event.platform, event.account), (adapter.platform, adapter.account), "a record says whose it is")
            shown = f"{event.reason} {event.raw}"
            check(not any(secret in shown for secret in bench.secrets), "a record shows no secret")
