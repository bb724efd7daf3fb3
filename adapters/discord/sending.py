"""One part to one place, and what went wrong as exactly one kind of `SendError`.

Every send carries a nonce made from the part's idempotency key and words, and asks Discord to enforce it: for some
minutes a repeat returns the message that is there already. So a repeat after an unknown outcome is safe when it comes
soon, and discord.py's own repeats always are. Nobody is notified by what the agent writes (`allowed_mentions`).

Which error means what:
- told to wait longer than the client sleeps: `RetryLater` after that time; for the whole account when the limit is
  global, or when Discord's front door shuts us out.
- the connection never came about: `RetryLater`. It broke or timed out later, a status 5xx, or an answer that makes no
  sense: `UnknownOutcome`.
- token refused: `RetryLater` for the whole account; the answer waits until the configuration is mended.
- the thread is gone or locked, its channel is known: sent to the channel, and the receipt says so. (One that is only
  archived is opened by what is sent to it.)
- channel or thread gone otherwise, locked or closed to the bot, a person who takes no direct messages: `Gone`.
- slow mode: `RetryLater`. Any other refusal: `Refused`.
- the answered message is gone or may not be answered: sent at once without the reference.
- the message to be edited is gone, or in a thread that was archived: `Refused`, or `Gone`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import aiohttp
import discord

from adapters.asked import asked_wait
from adapters.base import Gone, OutboundPart, Place, Receipt, Refused, RetryLater, SendError, UnknownOutcome
from adapters.discord.connection import GatewayClient
from adapters.network import reason_of

__all__ = ["EDIT_PAUSE", "channel_number", "edit_part", "nonce_of", "send_error", "send_part"]

#: Seconds between two edits of a message; Discord takes about five in five seconds, as it does of messages.
EDIT_PAUSE = 1.5

#: Seconds until a connection that did not come about is tried again, and until a refused token or address is.
_RECONNECT = 2.0
_REFUSED_ACCOUNT = 60.0
#: Seconds to wait for when Discord does not name any.
_UNTOLD_WAIT = 5.0
_SHUT_OUT = 300.0
_MAX_NONCE_BYTES = 15

_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
_TOO_MANY = 429
_SERVER_ERROR = 500

_UNKNOWN_CHANNEL = 10003
_BAD_FORM = 50035
_NO_HISTORY = 160002
#: The thread is there, and whoever may manage threads can open it again.
_CLOSED: Final = frozenset({50083, 160005})
_SLOW_MODE: Final = frozenset({20016, 20028})
_GONE: Final[Mapping[int, str]] = {
    _UNKNOWN_CHANNEL: "the channel does not exist any more",
    10004: "the server does not exist any more, or the bot was removed from it",
    40333: "the channel is closed to the bot",
    50001: "the bot cannot see the channel; give it the permission View Channel",
    50007: "the person takes no direct messages from the bot",
    50008: "nothing can be written in this channel",
    50013: "the bot may not write there; give it the permissions Send Messages and Send Messages in Threads",
    50083: "the thread is archived and locked",
    50278: "the person takes no direct messages from the bot",
    160005: "the thread is locked",
}

_LOST: Final = "does not exist any more"
_LOCKED: Final = "is locked, and the bot may not open it"


async def send_part(client: GatewayClient, place: Place, part: OutboundPart, parent: str | None = None) -> Receipt:
    """Send one part; raises a SendError. parent: the channel that the thread `place` belongs to, where it is known."""
    number = channel_number(place)
    reference = None
    if part.reply_to is not None and part.reply_to.isascii() and part.reply_to.isdigit():
        reference = discord.MessageReference(message_id=int(part.reply_to), channel_id=number, fail_if_not_exists=False)
    try:
        try:
            return await _send(client, number, part, reference)
        except discord.HTTPException as error:
            if reference is None or not _blames_reference(error):
                raise
            return await _send(client, number, part, None)
    except Exception as error:
        told = send_error(error, client)
        code = error.code if isinstance(error, discord.HTTPException) else None
        if parent is None or code not in {_UNKNOWN_CHANNEL, *_CLOSED}:
            raise told from error
        return await _send_to_parent(client, parent, part, told)


async def edit_part(client: GatewayClient, place: Place, message_id: str, part: OutboundPart) -> None:
    """Put a part in the place of a message; raises a SendError."""
    number = channel_number(place)
    if not (message_id.isascii() and message_id.isdigit()):
        raise Refused(f"Discord has no message {message_id!r}: messages there are numbers.")
    message = client.get_partial_messageable(number).get_partial_message(int(message_id))
    try:
        await message.edit(content=part.plain)
    except Exception as error:
        raise send_error(error, client) from error


async def _send_to_parent(client: GatewayClient, parent: str, part: OutboundPart, told: SendError) -> Receipt:
    """Send to the channel what its thread does not take; where the channel takes nothing (a forum), it is gone."""
    try:
        receipt = await _send(client, int(parent), part, None)
    except Exception as error:
        instead = send_error(error, client)
        if isinstance(instead, Gone | Refused):
            raise told from error
        raise instead from error
    closed = isinstance(told, Gone) and told.closed
    note = f"The thread {_LOCKED if closed else _LOST}; what was meant for it was put into its channel."
    return replace(receipt, note=note, thread_gone=not closed)


async def _send(
    client: GatewayClient, number: int, part: OutboundPart, reference: discord.MessageReference | None
) -> Receipt:
    options: dict[str, Any] = {}
    if (nonce := nonce_of(part)) is not None:
        options["nonce"] = nonce
    if reference is not None:
        options |= {"reference": reference, "mention_author": False}
    sent = await client.get_partial_messageable(number).send(part.plain, **options)
    return Receipt(str(sent.id))


def channel_number(place: Place) -> int:
    """Return the channel to write in."""
    if not (place.chat.isascii() and place.chat.isdigit()):
        raise Refused(f"Discord has no channel {place.chat!r}: channels there are numbers.")
    return int(place.chat)


def nonce_of(part: OutboundPart) -> str | None:
    """Return what makes a repeat of this part known, in at most 25 characters.

    The words are in it too: a store that was put back to an older state uses its keys again, for other answers.
    """
    if part.idempotency_key is None:
        return None
    named = f"{part.idempotency_key}\0{part.plain}".encode("utf-8", "surrogatepass")
    return base64.b32encode(hashlib.blake2b(named, digest_size=_MAX_NONCE_BYTES).digest()).decode()


def _blames_reference(error: discord.HTTPException) -> bool:
    return error.code == _NO_HISTORY or (error.code == _BAD_FORM and "message_reference" in error.text)


def send_error(error: BaseException, client: GatewayClient) -> SendError:
    """Return the one kind of SendError that `error` means; see the module's table."""
    if isinstance(error, SendError):
        return error
    if isinstance(error, discord.RateLimited):
        delay = asked_wait(error.retry_after, _UNTOLD_WAIT)
        return RetryLater(f"Discord asks to wait for {delay:.0f} s.", delay, whole_account=client.rest.globally_limited)
    if isinstance(error, discord.HTTPException):
        return _unlike_refusal(error, client) or _refusal(error)
    reason = reason_of(error)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL) or _closed(error):
        return RetryLater(f"Discord cannot be reached: {reason}.", _RECONNECT)
    if isinstance(error, aiohttp.ClientError | OSError):
        return UnknownOutcome(f"The connection to Discord failed while sending: {reason}.")
    return UnknownOutcome(f"Sending failed in an unforeseen way ({type(error).__name__}: {error}).")


def _closed(error: BaseException) -> bool:
    """Tell whether the request never began, because the client was replaced in that moment."""
    return isinstance(error, RuntimeError) and "Session is closed" in str(error)


def _unlike_refusal(error: discord.HTTPException, client: GatewayClient) -> SendError | None:
    """Return what an error status means that says nothing about the part itself."""
    if error.status == _TOO_MANY:
        return _limited(error, client)
    if error.status == _UNAUTHORIZED:
        return RetryLater("Discord refused the bot's token; check it.", _REFUSED_ACCOUNT, whole_account=True)
    if error.status >= _SERVER_ERROR:
        return UnknownOutcome(f"Discord answered with status {error.status}; nobody knows whether it was sent.")
    return None


def _refusal(error: discord.HTTPException) -> SendError:
    reason = (error.text or f"status {error.status}").rstrip(".")
    if error.code in _SLOW_MODE:
        return RetryLater(f"Discord asks to wait: {reason}.", _UNTOLD_WAIT)
    if error.code in _GONE:
        return Gone(f"Not delivered: {_GONE[error.code]} ({reason}).", closed=error.code in _CLOSED)
    if error.code == 0 and error.status in {_FORBIDDEN, _NOT_FOUND}:
        # Discord itself gives its reasons a number; this comes from something that stands before it.
        return RetryLater(f"There seems to be no Discord at the configured api_url ({reason}).", _REFUSED_ACCOUNT)
    return Refused(f"Discord refused it: {reason}.")


def _limited(error: discord.HTTPException, client: GatewayClient) -> SendError:
    """Return the wait that a 429 asks for which the library did not sit out."""
    headers: Mapping[str, Any] = getattr(error.response, "headers", {})
    shut_out = "Via" not in headers
    delay = asked_wait(headers.get("Retry-After"), _SHUT_OUT if shut_out else _UNTOLD_WAIT)
    return RetryLater("Discord asks to wait.", delay, whole_account=shut_out or client.rest.globally_limited)
