"""The emulator's own HTTP interface, for tests that run it in another process. Everything is JSON.

| call | body or query | answer |
|---|---|---|
| POST /control/say | arguments of `TelegramEmulator.say`, or a list of such | `{"updates": [numbers]}` |
| POST /control/inject | `{"body": update without its number, "token": ...}` | `{"updates": [number]}` |
| POST /control/chat | arguments of `TelegramEmulator.chat` | `{}` |
| POST /control/fail | arguments of `Fault` | `{}` |
| POST /control/heal | | `{}`; every fault is gone |
| GET /control/counts | | numbers of updates, of delivered and confirmed ones, of sent messages |
| GET /control/updates | `after=NUMBER` | what became of each later update |
| GET /control/sent | `after=COUNT` | the messages sent after the first COUNT |
| POST /control/wait | `{"sent": n, "confirmed": n, "seconds": s}` | counts and `met`: at least so many in time |
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.emulators.wire import Answer, Request

if TYPE_CHECKING:
    from tests.emulators.telegram import TelegramEmulator

__all__ = ["control", "counts"]

_WAIT_SECONDS = 30.0


def counts(emulator: TelegramEmulator) -> dict[str, int]:
    """Return how far the server is with everything."""
    updates = emulator.updates.values()
    return {
        "updates": len(updates),
        "delivered": sum(update.deliveries > 0 for update in updates),
        "confirmed": sum(update.confirmed for update in updates),
        "sent": len(emulator.sent),
    }


async def control(emulator: TelegramEmulator, request: Request) -> Answer:  # noqa: PLR0911  (one per call)
    """Carry out one control call."""
    name = request.path.removeprefix("/control/")
    body: Any = request.fields if request.body else {}
    match request.method, name:
        case "POST", "say":
            said = body if isinstance(body, list) else [body]
            return Answer({"updates": [emulator.say(**one) for one in said]})
        case "POST", "inject":
            return Answer({"updates": [emulator.inject(body["body"], token=body.get("token", emulator.token))]})
        case "POST", "chat":
            emulator.chat(**body)
        case "POST", "fail":
            emulator.fail(**body)
        case "POST", "heal":
            emulator.faults.clear()
        case "GET", "counts":
            return Answer(counts(emulator))
        case "GET", "updates":
            after = int(request.query.get("after", "0"))
            return Answer([asdict(update) for number, update in emulator.updates.items() if number > after])
        case "GET", "sent":
            return Answer([asdict(sent) for sent in emulator.sent[int(request.query.get("after", "0")) :]])
        case "POST", "wait":
            return await _wait(emulator, body)
        case _:
            return Answer({"error": f"no such control: {request.method} {name}"}, status=404)
    return Answer({})


async def _wait(emulator: TelegramEmulator, body: dict[str, Any]) -> Answer:
    def met() -> bool:
        now = counts(emulator)
        return all(now[name] >= body.get(name, 0) for name in ("sent", "confirmed"))

    try:
        await emulator.until(met, float(body.get("seconds", _WAIT_SECONDS)))
    except TimeoutError:
        return Answer({"met": False, **counts(emulator)})
    return Answer({"met": True, **counts(emulator)})
