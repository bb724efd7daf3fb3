"""The accounts on chat platforms.

Contract: under a platform stands one mapping, or a list of mappings for several accounts; `Platforms` always holds a
tuple. The first account is `main`, whatever its name, so that its session keys stay when a second one is added; every
further account is known by its `name`, which it must have. No two accounts of a platform share a name or a token.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from config.sections import (
    DISCORD_IDS,
    SLACK_IDS,
    TELEGRAM_IDS,
    NumericUserIds,
    Platform,
    Secret,
    Section,
    UserIds,
    setting,
)

__all__ = ["MAIN", "Account", "DiscordAccount", "Platforms", "SlackAccount", "TelegramAccount", "rule", "spelled"]

MAIN = "main"

_AccountT = TypeVar("_AccountT", bound="Account")


def spelled(name: str) -> str:
    """A name as it is told apart from others: variable names know neither case nor `-`."""
    return name.replace("-", "_").casefold()


def rule(sentence: str) -> PydanticCustomError:
    """A broken rule; the sentence goes on after the dotted key."""
    return PydanticCustomError("rule", "{sentence}", {"sentence": sentence})


def _web_address(address: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", address):
        raise ValueError
    return address


def _socket_address(address: str | None) -> str | None:
    if address is not None and not re.fullmatch(r"wss?://[^\s/?#]+[^\s#]*", address):
        raise ValueError
    return address


_WebAddress = Annotated[str, AfterValidator(_web_address)]
_SocketAddress = Annotated[str | None, AfterValidator(_socket_address)]


class Account(Section):
    """One account of one platform."""

    _account: str = PrivateAttr(default=MAIN)

    enabled: bool = setting(False, "true or false", "Whether the gateway serves this account.")
    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")] = setting(
        None,
        "up to 32 letters, digits, `-` or `_`, beginning with a letter or digit, or null",
        "Name of the account; needed for every account after the first of a platform.",
    )

    @property
    def account(self) -> str:
        """The account in places and session keys: `main` for the first of its platform, else its name."""
        return self._account

    @property
    def secrets(self) -> tuple[SecretStr, ...]:
        """The secrets that are set."""
        values = (getattr(self, key) for key in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, SecretStr))


def _needed(secret: SecretStr | None, info: ValidationInfo, origin: str) -> SecretStr | None:
    if secret is None and info.data.get("enabled"):
        raise rule(f"is missing; an enabled account needs it ({origin})")
    return secret


class TelegramAccount(Account):
    """A Telegram bot."""

    token: Secret = setting(None, "the token of the bot, or null", "Token of the bot, from @BotFather.")
    base_url: _WebAddress = setting(
        "https://api.telegram.org/bot",
        "an http(s) address, without the token",
        "Address of the Bot API, for those who run their own server.",
    )
    allowed_users: NumericUserIds = setting(
        (), TELEGRAM_IDS, "Who is served, besides the owner, people and the paired."
    )
    allow_all: bool = setting(False, "true or false", "Serve everybody who finds the bot.")
    groups: Literal["mention", "always"] = setting(
        "mention",
        "`mention` or `always`",
        "When it answers in groups: when mentioned, replied to or commanded, or always.",
    )

    @field_validator("token")
    @classmethod
    def _token_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "@BotFather gives it")


class SlackAccount(Account):
    """A Slack app in one workspace."""

    bot_token: Secret = setting(None, "the bot token (`xoxb-...`), or null", "Bot token of the app.")
    app_token: Secret = setting(None, "the app-level token (`xapp-...`), or null", "App-level token, for Socket Mode.")
    base_url: _WebAddress = setting("https://slack.com/api/", "an http(s) address", "Address of the Web API.")
    allowed_users: UserIds = setting((), SLACK_IDS, "Who is served, besides the owner, people and the paired.")

    @field_validator("bot_token", "app_token")
    @classmethod
    def _tokens_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "the settings page of the app shows it")


class DiscordAccount(Account):
    """A Discord bot."""

    token: Secret = setting(None, "the token of the bot, or null", "Token of the bot, from the developer portal.")
    api_url: _WebAddress = setting("https://discord.com/api/v10", "an http(s) address", "Address of the REST API.")
    gateway_url: _SocketAddress = setting(
        None, "a ws(s) address, or null", "Address of the gateway; null asks the API."
    )
    allowed_users: NumericUserIds = setting((), DISCORD_IDS, "Who is served, besides the owner, people and the paired.")

    @field_validator("token")
    @classmethod
    def _token_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "the developer portal gives it")


def _as_list(value: Any) -> Any:
    if value is None:
        return ({},)
    return value if isinstance(value, list | tuple) else (value,)


def _settle(accounts: tuple[_AccountT, ...]) -> tuple[_AccountT, ...]:
    """Give each account its name in keys; refuse what would make two of them one."""
    names: set[str] = set()
    tokens: set[str] = set()
    for index, account in enumerate(accounts):
        if index:
            if account.name is None:
                raise rule(f"has a second account without a name; give account {index + 1} a `name`")
            account._account = account.name  # noqa: SLF001 - the rule needs the whole list, which no account sees
        own = {spelled(account.account), spelled(account.name or MAIN)}
        if names & own:
            raise rule(f"has two accounts named {account.name!r}; the first one is also known as {MAIN!r}")
        names |= own
        for secret in account.secrets:
            if secret.get_secret_value() in tokens:
                raise rule(f"has the same token in two places; see account {account.account!r}")
            tokens.add(secret.get_secret_value())
    return accounts


class Platforms(Section):
    """The accounts of each platform, in the order of the settings."""

    telegram: Annotated[tuple[TelegramAccount, ...], BeforeValidator(_as_list), AfterValidator(_settle)] = setting(
        ({},), "a mapping, or a list of mappings for several accounts", "Telegram bots."
    )
    slack: Annotated[tuple[SlackAccount, ...], BeforeValidator(_as_list), AfterValidator(_settle)] = setting(
        ({},), "a mapping, or a list of mappings for several accounts", "Slack apps."
    )
    discord: Annotated[tuple[DiscordAccount, ...], BeforeValidator(_as_list), AfterValidator(_settle)] = setting(
        ({},), "a mapping, or a list of mappings for several accounts", "Discord bots."
    )

    def of(self, platform: Platform) -> tuple[Account, ...]:
        """The accounts of one platform, also those that are not enabled."""
        accounts: dict[Platform, tuple[Account, ...]] = {
            "telegram": self.telegram,
            "slack": self.slack,
            "discord": self.discord,
        }
        return accounts[platform]
