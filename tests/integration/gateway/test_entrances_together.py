"""Terminal, page and Telegram over one store: what is told at one is found at the others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.agents.base import AgentContext, AgentEvent, Final, ToolCalls, ToolResult
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import LocalGateway, eventually, telegram_home, threadline
from tests.unit.gateway_core.fakes import FakeAgent


async def say_on_page(client: httpx.AsyncClient, text: str, number: int, session_id: str | None = None) -> str:
    """Send a message from the page; returns its session."""
    body = {"text": text, "client_id": f"client-{number:08}", "session_id": session_id}
    answer = await client.post("/api/messages", json=body)
    assert answer.status_code == 202, answer.text
    found: str = answer.json()["session_id"]
    return found


async def answered_on_page(client: httpx.AsyncClient, session_id: str, words: str) -> None:
    """Return once the page shows an answer with these words last in a session."""

    async def shown() -> bool:
        answer = await client.get(f"/api/sessions/{session_id}/messages")
        messages = answer.json()["messages"]
        return bool(messages) and messages[-1]["role"] == "assistant" and words in json.dumps(messages[-1])

    await eventually(shown)


async def test_a_fact_told_on_telegram_is_found_from_the_page_and_the_terminal(
    configured: Path, telegram: TelegramEmulator
) -> None:
    """The terminal works while the gateway serves, and afterwards without it."""
    async with LocalGateway(configured) as gateway:
        telegram.say("The deploy script is in tools/deploy.sh")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        async with gateway.browser() as client:
            session_id = await say_on_page(client, "where is the deploy script we talked about", 1)
            await answered_on_page(client, session_id, "tools/deploy.sh")
        beside = await threadline(configured, "chat", "-q", "where is the deploy script?")
        assert beside.code == 0, beside.err
        assert "tools/deploy.sh" in beside.out
        telegram.say("上次我们讨论的那个 deploy 脚本在哪?")
        await telegram.until(lambda: len(telegram.sent) == 2, 20)
        assert "tools/deploy.sh" in telegram.sent[1].text
    alone = await threadline(configured, "chat", "-q", "where is the deploy script?")
    assert "tools/deploy.sh" in alone.out


async def test_a_session_begun_on_telegram_goes_on_on_the_page(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """One session, answers where they were asked; nothing of the page goes to Telegram."""
    async with LocalGateway(configured) as gateway:
        telegram.say("The first fact")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        async with gateway.browser() as client:
            listed = (await client.get("/api/sessions")).json()["sessions"]
            (session,) = listed
            assert session["source"] == "telegram"
            await say_on_page(client, "The second fact", 1, session["id"])
            await answered_on_page(client, session["id"], "second")
        telegram.say("The third fact")
        await telegram.until(lambda: len(telegram.sent) == 2, 20)
    assert len(elsewhere("SELECT id FROM sessions")) == 1
    assert "third" in telegram.sent[1].text


async def test_health_and_status_tell_how_it_is(configured: Path) -> None:
    """Over HTTP and on the command line."""
    async with LocalGateway(configured) as gateway:
        async with httpx.AsyncClient(trust_env=False) as client:

            async def connected() -> bool:
                health = await client.get(f"{gateway.base}/health")
                assert health.status_code == 200
                return bool(health.json() == {"status": "ok", "accounts": {"telegram/main": "connected"}})

            await eventually(connected)
        status = await threadline(configured, "gateway", "status", "--json")
        assert status.code == 0, status.err
        (facts,) = json.loads(status.out)["gateways"]
        assert facts["address"] == gateway.base
        assert facts["answers"] is True
        assert facts["accounts"]["telegram/main"] == {"state": "connected", "problem": None}
    gone = await threadline(configured, "gateway", "status")
    assert gone.code == 1
    assert "No gateway is running" in gone.out


async def test_a_wrong_token_is_told_and_the_other_entrances_serve(
    configured: Path, telegram: TelegramEmulator
) -> None:
    """The page and the terminal work; the status says what to change, without the token."""
    telegram_home(configured, telegram.base_url, "999:wrong-token")
    async with LocalGateway(configured) as gateway:
        async with gateway.browser() as client:
            session_id = await say_on_page(client, "The page works", 1)
            await answered_on_page(client, session_id, "works")

        async def told() -> bool:
            status = await threadline(configured, "gateway", "status")
            assert "wrong-token" not in status.out
            return "telegram/main: failed: Telegram refused the token" in status.out and (
                "platforms.telegram" in status.out
            )

        await eventually(told)


async def test_pairing_with_the_printed_code(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The owner prints a code, a new account sends it, and is the owner from then on."""
    async with LocalGateway(configured):
        printed = await threadline(configured, "pair", "telegram")
        assert printed.code == 0, printed.err
        code = printed.out.split()[0]
        telegram.say("hello?", chat_id=77, user_id=77)
        telegram.say(f"/start {code}", chat_id=77, user_id=77)
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        telegram.say("The new phone works", chat_id=77, user_id=77)
        telegram.say(code, chat_id=78, user_id=78)
        await telegram.until(lambda: len(telegram.sent) == 2, 20)
        named = await threadline(configured, "pair", "telegram", "--as", "Grace")
        telegram.say(named.out.split()[0].lower(), chat_id=79, user_id=79)
        await telegram.until(lambda: len(telegram.sent) == 3, 20)
    assert "Paired" in telegram.sent[0].text
    assert "new phone" in telegram.sent[1].text
    assert "Grace" in telegram.sent[2].text
    assert {sent.chat_id for sent in telegram.sent} == {77, 79}
    assert elsewhere("SELECT owner FROM sessions") == [{"owner": "owner"}]
    assert code.replace("-", "") not in json.dumps(elsewhere("SELECT * FROM inbox"))
    assert elsewhere("SELECT * FROM identities WHERE user_id = '78'") == []


async def test_odd_characters_go_the_whole_way(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a character, NULs in tool results, any script: every turn is kept, found, exported and answered."""
    odd = ["ok \ud83d end", "alpha\x00omega", "西班牙语 и русский", "plain one", "plain two"]
    results = iter(["alpha\x00omega", "first " + "\x00" * 10_000 + " last", "third", "fourth", "fifth"])
    agent = FakeAgent()

    async def play(context: AgentContext) -> AsyncIterator[AgentEvent]:
        call = {"id": f"c{len(agent.asked)}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        yield ToolCalls([call])
        yield ToolResult(f"c{len(agent.asked)}", "look", next(results))
        yield Final(f"re: {context.text}")

    agent.play = play
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: agent)
    async with LocalGateway(configured):
        for number, text in enumerate(odd, start=1):
            telegram.say(text)
            await telegram.until(lambda wanted=number: len(telegram.sent) >= wanted, 20)  # type: ignore[misc]
    assert telegram.sent[0].text.startswith("re: ok ")
    assert telegram.sent[0].text.endswith(" end")
    assert telegram.sent[2].text == "re: 西班牙语 и русский"
    async with SessionDB(configured / "state.db") as db:
        (session,) = await db.list_sessions()
        assert session["message_count"] == 20
        for word in ("alpha", "omega", "first", "last"):
            assert await db.search_messages(word, role_filter=["tool"]), word
        assert await db.search_messages("西班", role_filter=["user"])
        export = await db.export_session(session["id"])
        assert export is not None
        assert json.loads(json.dumps(export, ensure_ascii=False).encode())["message_count"] == 20
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    exported = await threadline(configured, "sessions", "export", "-")
    assert exported.code == 0, exported.err
    assert len(json.loads(exported.out)["messages"]) == 20
    _check_index(configured / "state.db")


def _check_index(path: Path) -> None:
    """The index's own check, as any other tool may run it: nobody holds the file any more."""
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
    connection.close()
