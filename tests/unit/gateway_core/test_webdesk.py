"""What the page asks of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.agents.base import AgentContext, AgentEvent, Final, TextDelta
from gateway.lanes import Lanes
from gateway.webdesk import WebDesk
from session_store import MessageRow
from tests.conftest import Elsewhere
from tests.unit.gateway_core.hall import Hall


class Page:
    """The desk of a page over a hall whose lanes serve the web."""

    def __init__(self, hall: Hall) -> None:
        self.hall = hall
        self.well = True
        self.accounts: dict[str, dict[str, str | None]] = {"telegram/main": {"state": "connected", "problem": None}}
        self.desk = WebDesk(hall.workshop, lambda: self.accounts, lambda: self.well)
        self.lanes = Lanes(hall.db, lambda: [("web", "main")], hall.holder, hall.workshop.desk)

    async def messages(self, session_id: str) -> list[MessageRow]:
        """What is stored of a session."""
        return await self.hall.db.get_messages(session_id)

    async def answered(self, session_id: str, count: int) -> list[str]:
        """The contents of its messages, once there are so many."""

        async def enough() -> list[str]:
            rows = await self.messages(session_id)
            return [str(row["content"]) for row in rows] if len(rows) >= count else []

        return await self.hall.until(enough)


@pytest.fixture
async def page(hall: Hall) -> AsyncIterator[Page]:
    """The page, its messages being worked."""
    opened = Page(hall)
    task = asyncio.create_task(opened.lanes.run())
    obeying = asyncio.create_task(hall.heart.obey(hall.workshop.runner))
    yield opened
    opened.lanes.close()
    hall.workshop.runner.leave_all()
    await task
    obeying.cancel()
    await asyncio.wait({obeying})


async def test_a_message_is_answered_in_its_session(page: Page, elsewhere: Elsewhere) -> None:
    """A new session is named at once; it is the owner's, of the web, and nothing goes through the outbox."""
    session_id = await page.desk.submit(None, "hello", "client-1")
    assert await page.answered(session_id, 2) == ["hello", "re: hello"]
    session = await page.hall.db.get_session(session_id)
    assert session is not None
    assert (session["owner"], session["source"]) == ("owner", "web")
    assert (await page.messages(session_id))[0]["platform_message_id"] == "client-1"
    assert elsewhere("SELECT * FROM outbox") == []


async def test_a_repeated_submit_changes_nothing_and_names_the_same_session(page: Page) -> None:
    """Also while the first is still waiting, and after it was answered."""
    first = await page.desk.submit(None, "hello", "client-1")
    assert await page.desk.submit(None, "hello", "client-1") == first
    await page.answered(first, 2)
    assert await page.desk.submit(None, "hello", "client-1") == first
    await page.desk.submit(first, "more", "client-2")
    assert await page.answered(first, 4) == ["hello", "re: hello", "more", "re: more"]


async def test_messages_of_a_conversation_keep_their_order(page: Page) -> None:
    """However many wait behind a slow one."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        begun.set()
        await go_on.wait()
        yield Final(f"re: {context.text}")

    page.hall.agent.play = play
    session_id = await page.desk.submit(None, "0", "client-0")
    async with asyncio.timeout(20):
        await begun.wait()
    for number in range(1, 8):
        await page.desk.submit(session_id, str(number), f"client-{number}")
    await asyncio.sleep(0.1)
    go_on.set()
    contents = await page.answered(session_id, 16)
    assert contents[::2] == [str(number) for number in range(8)]


async def test_a_session_of_another_entrance_is_continued(page: Page) -> None:
    """What began on Telegram goes on here, in the same session."""
    async with page.hall.running():
        await page.hall.say("from telegram")
        await page.hall.sent(1)
    session = await page.hall.session()
    again = Page(page.hall)
    async with Hall.open(page.hall.db, page.hall.agent, page.hall.workshop.settings) as following:
        desk = WebDesk(following.workshop, dict, lambda: True)
        lanes = Lanes(following.db, lambda: [("web", "main")], following.holder, following.workshop.desk)
        task = asyncio.create_task(lanes.run())
        assert await desk.submit(session["id"], "from the page", "client-1") == session["id"]
        contents = await again.answered(session["id"], 4)
        lanes.close()
        await task
    assert contents[2:] == ["from the page", "re: from the page"]


async def test_commands_are_worked_at_once_and_shown(page: Page) -> None:
    """The reply is a notice in the session; /new names where to go."""
    session_id = await page.desk.submit(None, "hello", "client-1")
    await page.answered(session_id, 2)
    assert await page.desk.submit(session_id, "/title plan", "client-2") == session_id
    assert await page.desk.submit(session_id, "/new other", "client-3") == session_id
    titled, begun = page.desk.live.notices(session_id)
    assert (titled.reply_to, titled.text) == ("client-2", "This session is now called “plan”.")
    assert begun.reply_to == "client-3"
    assert begun.goto is not None
    fresh = await page.hall.db.get_session(begun.goto)
    assert fresh is not None
    assert fresh["title"] == "other"


@pytest.mark.parametrize("inside", [True, False])
async def test_a_command_that_comes_again_after_a_restart_is_not_worked_again(page: Page, *, inside: bool) -> None:
    """A gateway that knows nothing but the store says so, and names the same session."""
    chosen = await page.desk.submit(None, "hello", "client-1") if inside else None
    if chosen is not None:
        await page.answered(chosen, 2)
    shown_in = await page.desk.submit(chosen, "/new other", "client-2")
    before = await page.hall.db.list_sessions()

    async with Hall.open(page.hall.db, page.hall.agent, page.hall.workshop.settings) as later:
        desk = WebDesk(later.workshop, dict, lambda: True)
        assert await desk.submit(chosen, "/new other", "client-2") == shown_in
        (notice,) = desk.live.notices(shown_in)
    assert (notice.reply_to, "done already" in notice.text) == ("client-2", True)
    assert await page.hall.db.list_sessions() == before


async def test_a_command_that_failed_may_come_again(page: Page) -> None:
    """Nothing of it is kept."""
    session_id = await page.desk.submit(None, "hello", "client-1")
    await page.answered(session_id, 2)
    await page.desk.submit(session_id, "/new plan", "client-2")
    (begun,) = page.desk.live.notices(session_id)
    assert begun.goto is not None
    await page.desk.submit(session_id, "/title plan", "client-3")
    assert "already" in page.desk.live.notices(session_id)[-1].text
    await page.hall.db.set_session_title(begun.goto, "changed")
    await page.desk.submit(session_id, "/title plan", "client-3")
    assert page.desk.live.notices(session_id)[-1].text == "This session is now called “plan”."


async def test_stop_ends_the_running_turn(page: Page) -> None:
    """What was said so far is kept; without a running turn nothing happens."""
    begun = asyncio.Event()

    async def play(_context: AgentContext) -> AsyncIterator[AgentEvent]:
        yield TextDelta("so far")
        begun.set()
        await asyncio.Event().wait()
        yield Final("never")

    page.hall.agent.play = play
    session_id = await page.desk.submit(None, "hello", "client-1")
    async with asyncio.timeout(20):
        await begun.wait()
    await page.desk.stop(session_id)
    assert await page.answered(session_id, 2) == ["hello", "so far"]
    await page.desk.stop(session_id)
    await page.desk.stop("no such session")


async def test_health_tells_the_store_and_the_accounts(page: Page) -> None:
    """State words only; the sentence of a problem is for the status."""
    page.accounts["telegram/main"] = {"state": "failed", "problem": "Telegram refused the token."}
    assert page.desk.health() == {"status": "ok", "accounts": {"telegram/main": "failed"}}
    page.well = False
    assert page.desk.health()["status"] == "store"


async def test_the_page_offers_every_command(page: Page) -> None:
    """Name, usage and summary."""
    names = [name for name, _, _ in page.desk.commands()]
    assert names == [command.name for command in page.hall.workshop.commands.commands]
