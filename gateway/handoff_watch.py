"""Waiting for a handoff: progress in sentences, its end, and calling it off.

Contract: `watch` tells what happens as it happens and returns the handoff as it ended. It waits a minute for a gateway
to take the request and a quarter of an hour for the rest; whichever is over, the request is ended by compare-and-swap,
so that whoever waits and the gateway never disagree about what happened. Who waits no longer leaves it to the gateway;
`call_off` ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from gateway.bell import Bell
from gateway.phrases import entrance
from session_store.handoffs import CLAIM_SECONDS, COMPLETE_SECONDS

if TYPE_CHECKING:
    from session_store import HandoffRow, SessionDB

__all__ = ["call_off", "watch"]

#: How often it is said that it still goes on.
STILL_SECONDS = 15.0
LOOK_SECONDS = 1.0
#: The gateway itself keeps the time; who waits ends what a dead gateway did not.
SLACK_SECONDS = 10.0


async def watch(db: SessionDB, op_id: str, tell: Callable[[str], None]) -> HandoffRow | None:
    """Wait for the end of a handoff; `tell` gets one sentence for each thing that happens. None: it is not there."""
    bell, began = Bell(db), anyio.current_time()
    told: tuple[str, str | None] | None = None
    told_at = claimed_at = began
    while (row := await db.handoffs.get(op_id)) is not None and row["state"] in {"requested", "claimed"}:
        now = anyio.current_time()
        seen = (row["state"], row["stage"])
        if row["state"] == "requested":
            claimed_at = now
        if seen != told:
            tell(await _progress(db, row))
            told, told_at = seen, now
        elif now - told_at >= STILL_SECONDS:
            tell(f"Still at it ({now - began:.0f} s so far).")
            told_at = now
        await _in_time(db, row, now - began, now - claimed_at)
        await bell.wait(LOOK_SECONDS)
    return row


async def call_off(db: SessionDB, op_id: str) -> bool:
    """Cancel a handoff; False if it has ended already."""
    row = await db.handoffs.get(op_id)
    return row is not None and await db.handoffs.end(row["id"], "cancelled", "it was called off.")


async def _in_time(db: SessionDB, row: HandoffRow, waited: float, worked: float) -> None:
    if row["state"] == "requested" and waited > CLAIM_SECONDS:
        reason = "no running gateway took it within a minute. Start one with `threadline gateway run`."
        await db.handoffs.end(row["id"], "expired", reason)
    elif row["state"] == "claimed" and worked > COMPLETE_SECONDS + SLACK_SECONDS:
        await db.handoffs.end(row["id"], "failed", "its gateway did not finish it within 15 minutes.")


async def _progress(db: SessionDB, row: HandoffRow) -> str:
    if row["state"] == "claimed":
        return f"The gateway is at it: {row['stage']}." if row["stage"] else "The gateway has taken it."
    target = row["target"]
    account, name = f"{target.platform}/{target.account}", entrance(target.platform)
    for process in await db.processes.list():
        if process["alive"] and process["role"] == "gateway" and account in process["accounts"]:
            return f"Asking the gateway that serves {name}."
    return f"No running gateway serves {name} now; waiting a minute for one. `threadline gateway run` starts it."
