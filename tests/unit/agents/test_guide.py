"""What docs/guide/agents.md shows works: the settings, the program, the further kind."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import Settings
from gateway.agents.base import Agent, Final, SummaryRequest, TextDelta, ToolCalls, ToolResult
from gateway.agents.command import CommandAgent
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.unit.agents.bench import asked, context
from tests.unit.gateway_core.hall import Hall, settings

pytestmark = pytest.mark.documents

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "agents.md"


def examples(language: str) -> list[str]:
    """The examples in a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_settings_are_valid() -> None:
    """Each example of a `config.yaml`."""
    kinds = [Settings.model_validate(yaml.safe_load(text)).agent.kind for text in examples("yaml")]
    assert kinds == ["openai", "openai", "command"]


async def test_the_program_answers(tmp_path: Path) -> None:
    """As the guide shows it, in twenty lines."""
    code = examples("python")[0]
    assert len(code.splitlines()) <= 20
    (tmp_path / "count.py").write_text(code, encoding="utf-8")
    agent = CommandAgent([sys.executable, str(tmp_path / "count.py")], 20)
    happened = [event async for event in agent.run(context("three words here", asked("two words")))]
    assert [type(event) for event in happened] == [TextDelta, ToolCalls, ToolResult, Final]
    assert happened[-1] == Final("You have said 5 words in 2 messages.")


@pytest.fixture
def librarian() -> Agent:
    """The further kind, as the guide shows it."""
    code = examples("python")[1]
    assert len(code.splitlines()) <= 30
    names: dict[str, Any] = {}
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 - our own guide
    agent: Agent = names["LibrarianAgent"]()
    return agent


@pytest.fixture
async def hall(db: SessionDB, librarian: Agent, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hall]:
    """The core of a gateway with that agent."""
    monkeypatch.setattr("gateway.workshop.make_agent", lambda _settings: librarian)
    async with Hall.open(db, librarian, settings()) as opened:  # type: ignore[arg-type]
        yield opened


async def test_the_further_kind_answers_in_a_gateway(hall: Hall, elsewhere: Elsewhere) -> None:
    """From the message to what goes out, its steps stored."""
    await hall.db.create_session("before", "cli", owner="owner")
    await hall.db.append_message("before", "user", "The key is under the mat")
    async with hall.running():
        await hall.say("key")
        (answer,) = await hall.sent(1)
    assert "under the mat" in answer
    rows = elsewhere("SELECT role FROM messages WHERE session_id <> 'before' ORDER BY id")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]


async def test_the_further_kind_sums_up(librarian: Agent) -> None:
    """Never empty, never too long."""
    assert (await librarian.summarize(SummaryRequest("s", [asked("one"), asked("two")]))).text == "one / two"
    assert (await librarian.summarize(SummaryRequest("s", []))).text


def test_every_event_of_the_protocol_is_in_the_guide() -> None:
    """With its type, as the program writes it."""
    code = (Path(__file__).parents[3] / "gateway" / "agents" / "command_protocol.py").read_text(encoding="utf-8")
    kinds = set(re.findall(r'case \{"type": "(\w+)"', code))
    assert kinds == set(re.findall(r'^\| `\{"type": "(\w+)"', GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    keys = set(re.findall(r'^        "(\w+)": ', code, flags=re.MULTILINE))
    told = GUIDE.read_text(encoding="utf-8")
    assert keys
    assert [key for key in keys if f"`{key}`" not in told] == []
