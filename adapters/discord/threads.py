"""Opening a thread, once, whatever happens to the call.

Contract: in a text or announcement channel a public thread is made, in a forum a post; from inside a thread, its
parent gets a further one. A call whose outcome is unknown is never simply repeated: the thread is looked for among the
active ones first (same parent, name and maker, not older than the attempt), so that a lost answer does not leave two.
Direct chats and voice channels have no threads: `Refused`.
Limits: names are cut to 100 UTF-16 units; one repeat.
"""

from __future__ import annotations

import time
from typing import Any, Final

import aiohttp
import discord
from wcwidth import grapheme_boundary_before

from adapters.base import Place, Refused, UnknownOutcome
from adapters.discord.connection import GatewayClient, Repeated, once
from adapters.discord.sending import channel_number, send_error
from adapters.splitting import utf16_length

__all__ = ["MAX_NAME_UNITS", "open_thread", "thread_name"]

MAX_NAME_UNITS = 100
ARCHIVE_MINUTES: Final = 1440
_TRIES = 2
#: How far Discord's clock and ours may differ.
_CLOCKS_SECONDS = 60.0
_ANNOUNCEMENTS: Final = 5
_THREADS: Final = frozenset({10, 11, 12})
_FORUMS: Final = frozenset({15, 16})
_TEXT: Final = 0
_ANNOUNCEMENT_THREAD: Final = 10
_PUBLIC_THREAD: Final = 11
_NO_PERMISSION: Final = 50013


class Garbled(Exception):
    """The answer is none, so nobody knows whether there is a thread."""


async def open_thread(client: GatewayClient, place: Place, title: str) -> Place:
    """Open a thread named `title` in the channel of `place`; returns the place of its messages. Raises a SendError."""
    try:
        channel = await _channel(client, channel_number(place))
        return await _open(client, place, channel, thread_name(title))
    except (discord.DiscordException, aiohttp.ClientError, OSError, KeyError, TypeError, ValueError) as error:
        raise send_error(error, client) from error


def thread_name(title: str) -> str:
    """Return a title as a name that Discord takes."""
    name = " ".join(title.split())
    end = len(name)
    while utf16_length(name[:end]) > MAX_NAME_UNITS:
        end = grapheme_boundary_before(name, end) or end - 1
    return name[:end].rstrip() or "Conversation"


async def _channel(client: GatewayClient, number: int) -> dict[str, Any]:
    """Return the channel in which threads are made: that of `number`, or its parent when it is a thread itself."""
    told: Any = await client.rest.get_channel(number)
    if told["type"] in _THREADS:
        told = await client.rest.get_channel(int(told["parent_id"]))
    channel: dict[str, Any] = told
    return channel


async def _open(client: GatewayClient, place: Place, channel: dict[str, Any], name: str) -> Place:
    kind, number = channel["type"], int(channel["id"])
    if kind not in {_TEXT, _ANNOUNCEMENTS, *_FORUMS}:
        raise Refused("Threads can be opened only in text, announcement and forum channels of a server.")
    earliest = time.time() - _CLOCKS_SECONDS
    problem: Exception | None = None
    for _ in range(_TRIES):
        try:
            with once():
                made = await _create(client, kind, number, name)
        except discord.DiscordServerError as error:
            problem = error
        except discord.HTTPException as error:
            if error.code == _NO_PERMISSION:
                raise Refused("No thread: the bot needs the permission Create Public Threads there.") from error
            raise
        except aiohttp.ClientConnectorError:
            raise
        except (Garbled, Repeated, aiohttp.ClientError, OSError) as error:
            problem = error
        else:
            return _place(place, made)
        found = await _find(client, channel, name, earliest)
        if found is not None:
            return _place(place, found)
    raise UnknownOutcome(f"Discord did not say whether the thread was opened ({problem!r}).") from problem


async def _create(client: GatewayClient, kind: int, number: int, name: str) -> dict[str, Any]:
    made: Any
    if kind in _FORUMS:
        with discord.http.handle_message_parameters(
            name,
            channel_payload={"name": name, "auto_archive_duration": ARCHIVE_MINUTES},
            previous_allowed_mentions=client.allowed_mentions,
        ) as params:
            made = await client.rest.start_thread_in_forum(number, params=params)
    else:
        made = await client.rest.start_thread_without_message(
            number,
            name=name,
            auto_archive_duration=ARCHIVE_MINUTES,
            type=_ANNOUNCEMENT_THREAD if kind == _ANNOUNCEMENTS else _PUBLIC_THREAD,
        )
    if not isinstance(made, dict) or not {"id", "name"} <= made.keys():
        raise Garbled(f"an answer that is no thread: {made!r:.100}")
    return made


async def _find(client: GatewayClient, channel: dict[str, Any], name: str, earliest: float) -> dict[str, Any] | None:
    """Return the thread that an unanswered call made after all."""
    active: Any = await client.rest.get_active_threads(int(channel["guild_id"]))
    me = str(client.user.id) if client.user is not None else ""
    for thread in active["threads"]:
        born = discord.utils.snowflake_time(int(thread["id"])).timestamp()
        same = (thread.get("parent_id"), thread.get("name"), thread.get("owner_id")) == (channel["id"], name, me)
        if same and born >= earliest:
            return dict(thread)
    return None


def _place(place: Place, thread: dict[str, Any]) -> Place:
    return Place(place.platform, place.account, "thread", str(thread["id"]), name=str(thread["name"]))
