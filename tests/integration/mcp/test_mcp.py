"""Other agents read the owner's history through the real client library of their protocol, over pipes and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from session_store import SessionDB

TOKEN = "t" * 43
SERVER = "from gateway.cli.main import run; run()"


@pytest.fixture
async def filled(home: Path) -> str:
    """Two sessions of the owner, one of somebody else; returns the id of the first."""
    async with SessionDB(home / "state.db") as db:
        await db.create_session("20260101_000000_aaaaaa", "cli", owner="owner")
        await db.set_session_title("20260101_000000_aaaaaa", "Harbour lights")
        for number in range(120):
            await db.append_message("20260101_000000_aaaaaa", "user", f"lamp number {number} stands at pier {number}")
        await db.create_session("20260102_000000_bbbbbb", "telegram", owner="owner")
        await db.append_message("20260102_000000_bbbbbb", "user", "我们明天去北京")
        await db.create_session("20260103_000000_cccccc", "telegram", owner="p123456789abc")
        await db.append_message("20260103_000000_cccccc", "user", "a secret of somebody else at pier 7")
    return "20260101_000000_aaaaaa"


@asynccontextmanager
async def over_pipes(home: Path) -> AsyncIterator[Client]:
    """A client that starts the command by itself, as other programs do."""
    environment = {**os.environ, "THREADLINE_HOME": str(home)}
    command = StdioServerParameters(command=sys.executable, args=["-c", SERVER, "mcp"], env=environment)
    async with Client(stdio_client(command)) as client:
        yield client


@asynccontextmanager
async def serving(home: Path) -> AsyncIterator[str]:
    """The command with --http, on any free port; gives its address."""
    environment = {**os.environ, "THREADLINE_HOME": str(home), "THREADLINE_WEB__TOKEN": TOKEN}
    arguments = ["-c", SERVER, "mcp", "--http", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        yield line.split(" at ")[1].split(". ")[0]
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def over_http(home: Path) -> AsyncIterator[Client]:
    """A client of the served address, with the token."""
    async with (
        serving(home) as address,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


def told(result: CallToolResult) -> Any:
    """What a tool gave back, and that its text and its structure are the same."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    assert json.loads(block.text) == result.structured_content
    return result.structured_content


def refusal(result: CallToolResult) -> str:
    """The sentence with which a tool refused."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.is_error
    return block.text


@pytest.mark.parametrize("way", [over_pipes, over_http])
async def test_a_client_finds_lists_reads_and_exports(home: Path, filled: str, way: Any) -> None:
    """All four tools, over both ways."""
    async with way(home) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["session_search", "session_list", "session_show", "session_export"]
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)

        found = told(await client.call_tool("session_search", {"query": "北京"}))
        assert [one["session_id"] for one in found["results"]] == ["20260102_000000_bbbbbb"]

        listed = told(await client.call_tool("session_list", {"limit": 5}))
        assert {row["id"] for row in listed["sessions"]} == {filled, "20260102_000000_bbbbbb"}

        page = told(await client.call_tool("session_show", {"session": "harbour lights", "limit": 100}))
        assert page["more_before"] is True
        assert page["messages"][-1]["content"] == "lamp number 119 stands at pier 119"
        first = page["messages"][0]["id"]
        rest = told(await client.call_tool("session_show", {"session": filled, "before": first, "limit": 100}))
        assert rest["more_before"] is False
        assert len(rest["messages"]) == 20

        exported = told(await client.call_tool("session_export", {"session": filled[:15]}))
        assert len(exported["sessions"][0]["messages"]) == 120


async def test_transcripts_are_resources(home: Path, filled: str) -> None:
    """Listed with their titles, read as Markdown; an unknown one is an error."""
    async with over_pipes(home) as client:
        resources = (await client.list_resources()).resources
        assert ("Harbour lights", f"threadline://session/{filled}") in {(one.title, one.uri) for one in resources}

        (content,) = (await client.read_resource(f"threadline://session/{filled}")).contents
        assert "# Harbour lights" in getattr(content, "text", "")
        assert "lamp number 64" in getattr(content, "text", "")
        with pytest.raises(MCPError, match="There is no session"):
            await client.read_resource("threadline://session/20990101")
        with pytest.raises(MCPError, match="There is nothing at"):
            await client.read_resource("file:///etc/passwd")


async def test_what_is_not_the_owners_does_not_exist(home: Path, filled: str) -> None:
    """Not found, not listed, not read, not exported, and told in the same words as what really is not there."""
    del filled
    theirs, nothing = "20260103_000000_cccccc", "20260103_000000_dddddd"
    async with over_pipes(home) as client:
        found = told(await client.call_tool("session_search", {"query": "secret"}))
        assert found["results"] == []
        for tool in ("session_show", "session_export"):
            hidden = refusal(await client.call_tool(tool, {"session": theirs}))
            absent = refusal(await client.call_tool(tool, {"session": nothing}))
            assert hidden.replace(theirs, "") == absent.replace(nothing, "")


async def test_wrong_calls_are_answered_with_a_sentence(home: Path, filled: str) -> None:
    """Each says what is wrong; the server goes on."""
    async with over_pipes(home) as client:
        assert "There is no tool" in refusal(await client.call_tool("session_delete", {"session": filled}))
        assert "limit" in refusal(await client.call_tool("session_list", {"limit": 100_000}))
        assert "session" in refusal(await client.call_tool("session_show", {}))
        assert "may be several" in refusal(await client.call_tool("session_show", {"session": "2026010"}))
        assert told(await client.call_tool("session_list", {}))["count"] == 2


async def test_without_the_token_and_from_web_pages_nothing_is_answered(home: Path, filled: str) -> None:
    """No token, a wrong one, a foreign Host (a rebound name), a foreign Origin."""
    del filled
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with serving(home) as address, httpx.AsyncClient(headers=accept, trust_env=False) as http:
        assert (await http.post(address, json=body)).status_code == 401
        assert (await http.post(address, json=body, headers={"Authorization": "Bearer x"})).status_code == 401
        rebound = await http.post(address, json=body, headers={**bearer, "Host": "evil.example"})
        assert rebound.status_code in {400, 403, 421}
        foreign = await http.post(address, json=body, headers={**bearer, "Origin": "https://evil.example"})
        assert foreign.status_code == 403


async def test_a_large_session_is_cut_or_refused_in_words(home: Path) -> None:
    """The transcript says what it leaves out; the export says what to do instead."""
    async with SessionDB(home / "state.db") as db:
        await db.create_session("20260101_000000_aaaaaa", "cli", owner="owner")
        for number in range(30):
            await db.append_message("20260101_000000_aaaaaa", "user", f"{number} " + "x" * 50_000)
    async with over_pipes(home) as client:
        refused = refusal(await client.call_tool("session_export", {"session": "20260101_000000_aaaaaa"}))
        assert "session_show" in refused
        exported = told(
            await client.call_tool("session_export", {"session": "20260101_000000_aaaaaa", "format": "markdown"})
        )
        assert "earlier messages are left out" in exported["text"]
        assert "29 xxx" in exported["text"]
        assert len(exported["text"]) < 1_100_000


async def test_secrets_leave_the_home_only_when_that_is_asked_for(home: Path) -> None:
    """With `redact: export` neither tools nor transcripts nor titles tell them; without it they are told as stored."""
    secret = "ghp_" + "a1B2" * 9
    async with SessionDB(home / "state.db") as db:
        await db.create_session("20260101_000000_aaaaaa", "cli", owner="owner")
        await db.set_session_title("20260101_000000_aaaaaa", f"Key {secret}")
        await db.append_message("20260101_000000_aaaaaa", "user", f"the deploy key is {secret}")

    async def everything() -> str:
        async with over_pipes(home) as client:
            calls = [
                ("session_search", {"query": "deploy"}),
                ("session_list", {}),
                ("session_show", {"session": "20260101_000000_aaaaaa"}),
                ("session_export", {"session": "20260101_000000_aaaaaa"}),
                ("session_export", {"session": "20260101_000000_aaaaaa", "format": "markdown"}),
            ]
            texts = [json.dumps(told(await client.call_tool(name, arguments))) for name, arguments in calls]
            texts += [str(one.title) for one in (await client.list_resources()).resources]
            (content,) = (await client.read_resource("threadline://session/20260101_000000_aaaaaa")).contents
            return "\n".join([*texts, getattr(content, "text", "")])

    assert (await everything()).count(secret) >= 6
    (home / "config.yaml").write_text("redact: export\n")
    redacted = await everything()
    assert secret not in redacted
    assert "deploy key is [redacted" in redacted
