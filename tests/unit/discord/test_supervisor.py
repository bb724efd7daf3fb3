"""What keeps an account from Discord: what a person must mend, what may pass, and how long to wait for it."""

from __future__ import annotations

from unittest.mock import Mock

import aiohttp
import discord
import pytest

from adapters.discord.connection import NoSessionsLeft
from adapters.discord.supervisor import final_problem, problem_of, wait_after
from adapters.discord.waiting import LONGEST_WAIT, backoff


def closed(code: int) -> discord.ConnectionClosed:
    """The gateway has closed the connection with a code."""
    return discord.ConnectionClosed(Mock(close_code=code), shard_id=None, code=code)


def answered(status: int, **headers: str) -> discord.HTTPException:
    """The API has answered with a status."""
    return discord.HTTPException(Mock(status=status, reason="x", headers=headers), {"message": "x", "code": 0})


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (discord.LoginFailure("Improper token"), "refuses the bot's token"),
        (answered(401), "refuses the bot's token"),
        (closed(4004), "refuses the bot's token"),
        (discord.PrivilegedIntentsRequired(None), "Message Content Intent"),
        (closed(4014), "Message Content Intent"),
        (closed(4011), "more servers than one connection may serve"),
        (closed(4012), "needs a newer version"),
        (aiohttp.InvalidURL("nonsense"), "is no address"),
    ],
)
def test_what_a_person_must_mend_is_final(error: Exception, words: str) -> None:
    """One sentence that says what to do."""
    sentence = final_problem(error)
    assert sentence is not None
    assert words in sentence
    assert problem_of(error) == sentence


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError("refused"), "cannot be reached (nothing answers at its address)"),
        (TimeoutError(), "cannot be reached (it does not answer in time)"),
        (answered(503), "cannot be reached"),
        (answered(429), "asks this bot to slow down"),
        (closed(4000), "cannot be reached"),
        (NoSessionsLeft(60), "too many sessions today"),
        (KeyError("session_id"), "unforeseen way (KeyError('session_id'))"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception, words: str) -> None:
    """The sentence names the reason."""
    assert final_problem(error) is None
    assert words in problem_of(error)


def test_the_reason_behind_a_refused_first_connection_is_told() -> None:
    """The library stumbles over it; its own error says nothing."""
    stumbled = AttributeError("'NoneType' object has no attribute 'sequence'")
    stumbled.__context__ = ConnectionRefusedError("nobody there")
    assert "cannot be reached (nothing answers at its address)" in problem_of(stumbled)


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [
        (answered(429, **{"Retry-After": "500.5"}), 500.5),
        (discord.RateLimited(300), 300),
        (NoSessionsLeft(7200), 7200),
    ],
)
def test_discord_decides_how_long_to_wait(problem: Exception, seconds: float) -> None:
    """Each earlier try would count against the bot."""
    assert wait_after(problem, 1, had_session=True) == seconds


def test_a_session_that_ends_soon_is_begun_again_more_slowly_than_a_network_is_tried() -> None:
    """Beginning a session is counted, looking for the network is not."""
    problem = ConnectionRefusedError()
    assert wait_after(answered(429), 1, had_session=False) <= 1
    assert wait_after(problem, 20, had_session=False) <= LONGEST_WAIT
    assert wait_after(problem, 20, had_session=True) > 2 * LONGEST_WAIT


def test_waits_grow_up_to_a_limit() -> None:
    """Never so long that a mended network waits for us, never all at once."""
    assert 0.67 <= backoff(1) <= 1
    assert 2.68 <= backoff(3) <= 4
    assert 0.67 * LONGEST_WAIT <= backoff(10_000) <= LONGEST_WAIT
    assert backoff(20, longest=120) > LONGEST_WAIT
