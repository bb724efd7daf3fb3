"""Payloads as Slack sends them, and what an account knows of its workspace."""

from __future__ import annotations

from typing import Any

from adapters.base import InboundMessage
from adapters.slack.events import Rules, inbound
from adapters.slack.origin import Me

__all__ = ["KNOWN", "ME", "NOW", "RULES", "TS", "around", "changed", "command", "in_channel", "nothing", "post", "read"]

NOW = 1_790_000_100.0
ME = Me("T1", "UBOT", "BBOT", "gatebot")
RULES = Rules("main")
TS = "1790000001.000100"


class Known:
    """A directory with one person, one channel and one assistant thread."""

    def user(self, user: str) -> str:
        """Know Ann."""
        return {"U1": "Ann"}.get(user, "")

    def channel(self, channel: str) -> str:
        """Know #general."""
        return {"C1": "#general"}.get(channel, "")

    def assistant(self, channel: str, ts: str) -> bool:
        """Know one thread."""
        return (channel, ts) == ("D1", "1790000000.000009")


KNOWN = Known()


def post(text: str | None = "hello", *, channel: str = "D1", kind: str = "im", **more: Any) -> dict[str, Any]:
    """Return the payload of a post by Ann."""
    event = {"type": "message", "channel": channel, "channel_type": kind, "user": "U1", "ts": TS, "event_ts": TS}
    return around(event | ({} if text is None else {"text": text}) | more)


def in_channel(text: str | None = "hello", **more: Any) -> dict[str, Any]:
    """Return the payload of a post in a channel."""
    return post(text, channel="C1", kind="channel", **more)


def around(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the payload that brings an event."""
    authorization = {"enterprise_id": None, "team_id": "T1", "user_id": "UBOT", "is_bot": True}
    body = {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": event}
    return body | {"authorizations": [authorization]} | more


def command(text: str = "new title", **more: Any) -> dict[str, Any]:
    """Return the payload of a slash command."""
    body = {"command": "/threadline", "text": text, "team_id": "T1", "trigger_id": "7.8", "user_id": "U1"}
    return body | {"user_name": "ann", "channel_id": "D1", "channel_name": "directmessage"} | more


def read(body: dict[str, Any], me: Me = ME, rules: Rules = RULES) -> InboundMessage:
    """Return the message that must be there."""
    message = inbound(body, me, rules, KNOWN, NOW)
    assert message is not None
    return message


def nothing(body: dict[str, Any]) -> bool:
    """Tell whether there is no message in it for us."""
    return inbound(body, ME, RULES, KNOWN, NOW) is None


def changed(text: str = "better", edited: str | None = "1790000050.000000", **more: Any) -> dict[str, Any]:
    """Return the payload of a change to a post."""
    before = {"type": "message", "user": "U1", "text": "good", "ts": TS}
    after = {**before, "text": text, **({} if edited is None else {"edited": {"user": "U1", "ts": edited}}), **more}
    event = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": "C1",
        "channel_type": "channel",
    }
    return around(event | {"ts": "1790000050.000100", "message": after, "previous_message": before})
