"""Turns: one user input worked through to one final answer, step by step, under a fence.

Contract: every durable step checks the fence in its own transaction. The end of a turn (finish, interrupt, give up) is
one transaction: final message, what it cost, what must go out, the turn's state, its inbox rows done, its stop requests
closed, the lease free. A repeated end under the same fence changes nothing and returns the same message id; a repeated
step is known by the op_id of its messages.
Failure: FenceLost, and nothing written, once another process has taken the turn over or the turn has ended otherwise.
Limits: claiming is in claim.py, taking over in takeover.py; the class at the end brings all of it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from session_store import control, inbox, leases, processes
from session_store.again import Again, claim_again, said_in
from session_store.claim import TURN, Judge, claim, is_held, running_turn
from session_store.errors import FenceLost, InvalidArgument
from session_store.lineage import live_tip
from session_store.links import copy_answer
from session_store.messages import decode_message, insert_message
from session_store.models import Claim, ClaimRequest, Fence, NewMessage, NewOutbox, Usage
from session_store.outbox import Account, Origin
from session_store.processes import boot_clock
from session_store.rows import MessageRow, TurnRow
from session_store.shown import add_ending
from session_store.takeover import SHUTDOWN, orphaned, orphaned_in, take_over
from session_store.tx import Tx
from session_store.usage import record_usage

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["Turns"]

TURN_SESSION = "SELECT session_id FROM turns WHERE id = ?"
# A turn ends; only the fence it is held under may end it.
END = "UPDATE turns SET state = ?, reason = ?, final_message_id = ?, ended_at = ? WHERE id = ? AND state = 'running'"
LEAVE = "UPDATE turns SET reason = ? WHERE id = ? AND state = 'running'"
# The user message that an inbox row became part of.
MESSAGE_OF = """
SELECT m.* FROM inbox AS i JOIN turns AS t ON t.id = i.turn_id JOIN messages AS m
  ON m.id = COALESCE((SELECT own.id FROM messages AS own WHERE own.inbox_id = i.id), t.input_message_id)
WHERE i.id = ?
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends. final: the last message, if anything was said."""

    state: Literal["done", "interrupted", "given_up"]
    reason: str | None = None
    final: NewMessage | None = None
    usage: Sequence[Usage] = ()


def step(tx: Tx, fence: Fence, messages: Sequence[NewMessage], usage: Sequence[Usage] = ()) -> list[int]:
    """Store the messages of one step, each under its op_id, and what the step cost."""
    if any(message.op_id is None for message in messages):
        raise InvalidArgument("A message of a step needs an op_id, so that a repeated step is known.")
    leases.check(tx, fence)
    session_id = tx.value(TURN_SESSION, (fence.turn_id,))
    record_usage(tx, session_id, usage, turn_id=fence.turn_id)
    return [insert_message(tx, session_id, message, turn_id=fence.turn_id) for message in messages]


def end(tx: Tx, fence: Fence, ending: Ending, outbox: Sequence[NewOutbox]) -> int | None:
    """End a turn; see the module. Returns the id of the final message, None if there is none."""
    turn = tx.one(TURN, (fence.turn_id,))
    if turn is None:
        raise FenceLost
    if (turn["state"], turn["holder"], turn["fence"]) == (ending.state, fence.holder, fence.number):
        return cast("int | None", turn["final_message_id"])
    leases.check(tx, fence)
    session_id = live_tip(tx, turn["session_id"])
    record_usage(tx, session_id, ending.usage, turn_id=fence.turn_id)
    message_id: int | None = None
    if ending.final is not None:
        named = replace(ending.final, op_id=ending.final.op_id or f"{fence.turn_id}.final")
        message_id = insert_message(tx, session_id, named, turn_id=fence.turn_id)
    origin = Origin(session_id, message_id, fence.turn_id, inbox.origin_of(tx, fence.turn_id))
    add_ending(tx, outbox, origin)
    if ending.final is not None:
        copy_answer(tx, fence.root_id, origin, ending.final.content)
    tx.run(END, (ending.state, ending.reason, message_id, tx.now, fence.turn_id))
    inbox.mark_done(tx, fence.turn_id)
    control.close_for_turn(tx, fence.turn_id)
    leases.release(tx, fence)
    return message_id


def abandon(tx: Tx, fence: Fence, reason: str = SHUTDOWN, usage: Sequence[Usage] = ()) -> None:
    """Leave a running turn: its lease is free for the next worker, who counts an attempt unless it was a shutdown."""
    leases.check(tx, fence)
    record_usage(tx, tx.value(TURN_SESSION, (fence.turn_id,)), usage, turn_id=fence.turn_id)
    tx.run(LEAVE, (reason, fence.turn_id))
    leases.release(tx, fence)


def beat(tx: Tx, holder: str) -> None:
    """Renew a process and everything it holds."""
    processes.beat(tx, holder)
    leases.beat(tx, holder)


class Turns:
    """Turns and their leases; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def claim(self, request: ClaimRequest, judge: Judge) -> Claim:
        """Make inbox rows the input of a running turn, if they are new and their conversation is free.

        judge: asked with the route's open session and the time the message was received; a reason ends that session
        and the message begins a fresh one. It runs on the database thread and must not block.
        """
        size = len(str(request.content))
        return await self._engine.write(lambda tx: claim(tx, request, judge), size=size)

    async def claim_again(self, request: ClaimRequest) -> Again | None:
        """Begin a turn that answers the last question of a conversation again; None if there is no such question.

        Of the request, what it says of the message does not count.
        """
        return await self._engine.write(lambda tx: claim_again(tx, request))

    async def said_in(self, turn_id: str) -> str | None:
        """What the person wrote in the message that a turn answers; None for an unknown turn."""
        return await self._engine.read(lambda rx: said_in(rx, turn_id))

    async def step(self, fence: Fence, messages: Sequence[NewMessage], *, usage: Sequence[Usage] = ()) -> list[int]:
        """Store the messages of one agent step, each with an op_id, and what it cost. Returns the messages' ids."""
        size = sum(len(str(message.content)) for message in messages)
        return await self._engine.write(lambda tx: step(tx, fence, messages, usage), size=size)

    async def finish(
        self, fence: Fence, final: NewMessage, outbox: Sequence[NewOutbox] = (), *, usage: Sequence[Usage] = ()
    ) -> int:
        """End a turn with its answer; returns the id of the final message."""
        size, ending = len(str(final.content)), Ending("done", final=final, usage=usage)
        message_id = await self._engine.write(lambda tx: end(tx, fence, ending, outbox), size=size)
        return cast("int", message_id)

    async def give_up(
        self,
        fence: Fence,
        reason: str,
        outbox: Sequence[NewOutbox] = (),
        final: NewMessage | None = None,
        *,
        usage: Sequence[Usage] = (),
    ) -> int | None:
        """End a turn that cannot be worked; its input counts as handled."""
        return await self._engine.write(lambda tx: end(tx, fence, Ending("given_up", reason, final, usage), outbox))

    async def interrupt(
        self,
        fence: Fence,
        reason: str,
        outbox: Sequence[NewOutbox] = (),
        final: NewMessage | None = None,
        *,
        usage: Sequence[Usage] = (),
    ) -> int | None:
        """End a turn because a person stopped it; it is not resumed."""
        return await self._engine.write(lambda tx: end(tx, fence, Ending("interrupted", reason, final, usage), outbox))

    async def abandon(self, fence: Fence, reason: str = SHUTDOWN, *, usage: Sequence[Usage] = ()) -> None:
        """Leave a running turn to the next worker. Any reason but an orderly shutdown counts as a failed attempt."""
        await self._engine.write(lambda tx: abandon(tx, fence, reason, usage))

    async def orphaned(self, accounts: Sequence[Account], limit: int = 64) -> list[TurnRow]:
        """Running turns of these accounts that nobody works any more, oldest first."""
        return await self._engine.read(lambda rx: orphaned(rx, accounts, boot_clock(), limit))

    async def orphaned_in(self, session_id: str) -> list[TurnRow]:
        """The running turn of this session's conversation if nobody works it any more; none for an unknown session."""
        return await self._engine.read(lambda rx: orphaned_in(rx, session_id, boot_clock()))

    async def take_over(self, turn_id: str, holder: str) -> Claim:
        """Take over an orphaned turn: claimed, busy while its holder lives, gone when it has ended."""
        return await self._engine.write(lambda tx: take_over(tx, turn_id, holder))

    async def beat(self, holder: str) -> None:
        """Renew a process and all its leases; due every 10 seconds."""
        await self._engine.write(lambda tx: beat(tx, holder))

    async def is_held(self, session_key: str | None, session_id: str | None) -> bool:
        """Whether a claim by this id or key would be busy now, and nothing could be taken over first. Only reads."""
        return await self._engine.read(lambda rx: is_held(rx, session_key, session_id, boot_clock()))

    async def running_in(self, root_id: str) -> TurnRow | None:
        """The running turn of a conversation, given by its root."""
        return cast("TurnRow | None", await self._engine.read(lambda rx: running_turn(rx, root_id)))

    async def message_of(self, inbox_id: int) -> MessageRow | None:
        """The user message that an inbox row became, once it was claimed."""
        row = await self._engine.read(lambda rx: rx.one(MESSAGE_OF, (inbox_id,)))
        return None if row is None else decode_message(row)
