"""The agent `command`: a program of one's own, run once for each turn.

Contract: see `gateway.agents.base`, and docs/guide/agents.md for what the program reads and writes. It gets the context
as one JSON object on stdin, which is then closed. What it writes to stdout is the answer; if its first line is an event
(a JSON object with a `type`), every line is one. It is started as it is named, without a shell, in a process group of
its own, which is gone when the turn is: asked to end first, killed half a second later. What the program leaves behind
when it ends is killed as late.
Failure: an AgentError with a sentence for a program that is not there, that ends with another code than 0 (its last
line on stderr is told), that takes too long or says too much, or that writes something that is no event.
Limits: `MAX_OUTPUT` bytes on stdout; of stderr the end is kept, for the log. Summaries are made from the words of the
conversation itself. Of our environment it gets all but our own settings, which may hold secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from gateway.agents.base import AgentError, Written
from gateway.agents.command_protocol import Answer, written_context
from gateway.agents.digest import digest
from gateway.agents.quoting import inert
from gateway.phrases import one_line

if TYPE_CHECKING:
    from gateway.agents.base import AgentContext, AgentEvent, SummaryRequest

__all__ = ["MAX_OUTPUT", "CommandAgent"]

MAX_OUTPUT: Final = 4_000_000
_KEPT_OF_STDERR: Final = 16_384
_END_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.1
_CHUNK: Final = 65_536
_LINE_LENGTH: Final = 300

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class CommandAgent:
    """One program. command: it and its arguments; seconds: how long it may run."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = tuple(command)
        self._seconds = seconds
        self._name = Path(self._command[0]).name
        self.model = f"command:{self._name}"

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        answer = Answer(self._name)
        async with self._started(written_context(context)) as program:
            size = 0
            while piece := await self._in_time(program.read(), program):
                size += len(piece)
                if size > MAX_OUTPUT:
                    raise AgentError(
                        f"The program {self._named} wrote more than {MAX_OUTPUT // 1_000_000} MB and was ended. Let it "
                        "write its answer alone to stdout."
                    )
                for event in answer.take(piece):
                    yield event
            code = await self._in_time(program.code(), program)
        if code != 0:
            raise AgentError(self._failed(code, program.last_line))
        for event in answer.end():
            yield event

    async def summarize(self, request: SummaryRequest) -> Written:
        """See `gateway.agents.base.Agent`: extractive, without the program."""
        await asyncio.sleep(0)
        return Written(digest(request.history, limit=request.limit, focus=request.focus))

    @property
    def _named(self) -> str:
        return f"“{inert(one_line(self._name, 80))}”"

    def _failed(self, code: int, last_line: str) -> str:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        told = f": {inert(one_line(last_line, _LINE_LENGTH))}" if last_line else ""
        return f"The program {self._named} {how}{told}. Mend it and send your message again."

    async def _in_time(self, waiting: Coroutine[Any, Any, T], program: _Program) -> T:
        """Wait for something of the program, as long as it may run."""
        try:
            async with asyncio.timeout_at(program.deadline):
                return await waiting
        except TimeoutError as error:
            raise AgentError(
                f"The program {self._named} took longer than {self._seconds:.0f} seconds and was ended. Ask for less "
                "at once, or raise `agent.command_seconds`."
            ) from error

    @asynccontextmanager
    async def _started(self, context: bytes) -> AsyncIterator[_Program]:
        """The program, running; it and whatever it started are gone afterwards."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env=_environment(os.environ),
                cwd=Path.home(),
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise AgentError(
                f"The program {self._named} cannot be started ({reason}). Check `agent.command`: the whole path of the "
                "program, then its arguments."
            ) from error
        program = _Program(process, context, asyncio.get_running_loop().time() + self._seconds)
        try:
            yield program
        finally:
            await program.end()
            if program.said_aside:
                _log.info("command_said", command=self._name, stderr=program.said_aside)


class _Program:
    """A running program. It is given the context, and its stderr is read all the time, so that it never waits for us.

    deadline: when its time is over, by the clock of the loop.
    """

    def __init__(self, process: asyncio.subprocess.Process, context: bytes, deadline: float) -> None:
        self.deadline = deadline
        self._process = process
        self._aside = b""
        pipes = (self._feed(context), self._listen())
        self._pipes = tuple(asyncio.ensure_future(work) for work in pipes)
        self._tidying = asyncio.ensure_future(self._tidy())

    async def read(self) -> bytes:
        """What it writes next; nothing when it writes no more."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        return await self._process.stdout.read(_CHUNK)

    async def code(self) -> int:
        """Its exit code, once it has ended and said everything."""
        code = await self._process.wait()
        await asyncio.wait(self._pipes, timeout=_END_SECONDS)
        return code

    async def end(self) -> None:
        """End the whole group: its members may go on when the program itself has ended."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            await self._gone()
        self._signal(signal.SIGKILL)
        for task in (*self._pipes, self._tidying):
            task.cancel()
        await asyncio.wait((*self._pipes, self._tidying))
        await self._gone()
        # What has left the group may hold the pipes, and there is no public way to let go of them.
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await asyncio.sleep(0)

    async def _gone(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    @property
    def said_aside(self) -> str:
        """The end of what it said on stderr."""
        return self._aside.decode("utf-8", "replace").strip()

    @property
    def last_line(self) -> str:
        """The last line of that."""
        return self.said_aside.rpartition("\n")[2].strip()

    async def _feed(self, context: bytes) -> None:
        """Hand over the context; a program that does not read it is none the worse."""
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(context)
            await self._process.stdin.drain()
        self._process.stdin.close()

    async def _tidy(self) -> None:
        """What it leaves behind when it ends may not hold up the turn by holding its pipes."""
        while self._process.returncode is None:  # noqa: ASYNC110 - `wait` waits for the pipes, too
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.sleep(_END_SECONDS)
        self._signal(signal.SIGKILL)

    async def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        while piece := await self._process.stderr.read(_CHUNK):
            self._aside = (self._aside + piece)[-_KEPT_OF_STDERR:]


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in ours.items() if not name.startswith("THREADLINE_") or name.endswith("_HOME")}
