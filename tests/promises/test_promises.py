"""What always holds: one test per promise, by its number. Where a promise has a deep test elsewhere, this one is thin.

Which ones are deep, and where, is said in docs/promises.md.
"""

from __future__ import annotations

import ast
import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockingError

from adapters.base import Gone, Refused, RetryLater, UnknownOutcome, Verdict
from adapters.telegram.updates import Me, inbound
from gateway.agents.base import AgentContext, AgentEvent, Final
from gateway.keys import session_key
from session_store import NewOutbox, PlaceRef, QueryError, SessionDB, StoreFull, Visibility
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, telegram_home
from tests.unit.gateway_core.fakes import FakeAgent, event
from tests.unit.gateway_core.hall import Hall, failing
from tests.unit.handoff.stage import SESSION, Stage
from tests.unit.store_engine.histories import make_history

ROOT = Path(__file__).parents[2]
PACKAGES = ("config", "session_store", "adapters", "gateway")


async def test_promise_1_a_kill_at_any_instant_keeps_every_acknowledged_message_once_and_in_order(
    home: Path, elsewhere: Elsewhere
) -> None:
    """A gateway killed three times under messages: what was confirmed is there once; the file is whole."""
    chance = random.Random(7)  # noqa: S311 - repeatable, no secret
    async with TelegramEmulator() as telegram:
        gateway = GatewayProcess(telegram_home(home, telegram.base_url, telegram.token))
        for _ in range(3):
            await gateway.start()
            for _ in range(8):
                telegram.say(f"fact-{len(telegram.updates)} is kept")
                await asyncio.sleep(chance.uniform(0, 0.05))
            await gateway.kill()
        async with gateway.running():
            await telegram.until(lambda: all(update.confirmed for update in telegram.updates.values()), 30)
            await telegram.until(lambda: len({sent.text for sent in telegram.sent}) == 24, 30)
            assert await gateway.stop() == 0
    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in rows] == [f"fact-{number} is kept" for number in range(24)]
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert elsewhere("PRAGMA foreign_key_check") == []


async def test_promise_2_one_platform_message_is_stored_once_worked_once_answered_once(
    hall: Hall, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """Many deliveries at once, again after it was answered, again after a restart."""
    message = event("hello", number=7)
    verdicts = await asyncio.gather(*(hall.told(message) for _ in range(5)))
    assert Counter(verdicts) == {Verdict.ACCEPTED: 1, Verdict.DUPLICATE: 4}
    async with hall.running():
        await hall.sent(1)
        assert await hall.told(message) is Verdict.DUPLICATE
    async with Hall.open(hall.db, agent, hall.workshop.settings) as restarted, restarted.running(recovering=True):
        assert await restarted.told(message) is Verdict.DUPLICATE
        await restarted.quiet()
        assert restarted.adapter.sent == []
    assert len(hall.adapter.sent) == 1
    assert agent.texts == ["hello"]
    assert len(elsewhere("SELECT id FROM messages WHERE role = 'user'")) == 1


async def test_promise_3_a_stored_answer_is_delivered_or_visibly_waiting_unknown_or_failed(
    hall: Hall, elsewhere: Elsewhere
) -> None:
    """Every kind of outcome has its state, and a state claims nothing that is not so."""
    outcomes: dict[str, list[Exception]] = {
        "sent": [],
        "waiting": [RetryLater("later", 3600.0)],
        "unknown": [UnknownOutcome("cut"), UnknownOutcome("cut")],
        "failed": [Refused("never")],
    }
    async with hall.running():
        for number, (state, errors) in enumerate(outcomes.items()):
            hall.adapter.outcomes.extend(errors)
            place = PlaceRef("telegram", "main", "dm", str(number))
            await hall.db.outbox.add([NewOutbox(place, "answer", state)])

            async def there(wanted: str = state) -> bool:
                return (await hall.db.outbox.counts()).get(wanted, 0) == 1

            await hall.until(there)
        hall.adapter.outcomes.append(Gone("blocked"))
        await hall.db.outbox.add([NewOutbox(PlaceRef("telegram", "main", "dm", "9"), "answer", "failed")])
        await hall.until(lambda: _failed(hall, 2))
    rows = elsewhere("SELECT body, state FROM outbox")
    assert all(row["body"] == row["state"] for row in rows)
    assert hall.adapter.texts == ["sent"]
    assert sum((await hall.db.outbox.counts()).values()) == len(rows) == 5


async def _failed(hall: Hall, count: int) -> bool:
    return (await hall.db.outbox.counts()).get("failed", 0) == count


async def test_promise_4_at_most_one_turn_of_a_conversation_is_live_over_all_processes(
    hall: Hall, agent: FakeAgent
) -> None:
    """Two processes serve one account; turns of one conversation never overlap, others do."""
    live: Counter[str] = Counter()
    most: Counter[str] = Counter()
    side_by_side = asyncio.Barrier(2)

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        live[context.session_id] += 1
        most[context.session_id] = max(most[context.session_id], live[context.session_id])
        if context.text in {"a0", "b0"}:
            async with asyncio.timeout(20):
                await side_by_side.wait()
        await asyncio.sleep(0.002)
        live[context.session_id] -= 1
        yield Final(f"re: {context.text}")

    agent.play = play
    async with Hall.open(hall.db, agent, hall.workshop.settings) as other, hall.running(), other.running():
        for number in range(20):
            await hall.say(f"a{number}")
            await other.say(f"b{number}", chat="43", user="43")
        await hall.quiet()
    assert set(most.values()) == {1}
    assert [text for text in agent.texts if text.startswith("a")] == [f"a{number}" for number in range(20)]
    assert [text for text in agent.texts if text.startswith("b")] == [f"b{number}" for number in range(20)]


async def test_promise_5_processes_that_write_at_once_lose_nothing_and_show_no_lock(
    home: Path, elsewhere: Elsewhere
) -> None:
    """Three processes append side by side."""
    program = (
        "import asyncio, sys\n"
        "from session_store import SessionDB\n"
        "async def main(path, name):\n"
        "    async with SessionDB(path) as db:\n"
        "        await db.create_session(name, 'cli')\n"
        "        await asyncio.gather(*(db.append_message(name, 'user', str(n)) for n in range(150)))\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    children = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, str(home / "state.db"), f"s{number}"),
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(3)
    ]
    for child in children:
        async with asyncio.timeout(50):
            _, said = await child.communicate()
        assert (child.returncode, said) == (0, b"")
    counts = elsewhere("SELECT session_id, COUNT(DISTINCT content) AS n FROM messages GROUP BY session_id")
    assert {row["session_id"]: row["n"] for row in counts} == {"s0": 150, "s1": 150, "s2": 150}


async def test_promise_6_any_text_is_stored_and_found_and_a_search_error_is_no_empty_result(db: SessionDB) -> None:
    """Half characters, NULs, scripts without spaces, punctuation."""
    await db.create_session("s", "cli")
    texts = [
        "ok \ud83d end",
        "alpha\x00omega",
        "这是一个部署脚本",
        "C:\\tmp\\x 50% #123",
        "don't a@b.example",
        "😀 smile",
    ]
    for text in texts:
        await db.append_message("s", "user", text)
    for query in ("end", "omega", "部署", "#123", "50%", "don't", "a@b.example", "😀"):
        assert len(await db.search_messages(query)) == 1, query
    assert len(await db.get_messages("s")) == len(texts)
    with pytest.raises(QueryError):
        await db.search_messages("*")
    with failing(db, "search_messages", 1, StoreFull), pytest.raises(StoreFull):
        await db.search_messages("end")


async def test_promise_7_what_is_replayed_is_valid_whatever_the_clock_did(db: SessionDB) -> None:
    """Calls and results are pairs, in the order of insertion; an open call is answered in the copy, not in the rows."""
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    await db.create_session("s", "cli")
    await db.append_message("s", "user", "go", timestamp=100.30)
    await db.append_message(
        "s", "assistant", None, tool_calls=[call | {"id": "A"}, call | {"id": "B"}], timestamp=100.40
    )
    await db.append_message("s", "tool", "a", tool_call_id="A", tool_name="look", timestamp=100.38)
    before = await db.get_messages("s")
    replayed = await db.get_messages_as_conversation("s")
    assert [message["role"] for message in replayed] == ["user", "assistant", "tool", "tool"]
    assert [message.get("tool_call_id") for message in replayed[2:]] == ["A", "B"]
    assert "interrupted" in str(replayed[3]["content"])
    assert await db.get_messages("s") == before
    assert await db.get_messages_as_conversation("s") == replayed
    await db.append_message("s", "tool", "b", tool_call_id="B", tool_name="look", timestamp=100.41)
    await db.append_message("s", "user", "next", timestamp=99.00)
    contents = [message["content"] for message in await db.get_messages_as_conversation("s")]
    assert contents[2:] == ["a", "b", "next"]


FORMS: list[dict[str, Any]] = [
    {"chat": {"id": 42, "type": "private"}},
    {"chat": {"id": 42, "type": "private"}, "message_thread_id": 17, "is_topic_message": True},
    {"chat": {"id": -5, "type": "group"}},
    {"chat": {"id": -100, "type": "supergroup"}, "message_thread_id": 5},
    {"chat": {"id": -100, "type": "supergroup", "is_forum": True}, "message_thread_id": 17, "is_topic_message": True},
    {"chat": {"id": -100, "type": "supergroup", "is_forum": True}, "message_thread_id": 1, "is_topic_message": True},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("per_user", [True, False])
def test_promise_8_one_place_has_one_key_for_whatever_comes_from_there(form: dict[str, Any], *, per_user: bool) -> None:
    """A message, a command, a message after a restart: the key is the same, since one function makes it."""
    keys = set()
    for number, text in enumerate(["hello", "/new@gatebot chapter", "@gatebot again"]):
        entities = [{"type": "mention", "offset": 0, "length": 8}] if text.startswith("@") else []
        body = {"message_id": number, "date": 1, "from": {"id": 42, "is_bot": False, "first_name": "Ann"}} | form
        update = {"update_id": number, "message": body | {"text": text, "entities": entities}}
        message = inbound(update, Me(1000, "gatebot"), "main", time.time())
        assert message is not None
        keys.add(
            session_key(
                message.place,
                message.sender.user_id,
                group_sessions_per_user=per_user,
                thread_sessions_per_user=per_user,
            )
        )
    assert len(keys) == 1


async def test_promise_8_the_key_of_a_handed_off_place_is_that_of_the_next_message_there(
    hall: Hall, agent: FakeAgent, elsewhere: Elsewhere
) -> None:
    """It leads to the same session, also after a restart; tests/contract holds it for every platform."""
    stage = Stage(hall.db)
    await stage.begin()
    hall.adapter.threads.append("7")
    there: dict[str, Any] = {"chat": "-100", "chat_type": "group", "thread": "7", "addressed": False}
    async with hall.running(handing=True):
        await stage.ask(target=PlaceRef("telegram", "main", "group", "-100"))
        await hall.sent(1)
        await hall.say("before the restart", **there)
        await hall.sent(2)
    async with Hall.open(hall.db, agent, hall.workshop.settings) as restarted, restarted.running(recovering=True):
        await restarted.say("after the restart", **there)
        await restarted.sent(1)
    (route,) = elsewhere("SELECT session_key, session_id FROM routes")
    keys = elsewhere("SELECT session_key FROM inbox ORDER BY id")
    assert keys == [{"session_key": "agent:main:telegram:group:-100:thread=7"}] * 2
    assert route == {"session_key": keys[0]["session_key"], "session_id": SESSION}
    said = elsewhere("SELECT session_id, content FROM messages WHERE role = 'user' ORDER BY id")
    assert {row["session_id"] for row in said} == {SESSION}
    assert [row["content"] for row in said[1:]] == ["before the restart", "after the restart"]


async def test_promise_9_nobody_reads_or_steers_what_is_not_theirs(hall: Hall, agent: FakeAgent) -> None:
    """A stranger is not heard; another person finds, lists and stops nothing of the owner's."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        if context.text == "secret zebra":
            begun.set()
            await go_on.wait()
        yield Final(f"re: {context.text}")

    agent.play = play
    async with hall.running():
        await hall.say("secret zebra")
        async with asyncio.timeout(20):
            await begun.wait()
        for command in ("/stop", "/search zebra", "/sessions"):
            assert await hall.say(command, chat="66", user="66") is Verdict.DENIED
            await hall.say(command, chat="43", user="43")
        stop, *looked = await hall.sent(3)
        assert "Nothing is running" in " ".join([stop, *looked])
        assert not any("secret" in answer for answer in hall.adapter.texts)
        go_on.set()
        assert (await hall.sent(4))[-1] == "re: secret zebra"
    foreign = Visibility(frozenset({"somebody"}))
    assert await hall.db.list_sessions(visible_to=foreign) == []
    assert await hall.db.search_messages("zebra", visible_to=foreign) == []
    assert await hall.db.search_messages("zebra", visible_to=Visibility(frozenset())) == []
    assert await hall.db.resolve_session((await hall.session())["id"], visible_to=foreign) == []


def test_promise_10_claim_and_finish_have_happened_whole_or_not_at_all(home: Path, elsewhere: Elsewhere) -> None:
    """Killed anywhere in them: message, turn, row, route, answer and outbox agree."""
    chance = random.Random(10)  # noqa: S311 - repeatable, no secret
    finished: list[str] = []
    for number in range(4):
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and script
            [sys.executable, "-m", "tests.promises.claiming", str(home / "state.db"), f"p{number}"],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(chance.uniform(0.05, 0.4))
        child.kill()
        finished += [line.split()[1] for line in child.communicate(timeout=20)[0].splitlines() if " " in line]
    assert finished
    broken = {
        "a taken row without its running turn and message": """
            SELECT i.id FROM inbox AS i
            LEFT JOIN turns AS t ON t.id = i.turn_id LEFT JOIN messages AS m ON m.inbox_id = i.id
            WHERE i.state = 'taken' AND (t.state IS NOT 'running' OR m.id IS NULL OR t.input_message_id IS NOT m.id)""",
        "a done row without its answer and outbox row": """
            SELECT i.id FROM inbox AS i LEFT JOIN turns AS t ON t.id = i.turn_id
            LEFT JOIN messages AS m ON m.id = t.final_message_id LEFT JOIN outbox AS o ON o.turn_id = t.id
            WHERE i.state = 'done' AND (t.state IS NOT 'done' OR m.content IS NULL OR o.body IS NOT m.content)""",
        "a new row that has left something": """
            SELECT i.id FROM inbox AS i JOIN messages AS m ON m.inbox_id = i.id WHERE i.state = 'new'""",
        "a session without a route": """
            SELECT s.id FROM sessions AS s WHERE NOT EXISTS (SELECT 1 FROM routes AS r WHERE r.session_id = s.id)""",
        "a count that is not so": """
            SELECT s.id FROM sessions AS s
            WHERE s.message_count <> (SELECT COUNT(*) FROM messages AS m WHERE m.session_id = s.id)""",
    }
    for what, sql in broken.items():
        assert elsewhere(sql) == [], what
    done = {str(row["id"]) for row in elsewhere("SELECT id FROM inbox WHERE state = 'done'")}
    assert set(finished) <= done


#: Everything that compression, handoff and migration change; who works what is left out.
CHANGED = {
    "sessions": "SELECT * FROM sessions ORDER BY id",
    "messages": "SELECT * FROM messages ORDER BY id",
    "routes": "SELECT session_key, session_id FROM routes",
    "outbox": "SELECT session_id, body FROM outbox",
}


@pytest.mark.parametrize("what", ["compression", "handoff", "migration"])
async def test_promise_10_compression_handoff_and_migration_have_happened_whole_or_not_at_all(
    what: str, home: Path, elsewhere: Elsewhere
) -> None:
    """Killed behind most of what is written, nothing is there of it; then it can be done, and all of it is there."""
    path = home / "state.db"
    if what == "migration":
        make_history(path, 11)
    else:
        async with SessionDB(path) as db:
            await Stage(db).begin()
    tables = list(CHANGED)[:2] if what == "migration" else list(CHANGED)
    before = {table: elsewhere(CHANGED[table]) for table in tables}

    assert await _halfway(path, what) == -signal.SIGKILL
    assert {table: elsewhere(CHANGED[table]) for table in tables} == before

    assert await _halfway(path, what, "whole") == 0
    after = {table: elsewhere(sql) for table, sql in CHANGED.items()}
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert after["sessions"] != before["sessions"]
    if what == "migration":
        assert [row["content"] for row in after["messages"]] == [row["content"] for row in before["messages"]]
        return
    assert after["messages"][: len(before["messages"])] == before["messages"]
    if what == "compression":
        assert [row["end_reason"] for row in after["sessions"]] == ["compression", None]
    else:
        assert (
            [row["session_id"] for row in after["routes"]]
            == [row["session_id"] for row in after["outbox"]]
            == [SESSION]
        )


async def _halfway(path: Path, what: str, *whole: str) -> int:
    """Do it in a process, killed on the way or not; how that process ended."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.promises.halfway", str(path), what, *whole), cwd=ROOT
    )
    async with asyncio.timeout(50):
        return await child.wait()


async def test_promise_11_trouble_is_told_in_a_sentence_loses_nothing_and_passes_without_a_restart(
    hall: Hall, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at the edge, a broken index, a platform that is away: then everything goes on."""
    monkeypatch.setattr("gateway.delivery.STORE_RETRY_SECONDS", 0.01)
    message = event("the first zebra")
    with failing(hall.db.inbox, "accept", 1), pytest.raises(StoreFull, match="Free some space"):
        await hall.told(message)
    hall.adapter.outcomes.append(RetryLater("the platform is away", 0.05))
    async with hall.running():
        assert await hall.told(message) is Verdict.ACCEPTED
        assert await hall.sent(1) == ["re: the first zebra"]
        elsewhere("DELETE FROM messages_fts_data")
        await hall.say("the second zebra")
        await hall.sent(2)
    found = await hall.db.search_messages("zebra", role_filter=["user"])
    assert len(found) == 2
    assert await hall.transcript() == [
        ("user", "the first zebra"),
        ("assistant", "re: the first zebra"),
        ("user", "the second zebra"),
        ("assistant", "re: the second zebra"),
    ]


async def test_promise_12_no_call_of_ours_blocks_the_event_loop() -> None:
    """All tests of the suite run with this guard; here it is seen to bite."""
    module = {"__name__": "gateway.somewhere", "time": time}
    exec(compile("def careless():\n    time.sleep(0.001)\n", str(ROOT / "gateway" / "somewhere.py"), "exec"), module)  # noqa: S102 - our own words
    careless: Any = module["careless"]
    with pytest.raises(BlockingError):
        careless()


def test_promise_12_no_transaction_is_held_across_an_await_and_no_queue_is_unbounded() -> None:
    """What has a transaction in its hands cannot await; every queue is made with a size."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.AsyncFunctionDef):
                    taken = [ast.unparse(one.annotation) for one in node.args.args if one.annotation is not None]
                    assert not {"Tx", "Rx"} & set(taken), f"{path}:{node.lineno}: {node.name} awaits in a transaction"
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].endswith("Queue"):
                    assert node.args or node.keywords, f"{path}:{node.lineno}: a queue without a size"


def test_every_promise_has_its_test() -> None:
    """By number."""
    names = json.dumps([name for name in globals() if name.startswith("test_promise_")])
    assert all(f"test_promise_{number}_" in names for number in range(1, 13))
