"""Answers to slash commands where the app is no member: through the address that came with the command.

Contract: a slash command can be used in any channel, also where the app may not post. Slack gives each a response
address, good for `USES` messages within `SECONDS`; they are seen only by the person who asked. `note` keeps the newest
ones in memory (they are as good as a password), `find` tells which one an answer may use: the one of the command that
it answers, and for further parts the same again. An answer that names no command may use an address only where all
that are known of its place belong to one person.
Limits: `MOST` addresses; after a restart none is known, and the answer is `Gone`, as it is when the address is used up.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from adapters.base import Gone, InboundMessage, Place, Receipt, Refused
from adapters.slack.connection import SDK_LOG

__all__ = ["MOST", "SECONDS", "USES", "ResponseAddress", "Responses", "respond"]

USES: Final = 5
SECONDS: Final = 1800.0
MOST: Final = 256
_USED_UP: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


@dataclass(slots=True)
class ResponseAddress:
    """Where one command may be answered. until: by the monotonic clock."""

    command: str
    place: Place
    user: str | None
    url: str
    until: float
    left: int = USES


class Responses:
    """The response addresses of one account. trusts: whether an address is Slack's own."""

    def __init__(self, trusts: Callable[[str], bool]) -> None:
        self._trusts = trusts
        self._known: OrderedDict[str, ResponseAddress] = OrderedDict()
        #: The command whose answer was sent last in each place: further parts of an answer name none.
        self._current: dict[Place, str] = {}

    def note(self, body: Mapping[str, Any], message: InboundMessage) -> None:
        """Keep the address of a command, if it has one."""
        url = body.get("response_url")
        if message.kind != "command" or not isinstance(url, str) or not self._trusts(url):
            return
        self._forget_old()
        until = time.monotonic() + SECONDS
        address = ResponseAddress(message.message_id, message.place, message.sender.user_id, url, until)
        self._known.setdefault(message.message_id, address)

    def find(self, place: Place, answered: str | None) -> ResponseAddress | None:
        """Return the address for an answer in a place to the message `answered`, if there is one that may be used."""
        self._forget_old()
        here = [address for address in self._known.values() if address.place == place and address.left > 0]
        wanted = answered if answered is not None else self._current.get(place)
        found = next((address for address in here if address.command == wanted), None)
        if found is None and answered is None and len({address.user for address in here}) == 1:
            found = here[-1]
        if found is not None:
            self._current[place] = found.command
        return found

    def _forget_old(self) -> None:
        now = time.monotonic()
        while self._known:
            first = next(iter(self._known.values()))
            if first.until > now and len(self._known) <= MOST:
                break
            del self._known[first.command]
            if self._current.get(first.place) == first.command:
                del self._current[first.place]


async def respond(web: AsyncWebClient, address: ResponseAddress, text: str) -> Receipt:
    """Answer a command, for the person who gave it alone; raises Gone, Refused, or what the SDK raises."""
    hook = AsyncWebhookClient(address.url, session=web.session, retry_handlers=[], logger=SDK_LOG)
    hook.proxy = web.proxy
    address.left -= 1
    answer = await hook.send_dict({"text": text, "response_type": "ephemeral", "mrkdwn": False})
    if answer.status_code in _USED_UP:
        address.left = 0
        raise Gone("The app is no member of the channel, and the command cannot be answered any more; invite the app.")
    if answer.status_code != HTTPStatus.OK:
        raise Refused(f"Slack refused the answer to the command (status {answer.status_code}).")
    return Receipt(f"{address.command}/{USES - address.left}")
