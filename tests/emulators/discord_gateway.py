"""The gateway of the emulated Discord: sessions, sequence numbers, resuming, and everything that goes wrong there.

Contract: every event goes to each session whose intents ask for it, and is kept there until the session is dropped, so
that a resumed connection gets what it missed, once. What happens while a bot has no session is never told to it.
Limits: plain text frames; one connection a session.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.emulators.discord_rules import CONTENT, seen_by
from tests.emulators.discord_state import Bot, snowflake

__all__ = ["Gateway", "Session"]

_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _ACK = 0, 1, 2, 6, 7, 9, 10, 11
_WRONG_TOKEN, _DISALLOWED_INTENTS = 4004, 4014


@dataclass(slots=True)
class Session:
    """What one IDENTIFY began. sent: every event so far; the sequence number is its place, from 1."""

    id: str
    bot: Bot
    intents: int
    link: _Link | None = None
    sent: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Link:
    """One connection."""

    socket: web.WebSocketResponse
    request: web.Request
    pending: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    def say(self, op: int, data: Any = None, **more: Any) -> None:
        self.pending.put_nowait(json.dumps({"op": op, "d": data, **more}))

    def abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()


class Gateway:
    """Listens on a port of its own. known: gives the bot of a token. hello: the events a new session begins with."""

    def __init__(
        self,
        known: Callable[[str], Bot | None],
        hello: Callable[[Bot], Iterator[tuple[str, dict[str, Any]]]],
        ring: Callable[[], None],
    ) -> None:
        self._known = known
        self._hello = hello
        self._ring = ring
        self._runner: web.AppRunner | None = None
        self._links: set[_Link] = set()
        self._held: list[tuple[str, dict[str, Any], str | None, int]] | None = None
        self.sessions: dict[str, Session] = {}
        self.port = 0
        self.identified = 0
        self.resumed = 0
        self.heartbeats = 0
        #: Milliseconds between heartbeats, as told to clients.
        self.heartbeat_interval = 41_250
        #: Says nothing more, not even to heartbeats.
        self.silent = False
        #: What READY says instead of the truth.
        self.ready_instead: dict[str, Any] | None = None
        #: Where READY tells clients to resume; None: here.
        self.resume_url: str | None = None
        #: The query that the newest client connected with.
        self.query: dict[str, str] = {}

    @property
    def url(self) -> str:
        """What an adapter is given as `gateway_url`."""
        return f"ws://127.0.0.1:{self.port}/gateway"

    async def start(self, port: int = 0) -> None:
        """Listen; sessions that were there can be resumed."""
        app = web.Application()
        app.router.add_get("/gateway", self._serve)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Cut every connection and close the port."""
        if self._runner is not None:
            self.abort()
            await self._runner.cleanup()
            self._runner = None

    # --- what happens ------------------------------------------------------------------------------------------------

    def dispatch(
        self, event: str, data: dict[str, Any], *, bot: str | None = None, intent: int = 0, times: int = 1
    ) -> None:
        """Tell all sessions (or those of the bot with this id) of an event; times: deliver it so often."""
        if self._held is not None:
            self._held.append((event, data, bot, intent))
            return
        for session in self.sessions.values():
            if (bot is None or session.bot.user.id == bot) and (not intent or session.intents & intent):
                direct = "guild_id" not in data
                seen = seen_by(session.bot, data, direct=direct, intents=session.intents) if "content" in data else data
                for _ in range(times):
                    self._tell(session, event, seen)
        self._ring()

    def hold(self) -> None:
        """Keep back what happens from now on."""
        self._held = []

    def release(self, *, backwards: bool = False) -> None:
        """Tell what was kept back, in order or the last first."""
        held, self._held = self._held or [], None
        for event, data, bot, intent in reversed(held) if backwards else held:
            self.dispatch(event, data, bot=bot, intent=intent)

    def reconnect(self) -> None:
        """Ask every client to connect anew and resume."""
        for link in self._links:
            link.say(_RECONNECT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell every client that its session is no longer good."""
        for session in list(self.sessions.values()):
            if session.link is not None:
                session.link.say(_INVALID, resumable)
            if not resumable:
                del self.sessions[session.id]

    def forget(self) -> None:
        """Drop every session without a word: resuming fails."""
        self.sessions.clear()

    def abort(self) -> None:
        """Cut every connection without a word."""
        for link in list(self._links):
            link.abort()

    async def close(self, code: int) -> None:
        """Close every connection with a code."""
        for link in list(self._links):
            await link.socket.close(code=code)

    def raw(self, text: str) -> None:
        """Send a frame as it is."""
        for link in self._links:
            link.pending.put_nowait(text)

    @property
    def connected(self) -> int:
        """How many sessions have a connection."""
        return sum(session.link is not None for session in self.sessions.values())

    # --- connections -------------------------------------------------------------------------------------------------

    def _tell(self, session: Session, event: str, data: dict[str, Any]) -> None:
        session.sent.append({"op": _DISPATCH, "t": event, "s": len(session.sent) + 1, "d": data})
        if session.link is not None:
            session.link.pending.put_nowait(json.dumps(session.sent[-1]))

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        self.query = dict(request.query)
        link = _Link(socket, request)
        self._links.add(link)
        link.say(_HELLO, {"heartbeat_interval": self.heartbeat_interval})
        writer = asyncio.create_task(self._write(link))
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    body = json.loads(frame.data)
                    await self._hear(link, body["op"], body.get("d"))
        finally:
            writer.cancel()
            self._links.discard(link)
            for session in self.sessions.values():
                if session.link is link:
                    session.link = None
            self._ring()
        return socket

    async def _write(self, link: _Link) -> None:
        while True:
            text = await link.pending.get()
            if not self.silent:
                await link.socket.send_str(text)

    async def _hear(self, link: _Link, op: int, data: Any) -> None:
        if op == _HEARTBEAT:
            self.heartbeats += 1
            link.say(_ACK)
        elif op == _IDENTIFY:
            await self._identify(link, data)
        elif op == _RESUME:
            await self._resume(link, data)
        self._ring()

    async def _identify(self, link: _Link, data: Any) -> None:
        bot = self._known(data["token"])
        if bot is None:
            await link.socket.close(code=_WRONG_TOKEN)
            return
        if data["intents"] & CONTENT and not bot.content:
            await link.socket.close(code=_DISALLOWED_INTENTS)
            return
        self.identified += 1
        session = Session(snowflake(), bot, data["intents"], link)
        self.sessions[session.id] = session
        for event, body in self._hello(bot):
            if event == "READY":
                body |= {"session_id": session.id, "resume_gateway_url": self.resume_url or self.url}
                if self.ready_instead is not None:
                    body = self.ready_instead  # noqa: PLW2901  (that is the fault)
            self._tell(session, event, body)

    async def _resume(self, link: _Link, data: Any) -> None:
        session = self.sessions.get(data["session_id"])
        if session is None:
            link.say(_INVALID, False)  # noqa: FBT003  (the payload of the real server)
            return
        self.resumed += 1
        if session.link is not None:
            session.link.abort()
        session.link = link
        for event in session.sent[data["seq"] or 0 :]:
            link.pending.put_nowait(json.dumps(event))
        self._tell(session, "RESUMED", {"_trace": []})
