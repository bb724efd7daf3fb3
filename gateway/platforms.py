"""Which adapter serves which platform. SDKs are imported here, and only when their platform is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.base import Adapter
    from config import Settings

__all__ = ["make_adapters"]


def make_adapters(settings: Settings) -> dict[tuple[str, str], Adapter]:
    """One adapter per enabled account, by (platform, account name)."""
    adapters: dict[tuple[str, str], Adapter] = {}
    telegram = [account for account in settings.platforms.telegram if account.enabled]
    if telegram:
        from adapters.telegram import TelegramAdapter  # noqa: PLC0415 - heavy, and only needed when enabled

        for account in telegram:
            adapters["telegram", account.name] = TelegramAdapter(
                account.name, account.token.get_secret_value(), account.base_url
            )
    return adapters
