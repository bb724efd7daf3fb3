"""The agent `command`: real programs, what they read, what they write, how they end."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

from gateway.agents.base import (
    AgentContext,
    AgentError,
    AgentEvent,
    AttachedFile,
    Final,
    SummaryRequest,
    TextDelta,
    ToolCalls,
    ToolResult,
    Usage,
)
from gateway.agents.command import CommandAgent
from tests.unit.agents.bench import asked, context


async def ran(code: str, seen: AgentContext | None = None, *, seconds: float = 20) -> list[AgentEvent]:
    """The events of a turn of this Python program."""
    agent = CommandAgent([sys.executable, "-c", code], seconds)
    return [event async for event in agent.run(seen or context())]


async def refused(code: str, *, seconds: float = 20) -> str:
    """What the person is told of this program."""
    with pytest.raises(AgentError) as told:
        await ran(code, seconds=seconds)
    return str(told.value)


async def test_plain_text_is_the_answer() -> None:
    """As it comes, whole at the end, in any script, however the bytes are cut."""
    code = "import sys, os\nfor byte in 'Gr\\u00fc\\u00dfe 你好 {not json}\\n'.encode(): os.write(1, bytes([byte]))"
    happened = await ran(code)
    assert happened[-1] == Final("Grüße 你好 {not json}")
    assert "".join(event.text for event in happened if isinstance(event, TextDelta)) == "Grüße 你好 {not json}\n"


async def test_the_program_reads_the_context() -> None:
    """One JSON object, then the end of the input; files by their paths."""
    code = "import json, sys; print(json.dumps({'type': 'final', 'text': sys.stdin.read()}))"
    files = [AttachedFile(Path("/tmp/x"), "a.txt", "text/plain", 3)]  # noqa: S108 - a name, no file
    seen = context("Wie geht es?", asked("before"), system_prompt="p", timezone="Europe/Berlin", attachments=files)
    final = (await ran(code, seen))[-1]
    assert isinstance(final, Final)
    assert json.loads(final.text) == {
        "protocol": 1,
        "session_id": "s",
        "turn_id": "t",
        "text": "Wie geht es?",
        "conversation": [asked("before"), asked("Wie geht es?")],
        "system_prompt": "p",
        "attachments": [{"path": "/tmp/x", "name": "a.txt", "media_type": "text/plain", "size": 3}],  # noqa: S108
        "now": 1_764_400_000.0,
        "timezone": "Europe/Berlin",
    }


async def test_events_are_told_one_per_line() -> None:
    """Text, what it did itself, what it cost, the answer."""
    lines = [
        {"type": "text", "text": "Let me see. "},
        {"type": "usage", "request_id": "r1", "model": "m", "input_tokens": 7, "output_tokens": 3},
        {"type": "tool", "id": "c1", "name": "weather", "arguments": {"city": "Köln"}, "result": "rain"},
        {"type": "text", "text": "It rains."},
        {"type": "final", "text": "It **rains**."},
    ]
    happened = await ran(f"import json\nfor line in {lines!r}: print(json.dumps(line), flush=True)")
    function = {"name": "weather", "arguments": '{"city": "Köln"}'}
    assert happened == [
        TextDelta("Let me see. "),
        Usage("r1", "m", 7, 3, provider="command"),
        ToolCalls([{"id": "c1", "type": "function", "function": function}], "Let me see."),
        ToolResult("c1", "weather", "rain"),
        TextDelta("It rains."),
        Final("It **rains**."),
    ]


async def test_without_a_final_event_the_texts_are_the_answer() -> None:
    """Ids and models that are not told are made up."""
    lines = [{"type": "usage"}, {"type": "tool", "name": "x", "result": "y"}, {"type": "text", "text": "So."}]
    events = await ran(f"import json\nfor line in {lines!r}: print(json.dumps(line))")
    assert events[-1] == Final("So.")
    usage = events[0]
    assert isinstance(usage, Usage)
    assert usage.request_id.startswith("command#")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import sys; print('x'); print('no\\nroom left', file=sys.stderr); sys.exit(3)",
            "ended with code 3: room left",
        ),
        ("raise SystemExit(2)", "ended with code 2."),
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("pass", "gave no answer"),
        ("print('  ')", "gave no answer"),
        ("""print('{"type": "text", "text": "a"}\\nnonsense')""", "no event: nonsense"),
        ("""print('{"type": "dance"}')""", "no event:"),
        ("""print('{"type": "final"}')""", "no event:"),
        ("""print('{"type": "error", "text": "The disk is full. Make room."}')""", "The disk is full. Make room."),
        ("import sys\nwhile True: sys.stdout.write('x' * 100000)", "wrote more than 4 MB"),
    ],
)
async def test_what_goes_wrong_is_a_sentence(code: str, words: str) -> None:
    """With the program's own last word where it has one."""
    assert words in await refused(code)


async def test_a_program_that_is_not_there_is_told() -> None:
    """With where to mend it."""
    agent = CommandAgent(["/no/such/program", "--now"], 5)
    with pytest.raises(AgentError, match=r"“program” cannot be started .*`agent\.command`"):
        [event async for event in agent.run(context())]


async def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """Also one that does not want to, and what it started in the background."""
    pids = tmp_path / "pids"
    code = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal as s, time; s.signal(15, s.SIG_IGN); time.sleep(60)"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""
    assert "took longer than 2 seconds and was ended" in await refused(code, seconds=2)
    for pid in pids.read_text().split():
        await gone(int(pid))


async def test_a_program_that_ends_and_leaves_something_behind_does_not_hold_up_the_turn(tmp_path: Path) -> None:
    """It holds the output open, and is ended, too."""
    pid = tmp_path / "pid"
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(pid)!r}, "w").write(str(child.pid))
print("done")
"""
    assert (await ran(code))[-1] == Final("done")
    await gone(int(pid.read_text()))


async def test_what_leaves_the_group_holds_up_nothing_but_its_turn(tmp_path: Path) -> None:
    """It keeps the output open; when the time is over the turn ends without it."""
    pid = tmp_path / "pid"
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
open({str(pid)!r}, "w").write(str(child.pid))
"""
    try:
        assert "took longer than 3 seconds" in await refused(code, seconds=3)
    finally:
        os.kill(int(pid.read_text()), 9)


async def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    """At once."""
    pid = tmp_path / "pid"
    code = (
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); print('begun', flush=True); time.sleep(60)"
    )
    begun = asyncio.Event()

    async def work() -> None:
        async for _ in CommandAgent([sys.executable, "-c", code], 60).run(context()):
            begun.set()

    task = asyncio.create_task(work())
    async with asyncio.timeout(20):
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    await gone(int(pid.read_text()))


async def test_a_program_that_reads_nothing_and_says_much_aside_does_not_hang() -> None:
    """A context that no pipe holds, and a full pipe of complaints; the end of them is in the log."""
    seen = context("x" * 1_000_000)
    with structlog.testing.capture_logs() as logged:
        happened = await ran("import sys; sys.stderr.write('complaint\\n' * 100000); print('fine')", seen)
    assert happened[-1] == Final("fine")
    (entry,) = [entry for entry in logged if entry["event"] == "command_said"]
    assert entry["stderr"].endswith("complaint")
    assert len(entry["stderr"]) <= 16_384


async def test_the_program_gets_no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may hold secrets; where the home is, it may know."""
    monkeypatch.setenv("THREADLINE_PLATFORMS__TELEGRAM__TOKEN", "secret")
    monkeypatch.setenv("THREADLINE_HOME", "/home/x")
    final = (await ran("import os; print(sorted(name for name in os.environ if 'THREADLINE' in name))"))[-1]
    assert final == Final("['THREADLINE_HOME']")


async def test_a_summary_is_made_from_the_words_themselves() -> None:
    """The program is not run."""
    history: list[dict[str, Any]] = [asked("Where is the key?"), {"role": "assistant", "content": "Under the mat."}]
    written = await CommandAgent(["/no/such/program"], 5).summarize(SummaryRequest("s", history))
    assert "Where is the key?" in written.text
    assert written.usage == ()


async def gone(pid: int) -> None:
    """Return when a process does not run any more."""
    async with asyncio.timeout(10):
        while alive(pid):  # noqa: ASYNC110 - nothing tells of a process that is not our child
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that waits for its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
