"""Which accounts this gateway serves, and the adapter of each.

SDKs are imported here, and only when their platform is enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gateway.commands import default_registry

if TYPE_CHECKING:
    from pydantic import SecretStr

    from adapters.base import Adapter
    from config import Account, Settings

__all__ = ["Served", "make_adapters", "served_accounts"]


@dataclass(frozen=True, slots=True)
class Served:
    """One enabled account: its secret, who may use it, and when it answers in groups."""

    token: str
    base_url: str
    allowed_users: frozenset[str]
    allow_all: bool
    groups: Literal["mention", "always"]
    gateway_url: str | None = None


def served_accounts(settings: Settings) -> dict[tuple[str, str], Served]:
    """The enabled accounts that this version has an adapter for, by (platform, account)."""
    telegram = {
        ("telegram", account.name): _served(account, account.token, account.base_url)
        for account in settings.platforms.telegram
        if account.enabled and account.token is not None
    }
    discord = {
        ("discord", account.name): _served(account, account.token, account.api_url, account.gateway_url)
        for account in settings.platforms.discord
        if account.enabled and account.token is not None
    }
    return telegram | discord


def _served(account: Account, token: SecretStr, base_url: str, gateway_url: str | None = None) -> Served:
    return Served(
        token=token.get_secret_value(),
        base_url=base_url,
        allowed_users=frozenset(account.allowed_users),
        allow_all=account.allow_all,
        groups=account.groups,
        gateway_url=gateway_url,
    )


def make_adapters(served: Mapping[tuple[str, str], Served]) -> dict[tuple[str, str], Adapter]:
    """One adapter per account, by (platform, account)."""
    adapters: dict[tuple[str, str], Adapter] = {}
    for (platform, account), facts in served.items():
        if platform == "telegram":
            from adapters.telegram import TelegramAdapter  # noqa: PLC0415 - heavy, and only needed when enabled

            adapters[platform, account] = TelegramAdapter(account, facts.token, facts.base_url)
        elif platform == "discord":
            adapters[platform, account] = _discord(account, facts)
    return adapters


def _discord(account: str, facts: Served) -> Adapter:
    from adapters.discord import DiscordAdapter, SlashCommand  # noqa: PLC0415 - heavy, and only needed when enabled

    commands = [
        SlashCommand(command.name, command.summary, _argument(command.usage)) for command in default_registry().commands
    ]
    return DiscordAdapter(account, facts.token, facts.base_url, facts.gateway_url, commands)


def _argument(usage: str) -> str | None:
    """What follows a command, as its usage tells: `/title [text]` takes a `text`."""
    _, _, rest = usage.partition(" ")
    return rest.strip("[]<> ") or None
