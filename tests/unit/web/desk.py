"""A small gateway behind the page: a real store, and an agent whose pace the test sets."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.live import LiveFeed
from session_store import (
    ClaimRequest,
    Entrant,
    Fence,
    NewInbox,
    NewMessage,
    PlaceRef,
    SessionDB,
    StoreError,
    Visibility,
)

__all__ = ["OWNER", "WEB", "FakeDesk", "place_id", "session"]

OWNER = "owner"
WEB = PlaceRef("web", "main", "dm", OWNER, name="web")
_TURNS = itertools.count(1)


class FakeDesk:
    """Implements the page's facade. Turns begin with `begin` and end with `answer`; nothing happens by itself."""

    def __init__(self, db: SessionDB, holder: str) -> None:
        self._db = db
        self._live = LiveFeed()
        self.holder = holder
        self.submitted: list[tuple[str | None, str, str]] = []
        self.stopped: list[str] = []
        self.facts: dict[str, Any] = {"status": "ok", "accounts": {"telegram/main": "connected"}}
        self.trouble: StoreError | None = None
        self.owners = frozenset({OWNER})

    @property
    def db(self) -> SessionDB:
        """The open store."""
        return self._db

    @property
    def live(self) -> LiveFeed:
        """The live feed."""
        return self._live

    async def submit(self, session_id: str | None, text: str, client_id: str) -> str:
        """Record in the inbox; a command is answered at once."""
        if self.trouble is not None:
            raise self.trouble
        self.submitted.append((session_id, text, client_id))
        chosen = session_id or f"20260301_120000_{len(self.submitted):08x}"
        if text.startswith("/"):
            goto = f"{chosen}_next" if text.startswith("/new") else None
            if goto is not None:
                await session(self._db, goto, title=text.removeprefix("/new").strip() or None)
            self._live.notice(chosen, f"You typed `{text}`.", reply_to=client_id, goto=goto)
            return chosen
        accepted = await self._db.inbox.accept(
            NewInbox(
                place=WEB,
                dedupe_key=f"m:{client_id}",
                kind="message",
                lane=f"session:{chosen}",
                received_at=time.time(),
                payload={"text": text, "message_id": client_id},
                sender={"user_id": None},
                session_id=chosen,
                person_id=OWNER,
            )
        )
        row = await self._db.inbox.get(accepted.inbox_id)
        return (row["session_id"] if row is not None else None) or chosen

    async def begin(self) -> tuple[str, Fence]:
        """Claim the oldest message; returns the session and the fence of its turn."""
        while not (rows := await self._db.inbox.pending([("web", "main")], self.holder)):
            await self._db.changes.subscribe().wait(5)
        row = rows[0]
        session_id = str(row["session_id"])
        claim = await self._db.turns.claim(
            ClaimRequest(
                inbox_ids=[row["id"]],
                turn_id=f"t{next(_TURNS)}",
                holder=self.holder,
                lane=row["lane"],
                place=WEB,
                source="web",
                owner=OWNER,
                new_session_id=session_id,
                content=str(row["payload"]["text"]),
                session_id=session_id,
                person_id=OWNER,
                platform_message_id=str(row["payload"]["message_id"]),
            ),
            lambda _session, _received: None,
        )
        assert claim.fence is not None
        assert claim.session_id is not None
        return claim.session_id, claim.fence

    async def answer(self, session_id: str, fence: Fence, text: str) -> None:
        """End a turn with its answer."""
        await self._db.turns.finish(
            fence, NewMessage("assistant", text, finish_reason="stop", op_id=f"{fence.turn_id}f")
        )
        self._live.finish(session_id, fence.turn_id)

    async def tool(self, fence: Fence, name: str, arguments: str, result: str) -> None:
        """Store one tool call and its result."""
        call_id = f"{fence.turn_id}c"
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        steps = [
            NewMessage("assistant", None, tool_calls=[call], finish_reason="tool_calls", op_id=f"{fence.turn_id}a"),
            NewMessage("tool", result, tool_call_id=call_id, tool_name=name, op_id=f"{fence.turn_id}b"),
        ]
        await self._db.turns.step(fence, steps)

    async def talk(self, text: str, answer: str, session_id: str | None = None) -> str:
        """One whole turn; returns the session."""
        await self.submit(session_id, text, f"client-{next(_TURNS):08}")
        session_id, fence = await self.begin()
        await self.answer(session_id, fence, answer)
        return session_id

    async def stop(self, session_id: str) -> None:
        """Note who asked."""
        self.stopped.append(session_id)
        await asyncio.sleep(0)

    def health(self) -> Mapping[str, Any]:
        """What the test set."""
        return self.facts

    async def visibility(self) -> Visibility:
        """What the owner sees."""
        await asyncio.sleep(0)
        return Visibility(self.owners)

    def commands(self) -> Sequence[tuple[str, str, str]]:
        """Three commands."""
        return [
            ("new", "/new [title]", "Begin a new session"),
            ("status", "/status", "Show what runs and what waits"),
            ("stop", "/stop", "End the running answer"),
        ]


async def session(
    db: SessionDB, session_id: str, *, owner: str | None = OWNER, source: str = "web", title: str | None = None
) -> str:
    """Make a session with an owner."""
    return await db.create_session(session_id, source, owner=owner, title=title)


async def place_id(db: SessionDB, place: PlaceRef, session_id: str, entrant: Entrant | None = None) -> int:
    """The row of a place, as a message at that place makes it, and with it the person who sends it."""
    key = f"place:{session_id}:{next(_TURNS)}"
    accepted = await db.inbox.accept(
        NewInbox(place, key, "message", "lane", time.time(), {"text": "x"}, {}, entrant=entrant)
    )
    row = await db.inbox.get(accepted.inbox_id)
    assert row is not None
    await db.inbox.set_aside(accepted.inbox_id, "only for its place")
    return row["place_id"]
