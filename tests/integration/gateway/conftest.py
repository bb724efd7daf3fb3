"""The emulated platform and a gateway's home that knows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.emulators.telegram import TelegramEmulator
from tests.gateways import telegram_home
from tests.unit.gateway_core.conftest import logged

__all__ = ["configured", "logged", "telegram"]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramEmulator]:
    """An emulated Bot API server."""
    async with TelegramEmulator() as emulator:
        yield emulator


@pytest.fixture
def configured(home: Path, telegram: TelegramEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one Telegram account at the emulator; locks of accounts are the test's own."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return telegram_home(home, telegram.base_url, telegram.token)
