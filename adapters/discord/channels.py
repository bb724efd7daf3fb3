"""Which place a channel is.

Contract: a direct chat is a `dm`, a thread or forum post a `thread`, everything else a `group`; the chat is the
channel's own id. What the client has not heard of is asked for once and remembered. A channel never changes its kind,
so what is known stays true; names are the newest that were heard. Of a thread that everybody in its channel can read,
the channel is remembered, too, and told as the parent of its place: there goes what the thread does not take any more.
Limits: `REMEMBERED` channels, and as many threads with their channel.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import discord

from adapters.base import ChatType, Place
from adapters.discord.connection import GatewayClient
from adapters.discord.events import PLATFORM
from adapters.discord.fields import MalformedEvent

__all__ = ["Channels"]

REMEMBERED = 5000
_PRIVATE = 1
_THREADS = frozenset({10, 11, 12})
_PUBLIC_THREADS = frozenset({10, 11})


class Channels:
    """The channels of one account."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._known: OrderedDict[str, Place] = OrderedDict()
        self._parents: OrderedDict[str, str] = OrderedDict()

    def learn(self, place: Place) -> None:
        """Remember a place that is known from elsewhere."""
        if place.parent is not None:
            self._learn_parent(place.chat, place.parent)
        self._known[place.chat] = place
        self._known.move_to_end(place.chat)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def learn_thread(self, told: Any) -> None:
        """Remember the channel of a thread, from what Discord tells of the thread."""
        if not isinstance(told, dict) or told.get("type") not in _PUBLIC_THREADS:
            return
        number, parent = told.get("id"), told.get("parent_id")
        if isinstance(number, str) and isinstance(parent, str) and parent.isascii() and parent.isdigit():
            self._learn_parent(number, parent)

    def parent_of(self, client: GatewayClient, channel_id: str) -> str | None:
        """Return the channel that a thread belongs to, as far as it is known and everybody there could read both."""
        cached = client.get_channel(int(channel_id)) if channel_id.isascii() and channel_id.isdigit() else None
        if isinstance(cached, discord.Thread) and not cached.is_private():
            self._learn_parent(channel_id, str(cached.parent_id))
        return self._parents.get(channel_id)

    def _learn_parent(self, number: str, parent: str) -> None:
        self._parents[number] = parent
        self._parents.move_to_end(number)
        if len(self._parents) > REMEMBERED:
            self._parents.popitem(last=False)

    async def place_of(self, client: GatewayClient, channel_id: str, guild_id: str | None) -> Place:
        """Return the place of a channel. guild_id: as the event has it; events of direct chats have none.

        Raises what discord.py raises when Discord has to be asked and does not tell.
        """
        cached = client.get_channel(int(channel_id))
        if isinstance(cached, discord.Thread):
            self.parent_of(client, channel_id)
            return self._place("thread", channel_id, cached.name)
        if isinstance(cached, discord.abc.GuildChannel):
            return self._place("group", channel_id, cached.name)
        known = self._known.get(channel_id)
        if known is not None:
            return known
        if guild_id is None:
            return self._place("dm", channel_id, None)
        return await self._ask(client, channel_id)

    async def _ask(self, client: GatewayClient, channel_id: str) -> Place:
        told: Any = await client.rest.get_channel(int(channel_id))
        if not isinstance(told, dict) or not isinstance(told.get("type"), int):
            raise MalformedEvent(f"a channel that is none: {told!r:.100}")
        self.learn_thread(told)
        name = told.get("name")
        kind: ChatType = "group"
        if told["type"] in _THREADS:
            kind = "thread"
        elif told["type"] == _PRIVATE:
            kind = "dm"
        return self._place(kind, channel_id, name if isinstance(name, str) else None)

    def _place(self, kind: ChatType, channel_id: str, name: str | None) -> Place:
        place = Place(PLATFORM, self._account, kind, channel_id, name=name, parent=self._parents.get(channel_id))
        self.learn(place)
        return place
