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

from adapters.contract.bench import PATIENCE, STOP_SECONDS, Bench, Journal, Said
from adapters.contract.edits import EditChecks
from adapters.contract.inbound import InboundChecks
from adapters.contract.life import LifeChecks
from adapters.contract.outbound import OutboundChecks

__all__ = ["PATIENCE", "STOP_SECONDS", "AdapterContract", "Bench", "Journal", "Said"]


class AdapterContract(InboundChecks, OutboundChecks, EditChecks, LifeChecks):
    """All promises, one each; subclasses give the fixture `bench`."""
