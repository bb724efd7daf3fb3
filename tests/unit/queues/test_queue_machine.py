"""Everything at once: two processes, two conversations, and kills, naps, repetitions and redeliveries in any order.

The machine keeps its own small account of what was accepted and asked for, and after every step compares the store
with what always holds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from session_store import claim as claiming
from session_store import inbox, outbox, takeover, turns
from session_store.errors import FenceLost
from session_store.models import Claim, Fence, NewMessage, NewOutbox, PlaceRef
from session_store.processes import boot_clock, identity_of
from tests.unit.queues.bench import Bench, fence, incoming, never, request

PLACES = {"one": PlaceRef("telegram", "main", "dm", "1"), "two": PlaceRef("telegram", "main", "dm", "2")}
TELEGRAM = [("telegram", "main")]

ENDINGS = {"finish", "interrupt", "give_up"}

keys = st.integers(0, 7)
processes = st.sampled_from(["A", "B"])
choices = st.integers(0, 9)


@dataclass
class Mind:
    """What one simulated process remembers; a kill empties it, a nap does not."""

    token: str
    held: list[Fence] = field(default_factory=list)


class Queues(RuleBasedStateMachine):
    """Accept, claim, step, end, kill, sleep, take over, repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        # Of another host, so that only the beat tells whether they are awake.
        self.elsewhere = replace(identity_of(os.getpid()), host="another host")
        self.minds = {name: Mind(self.bench.process(name, self.elsewhere)) for name in ("A", "B")}
        self.lives = 0
        self.turns = 0
        self.steps = 0
        self.accepted: dict[int, int] = {}
        self.fences: dict[str, int] = {}
        self.endings: dict[Fence, str] = {}

    def teardown(self) -> None:
        """Free the connection."""
        self.bench.close()

    def place_of(self, key: int) -> PlaceRef:
        """Which conversation a message belongs to."""
        return PLACES["one" if key % 2 else "two"]

    @rule(key=keys)
    def message_is_delivered(self, key: int) -> None:
        """For the first time or again."""
        row = incoming(f"m:{key}", f"text {key}", self.place_of(key))
        done = self.bench.apply(lambda tx: inbox.accept(tx, row))
        assert done.created == (key not in self.accepted)
        assert self.accepted.setdefault(key, done.inbox_id) == done.inbox_id

    @initialize(count=st.integers(1, 6))
    def messages_are_waiting(self, count: int) -> None:
        """Some conversations have begun."""
        for key in range(count):
            self.message_is_delivered(key)

    @rule(name=processes, choice=choices, twice=st.booleans())
    def message_is_claimed(self, name: str, choice: int, twice: bool) -> None:  # noqa: FBT001 - drawn
        """By either process, whatever its state; perhaps asked for twice; now and then one that is not new."""
        mind = self.minds[name]
        new = {row["id"] for row in self.bench.rows("SELECT id FROM inbox WHERE state = 'new'")}
        keys = sorted(self.accepted, key=lambda key: (self.accepted[key] not in new, key))
        key = keys[choice % len(keys)]
        place = self.place_of(key)
        self.turns += 1
        asked = request(
            [self.accepted[key]],
            f"t{self.turns}",
            mind.token,
            place=place,
            session_key=f"agent:main:telegram:dm:{place.chat}",
            content=f"text {key}",
        )
        won = self.bench.apply(lambda tx: claiming.claim(tx, asked, never))
        if twice:
            assert self.bench.apply(lambda tx: claiming.claim(tx, asked, never)) == won
        self.remember(mind, won)

    @rule(name=processes)
    def orphans_are_taken_over(self, name: str) -> None:
        """The process looks for orphans and takes them; afterwards there are none left."""
        mind = self.minds[name]
        for turn in self.bench.look(lambda rx: takeover.orphaned(rx, TELEGRAM, boot_clock(), 64)):
            taken = self.bench.apply(partial(takeover.take_over, turn_id=turn["id"], holder=mind.token))
            assert taken.status == "claimed"
            self.remember(mind, taken)
        assert self.asleep(mind) or not self.bench.look(lambda rx: takeover.orphaned(rx, TELEGRAM, boot_clock(), 64))

    @precondition(lambda self: any(mind.held for mind in self.minds.values()))
    @rule(choice=choices, what=st.sampled_from(["step", "finish", "finish", "interrupt", "give_up", "leave"]))
    def turn_goes_on(self, choice: int, what: str) -> None:
        """With any fence that a process remembers; a stale one must be refused and change nothing."""
        held = [one for mind in self.minds.values() for one in mind.held][-1 - choice % self.remembered()]
        valid = self.holds(held)
        before = self.bench.dump()
        try:
            self.act(what, held)
        except FenceLost:
            assert not valid
            assert self.endings.get(held) != what
            assert self.bench.dump() == before
        else:
            assert valid or (self.endings[held] == what and self.bench.dump() == before)
            self.endings |= {held: what} if what in ENDINGS else {}

    @rule(name=processes, what=st.sampled_from(["is killed", "falls asleep", "beats"]))
    def process(self, name: str, what: str) -> None:
        """A kill is followed by a start under a new token, remembering nothing; a sleeper remembers everything."""
        mind = self.minds[name]
        if what == "is killed":
            self.bench.kill(mind.token)
            self.lives += 1
            self.minds[name] = Mind(self.bench.process(f"{name}{self.lives}", self.elsewhere))
        elif what == "falls asleep":
            old = boot_clock() - 100.0
            self.bench.apply(lambda tx: tx.run("UPDATE processes SET beat = ? WHERE token = ?", (old, mind.token)))
            self.bench.apply(lambda tx: tx.run("UPDATE leases SET beat = ? WHERE holder = ?", (old, mind.token)))
        else:
            self.bench.apply(lambda tx: turns.beat(tx, mind.token))

    @rule(name=processes, choice=choices, receipt=st.booleans())
    def answer_is_sent(self, name: str, choice: int, receipt: bool) -> None:  # noqa: FBT001 - drawn
        """One of the heads goes out; without a receipt its place waits."""
        token = self.minds[name].token
        due = self.bench.look(lambda rx: outbox.due(rx, TELEGRAM, 4e9, 64))
        assert len({row["place_id"] for row in due}) == len(due)
        under_way = {row["place_id"] for row in self.bench.rows("SELECT place_id FROM outbox WHERE state = 'sending'")}
        assert under_way.isdisjoint(row["place_id"] for row in due)
        if due:
            row = due[choice % len(due)]
            assert self.bench.apply(lambda tx: tx.run(outbox.BEGIN, (token, tx.now, row["id"]))) == 1
            if receipt:
                self.bench.apply(lambda tx: tx.run(outbox.SENT, ("900", tx.now, row["id"])))

    def remembered(self) -> int:
        """How many fences the processes remember."""
        return sum(len(mind.held) for mind in self.minds.values())

    def remember(self, mind: Mind, won: Claim) -> None:
        """Keep the fence of a claim that was won."""
        if won.status == "claimed":
            held = fence(won)
            assert held.number > self.fences.get(held.root_id, 0)
            self.fences[held.root_id] = held.number
            mind.held.append(held)

    def asleep(self, mind: Mind) -> bool:
        """Whether the process counts as dead although it remembers."""
        beat = self.bench.value("SELECT beat FROM processes WHERE token = ?", mind.token)
        return bool(boot_clock() - beat > 60.0)

    def holds(self, held: Fence) -> bool:
        """Whether this is the newest fence of a turn that still runs and was not left."""
        lease = self.bench.rows("SELECT turn_id, holder, fence FROM leases WHERE root_id = ?", held.root_id)
        return lease == [{"turn_id": held.turn_id, "holder": held.holder, "fence": held.number}]

    def act(self, what: str, held: Fence) -> None:
        """One durable operation of a turn."""
        self.steps += 1
        said = NewMessage("assistant", f"answer of {held.turn_id}", op_id=f"{held.turn_id}.final")
        out = [NewOutbox(PLACES["one"], "answer", held.turn_id), NewOutbox(PLACES["two"], "mirror", held.turn_id)]
        match what:
            case "step":
                step = NewMessage("assistant", "thinking", op_id=f"{held.turn_id}.{self.steps}")
                self.bench.apply(lambda tx: turns.step(tx, held, [step]))
            case "finish":
                self.bench.apply(lambda tx: turns.end(tx, held, turns.Ending("done", final=said), out))
            case "interrupt":
                self.bench.apply(lambda tx: turns.end(tx, held, turns.Ending("interrupted", "stopped"), out[:1]))
            case "give_up":
                self.bench.apply(lambda tx: turns.end(tx, held, turns.Ending("given_up", "too often", said), out[:1]))
            case _:
                self.bench.apply(lambda tx: turns.abandon(tx, held))

    @invariant()
    def every_accepted_message_is_there_once(self) -> None:
        """As one row, in one state, with one message in the transcript once it was claimed."""
        rows = {row["id"]: row for row in self.bench.rows("SELECT id, state, turn_id, payload FROM inbox")}
        assert set(rows) == set(self.accepted.values())
        messages = self.bench.rows("SELECT inbox_id FROM messages WHERE role = 'user'")
        stored = sorted(row["inbox_id"] for row in messages)
        assert stored == sorted(row["id"] for row in rows.values() if row["state"] != "new")
        for row in rows.values():
            assert (row["payload"] is None) == (row["state"] == "done")
            state = self.bench.value("SELECT state FROM turns WHERE id = ?", row["turn_id"])
            assert {"new": None, "taken": "running", "done": state}[row["state"]] == state
            assert row["state"] == "new" or state is not None

    @invariant()
    def a_conversation_has_at_most_one_running_turn(self) -> None:
        """And a turn that does not run holds no lease."""
        assert not self.bench.rows("SELECT 1 FROM turns WHERE state = 'running' GROUP BY root_id HAVING COUNT(*) > 1")
        assert not self.bench.rows(
            "SELECT 1 FROM leases AS l JOIN turns AS t ON t.id = l.turn_id "
            "WHERE l.holder IS NOT NULL AND t.state <> 'running'"
        )

    @invariant()
    def leases_keep_their_fences(self) -> None:
        """Rows stay for ever, with the number that was given out last."""
        assert {
            row["root_id"]: row["fence"] for row in self.bench.rows("SELECT root_id, fence FROM leases")
        } == self.fences

    @invariant()
    def an_ended_turn_has_exactly_its_outgoing_rows(self) -> None:
        """Two for an answer, one for a word about the end, none before the end."""
        wanted = {"running": 0, "done": 2, "interrupted": 1, "given_up": 1}
        for turn in self.bench.rows(
            "SELECT t.id, t.state, COUNT(o.id) AS n "
            "FROM turns AS t LEFT JOIN outbox AS o ON o.turn_id = t.id GROUP BY t.id"
        ):
            assert turn["n"] == wanted[turn["state"]]

    @invariant()
    def counters_are_right(self) -> None:
        """The sessions count what they hold."""
        assert not self.bench.rows(
            "SELECT 1 FROM sessions AS s WHERE message_count <> (SELECT COUNT(*) FROM messages WHERE session_id = s.id)"
        )


TestQueues = Queues.TestCase
TestQueues.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
