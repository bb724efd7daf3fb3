"""The bolt app behind the sockets: it journals what comes, and only then is it confirmed.

Contract: the first middleware is awaited before the confirmation; all is done there, in `take`. When that fails, the
answer is `NOT_TAKEN` and the envelope must not be confirmed, so that Slack brings it again. What can never be
understood is set aside, where people can see it, and confirmed: it must not come again and again. Nothing is done in
listeners, which run after the confirmation; one listens to everything, so that nothing is left unconfirmed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Protocol

import structlog
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from adapters.base import Report, Unreadable
from adapters.slack.connection import SDK_LOG
from adapters.slack.events import PLATFORM
from adapters.slack.fields import MalformedEvent

__all__ = ["NOT_TAKEN", "Aside", "Take", "make_app"]

#: Status of the answer for an event that is not durable.
NOT_TAKEN = HTTPStatus.SERVICE_UNAVAILABLE
_FIRST = ("0",)
#: What a payload holds that lets its reader act in its name.
_SECRET = frozenset({"token", "response_url", "bot_access_token"})
_LOGGED_CHARACTERS = 4000
_EVERYTHING = re.compile(".*", re.DOTALL)

_log = structlog.get_logger(__name__)


class Take(Protocol):
    """Makes one payload durable; see `adapters.slack.intake`."""

    async def __call__(self, body: dict[str, Any], *, again: bool) -> None:
        """Return when it is; raise when it is not."""
        ...


class Aside:
    """Where what nobody can read is put: into the log, and to whoever keeps records of it."""

    def __init__(self, account: str, report: Report | None) -> None:
        self._account = account
        self._report = report

    async def put(self, what: Any, reason: str) -> None:
        """Leave a record; raises when it could not be made durable, and then nothing may be confirmed."""
        if isinstance(what, dict):
            what = {name: "<hidden>" if name in _SECRET else value for name, value in what.items()}
        raw = json.dumps(what, ensure_ascii=True, default=repr)
        _log.error("slack_event_set_aside", account=self._account, reason=reason, payload=raw[:_LOGGED_CHARACTERS])
        if self._report is not None:
            await self._report(Unreadable(PLATFORM, self._account, reason, raw))


def make_app(web: AsyncWebClient, take: Take, aside: Aside) -> AsyncApp:
    """Return the bolt app. All is done in its first middleware, which is awaited before the confirmation."""

    async def journal(req: AsyncBoltRequest, next_: Callable[[], Awaitable[None]]) -> BoltResponse | None:
        try:
            try:
                # The first delivery has a number, too: 0.
                await take(req.body, again=req.headers.get("x-slack-retry-num", _FIRST)[0] != _FIRST[0])
            except MalformedEvent as error:
                await aside.put(req.body, str(error))
                return BoltResponse(status=HTTPStatus.OK)
        except Exception as error:  # noqa: BLE001  (any failure means: not durable, so not confirmed)
            _log.warning("slack_event_not_taken", reason=str(error) or type(error).__name__)
            return BoltResponse(status=NOT_TAKEN)
        await next_()
        return None

    async def authorize() -> AuthorizeResult:
        # Nothing is called in the name of a request, so there is nothing to find out about it.
        return AuthorizeResult(enterprise_id=None, team_id=None, bot_token="")

    app = AsyncApp(
        name="threadline",
        client=web,
        logger=SDK_LOG,
        before_authorize=journal,
        authorize=authorize,
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
        ssl_check_enabled=False,
        url_verification_enabled=False,
        attaching_function_token_enabled=False,
    )

    # Bolt confirms only what somebody listens to.
    async def event() -> None:
        return

    async def command(ack: AsyncAck) -> None:
        await ack()

    app.event(_EVERYTHING)(event)
    app.command(_EVERYTHING)(command)
    return app
