"""What was said while nobody listened: asked for once a socket is up again, and taken in like everything else.

Contract: Slack brings an event again for some minutes only. So of every place that is known, what came since is asked
for by the Web API and handed to `take` under the keys that the events had; what was taken in already is a duplicate
there. A thread that was begun meanwhile is followed from its root. Messages of a place are taken in order.
Failure: a place that is gone or closed to this app is left. One that cannot be asked now is tried again after the wait
that Slack names or `PAUSE_SECONDS`, `TRIES` times in all, and then told in the log.
Limits: `PLACES` places, those with the newest messages; of each the newest `PAGES` hundreds; `SECONDS` in all. Edits,
deletions and slash commands of that time are not told.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.base import Place
from adapters.slack.app import Aside, Take
from adapters.slack.connection import TooManyRequests, error_code
from adapters.slack.fields import MalformedEvent, is_ts, ts_order
from adapters.slack.origin import Me

__all__ = ["PLACES", "SECONDS", "CatchUp", "Marks", "Where"]

PLACES = 50
PAGES = 5
PAGE = 100
TRIES = 3
PAUSE_SECONDS = 2.0
SECONDS = 50.0
#: Our clock and Slack's may differ so much.
_MARGIN = 300.0
_AT_ONCE = 4
#: Answers that asking again will not change.
_CLOSED = frozenset(
    {"channel_not_found", "is_archived", "missing_scope", "not_in_channel", "thread_not_found", "unknown_method"}
)

_log = structlog.get_logger(__name__)

#: A conversation to ask about: workspace, channel, root of the thread or ''.
Where = tuple[str, str, str]


class Marks:
    """The newest message that is known of each place."""

    def __init__(self) -> None:
        self._newest: OrderedDict[Where, str] = OrderedDict()

    def note(self, place: Place, message_id: str) -> None:
        """Take note of a message; ids that are no times only say that there is such a place."""
        team, _, channel = place.chat.partition("/")
        where = (team, channel, place.thread)
        known = self._newest.pop(where, "")
        newer = is_ts(message_id) and (not known or ts_order(message_id) > ts_order(known))
        self._newest[where] = message_id if newer else known
        if len(self._newest) > PLACES:
            self._newest.popitem(last=False)

    def wanted(self, since: float | None) -> dict[Where, str]:
        """Return from where to ask in each place; since: everything before was surely taken in."""
        floor = "" if since is None else f"{max(since - _MARGIN, 0.0):.6f}"
        wanted: dict[Where, str] = {}
        for (team, channel, thread), newest in self._newest.items():
            wanted[team, channel, thread] = newest
            if thread:
                # New posts of the channel may be for us, too.
                whole = (team, channel, "")
                wanted[whole] = max(wanted.get(whole, ""), newest, key=_order)
        raised = {where: max(newest, floor, key=_order) for where, newest in wanted.items()}
        return {where: oldest for where, oldest in raised.items() if oldest}


class CatchUp:
    """One round of asking."""

    def __init__(self, web: AsyncWebClient, me: Me, take: Take, aside: Aside) -> None:
        self._web = web
        self._me = me
        self._take = take
        self._aside = aside
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def run(self, wanted: Mapping[Where, str]) -> None:
        """Ask everywhere; returns when all is taken in, or the time is over."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
                for where, oldest in wanted.items():
                    tasks.create_task(self._place(where, oldest))
        except TimeoutError:
            _log.warning("slack_catch_up_ended", places=len(wanted), seconds=round(time.monotonic() - began))

    async def _place(self, where: Where, oldest: str) -> None:
        for attempt in range(TRIES):
            try:
                async with self._slots:
                    await self._ask(where, oldest)
            except Exception as error:  # noqa: BLE001  (one place must not keep the others from being asked)
                if isinstance(error, SlackApiError) and error_code(error) in _CLOSED:
                    _log.info("slack_not_caught_up", channel=where[1], reason=error_code(error))
                    return
                pause = error.seconds if isinstance(error, TooManyRequests) else PAUSE_SECONDS * (attempt + 1)
                _log.warning("slack_catch_up_failed", channel=where[1], reason=repr(error), attempt=attempt + 1)
                await asyncio.sleep(pause)
            else:
                return

    async def _ask(self, where: Where, oldest: str) -> None:
        team, channel, thread = where
        messages = await self._pages(channel, thread, oldest)
        for message in list(messages):
            root = message.get("ts")
            if not thread and message.get("reply_count") and is_ts(root):
                messages += [reply for reply in await self._pages(channel, root, oldest) if reply.get("ts") != root]
        messages.sort(key=lambda message: ts_order(message["ts"]))
        bodies = [self._body(team, channel, message) for message in messages]
        async with asyncio.TaskGroup() as tasks:
            for body in bodies:
                tasks.create_task(self._hand_in(body))

    async def _hand_in(self, body: dict[str, Any]) -> None:
        try:
            await self._take(body, again=False)
        except MalformedEvent as error:
            await self._aside.put(body, str(error))

    async def _pages(self, channel: str, thread: str, oldest: str) -> list[dict[str, Any]]:
        """Return the messages after `oldest`: of a channel the newest, of a thread the first, if there are too many."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(PAGES):
            if thread:
                answer = await self._web.conversations_replies(
                    channel=channel, ts=thread, oldest=oldest, limit=PAGE, cursor=cursor
                )
            else:
                answer = await self._web.conversations_history(
                    channel=channel, oldest=oldest, limit=PAGE, cursor=cursor
                )
            messages = answer.get("messages")
            found += [message for message in messages or () if isinstance(message, dict) and is_ts(message.get("ts"))]
            metadata = answer.get("response_metadata")
            cursor = metadata.get("next_cursor") if isinstance(metadata, dict) else None
            if not cursor:
                break
        # The root comes with every answer about a thread, however old it is.
        return [message for message in found if ts_order(message["ts"]) > ts_order(oldest)]

    def _body(self, team: str, channel: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload that would have brought the message."""
        event = {"type": "message", **message, "channel": channel}
        installation = {"team_id": team, "enterprise_id": self._me.enterprise or None}
        return {"type": "event_callback", "team_id": team, "authorizations": [installation], "event": event}


def _order(ts: str) -> tuple[int, int]:
    return ts_order(ts) if ts else (-1, 0)
