"""/compress, /undo, /retry and /branch on the page of a real gateway, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Browser, Page, expect

from tests.gateways import LocalGateway
from tests.integration.test_web_page import chromium, pytestmark, send, thread

__all__ = ["chromium", "pytestmark"]


async def say(page: Page, text: str) -> None:
    """Tell something and see the answer."""
    await send(page, text)
    await expect(thread(page).get_by_text(f"Kept: {text}", exact=True)).to_be_visible()


async def test_the_page_goes_on_through_compression_and_shows_no_more_what_was_taken_back(
    home: Path, chromium: Browser
) -> None:
    """It holds the id of the first session all the time; a branch is a session of its own to go to."""
    async with LocalGateway(home) as gateway:
        page = await (await chromium.new_context(viewport={"width": 1200, "height": 900})).new_page()
        page.set_default_timeout(15_000)
        await page.goto(gateway.address)
        await say(page, "The roses are red")
        await say(page, "The tulips are yellow")
        first = page.url
        await send(page, "/compress")
        await expect(thread(page).get_by_text("What was said earlier is now a summary")).to_be_visible()
        await say(page, "The peas are green")
        assert page.url == first

        await send(page, "/undo")
        await expect(thread(page).get_by_text("Taken back: 1 exchange")).to_be_visible()
        await expect(thread(page).get_by_text("Kept: The peas are green", exact=True)).to_have_count(0)
        await expect(thread(page).get_by_text("Kept: The tulips are yellow", exact=True)).to_be_visible()

        await send(page, "/retry")
        await expect(thread(page).get_by_text("Answering your last message again.")).to_be_visible()
        await expect(thread(page).get_by_text("Kept: The tulips are yellow", exact=True)).to_have_count(1)
        await expect(thread(page).get_by_text("The tulips are yellow", exact=True)).to_have_count(1)

        await send(page, "/branch Balcony")
        await expect(page).not_to_have_url(first)
        await expect(page.get_by_role("heading", name=re.compile("Balcony"))).to_be_visible()
        await say(page, "The box is blue")
