"""One part to one place, and what went wrong as exactly one kind of `SendError`.

Which error means what:
- status 429: `RetryLater` after the time that Slack names, for this chat only (Slack does not say more).
- limits and outages of the whole workspace, a refused token, a missing right: `RetryLater` for the whole account.
- the connection never came about (refused, timed out, no address, proxy): `RetryLater`; surely not sent.
- the connection broke or timed out after that, an answer that makes no sense, status 5xx, or Slack's own "some of it
  may have happened": `UnknownOutcome`. Slack has no key for safe repeats.
- unknown, archived or left channel: the answer to a slash command goes to the person who gave it, as long as Slack
  takes that (`adapters.slack.responses`); otherwise `Gone`. The thread's root deleted or closed to replies: `Gone` for
  the thread only.
- any other refusal of the formatted form: sent again at once as plain text. Of the plain form: `Refused`.
- the message to be edited is gone, somebody else's or too old: `Refused`.
A plain form may need several messages. Which of them are out is remembered in this process, so that a repeated send
goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.base import Gone, OutboundPart, Place, Receipt, Refused, RetryLater, SendError, UnknownOutcome
from adapters.network import reason_of
from adapters.slack.connection import ServerTrouble, TooManyRequests, error_code
from adapters.slack.fields import is_ts
from adapters.slack.formatting import MAX_PLAIN, pieces
from adapters.slack.problems import TOKEN_REFUSED, missing_scope
from adapters.slack.responses import Responses, respond
from adapters.slack.text import escape

__all__ = ["EDIT_PAUSE", "Sender", "send_error"]

#: Seconds between two edits of a message; Slack takes a little more than fifty a minute.
EDIT_PAUSE = 1.5

#: Seconds until a connection that did not come about is tried again, and until an account that is closed to us is.
_RECONNECT = 2.0
_ACCOUNT_PAUSED = 60.0
_BAD_REQUEST = 400
_SERVER_ERROR = 500
_THREAD_GONE = frozenset(
    {
        "cannot_reply_to_message",
        "message_not_found",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "thread_not_found",
    }
)
_CHAT_GONE = frozenset(
    {
        "channel_not_found",
        "channel_type_not_supported",
        "is_archived",
        "not_in_channel",
        "user_disabled",
        "user_is_bot",
        "user_not_found",
        "user_not_visible",
    }
)
_WORKSPACE_BUSY = frozenset({"message_limit_exceeded", "accesslimited", "service_unavailable", "team_added_to_org"})
_NOTHING_DONE = frozenset({"ratelimited", "rate_limited", "request_timeout"})
_PERHAPS_DONE = frozenset({"fatal_error", "internal_error", ""})
_NOT_EDITABLE = frozenset({"cant_update_message", "edit_window_closed", "message_not_found", "is_inactive"})
_TOO_LONG = frozenset({"msg_too_long", "msg_blocks_too_long"})
#: What a refusal means for the person who can mend it, where the word alone does not say it.
_ADVICE = {
    "messages_tab_disabled": "switch on the Messages tab under App Home at api.slack.com/apps",
    "restricted_action": "an administrator allows only some to post there",
    "restricted_action_read_only_channel": "the channel is read-only",
    "restricted_action_thread_only_channel": "the channel takes only replies in threads",
}
_MOST_UNFINISHED = 256
#: The size to which pieces are cut when Slack finds the usual ones too long, whatever it counts.
_SHORT_PIECE = 900
_TITLE_LENGTH = 250

_log = structlog.get_logger(__name__)


class _TooLong(Refused):
    """Slack finds it longer than we do."""


class _NotEditable(Refused):
    """The message cannot be changed, whatever is put in its place."""


@dataclass(slots=True)
class _Progress:
    """How much of a plain form is out: the size of its pieces, and a receipt for each that was sent."""

    size: int = MAX_PLAIN
    receipts: list[Receipt] = field(default_factory=list)


class Sender:
    """Posts in the name of one account."""

    def __init__(self, web: AsyncWebClient, account: str, responses: Responses) -> None:
        self._web = web
        self._account = account
        self._responses = responses
        #: Parts whose plain form is only half out, by idempotency key.
        self._unfinished: OrderedDict[str, _Progress] = OrderedDict()

    async def send(self, place: Place, part: OutboundPart) -> Receipt:
        """Send one part; raises a SendError. Formatting that Slack refuses is left out rather than the words."""
        try:
            return await self._send(place, part)
        except Gone as error:
            address = None if error.thread_only else self._responses.find(place, part.reply_to)
            if address is None:
                raise
        _log.info("slack_command_answered_aside", account=self._account, channel=place.chat)
        try:
            return await respond(self._web, address, escape(part.plain))
        except SendError:
            raise
        except Exception as error:
            raise send_error(error, self._account) from error

    async def _send(self, place: Place, part: OutboundPart) -> Receipt:
        begun = part.idempotency_key in self._unfinished
        if (markdown := part.payload.get("markdown")) and not begun:
            try:
                return await self._post(place, markdown_text=markdown)
            except Refused as error:
                _log.info("slack_formatting_refused", account=self._account, reason=str(error))
        return await self._send_plain(place, part)

    async def edit(self, place: Place, message_id: str, part: OutboundPart) -> None:
        """Put a part in the place of a message; raises a SendError. Formatting that Slack refuses is left out.

        A plain form that needs several messages is posted below the first one if the part has an idempotency key.
        """
        if not is_ts(message_id):
            raise Refused("What was sent through a response address cannot be edited.")
        begun = part.idempotency_key in self._unfinished
        if (markdown := part.payload.get("markdown")) and not begun:
            try:
                await self._update(place, message_id, markdown_text=markdown)
            except _NotEditable:
                raise
            except Refused as error:
                _log.info("slack_formatting_refused", account=self._account, reason=str(error))
            else:
                return
        if not begun:
            first, *more = pieces(part.plain)
            if more and part.idempotency_key is None:
                raise Refused("Slack takes this only as several messages.")
            await self._update(place, message_id, text=first, parse="none", link_names=False)
            if not more:
                return
            self._unfinished[part.idempotency_key or ""] = _Progress(receipts=[Receipt(message_id)])
        await self._send_plain(place, part)

    async def show_status(self, place: Place, status: str) -> None:
        """Show in an assistant thread that an answer is being made; the answer takes it away."""
        await self._web.assistant_threads_setStatus(channel_id=_channel(place), thread_ts=place.thread, status=status)

    async def open_thread(self, place: Place, title: str) -> str:
        """Post what a thread can hang on, and return its id; raises a SendError."""
        words = " ".join(title.split())[:_TITLE_LENGTH] or "Conversation"
        receipt = await self._post(
            Place(place.platform, place.account, place.chat_type, place.chat), text=escape(words)
        )
        return receipt.message_id

    async def _send_plain(self, place: Place, part: OutboundPart) -> Receipt:
        key = part.idempotency_key or ""
        progress = self._unfinished.pop(key, None) or _Progress()
        try:
            for size in (size for size in (MAX_PLAIN, _SHORT_PIECE) if size <= progress.size):
                try:
                    await self._post_pieces(place, part.plain, progress)
                except _TooLong:
                    if progress.receipts or size == _SHORT_PIECE:
                        raise
                    progress.size = _SHORT_PIECE
                else:
                    break
        except SendError:
            if progress.receipts and key:
                self._unfinished[key] = progress
                if len(self._unfinished) > _MOST_UNFINISHED:
                    self._unfinished.popitem(last=False)
            raise
        return next((receipt for receipt in progress.receipts if receipt.note), progress.receipts[0])

    async def _post_pieces(self, place: Place, plain: str, progress: _Progress) -> None:
        for text in pieces(plain, progress.size)[len(progress.receipts) :]:
            # Whatever looks like formatting here was written to be read.
            receipt = await self._post(place, text=text, mrkdwn=False, parse="none", link_names=False)
            progress.receipts.append(receipt)

    async def _update(self, place: Place, ts: str, **content: Any) -> None:
        try:
            await self._web.chat_update(channel=_channel(place), ts=ts, **content)
        except Exception as error:
            if isinstance(error, SlackApiError) and (code := error_code(error)) in _NOT_EDITABLE:
                raise _NotEditable(f"The message cannot be edited: {code}.") from error
            raise send_error(error, self._account) from error

    async def _post(self, place: Place, **content: Any) -> Receipt:
        channel = _channel(place)
        try:
            answer = await self._web.chat_postMessage(
                channel=channel,
                thread_ts=place.thread or None,
                unfurl_links=False,
                unfurl_media=False,
                **content,
            )
        except Exception as error:
            raise send_error(error, self._account) from error
        ts = answer.get("ts")
        if not isinstance(ts, str):
            raise UnknownOutcome("Slack's answer does not name the message; nobody knows whether it was sent.")
        message = answer.get("message")
        thread = message.get("thread_ts") if isinstance(message, dict) else place.thread
        if place.thread and thread != place.thread:
            return Receipt(ts, "The thread does not exist any more; Slack put this into the channel.", thread_gone=True)
        return Receipt(ts)


def send_error(error: Exception, account: str) -> SendError:
    """Return the one kind of SendError that `error` means; see the module's table."""
    if isinstance(error, SlackApiError):
        return _told(error, account)
    reason = str(error) or type(error).__name__
    match error:
        case TooManyRequests():
            return RetryLater(f"{reason}.", error.seconds)
        case _ if _never_left(error):
            return RetryLater(f"Slack cannot be reached: {reason_of(error)}.", _RECONNECT)
        case aiohttp.InvalidURL():
            return Refused(f"The message cannot be put into a request: {reason}.")
        case ServerTrouble() | aiohttp.ClientError() | asyncio.TimeoutError() | OSError():
            return UnknownOutcome(f"Nobody knows whether it was sent: {reason_of(error)}.")
        case _:
            return UnknownOutcome(f"Slack's answer makes no sense: {type(error).__name__}: {reason}.")


def _never_left(error: Exception) -> bool:
    """Tell whether the server surely has not got the whole request: no connection, or one found closed in writing."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError):
        return True
    return isinstance(error, aiohttp.ClientOSError) and isinstance(error.__cause__, aiohttp.ClientConnectionResetError)


def _told(error: SlackApiError, account: str) -> SendError:
    """Return what Slack's own answer means."""
    code = error_code(error)
    status = getattr(error.response, "status_code", 0)
    if not code and _BAD_REQUEST <= status < _SERVER_ERROR:
        return RetryLater(f"Something between us and Slack refused the request (status {status}).", _RECONNECT)
    if code in _PERHAPS_DONE:
        return UnknownOutcome(f"Slack failed in the middle ({code or 'no answer of its own'}).")
    if code in _NOTHING_DONE:
        return RetryLater(f"Slack asks to send it again ({code}).", _RECONNECT)
    if code in _WORKSPACE_BUSY or code in TOKEN_REFUSED or code == "missing_scope":
        reason = f"The Slack workspace takes nothing now ({code})."
        if code == "missing_scope":
            reason = missing_scope(error, account)
        elif code in TOKEN_REFUSED:
            reason = f"Slack refused the bot token ({code}); check platforms.slack.bot_token."
        return RetryLater(reason, _ACCOUNT_PAUSED, whole_account=True)
    return _refusal(code)


def _refusal(code: str) -> SendError:
    if code in _THREAD_GONE:
        return Gone(f"The thread is gone or closed: {code}.", thread_only=True)
    if code in _CHAT_GONE:
        return Gone(f"The channel is gone for this app: {code}.")
    kind = _TooLong if code in _TOO_LONG else Refused
    advice = _ADVICE.get(code)
    return kind(f"Slack refused it: {code}" + (f" ({advice})." if advice else "."))


def _channel(place: Place) -> str:
    _, slash, channel = place.chat.partition("/")
    if not slash or not channel:
        raise Refused(f"Slack has no chat {place.chat!r}: chats there are <team>/<channel>.")
    return channel
