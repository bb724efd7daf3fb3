"""An emulated Discord on 127.0.0.1 for tests, REST and gateway: in the test's own loop, or as a process of its own.

In a test:

    async with DiscordEmulator() as discord:
        adapter = DiscordAdapter("main", discord.token, discord.api_url, discord.gateway_url)
        number = discord.say("hello", channel=discord.dm("42"))
        await discord.until(lambda: discord.sent)

As a process: `python -m tests.emulators.discord --port 0` prints one JSON line with `api_url`, `gateway_url`, `control`
and `token`; `tests.emulators.discord_control` tells what can be asked of it.

Contract: there is one server with a text channel, an announcement channel, a forum, a thread in the text channel, and a
direct chat with every person. What is sent is checked as the real server checks it and kept in `sent` in order; a
repeat with an enforced nonce returns the message that is there. Messages that happen while a bot has no session are
only in the history. `fail` lays faults in the way of coming REST calls, `gateway` has those of the connection.
Files lie on the same server, at addresses that run out.
Limits: no limit of rates unless `limit` is set, one server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from tests.emulators.discord_control import control
from tests.emulators.discord_gateway import Gateway
from tests.emulators.discord_rest import carry_out, find, limited, serve
from tests.emulators.discord_rules import (
    DIRECT_MESSAGES,
    GUILD_MESSAGES,
    Refusal,
    channel_json,
    guild_json,
    message_json,
)
from tests.emulators.discord_state import (
    APPLICATION,
    Bot,
    Call,
    Channel,
    Fault,
    FaultAction,
    Kind,
    Limit,
    Sent,
    Stored,
    User,
    iso,
    snowflake,
)
from tests.emulators.wire import Answer, Request, WireServer

__all__ = ["FORUM", "GUILD", "NEWS", "TEXT", "THREAD", "TOKEN", "DiscordEmulator", "Fault", "Sent", "main"]

TOKEN = "emulated-token"  # noqa: S105  (opens nothing but the emulator)
GUILD, TEXT, NEWS, FORUM, THREAD = "500", "501", "502", "503", "510"
#: What is waited for may also change on the client's side, which rings no bell here.
_LOOK_SECONDS = 0.02
_API = "/api/v10"


class DiscordEmulator:
    """The server. Everything is reachable in process; see the module's text."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.users = {"42": User("42", "Ann")}
        self.bots: dict[str, Bot] = {}
        self.channels: dict[str, Channel] = {}
        self.sent: list[Sent] = []
        self.edits: list[Sent] = []
        self.typed: list[str] = []
        self.said: list[str] = []
        self.called: dict[str, Call] = {}
        self.files: dict[str, Stored] = {}
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.faults: list[Fault] = []
        self.nonces: dict[tuple[str, str, str], tuple[float, dict[str, Any]]] = {}
        #: The limit of messages for each channel, if there is one.
        self.limit: Limit | None = None
        #: How many sessions a bot may still begin today.
        self.sessions_left = 1000
        self._news = asyncio.Event()
        self._server = WireServer(self._handle)
        self._ports = (0, 0)
        self.gateway = Gateway(self.bots.get, self._hello, self._ring)
        self.add_bot(TOKEN, "1000", "gatebot", APPLICATION)
        for number, kind, name in (
            (TEXT, "text", "general"),
            (NEWS, "announcement", "news"),
            (FORUM, "forum", "ideas"),
        ):
            self.channel(number, kind, name=name)
        self.channel(THREAD, "thread", name="plans", parent=TEXT)

    async def __aenter__(self) -> Self:
        """Listen on free ports."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen, on the same ports as before if there were any: stop and start are an outage."""
        api, gateway = self._ports
        await self._server.start(port or api)
        await self.gateway.start(gateway)
        self._ports = (self._server.port, self.gateway.port)

    async def stop(self) -> None:
        """Cut every connection and close the ports."""
        await self.gateway.stop()
        await self._server.stop()

    @property
    def port(self) -> int:
        """The port of the REST API on 127.0.0.1."""
        return self._server.port

    @property
    def api_url(self) -> str:
        """What an adapter is given as `api_url`."""
        return f"http://127.0.0.1:{self.port}{_API}"

    @property
    def gateway_url(self) -> str:
        """What an adapter is given as `gateway_url`, if anything."""
        return self.gateway.url

    async def until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Return when `condition` holds; it is looked at after every request and event, and now and then."""
        async with asyncio.timeout(seconds):
            while not condition():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)

    def _ring(self) -> None:
        """Wake everyone who waits for news; who comes later waits for the next."""
        self._news.set()
        self._news = asyncio.Event()

    # --- what tests do -----------------------------------------------------------------------------------------------

    def add_bot(self, token: str, user_id: str, name: str, application: str | None = None) -> Bot:
        """Know one more bot; it is in the server too."""
        user = self.users[user_id] = User(user_id, name, bot=True)
        self.bots[token] = bot = Bot(token, user, application or user_id, role=f"9{user_id}")
        return bot

    def user(self, user_id: str = "42", name: str = "Ann", *, bot: bool = False) -> User:
        """Return the person with this number, who is made when new."""
        return self.users.setdefault(user_id, User(user_id, name, bot=bot))

    def channel(
        self, number: str | None = None, kind: str = "text", *, name: str | None = None, tell: bool = True, **more: Any
    ) -> Channel:
        """Return the channel with this number; made when new, and sessions hear of it. more: see `Channel`."""
        number = number or snowflake()
        if number not in self.channels:
            guild = None if kind == "dm" else GUILD
            if kind == "thread":
                more = {"parent": TEXT, "owner": "42", **more}
            self.channels[number] = channel = Channel(number, Kind[kind], name or kind, guild, **more)
            if tell and guild is not None:
                self.tell_of(channel, "THREAD_CREATE" if channel.thread else "CHANNEL_CREATE")
        return self.channels[number]

    def dm(self, user_id: str = "42", name: str = "Ann") -> str:
        """Return the channel of the direct chat with a person."""
        self.user(user_id, name)
        return self.channel(f"7{user_id}", "dm", recipient=user_id).id

    def tell_of(self, channel: Channel, event: str, **more: Any) -> None:
        """Tell sessions of a channel, unless it is one that they do not know."""
        if channel.unlisted or channel.hidden:
            return
        for bot in self.bots.values():
            member = bot.user.id if channel.thread else None
            self.gateway.dispatch(event, {**channel_json(channel, member=member), **more}, bot=bot.user.id)

    def say(  # noqa: PLR0913  (what a message can be, by name)
        self,
        text: str,
        *,
        channel: str = TEXT,
        user: str = "42",
        name: str = "Ann",
        mention: bool = False,
        reply_to: str | None = None,
        bot: bool = False,
        times: int = 1,
        **more: Any,
    ) -> str:
        """Let a person say something; returns the number of the message.

        mention: of the bot, in front. times: as often the gateway tells it. `more` goes into the message as it is.
        """
        me = self.bots[TOKEN].user
        author = self.user(user, name, bot=bot)
        if mention:
            text = f"<@{me.id}> {text}"
        where = self.channels[channel]
        if reply_to is not None:
            answered = where.messages.get(reply_to)
            more = {
                "message_reference": {"type": 0, "message_id": reply_to, "channel_id": channel},
                "referenced_message": answered,
                **more,
            }
        message = self.post(where, author, text, kind=19 if reply_to else 0, times=times, more=more)
        self.said.append(message["id"])
        return str(message["id"])

    def post(  # noqa: PLR0913  (what a message can be, by name)
        self,
        channel: Channel,
        author: User,
        text: str,
        *,
        kind: int = 0,
        number: str | None = None,
        nonce: Any = None,
        times: int = 1,
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Put a message into a channel and tell the sessions of it; returns it as REST gives it."""
        mentions = [user for user in self.users.values() if f"<@{user.id}>" in text or f"<@!{user.id}>" in text]
        message = message_json(number or snowflake(), channel.id, author, text, mentions) | {"type": kind}
        message["mention_roles"] = [bot.role for bot in self.bots.values() if f"<@&{bot.role}>" in text]
        message |= more or {}
        channel.messages[message["id"]] = message
        told = {**message, "nonce": nonce} if nonce is not None else message
        self._tell("MESSAGE_CREATE", channel, {**told, "member": author.as_member()}, times=times)
        return message

    def file(self, data: bytes, name: str, content_type: str | None = None) -> Stored:
        """Keep a file; its `facts` go into a message."""
        number = snowflake()
        self.files[number] = stored = Stored(number, data, name, content_type, f"http://127.0.0.1:{self.port}")
        return stored

    def edit(self, number: str, text: str, *, at: float | None = None) -> None:
        """Let the author of a message write it anew."""
        channel = self._channel_of(number)
        message = channel.messages[number]
        message |= {"content": text, "edited_timestamp": iso(time.time() if at is None else at)}
        self._tell("MESSAGE_UPDATE", channel, dict(message))

    def delete(self, *numbers: str) -> None:
        """Take messages of one channel away: one by itself, several at once."""
        channel = self._channel_of(numbers[0])
        for number in numbers:
            del channel.messages[number]
        if len(numbers) == 1:
            self._tell("MESSAGE_DELETE", channel, {"id": numbers[0], "channel_id": channel.id})
        else:
            self._tell("MESSAGE_DELETE_BULK", channel, {"ids": list(numbers), "channel_id": channel.id})

    def delete_thread(self, number: str) -> None:
        """Let somebody delete a thread with everything in it."""
        channel = self.channels.pop(number)
        told = {"id": number, "guild_id": channel.guild, "parent_id": channel.parent, "type": channel.kind}
        self.gateway.dispatch("THREAD_DELETE", told)

    def call(
        self, command: str, argument: str | None = None, *, channel: str = TEXT, user: str = "42", times: int = 1
    ) -> Call:
        """Let a person use a slash command of the bot."""
        where, who, bot = self.channels[channel], self.user(user), self.bots[TOKEN]
        call = Call(snowflake(), f"token-{snowflake()}", time.time(), channel)
        self.called[call.id] = call
        options = [] if argument is None else [{"type": 3, "name": "text", "value": argument}]
        body: dict[str, Any] = {
            "id": call.id,
            "application_id": bot.application,
            "type": 2,
            "token": call.token,
            "version": 1,
            "channel_id": channel,
            "channel": channel_json(where),
            "data": {"id": "3000", "type": 1, "name": command, "options": options},
            "app_permissions": "0",
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 10_000_000,
            "context": 1 if where.guild is None else 0,
        }
        if where.guild is None:
            body["user"] = who.as_json()
        else:
            member = {"user": who.as_json(), **who.as_member(), "permissions": "0"}
            body |= {"guild_id": where.guild, "member": member, "guild": {"id": where.guild, "features": []}}
        self.gateway.dispatch("INTERACTION_CREATE", body, bot=bot.user.id, times=times)
        return call

    def fail(self, operation: str, action: FaultAction, **how: Any) -> Fault:
        """Lay a fault in the way of coming calls; see `Fault`. Returns it, so that it can be ended with `times = 0`."""
        fault = Fault(operation, action, **how)
        self.faults.append(fault)
        return fault

    def _channel_of(self, number: str) -> Channel:
        return next(channel for channel in self.channels.values() if number in channel.messages)

    def _tell(self, event: str, channel: Channel, data: dict[str, Any], times: int = 1) -> None:
        if channel.hidden:
            return
        if channel.guild is not None:
            data = {**data, "guild_id": channel.guild}
        else:
            data.pop("member", None)
        intent = GUILD_MESSAGES if channel.guild is not None else DIRECT_MESSAGES
        self.gateway.dispatch(event, data, intent=intent, times=times)

    # --- the server --------------------------------------------------------------------------------------------------

    def _hello(self, bot: Bot) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what a new session is told first."""
        application = {"id": bot.application, "flags": 0}
        guilds = [{"id": GUILD, "unavailable": True}]
        yield "READY", {"v": 10, "user": bot.user.as_json(), "guilds": guilds, "application": application}
        channels = [channel for channel in self.channels.values() if channel.guild is not None]
        yield "GUILD_CREATE", guild_json(GUILD, "The house", channels, list(self.bots.values()), bot)

    async def _handle(self, request: Request) -> Answer | None:
        if request.path.startswith("/control/"):
            return await control(self, request)
        if request.path.startswith("/attachments/"):
            return serve(self, request)
        try:
            name, parameters = find(request.method, request.path.removeprefix(_API))
            self.calls.append((name, parameters))
            fault = next((fault for fault in self.faults if fault.meets(name, parameters)), None)
            if fault is None:
                return self._within_limit(name, parameters, request)
            return await self._go_wrong(fault, name, parameters, request)
        except Refusal as refusal:
            return Answer(refusal.body, refusal.status)
        finally:
            self._ring()

    def _within_limit(self, name: str, parameters: dict[str, str], request: Request) -> Answer:
        if name != "send" or self.limit is None:
            return carry_out(self, name, parameters, request)
        room, headers = self.limit.take(parameters["channel"])
        if not room:
            refused = limited(Fault(name, "limit", seconds=float(headers["X-RateLimit-Reset-After"])))
            return replace(refused, headers={**refused.headers, **headers})
        answer = carry_out(self, name, parameters, request)
        return replace(answer, headers={**answer.headers, **headers})

    async def _go_wrong(self, fault: Fault, name: str, parameters: dict[str, str], request: Request) -> Answer | None:
        answer = carry_out(self, name, parameters, request) if fault.processed else None
        self._ring()
        if fault.action == "limit":
            return limited(fault)
        if fault.action == "delay":
            await asyncio.sleep(fault.seconds)
            return answer or carry_out(self, name, parameters, request)
        if fault.action == "drop":
            return None
        if fault.action == "garbage":
            return Answer(b"<html>this is no answer</html>", headers={"content-type": "text/html"})
        if fault.action == "hang":
            await asyncio.Event().wait()
        raise Refusal(fault.status, fault.code, fault.message)


async def _serve(port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    emulator = DiscordEmulator()
    await emulator.start(port)
    told = {
        "api_url": emulator.api_url,
        "gateway_url": emulator.gateway_url,
        "control": f"http://127.0.0.1:{emulator.port}/control",
        "token": emulator.token,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await ended.wait()
    await emulator.stop()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="An emulated Discord on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="port of the REST API; 0 (the default) takes a free one")
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
