"""Messages that are changed after they were sent: what `Edits` promises."""

from __future__ import annotations

from adapters.base import Edits, Gone, OutboundPart, Refused, RetryLater, SendError, UnknownOutcome
from adapters.contract.bench import Bench, Journal, check, heard, running, same

__all__ = ["EditChecks"]


class EditChecks:
    """What is edited; an account that cannot edit has nothing to prove here."""

    async def test_an_edit_puts_a_part_in_the_place_of_a_message(self, bench: Bench) -> None:
        """In each kind of place, where it stands; the same once more changes nothing and is no error."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            same(isinstance(adapter, Edits), adapter.capabilities.edits, "an account that edits says so")
            if not isinstance(adapter, Edits):
                return
            wanted = []
            for number, place in enumerate(bench.places):
                where = (await heard(bench, journal, place, f"from {number}")).place
                receipt = await adapter.send(where, OutboundPart(plain=f"before {number}"))
                for part in (*adapter.render(f"**after** {number}"), *adapter.render(f"`after` {number}")):
                    await adapter.edit(where, receipt.message_id, part)
                    await adapter.edit(where, receipt.message_id, part)
                wanted.append(where)
                check(adapter.edit_pause(where) > 0, "a place puts up with so many edits and no more")
            same([place for place, _ in bench.sent], wanted, "an edit posts nothing, and changes no place")
            shown = [text.replace("`", "").strip() for _, text in bench.sent]
            same(shown, [f"after {number}" for number in range(len(wanted))], "the newest edit is what is shown")

    async def test_the_first_part_of_a_long_answer_takes_the_place_of_its_beginning(self, bench: Bench) -> None:
        """However long and however formatted the part is, as long as it can be sent."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            if not isinstance(adapter, Edits):
                return
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            for text in ("```py\n" + "x = 1\n" * 4000 + "```", "**" + "word " * 4000 + "**"):
                receipt = await adapter.send(place, OutboundPart(plain="..."))
                first, *_ = adapter.render(text)
                await adapter.edit(place, receipt.message_id, first)
                shown = bench.sent[-1][1]
                check(len(shown) > len(first.plain) / 2, "the whole part is shown")

    async def test_a_message_that_is_gone_cannot_be_edited(self, bench: Bench) -> None:
        """And nothing is posted in its stead."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            if not isinstance(adapter, Edits):
                return
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            receipt = await adapter.send(place, OutboundPart(plain="before"))
            bench.remove()
            before = len(bench.sent)
            error = await _failing(adapter, bench, receipt.message_id)
            check(isinstance(error, Refused | Gone), f"a message that is gone is told as such, not as {error!r}")
            same(len(bench.sent), before, "an edit posts nothing")

    async def test_each_kind_of_error_of_an_edit_is_told(self, bench: Bench) -> None:
        """And is about that edit alone: the next one is made."""
        journal = Journal()
        async with running(bench, journal) as adapter:
            if not isinstance(adapter, Edits):
                return
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            receipt = await adapter.send(place, OutboundPart(plain="before"))
            for kind in (RetryLater, Gone, Refused, UnknownOutcome):
                bench.fail(kind)
                error = await _failing(adapter, bench, receipt.message_id)
                same(type(error), kind, "a refusal is of the kind that it means")
                check(not isinstance(error, RetryLater) or error.delay > 0, "a wait is named")
                check(not any(secret in str(error) for secret in bench.secrets), "an error shows no secret")
                bench.heal()
            await adapter.edit(place, receipt.message_id, OutboundPart(plain="after"))
            same([text for _, text in bench.sent], ["after"], "after an error the next edit is made")


async def _failing(adapter: Edits, bench: Bench, message_id: str) -> SendError:
    """Edit, and return the error."""
    try:
        await adapter.edit(bench.places[0], message_id, OutboundPart(plain="changed"))
    except SendError as error:
        return error
    raise AssertionError("the platform did not take it, but no error says so")
