"""What the emulated Discord knows of Discord: how things look, and what is refused, with the real codes."""

from __future__ import annotations

import time
from typing import Any

from tests.emulators.discord_state import Bot, Channel, User, iso

__all__ = [
    "CONTENT",
    "DIRECT_MESSAGES",
    "GUILD_MESSAGES",
    "MAX_NAME",
    "MAX_NONCE",
    "MAX_UNITS",
    "Refusal",
    "application_json",
    "bad_field",
    "channel_json",
    "guild_json",
    "message_json",
    "seen_by",
    "units",
]

MAX_UNITS = 2000
MAX_NAME = 100
MAX_NONCE = 25
GUILD_MESSAGES = 1 << 9
DIRECT_MESSAGES = 1 << 12
CONTENT = 1 << 15


class Refusal(Exception):
    """The server's answer to a request that it does not carry out."""

    def __init__(self, status: int, code: int, message: str, errors: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"message": message, "code": code}
        if errors is not None:
            self.body["errors"] = errors


def bad_field(name: str, code: str, message: str) -> Refusal:
    """Return the refusal of a body with a wrong field."""
    return Refusal(400, 50035, "Invalid Form Body", {name: {"_errors": [{"code": code, "message": message}]}})


def units(text: str) -> int:
    """Return the length in UTF-16 units: the strictest way that Discord may count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def application_json(bot: Bot, owner: User) -> dict[str, Any]:
    """Return the application as the bot asks for it."""
    return {
        "id": bot.application,
        "name": bot.user.name,
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "owner": owner.as_json(),
        "flags": (1 << 18) if bot.content else 0,
        "team": None,
    }


def channel_json(channel: Channel, *, member: str | None = None) -> dict[str, Any]:
    """Return a channel. member: the bot that is a member of the thread, where that is told."""
    shown: dict[str, Any] = {"id": channel.id, "type": channel.kind, "last_message_id": channel.last, "flags": 0}
    if channel.recipient is not None:
        return shown
    shown |= {"guild_id": channel.guild, "name": channel.name, "parent_id": channel.parent, "nsfw": False}
    if not channel.thread:
        shown |= {"position": 0, "permission_overwrites": [], "topic": None, "rate_limit_per_user": 0}
        if channel.kind == 2:
            shown |= {"bitrate": 64000, "user_limit": 0}
        return shown
    shown |= {
        "owner_id": channel.owner,
        "message_count": len(channel.messages),
        "member_count": 2,
        "rate_limit_per_user": 0,
        "thread_metadata": {
            "archived": channel.archived,
            "locked": channel.locked,
            "auto_archive_duration": channel.archive_minutes,
            "archive_timestamp": "2026-01-01T00:00:00+00:00",
        },
    }
    if member is not None:
        shown["member"] = {
            "id": channel.id,
            "user_id": member,
            "join_timestamp": "2026-01-01T00:00:00+00:00",
            "flags": 1,
        }
    return shown


def guild_json(guild: str, name: str, channels: list[Channel], bots: list[Bot], me: Bot) -> dict[str, Any]:
    """Return a server as a new session is told of it."""
    listed = [channel for channel in channels if not channel.unlisted and not channel.hidden]
    roles = [_role(guild, "@everyone", {})]
    roles += [_role(bot.role, bot.user.name, {"tags": {"bot_id": bot.user.id}, "managed": True}) for bot in bots]
    return {
        "id": guild,
        "name": name,
        "unavailable": False,
        "owner_id": "42",
        "icon": None,
        "verification_level": 0,
        "default_message_notifications": 1,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "system_channel_flags": 0,
        "preferred_locale": "en-US",
        "afk_timeout": 300,
        "features": [],
        "emojis": [],
        "stickers": [],
        "roles": roles,
        "channels": [channel_json(channel) for channel in listed if not channel.thread],
        "threads": [
            channel_json(channel, member=me.user.id) for channel in listed if channel.thread and not channel.archived
        ],
        "members": [{"user": me.user.as_json(), **me.user.as_member(), "roles": [me.role]}],
        "member_count": 3,
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "large": False,
        "joined_at": "2026-01-01T00:00:00+00:00",
    }


def _role(number: str, name: str, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "position": 0,
        "permissions": "0",
        "managed": False,
        "mentionable": True,
        "flags": 0,
        **more,
    }


def message_json(number: str, channel: str, author: User, text: str, mentions: list[User]) -> dict[str, Any]:
    """Return a message as REST gives it; the gateway adds the server and the member."""
    return {
        "id": number,
        "channel_id": channel,
        "author": author.as_json(),
        "content": text,
        "timestamp": iso(time.time()),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [user.as_json() for user in mentions],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": False,
        "type": 0,
        "flags": 0,
        "components": [],
    }


def seen_by(bot: Bot, message: dict[str, Any], *, direct: bool, intents: int) -> dict[str, Any]:
    """Return a message as a bot sees it: without the intent, words of others only when it is meant."""
    if direct or intents & CONTENT or message["author"]["id"] == bot.user.id:
        return message
    if any(user["id"] == bot.user.id for user in message["mentions"]):
        return message
    return {**message, "content": "", "attachments": [], "embeds": [], "components": []}
