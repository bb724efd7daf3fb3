"""Taking a session up again: after a good end, after a kill, while others work in it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.gateways import LocalGateway, free_port
from tests.terminals import SLOW_COMMAND, at_a_terminal, environment, eventually, threadline

PROMPT = "\n>"
#: A terminal that accepts a message for a new session and dies before it can begin with it.
ACCEPT_AND_DIE = """
import asyncio, os, sys, time
from gateway.places import TERMINAL, place_ref
from session_store import NewInbox, SessionDB

async def main():
    async with SessionDB(sys.argv[1]) as db:
        holder = await db.processes.register("terminal")
        sender = {"user_id": None, "name": "", "realm": "", "is_bot": False}
        await db.inbox.accept(NewInbox(
            place=place_ref(TERMINAL), dedupe_key="m:1", kind="message", lane="session:20261129_120000_abcdef",
            received_at=time.time(), payload={"text": sys.argv[2], "message_id": "1"}, sender=sender,
            session_id="20261129_120000_abcdef", person_id="owner", holder=holder))
        os._exit(0)

asyncio.run(main())
"""


def test_continue_shows_where_one_was(home: Path) -> None:
    """Full: the last exchanges in short, the last answer whole, tool calls folded, and what came before counted."""

    async def fill() -> None:
        async with SessionDB(home / "state.db") as db:
            await db.create_session("20261129_120000_abcdef", "cli", owner="owner")
            for number in range(11):
                await db.append_message("20261129_120000_abcdef", "user", f"fact {number} about deployment")
                await db.append_message("20261129_120000_abcdef", "assistant", f"Kept: fact {number}")

    asyncio.run(fill())
    assert threadline(home, "chat", "-c", "-q", "what about deployment?").returncode == 0

    with at_a_terminal(home, "-c") as person:
        shown = person.sees(PROMPT)

        assert "26 messages, the last one " in shown
        assert "... 4 earlier messages" in shown
        assert "> fact 1 about" not in shown
        assert "> fact 2 about deployment" in shown
        assert "[1 tool call: session_search]" in shown
        assert "▌ fact 10 about deployment" in shown
        person.press("up")
        person.sees("> what about deployment?")


def test_minimal_shows_one_line(home: Path) -> None:
    """As the setting says."""
    (home / "config.yaml").write_text("display: {resume_display: minimal}\n", encoding="utf-8")
    threadline(home, "chat", "-q", "only one")

    with at_a_terminal(home, "--continue") as person:
        shown = person.sees(PROMPT)

        assert "Going on with “only one”: 2 messages, the last one " in shown
        assert "> only one" not in shown


def test_continue_without_a_session_begins_one(home: Path) -> None:
    """And says so."""
    with at_a_terminal(home, "-c") as person:
        person.sees("There is no earlier session in the terminal", PROMPT)
        person.enter("the first thing")
        person.sees("Kept: the first thing")


def test_a_killed_terminal_is_taken_up_with_everything_that_was_sent(home: Path, elsewhere: Elsewhere) -> None:
    """The turn that ran is run again, the message that waited follows; each is stored and answered once."""
    with at_a_terminal(home, command=SLOW_COMMAND) as person:
        person.sees(PROMPT)
        person.enter("in the middle")
        person.sees("thinking about in the middle")
        person.enter("not begun")
        person.sees("> not begun (waits)")
        eventually(lambda: len(elsewhere("SELECT id FROM inbox")) == 2, "both messages are in the inbox")
        person.kill()
    (home / "gate").touch()

    with at_a_terminal(home, "-c", command=SLOW_COMMAND) as person:
        person.sees("Taking up what was cut off: 2 messages.", "answer to in the middle", "answer to not begun")

    rows = elsewhere("SELECT content FROM messages WHERE role = 'user' OR finish_reason = 'stop' ORDER BY id")
    assert [row["content"] for row in rows] == [
        "in the middle",
        "answer to in the middle",
        "not begun",
        "answer to not begun",
    ]


def test_what_a_killed_terminal_had_accepted_for_a_new_session_is_taken_up(home: Path) -> None:
    """There is no session yet, and an older one has been used before: the newer words win."""
    threadline(home, "chat", "-q", "an older session")
    subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", ACCEPT_AND_DIE, str(home / "state.db"), "typed and not begun"],
        env=environment(home),
        check=True,
        timeout=60,
    )

    with at_a_terminal(home, "-c") as person:
        person.sees("Taking up what was cut off: 1 message.", "> typed and not begun", "Kept: typed and not begun")


def test_two_terminals_in_one_session_wait_for_each_other(home: Path) -> None:
    """The second one says so; both show the whole conversation."""
    with at_a_terminal(home, command=SLOW_COMMAND) as first:
        first.sees(PROMPT)
        first.enter("from the first")
        first.sees("thinking about from the first")
        with at_a_terminal(home, "-c", command=SLOW_COMMAND) as second:
            second.sees(PROMPT)
            second.enter("from the second")
            second.sees("Another process works this conversation; your message is kept and comes next.")

            (home / "gate").touch()

            for person in (first, second):
                shown = person.sees("answer to from the second")
                assert shown.index("answer to from the first") < shown.index("> from the second")


def test_ctrl_c_does_not_stop_the_turn_of_another_process(home: Path) -> None:
    """It says how; /stop does it, in whatever process the turn runs."""
    with at_a_terminal(home, command=SLOW_COMMAND) as first:
        first.sees(PROMPT)
        first.enter("from the first")
        first.sees("thinking about from the first")
        with at_a_terminal(home, "-c", command=SLOW_COMMAND) as second:
            second.sees(PROMPT, "… (made by another process; /stop ends it)")
            second.press("ctrl-c")
            second.sees("The answer is made by another process: /stop ends it, Ctrl-C again leaves.")
            second.enter("/stop")
            second.sees("Stopping the running turn.", "Stopped.")
        first.sees("Stopped. What was said so far is kept.")


async def test_works_beside_a_gateway_and_shows_what_is_said_on_the_page(home: Path, elsewhere: Elsewhere) -> None:
    """Both write to one store; in the same session each entrance sees the words of the other, with its name."""
    (home / "config.yaml").write_text(f"web: {{port: {free_port()}}}\n", encoding="utf-8")
    async with LocalGateway(home) as gateway, gateway.browser() as page:
        with at_a_terminal(home) as person:
            await asyncio.to_thread(person.sees, PROMPT)
            await asyncio.to_thread(person.enter, "said in the terminal")
            await asyncio.to_thread(person.sees, "Kept: said in the terminal")
            (session,) = elsewhere("SELECT id FROM sessions")
            body = {"text": "said on the page", "client_id": "client-00000001", "session_id": session["id"]}

            assert (await page.post("/api/messages", json=body)).status_code == 202

            shown = await asyncio.to_thread(person.sees, "> said on the page\n  (web)\nKept: said on the page")
            assert shown.count("Kept: said in the terminal") == 1
            await asyncio.to_thread(person.enter, "/status")
            await asyncio.to_thread(person.sees, "A gateway is running")
            assert await asyncio.to_thread(person.leave) == 0
