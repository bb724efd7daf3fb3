"""A store with a conversation of the owner, and the steps of a gateway on it, each by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from session_store import (
    Binding,
    Claim,
    ClaimRequest,
    Fence,
    HandoffRow,
    Home,
    NewHandoff,
    NewInbox,
    NewMessage,
    NewOutbox,
    PlaceRef,
    SessionDB,
)

__all__ = ["DIRECT", "GROUP", "SESSION", "THREAD", "Stage"]

SESSION = "20261129_090000_abc123"
DIRECT = PlaceRef("telegram", "main", "dm", "42", name="Ann")
GROUP = PlaceRef("slack", "main", "group", "T1/C1", name="general")
THREAD = PlaceRef("slack", "main", "group", "T1/C1", "17.1", name="general")
TELEGRAM, SLACK = [("telegram", "main")], [("slack", "main")]


class Stage:
    """What happens to one conversation."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.gateway = ""

    async def begin(self) -> None:
        """Register a gateway; the owner says something in the terminal."""
        await self.db.people.sync_config({"telegram": ["42"]}, {})
        self.gateway = await self.db.processes.register("gateway", ["telegram/main", "slack/main"])
        await self.db.create_session(SESSION, "cli", owner="owner", title="The key")
        await self.db.append_message(SESSION, "user", "Where is the key?")
        await self.db.append_message(SESSION, "assistant", "Under the mat.")

    async def ask(
        self, op_id: str = "op", target: PlaceRef = DIRECT, kind: Literal["handoff", "link"] = "handoff", **more: Any
    ) -> HandoffRow:
        """Enter a request."""
        new = NewHandoff(op_id, kind, SESSION, Home(target, "42"), "owner")
        return await self.db.handoffs.request(replace(new, **more))

    async def taken(self, op_id: str = "op", **more: Any) -> tuple[HandoffRow, Fence]:
        """The same, claimed and with the conversation's lease."""
        asked = await self.ask(op_id, **more)
        row = await self.db.handoffs.claim(asked["id"], self.gateway)
        assert row is not None
        held = await self.db.handoffs.hold(row["id"], self.gateway)
        assert held.fence is not None
        return row, held.fence

    def binding(self, row: HandoffRow, fence: Fence, place: PlaceRef = DIRECT, **more: Any) -> Binding:
        """How it would be bound there."""
        return replace(
            Binding(
                handoff_id=row["id"],
                fence=fence,
                place=place,
                session_key=f"key of {place.chat}{place.thread}",
                message=NewMessage("assistant", "Here it goes on.", op_id=f"handoff:{row['id']}"),
                confirmation=NewOutbox(place, "handoff", "Here it goes on."),
                farewell="Gone to a direct chat.",
                farewell_shared="Gone.",
                person_id="owner",
            ),
            **more,
        )

    async def brought(self, op_id: str, place: PlaceRef = DIRECT, **more: Any) -> int:
        """The whole way of a handoff or link to a place."""
        kind = more.pop("kind", "handoff")
        row, fence = await self.taken(op_id, target=replace(place, thread=""), kind=kind)
        await self.db.handoffs.opened(row["id"], self.gateway, place, None)
        return await self.db.bindings.bind(self.binding(row, fence, place, **more))

    async def turn(self, number: int, place: PlaceRef, text: str, *, judge: str | None = None) -> str:
        """A message at a place and its answer; returns the session it went to. judge: why it would be reset."""
        claim = await self.claimed(number, place, text, judge=judge)
        await self.answer(claim, place, text)
        return str(claim.session_id)

    async def answer(self, claim: Claim, place: PlaceRef, text: str) -> None:
        """The end of that turn."""
        assert claim.fence is not None
        final = NewMessage("assistant", f"re: {text}")
        await self.db.turns.finish(claim.fence, final, [NewOutbox(place, "answer", f"re: {text}")])

    async def claimed(self, number: int, place: PlaceRef, text: str, *, judge: str | None = None) -> Claim:
        """A message at a place whose turn runs."""
        key = f"key of {place.chat}{place.thread}"
        accepted = await self.db.inbox.accept(
            NewInbox(
                place=place,
                dedupe_key=f"m:{number}",
                kind="message",
                lane=key,
                received_at=4e9,
                payload={"text": text, "message_id": str(number)},
                sender={"user_id": "42", "name": "Ann"},
                session_key=key,
                person_id="owner",
            )
        )
        request = ClaimRequest(
            inbox_ids=[accepted.inbox_id],
            turn_id=f"t{number}",
            holder=self.gateway,
            lane=key,
            place=place,
            source=place.platform,
            owner="owner",
            new_session_id=f"fresh-{number}",
            content=text,
            session_key=key,
            person_id="owner",
            origin=f"Ann on {place.platform}",
        )
        return await self.db.turns.claim(request, lambda _session, _at: judge)

    async def outgoing(self, place: PlaceRef) -> list[tuple[str, str]]:
        """Kind and words of everything queued for a place, in its order."""
        return [(row["kind"], row["body"]) for row in await self.db.outbox.on_its_way(place, None)]
