"""A mailbox behind OAuth 2: real servers that check tokens, and a command that prints them."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from adapters.base import AdapterState, OutboundPart, Place, RetryLater, StartError
from adapters.email import EmailAdapter
from tests.servers.dovecot import Dovecot, missing
from tests.servers.letters import letter
from tests.servers.mailbox import Box, Gateway
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

ANN = Place("email", "main", "dm", "ann@example.org", "first@x", "Hello")
#: Dovecot asks who a token belongs to, as it would ask a provider.
ASKS = """
auth_mechanisms = plain xoauth2
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {settings}
}}
"""


class Provider:
    """Knows which tokens are good, and whose they are."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.url = ""

    async def serve(self, request: web.Request) -> web.Response:
        """Say whose a token is."""
        user = self.tokens.get(request.query["access_token"])
        return web.json_response({"username": user, "active": True} if user else {"error": "invalid_token"})


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A provider on a port of its own."""
    known = Provider()
    application = web.Application()
    application.router.add_get("/tokeninfo", known.serve)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    known.url = f"http://127.0.0.1:{runner.addresses[0][1]}/tokeninfo?access_token="
    yield known
    await runner.cleanup()


@pytest.fixture
async def dovecot(provider: Provider, tmp_path: Path) -> AsyncIterator[Dovecot]:
    """An IMAP server that takes the provider's tokens."""
    settings = tmp_path / "oauth2.conf"
    settings.write_text(f"tokeninfo_url = {provider.url}\nusername_attribute = username\n", encoding="utf-8")
    # The server's processes read it as a user of their own.
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o055)
    server = Dovecot(ASKS.format(settings=settings))
    await asyncio.to_thread(server.__enter__)
    yield server
    await asyncio.to_thread(server.__exit__, None, None, None)


def with_tokens(dovecot: Dovecot, smtp: MailServer, tmp_path: Path) -> tuple[Box, Path]:
    """A mailbox whose tokens are what a file holds."""
    token = tmp_path / "token"
    command = (sys.executable, "-c", f"print(open({str(token)!r}).read())")
    return Box(dovecot, smtp, password="", token_command=command), token


async def test_a_mailbox_is_read_and_written_with_tokens(provider: Provider, dovecot: Dovecot, tmp_path: Path) -> None:
    """A fresh one is asked for whenever there is a connection to make."""
    tokens: dict[str, str] = {}
    gateway = Gateway()
    async with MailServer(tokens=tokens) as smtp:
        box, file = with_tokens(dovecot, smtp, tmp_path)
        adapter = EmailAdapter("main", box.account)
        for number, token in enumerate(("first", "second"), 1):
            file.write_text(token)
            provider.tokens = {token: box.user}
            tokens[box.user] = token
            await box.put(letter(f"hello {number}"))
            await adapter.start(gateway.deliver)
            await gateway.until(lambda: len(gateway.taken) == number)  # noqa: B023  (waited for at once)
            await adapter.send(ANN, OutboundPart("hi"))
            assert adapter.state is AdapterState.CONNECTED
            await adapter.stop()

    assert gateway.texts == ["hello 1", "hello 2"]
    assert len(smtp.accepted) == 2


async def test_a_token_that_is_refused_is_told_in_a_sentence(
    provider: Provider, dovecot: Dovecot, tmp_path: Path
) -> None:
    """By either server, with what to look at, and without the token."""
    gateway = Gateway()
    async with MailServer(tokens={}) as smtp:
        box, file = with_tokens(dovecot, smtp, tmp_path)
        file.write_text("stale")
        with pytest.raises(StartError, match=r"refused the access token of agent@.* token_command") as imap:
            await EmailAdapter("main", box.account).start(gateway.deliver)
        provider.tokens = {"stale": box.user}
        with pytest.raises(StartError, match=r"refused the access token of agent@.* token_command") as sent:
            await EmailAdapter("main", box.account).start(gateway.deliver)

    assert "stale" not in f"{imap.value} {sent.value}"


async def test_without_a_token_the_account_waits(provider: Provider, dovecot: Dovecot, tmp_path: Path) -> None:
    """What must go out stays; the state says why. A command that is not there is told at the start."""
    gateway = Gateway()
    async with MailServer(tokens={}) as smtp:
        box, file = with_tokens(dovecot, smtp, tmp_path)
        adapter = EmailAdapter("main", box.account)
        await adapter.start(gateway.deliver)
        assert (adapter.state, "token_command failed" in (adapter.problem or "")) == (AdapterState.RETRYING, True)
        with pytest.raises(RetryLater, match="token_command failed") as caught:
            await adapter.send(ANN, OutboundPart("hi"))
        await adapter.stop()
        lost = dataclasses.replace(box.account, token_command=(str(file),))
        with pytest.raises(StartError, match="cannot be run"):
            await EmailAdapter("main", lost).start(gateway.deliver)

    assert caught.value.whole_account
    assert not provider.tokens
