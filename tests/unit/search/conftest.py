"""A bench for each test of the search, over each SQLite library that may be chosen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.search.bench import Bench


@pytest.fixture(params=["sqlite3", "pysqlite3.dbapi2"], ids=["standard", "pysqlite3"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The search over an empty database."""
    made = Bench(pytest.importorskip(request.param))
    yield made
    made.close()
