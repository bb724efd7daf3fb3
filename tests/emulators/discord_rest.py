"""The REST API of the emulated Discord, as far as bots that talk need it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.emulators.discord_rules import (
    MAX_NAME,
    MAX_NONCE,
    MAX_UNITS,
    Refusal,
    application_json,
    bad_field,
    channel_json,
    units,
)
from tests.emulators.discord_state import Bot, Call, Channel, Fault, Kind, Sent, snowflake
from tests.emulators.wire import Answer, Request

if TYPE_CHECKING:
    from tests.emulators.discord import DiscordEmulator

__all__ = ["OPERATIONS", "carry_out", "find", "limited", "serve"]

#: For how long a nonce is remembered, and in how many seconds an interaction must have its first answer.
NONCE_SECONDS = 300.0
FIRST_ANSWER_SECONDS = 3.0
_THREADS_IN = {Kind["text"], Kind["announcement"], Kind["forum"]}
_EMPTY = Answer(b"", status=204, headers={"content-type": "text/plain"})

Operation = Callable[["DiscordEmulator", Bot, dict[str, str], Request], Answer]


def _me(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del emulator, parameters, request
    return Answer(bot.user.as_json())


def _application(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del parameters, request
    return Answer(application_json(bot, emulator.users["42"]))


def _gateway(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del bot, parameters, request
    limit = {"total": 1000, "remaining": emulator.sessions_left, "reset_after": 3_600_000, "max_concurrency": 1}
    return Answer({"url": emulator.gateway_url, "shards": 1, "session_start_limit": limit})


def _channel(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del request
    return Answer(channel_json(_visible(emulator, parameters), member=bot.user.id))


def _history(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del bot
    channel = _visible(emulator, parameters)
    limit = int(request.query.get("limit", "50"))
    if not 1 <= limit <= 100:
        raise bad_field("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100")
    after, before = request.query.get("after"), request.query.get("before")
    found = list(channel.messages.values())
    if after is not None:
        return Answer([message for message in found if int(message["id"]) > int(after)][:limit][::-1])
    if before is not None:
        found = [message for message in found if int(message["id"]) < int(before)]
    return Answer(found[-limit:][::-1])


def _message(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del bot, request
    message = _visible(emulator, parameters).messages.get(parameters["message"])
    if message is None:
        raise Refusal(404, 10008, "Unknown Message")
    fresh = [stored.facts if (stored := emulator.files.get(file["id"])) else file for file in message["attachments"]]
    return Answer({**message, "attachments": fresh})


def serve(emulator: DiscordEmulator, request: Request) -> Answer | None:
    """Give out a file to whoever has an address that works."""
    stored = emulator.files.get(request.path.split("/")[2])
    if "authorization" in request.headers:
        return Answer(b"nobody asked for that", status=400)
    if stored is None or request.query.get("ex") != str(stored.signature) or stored.gate == "gone":
        return Answer(b"This content is no longer available.", status=404)
    if stored.gate == "cut":
        return None
    kind = stored.content_type or "application/octet-stream"
    return {
        "redirect": Answer(b"", status=302, headers={"location": "http://127.0.0.1:1/"}),
        "trouble": Answer(b"", status=503),
        "hang": Answer(stored.data, headers={"content-length": str(len(stored.data) + 1)}),
    }.get(stored.gate, Answer(stored.data, headers={"content-type": kind}))


def _send(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    channel = _writable(emulator, parameters)
    fields = request.fields
    text = fields.get("content")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(400, 50006, "Cannot send an empty message")
    if units(text) > MAX_UNITS:
        raise bad_field("content", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_UNITS} or fewer in length.")
    nonce = fields.get("nonce")
    if nonce is not None and len(str(nonce)) > MAX_NONCE:
        raise bad_field("nonce", "NONCE_TYPE_TOO_LONG", f"Must be {MAX_NONCE} or fewer in length.")
    key = (bot.user.id, channel.id, str(nonce))
    if nonce is not None and fields.get("enforce_nonce"):
        before = emulator.nonces.get(key)
        if before is not None and time.time() - before[0] < NONCE_SECONDS:
            return Answer(before[1])
    reply = _reference(channel, fields)
    channel.archived = False
    message = emulator.post(channel, bot.user, text.strip(), kind=0 if reply is None else 19, nonce=nonce)
    emulator.nonces[key] = (time.time(), message)
    mentions = fields.get("allowed_mentions")
    emulator.sent.append(
        Sent(channel.id, message["id"], message["content"], nonce, reply, mentions, bot.user.id, time.time())
    )
    return Answer(message)


def _edit(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    channel, number = _writable(emulator, parameters), parameters["message"]
    message = channel.messages.get(number)
    if message is None:
        raise Refusal(404, 10008, "Unknown Message")
    if message["author"]["id"] != bot.user.id:
        raise Refusal(403, 50005, "Cannot edit a message authored by another user")
    if channel.archived:
        raise Refusal(400, 50083, "Thread is archived")
    text = request.fields.get("content")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(400, 50006, "Cannot send an empty message")
    if units(text) > MAX_UNITS:
        raise bad_field("content", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_UNITS} or fewer in length.")
    emulator.edit(number, text.strip())
    position = next(place for place, sent in enumerate(emulator.sent) if sent.message_id == number)
    mentions = request.fields.get("allowed_mentions")
    emulator.sent[position] = after = replace(emulator.sent[position], text=text.strip(), mentions=mentions)
    emulator.edits.append(after)
    return Answer(message)


def _reference(channel: Channel, fields: dict[str, Any]) -> str | None:
    reference = fields.get("message_reference")
    if reference is None:
        return None
    number = str(reference["message_id"])
    if number not in channel.messages:
        if reference.get("fail_if_not_exists", True):
            raise bad_field("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None
    if channel.messages[number]["type"] not in {0, 19, 20, 21, 23}:
        raise bad_field("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to that")
    return number


def _typing(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del bot, request
    emulator.typed.append(_writable(emulator, parameters).id)
    return _EMPTY


def _thread(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    parent = _writable(emulator, parameters)
    fields = request.fields
    if parent.kind not in _THREADS_IN:
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    _check_name(fields)
    forum = parent.kind == Kind["forum"]
    if forum and not fields.get("message", {}).get("content"):
        raise bad_field("message", "BASE_TYPE_REQUIRED", "This field is required")
    number = snowflake()
    thread = _opened(emulator, bot, parent, number, fields)
    shown = channel_json(thread, member=bot.user.id)
    if forum:
        shown["message"] = emulator.post(thread, bot.user, fields["message"]["content"], number=number)
    else:
        emulator.post(parent, bot.user, fields["name"], kind=18)
    return Answer(shown, status=201)


def _thread_from(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    parent = _writable(emulator, parameters)
    fields = request.fields
    _check_name(fields)
    if parameters["message"] not in parent.messages:
        raise Refusal(404, 10008, "Unknown Message")
    if parameters["message"] in emulator.channels:
        raise Refusal(400, 160004, "A thread has already been created for this message")
    thread = _opened(emulator, bot, parent, parameters["message"], fields)
    return Answer(channel_json(thread, member=bot.user.id), status=201)


def _opened(emulator: DiscordEmulator, bot: Bot, parent: Channel, number: str, fields: dict[str, Any]) -> Channel:
    thread = emulator.channel(number, "thread", name=fields["name"], parent=parent.id, owner=bot.user.id, tell=False)
    if parent.kind == Kind["announcement"]:
        thread.kind = 10
    elif parent.kind == Kind["text"] and number not in parent.messages:
        # Without a word about the type, a thread without a message is a private one.
        thread.kind = fields.get("type", 12)
    thread.archive_minutes = fields.get("auto_archive_duration", 4320)
    emulator.tell_of(thread, "THREAD_CREATE", newly_created=True)
    return thread


def _check_name(fields: dict[str, Any]) -> None:
    if not 1 <= units(str(fields.get("name", ""))) <= MAX_NAME:
        raise bad_field("name", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {MAX_NAME} in length.")


def _active(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del parameters, request
    threads = [
        channel_json(channel, member=bot.user.id)
        for channel in emulator.channels.values()
        if channel.thread and not channel.archived and not channel.hidden
    ]
    return Answer({"threads": threads, "members": [thread["member"] for thread in threads], "has_more": False})


def _commands(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del emulator, parameters
    if request.method == "PUT":
        bot.commands = [
            {"id": snowflake(), "application_id": bot.application, "version": snowflake(), **command}
            for command in request.fields
        ]
    return Answer(bot.commands)


def _callback(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    del bot
    call = _call(emulator, parameters)
    if time.time() - call.began > FIRST_ANSWER_SECONDS:
        raise Refusal(404, 10062, "Unknown interaction")
    if call.deferred:
        raise Refusal(400, 40060, "Interaction has already been acknowledged.")
    fields = request.fields
    call.deferred = fields["type"] == 5
    call.ephemeral = bool((fields.get("data") or {}).get("flags", 0) & 64)
    return Answer({"interaction": {"id": call.id, "type": 2, "response_message_loading": call.deferred}})


def _original(emulator: DiscordEmulator, bot: Bot, parameters: dict[str, str], request: Request) -> Answer:
    call = _call(emulator, parameters)
    if not call.deferred or call.deleted:
        raise Refusal(404, 10008, "Unknown Message")
    if request.method == "DELETE":
        call.deleted = True
        return _EMPTY
    call.text = request.fields["content"]
    channel = emulator.channels[call.channel]
    return Answer(emulator.post(channel, bot.user, call.text or "", kind=20, more={"webhook_id": bot.application}))


def _call(emulator: DiscordEmulator, parameters: dict[str, str]) -> Call:
    call = next((call for call in emulator.called.values() if call.token == parameters["token"]), None)
    if call is None:
        raise Refusal(404, 10062, "Unknown interaction")
    return call


def _visible(emulator: DiscordEmulator, parameters: dict[str, str]) -> Channel:
    channel = emulator.channels.get(parameters["channel"])
    if channel is None:
        raise Refusal(404, 10003, "Unknown Channel")
    if channel.hidden:
        raise Refusal(403, 50001, "Missing Access")
    return channel


def _writable(emulator: DiscordEmulator, parameters: dict[str, str]) -> Channel:
    channel = _visible(emulator, parameters)
    if channel.mute:
        raise Refusal(403, 50013, "Missing Permissions")
    if channel.locked:
        raise Refusal(403, 160005, "Thread is locked")
    return channel


#: Name of an operation (as faults have it): method, address, what is done.
OPERATIONS: dict[str, tuple[str, str, Operation]] = {
    "me": ("GET", "/users/@me", _me),
    "application": ("GET", "/oauth2/applications/@me", _application),
    "gateway": ("GET", "/gateway/bot", _gateway),
    "channel": ("GET", "/channels/{channel}", _channel),
    "history": ("GET", "/channels/{channel}/messages", _history),
    "message": ("GET", "/channels/{channel}/messages/{message}", _message),
    "send": ("POST", "/channels/{channel}/messages", _send),
    "edit": ("PATCH", "/channels/{channel}/messages/{message}", _edit),
    "typing": ("POST", "/channels/{channel}/typing", _typing),
    "thread": ("POST", "/channels/{channel}/threads", _thread),
    "thread_from": ("POST", "/channels/{channel}/messages/{message}/threads", _thread_from),
    "active": ("GET", "/guilds/{guild}/threads/active", _active),
    "commands": ("GET", "/applications/{application}/commands", _commands),
    "register": ("PUT", "/applications/{application}/commands", _commands),
    "callback": ("POST", "/interactions/{interaction}/{token}/callback", _callback),
    "edit_original": ("PATCH", "/webhooks/{application}/{token}/messages/@original", _original),
    "delete_original": ("DELETE", "/webhooks/{application}/{token}/messages/@original", _original),
}
_PATTERNS = {
    name: (method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + r"\Z"), done)
    for name, (method, path, done) in OPERATIONS.items()
}
_WITHOUT_TOKEN = frozenset({"callback", "edit_original", "delete_original"})


def find(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the name of the operation at an address below the API, and what the address names."""
    for name, (wanted, pattern, _) in _PATTERNS.items():
        match = pattern.match(unquote(path))
        if match and wanted == method:
            return name, match.groupdict()
    raise Refusal(404, 0, "404: Not Found")


def carry_out(emulator: DiscordEmulator, name: str, parameters: dict[str, str], request: Request) -> Answer:
    """Do what is asked; raises Refusal."""
    token = request.headers.get("authorization", "").removeprefix("Bot ")
    bot = emulator.bots.get(token)
    if name in _WITHOUT_TOKEN:
        bot = next(iter(emulator.bots.values()))
    if bot is None:
        raise Refusal(401, 0, "401: Unauthorized")
    return _PATTERNS[name][2](emulator, bot, parameters, request)


def limited(fault: Fault) -> Answer:
    """Return the answer to what came too often."""
    headers = {"Retry-After": str(fault.seconds), "X-RateLimit-Scope": "global" if fault.everywhere else "user"}
    if fault.via:
        headers["Via"] = "1.1 google"
    if fault.everywhere:
        headers["X-RateLimit-Global"] = "true"
    body = {"message": "You are being rate limited.", "retry_after": fault.seconds, "global": fault.everywhere}
    return Answer(body, status=429, headers=headers)
