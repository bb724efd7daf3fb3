"""One part to one place, and what went wrong as exactly one kind of `SendError`.

Which error means what:
- flood control: `RetryLater` after the time that Telegram names, for this chat only (Telegram does not say more).
- the connection never came about (refused, timed out, pool full, proxy), or something else answered in Telegram's
  place: `RetryLater`; surely not sent.
- the connection broke or timed out after that, an answer that makes no sense, or a status 5xx: `UnknownOutcome`. A
  gateway error may come from a proxy that had passed the request on, and Telegram has no key for safe repeats.
- token refused: `RetryLater` for the whole account; the answer waits until the configuration is mended.
- blocked, kicked, chat not found: `Gone`. Topic deleted or closed: `Gone` for the thread only.
- the group became a supergroup: `Gone` with `moved_to`; sending again to the old id can never work.
- entities refused: sent again at once as plain text. Any other refusal: `Refused`.
- an edit that changes nothing is none; the message to be edited is gone, or too old: `Refused`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from telegram import Bot, MessageEntity, ReplyParameters
from telegram.constants import ChatAction, ForumTopicLimit
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from wcwidth import grapheme_boundary_before

from adapters.asked import asked_wait
from adapters.base import Gone, OutboundPart, Place, Receipt, Refused, RetryLater, SendError, UnknownOutcome
from adapters.network import reason_of
from adapters.telegram.connection import NotTelegram, ServerTrouble
from adapters.telegram.requests import NEVER_LEFT

__all__ = ["create_topic", "edit_part", "edit_pause", "send_error", "send_part", "show_typing"]

#: Seconds until a connection that did not come about is tried again, and until a refused token is.
_RECONNECT = 2.0
_TOKEN_REFUSED = 60.0
_THREAD_GONE = ("thread not found", "topic_deleted", "topic_id_invalid", "topic not found")
_CHAT_GONE = ("chat not found", "chat was deactivated", "user is deactivated", "peer_id_invalid", "user not found")
#: Seconds between two edits: about one message a second is taken in a direct chat, and twenty a minute in a group. The
#: rest is for what is sent meanwhile.
_EDIT_PAUSE, _EDIT_PAUSE_IN_GROUPS = 1.5, 4.0
#: Seconds to wait for when the flood control does not name any.
_UNTOLD_WAIT = 5.0
#: Causes for which there was no request.
_NO_REQUEST = (ValueError, TypeError)
_NUMBER = re.compile(r"-?\d+\Z")


async def send_part(bot: Bot, place: Place, part: OutboundPart) -> Receipt:
    """Send one part; raises a SendError. Formatting that Telegram refuses is left out rather than the words."""
    try:
        if entities := part.payload.get("entities"):
            text = part.payload.get("text", part.plain)
            try:
                return await _send(bot, place, text, MessageEntity.de_list(entities, None), part.reply_to)
            except BadRequest as error:
                if "entit" not in error.message.lower():
                    raise
        return await _send(bot, place, part.plain, None, part.reply_to)
    except TelegramError as error:
        raise send_error(error) from error


async def _send(
    bot: Bot, place: Place, text: str, entities: Sequence[MessageEntity] | None, reply_to: str | None
) -> Receipt:
    reply = None
    if reply_to is not None and _NUMBER.match(reply_to):
        reply = ReplyParameters(int(reply_to), allow_sending_without_reply=True)
    thread = _thread(place)
    sent = await bot.send_message(
        _chat(place), text, message_thread_id=thread, entities=entities, reply_parameters=reply
    )
    note = None
    if thread is not None and sent.message_thread_id != thread:
        note = "The topic does not exist any more; Telegram put this into the main chat."
    return Receipt(str(sent.message_id), note, thread_gone=note is not None)


async def edit_part(bot: Bot, place: Place, message_id: str, part: OutboundPart) -> None:
    """Put a part in the place of a message; raises a SendError. Formatting that Telegram refuses is left out."""
    if not _NUMBER.match(message_id):
        raise Refused(f"Telegram has no message {message_id!r}: messages there are numbers.")
    chat, number = _chat(place), int(message_id)
    try:
        if entities := part.payload.get("entities"):
            text = part.payload.get("text", part.plain)
            try:
                await bot.edit_message_text(text, chat, number, entities=MessageEntity.de_list(entities, None))
            except BadRequest as error:
                if "entit" not in error.message.lower():
                    raise
            else:
                return
        await bot.edit_message_text(part.plain, chat, number)
    except TelegramError as error:
        if "not modified" not in error.message.lower():
            raise send_error(error) from error


def edit_pause(place: Place) -> float:
    """Seconds from one edit to the next."""
    return _EDIT_PAUSE if place.private else _EDIT_PAUSE_IN_GROUPS


async def show_typing(bot: Bot, place: Place) -> None:
    """Show the typing mark for some seconds."""
    await bot.send_chat_action(_chat(place), ChatAction.TYPING, message_thread_id=_thread(place))


async def create_topic(bot: Bot, place: Place, title: str) -> Place:
    """Create a forum topic in the chat of `place`; raises a SendError."""
    try:
        topic = await bot.create_forum_topic(_chat(place), _topic_name(title))
    except TelegramError as error:
        raise send_error(error) from error
    return Place(place.platform, place.account, place.chat_type, place.chat, str(topic.message_thread_id), topic.name)


def _topic_name(title: str) -> str:
    name = " ".join(title.split())
    limit = int(ForumTopicLimit.MAX_NAME_LENGTH)
    if len(name) > limit:
        name = name[: grapheme_boundary_before(name, limit + 1)].rstrip() or name[:limit]
    return name or "Conversation"


def _chat(place: Place) -> int | str:
    return int(place.chat) if _NUMBER.match(place.chat) else place.chat


def _thread(place: Place) -> int | None:
    if not place.thread:
        return None
    if not _NUMBER.match(place.thread):
        raise Refused(f"Telegram has no topic {place.thread!r}: topics there are numbers.")
    return int(place.thread)


def send_error(error: TelegramError) -> SendError:
    """Return the one kind of SendError that `error` means; see the module's table."""
    reason = error.message.rstrip(".")
    if isinstance(error, RetryAfter):
        seconds = asked_wait(error.retry_after, _UNTOLD_WAIT)
        return RetryLater(f"Telegram asks to wait for {seconds:.0f} s.", seconds)
    if isinstance(error, InvalidToken):
        return RetryLater("Telegram refused the bot's token; check it.", _TOKEN_REFUSED, whole_account=True)
    if isinstance(error, ChatMigrated):
        moved_to = str(error.new_chat_id)
        return Gone(f"The group became a supergroup and is now chat {moved_to}.", moved_to=moved_to)
    if isinstance(error, Forbidden | BadRequest):
        return _refusal(error, reason)
    if isinstance(error, ServerTrouble):
        return UnknownOutcome(f"{reason}; nobody knows whether it was sent.")
    return _failed_request(error, reason)


def _refusal(error: TelegramError, reason: str) -> SendError:
    lowered = reason.lower()
    if any(words in lowered for words in _THREAD_GONE):
        return Gone(f"The topic is gone: {reason}.", thread_only=True)
    if "topic_closed" in lowered:
        return Gone(f"The topic is closed: {reason}.", thread_only=True, closed=True)
    if isinstance(error, Forbidden) or any(words in lowered for words in _CHAT_GONE):
        return Gone(f"The chat is gone for this bot: {reason}.")
    return Refused(f"Telegram refused it: {reason}.")


def _failed_request(error: TelegramError, reason: str) -> SendError:
    cause = error.__cause__
    if isinstance(cause, NEVER_LEFT) or isinstance(error, NotTelegram):
        return RetryLater(f"Telegram cannot be reached: {reason_of(error)}.", _RECONNECT)
    if not isinstance(error, NetworkError):
        return UnknownOutcome(f"Telegram's answer makes no sense: {reason}.")
    if isinstance(cause, _NO_REQUEST):
        return Refused(f"The message cannot be put into a request: {reason}.")
    if cause is None or isinstance(cause, TelegramError):
        # The server did answer, with a status that has no error of its own in the library.
        if "too many requests" in reason.lower():
            return RetryLater(f"Telegram asks to wait: {reason}.", _UNTOLD_WAIT)
        return Refused(f"Telegram refused the request: {reason}.")
    return UnknownOutcome(f"The connection to Telegram failed while sending: {reason_of(error)}.")
