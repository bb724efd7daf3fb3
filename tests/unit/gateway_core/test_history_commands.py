"""/compress, /undo, /retry and /branch, as somebody types them in a chat and at the terminal."""

from __future__ import annotations

from typing import Any

from gateway.agents.base import SummaryRequest, Written
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall


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
    assert "“Garden \\#2”" in answer
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
