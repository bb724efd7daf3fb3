"""A bench for each test of the queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.queues.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """The queues over an empty database, with the living process A."""
    made = Bench()
    made.process("A")
    yield made
    made.close()
