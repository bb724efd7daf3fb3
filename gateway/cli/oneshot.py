"""One question, one answer: for scripts, pipes and the quick look.

Contract: the answer alone goes to stdout, everything else to stderr. On a terminal the answer is rendered; elsewhere it
is the Markdown as it is stored. Exit codes: 0 answered; 1 not answered (the sentence says why); 2 a slash command that
there is not; 130 stopped with Ctrl-C.
What is said is stored before it is worked, so that nothing is lost, whatever ends this.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import anyio

from gateway.cli.choosing import chosen_session
from gateway.cli.quiet import quiet_logs
from gateway.cli.running import EXIT_INTERRUPTED, EXIT_USAGE, fail
from gateway.phrases import harmless, plural
from gateway.terminal import open_terminal
from session_store import StoreError

if TYPE_CHECKING:
    import typer

    from config import Home, Settings
    from gateway.cli.options import Wanted
    from gateway.commands import Call
    from gateway.terminal import Answer, Said, Terminal

__all__ = ["one_shot"]

KEPT = "What you said is kept; `threadline -c` goes on with it."


async def one_shot(home: Home, settings: Settings, text: str, session: Wanted | None) -> None:
    """Say `text` (or work it as a slash command), print the answer, end. session: which one to take up."""
    quiet_logs()
    async with open_terminal(home, settings) as terminal:
        if session is not None:
            await _take_up(terminal, session)
        call = terminal.parse(text)
        if call is not None:
            await _command(terminal, call)
        else:
            await _message(terminal, text)


async def _take_up(terminal: Terminal, session: Wanted) -> None:
    chosen = await chosen_session(terminal, session)
    left = await terminal.open(chosen) if chosen is not None else ()
    if left:
        _note(f"Cut off earlier in this session, comes first: {plural(len(left), 'message')}.")


async def _command(terminal: Terminal, call: Call) -> None:
    known = {name for command in terminal.commands for name in (command.name, *command.aliases)}
    reply = await terminal.command(call)
    await terminal.end()
    if call.name not in known:
        raise fail(reply.text, EXIT_USAGE)
    _print(reply.text)


async def _message(terminal: Terminal, text: str) -> None:
    said = await terminal.say(text)
    try:
        answer = await _interruptible(terminal, said)
    except StoreError as error:
        raise fail(f"{error} {KEPT}") from error
    if isinstance(answer, signal.Signals):
        raise _ended_by(answer)
    if answer.problem is not None:
        raise fail(f"The message could not be worked and is kept aside: {answer.problem}")
    await terminal.conversation()
    reply = "" if answer.messages else terminal.reply(said)
    await terminal.end()
    if answer.failed:
        raise fail(harmless(answer.text) or "The agent could not answer.")
    _print(answer.text or reply)
    if reply:
        return
    if answer.stopped:
        raise fail("Stopped. What you said is kept.", EXIT_INTERRUPTED)


def _ended_by(number: signal.Signals) -> typer.Exit:
    return fail(KEPT, 128 + number)


async def _interruptible(terminal: Terminal, said: Said) -> Answer | signal.Signals:
    """The answer. The first Ctrl-C ends the turn, the second leaves at once; so does SIGTERM, given back then."""
    ended: signal.Signals | None = None
    answer: Answer | None = None
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            nonlocal ended
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    if number == signal.SIGTERM or ended is not None or not terminal.stop():
                        ended = number
                        tasks.cancel_scope.cancel()
                    ended = number

        tasks.start_soon(listen)
        answer = await terminal.answer(said, _waiting)
        tasks.cancel_scope.cancel()
    if answer is not None:
        return answer
    return ended or signal.SIGINT


def _waiting() -> None:
    _note("Another process works this conversation; your message is kept and comes next. Ctrl-C stops waiting.")


def _note(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201 - for the person, beside the answer


def _print(answer: str) -> None:
    if not answer:
        return
    if sys.stdout.isatty():
        from gateway.cli.screen import Screen  # noqa: PLC0415 - only a terminal needs the renderer

        Screen().markdown(answer)
    else:
        print(harmless(answer))  # noqa: T201 - the answer goes to stdout
