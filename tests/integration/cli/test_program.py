"""A program as the agent of the terminal: real processes on both sides."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from tests.conftest import Elsewhere
from tests.gateways import threadline

REVERSED = """
import json, sys
turn = json.load(sys.stdin)
print(json.dumps({"type": "usage", "request_id": turn["turn_id"], "input_tokens": 7, "output_tokens": 3}))
print(json.dumps({"type": "final", "text": turn["text"][::-1] + f" ({len(turn['conversation'])})"}))
"""


def configured(home: Path, code: str) -> None:
    """The agent of this home is this program."""
    agent = {"kind": "command", "command": [sys.executable, "-c", code]}
    (home / "config.yaml").write_text(yaml.safe_dump({"agent": agent}), encoding="utf-8")


async def test_a_program_answers_and_sees_the_conversation(home: Path, elsewhere: Elsewhere) -> None:
    """Its answer alone is on stdout; what it told of its cost is counted."""
    configured(home, REVERSED)
    first = await threadline(home, "chat", "-q", "abc")
    second = await threadline(home, "chat", "-c", "-q", "xyz")
    assert (first.code, first.out, first.err) == (0, "cba (1)\n", "")
    assert (second.code, second.out) == (0, "zyx (3)\n")
    assert elsewhere("SELECT input_tokens, api_call_count FROM sessions") == [{"input_tokens": 14, "api_call_count": 2}]


async def test_a_program_that_fails_is_told_and_the_message_is_kept(home: Path, elsewhere: Elsewhere) -> None:
    """Once; with the next answer it is there."""
    configured(home, "import sys; sys.exit('no room on the disk')")
    failed = await threadline(home, "chat", "-q", "abc")
    configured(home, REVERSED)
    done = await threadline(home, "chat", "-c", "-q", "xyz")
    assert failed.code == 1
    assert "ended with code 1: no room on the disk." in failed.err
    assert done.out == "zyx (3)\n"
    said = elsewhere("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
    assert [row["content"] for row in said] == ["abc", "xyz"]
