"""Keeps an account connected: one client after the other, for as long as there is hope.

Contract: discord.py reconnects and resumes by itself; whatever ends its client, or keeps it without a session for
`REPLACE_SECONDS`, leads to a new one after a growing wait. What only a person can mend (token, intents) is final and
told in one sentence. A client is always closed, in bounded time, also when closing it fails.
Limits: one client at a time. The wait grows to `LONGEST_SESSION_WAIT`: Discord resets the token of a bot that begins
more than 1,000 sessions a day.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import aiohttp
import discord
import structlog

from adapters.asked import asked_wait
from adapters.base import AdapterState
from adapters.discord.connection import GatewayClient, NoSessionsLeft
from adapters.discord.waiting import LONGEST_WAIT, backoff
from adapters.network import reason_of

__all__ = ["CLOSE_SECONDS", "Supervisor", "final_problem", "problem_of", "wait_after"]

CLOSE_SECONDS = 0.75
REPLACE_SECONDS = 90.0
LONGEST_SESSION_WAIT = 120.0
#: A session that lasted so long was a good one: the next trouble is a new one.
STEADY_SECONDS = 300.0
LOOK_SECONDS = 5.0
#: A bot that asks in vain now and then is better than one that hears nothing for days.
_LONGEST_ASKED = 3600.0
_PORTAL = "https://discord.com/developers/applications"
_UNAUTHORIZED = 401
_TOO_MANY = 429
_WRONG_TOKEN = 4004
_DISALLOWED_INTENTS = 4014
_NEEDS_SHARDS = 4011

_log = structlog.get_logger(__name__)

Report = Callable[[AdapterState, str | None], None]


class Unresponsive(Exception):
    """The client has had no session for too long."""


def final_problem(error: BaseException) -> str | None:
    """Return a sentence about what only a person can mend, or None for what may pass."""
    unauthorized = isinstance(error, discord.HTTPException) and error.status == _UNAUTHORIZED
    code = error.code if isinstance(error, discord.ConnectionClosed) else None
    if isinstance(error, discord.LoginFailure) or unauthorized or code == _WRONG_TOKEN:
        return (
            "Discord refuses the bot's token: check platforms.discord.token and api_url, or make a new token on the "
            f"page Bot of the application ({_PORTAL})."
        )
    if isinstance(error, discord.PrivilegedIntentsRequired) or code == _DISALLOWED_INTENTS:
        return (
            "Discord does not let the bot read messages: switch on Message Content Intent, under Privileged Gateway "
            f"Intents on the page Bot of the application ({_PORTAL})."
        )
    if code == _NEEDS_SHARDS:
        return "The bot is in more servers than one connection may serve, which Threadline does not support."
    if code is not None and code in range(4010, 4015):
        return f"Discord refuses the connection for good (code {code}); Threadline needs a newer version."
    if isinstance(error, aiohttp.InvalidURL):
        return f"{str(error)!r} is no address: check platforms.discord.api_url and gateway_url."
    return None


def problem_of(error: BaseException) -> str:
    """Return a sentence for people about what keeps the account from its session for now."""
    final = final_problem(error)
    if final is not None:
        return final
    if isinstance(error, NoSessionsLeft):
        return "The bot has begun too many sessions today; Discord lets it begin the next one later, by itself."
    limited = isinstance(error, discord.HTTPException) and error.status == _TOO_MANY
    if limited or isinstance(error, discord.RateLimited):
        return "Discord asks this bot to slow down; connecting goes on by itself."
    if isinstance(error, AttributeError) and error.__context__ is not None:
        # What discord.py 2.7 makes of a first connection that was refused; the reason is behind it.
        error = error.__context__
    if not isinstance(error, discord.DiscordException | aiohttp.ClientError | OSError | Unresponsive):
        return f"Connecting to Discord fails in an unforeseen way ({error!r}); this is tried again until it works."
    return f"Discord cannot be reached ({reason_of(error)}); this is tried again until it works."


class Supervisor:
    """Runs the clients of one account, until cancelled or until nothing can be done."""

    def __init__(self, make: Callable[[], GatewayClient], token: str, report: Report) -> None:
        self._make = make
        self._token = token
        self._report = report
        #: The client of now, for calls.
        self.client: GatewayClient | None = None

    async def run(self) -> None:
        """Keep a session; returns only after a final problem, which was reported as FAILED."""
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            client = self.client = self._make()
            problem: Exception
            try:
                await self._serve(client)
                problem = ConnectionError("the connection was closed")
            except Exception as error:  # noqa: BLE001  (whatever ends a client, the next one is tried)
                problem = error
            finally:
                await close(client)
            final = final_problem(problem)
            if final is not None:
                self._report(AdapterState.FAILED, final)
                return
            failures = 1 if loop.time() - began > STEADY_SECONDS else failures + 1
            self._report(AdapterState.RETRYING, problem_of(problem).replace(self._token, "<token>"))
            await asyncio.sleep(wait_after(problem, failures, had_session=client.had_session))

    async def _serve(self, client: GatewayClient) -> None:
        """Run a client to its end."""
        running = asyncio.create_task(client.start(self._token), name="discord client")
        try:
            while not running.done():
                await asyncio.wait([running], timeout=LOOK_SECONDS)
                lost = client.lost_since
                if lost is not None and asyncio.get_running_loop().time() - lost > REPLACE_SECONDS:
                    raise Unresponsive(f"no session for {REPLACE_SECONDS:.0f} s")
            await running
        finally:
            running.cancel()
            await asyncio.wait([running], timeout=CLOSE_SECONDS)


async def close(client: GatewayClient) -> None:
    """Close a client; what does not end in time is cut."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()
    except Exception as error:  # noqa: BLE001  (closing in the middle of a reconnect fails in many ways)
        _log.debug("discord_close_failed", error=repr(error))
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.rest.close()


def wait_after(problem: Exception, failures: int, *, had_session: bool) -> float:
    """Return the seconds until the next client: as long as Discord asks for, or ever longer."""
    wait = backoff(failures, LONGEST_SESSION_WAIT if had_session else LONGEST_WAIT)
    if isinstance(problem, NoSessionsLeft):
        return problem.delay
    if isinstance(problem, discord.RateLimited):
        return max(wait, asked_wait(problem.retry_after, wait, _LONGEST_ASKED))
    if isinstance(problem, discord.HTTPException) and problem.status == _TOO_MANY:
        return max(wait, asked_wait(problem.response.headers.get("Retry-After"), wait, _LONGEST_ASKED))
    return wait
