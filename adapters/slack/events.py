"""One event of Slack to one `InboundMessage`: place, sender, words, and whether the bot was meant.

Contract: `inbound` is pure. It returns None for what is no message to us (our own words, system messages, kinds of
event that carry no talk) and raises `MalformedEvent` for what cannot be understood. A post comes as `message`, as
`app_mention` or as both, and has one key whichever comes. Which subtypes are no talk is listed; all others pass, so
that files, broadcasts and what Slack invents next are not lost. Edits and deletes are events of those kinds.
Limits: files are described, never fetched; one that cannot be, and a shared message, become a note in square brackets
where there are no other words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from adapters.base import ChatType, InboundKind, InboundMessage, Place, Quoted, Sender
from adapters.slack.described import described, unfetchable
from adapters.slack.fields import MalformedEvent, as_id, as_list, as_mapping, as_text, as_ts, needed
from adapters.slack.origin import Me, realm_of, team_of
from adapters.slack.text import escape, readable, without_mention

__all__ = ["PLATFORM", "Known", "Rules", "assistant_thread", "inbound", "own_post"]

PLATFORM: Final = "slack"

#: Subtypes of messages that Slack writes itself. What is not listed here is talk.
_SYSTEM: Final = frozenset(
    {
        *(
            f"{room}_{what}"
            for room in ("channel", "group")
            for what in ("join", "leave", "topic", "purpose", "name", "archive", "unarchive")
        ),
        "app_conversation_join",
        "app_conversation_leave",
        "assistant_app_thread",
        "bot_add",
        "bot_disable",
        "bot_enable",
        "bot_remove",
        "channel_canvas_updated",
        "channel_convert_to_private",
        "channel_convert_to_public",
        "channel_posting_permissions",
        "document_mention",
        "ekm_access_denied",
        "huddle_thread",
        "joiner_notification",
        "joiner_notification_for_inviter",
        "message_replied",
        "pinned_item",
        "reminder_add",
        "reply_broadcast",
        "sh_room_created",
        "tabbed_canvas_updated",
        "tombstone",
        "unpinned_item",
    }
)
_SLACKBOT: Final = "USLACKBOT"
_COMMAND = re.compile(r"/[A-Za-z0-9_]{1,64}(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class Rules:
    """How this account sees places; see the settings of the same names."""

    account: str
    reply_in_thread: bool = True
    dm_threads: bool = False


class Known(Protocol):
    """What was looked up before; '' and False where nothing is known."""

    def user(self, user: str) -> str:
        """Name of a user."""
        ...

    def channel(self, channel: str) -> str:
        """Name of a channel."""
        ...

    def assistant(self, channel: str, ts: str) -> bool:
        """Whether the thread in a direct chat that begins there is one of Slack's assistant threads."""
        ...


def inbound(body: Mapping[str, Any], me: Me, rules: Rules, known: Known, received_at: float) -> InboundMessage | None:
    """Return the message that the payload of an envelope carries, or None when it carries none for us."""
    reading = _Reading(body, me, rules, known, received_at)
    if "command" in body:
        return reading.command()
    kind = as_text(body, "type")
    if kind != "event_callback":
        if not kind:
            raise MalformedEvent("it has no 'type'")
        return None
    event = as_mapping(body, "event")
    if event is None:
        raise MalformedEvent("it has no 'event'")
    match needed(as_text(event, "type") or None, "type"):
        case "message" | "app_mention":
            return reading.post(event)
        case "channel_id_changed":
            return reading.migration(event)
        case _:
            return None


def own_post(body: Mapping[str, Any], me: Me) -> tuple[str, str] | None:
    """Return channel and time when the event is only the echo of what we posted ourselves."""
    event = body.get("event")
    if not isinstance(event, dict) or not _is_own(event, me):
        return None
    channel, ts = event.get("channel"), event.get("ts")
    return (channel, ts) if isinstance(channel, str) and isinstance(ts, str) else None


def assistant_thread(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return channel and root of the assistant thread that the event tells of, if it does."""
    event = body.get("event")
    thread = event.get("assistant_thread") if isinstance(event, dict) else None
    if not isinstance(thread, dict) or not isinstance(event, dict):
        return None
    channel = thread.get("channel_id") or event.get("channel")
    ts = thread.get("thread_ts") or event.get("thread_ts")
    return (channel, ts) if isinstance(channel, str) and isinstance(ts, str) else None


@dataclass(frozen=True, slots=True)
class _Reading:
    """One payload being read."""

    body: Mapping[str, Any]
    me: Me
    rules: Rules
    known: Known
    received_at: float

    def post(self, event: Mapping[str, Any]) -> InboundMessage | None:
        subtype = as_text(event, "subtype")
        if subtype == "message_changed":
            return self.edit(event)
        if subtype == "message_deleted":
            return self.deletion(event, as_mapping(event, "previous_message") or {}, as_ts(event, "deleted_ts"))
        if subtype in _SYSTEM or event.get("hidden") is True or _is_own(event, self.me):
            return None
        raw, attachments = self._content(event), described(event)
        if not raw and not attachments:
            return None
        words, mentioned = self._words(raw)
        place, ts = self._place(event, event), needed(as_ts(event, "ts"), "ts")
        kind: InboundKind = "command" if _COMMAND.match(words) else "message"
        root = as_id(event, "parent_user_id")
        return InboundMessage(
            place=place,
            sender=self._sender(event),
            dedupe_key=f"m:{place.chat}:{ts}",
            kind=kind,
            text=words,
            message_id=ts,
            received_at=self.received_at,
            addressed=place.private or mentioned or event.get("type") == "app_mention" or root == self.me.user,
            quoted=self._quoted(event),
            attachments=attachments,
        )

    def edit(self, event: Mapping[str, Any]) -> InboundMessage | None:
        message, before = as_mapping(event, "message"), as_mapping(event, "previous_message") or {}
        if message is None:
            raise MalformedEvent("it has no 'message'")
        subtype, ts = as_text(message, "subtype"), needed(as_ts(message, "ts"), "ts")
        if subtype == "tombstone":
            return self.deletion(event, before, ts)
        edited = as_ts(as_mapping(message, "edited") or {}, "ts")
        if edited is None or edited == as_ts(as_mapping(before, "edited") or {}, "ts"):
            # Previews of links, counts of replies and the like change a message, too.
            return None
        if subtype in _SYSTEM or _is_own(message, self.me):
            return None
        words, mentioned = self._words(self._content(message))
        place = self._place(event, message)
        return InboundMessage(
            place=place,
            sender=self._sender(message),
            dedupe_key=f"e:{place.chat}:{ts}:{edited}",
            kind="edit",
            text=words,
            message_id=ts,
            received_at=self.received_at,
            addressed=place.private or mentioned,
            subject=f"m:{place.chat}:{ts}",
        )

    def deletion(self, event: Mapping[str, Any], before: Mapping[str, Any], ts: str | None) -> InboundMessage | None:
        ts = needed(ts, "deleted_ts")
        if _is_own(before, self.me) or as_text(before, "subtype") in _SYSTEM:
            return None
        place = self._place(event, {**before, "ts": ts})
        return InboundMessage(
            place=place,
            sender=self._sender(before),
            dedupe_key=f"d:{place.chat}:{ts}",
            kind="delete",
            text="",
            message_id=ts,
            received_at=self.received_at,
            addressed=place.private,
            subject=f"m:{place.chat}:{ts}",
        )

    def command(self) -> InboundMessage:
        body = self.body
        needed(as_text(body, "command") or None, "command")
        channel, trigger = self._channel(body, "channel_id"), needed(as_id(body, "trigger_id"), "trigger_id")
        user = needed(as_id(body, "user_id"), "user_id")
        argument = readable(as_text(body, "text"), self.known.user).strip().lstrip("/")
        name = as_text(body, "channel_name")
        chat_type: ChatType = "dm" if channel.startswith("D") or name == "directmessage" else "group"
        thread = as_ts(body, "thread_ts") or ""
        if chat_type == "dm" and not self._keeps_thread(channel, thread):
            thread = ""
        return InboundMessage(
            place=self._named(chat_type, channel, thread, as_text(body, "user_name")),
            sender=Sender(user, as_text(body, "user_name"), realm_of(user, {}, self.me)),
            dedupe_key=f"c:{trigger}",
            kind="command",
            text=f"/{argument or 'help'}",
            message_id=trigger,
            received_at=self.received_at,
        )

    def migration(self, event: Mapping[str, Any]) -> InboundMessage:
        """Read that a channel goes on under another id, as happens when it is shared between organizations."""
        old, new = self._channel(event, "old_channel_id"), self._channel(event, "new_channel_id")
        place, team = self._named("group", new, ""), team_of(self.body, self.me)
        return InboundMessage(
            place=place,
            sender=Sender(None),
            dedupe_key=f"g:{team}:{old}:{new}",
            kind="migration",
            text="",
            message_id=as_ts(event, "event_ts") or "",
            received_at=self.received_at,
            addressed=False,
            extra={"old_chat": f"{team}/{old}", "new_chat": place.chat},
        )

    def _place(self, event: Mapping[str, Any], message: Mapping[str, Any]) -> Place:
        channel, ts = self._channel(event, "channel"), needed(as_ts(message, "ts"), "ts")
        private = channel.startswith("D") or as_text(event, "channel_type") == "im"
        thread = as_ts(message, "thread_ts") or ""
        if private:
            named = as_mapping(message, "assistant_thread") is not None
            keeps = bool(thread) and (named or self._keeps_thread(channel, thread))
            return self._named("dm", channel, thread if keeps else "", self.known.user(as_text(message, "user")))
        if not thread and self.rules.reply_in_thread:
            thread = ts
        return self._named("group", channel, thread)

    def _keeps_thread(self, channel: str, thread: str) -> bool:
        return self.rules.dm_threads or self.known.assistant(channel, thread)

    def _named(self, chat_type: ChatType, channel: str, thread: str, partner: str = "") -> Place:
        """Return the place; a direct chat has the name of the one who speaks there."""
        chat = f"{team_of(self.body, self.me)}/{channel}"
        name = partner if chat_type == "dm" else self.known.channel(channel)
        return Place(PLATFORM, self.rules.account, chat_type, chat, thread, name or None)

    def _channel(self, source: Mapping[str, Any], name: str) -> str:
        return needed(as_id(source, name), name)

    def _words(self, raw: str) -> tuple[str, bool]:
        rest, mentioned = without_mention(raw, self.me.user)
        return readable(rest, lambda user: self.me.name if user == self.me.user else self.known.user(user)), mentioned

    def _content(self, message: Mapping[str, Any]) -> str:
        """Return what is said, in Slack's form, or in its place what is shown."""
        text = as_text(message, "text")
        if text.strip():
            return text
        notes = [f"[file: {escape(name)}]" for name in unfetchable(message)]
        notes += [f"[attachment: {words}]" for entry in as_list(message, "attachments") if (words := _shown(entry))]
        return "\n".join(notes)

    def _quoted(self, message: Mapping[str, Any]) -> Quoted | None:
        """Return the message that is shared with this one."""
        for entry in as_list(message, "attachments"):
            if (words := _shown(entry)) and (entry.get("is_share") is True or entry.get("is_msg_unfurl") is True):
                return Quoted(readable(words, self.known.user), as_text(entry, "author_name"))
        return None

    def _sender(self, message: Mapping[str, Any]) -> Sender:
        user, bot = as_id(message, "user"), as_id(message, "bot_id")
        if user is None:
            if bot is None:
                return Sender(None, as_text(message, "username"))
            return Sender(bot, as_text(message, "username"), self.me.team, is_bot=True)
        profile = as_mapping(message, "user_profile") or {}
        name = self.known.user(user) or as_text(profile, "display_name") or as_text(profile, "real_name")
        is_bot = bot is not None or user == _SLACKBOT or as_text(message, "subtype") == "bot_message"
        return Sender(user, name, realm_of(user, message, self.me), is_bot)


def _is_own(message: Mapping[str, Any], me: Me) -> bool:
    return message.get("user") == me.user or (bool(me.bot) and message.get("bot_id") == me.bot)


def _shown(entry: Any) -> str:
    if not isinstance(entry, dict):
        raise MalformedEvent("one of its 'attachments' is no object")
    return next((words for name in ("text", "fallback", "title") if (words := as_text(entry, name).strip())), "")
