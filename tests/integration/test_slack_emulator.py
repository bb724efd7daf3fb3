"""The emulated Slack as a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys

import httpx

from adapters.base import InboundMessage, OutboundPart, Verdict
from adapters.slack import SlackAdapter


async def test_the_emulator_serves_another_process() -> None:
    """As its own process it can be told what happens and asked what happened."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.emulators.slack", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())

    async def deliver(message: InboundMessage) -> Verdict:
        await bot.send(message.place, OutboundPart(plain=f"you said {message.text}"))
        return Verdict.ACCEPTED

    bot = SlackAdapter("main", told["bot_token"], told["app_token"], told["base_url"])
    async with httpx.AsyncClient(base_url=told["control"], trust_env=False) as control:
        await control.post("/say", json=[{"text": "hello"}])
        await bot.start(deliver)
        counts = (await control.post("/wait", json={"sent": 1, "acked": 1})).json()
        sent = (await control.get("/sent")).json()
        events = (await control.get("/events")).json()
    await bot.stop()
    process.terminate()

    assert await process.wait() == 0
    assert counts == {"met": True, "events": 1, "delivered": 1, "acked": 1, "sent": 1, "sockets": 1}
    assert sent[0]["text"] == "you said hello"
    assert (events[0]["deliveries"], events[0]["acks"]) == (1, 1)
