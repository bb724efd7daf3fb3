"""What has to be asked before an event can be understood: names of people and channels, and which threads are Slack's.

Contract: names are decoration: each is asked for once, at most `NAME_SECONDS` are waited for it, and without an answer
there is none for a while. Whether a thread in a direct chat is an assistant thread decides which session its messages
belong to, so it is never guessed while it can be asked: `prepare` raises `NotNow` when Slack cannot tell, and only for
an event that Slack delivers again is a thread taken as a plain one.
Limits: bounded in memory (`_MOST` answers of each kind) and in questions under way (`_MOST_QUESTIONS`).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from adapters.slack.connection import TooManyRequests, error_code
from adapters.slack.events import assistant_thread
from adapters.slack.text import mentioned

__all__ = ["Directory", "NotNow"]

#: Together less than the three seconds in which Slack wants its confirmation.
NAME_SECONDS = 0.7
_THREAD_SECONDS = 1.5
_NAME_KEPT = 3600.0
_FAILURE_KEPT = 300.0
_MOST = 5000
_MOST_QUESTIONS = 64
_MOST_MENTIONS = 8
#: Answers that asking again will not change: what is asked for is closed to this app.
_NEVER = frozenset({"missing_scope", "not_allowed_token_type", "no_permission", "unknown_method"})
_NO_THREAD = frozenset({"thread_not_found", "channel_not_found", "message_not_found", "not_in_channel"})
_ASSISTANT = "assistant_app_thread"

_log = structlog.get_logger(__name__)


class NotNow(Exception):
    """Slack could not tell what kind of thread it is; the event must come again."""


class Directory:
    """Answers of one account's Slack. The plain methods tell what is known and never ask."""

    def __init__(self, web: AsyncWebClient, *, own_user: str) -> None:
        self._web = web
        self._own_user = own_user
        self._names: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._threads: OrderedDict[tuple[str, str], bool] = OrderedDict()
        self._questions: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._closed: set[str] = set()
        self._pause_until = 0.0

    def user(self, user: str) -> str:
        """Return the name of a user, or ''."""
        return self._names.get(("user", user), ("", 0.0))[0]

    def channel(self, channel: str) -> str:
        """Return the name of a channel with its #, or ''."""
        return self._names.get(("channel", channel), ("", 0.0))[0]

    def assistant(self, channel: str, ts: str) -> bool:
        """Tell whether this is known to be an assistant thread."""
        return self._threads.get((channel, ts), False)

    def remember_assistant(self, channel: str, ts: str) -> None:
        """Take note of an assistant thread that Slack has told of."""
        _keep(self._threads, (channel, ts), value=True)

    async def prepare(self, body: Mapping[str, Any], *, threads: bool, again: bool) -> None:
        """Find out what `body` makes necessary. threads: whether kinds of threads matter. again: a redelivery."""
        event = body.get("event")
        if not isinstance(event, dict):
            await self._ask_names([("channel", body.get("channel_id"))])
            return
        message, channel = _mapping(event, "message") or event, event.get("channel")
        wanted = [("channel", channel), ("user", message.get("user"))]
        wanted += [("user", user) for user in mentioned(str(message.get("text") or ""))[:_MOST_MENTIONS]]
        thread = message.get("thread_ts")
        if threads and isinstance(channel, str) and channel.startswith("D") and isinstance(thread, str):
            if (found := assistant_thread(body)) is not None:
                self.remember_assistant(*found)
            await self._ask_thread(channel, thread, again=again)
        await self._ask_names(wanted)

    async def close(self) -> None:
        """Ask no more."""
        questions = list(self._questions.values())
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions)

    async def _ask_names(self, wanted: list[tuple[str, Any]]) -> None:
        now = time.monotonic()
        waiting: list[asyncio.Task[None]] = []
        for kind, name in wanted:
            # Direct chats have no name of their own.
            nameless = kind == "channel" and isinstance(name, str) and name.startswith("D")
            if not isinstance(name, str) or name in {"", self._own_user} or nameless:
                continue
            key = (kind, name)
            if self._names.get(key, ("", 0.0))[1] > now or kind in self._closed or now < self._pause_until:
                continue
            question = self._questions.get(key)
            if question is None:
                if len(self._questions) >= _MOST_QUESTIONS:
                    continue
                question = asyncio.create_task(self._ask_name(kind, name), name="slack directory")
                self._questions[key] = question
            waiting.append(question)
        if waiting:
            await asyncio.wait(waiting, timeout=NAME_SECONDS)

    async def _ask_name(self, kind: str, name: str) -> None:
        ask: Callable[[str], Coroutine[Any, Any, str]] = self._user_name if kind == "user" else self._channel_name
        kept, answer = _FAILURE_KEPT, self._names.get((kind, name), ("", 0.0))[0]
        try:
            answer = await ask(name)
            kept = _NAME_KEPT
        except TooManyRequests as error:
            self._pause_until = time.monotonic() + error.seconds
        except Exception as error:  # noqa: BLE001  (a name is decoration: no failure to learn it may reach the event)
            if isinstance(error, SlackApiError) and error_code(error) in _NEVER:
                self._closed.add(kind)
            _log.debug("slack_name_unknown", kind=kind, id=name, reason=str(error))
        finally:
            _keep(self._names, (kind, name), (answer, time.monotonic() + kept))
            del self._questions[kind, name]

    async def _user_name(self, user: str) -> str:
        answer = await self._web.users_info(user=user)
        facts = _mapping(answer, "user")
        profile = _mapping(facts, "profile")
        names = (profile.get("display_name"), profile.get("real_name"), facts.get("real_name"), facts.get("name"))
        return next((name for name in names if isinstance(name, str) and name), "")

    async def _channel_name(self, channel: str) -> str:
        answer = await self._web.conversations_info(channel=channel)
        name = _mapping(answer, "channel").get("name")
        return f"#{name}" if isinstance(name, str) and name else ""

    async def _ask_thread(self, channel: str, ts: str, *, again: bool) -> None:
        if (channel, ts) in self._threads:
            return
        try:
            async with asyncio.timeout(_THREAD_SECONDS):
                answer = await self._web.conversations_replies(channel=channel, ts=ts, limit=1)
        except SlackApiError as error:
            if error_code(error) not in _NEVER | _NO_THREAD:
                self._undecided(error, again=again)
                return
            root: Any = None
        except Exception as error:  # noqa: BLE001  (whatever hinders the question, the event must not be misplaced)
            self._undecided(error, again=again)
            return
        else:
            messages = answer.get("messages")
            root = messages[0] if isinstance(messages, list) and messages else None
        known = isinstance(root, dict) and (root.get("subtype") == _ASSISTANT or _ASSISTANT in root)
        _keep(self._threads, (channel, ts), value=known)

    def _undecided(self, error: Exception, *, again: bool) -> None:
        if not again:
            raise NotNow(f"Slack does not tell now what kind of thread it is ({error!r}).") from error
        _log.warning("slack_thread_taken_as_plain", reason=repr(error))


def _mapping(source: Mapping[str, Any] | AsyncSlackResponse, name: str) -> Mapping[str, Any]:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _keep(kept: OrderedDict[tuple[str, str], Any], key: tuple[str, str], value: Any) -> None:
    """Remember, and forget the oldest when there is too much."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _MOST:
        kept.popitem(last=False)
