"""Claiming: rows become a running turn as a whole, or nothing happens."""

from __future__ import annotations

import pytest

from session_store.errors import InvalidArgument
from session_store.models import NewMessage, StartSession
from session_store.rows import SessionRow
from session_store.sessions import end_session_row, insert_session
from tests.unit.queues.bench import GROUP, HOME, TELEGRAM, Bench, fence, never, request

KEY = "agent:main:telegram:dm:42"


async def test_a_first_message_makes_session_route_message_and_turn(bench: Bench) -> None:
    """Everything that a message needs is there after one transaction, with owner, key and place."""
    row = await bench.arrives("m:1", received_at=1234.5)
    claim = await bench.turns.claim(
        request([row], person_id="owner", user_id="42", platform_message_id="77", content="hello there"), never
    )
    assert (claim.status, claim.created, claim.session_id, claim.attempt) == ("claimed", True, "session-t1", 1)
    (session,) = bench.rows("SELECT * FROM sessions")
    assert (session["owner"], session["session_key"], session["place_id"]) == ("owner", KEY, 1)
    assert (session["root_id"], session["message_count"], session["user_id"]) == ("session-t1", 1, "42")
    (message,) = bench.rows("SELECT * FROM messages")
    assert (message["id"], message["content"], message["role"]) == (claim.message_id, "hello there", "user")
    assert (message["inbox_id"], message["turn_id"], message["timestamp"]) == (row, "t1", 1234.5)
    assert (message["person_id"], message["place_id"], message["platform_message_id"]) == ("owner", 1, "77")
    (route,) = await bench.routes.of_session("session-t1")
    assert (route["session_key"], route["chat"], route["person_id"]) == (KEY, "42", "owner")
    assert await bench.inbox.counts() == {"new": 0, "taken": 1, "set_aside": 0}
    running = await bench.turns.running_in("session-t1")
    assert running is not None
    assert (running["id"], running["holder"]) == ("t1", "A")


async def test_the_same_claim_again_gives_the_same_answer(bench: Bench) -> None:
    """A claim whose outcome was not heard can be asked for again."""
    row = await bench.arrives("m:1")
    first = await bench.turns.claim(request([row]), never)
    before = bench.dump()
    assert await bench.turns.claim(request([row]), never) == first
    assert bench.dump() == before


async def test_a_repeated_claim_is_gone_once_the_turn_has_ended(bench: Bench) -> None:
    """Nobody works a turn that is over."""
    row = await bench.arrives("m:1")
    claim = await bench.turns.claim(request([row]), never)
    await bench.turns.finish(fence(claim), NewMessage("assistant", "hi"))
    assert (await bench.turns.claim(request([row]), never)).status == "gone"


async def test_rows_that_are_not_new_are_gone(bench: Bench) -> None:
    """If any row is worked already, nothing is claimed and nothing changes."""
    bench.process("B")
    claim = await bench.claimed("m:1")
    await bench.turns.finish(fence(claim), NewMessage("assistant", "hi"))
    fresh = await bench.arrives("m:2")
    before = bench.dump()
    assert (await bench.turns.claim(request([1, fresh], "t2", "B"), never)).status == "gone"
    assert (await bench.turns.claim(request([fresh, 999], "t2", "B"), never)).status == "gone"
    assert bench.dump() == before


async def test_a_row_kept_for_another_process_is_gone(bench: Bench) -> None:
    """Rows of a terminal are claimed by that terminal only."""
    bench.process("B")
    row = await bench.arrives("m:1", holder="A")
    assert (await bench.turns.claim(request([row], "t1", "B"), never)).status == "gone"
    assert (await bench.turns.claim(request([row], "t1", "A"), never)).status == "claimed"


async def test_an_album_is_one_turn_with_one_message(bench: Bench) -> None:
    """Several rows of one input are taken together; the message belongs to the first of them."""
    rows = [await bench.arrives(f"m:{n}") for n in range(3)]
    claim = await bench.turns.claim(request(rows), never)
    assert [row["inbox_id"] for row in bench.rows("SELECT inbox_id FROM messages")] == [rows[0]]
    assert [row["id"] for row in await bench.inbox.of_turn("t1")] == rows
    for row in rows:
        question = await bench.turns.message_of(row)
        assert question is not None
        assert question["id"] == claim.message_id


async def test_a_turn_without_input_is_refused(bench: Bench) -> None:
    """There is nothing to answer."""
    with pytest.raises(InvalidArgument):
        await bench.turns.claim(request([]), never)


async def test_an_unregistered_process_cannot_claim(bench: Bench) -> None:
    """Nobody could see whether it lives; its turn would be worked twice."""
    row = await bench.arrives("m:1")
    before = bench.dump()
    with pytest.raises(InvalidArgument, match="not registered"):
        await bench.turns.claim(request([row], "t1", "stranger"), never)
    assert bench.dump() == before


async def test_a_busy_conversation_changes_nothing(bench: Bench) -> None:
    """While a turn runs the next message waits in the inbox, for every process."""
    bench.process("B")
    await bench.claimed("m:1")
    row = await bench.arrives("m:2")
    before = bench.dump()
    for holder in ("A", "B"):
        claim = await bench.turns.claim(request([row], "t2", holder), lambda _session, _at: "idle")
        assert (claim.status, claim.orphan) == ("busy", None)
    assert bench.dump() == before


async def test_a_dead_turn_in_the_way_is_named(bench: Bench) -> None:
    """Its input is older and must not be lost: it is taken over first, then the next message has its turn."""
    bench.process("B")
    await bench.claimed("m:1")
    bench.kill("A")
    row = await bench.arrives("m:2")
    claim = await bench.turns.claim(request([row], "t2", "B"), never)
    assert (claim.status, claim.orphan) == ("busy", "t1")
    taken = await bench.turns.take_over("t1", "B")
    await bench.turns.finish(fence(taken), NewMessage("assistant", "late"))
    assert (await bench.turns.claim(request([row], "t2", "B"), never)).status == "claimed"


async def test_the_next_message_continues_the_session(bench: Bench) -> None:
    """The route leads back to the same session."""
    claim = await bench.claimed("m:1")
    await bench.turns.finish(fence(claim), NewMessage("assistant", "hi"))
    second = await bench.claimed("m:2", "t2")
    assert (second.session_id, second.created, second.previous_session_id) == ("session-t1", False, None)


async def test_a_route_follows_compression_to_the_live_tip(bench: Bench) -> None:
    """The conversation goes on in its last session and stays under one lease."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))

    def compress() -> None:
        bench.apply(lambda tx: end_session_row(tx, "session-t1", "compression"))
        bench.apply(lambda tx: insert_session(tx, "child", "telegram", parent_session_id="session-t1"))

    compress()
    claim = await bench.claimed("m:2", "t2")
    assert (claim.session_id, claim.created, fence(claim).root_id) == ("child", False, "session-t1")


@pytest.mark.parametrize("reason", ["new_command", "idle", "cron"])
async def test_behind_an_ended_session_a_fresh_one_starts(bench: Bench, reason: str) -> None:
    """A session that was ended is not woken by the next message of its place."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    bench.apply(lambda tx: end_session_row(tx, "session-t1", reason))
    claim = await bench.claimed("m:2", "t2")
    assert (claim.session_id, claim.created, claim.previous_session_id) == ("session-t2", True, "session-t1")
    assert claim.reset_reason is None
    session = await bench.routes.session_for(KEY)
    assert session is not None
    assert session["id"] == "session-t2"


async def test_a_turn_still_running_in_the_session_left_does_not_block_the_fresh_one(bench: Bench) -> None:
    """After /new the former answer may still come, while the next message is worked."""
    await bench.claimed("m:1")
    await bench.effects.apply([StartSession(KEY, HOME, "telegram", "owner", "fresh")])
    claim = await bench.claimed("m:2", "t2")
    assert (claim.status, claim.session_id) == ("claimed", "fresh")


async def test_the_reset_policy_is_judged_by_the_time_of_receipt_and_written_durably(bench: Bench) -> None:
    """A message that waited through an outage is judged as of when it was sent; the reason stays with both sessions."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    seen: list[tuple[str, float | None, float]] = []

    def judge(session: SessionRow, received_at: float) -> str | None:
        seen.append((session["id"], session["last_active"], received_at))
        return "daily"

    row = await bench.arrives("m:2", received_at=5000.0)
    claim = await bench.turns.claim(request([row], "t2"), judge)
    active = bench.value("SELECT last_active FROM sessions WHERE id = 'session-t1'")
    assert seen == [("session-t1", active, 5000.0)]
    assert (claim.reset_reason, claim.previous_session_id, claim.created) == ("daily", "session-t1", True)
    assert bench.value("SELECT end_reason FROM sessions WHERE id = 'session-t1'") == "daily"
    assert bench.value("SELECT title FROM sessions WHERE id = 'session-t2'") is None
    assert await bench.turns.claim(request([row], "t2"), never) == claim


async def test_a_session_of_another_tool_is_judged_by_its_start(bench: Bench) -> None:
    """Rows without a last activity have at least begun."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    bench.apply(lambda tx: tx.run("UPDATE sessions SET last_active = NULL, started_at = 77.0"))
    seen: list[float | None] = []
    row = await bench.arrives("m:2")
    await bench.turns.claim(request([row], "t2"), lambda session, _at: seen.append(session["last_active"]))
    assert seen == [77.0]


async def test_a_judge_that_fails_undoes_the_claim(bench: Bench) -> None:
    """The row stays new."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    row = await bench.arrives("m:2")
    before = bench.dump()

    def broken(_session: SessionRow, _received_at: float) -> str | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await bench.turns.claim(request([row], "t2"), broken)
    assert bench.dump() == before


async def test_a_session_chosen_by_id_is_made_under_that_id(bench: Bench) -> None:
    """The terminal names its session before the first message; there is no route."""
    row = await bench.arrives("m:1", session_key=None, session_id="mine", holder="A")
    claim = await bench.turns.claim(request([row], session_id="mine", new_session_id="mine", session_key=None), never)
    assert (claim.session_id, claim.created) == ("mine", True)
    assert await bench.routes.of_session("mine") == []


async def test_a_session_chosen_by_id_goes_on_whatever_ended_it(bench: Bench) -> None:
    """Who resumes a session by name wants that one; neither the policy nor its end is asked."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    bench.apply(lambda tx: end_session_row(tx, "session-t1", "idle"))
    row = await bench.arrives("m:2")
    chosen = request([row], "t2", session_id="session-t1", session_key=None)
    claim = await bench.turns.claim(chosen, lambda _session, _at: "daily")
    assert (claim.session_id, claim.created, claim.reset_reason) == ("session-t1", False, None)
    assert bench.rows("SELECT ended_at, end_reason FROM sessions") == [{"ended_at": None, "end_reason": None}]


async def test_any_id_of_a_compressed_conversation_leads_to_its_tip(bench: Bench) -> None:
    """An old id that somebody still holds is as good as the new one."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    bench.apply(lambda tx: end_session_row(tx, "session-t1", "compression"))
    bench.apply(lambda tx: insert_session(tx, "child", "telegram", parent_session_id="session-t1"))
    row = await bench.arrives("m:2")
    claim = await bench.turns.claim(request([row], "t2", session_id="session-t1", session_key=None), never)
    assert claim.session_id == "child"


async def test_a_fresh_session_never_takes_an_id_that_exists(bench: Bench) -> None:
    """A message must not land in somebody else's session because two ids came out the same."""
    bench.apply(lambda tx: insert_session(tx, "session-t1", "cli", owner="somebody"))
    row = await bench.arrives("m:1")
    with pytest.raises(InvalidArgument, match="already"):
        await bench.turns.claim(request([row]), never)
    assert [one["id"] for one in await bench.inbox.pending(TELEGRAM, "A")] == [row]


async def test_who_speaks_in_a_room_becomes_its_member(bench: Bench) -> None:
    """Membership is what later lets a person see the room's sessions."""
    await bench.people.sync_config({"telegram": ["42"]}, {})
    room = await bench.places.room_of(GROUP)
    row = await bench.arrives("m:1", place=GROUP)
    asked = request([row], place=GROUP, room_id=room, owner=room, person_id="owner", session_key="group")
    await bench.turns.claim(asked, never)
    assert await bench.places.rooms_of("owner") == {room}
    assert bench.value("SELECT room_id FROM sessions") == room


async def test_the_route_answers_where_the_last_message_came_from(bench: Bench) -> None:
    """The place of a route is taken from the message that is answered."""
    await bench.turns.finish(fence(await bench.claimed("m:1")), NewMessage("assistant", "hi"))
    row = await bench.arrives("m:2", place=GROUP, session_key=KEY)
    await bench.turns.claim(request([row], "t2", place=GROUP), never)
    (route,) = await bench.routes.of_session("session-t1")
    assert route["chat"] == "-7"


async def test_a_session_keeps_the_system_prompt_of_its_first_turn_that_has_one(bench: Bench) -> None:
    """A later one changes nothing, whatever the settings say by then."""
    for number, prompt in enumerate([None, "as it began", "as it is now"]):
        held = fence(await bench.claimed(f"m:{number}", f"t{number}", system_prompt=prompt))
        await bench.turns.finish(held, NewMessage("assistant", "hi"))
    assert bench.rows("SELECT system_prompt FROM sessions") == [{"system_prompt": "as it began"}]
    await bench.claimed("m:9", "t9", session_key="another", lane="another", system_prompt="at birth")
    assert bench.value("SELECT system_prompt FROM sessions WHERE id = 'session-t9'") == "at birth"
