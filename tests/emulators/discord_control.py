"""The emulator's own HTTP interface, for tests that run it in another process. Everything is JSON.

| call | body or query | answer |
|---|---|---|
| POST /control/say | arguments of `DiscordEmulator.say`, or a list of such; `dm` instead of `channel` names a person | `{"messages": [ids]}` |
| POST /control/call | arguments of `DiscordEmulator.call` | `{"interaction": id}` |
| POST /control/dispatch | `{"event": ..., "data": {...}, "times": 1}` | `{}`; the gateway says so, whatever it is |
| POST /control/channel | arguments of `DiscordEmulator.channel` | `{"channel": id}` |
| POST /control/fail | arguments of `Fault` | `{}` |
| POST /control/heal | | `{}`; every fault is gone, the gateway speaks |
| POST /control/gateway | `{"do": "reconnect", "invalidate", "forget", "abort", "silent", "hold", "release" (`backwards`), "close" (`code`) or "raw" (`text`)}` | `{}` |
| GET /control/counts | | numbers of messages said and sent, of sessions begun, resumed, connected |
| GET /control/sent | `after=COUNT` | the messages sent after the first COUNT |
| GET /control/calls | | the interactions and how they were answered |
| POST /control/wait | `{"sent": n, "connected": n, "seconds": s}` | counts and `met`: at least so many in time |
"""  # noqa: E501  (a table has one line for each call)

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.emulators.wire import Answer, Request

if TYPE_CHECKING:
    from tests.emulators.discord import DiscordEmulator

__all__ = ["control", "counts"]

_WAIT_SECONDS = 30.0


def counts(emulator: DiscordEmulator) -> dict[str, int]:
    """Return how far the server is with everything."""
    return {
        "said": len(emulator.said),
        "sent": len(emulator.sent),
        "identified": emulator.gateway.identified,
        "resumed": emulator.gateway.resumed,
        "connected": emulator.gateway.connected,
    }


async def control(emulator: DiscordEmulator, request: Request) -> Answer:  # noqa: C901, PLR0911  (one case per call)
    """Carry out one control call."""
    name = request.path.removeprefix("/control/")
    body: Any = request.fields if request.body else {}
    match request.method, name:
        case "POST", "say":
            said = body if isinstance(body, list) else [body]
            return Answer({"messages": [_say(emulator, one) for one in said]})
        case "POST", "call":
            return Answer({"interaction": emulator.call(**body).id})
        case "POST", "dispatch":
            emulator.gateway.dispatch(body["event"], body["data"], times=body.get("times", 1))
        case "POST", "channel":
            return Answer({"channel": emulator.channel(**body).id})
        case "POST", "fail":
            emulator.fail(**body)
        case "POST", "heal":
            emulator.faults.clear()
            emulator.gateway.silent = False
        case "POST", "gateway":
            await _gateway(emulator, body)
        case "GET", "counts":
            return Answer(counts(emulator))
        case "GET", "sent":
            return Answer([asdict(sent) for sent in emulator.sent[int(request.query.get("after", "0")) :]])
        case "GET", "calls":
            return Answer([asdict(call) for call in emulator.called.values()])
        case "POST", "wait":
            return await _wait(emulator, body)
        case _:
            return Answer({"error": f"no such control: {request.method} {name}"}, status=404)
    return Answer({})


def _say(emulator: DiscordEmulator, one: dict[str, Any]) -> str:
    if (person := one.pop("dm", None)) is not None:
        one |= {"channel": emulator.dm(person), "user": person}
    return emulator.say(**one)


async def _gateway(emulator: DiscordEmulator, body: dict[str, Any]) -> None:
    gateway = emulator.gateway
    match body["do"]:
        case "reconnect":
            gateway.reconnect()
        case "invalidate":
            gateway.invalidate(resumable=body.get("resumable", False))
        case "forget":
            gateway.forget()
        case "abort":
            gateway.abort()
        case "silent":
            gateway.silent = True
        case "hold":
            gateway.hold()
        case "release":
            gateway.release(backwards=body.get("backwards", False))
        case "close":
            await gateway.close(body["code"])
        case "raw":
            gateway.raw(body["text"])


async def _wait(emulator: DiscordEmulator, body: dict[str, Any]) -> Answer:
    def met() -> bool:
        now = counts(emulator)
        return all(now[name] >= body.get(name, 0) for name in ("sent", "connected"))

    try:
        await emulator.until(met, float(body.get("seconds", _WAIT_SECONDS)))
    except TimeoutError:
        return Answer({"met": False, **counts(emulator)})
    return Answer({"met": True, **counts(emulator)})
