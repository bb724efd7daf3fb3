"""The emulator's own HTTP interface, for tests that run it in another process. Everything is JSON.

| call | body or query | answer |
|---|---|---|
| POST /control/say | arguments of `SlackEmulator.say`, or a list of such | `{"events": [numbers], "ts": [times]}` |
| POST /control/command | arguments of `SlackEmulator.command` | the same |
| POST /control/inject | `{"payload": ..., "kind": "events_api"}` | the same |
| POST /control/channel | arguments of `SlackEmulator.channel` | `{}` |
| POST /control/fail | arguments of `Fault` | `{}` |
| POST /control/heal | | `{}`; every fault is gone |
| POST /control/sockets | `{"do": "ask_to_go", "close_sockets", "abort_sockets", "silence" or "mute"}` | `{}` |
| POST /control/pace | `ack_seconds`, `retry_delays`, `keeps_trying` | `{}` |
| GET /control/counts | | numbers of events (echoes apart), of delivered and confirmed ones, of posts, of open sockets |
| GET /control/events | `after=NUMBER` | what became of each later event |
| GET /control/sent | `after=COUNT` | the messages posted after the first COUNT |
| POST /control/wait | `{"sent": n, "acked": n, "seconds": s}` | counts and `met`: at least so many in time |
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.emulators.slack import SlackEmulator
    from tests.emulators.slack_state import Event

__all__ = ["control", "counts"]

_WAIT_SECONDS = 30.0


def counts(slack: SlackEmulator) -> dict[str, int]:
    """Return how far the server is with everything."""
    events = [event for event in slack.events if not event.echo]
    return {
        "events": len(events),
        "delivered": sum(event.deliveries > 0 for event in events),
        "acked": sum(event.acked for event in events),
        "sent": len(slack.sent),
        "sockets": len(slack.sockets),
    }


async def control(slack: SlackEmulator, request: web.Request) -> web.Response:
    """Answer one request for something below /control/."""
    name = request.match_info["name"]
    if request.method == "GET":
        return _told(slack, name, int(request.query.get("after", "0")))
    body = await request.json() if request.can_read_body else {}
    if name == "wait":
        return await _wait(slack, body)
    if name == "sockets":
        await _disturb(slack, body["do"])
        return web.json_response({})
    return _done(slack, name, body)


def _told(slack: SlackEmulator, name: str, after: int) -> web.Response:
    match name:
        case "counts":
            return web.json_response(counts(slack))
        case "events":
            return web.json_response([asdict(event) for event in slack.events if event.number > after])
        case "sent":
            return web.json_response([asdict(sent) for sent in slack.sent[after:]])
        case _:
            return _unknown(name)


def _done(slack: SlackEmulator, name: str, body: Any) -> web.Response:
    match name:
        case "say":
            return _queued([slack.say(**one) for one in (body if isinstance(body, list) else [body])])
        case "command":
            return _queued([slack.command(**body)])
        case "inject":
            return _queued([slack.inject(body["payload"], kind=body.get("kind", "events_api"))])
        case "channel":
            slack.channel(**body)
        case "fail":
            slack.fail(**body)
        case "heal":
            slack.faults.clear()
        case "pace":
            for name_of_pace in ("ack_seconds", "retry_delays", "keeps_trying"):
                setattr(slack, name_of_pace, body.get(name_of_pace, getattr(slack, name_of_pace)))
        case _:
            return _unknown(name)
    return web.json_response({})


def _unknown(name: str) -> web.Response:
    return web.json_response({"error": f"no such control: {name}"}, status=404)


def _queued(events: list[Event]) -> web.Response:
    return web.json_response({"events": [event.number for event in events], "ts": [event.ts for event in events]})


async def _disturb(slack: SlackEmulator, what: str) -> None:
    if what == "close_sockets":
        await slack.close_sockets()
    else:
        {
            "ask_to_go": slack.ask_to_go,
            "abort_sockets": slack.abort_sockets,
            "silence": slack.silence,
            "mute": slack.mute,
        }[what]()


async def _wait(slack: SlackEmulator, body: dict[str, Any]) -> web.Response:
    def met() -> bool:
        now = counts(slack)
        return all(now[name] >= body.get(name, 0) for name in ("sent", "acked"))

    try:
        await slack.until(met, float(body.get("seconds", _WAIT_SECONDS)))
    except TimeoutError:
        return web.json_response({"met": False, **counts(slack)})
    return web.json_response({"met": True, **counts(slack)})
