"""Titles that come by themselves after the first exchange."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from config import Settings
from gateway.agents.base import AgentError, Usage, Written
from session_store import SessionDB, StoreFull
from tests.unit.gateway_core.fakes import FakeAgent
from tests.unit.gateway_core.hall import Hall, failing

Title = Callable[[Sequence[Mapping[str, Any]]], Awaitable[Written | None]]
QUESTION = "How do two processes write to one store?"
BY_WORDS = "How do two processes write to one"


class TitlingAgent(FakeAgent):
    """An agent that can name conversations: `write` does, and `seen` holds what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Sequence[Mapping[str, Any]]] = []
        self.write: Title = self._plain

    async def title(self, history: Sequence[Mapping[str, Any]]) -> Written | None:
        """Write one."""
        self.seen.append(history)
        return await self.write(history)

    async def _plain(self, _history: Sequence[Mapping[str, Any]]) -> Written | None:
        await asyncio.sleep(0)
        return Written('"Writing to one store."', [Usage("title-1", "fake", 30, 5)])


@pytest.fixture
def titling(monkeypatch: pytest.MonkeyPatch) -> TitlingAgent:
    """The agent of the hall, in place of one that cannot."""
    fake = TitlingAgent()
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: fake)
    return fake


@pytest.fixture
async def named(db: SessionDB, titling: TitlingAgent, chosen: Settings) -> AsyncIterator[Hall]:
    """A hall with an agent that can."""
    async with Hall.open(db, titling, chosen) as opened:
        yield opened


@asynccontextmanager
async def at_work(hall: Hall) -> AsyncIterator[None]:
    """Rows are worked and conversations are named."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hall.workshop.titler.run)
        async with hall.running():
            yield
        tasks.cancel_scope.cancel()


async def title(hall: Hall, chat: str = "42") -> str:
    """The title of a direct chat's session, once it has one."""

    async def there() -> str | None:
        return (await hall.session(chat))["title"]

    return await hall.until(there) or ""


async def told(hall: Hall, text: str, **how: Any) -> None:
    """Say something and wait for the answer."""
    await hall.say(text, **how)
    await hall.quiet()


async def test_without_such_an_agent_the_first_question_gives_the_words(hall: Hall) -> None:
    """In its own language; what is said later changes nothing."""
    async with at_work(hall):
        await told(hall, QUESTION)
        assert await title(hall) == BY_WORDS
        await told(hall, "something else entirely now")
        await told(hall, "自己的会话标题是怎么来的", chat="43", user="43")
        assert await title(hall, "43") == "自己的会话标题是怎么来的"
    assert (await hall.session())["title"] == BY_WORDS


async def test_an_agent_that_can_is_shown_the_first_exchange(named: Hall, titling: TitlingAgent) -> None:
    """Its title is made tidy, and what it cost is counted once."""
    async with at_work(named):
        await told(named, QUESTION)
        assert await title(named) == "Writing to one store"
    assert titling.seen == [
        [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": f"re: {QUESTION}"}]
    ]
    spent = await named.db.usage.of_conversation((await named.session())["id"])
    assert (spent["calls"], spent["input_tokens"], spent["output_tokens"]) == (1, 30, 5)


async def _refuse(_history: object) -> None:
    raise AgentError("No network.")


async def _break(_history: object) -> None:
    raise RuntimeError("odd")


async def _never(_history: object) -> None:
    await asyncio.Event().wait()


async def _nothing(_history: object) -> None:
    await asyncio.sleep(0)


async def _blank(_history: object) -> Written:
    await asyncio.sleep(0)
    return Written(" \u200b\n")


@pytest.mark.parametrize("write", [_refuse, _break, _nothing, _blank])
async def test_an_agent_that_cannot_leaves_it_to_the_words(named: Hall, titling: TitlingAgent, write: Title) -> None:
    """The turn has long ended well."""
    titling.write = write
    async with at_work(named):
        await told(named, QUESTION)
        assert await title(named) == BY_WORDS
    assert named.adapter.texts == [f"re: {QUESTION}"]


async def test_an_agent_that_takes_too_long_leaves_it_to_the_words(
    named: Hall, titling: TitlingAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile answers are made as ever."""
    monkeypatch.setattr("gateway.titles.AGENT_SECONDS", 0.05)

    titling.write = _never
    async with at_work(named):
        await told(named, QUESTION)
        assert await title(named) == BY_WORDS


async def test_a_process_that_leaves_names_what_is_open_by_its_words(named: Hall, titling: TitlingAgent) -> None:
    """No conversation stays without a name because somebody left at once."""
    titling.write = _never
    async with at_work(named):
        await told(named, QUESTION)
    assert (await named.session())["title"] == BY_WORDS


async def test_a_title_that_somebody_gives_meanwhile_stays(named: Hall, titling: TitlingAgent) -> None:
    """It is looked at again in the transaction that would write it."""
    written = asyncio.Event()

    async def slow(_history: object) -> Written:
        await told(named, "/title My own")
        written.set()
        return Written("Another one")

    titling.write = slow
    async with at_work(named):
        await told(named, QUESTION)
        await written.wait()
        await told(named, "one more")
    assert (await named.session())["title"] == "My own"


async def test_a_title_given_at_birth_is_not_touched(named: Hall, titling: TitlingAgent) -> None:
    """The agent is not even asked."""
    async with at_work(named):
        await told(named, "/new My own")
        await told(named, QUESTION)
    assert titling.seen == []
    assert (await named.session())["title"] == "My own"


async def test_a_taken_title_gets_the_next_number_of_its_owner(hall: Hall) -> None:
    """Two conversations about the same; somebody else's has its own name space."""
    async with at_work(hall):
        await told(hall, QUESTION)
        assert await title(hall) == BY_WORDS
        await told(hall, "/new")
        await told(hall, QUESTION)
        assert await title(hall) == f"{BY_WORDS} #2"
        await told(hall, QUESTION, chat="43", user="43")
        assert await title(hall, "43") == BY_WORDS


async def test_a_number_at_the_end_is_no_place_in_a_lineage(hall: Hall) -> None:
    """`Issue #7` of one conversation must not become the latest `Issue`."""
    async with at_work(hall):
        await told(hall, "look at issue #7")
        assert await title(hall) == "look at issue"


async def test_a_store_that_cannot_be_written_leaves_it_to_the_next_answer(hall: Hall, logged: list[Any]) -> None:
    """The answer is there, the title comes later."""
    async with at_work(hall):
        with failing(hall.db.automatic_titles, "give", 1, StoreFull):
            await told(hall, QUESTION)
            await hall.until(lambda: _logged(logged, "no_title_yet"))
            await told(hall, "and then?")
            assert await title(hall) == BY_WORDS


async def _logged(logged: list[Any], event: str) -> bool:
    await asyncio.sleep(0)
    return any(entry["event"] == event for entry in logged)


async def test_old_conversations_without_a_title_stay_so(hall: Hall) -> None:
    """Only new ones are named: an old one is known by its beginning, and may have lost its title on purpose."""
    async with hall.running(), anyio.create_task_group() as tasks:
        for number in range(4):
            await told(hall, f"message {number} of a conversation")
        tasks.start_soon(hall.workshop.titler.run)
        await told(hall, "one more of it, please")
        await told(hall, QUESTION, chat="43", user="43")
        assert await title(hall, "43") == BY_WORDS
        tasks.cancel_scope.cancel()
    assert (await hall.session())["title"] is None
