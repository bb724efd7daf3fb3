"""The page in a real browser: what a person types is kept, shown live, and still there after whatever happens."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from gateway.web.app import create_app
from gateway.web.server import serve
from session_store import InvalidArgument, NewAttachment, SessionDB
from tests.unit.web.conftest import TOKEN, free_port
from tests.unit.web.desk import OWNER, FakeDesk, session

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="no chromium here: the page is tested where there is one"),
]


class Site:
    """The page's server, which a test may stop and start again on the same port."""

    def __init__(self, desk: FakeDesk) -> None:
        self.desk = desk
        self.port = free_port()
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Serve."""
        app = create_app(self.desk, token=TOKEN, host="127.0.0.1", port=self.port)
        listening = asyncio.Event()
        self._task = asyncio.create_task(serve(app, "127.0.0.1", self.port, on_listening=listening.set))
        async with asyncio.timeout(10):
            await listening.wait()

    async def stop(self) -> None:
        """Stop serving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=10)


@pytest.fixture
async def desk(db: SessionDB) -> FakeDesk:
    """The gateway behind the page."""
    return FakeDesk(db, await db.processes.register("gateway", ["web/main"]))


@pytest.fixture
async def site(desk: FakeDesk) -> AsyncIterator[Site]:
    """The page, served."""
    served = Site(desk)
    await served.start()
    yield served
    await served.stop()


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    """A browser of its own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.fixture
async def visit(chromium: Browser, site: Site) -> AsyncIterator[BrowserContext]:
    """A visit that must leave no error in the console and ask nobody but our server."""
    context = await chromium.new_context(viewport={"width": 1200, "height": 800}, locale="en-GB")
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on(
        "request", lambda request: problems.append(request.url) if not request.url.startswith(site.url) else None
    )
    context.on("console", lambda line: problems.append(line.text) if _is_problem(line.type, line.text) else None)
    yield context
    await context.close()
    assert problems == []


def _is_problem(kind: str, text: str) -> bool:
    return kind in {"error", "warning"} and not re.search(r"Failed to load resource|ERR_CONNECTION_REFUSED", text)


@pytest.fixture
async def page(visit: BrowserContext, site: Site) -> Page:
    """The page, opened by the address with its token."""
    opened = await visit.new_page()
    opened.set_default_timeout(10_000)
    await opened.goto(f"{site.url}/?token={TOKEN}")
    await expect(opened.get_by_text("Connected", exact=True)).to_be_visible()
    return opened


async def send(page: Page, text: str) -> None:
    """Type and press Enter."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


def thread(page: Page) -> Any:
    """The stored part of the conversation."""
    return page.get_by_role("log")


async def test_from_the_first_message_to_the_answer(page: Page, desk: FakeDesk, site: Site) -> None:
    """Kept at once, answered live, stored; the address holds the session and no token."""
    await expect(page).to_have_url(f"{site.url}/")
    await expect(page.get_by_role("heading", name="One thread, wherever you write")).to_be_visible()
    await send(page, "first line\n<second>")
    waiting = page.locator(".waiting")
    await expect(waiting).to_have_text("Youkeptfirst line\n<second>")

    session_id, fence = await desk.begin()
    await expect(page).to_have_url(f"{site.url}/#/s/{session_id}")
    await expect(waiting).to_have_count(0)
    await expect(thread(page).locator(".entry.user .body")).to_have_text("first line\n<second>")
    stop = page.get_by_role("button", name="Stop the answer")
    await expect(stop).to_be_visible()

    desk.live.publish(session_id, fence.turn_id, "Half **an**")
    await expect(page.locator(".live strong")).to_have_text("an")
    await desk.tool(fence, "session_search", '{"query": "x"}', '{"hits": []}')
    await desk.answer(session_id, fence, "The *whole* answer")
    await expect(page.locator(".live")).to_have_count(0)
    await expect(stop).to_be_hidden()
    answer = thread(page).locator(".entry.assistant")
    await expect(answer).to_have_count(1)
    await expect(answer.locator("em")).to_have_text("whole")
    await answer.get_by_text("1 tool call: session_search").click()
    await expect(answer.locator("pre").nth(1)).to_contain_text('"hits": []')


async def test_a_reload_keeps_everything(page: Page, desk: FakeDesk) -> None:
    """The open session, its messages, the draft of each session, and a message that was only just kept."""
    first = await desk.talk("alpha question", "alpha answer")
    second = await desk.talk("beta question", "beta answer")
    box = page.get_by_label("Message", exact=True)
    await page.get_by_role("link", name="alpha question").click()
    await expect(thread(page)).to_contain_text("alpha answer")
    await box.fill("a draft for alpha")
    await page.get_by_role("link", name="beta question").click()
    await expect(thread(page)).to_contain_text("beta answer")
    await expect(thread(page)).not_to_contain_text("alpha")
    await expect(box).to_have_value("")
    await send(page, "waiting for its turn")
    await expect(page.locator(".waiting")).to_contain_text("kept")
    await box.fill("a draft for beta")
    await page.reload()

    await expect(page).to_have_url(re.compile(f"#/s/{second}$"))
    await expect(thread(page)).to_contain_text("beta answer")
    await expect(page.locator(".waiting")).to_contain_text("waiting for its turn")
    await expect(box).to_have_value("a draft for beta")
    await page.get_by_role("link", name="alpha question").click()
    await expect(page).to_have_url(re.compile(f"#/s/{first}$"))
    await expect(box).to_have_value("a draft for alpha")
    assert [text for _, text, _ in desk.submitted].count("waiting for its turn") == 1


HOSTILE = "<script>window.hit=1</script><img src=x onerror='window.hit=1'><svg onload='window.hit=1'>"


async def test_hostile_text_stays_text(page: Page, desk: FakeDesk) -> None:
    """In messages, answers, live text, tool results, titles, notices, place names and search: nothing runs."""
    desk.submitted.append((None, "", ""))
    session_id = await desk.talk(HOSTILE, f"{HOSTILE}\n\n[x](javascript:window.hit=1)\n\n```{HOSTILE}\nx\n```")
    await desk.db.set_session_title(session_id, f"T {HOSTILE}"[:100])
    desk.live.notice(session_id, HOSTILE)
    await page.goto(page.url.split("#")[0] + f"#/s/{session_id}")
    await expect(thread(page).locator(".entry.user .body")).to_have_text(HOSTILE)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("T <script>")
    await desk.submit(session_id, f"again {HOSTILE}", "client-hostile")
    _, fence = await desk.begin()
    await desk.tool(fence, HOSTILE, HOSTILE, HOSTILE)
    desk.live.publish(session_id, fence.turn_id, f"live {HOSTILE}")
    await expect(page.locator(".live")).to_contain_text("live <script>")
    await page.get_by_label("Search all sessions").fill("script")
    await expect(page.locator(".list")).to_contain_text("Messages")

    assert await page.evaluate("window.hit") is None
    assert await page.locator("main script, main img, nav script, nav img, a[href^=javascript]").count() == 0


async def test_nothing_typed_is_lost_while_the_gateway_is_away(page: Page, desk: FakeDesk, site: Site) -> None:
    """The page says that the connection is lost, keeps what is written, and sends it once when the gateway is back."""
    session_id = await desk.talk("before", "answer")
    await page.get_by_role("link", name="before").click()
    await expect(thread(page)).to_contain_text("answer")
    await site.stop()
    await expect(page.get_by_text("Connection lost.")).to_be_visible()
    await send(page, "written while away")
    await expect(page.locator(".waiting")).to_contain_text("waiting for the connection")
    await desk.db.append_message(session_id, "assistant", "said meanwhile")
    await site.start()
    await page.get_by_role("button", name="Try now").click()

    await expect(page.locator(".waiting")).to_contain_text("kept")
    await expect(page.get_by_text("Connection lost.")).to_be_hidden()
    await expect(thread(page)).to_contain_text("said meanwhile")
    _, fence = await desk.begin()
    await desk.answer(session_id, fence, "answered after all")
    await expect(thread(page)).to_contain_text("answered after all")
    assert [entry[1] for entry in desk.submitted] == ["before", "written while away"]


async def test_a_message_survives_that_the_page_is_closed_while_offline(
    page: Page, visit: BrowserContext, desk: FakeDesk, site: Site
) -> None:
    """It is sent by the next page of this browser, to the session that it began."""
    await site.stop()
    await send(page, "first")
    await send(page, "second")
    await expect(page.locator(".waiting")).to_have_count(2)
    await page.close()
    await site.start()
    again = await visit.new_page()
    await again.goto(f"{site.url}/")
    await expect(again.locator(".waiting.kept")).to_have_count(2)

    assert [text for _, text, _ in desk.submitted] == ["first", "second"]
    session_id, _ = await desk.begin()
    assert desk.submitted[1][0] == session_id
    await expect(again).to_have_url(f"{site.url}/#/s/{session_id}")


async def test_a_refused_message_can_be_tried_again_edited_or_discarded(page: Page, desk: FakeDesk) -> None:
    """The reason stands beside it; trying again uses the same client id."""
    desk.trouble = InvalidArgument("This cannot be taken now.")
    await send(page, "keep me")
    failed = page.locator(".waiting.failed")
    await expect(failed.get_by_role("alert")).to_contain_text("This cannot be taken now.")
    await page.reload()
    await expect(failed).to_contain_text("keep me")
    desk.trouble = None
    await failed.get_by_role("button", name="Try again").click()
    await expect(page.locator(".waiting.kept")).to_contain_text("keep me")
    desk.trouble = InvalidArgument("Not this one.")
    await send(page, "edit me")
    await failed.get_by_role("button", name="Edit").click()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("edit me")
    await expect(failed).to_have_count(0)
    await page.keyboard.press("Enter")
    await failed.get_by_role("button", name="Discard").click()

    await expect(failed).to_have_count(0)
    assert [text for _, text, _ in desk.submitted] == ["keep me"]


async def test_what_is_said_elsewhere_appears_by_itself(page: Page, desk: FakeDesk) -> None:
    """A session of another place is listed, shown with its place, and goes on live."""
    await session(desk.db, "20260301_101010_abc123", source="cli", title="From the terminal")
    await desk.db.append_message("20260301_101010_abc123", "user", "typed in a terminal", person_id="owner")
    link = page.get_by_role("link", name="From the terminal")
    await expect(link).to_contain_text("Terminal")
    await link.click()
    await expect(thread(page).locator(".entry.user .via")).to_have_text("Terminal")
    await desk.db.append_message("20260301_101010_abc123", "assistant", "answered in the terminal")
    await expect(thread(page)).to_contain_text("answered in the terminal")
    await expect(page.get_by_role("button", name="Continue in terminal")).to_be_visible()
    await send(page, "and on from the browser")

    await expect(page.locator(".waiting.kept")).to_contain_text("and on from the browser")
    assert desk.submitted[-1][0] == "20260301_101010_abc123"


async def test_commands_are_offered_and_answered(page: Page, desk: FakeDesk) -> None:
    """Arrow keys and Tab complete; the answer shows the command; `/new` leads to the new session."""
    session_id = await desk.talk("hello", "hi")
    await page.get_by_role("link", name="hello").click()
    await expect(thread(page)).to_contain_text("hi")
    box = page.get_by_label("Message", exact=True)
    await box.press_sequentially("/s")
    options = page.get_by_role("option")
    await expect(options).to_have_count(2)
    await box.press("ArrowDown")
    await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    await box.press("ArrowUp")
    await box.press("Tab")
    await expect(box).to_have_value("/status")
    await box.press("Enter")
    notice = thread(page).locator(".notice")
    await expect(notice).to_contain_text("You typed /status.")
    await expect(notice.locator(".head b")).to_have_text("/status")
    await page.reload()
    await expect(notice.locator(".head b")).to_have_text("/status")
    await send(page, "/new Plan")
    await expect(page).to_have_url(re.compile(f"#/s/{session_id}_next$"))

    await expect(page.get_by_role("heading", level=1)).to_have_text("Plan")
    assert [text for _, text, _ in desk.submitted[1:]] == ["/status", "/new Plan"]


async def test_stop_asks_once_and_shows_what_was_said(page: Page, desk: FakeDesk) -> None:
    """The button is there while a turn runs, and the request names the session."""
    await send(page, "go on and on")
    session_id, fence = await desk.begin()
    await page.get_by_role("button", name="Stop the answer").click()
    await expect(page.get_by_role("button", name="Stop the answer")).to_be_disabled()
    await desk.db.turns.interrupt(fence, "stopped")
    await expect(page.get_by_role("button", name="Stop the answer")).to_be_hidden()

    assert desk.stopped == [session_id]


async def test_a_search_hit_leads_to_its_message(page: Page, desk: FakeDesk) -> None:
    """Also when the message lies many pages back."""
    await session(desk.db, "long", title="Long one")
    await desk.db.append_message("long", "user", "the needle is here")
    for number in range(150):
        await desk.db.append_message("long", "user", f"straw {number}")
    await page.get_by_label("Search all sessions").fill("needle")
    await page.locator(".hit").click()

    await expect(thread(page).get_by_text("the needle is here")).to_be_in_viewport()
    await page.get_by_label("Search all sessions").fill("AND")
    await expect(page.locator(".list .problem")).not_to_be_empty()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Long one")).to_be_visible()


async def test_earlier_messages_are_one_click_away(page: Page, desk: FakeDesk) -> None:
    """A long conversation opens at its end; what came before is added above without a jump."""
    await session(desk.db, "long", title="Long one")
    for number in range(80):
        await desk.db.append_message("long", "user", f"straw {number:02}")
    await page.get_by_role("link", name="Long one").click()
    entries = thread(page).locator(".entry")
    await expect(entries).to_have_count(60)
    await expect(thread(page).get_by_text("straw 79")).to_be_in_viewport()
    await page.get_by_role("button", name="Show earlier messages").click()

    await expect(entries).to_have_count(80)
    await expect(page.get_by_role("button", name="Show earlier messages")).to_be_hidden()
    assert [await entries.nth(at).locator(".body").inner_text() for at in (0, 79)] == ["straw 00", "straw 79"]


async def test_without_the_token_the_page_asks_for_its_address(visit: BrowserContext, site: Site) -> None:
    """A wrong token is said so and leaves the address; pasting the right address opens the page."""
    page = await visit.new_page()
    await page.goto(f"{site.url}/?token=wrong")
    await expect(page.get_by_role("heading", name="This page opens with its token")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_text("That token is not the right one.")
    await expect(page).to_have_url(f"{site.url}/")
    await page.reload()
    await expect(page.get_by_role("heading", name="This page opens with its token")).to_be_visible()
    await page.get_by_label("Address or token").fill(f" {site.url}/?token={TOKEN} ")
    await page.get_by_role("button", name="Open").click()

    await expect(page.get_by_text("Connected", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/")
    assert TOKEN not in str(await page.evaluate("document.cookie"))


async def test_a_phone_gets_the_list_as_a_drawer(chromium: Browser, desk: FakeDesk, site: Site) -> None:
    """Nothing is wider than the screen; choosing a session closes the drawer."""
    await desk.talk("a question", f"{'longword' * 40}\n\n```\n{'x' * 300}\n```\n\n|a|b|\n|-|-|\n|{'y' * 200}|z|")
    context = await chromium.new_context(viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True)
    page = await context.new_page()
    await page.goto(f"{site.url}/?token={TOKEN}")
    link = page.get_by_role("link", name="a question")
    await expect(link).to_be_hidden()
    await page.get_by_role("button", name="Show the sessions").tap()
    await link.tap()
    await expect(thread(page)).to_contain_text("longword")

    await expect(link).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    assert await page.evaluate("document.querySelector('#scroller').scrollWidth <= 360")
    await context.close()


async def test_everything_that_can_be_used_has_a_name(page: Page, desk: FakeDesk) -> None:
    """Buttons, links and fields are named, the parts of the page are landmarks, and Tab reaches the message box."""
    await desk.talk("a question", "```py\nx\n```")
    await page.get_by_role("link", name="a question").click()
    await expect(thread(page)).to_contain_text("x")
    nameless = await page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, textarea")].filter((item) =>
            item.checkVisibility() && !(item.innerText.trim() || item.ariaLabel || item.labels?.length))
            .map((item) => item.outerHTML)"""
    )

    assert nameless == []
    await expect(page.get_by_role("main")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
    await page.get_by_role("link", name="Skip to the message box").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()


async def test_files_are_named_and_saved(page: Page, desk: FakeDesk, site: Site, tmp_path: Path) -> None:
    """A kept file is a link that saves it, whatever is in it; one that was not fetched is only named."""
    async with desk.db.attachments.incoming(1000) as incoming:
        await incoming.write(b"<script>document.title = 'run'</script>")
        digest = await incoming.keep()
    files = [
        NewAttachment("page.html", "file", digest, 2_300, "text/plain"),
        NewAttachment("film.mp4", "video", size=10**9, problem="it is larger than 20 MB"),
    ]
    session_id = await desk.talk("look at these", "nice")
    await desk.db.append_message(session_id, "user", "and these", person_id=OWNER, attachments=files)
    await page.get_by_role("link", name="look at these").click()

    listed = thread(page).locator(".files li")
    await expect(listed).to_have_text(["page.html2 KB", "film.mp4not fetched"])
    async with page.expect_download() as started:
        await page.get_by_role("link", name="page.html").click()
    saved = tmp_path / "saved"
    await (await started.value).save_as(saved)
    assert saved.read_bytes() == b"<script>document.title = 'run'</script>"
    assert (await started.value).suggested_filename == "page.html"
    # Opened by its address it is saved as well, never shown.
    async with page.expect_download():
        await page.evaluate("url => { location.href = url }", f"{site.url}/api/files/{await _last(desk)}/0")
    assert await page.title() != "run"


async def _last(desk: FakeDesk) -> int:
    """The number of the message with files."""
    (hit,) = await desk.db.search_messages("these", role_filter=["user"], limit=1)
    return hit["id"]
