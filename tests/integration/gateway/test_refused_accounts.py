"""Accounts that cannot work as they are set: one sentence each, in the status and the log, and the others serve on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.emulators.discord import DiscordEmulator
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, eventually, threadline
from tests.servers.scripted_imap import Script, serving
from tests.servers.smtp import MailServer

SECRETS = ("wrong-telegram", "xoxb-wrong", "xapp-wrong", "wrong-discord", "wrong-horse")


class Town:
    """Four platforms, and what a gateway is told of them."""

    def __init__(self) -> None:
        self.telegram, self.slack, self.discord = TelegramEmulator(), SlackEmulator(), DiscordEmulator()
        self.smtp = MailServer(logins={"agent": "correct-horse"})
        self.imap_port = 0

    def settings(self, **wrong: dict[str, Any]) -> dict[str, Any]:
        """Settings in which everything is right but for `wrong`, by platform."""
        mailbox = {
            "address": "agent@example.org",
            "username": "agent",
            "password": "correct-horse",
            "imap_host": "127.0.0.1",
            "imap_port": self.imap_port,
            "imap_tls": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.smtp.port,
            "smtp_tls": "none",
            "trust_from": True,
        }
        accounts: dict[str, dict[str, Any]] = {
            "telegram": {"token": self.telegram.token, "base_url": self.telegram.base_url},
            "slack": {
                "bot_token": self.slack.bot_token,
                "app_token": self.slack.app_token,
                "base_url": self.slack.base_url,
            },
            "discord": {
                "token": self.discord.token,
                "api_url": self.discord.api_url,
                "gateway_url": self.discord.gateway_url,
            },
            "email": mailbox,
        }
        platforms = {name: {"enabled": True, **facts, **wrong.get(name, {})} for name, facts in accounts.items()}
        return {"owner": {"telegram": ["42"]}, "web": {"port": 0}, "platforms": platforms}


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    """All of them; the mailbox lets in who knows the password."""
    made = Town()
    script = Script(answers={"LOGIN": b"{tag} NO [AUTHENTICATIONFAILED] Authentication failed.\r\n"})
    async with AsyncExitStack() as stack:
        for server in (made.telegram, made.slack, made.discord, made.smtp):
            await stack.enter_async_context(server)
        made.imap_port = (await stack.enter_async_context(serving(script))).port
        yield made


async def told(home: Path, gateway: GatewayProcess, sentences: dict[str, str]) -> None:
    """Return once the status holds each sentence behind its account; the log holds them too, and neither a secret."""

    async def shown() -> bool:
        status = await threadline(home, "gateway", "status")
        assert not any(secret in status.out for secret in SECRETS)
        return all(f"{account}/main: failed: {sentence}" in status.out for account, sentence in sentences.items())

    await eventually(shown, 30)
    log = gateway.logged()
    for account, sentence in sentences.items():
        lines = [line for line in log.splitlines() if sentence in line]
        assert [line for line in lines if "account_failed" in line and f"{account}/main" in line], (account, log)
    assert not any(secret in log for secret in SECRETS)
    assert "Traceback" not in log


async def test_wrong_tokens_on_every_platform_are_one_sentence_each(home: Path, town: Town) -> None:
    """With what to change and where; the page serves on."""
    wrong = {
        "telegram": {"token": "999:wrong-telegram"},
        "slack": {"bot_token": "xoxb-wrong", "app_token": "xapp-wrong"},
        "discord": {"token": "wrong-discord"},
        "email": {"password": "wrong-horse"},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(town.settings(**wrong)), encoding="utf-8")
    gateway = GatewayProcess(home)
    async with gateway.running():
        await told(
            home,
            gateway,
            {
                "telegram": "Telegram refused the token",
                "slack": "Slack refused the bot_token of account 'main' (invalid_auth): put a valid one into platforms",
                "discord": "Account 'main': Discord refuses the bot's token: check platforms.discord.token",
                "email": "The mail server 127.0.0.1 refused the user name or password of agent@example.org "
                "(Authentication failed); check both under platforms.email.",
            },
        )
        answer = await threadline(home, "chat", "-q", "The key is under the mat")
        assert "under the mat" in answer.out
        assert await gateway.stop() == 0


async def test_missing_rights_are_one_sentence_each_and_the_other_platforms_answer(home: Path, town: Town) -> None:
    """Scopes of Slack, intents of Discord: what to switch on, and where."""
    town.slack.workspace.scopes = "im:history"
    town.discord.bots[town.discord.token].content = False
    (home / "config.yaml").write_text(yaml.safe_dump(town.settings(email={"enabled": False})), encoding="utf-8")
    gateway = GatewayProcess(home)
    async with gateway.running():
        await told(
            home,
            gateway,
            {
                "slack": "The Slack app of account 'main' lacks the bot scope chat:write: add it under OAuth",
                "discord": "Account 'main': Discord does not let the bot read messages: switch on Message Content",
            },
        )
        town.telegram.say("The key is under the mat")
        await town.telegram.until(lambda: town.telegram.sent, 20)
        assert await gateway.stop() == 0
