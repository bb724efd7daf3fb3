"""How long platforms ask to wait is read in every form, and never for good."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from adapters.asked import LONGEST, asked_wait

UNTOLD = 5.0


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (7, 7.0),
        (1.5, 1.5),
        ("30", 30.0),
        (timedelta(minutes=2), 120.0),
        (True, 1.0),
        (0, UNTOLD),
        (-3, UNTOLD),
        ("soon", UNTOLD),
        ("", UNTOLD),
        (None, UNTOLD),
        ([1], UNTOLD),
        ({}, UNTOLD),
        (math.nan, UNTOLD),
        (math.inf, LONGEST),
        ("1e400", LONGEST),
        (10**400, LONGEST),
        (timedelta(days=400), LONGEST),
    ],
)
def test_every_form_is_a_number_of_seconds(told: object, seconds: float) -> None:
    """What means nothing is the usual wait; what nobody lives to see is cut."""
    assert asked_wait(told, UNTOLD) == seconds
