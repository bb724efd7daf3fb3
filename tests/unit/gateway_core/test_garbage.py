"""What a gateway's garbage collector looks through, and what not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from gateway.garbage import spare_what_is_there


class _Knot:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The collector as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_is_garbage_already_is_freed_and_what_is_not_is_spared() -> None:
    """Later collections do not look through it."""
    old = weakref.ref(_Knot())
    spare_what_is_there()
    assert old() is None
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_what_comes_later_is_collected() -> None:
    """A cycle made afterwards goes."""
    spare_what_is_there()
    new = weakref.ref(_Knot())
    gc.collect()
    assert new() is None
