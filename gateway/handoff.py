"""Handoffs and links as the gateway works them, for the accounts that it owns.

Contract: a request is claimed as soon as it is there, also while the conversation is busy; then its lease is waited
for, a fresh thread is opened (or the chat itself taken, with a word about it, where there can be none), the agent
sums up, and the transaction *bind* lets the conversation go on there under the key that the next real message will
have. Every step is recorded, so that the next gateway goes on where a killed one ended; the worst that a kill leaves is
an empty thread. Requests that nobody takes expire.
Failure: whatever goes wrong for good ends the handoff with a sentence for who asked, and nothing of the conversation
has changed. Nothing is ever sent to another place than the one that was asked for.
Limits: `AT_ONCE` handoffs at a time; each has the store's time to complete, and `ATTEMPTS` gateways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import structlog

from adapters.base import AdapterState, Gone, Refused, RetryLater, SendError, UnknownOutcome
from gateway.agents.base import SummaryRequest
from gateway.agents.digest import digest
from gateway.bell import Bell
from gateway.context import MOVED
from gateway.handoff_words import farewell, moved, outcome, thread_title, welcome
from gateway.phrases import entrance
from gateway.places import LOCAL_PLATFORMS, place_of_ref, place_ref
from session_store import Binding, FenceLost, NewMessage, NewOutbox, StoreError
from session_store.handoffs import COMPLETE_SECONDS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from adapters.base import Adapter, Place
    from gateway.workshop import Workshop
    from session_store import Fence, HandoffRow, SessionRow

__all__ = ["Handoffs"]

AT_ONCE = 8
ATTEMPTS = 3
#: How often a thread is tried to be opened when nobody knows whether it was.
OPENINGS = 3
LOOK_SECONDS = 5.0
BUSY_SECONDS = 1.0
AWAY_SECONDS = 0.3
SUMMARY_SECONDS = 20.0
SUMMARY_CHARACTERS = 900
#: Where a thread hangs on a post or mail of its own, a refusal to open it is a refusal of the chat.
_OPENED_BY_POSTING = frozenset({"slack", "email"})

_log = structlog.get_logger(__name__)


class _Failed(Exception):
    """The handoff cannot succeed: the sentence for who asked."""


class _NotOurs(Exception):
    """The handoff was cancelled, or another gateway has it."""


class Handoffs:
    """The handoffs of one gateway."""

    def __init__(self, workshop: Workshop, adapters: Mapping[tuple[str, str], Adapter]) -> None:
        self._workshop = workshop
        self._db = workshop.db
        self._holder = workshop.holder
        self._adapters = adapters
        self._running: set[int] = set()
        self._closing = anyio.Event()
        self._bell = Bell(self._db, "handoffs")

    async def run(self) -> None:
        """Work requests until `close`; what is under way then is left for the next gateway."""
        async with anyio.create_task_group() as tasks:
            while not self._closing.is_set():
                try:
                    await self.look(tasks)
                except StoreError as error:
                    _log.warning("handoffs_unreadable", error=str(error))
                await self._bell.wait(LOOK_SECONDS)
            tasks.cancel_scope.cancel()

    def close(self) -> None:
        """Begin nothing more and leave what is under way."""
        self._closing.set()
        self._bell.ring()

    async def look(self, tasks: TaskGroup) -> None:
        """Expire what nobody took, and begin what can be claimed."""
        for row in await self._db.handoffs.overdue():
            await self._end(row, "expired", "no running gateway took it within a minute. Is one running for it?")
        for row in await self._db.handoffs.claimable(list(self._adapters), self._holder):
            if row["id"] not in self._running and len(self._running) < AT_ONCE:
                self._running.add(row["id"])
                tasks.start_soon(self._work, row["id"])

    async def _work(self, handoff_id: int) -> None:
        try:
            row = await self._db.handoffs.claim(handoff_id, self._holder)
            if row is not None:
                await self._to_its_end(row)
        except StoreError as error:
            # The claim is still ours, and nobody else takes it while we live: it is taken up again here.
            _log.warning("handoff_postponed", handoff=handoff_id, error=str(error))
        finally:
            self._running.discard(handoff_id)

    async def _to_its_end(self, row: HandoffRow) -> None:
        try:
            with anyio.fail_after(COMPLETE_SECONDS):
                await self._bring(row)
        except _NotOurs:
            _log.info("handoff_left", handoff=row["id"])
        except _Failed as failure:
            await self._end(row, "failed", str(failure))
        except TimeoutError:
            await self._end(row, "failed", "it took more than 15 minutes.")
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - one handoff must not stop the others, whatever is wrong with it
            _log.exception("handoff_failed", handoff=row["id"])
            await self._end(row, "failed", f"something unforeseen went wrong ({type(error).__name__}: {error}).")

    async def _bring(self, row: HandoffRow) -> None:
        if row["attempts"] > ATTEMPTS:
            raise _Failed("the gateway was interrupted too often.")
        while True:
            await self._connected(row)
            fence = await self._held(row)
            try:
                row, place = await self._place(row)
            except _Later as later:
                # Whoever speaks in the conversation meanwhile need not wait with us.
                await self._db.holding.let_go(fence)
                await self._say(row, f"waiting, since the platform asks for it: {later}")
                await anyio.sleep(max(later.delay, AWAY_SECONDS))
                continue
            await self._say(row, "writing a short summary")
            session = await self._session(row)
            summary = await self._summary(session)
            try:
                await self._bind(row, fence, place, session, summary)
            except FenceLost:
                # Asleep for so long that another one took the lease: taken again, unless the handoff is over.
                await self._say(row, "taking the conversation up again")
            else:
                _log.info("handed_off", handoff=row["id"], session=session["id"], place=place.platform)
                return

    # --- the steps ---------------------------------------------------------------------------------------------------

    async def _connected(self, row: HandoffRow) -> None:
        """Return once the account can be asked; nothing is held until then."""
        adapter = self._adapters[row["target"].platform, row["target"].account]
        told = False
        while adapter.state is not AdapterState.CONNECTED:
            if not told:
                await self._say(row, f"waiting until {entrance(adapter.platform)} can be reached")
                told = True
            await self._still_ours(row)
            await anyio.sleep(AWAY_SECONDS)

    async def _held(self, row: HandoffRow) -> Fence:
        """The conversation's lease, once it is free; what a dead process left in it is worked first."""
        told = False
        while True:
            held = await self._db.handoffs.hold(row["id"], self._holder)
            if held.fence is not None:
                return held.fence
            if held.orphan is not None:
                await self._workshop.desk.recover(held.orphan)
            if not told:
                await self._say(row, "waiting until the running turn has ended")
                told = True
            await self._still_ours(row)
            await self._bell.wait(BUSY_SECONDS)

    async def _place(self, row: HandoffRow) -> tuple[HandoffRow, Place]:
        """The place where it goes on, opened once; after a kill the one that was opened before."""
        if row["place"] is not None:
            return row, place_of_ref(row["place"])
        target = place_of_ref(row["target"])
        adapter = self._adapters[target.platform, target.account]
        note: str | None = None
        if target.chat_type == "thread":
            place = target
        else:
            await self._say(row, "opening a thread")
            try:
                place = await self._open(row, adapter, target)
            except _NoThread as refusal:
                place, note = (
                    target,
                    f"No thread could be opened, so it goes on in the chat itself ({_clause(refusal)}).",
                )
        if not await self._db.handoffs.opened(row["id"], self._holder, place_ref(place), note):
            raise _NotOurs
        return {**row, "place": place_ref(place), "note": note}, place

    async def _open(self, row: HandoffRow, adapter: Adapter, target: Place) -> Place:
        session = await self._session(row)
        title = thread_title(session, await self._first_words(session["id"]))
        unknown = row["opening"]
        while True:
            if not await self._db.handoffs.opening(row["id"], self._holder):
                raise _NotOurs
            try:
                return await adapter.open_thread(target, title)
            except RetryLater as error:
                raise _Later(str(error), error.delay) from error
            except UnknownOutcome as error:
                unknown += 1
                if unknown >= OPENINGS:
                    raise _Failed(f"nobody knows whether the thread was opened. {error}") from error
            except (Refused, Gone) as error:
                threadless = isinstance(error, Refused) or error.thread_only
                if threadless and target.platform not in _OPENED_BY_POSTING:
                    raise _NoThread(str(error)) from error
                raise _Failed(str(error)) from error
            except SendError as error:
                raise _Failed(str(error)) from error

    async def _summary(self, session: SessionRow) -> str:
        """A few sentences about what a model would see of it: the agent's, else words of the conversation itself."""
        history = (await self._workshop.contexts.seen(session["id"], moves=False)).shown.messages
        request = SummaryRequest(session["id"], history, purpose="handoff", limit=SUMMARY_CHARACTERS)
        try:
            with anyio.fail_after(SUMMARY_SECONDS):
                written = await self._workshop.agent.summarize(request)
            await self._db.usage.record(session["id"], written.usage, "handoff")
            text = written.text
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - an agent is foreign code, and the handoff needs none
            _log.warning("handoff_without_agent", session=session["id"], error=f"{type(error).__name__}: {error}")
            text = digest(history, limit=SUMMARY_CHARACTERS)
        return text[:SUMMARY_CHARACTERS]

    async def _bind(self, row: HandoffRow, fence: Fence, place: Place, session: SessionRow, summary: str) -> None:
        router = self._workshop.router
        scope = await router.scope(place, row["user_id"], row["person_id"])
        # Of a conversation that belongs to a person the place decides; a room's stays the room's in private places.
        stays = session["room_id"] is not None and session["owner"] == session["room_id"] and place.private
        text = welcome(row, session, summary, stays_with_room=stays, shared=scope.shared)
        ref = place_ref(place)
        await self._db.bindings.bind(
            Binding(
                handoff_id=row["id"],
                fence=fence,
                place=ref,
                session_key=router.key(place, row["user_id"]),
                # The summary is for people; who reads the transcript has what it sums up.
                message=NewMessage("assistant", moved(row, ref), finish_reason=MOVED, op_id=f"handoff:{row['id']}"),
                confirmation=NewOutbox(ref, "handoff", text),
                farewell=farewell(row, ref, shared=False),
                farewell_shared=farewell(row, ref, shared=True),
                person_id=None if scope.shared else row["person_id"],
                room_id=scope.room_id,
                owner=scope.owner if scope.shared else None,
            )
        )

    # --- small things ------------------------------------------------------------------------------------------------

    async def _session(self, row: HandoffRow) -> SessionRow:
        ids = await self._db.conversation_of(row["root_id"])
        session = await self._db.get_session(ids[-1]) if ids else None
        if session is None:
            raise _Failed("the session was deleted meanwhile.")
        return session

    async def _first_words(self, session_id: str) -> str:
        rows = await self._db.get_messages(session_id, limit=5)
        texts = [row["content"] for row in rows if row["role"] == "user" and isinstance(row["content"], str)]
        return texts[0] if texts else ""

    async def _say(self, row: HandoffRow, words: str) -> None:
        if not await self._db.handoffs.stage(row["id"], self._holder, words):
            raise _NotOurs

    async def _still_ours(self, row: HandoffRow) -> None:
        now = await self._db.handoffs.get(row["op_id"])
        if now is None or (now["state"], now["holder"]) != ("claimed", self._holder):
            raise _NotOurs

    async def _end(self, row: HandoffRow, state: str, error: str) -> None:
        """End it without success, with a word to where it was asked."""
        ended: HandoffRow = {**row, "state": state, "error": error}
        words, asked_at = outcome(ended), row["asked_at"]
        local = asked_at is None or asked_at.platform in LOCAL_PLATFORMS
        notices = [] if asked_at is None or local else [NewOutbox(asked_at, "handoff", words)]
        holder = self._holder if state == "failed" else None
        done = await self._db.handoffs.end(
            row["id"], "failed" if state == "failed" else "expired", error, notices, holder=holder
        )
        if done:
            _log.warning("handoff_ended", handoff=row["id"], state=state, error=error)
            if asked_at is not None and local:
                tip = await self._workshop.db.get_tip(row["root_id"])
                self._workshop.live.notice(tip["id"] if tip is not None else row["root_id"], words)


def _clause(refusal: Exception) -> str:
    """A sentence as it stands in brackets inside another one."""
    return str(refusal).removesuffix(".")


class _Later(Exception):
    """The platform asks to wait for so many seconds."""

    def __init__(self, reason: str, delay: float) -> None:
        super().__init__(reason)
        self.delay = delay


class _NoThread(Exception):
    """The chat has no threads; it is the place itself."""
