"""A process that accepts, claims and finishes turns as fast as it can, to be killed. Run as a script: PATH NAME.

Prints `ready` once it works, and `finished INBOX_ID` after each answer that is committed.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

from session_store import ClaimRequest, NewInbox, NewMessage, NewOutbox, PlaceRef, SessionDB

PLACES = [PlaceRef("telegram", "main", "dm", str(chat)) for chat in range(4)]


async def work(db: SessionDB, holder: str, name: str, place: PlaceRef) -> None:
    """Turn after turn in one chat."""
    key = f"agent:main:telegram:dm:{name}-{place.chat}"
    for number in itertools.count():
        text = f"{name}-{place.chat}-{number}"
        row = await db.inbox.accept(NewInbox(place, text, "message", key, time.time(), {"text": text}, {}, key))
        claim = await db.turns.claim(
            ClaimRequest(
                inbox_ids=[row.inbox_id],
                turn_id=f"t{text}",
                holder=holder,
                lane=key,
                place=place,
                source="telegram",
                owner="owner",
                new_session_id=f"s{text}",
                content=text,
                session_key=key,
            ),
            lambda _session, _received: None,
        )
        if claim.fence is not None:
            await db.turns.step(claim.fence, [NewMessage("assistant", "thinking", op_id=f"{text}.1")])
            answer = NewMessage("assistant", f"re: {text}")
            await db.turns.finish(claim.fence, answer, [NewOutbox(place, "answer", f"re: {text}")])
            print("finished", row.inbox_id, flush=True)  # noqa: T201 - the way to speak to the test


async def main(path: str, name: str) -> None:
    """Work in all chats at once until killed."""
    async with SessionDB(path) as db:
        await db.people.sync_config({}, {})
        holder = await db.processes.register("gateway", ["telegram/main"])
        print("ready", flush=True)  # noqa: T201 - the same
        async with asyncio.TaskGroup() as tasks:
            for place in PLACES:
                tasks.create_task(work(db, holder, name, place))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
