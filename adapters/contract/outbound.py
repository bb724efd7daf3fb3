"""What goes out: to exactly its place, split within the limits, with one kind of error."""

from __future__ import annotations

import re

from adapters.base import Gone, OutboundPart, Refused, RetryLater, SendError, UnknownOutcome
from adapters.contract.bench import Bench, Journal, check, failing, heard, length, running, same

__all__ = ["OutboundChecks"]

_WORDS = " ".join(f"w{number}" for number in range(4000))
_LONG = {
    "plain words": _WORDS,
    "emphasis over everything": f"**{_WORDS}**",
    "a code block": "```py\n" + _WORDS.replace(" ", "\n") + "\n```",
    "characters outside the basic plane": " ".join(f"w{number}😀😀" for number in range(2500)),
    "characters that markup must escape": " ".join(f"w{number}<&_*>" for number in range(2500)),
}


class OutboundChecks:
    """What goes out."""

    async def test_an_opened_thread_is_the_place_of_its_messages(self, bench: Bench) -> None:
        """Also for a process that did not open it."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            if not adapter.capabilities.threads:
                return
            room = (await heard(bench, journal, bench.places[-1], "before")).place
            opened = await adapter.open_thread(room, "A thread")
            check(opened != room, "an opened thread is another place")
            here = await heard(bench, journal, opened, "here")
        async with running(bench, journal, known=journal.taken):
            later = await heard(bench, journal, opened, "later")
        same((here.place, later.place), (opened, opened), "messages of a thread carry the place that was opened")

    async def test_a_reply_goes_to_exactly_its_place(self, bench: Bench) -> None:
        """An answer to each kind of place stands there and nowhere else; its receipt names it."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            wanted = []
            for number, place in enumerate(bench.places):
                message = await heard(bench, journal, place, f"from {number}")
                receipt = await adapter.send(
                    message.place, OutboundPart(plain=f"to {number}", reply_to=message.message_id)
                )
                check(receipt.message_id, "a receipt names the message")
                wanted.append((message.place, f"to {number}"))
            same([(place, text.strip()) for place, text in bench.sent], wanted, "a reply goes to its place")

    async def test_a_long_answer_is_split_within_the_limits_and_complete(self, bench: Bench) -> None:
        """Rendering is the same each time, no part is too long or refused, every word arrives, in order."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            for what, text in _LONG.items():
                parts = adapter.render(text)
                same(adapter.render(text), parts, f"{what}: rendering is deterministic")
                for part in parts:
                    check(0 < length(adapter, part.plain) <= adapter.capabilities.max_length, f"{what}: too long")
                before = len(bench.sent)
                for part in parts:
                    await adapter.send(place, part)
                wanted = re.findall(r"w\d+", text)
                same(re.findall(r"w\d+", " ".join(part.plain for part in parts)), wanted, f"{what}: plain is whole")
                arrived = "\n".join(sent for _, sent in bench.sent[before:])
                same(re.findall(r"w\d+", arrived), wanted, f"{what}: what arrives is whole")

    async def test_each_kind_of_error_is_told(self, bench: Bench) -> None:
        """And is about that send alone: nothing of it arrived, and the next one goes out."""
        journal = Journal()
        kinds: tuple[type[SendError], ...] = (RetryLater, Gone, Refused)
        async with running(bench, journal) as adapter:
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            for number, kind in enumerate(kinds):
                before = len(bench.sent)
                bench.fail(kind)
                part = OutboundPart(plain=f"answer {number}", idempotency_key=f"k{number}")
                error = await failing(adapter, place, part)
                same(type(error), kind, "a refusal is of the kind that it means")
                same(len(bench.sent), before, f"{kind.__name__} means that nothing was sent")
                check(not isinstance(error, RetryLater) or error.delay > 0, "a wait is named")
                check(not any(secret in str(error) for secret in bench.secrets), "an error shows no secret")
                bench.heal()
                await adapter.send(place, part)
            same(len(bench.sent), len(kinds), "after an error the next send goes out")

    async def test_an_unknown_outcome_is_called_unknown(self, bench: Bench) -> None:
        """And a repeat under the same key is the same message, where the account claims so."""
        journal = Journal()
        part = OutboundPart(plain="answer", idempotency_key="k1")
        async with running(bench, journal) as adapter:
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            bench.fail(UnknownOutcome)
            error = await failing(adapter, place, part)
            same(type(error), UnknownOutcome, "nobody knows, and nobody says otherwise")
            await bench.until(lambda: len(bench.sent) == 1)
            bench.heal()
            await adapter.send(place, part)
            check(not adapter.capabilities.idempotent_send or len(bench.sent) == 1, "a key makes one message")
