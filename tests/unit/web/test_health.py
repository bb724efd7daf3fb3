"""`/health` for service managers."""

from __future__ import annotations

from starlette.applications import Starlette

from tests.unit.web.conftest import browser
from tests.unit.web.desk import FakeDesk


async def test_health_needs_no_token_and_tells_states(app: Starlette) -> None:
    """One word for the whole and one for each account."""
    async with browser(app) as client:
        response = await client.get("/health")

    assert (response.status_code, response.json()) == (
        200,
        {"status": "ok", "accounts": {"telegram/main": "connected"}},
    )


async def test_health_says_trouble_by_its_status(app: Starlette, desk: FakeDesk) -> None:
    """A health check of a container looks at nothing else."""
    desk.facts = {"status": "store_full", "accounts": {}}
    async with browser(app) as client:
        response = await client.get("/health")

    assert (response.status_code, response.json()["status"]) == (503, "store_full")


async def test_health_keeps_everything_private_back(app: Starlette, desk: FakeDesk) -> None:
    """Sentences, paths, names of chats: only plain state words come out, whatever the gateway put in."""
    desk.facts = {
        "status": "Disk full at /home/ada",
        "accounts": {"telegram/main": "token 12:AB refused", "slack/work": "retrying", "bad name/x": "connected"},
        "sessions": 12,
    }
    async with browser(app) as client:
        response = await client.get("/health")

    assert response.json() == {"status": "unknown", "accounts": {"slack/work": "retrying"}}
