"""One update of the Bot API to one `InboundMessage`: place, sender, words, and whether the bot was meant.

Contract: `inbound` is pure. It returns None for what is no message to us (service messages, kinds of update that were
not asked for) and raises `MalformedUpdate` for an update that cannot be understood. A thread id counts only for real
topic messages, and General has one form: without. Senders behind shared accounts (anonymous admins, channels) have no
user id. Edits and migrations come as events of those kinds; they are never messages.
Files are described, never fetched. Limits: text and captions; content that is neither these nor a file becomes a note
in square brackets that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from telegram import Message, MessageEntity

from adapters.base import ChatType, InboundKind, InboundMessage, Place, Quoted, Sender
from adapters.telegram.described import described

__all__ = ["PLATFORM", "MalformedUpdate", "Me", "inbound"]

PLATFORM: Final = "telegram"

_CHAT_TYPES: Final[Mapping[str, ChatType]] = {
    "private": "dm",
    "group": "group",
    "supergroup": "group",
    "channel": "channel",
}
#: The General topic of a forum, where a server names it at all; it cannot be sent to by this number.
_GENERAL = 1
#: Accounts that many people speak through: anonymous admins, channels in groups, Telegram itself.
_SHARED_USERS = frozenset({1087968824, 136817688, 777000})
_COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_]{1,64})(?:@(?P<bot>[A-Za-z0-9_]+))?(?=\s|\Z)")
#: Attributes of a message that hold content, with the words for it; where one implies another, the telling one first.
_CONTENT: Final = (
    ("photo", "photo"),
    ("live_photo", "live photo"),
    ("animation", "animation"),
    ("video", "video"),
    ("video_note", "video message"),
    ("voice", "voice message"),
    ("audio", "audio"),
    ("document", "document"),
    ("sticker", "sticker"),
    ("venue", "venue"),
    ("location", "location"),
    ("contact", "contact"),
    ("poll", "poll"),
    ("dice", "dice"),
    ("story", "story"),
    ("checklist", "checklist"),
    ("game", "game"),
    ("paid_media", "paid media"),
)


class MalformedUpdate(ValueError):
    """The update lacks what every message has, or holds it in another form."""


@dataclass(frozen=True, slots=True)
class Me:
    """The bot's own identity, as getMe told it."""

    id: int
    username: str


def inbound(update: Mapping[str, Any], me: Me, account: str, received_at: float) -> InboundMessage | None:
    """Return the message that `update` carries, or None when it carries none for us."""
    # Only what we want is parsed: the library refuses updates of other kinds as soon as the platform changes them.
    for name in ("message", "channel_post"):
        if name in update:
            return _message(_parsed(update[name]), me, account, received_at)
    for name in ("edited_message", "edited_channel_post"):
        if name in update:
            return _edit(_parsed(update[name]), me, account, received_at)
    return None


def _parsed(body: Any) -> Message:
    if not isinstance(body, dict):
        raise MalformedUpdate("a message that is none")
    return Message.de_json(body, None)


def _message(message: Message, me: Me, account: str, received_at: float) -> InboundMessage | None:
    if message.migrate_to_chat_id or message.migrate_from_chat_id:
        return _migration(message, account, received_at)
    content = _content(message)
    if content is None:
        return None
    text, entities, media = content
    words, mentioned = _without_mention(text, entities, me)
    command = _COMMAND.match(words)
    kind: InboundKind = "message"
    called = False
    foreign = False
    if command is not None:
        foreign = command["bot"] is not None and command["bot"].lower() != me.username.lower()
        if not foreign:
            kind, called = "command", True
            words = f"/{command['name']}{words[command.end() :]}"
    place, number = _place(message, account), _number(message.message_id, "itself")
    reply = _answered(message)
    to_us = reply is not None and reply.from_user is not None and reply.from_user.id == me.id
    return InboundMessage(
        place=place,
        sender=_sender(message),
        dedupe_key=f"m:{place.chat}:{number}",
        kind=kind,
        text=words,
        message_id=number,
        received_at=received_at,
        addressed=mentioned or called or to_us or (place.private and not foreign),
        reply_to=None if reply is None else _number(reply.message_id, "what it replies to"),
        group_id=_text(message.media_group_id),
        quoted=_quoted(message, reply),
        extra={} if media is None else {"media": media},
        attachments=described(message),
    )


def _edit(message: Message, me: Me, account: str, received_at: float) -> InboundMessage | None:
    content = _content(message)
    if content is None or message.edit_date is None:
        return None
    text, entities, _ = content
    words, mentioned = _without_mention(text, entities, me)
    place, number = _place(message, account), _number(message.message_id, "itself")
    return InboundMessage(
        place=place,
        sender=_sender(message),
        dedupe_key=f"e:{place.chat}:{number}:{int(message.edit_date.timestamp())}",
        kind="edit",
        text=words,
        message_id=number,
        received_at=received_at,
        addressed=mentioned or place.private,
        group_id=_text(message.media_group_id),
        subject=f"m:{place.chat}:{number}",
    )


def _migration(message: Message, account: str, received_at: float) -> InboundMessage:
    """Return the event that a group has become a supergroup; it is told in both chats, each time with both ids."""
    place, number = _place(message, account), _number(message.message_id, "itself")
    old, new = message.migrate_from_chat_id or message.chat.id, message.migrate_to_chat_id or message.chat.id
    return InboundMessage(
        place=place,
        sender=_sender(message),
        dedupe_key=f"m:{place.chat}:{number}",
        kind="migration",
        text="",
        message_id=number,
        received_at=received_at,
        addressed=False,
        extra={"old_chat": _number(old, "the old chat"), "new_chat": _number(new, "the new chat")},
    )


def _place(message: Message, account: str) -> Place:
    chat = message.chat
    chat_type = _CHAT_TYPES.get(chat.type)
    if chat_type is None:
        raise MalformedUpdate(f"an unknown type of chat: {chat.type!r}")
    thread = message.message_thread_id if message.is_topic_message else None
    if thread == _GENERAL and chat_type != "dm":
        thread = None
    name = _text(chat.title) or _full_name(chat.first_name, chat.last_name) or None
    return Place(
        PLATFORM,
        account,
        chat_type,
        _number(chat.id, "its chat"),
        "" if thread is None else _number(thread, "its topic"),
        name,
    )


def _sender(message: Message) -> Sender:
    user = message.from_user
    if message.sender_chat is not None:
        return Sender(None, _text(message.author_signature or message.sender_chat.title) or "")
    if user is None:
        return Sender(None, _text(message.author_signature) or "")
    number = _number(user.id, "its sender")
    name = _full_name(user.first_name, user.last_name)
    if user.id in _SHARED_USERS:
        return Sender(None, name)
    return Sender(number, name, is_bot=bool(user.is_bot))


def _full_name(first: str | None, last: str | None) -> str:
    return " ".join(part for part in (_text(first), _text(last)) if part)


def _content(message: Message) -> tuple[str, Sequence[MessageEntity], str | None] | None:
    """Return text, its entities and the kind of medium, or None for a service message."""
    media = next((words for name, words in _CONTENT if getattr(message, name)), None)
    if (text := _text(message.text)) is not None:
        return text, message.entities, None
    if (caption := _text(message.caption)) is not None:
        return caption, message.caption_entities, media
    if media is None:
        return None
    return "" if described(message) else f"[{media}]", (), media


def _number(value: Any, of: str) -> str:
    """Return an id as places carry it; the library takes over any value, we do not."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedUpdate(f"a message without the number of {of}")
    return str(value)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise MalformedUpdate("a text that is none")
    return value


def _answered(message: Message) -> Message | None:
    """Return the message this one replies to. In a topic, every message formally replies to the topic's first."""
    reply = message.reply_to_message
    if reply is not None and message.is_topic_message and reply.message_id == message.message_thread_id:
        return None
    return reply


def _quoted(message: Message, reply: Message | None) -> Quoted | None:
    """Return what the message quotes or answers: the part that its author chose, else the whole of what is answered."""
    chosen = None if message.quote is None else _text(message.quote.text)
    content = None if reply is None else _content(reply)
    words = chosen
    if not words and reply is not None and content is not None:
        text, _, media = content
        name = _text(reply.document.file_name) if reply.document is not None else None
        words = text or (f"[{media}: {name}]" if name else f"[{media}]")
    if not words:
        return None
    user = None if reply is None else reply.from_user
    return Quoted(words, "" if user is None else _full_name(user.first_name, user.last_name))


def _without_mention(text: str, entities: Sequence[MessageEntity], me: Me) -> tuple[str, bool]:
    """Return the words without mentions of the bot at either end, and whether it was mentioned anywhere."""
    spans = list(_mentions(text, entities, me))
    words = text.strip()
    shift = len(text) - len(text.lstrip())
    start, end = 0, len(words)
    for first, last in spans:
        if first - shift == start:
            start = last - shift
            while start < end and (words[start].isspace() or words[start] in ",:"):
                start += 1
    for first, last in reversed(spans):
        if last - shift == end and first - shift >= start:
            end = len(words[: first - shift].rstrip())
    return words[start:end] or words, bool(spans)


def _mentions(text: str, entities: Sequence[MessageEntity], me: Me) -> Iterator[tuple[int, int]]:
    """Yield the spans, as indexes into `text`, of what mentions the bot, in order."""
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in sorted(entities, key=lambda entity: entity.offset):
        piece = units[entity.offset * 2 : (entity.offset + entity.length) * 2].decode("utf-16-le", "surrogatepass")
        named = entity.type == MessageEntity.MENTION and piece.lower() == f"@{me.username}".lower()
        linked = entity.type == MessageEntity.TEXT_MENTION and entity.user is not None and entity.user.id == me.id
        if named or linked:
            first = len(units[: entity.offset * 2].decode("utf-16-le", "surrogatepass"))
            yield first, first + len(piece)
