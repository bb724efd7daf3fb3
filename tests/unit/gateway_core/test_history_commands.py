"""/compress, /undo, /retry and /branch, as somebody types them in a chat and at the terminal."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from gateway.agents.base import AgentContext, AgentEvent, Final, SummaryRequest, ToolCalls, ToolResult, Written
from gateway.commands import Call
from gateway.owner import OWNER
from gateway.places import TERMINAL
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall
from tests.unit.gateway_core.test_inbound_depth import edit


async def ask(hall: Hall, *texts: str, **how: Any) -> list[str]:
    """What is answered to these, in order."""
    before = len(hall.adapter.sent)
    for text in texts:
        await hall.say(text, **how)
        await hall.quiet()
    return hall.adapter.texts[before:]


async def shown(hall: Hall) -> list[str]:
    """What the agent sees of the direct chat."""
    return [
        str(message["content"])
        for message in (await hall.workshop.contexts.seen((await hall.session())["id"])).shown.messages
    ]


async def test_compress_goes_on_in_a_child_with_the_next_title(hall: Hall, elsewhere: Elsewhere) -> None:
    """The parent ends; key, owner, place and prompt are the child's; the newest exchange stays whole."""
    async with hall.running():
        await ask(hall, "/new Garden", "one", "two", "three")
        parent = await hall.session()
        (answer,) = await ask(hall, "/compress the roses")
        child = await hall.session()
        (again,) = await ask(hall, "four")
    assert "“Garden #2”" in answer
    assert again == "re: four"
    assert (child["parent_session_id"], child["title"], child["root_id"]) == (parent["id"], "Garden #2", parent["id"])
    for column in ("owner", "session_key", "place_id", "model", "system_prompt", "source", "user_id", "room_id"):
        assert child[column] == parent[column], column
    ended = await hall.db.get_session(parent["id"])
    assert ended is not None
    assert (ended["end_reason"], ended["title"]) == ("compression", "Garden")
    (request,) = hall.agent.summarized
    assert (request.focus, [message["content"] for message in request.history]) == (
        "the roses",
        ["one", "re: one", "two", "re: two"],
    )
    seen = [message["content"] for message in hall.agent.asked[-1].conversation]
    assert "4 messages about the roses" in seen[0]
    assert seen[1:] == ["three", "re: three", "four"]
    assert elsewhere("SELECT COUNT(*) AS n FROM messages WHERE content = 'three'") == [{"n": 1}]


async def test_a_summary_that_fails_leaves_everything_as_it_was(hall: Hall, elsewhere: Elsewhere) -> None:
    """Also an empty one and one that is too long."""
    texts = iter(["", "  \n", "x" * 100_000])

    async def sum_up(request: SummaryRequest) -> Written:
        del request
        return Written(next(texts))

    hall.agent.sum_up = sum_up
    async with hall.running():
        await ask(hall, "one", "two", "three")
        before = await hall.session()
        answers = await ask(hall, "/compress", "/compress", "/compress")
        assert await hall.session() == before
    assert all("Nothing has changed" in answer for answer in answers)
    assert len(elsewhere("SELECT id FROM sessions")) == 1
    assert elsewhere("SELECT holder FROM leases") == [{"holder": None}]


async def test_undo_takes_back_exchanges_and_counts(hall: Hall) -> None:
    """They are hidden from the agent, the transcript and the search; the counters follow."""
    async with hall.running():
        await ask(hall, "one", "two pears", "three plums")
        (answer,) = await ask(hall, "/undo 2")
        assert "2 exchanges, from “two pears”" in answer
        assert await hall.transcript() == [("user", "one"), ("assistant", "re: one")]
        assert (await hall.session())["message_count"] == 2
        await ask(hall, "four")
    assert hall.agent.asked[-1].conversation[-1]["content"] == "four"
    assert await shown(hall) == ["one", "re: one", "four", "re: four"]
    assert await hall.db.search_messages("pears") == []


async def test_undo_reaches_over_a_compression_but_not_into_the_summary(hall: Hall) -> None:
    """What is still seen can be taken back wherever it lies; the summary cannot."""
    async with hall.running():
        await ask(hall, "one", "two", "/compress")
        (first,) = await ask(hall, "/undo 5")
        (second,) = await ask(hall, "/undo")
    assert "1 exchange, from “two”" in first
    assert "all that can be taken back" in first
    assert "summary" in second
    assert len(await shown(hall)) == 1


async def test_retry_answers_the_last_message_again_and_stores_it_once(hall: Hall, elsewhere: Elsewhere) -> None:
    """The former answer is hidden; the question has one row."""
    async with hall.running():
        await ask(hall, "one", "two")
        (answer,) = await ask(hall, "/retry")
    assert answer == "re: two"
    assert hall.agent.texts == ["one", "two", "two"]
    assert [message["content"] for message in hall.agent.asked[-1].conversation] == ["one", "re: one", "two"]
    assert await hall.transcript() == [
        ("user", "one"),
        ("assistant", "re: one"),
        ("user", "two"),
        ("assistant", "re: two"),
    ]
    assert elsewhere("SELECT COUNT(*) AS n FROM messages WHERE content = 'two'") == [{"n": 1}]
    assert elsewhere("SELECT rewound, COUNT(*) AS n FROM messages GROUP BY rewound") == [
        {"rewound": 0, "n": 4},
        {"rewound": 1, "n": 1},
    ]
    assert (await hall.session())["message_count"] == 4


async def test_retry_where_nothing_was_said(hall: Hall) -> None:
    """A sentence, and the agent is not asked."""
    async with hall.running():
        (answer,) = await ask(hall, "/retry")
    assert "nothing here that could be answered again" in answer
    assert hall.agent.asked == []


async def test_a_branch_goes_on_by_itself_and_leaves_its_parent_as_it_was(hall: Hall) -> None:
    """Both are listed; what is said and taken back in one is not seen in the other."""
    async with hall.running():
        await ask(hall, "/new Trip", "by train", "by boat")
        parent = await hall.session()
        (answer,) = await ask(hall, "/branch Trip by bike")
        branch = await hall.session()
        await ask(hall, "/undo", "by bike")
    assert "Trip by bike" in answer
    assert (branch["kind"], branch["parent_session_id"], branch["root_id"]) == ("branch", parent["id"], branch["id"])
    assert branch["message_count"] == 4
    assert await shown(hall) == ["by train", "re: by train", "by bike", "re: by bike"]
    kept = await hall.db.get_messages(parent["id"])
    assert [row["content"] for row in kept] == ["by train", "re: by train", "by boat", "re: by boat"]
    assert {row["title"] for row in await hall.db.list_sessions()} == {"Trip", "Trip by bike"}
    still = await hall.db.get_session(parent["id"])
    assert still is not None
    assert still["ended_at"] is None


async def test_a_long_conversation_is_compressed_by_itself_and_the_person_is_told_once(hall: Hall) -> None:
    """At the threshold, after the turn; the next message goes on in the child."""
    words = "many words " * 1500
    async with hall.running():
        sent = []
        for number in range(8):
            sent += await ask(hall, f"{number} {words}")
        session = await hall.session()
    told = [text for text in sent if "had grown long" in text]
    assert session["parent_session_id"] is not None
    assert len(told) >= 1
    assert len(told) == len(await hall.db.conversation_of(session["id"])) - 1
    for context in hall.agent.asked:
        assert sum(len(str(message["content"])) for message in context.conversation) < 3 * 32_000


async def test_a_compression_that_fails_by_itself_is_told_once_and_tried_later(hall: Hall) -> None:
    """Not at each turn; the turns go on."""

    async def sum_up(request: SummaryRequest) -> Written:
        del request
        return Written("")

    hall.agent.sum_up = sum_up
    async with hall.running():
        sent = []
        for number in range(12):
            sent += await ask(hall, f"{number} {'many words ' * 1500}")
    assert len([text for text in sent if "compressing it failed" in text]) == 1
    assert len([text for text in sent if text.startswith("re: ")]) == 12
    assert len(hall.agent.summarized) == 1


async def test_what_the_agent_sees_of_a_turn_is_the_beginning_of_what_it_sees_of_the_next(hall: Hall) -> None:
    """Byte for byte, tool calls included, so that providers find it in their caches; until it is compressed."""

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        yield ToolCalls([call])
        yield ToolResult("c1", "look", "nothing there")
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    async with hall.running():
        await ask(hall, "one", "two", "three", "/compress", "four", "five")
    seen = [json.dumps(list(context.conversation))[:-1] for context in hall.agent.asked]
    assert [later.startswith(earlier) for earlier, later in itertools.pairwise(seen)] == [True, True, False, True]


async def test_an_edited_message_is_answered_again_as_it_reads_now(hall: Hall) -> None:
    """The agent is asked the new text, once, and is not told of the change it has just answered."""
    async with hall.running():
        await ask(hall, "at nine", number=1)
        await hall.told(edit("at ten", 1))
        (answer,) = (await ask(hall, "/retry"))[-1:]
        await ask(hall, "and then?")
    assert answer == "re: at ten"
    assert hall.agent.texts == ["at nine", "at ten", "and then?"]
    assert [message["content"] for message in hall.agent.asked[-1].conversation] == [
        "at ten",
        "re: at ten",
        "and then?",
    ]


async def test_a_second_answer_that_was_cut_off_is_made_by_the_next_process(hall: Hall) -> None:
    """The turn of /retry is a turn like any other: run again with its question."""
    begun = asyncio.Event()
    tries: list[str] = []

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        tries.append(context.text)
        if len(tries) == 2:
            begun.set()
            await asyncio.Event().wait()
        yield Final(f"{len(tries)}: {context.text}")

    hall.agent.play = play
    async with hall.running():
        await ask(hall, "one")
        await hall.say("/retry")
        await begun.wait()
    async with Hall.open(hall.db, hall.agent, hall.workshop.settings) as following, following.running(recovering=True):
        await following.quiet()
    assert tries == ["one", "one", "one"]
    assert await hall.transcript() == [("user", "one"), ("assistant", "3: one")]


async def test_commands_wait_while_an_answer_is_made(hall: Hall) -> None:
    """From a chat they are worked afterwards; the terminal is told, and may stop the turn."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        begun.set()
        await go.wait()
        yield Final(f"re: {context.text}")

    hall.agent.play = play
    async with hall.running():
        await hall.say("one")
        await begun.wait()
        await hall.say("/undo")
        session = await hall.session()
        reply = await hall.workshop.desk.local_command(TERMINAL, OWNER, session["id"], Call("compress", ""))
        assert "An answer is being made" in reply.text
        go.set()
        await hall.quiet()
    assert hall.adapter.texts[0] == "re: one"
    assert "Taken back: 1 exchange" in hall.adapter.texts[1]


async def test_status_tells_how_much_of_the_budget_is_taken(hall: Hall) -> None:
    """And the messages of all segments."""
    async with hall.running():
        *_, status = await ask(hall, "one", "two", "/compress", "/status")
    assert re.search(r"It takes \d+ of 32,000 tokens \(\d+ %\); it is compressed by itself at 75 %\.", status)
    assert "5 messages" in status


async def test_a_conversation_that_is_too_long_already_is_compressed_before_the_first_turn(hall: Hall) -> None:
    """A process that finds it so does not answer out of a part of it; the question is not in the summary."""
    session_id = "long"
    await hall.db.create_session(session_id, "cli", owner=OWNER, title="Long")
    for number in range(20):
        await hall.db.append_message(session_id, "user", f"{number} {'many words ' * 1000}")
        await hall.db.append_message(session_id, "assistant", "yes")
    await hall.workshop.compressor.before_turn("session:long", None, session_id)
    conversation = await hall.db.conversation_of(session_id)
    assert len(conversation) == 2
    assert sum(len(request.history) for request in hall.agent.summarized) >= 30
    assert all(request.history[0]["role"] == "system" for request in hall.agent.summarized[1:])
    await hall.workshop.compressor.before_turn("session:long", None, session_id)
    assert await hall.db.conversation_of(session_id) == conversation


async def test_a_command_given_with_an_older_id_of_a_conversation_is_about_where_it_goes_on(hall: Hall) -> None:
    """A page or a terminal may hold any id of it."""
    async with hall.running():
        await ask(hall, "/new Garden", "one", "two")
        first = await hall.session()
        await ask(hall, "/compress")
        await hall.workshop.desk.local_command(TERMINAL, OWNER, first["id"], Call("title", "Orchard"))
        tip = await hall.session()
    assert (tip["title"], tip["parent_session_id"]) == ("Orchard", first["id"])
    kept = await hall.db.get_session(first["id"])
    assert kept is not None
    assert kept["title"] == "Garden"
