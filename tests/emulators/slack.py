"""An emulated Slack on 127.0.0.1 for tests, Web API and Socket Mode: in the test's own loop, or as a process.

In a test:

    async with SlackEmulator() as slack:
        adapter = SlackAdapter("main", slack.bot_token, slack.app_token, slack.base_url)
        event = slack.say("hello")
        await slack.until(lambda: event.acked)

As a process: `python -m tests.emulators.slack --port 0` prints one JSON line with `base_url`, `control` and the tokens;
`tests.emulators.slack_control` tells what can be asked of it.

Contract: an event is kept until it is confirmed; unconfirmed, it comes again after `ack_seconds` and the delays of
`retry_delays` (the last one again and again while `keeps_trying`), in a new envelope, over any socket. Deliveries and
confirmations are counted. What is posted is checked as Slack checks it and kept in `sent` in order; the app is told of
its own posts, as Slack does. `fail` lays faults in the way of coming calls; the sockets can be asked to go, closed,
cut, silenced or made deaf. An address of a socket works once.
Files are given out to whoever has a bot token.
Limits: no rate limits of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from aiohttp import WSMsgType, web

from tests.emulators.slack_api import MAX_TEXT, Refusal, call
from tests.emulators.slack_control import control
from tests.emulators.slack_events import SlackEvents
from tests.emulators.slack_state import Event, Fault, FaultAction, Sent, Socket, Workspace

__all__ = ["APP_TOKEN", "BOT_TOKEN", "Event", "Fault", "Sent", "SlackEmulator", "main"]

BOT_TOKEN = "xoxb-emulated"  # noqa: S105  (opens nothing but the emulator)
APP_TOKEN = "xapp-emulated"  # noqa: S105  (the same)
#: How often one command can be answered by its response address.
MOST_RESPONSES = 5
#: What is waited for may also change on the client's side, which rings no bell here.
_LOOK_SECONDS = 0.02


class SlackEmulator(SlackEvents):
    """The server. Everything is reachable in process; see the module's text."""

    def __init__(self) -> None:
        super().__init__(Workspace("T1", BOT_TOKEN))
        self.bot_token = BOT_TOKEN
        self.app_token = APP_TOKEN
        self.workspaces = {BOT_TOKEN: self.workspace}
        self.app_tokens = {APP_TOKEN}
        self.sent: list[Sent] = []
        self.edits: list[Sent] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[Fault] = []
        #: What was answered to commands by their response addresses: number of the command, fields.
        self.responses: list[tuple[str, dict[str, Any]]] = []
        self.sockets: list[Socket] = []
        self.opened = 0
        self.max_text = MAX_TEXT
        self.swallows_threads = False
        self.greets = True
        self.links_work = True
        self.ack_seconds = 3.0
        self.retry_delays: Sequence[float] = (0.0, 60.0, 300.0)
        self.keeps_trying = True
        self._holding = False
        self._waiting: list[Event] = []
        self._tickets: dict[str, str] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen; nothing that is known is forgotten, so stop and start are an outage."""
        application = web.Application()
        application.router.add_route("*", "/api/{method}", self._call)
        application.router.add_get("/link", self._link)
        application.router.add_get("/files/{number}", self._file)
        application.router.add_post("/responses/{number}", self._respond)
        application.router.add_route("*", "/control/{name}", self._control)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.port = self._runner.addresses[0][1]
        self.response_base = f"http://127.0.0.1:{self.port}/responses/"

    async def stop(self) -> None:
        """Cut every connection and close the port."""
        for socket in list(self.sockets):
            socket.abort()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def base_url(self) -> str:
        """What an adapter is given as `base_url`."""
        return f"http://127.0.0.1:{self.port}/api/"

    async def until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Return when `condition` holds; it is looked at after every request and injection, and now and then."""
        async with asyncio.timeout(seconds):
            while not condition():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)

    async def confirmed(self, *events: Event) -> None:
        """Return when the app has confirmed these events."""
        await self.until(lambda: all(event.acked for event in events))

    def _ring(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # --- what tests do -----------------------------------------------------------------------------------------------

    def add_workspace(self, team: str, bot_token: str, **facts: Any) -> Workspace:
        """Install the app once more."""
        self.workspaces[bot_token] = workspace = Workspace(team, bot_token, **facts)
        return workspace

    def queue(self, event: Event) -> None:
        """Bring an event to the app, as soon as there is a way."""
        if self._holding:
            self._waiting.append(event)
        else:
            self._deliver(event)
        self._ring()

    def hold(self) -> None:
        """Bring no events until `release`."""
        self._holding = True

    def release(self, order: Callable[[list[Event]], Sequence[Event]] = list) -> None:
        """Bring what was held, in this order."""
        self._holding = False
        waiting, self._waiting = self._waiting, []
        for event in order(waiting):
            self._deliver(event)

    def repeat(self, event: Event) -> None:
        """Bring an event again, also one that was confirmed."""
        self._deliver(event)

    def give_up(self) -> None:
        """Bring nothing any more that was not confirmed: Slack keeps events for minutes only."""
        for event in self.events:
            event.lost = event.lost or not event.acked
            if (timer := self._timers.pop(event.number, None)) is not None:
                timer.cancel()
        self._waiting.clear()

    def frame(self, raw: str) -> None:
        """Send any text over every socket."""
        for socket in self.sockets:
            self._write(socket, raw)

    def fail(self, method: str, action: FaultAction, **how: Any) -> Fault:
        """Lay a fault in the way of coming calls; see `Fault`. Returns it, so that it can be ended with `times = 0`."""
        fault = Fault(method, action, **how)
        self.faults.append(fault)
        return fault

    def flood(self, seconds: float, *, times: int | None = 1, method: str = "chat.postMessage", **how: Any) -> Fault:
        """Answer with a wait."""
        headers = {"Retry-After": str(seconds)}
        return self.fail(method, "refuse", times=times, status=429, error="ratelimited", headers=headers, **how)

    def ask_to_go(self, reason: str = "refresh_requested") -> None:
        """Tell every socket that it is going to be closed."""
        self.frame(json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "emulated"}}))

    async def close_sockets(self) -> None:
        """Close every socket in good manners."""
        for socket in list(self.sockets):
            await socket.stream.close()

    def abort_sockets(self) -> None:
        """Cut every socket without a word."""
        for socket in list(self.sockets):
            socket.abort()

    def silence(self) -> None:
        """Let every socket of now stay open and never be heard again."""
        for socket in self.sockets:
            socket.silent = True

    def mute(self) -> None:
        """Let every socket of now stay healthy to look at, and bring no event."""
        for socket in self.sockets:
            socket.mute = True

    # --- the sockets -------------------------------------------------------------------------------------------------

    def _deliver(self, event: Event) -> None:
        open_ones = [socket for socket in self.sockets if not socket.stream.closed]
        if not open_ones:
            if event not in self._waiting:
                self._waiting.append(event)
            return
        socket = open_ones[event.number % len(open_ones)]
        attempt, event.deliveries = event.deliveries, event.deliveries + 1
        name = f"envelope-{event.number}-{event.deliveries}"
        socket.underway[name] = event
        if not socket.mute:
            envelope = {"envelope_id": name, "type": event.type, "payload": event.payload}
            envelope["accepts_response_payload"] = event.type != "events_api"
            if event.type == "events_api":
                envelope |= {"retry_attempt": attempt, "retry_reason": "timeout" if attempt else ""}
            self._write(socket, json.dumps(envelope))
        self._later(event, self.ack_seconds, self._check)

    def _check(self, event: Event) -> None:
        """Bring an event again that was not confirmed in time."""
        if event.acked:
            return
        tries = event.deliveries - 1
        if tries >= len(self.retry_delays) and not self.keeps_trying:
            event.lost = True
            self._ring()
            return
        self._later(event, self.retry_delays[min(tries, len(self.retry_delays) - 1)], self._deliver)

    def _later(self, event: Event, seconds: float, action: Callable[[Event], None]) -> None:
        if (timer := self._timers.pop(event.number, None)) is not None:
            timer.cancel()
        self._timers[event.number] = asyncio.get_running_loop().call_later(seconds, action, event)

    def _write(self, socket: Socket, raw: str) -> None:
        if not socket.silent and not socket.stream.closed:
            task = asyncio.ensure_future(socket.stream.send_str(raw))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _link(self, request: web.Request) -> web.StreamResponse:
        app_token = self._tickets.pop(request.query.get("ticket", ""), None)
        if app_token is None or not self.links_work:
            return web.Response(status=403)
        stream = web.WebSocketResponse(autoping=False)
        await stream.prepare(request)
        socket = Socket(stream, request, app_token)
        if self.greets:
            await stream.send_json({"type": "hello", "num_connections": len(self.sockets) + 1, "debug_info": {}})
        self.sockets.append(socket)
        self._ring()
        if not self._holding:
            self.release()
        try:
            await self._listen(socket)
        finally:
            self.sockets.remove(socket)
            for event in socket.underway.values():
                if not event.acked and not self._holding:
                    self._later(event, 0.0, self._deliver)
            self._ring()
        return stream

    async def _listen(self, socket: Socket) -> None:
        async for message in socket.stream:
            if socket.silent:
                continue
            if message.type is WSMsgType.PING:
                await socket.stream.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                answer = json.loads(message.data)
                event = socket.underway.pop(answer["envelope_id"], None)
                if event is not None:
                    event.acks += 1
                    event.answers.append(answer.get("payload"))
                self._ring()

    # --- the Web API -------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        is_json = request.content_type == "application/json"
        fields = dict(await request.json()) if is_json else {**request.query, **await request.post()}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(fields.get("token", ""))
        self.calls.append((method, fields))
        try:
            return await self._answer(request, token, method, fields)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": refusal.error, **refusal.more})
        finally:
            self._ring()

    async def _answer(self, request: web.Request, token: str, method: str, fields: dict[str, Any]) -> web.Response:
        fault = next((fault for fault in self.faults if fault.meets(method, fields)), None)
        if fault is None:
            return self._carry_out(token, method, fields)
        answer = self._carry_out(token, method, fields) if fault.processed else None
        self._ring()
        match fault.action:
            case "delay":
                await asyncio.sleep(fault.seconds)
                return answer or self._carry_out(token, method, fields)
            case "drop":
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case "garbage":
                return web.Response(body=b"<html>this is no answer</html>", content_type="application/json")
            case "hang":
                await asyncio.Event().wait()
        if fault.status == 200:
            raise Refusal(fault.error, **fault.more)
        return web.Response(text=fault.error, status=fault.status, headers=fault.headers)

    def _carry_out(self, token: str, method: str, fields: dict[str, Any]) -> web.Response:
        if method == "apps.connections.open":
            if token not in self.app_tokens:
                raise Refusal("invalid_auth")
            self.opened += 1
            ticket = f"ticket-{self.opened}"
            self._tickets[ticket] = token
            return web.json_response({"ok": True, "url": f"ws://127.0.0.1:{self.port}/link?ticket={ticket}"})
        workspace = self.workspaces.get(token)
        if workspace is None:
            raise Refusal("invalid_auth")
        headers = {} if workspace.scopes is None else {"x-oauth-scopes": workspace.scopes}
        return web.json_response({"ok": True, **call(self, workspace, method, fields)}, headers=headers)

    async def _respond(self, request: web.Request) -> web.Response:
        """Take an answer to a command, five for each; whoever knows the address may answer."""
        number = request.match_info["number"]
        fault = next((fault for fault in self.faults if fault.meets("response", {})), None)
        if fault is not None and fault.action == "drop" and request.transport is not None:
            request.transport.abort()
            return web.Response()
        if fault is not None:
            return web.Response(text=fault.error, status=fault.status, headers=fault.headers)
        if [answered for answered, _ in self.responses].count(number) >= MOST_RESPONSES:
            return web.Response(text="used_url", status=404)
        self.responses.append((number, dict(await request.json())))
        self._ring()
        return web.Response(text="ok")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        stored = self.files.get(request.match_info["number"])
        authorized = request.headers.get("Authorization", "").removeprefix("Bearer ") in self.workspaces
        if stored is None or stored.gate == "missing" or not authorized:
            return web.Response(status=404)
        if stored.gate == "redirect":
            return web.Response(status=302, headers={"Location": "/files/login"})
        if stored.gate == "login":
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        if stored.gate == "cut":
            answer = web.StreamResponse(headers={"Content-Length": str(len(stored.data) + 1)})
            await answer.prepare(request)
            await answer.write(stored.data)
            return answer
        return web.Response(body=stored.data, content_type=stored.facts["mimetype"])

    async def _control(self, request: web.Request) -> web.Response:
        return await control(self, request)


async def _serve(port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    emulator = SlackEmulator()
    await emulator.start(port)
    told = {
        "base_url": emulator.base_url,
        "control": f"http://127.0.0.1:{emulator.port}/control",
        "bot_token": emulator.bot_token,
        "app_token": emulator.app_token,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await ended.wait()
    await emulator.stop()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="An emulated Slack on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (the default) takes a free one")
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
