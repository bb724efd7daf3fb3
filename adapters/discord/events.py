"""One event of the gateway, as it came, to one `InboundMessage`: sender, words, and whether the bot was meant.

Contract: every function is pure. It returns None for what is no message to us (our own echoes, service messages, edits
that change no words) and raises `MalformedEvent` for an event that cannot be understood; only what is needed is looked
at. Webhooks are nobody. What people see of a mention is what the text holds: the name, not the number.
Files are described, never fetched, those of forwarded messages too. Limits: any other content than words and files
becomes a note in square brackets that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from adapters.base import InboundKind, InboundMessage, Place, Quoted, Sender
from adapters.discord.described import described, forwarded, named
from adapters.discord.fields import MalformedEvent, as_list, as_mapping, as_text, as_whole, snowflake

__all__ = ["PLATFORM", "Me", "called", "deleted", "edited", "said"]

PLATFORM: Final = "discord"

_COMMAND: Final = 2
_SLASH: Final = 1
#: Types of messages that people write: plain ones and replies. All others tell of something that happened.
_WRITTEN: Final = frozenset({0, 19})
_FORWARD: Final = 1
_USER = re.compile(r"<@!?(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")
_TYPED = re.compile(r"/[A-Za-z][A-Za-z0-9_-]{0,31}(?=\s|\Z)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Me:
    """The bot's own identity. role: the role that a server made for it, which people mention by mistake."""

    id: str
    application: str = ""
    role: str = ""


def said(data: Any, place: Place, me: Me, received_at: float) -> InboundMessage | None:
    """Return the message of a MESSAGE_CREATE, or of the history of a channel."""
    body = as_mapping(data, "a message")
    number = snowflake(body, "id")
    author = _author(body)
    if author.get("id") == me.id or (me.application and body.get("webhook_id") == me.application):
        return None
    if as_whole(body, "type") not in _WRITTEN:
        return None
    sender = _sender(body, author)
    words, mentioned = _words(body, me)
    reply_to, to_us = _reply(body, me)
    addressed = place.private or mentioned or to_us
    kind: InboundKind = "command" if addressed and _TYPED.match(words) else "message"
    return InboundMessage(
        place=_named(place, sender),
        sender=sender,
        dedupe_key=f"m:{number}",
        kind=kind,
        text=words,
        message_id=number,
        received_at=received_at,
        addressed=addressed,
        reply_to=reply_to,
        quoted=_quoted(body, me),
        attachments=described(body, place.chat),
    )


def edited(data: Any, place: Place, me: Me, received_at: float) -> InboundMessage | None:
    """Return the edit of a MESSAGE_UPDATE; previews, pins and the like change no words and are none."""
    body = as_mapping(data, "a message")
    number = snowflake(body, "id")
    stamp = body.get("edited_timestamp")
    if stamp is None or "content" not in body:
        return None
    author = _author(body)
    if author.get("id") == me.id or as_whole({"type": 0, **body}, "type") not in _WRITTEN:
        return None
    sender = _sender(body, author)
    words, mentioned = _words(body, me)
    return InboundMessage(
        place=_named(place, sender),
        sender=sender,
        dedupe_key=f"e:{number}:{_milliseconds(stamp)}",
        kind="edit",
        text=words,
        message_id=number,
        received_at=received_at,
        addressed=place.private or mentioned,
        subject=f"m:{number}",
    )


def deleted(number: Any, place: Place, received_at: float) -> InboundMessage:
    """Return the event that the message `number` was deleted; Discord does not tell whose it was, or who did it."""
    known = snowflake({"id": number}, "id")
    return InboundMessage(
        place=place,
        sender=Sender(None),
        dedupe_key=f"d:{known}",
        kind="delete",
        text="",
        message_id=known,
        received_at=received_at,
        addressed=False,
        subject=f"m:{known}",
    )


def called(data: Any, place: Place, received_at: float) -> InboundMessage | None:
    """Return the command of an INTERACTION_CREATE, with the text that the same command would have when typed."""
    body = as_mapping(data, "an interaction")
    number = snowflake(body, "id")
    if as_whole(body, "type") != _COMMAND:
        return None
    command = as_mapping(body.get("data"), "a command")
    if command.get("type", _SLASH) != _SLASH:
        return None
    member = body.get("member")
    user = as_mapping(as_mapping(member, "a member").get("user") if member is not None else body.get("user"), "a user")
    sender = Sender(snowflake(user, "id"), _name(user, member), is_bot=user.get("bot") is True)
    values = [
        str(as_mapping(option, "an option").get("value", ""))
        for option in as_list(command.get("options"), "options of a command")
    ]
    return InboundMessage(
        place=_named(place, sender),
        sender=sender,
        dedupe_key=f"i:{number}",
        kind="command",
        text=" ".join([f"/{as_text(command, 'name')}", *values]).strip(),
        message_id=number,
        received_at=received_at,
    )


def _author(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(body.get("author"), "an author")


def _sender(body: Mapping[str, Any], author: Mapping[str, Any]) -> Sender:
    number = snowflake(author, "id")
    name = _name(author, body.get("member"))
    if body.get("webhook_id") is not None:
        return Sender(None, name, is_bot=True)
    return Sender(number, name, is_bot=author.get("bot") is True or author.get("system") is True)


def _name(user: Mapping[str, Any], member: Any) -> str:
    """Return the name that people see: that of the server, else the user's own."""
    nick = member.get("nick") if isinstance(member, dict) else None
    names = (nick, user.get("global_name"), user.get("username"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _named(place: Place, sender: Sender) -> Place:
    """Give a direct chat the name of the person in it."""
    return replace(place, name=sender.name) if place.private and sender.name else place


def _reply(body: Mapping[str, Any], me: Me) -> tuple[str | None, bool]:
    """Return what the message replies to, and whether that is ours."""
    reference = body.get("message_reference")
    if reference is None or as_mapping(reference, "a reference").get("type", 0) == _FORWARD:
        return None, False
    answered = body.get("referenced_message")
    to_us = answered is not None and _author(as_mapping(answered, "an answered message")).get("id") == me.id
    return (snowflake(reference, "message_id") if reference.get("message_id") is not None else None), to_us


def _quoted(body: Mapping[str, Any], me: Me) -> Quoted | None:
    """Return what a reply answers, as far as it tells; a quote that cannot be read is not worth losing the reply."""
    answered = body.get("referenced_message")
    if not isinstance(answered, dict):
        return None
    try:
        words = _words(answered, me)[0] or "\n".join(_whole_notes(answered))
        return Quoted(words, _name(_author(answered), answered.get("member"))) if words else None
    except MalformedEvent:
        return None


def _words(body: Mapping[str, Any], me: Me) -> tuple[str, bool]:
    """Return the text as people see it, without the bot's mention at either end, and whether the bot is mentioned."""
    written = as_text(body, "content")
    mentions = [as_mapping(user, "a mentioned user") for user in as_list(body.get("mentions"), "mentions")]
    roles = as_list(body.get("mention_roles"), "mentioned roles")
    by_role = bool(me.role) and me.role in roles
    mentioned = by_role or any(user.get("id") == me.id for user in mentions)
    text = written
    if mentioned:
        text = _without(text, [f"<@{me.id}>", f"<@!{me.id}>", *([f"<@&{me.role}>"] if by_role else [])])
    names = {snowflake(user, "id"): _name(user, user.get("member")) for user in mentions}

    def shown(text: str) -> str:
        text = _USER.sub(lambda match: f"@{name}" if (name := names.get(match[1])) else match[0], text)
        return _EMOJI.sub(r"\1", text)

    words = shown(text) or "\n".join(_notes(body))
    return words if words or body.get("attachments") else shown(written), mentioned


def _without(text: str, tokens: Sequence[str]) -> str:
    """Return the words without mentions of the bot at either end."""
    any_token = "|".join(map(re.escape, tokens))
    words = re.sub(rf"\A\s*(?:(?:{any_token})[\s,:]*)+", "", text)
    return re.sub(rf"(?:\s*(?:{any_token}))+\s*\Z", "", words).strip()


def _notes(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a message without words consists of, but for its files."""
    for sticker in as_list(body.get("sticker_items"), "stickers"):
        yield f"[sticker: {as_mapping(sticker, 'a sticker').get('name', '')}]"
    poll = body.get("poll")
    if poll is not None:
        question = as_mapping(as_mapping(poll, "a poll").get("question"), "a question")
        yield f"[poll: {question.get('text', '')}]"
    for passed_on in forwarded(body):
        yield f"[forwarded: {as_text(passed_on, 'content') or ', '.join(_whole_notes(passed_on)) or 'a message'}]"
    if body.get("embeds"):
        yield "[embedded content]"


def _whole_notes(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a message without words consists of, its files named, too."""
    yield from named(body)
    yield from _notes(body)


def _milliseconds(stamp: Any) -> int:
    """Return the time of an edit in whole milliseconds since 1970."""
    try:
        when = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        raise MalformedEvent(f"no time where one belongs: {stamp!r:.100}") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(milliseconds=1)
