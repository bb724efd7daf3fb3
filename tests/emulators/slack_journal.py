"""What stands behind an adapter in tests: takes what is delivered, as long as it is let."""

from __future__ import annotations

import asyncio

from adapters.base import InboundMessage, Verdict

__all__ = ["Journal"]


class Journal:
    """A `deliver` that remembers. failing: texts that it cannot take; held: texts that it takes only after `let_go`."""

    def __init__(self) -> None:
        self.tried: list[InboundMessage] = []
        self.taken: list[InboundMessage] = []
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
        known = message.dedupe_key in self.keys
        self.taken.append(message)
        return Verdict.DUPLICATE if known else Verdict.ACCEPTED

    @property
    def texts(self) -> list[str]:
        """What was taken, in order."""
        return [message.text for message in self.taken]

    @property
    def keys(self) -> set[str]:
        """The keys of what was taken."""
        return {message.dedupe_key for message in self.taken}
