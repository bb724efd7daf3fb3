"""A real gateway process for tests: its own home, killed or stopped as the test says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

__all__ = ["GatewayProcess", "free_port", "telegram_home"]

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
        "web": {"port": free_port()},
        "platforms": {"telegram": telegram | more.pop("telegram", {})},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(settings | more), encoding="utf-8")
    return home


class GatewayProcess:
    """`threadline gateway run` on a home."""

    def __init__(self, home: Path) -> None:
        self._environment = clean_environment(home)
        self._process: asyncio.subprocess.Process | None = None
        self.log = home / "gateway.log"

    async def start(self) -> None:
        """Begin; returns once it says that it is running."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND, "gateway", "run", env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        reader = self._process.stdout
        assert reader is not None
        async with asyncio.timeout(30):
            line = await reader.readline()
        assert line.strip() == READY, f"{line!r}: {self.log.read_text(encoding='utf-8')[-4000:]}"

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        process = self._process
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        async with asyncio.timeout(30):
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


def clean_environment(home: Path) -> Mapping[str, str]:
    """The environment of a process of ours: this home, no settings or proxies of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
    kept = {name: value for name, value in kept.items() if not name.startswith("THREADLINE_")}
    runtime = home / "runtime"
    runtime.mkdir(exist_ok=True, mode=0o700)
    root = str(Path(__file__).resolve().parent.parent)
    return kept | {"THREADLINE_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": root}
