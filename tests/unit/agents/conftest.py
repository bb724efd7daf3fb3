"""A server to ask."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.servers.openai_server import OpenAIServer


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    """The server, reached without whatever proxy this machine has."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    async with OpenAIServer() as opened:
        yield opened
