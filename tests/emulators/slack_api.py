"""The emulated Web API: what Slack's methods check, do and answer, as far as the adapter calls them.

The refusals are Slack's own words, since clients have to read them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.emulators.slack_state import Channel, Sent, Workspace

if TYPE_CHECKING:
    from tests.emulators.slack import SlackEmulator

__all__ = ["MAX_MARKDOWN", "MAX_TEXT", "Refusal", "call"]

MAX_MARKDOWN = 12_000
MAX_TEXT = 4_000


class Refusal(Exception):
    """The server's answer to a request that it does not carry out."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more


def call(slack: SlackEmulator, workspace: Workspace, method: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one method with a bot token."""
    if method not in _METHODS:
        raise Refusal("unknown_method")
    return _METHODS[method](slack, workspace, fields)


def _identity(_: SlackEmulator, workspace: Workspace, __: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "url": "https://emulated.slack.com/",
        "team": "Emulated",
        "user": workspace.name,
        "team_id": workspace.enterprise if workspace.org_wide else workspace.team,
        "user_id": workspace.user,
        "bot_id": workspace.bot,
        "enterprise_id": workspace.enterprise or None,
        "is_enterprise_install": workspace.org_wide,
    }


def _status(slack: SlackEmulator, _: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    _thread(_channel(slack, fields.get("channel_id")), fields.get("thread_ts"))
    return {}


def _user(_: SlackEmulator, workspace: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    name = workspace.names.get(str(fields.get("user")))
    if name is None:
        raise Refusal("user_not_found")
    return {"user": {"id": fields["user"], "name": name.lower(), "profile": {"display_name": name}}}


def _file(slack: SlackEmulator, _: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    stored = slack.files.get(str(fields.get("file")))
    if stored is None:
        raise Refusal("file_not_found")
    address = f"{slack.base_url.removesuffix('api/')}files/{stored.id}"
    return {"file": {"url_private_download": address, **stored.facts}}


def _about(slack: SlackEmulator, _: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    channel = _channel(slack, fields.get("channel"))
    return {"channel": {"id": channel.id, "name": channel.name}}


def _replies(slack: SlackEmulator, _: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    channel, root = _channel(slack, fields.get("channel")), str(fields.get("ts"))
    if root not in channel.posts:
        raise Refusal("thread_not_found")
    replies = [post for post in _since(channel, fields) if post.get("thread_ts") == root and post["ts"] != root]
    page, cursor = _page(replies, fields)
    return {"messages": [channel.posts[root], *page], "response_metadata": {"next_cursor": cursor}}


def _history(slack: SlackEmulator, _: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    channel = _channel(slack, fields.get("channel"))
    posts = [post for post in _since(channel, fields) if post.get("thread_ts") in {None, post["ts"]}]
    counted = [
        {**post, "reply_count": replies}
        if (replies := sum(other.get("thread_ts") == post["ts"] for other in channel.posts.values()))
        else post
        for post in reversed(posts)
    ]
    page, cursor = _page(counted, fields)
    return {"messages": page, "has_more": bool(cursor), "response_metadata": {"next_cursor": cursor}}


def _since(channel: Channel, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the posts after `oldest`, as history tells them: without what only events say."""
    oldest = float(fields.get("oldest") or 0.0)
    hidden = {"channel", "channel_type", "event_ts"}
    return [
        {name: value for name, value in post.items() if name not in hidden}
        for ts, post in channel.posts.items()
        if float(ts) > oldest
    ]


def _page(posts: list[dict[str, Any]], fields: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    start, limit = int(fields.get("cursor") or 0), int(fields.get("limit") or 100)
    return posts[start : start + limit], str(start + limit) if start + limit < len(posts) else ""


def _channel(slack: SlackEmulator, number: Any) -> Channel:
    channel = slack.channels.get(str(number))
    if channel is None:
        raise Refusal("channel_not_found")
    return channel


def _thread(channel: Channel, root: Any) -> None:
    if root is not None and root not in channel.posts:
        raise Refusal("thread_not_found")


def _post(slack: SlackEmulator, workspace: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    channel = _channel(slack, fields.get("channel"))
    if channel.archived:
        raise Refusal("is_archived")
    if not channel.joined:
        raise Refusal("not_in_channel")
    text, markdown, root = fields.get("text"), fields.get("markdown_text"), fields.get("thread_ts")
    if markdown is not None and (text is not None or fields.get("blocks") is not None):
        raise Refusal("markdown_text_conflict")
    if not str(text or markdown or "").strip():
        raise Refusal("no_text")
    if len(markdown or "") > MAX_MARKDOWN or len(text or "") > slack.max_text:
        raise Refusal("msg_too_long")
    _thread(channel, root)
    ts = slack.next_ts()
    message = {"type": "message", "user": workspace.user, "bot_id": workspace.bot, "ts": ts, "text": text or markdown}
    if root is not None and not slack.swallows_threads:
        message["thread_ts"] = root
    channel.posts[ts] = message
    slack.sent.append(Sent(channel.id, ts, text, markdown, message.get("thread_ts"), workspace.team, time.time()))
    if slack.echoes:
        slack.echo(workspace, channel, message)
    return {"channel": channel.id, "ts": ts, "message": message}


def _update(slack: SlackEmulator, workspace: Workspace, fields: Mapping[str, Any]) -> dict[str, Any]:
    channel, ts = _channel(slack, fields.get("channel")), str(fields.get("ts"))
    text, markdown = fields.get("text"), fields.get("markdown_text")
    before = channel.posts.get(ts)
    if before is None:
        raise Refusal("message_not_found")
    if before.get("bot_id") != workspace.bot:
        raise Refusal("cant_update_message")
    if markdown is not None and text is not None:
        raise Refusal("markdown_text_conflict")
    if not str(text or markdown or "").strip():
        raise Refusal("no_text")
    if len(markdown or "") > MAX_MARKDOWN or len(text or "") > slack.max_text:
        raise Refusal("msg_too_long")
    position = next(number for number, sent in enumerate(slack.sent) if (sent.channel, sent.ts) == (channel.id, ts))
    slack.sent[position] = after = replace(slack.sent[position], text=text, markdown=markdown)
    slack.edits.append(after)
    if slack.echoes:
        slack.edit(ts, after.words, channel=channel.id).echo = True
    else:
        channel.posts[ts] = {**before, "text": after.words}
    return {"channel": channel.id, "ts": ts, "text": after.words, "message": channel.posts[ts]}


_METHODS: Mapping[str, Callable[[SlackEmulator, Workspace, Mapping[str, Any]], dict[str, Any]]] = {
    "assistant.threads.setStatus": _status,
    "auth.test": _identity,
    "chat.postMessage": _post,
    "chat.update": _update,
    "conversations.history": _history,
    "conversations.info": _about,
    "conversations.replies": _replies,
    "files.info": _file,
    "users.info": _user,
}
