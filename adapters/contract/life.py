"""The life of an account: it ends in time, whatever is under way."""

from __future__ import annotations

import asyncio

from adapters.base import AdapterState, OutboundPart, RetryLater, UnknownOutcome
from adapters.contract.bench import PATIENCE, STOP_SECONDS, Bench, Journal, check, failing, heard, running, same

__all__ = ["LifeChecks"]


class LifeChecks:
    """How it ends."""

    async def test_stop_takes_seconds_with_everything_in_flight(self, bench: Bench) -> None:
        """Deliveries that do not return and sends that are not answered; of these nobody says that they arrived."""
        journal = Journal()
        journal.held = {"stuck"}
        async with running(bench, journal) as adapter:
            place = (await heard(bench, journal, bench.places[0], "hello")).place
            await bench.say(place, "stuck")
            await bench.until(lambda: journal.tries("stuck"))
            bench.hang()
            before = bench.attempts
            sends = [
                asyncio.create_task(failing(adapter, place, OutboundPart(plain=f"a{number}"))) for number in range(3)
            ]
            await bench.until(lambda: bench.attempts > before)
            async with asyncio.timeout(STOP_SECONDS):
                await adapter.stop()
            async with asyncio.timeout(PATIENCE):
                errors = await asyncio.gather(*sends)
            same(adapter.state, AdapterState.STOPPED, "a stopped account says so")
            kinds = {type(error) for error in errors}
            check(UnknownOutcome in kinds, "a send that was cut has an unknown outcome")
            check(kinds <= {UnknownOutcome, RetryLater}, "a send that was cut is unknown, or had not begun")
