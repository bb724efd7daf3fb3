"""Gateways for tests: a real process on a home of its own, one in the test's own loop, and the command line beside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

from config import Home, load_settings
from gateway.daemon import Daemon

__all__ = [
    "Command",
    "GatewayProcess",
    "LocalGateway",
    "clean_environment",
    "eventually",
    "free_port",
    "telegram_home",
    "threadline",
]

COMMAND = [sys.executable, "-c", "from gateway.cli.main import run; run()"]
READY = b"Threadline is running."


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def telegram_home(home: Path, base_url: str, token: str, **more: Any) -> Path:
    """Write a config.yaml with one Telegram account whose owner is user 42; `more` are further settings."""
    telegram: dict[str, Any] = {"enabled": True, "token": token, "base_url": base_url}
    settings: dict[str, Any] = {
        "owner": {"telegram": ["42"]},
        "web": {"port": 0},
        "platforms": {"telegram": telegram | more.pop("telegram", {})},
    }
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text(yaml.safe_dump(settings | more), encoding="utf-8")
    return home


class GatewayProcess:
    """`threadline gateway run` on a home. patience: seconds for a start or an end. `more`: further variables."""

    def __init__(self, home: Path, *, patience: float = 30.0, **more: str) -> None:
        self._environment = clean_environment(home) | more
        self._patience = patience
        self._process: asyncio.subprocess.Process | None = None
        self.log = home / "gateway.log"
        self.address = ""

    async def start(self) -> None:
        """Begin; returns once it says that it is running and where."""
        reader = await self._begin()
        async with self._in_time():
            line = await reader.readline()
            assert line.strip() == READY, f"{line!r}: {self.logged()[-4000:]}"
            while b"Web chat:" not in line:
                line = await reader.readline()
        self.address = line.split()[-1].decode()

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    async def refused(self) -> tuple[int, str]:
        """Begin where it must not; returns its exit code and what it said."""
        reader = await self._begin()
        async with asyncio.timeout(30):
            said = await reader.read()
            code = await self._gone()
        return code, said.decode() + self.logged()

    async def dies(self) -> None:
        """Begin one that kills itself; returns when it is gone."""
        await self._begin()
        async with self._in_time():
            assert await self._gone() == -signal.SIGKILL, self.logged()[-4000:]

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        await self._gone()

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.signal(signal.SIGTERM)
        return await self._gone()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def logged(self) -> str:
        """What it has logged, in all its runs."""
        return self.log.read_text(encoding="utf-8")

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """A limit; when it is over, the process tells in its log where each of its threads is, and is ended."""
        try:
            async with asyncio.timeout(self._patience):
                yield
        except TimeoutError:
            self.signal(signal.SIGABRT)
            await self._gone()
            raise AssertionError(f"The gateway took more than {self._patience} s: {self.logged()[-8000:]}") from None

    async def _begin(self) -> asyncio.StreamReader:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND, "gateway", "run", env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        return self._process.stdout

    async def _gone(self) -> int:
        process = self._process
        assert process is not None
        async with asyncio.timeout(self._patience):
            await process.communicate()
        self._process = None
        return process.returncode or 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GatewayProcess]:
        """Started inside the context, killed at its end if the test has not ended it."""
        await self.start()
        try:
            yield self
        finally:
            if self._process is not None:
                await self.kill()


@dataclass(frozen=True, slots=True)
class Command:
    """What a call of the command line came to."""

    code: int
    out: str
    err: str


async def threadline(home: Path, *arguments: str, text: str = "") -> Command:
    """Call `threadline` on a home; `text` goes to its standard input."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        env=clean_environment(home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    return Command(process.returncode or 0, out.decode(), err.decode())


class LocalGateway:
    """A whole gateway in the test's own loop: `async with LocalGateway(home) as gateway`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.address = ""

    @property
    def base(self) -> str:
        """The address without the token."""
        return self.address.partition("/?")[0]

    async def __aenter__(self) -> Self:
        """Start; returns once the page answers."""
        settings = await asyncio.to_thread(load_settings, Home(self._home))
        answers = asyncio.Event()

        def announce(address: str) -> None:
            self.address = address
            answers.set()

        self._task = asyncio.create_task(Daemon(Home(self._home), settings).run(announce, self._stop.wait))
        waiting = asyncio.create_task(answers.wait())
        await asyncio.wait({self._task, waiting}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Drain."""
        assert self._task is not None
        self._stop.set()
        async with asyncio.timeout(30):
            await self._task

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client with the page's cookie."""
        async with httpx.AsyncClient(base_url=self.base, trust_env=False, headers={"origin": self.base}) as client:
            await client.get(self.address, follow_redirects=False)
            yield client


async def eventually(look: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Return once `look` says yes. For what nothing tells of: a log file, an answer over HTTP, another process."""
    async with asyncio.timeout(seconds):
        while not await look():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.05)


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a process of ours: this home, no settings or proxies of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
    kept = {name: value for name, value in kept.items() if not name.startswith("THREADLINE_")}
    runtime = home.parent / f"{home.name}-runtime"
    runtime.mkdir(exist_ok=True, mode=0o700)
    root = str(Path(__file__).resolve().parent.parent)
    ours = {"THREADLINE_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": root}
    return kept | ours | {"PYTHONFAULTHANDLER": "1"}
