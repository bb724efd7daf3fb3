"""Characters that break other stores: stored, found, exported, and no later turn is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from session_store import SessionDB

NULS = "\x00" * 10_000


async def test_lone_surrogates_and_nuls_lose_nothing(home: Path, elsewhere: Any) -> None:
    """Two odd turns, then three normal ones, then a reopen: all five are there, found, and valid JSON."""
    path = home / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
        for number, result in enumerate(["alpha\x00omega", f"first{NULS}last"]):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            await db.append_message("s", "user", "ok \ud83d end")
            await db.append_message("s", "assistant", None, tool_calls=[call])
            await db.append_message("s", "tool", result, tool_call_id=f"c{number}")
            await db.append_message("s", "assistant", "done")
        for number in range(3):
            await db.append_message("s", "user", f"normal {number}")
            await db.append_message("s", "assistant", f"answer {number}")
    async with SessionDB(path) as db:
        messages = await db.get_messages("s")
        asked = [message["content"] for message in messages if message["role"] == "user"]
        assert asked == ["ok \ufffd end", "ok \ufffd end", "normal 0", "normal 1", "normal 2"]
        assert [message["content"] for message in messages if message["role"] == "tool"] == [
            "alpha\x00omega",
            f"first{NULS}last",
        ]
        for word in ("alpha", "omega", "first", "last"):
            (hit,) = await db.search_messages(word)
            assert hit["role"] == "tool"
        exported = await db.export_session("s")
        assert json.loads(json.dumps(exported, ensure_ascii=False).encode("utf-8")) == exported
        conversation = await db.get_messages_as_conversation("s")
        assert [message["role"] for message in conversation].count("user") == 5
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
