"""Which accounts this gateway serves, and the adapter of each.

SDKs are imported here, and only when their platform is enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from adapters.base import Adapter
    from config import Settings

__all__ = ["Served", "make_adapters", "served_accounts"]


@dataclass(frozen=True, slots=True)
class Served:
    """One enabled account: its secret, who may use it, and when it answers in groups."""

    token: str
    base_url: str
    allowed_users: frozenset[str]
    allow_all: bool
    groups: Literal["mention", "always"]


def served_accounts(settings: Settings) -> dict[tuple[str, str], Served]:
    """The enabled accounts that this version has an adapter for, by (platform, account)."""
    return {
        ("telegram", account.name): Served(
            token=account.token.get_secret_value(),
            base_url=account.base_url,
            allowed_users=frozenset(account.allowed_users),
            allow_all=account.allow_all,
            groups=account.groups,
        )
        for account in settings.platforms.telegram
        if account.enabled and account.token is not None
    }


def make_adapters(served: Mapping[tuple[str, str], Served]) -> dict[tuple[str, str], Adapter]:
    """One adapter per account, by (platform, account)."""
    adapters: dict[tuple[str, str], Adapter] = {}
    for (platform, account), facts in served.items():
        if platform == "telegram":
            from adapters.telegram import TelegramAdapter  # noqa: PLC0415 - heavy, and only needed when enabled

            adapters[platform, account] = TelegramAdapter(account, facts.token, facts.base_url)
    return adapters
