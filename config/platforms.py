"""The accounts on chat platforms.

Contract: under a platform stands one mapping, or a list of mappings for several accounts; `Platforms` always holds a
tuple. The first account is `main`, whatever its name, so that its session keys stay when a second one is added; every
further account is known by its `name`, which it must have. No two accounts of a platform share a name or a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from config.sections import (
    DISCORD_IDS,
    MAIL_ADDRESSES,
    SLACK_IDS,
    TELEGRAM_IDS,
    MailAddress,
    MailAddresses,
    Number,
    NumericUserIds,
    Password,
    Platform,
    Secret,
    Section,
    UserIds,
    rule,
    setting,
)

__all__ = [
    "MAIN",
    "Account",
    "ChatAccount",
    "DiscordAccount",
    "EmailAccount",
    "Platforms",
    "SlackAccount",
    "TelegramAccount",
    "spelled",
]

MAIN = "main"

_ALLOWED = "Who is served, besides the owner, people and the paired."

ChatId = Annotated[str, Field(pattern=r"^[^\s]{1,128}$")]

_AccountT = TypeVar("_AccountT", bound="Account")
_ValueT = TypeVar("_ValueT")


def spelled(name: str) -> str:
    """A name as it is told apart from others: variable names know neither case nor `-`."""
    return name.replace("-", "_").casefold()


def _web_address(address: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", address) or re.search(r"/bot\d", address):
        raise ValueError
    return address


def _socket_address(address: str | None) -> str | None:
    if address is not None and not re.fullmatch(r"wss?://[^\s/?#@]+([/?][^\s#]*)?", address):
        raise ValueError
    return address


_WebAddress = Annotated[str, AfterValidator(_web_address)]
_SocketAddress = Annotated[str | None, AfterValidator(_socket_address)]


class Chat(Section):
    """One chat of an account."""

    groups: Literal["mention", "always"] | None = setting(
        None, "`mention`, `always` or null", "When it answers in this chat; null: as the account says."
    )


def _none_is_none(value: Any) -> Any:
    """A key with nothing behind it is an empty mapping; chat ids may stand in YAML as numbers."""
    if not isinstance(value, dict):
        return {} if value is None else value
    return {str(chat) if isinstance(chat, int) else chat: facts for chat, facts in value.items()}


class Account(Section):
    """One account of one platform. Its `name` is the account in places and session keys."""

    #: What names the account to its platform: a secret, or an address.
    identified_by: ClassVar[str] = "token"

    enabled: bool = setting(False, "true or false", "Whether the gateway serves this account.")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")] = setting(
        MAIN,
        "up to 32 letters, digits, `-` or `_`, beginning with a letter or digit",
        "Name of the account, needed for every account after the first. The first one is `main`, whatever its name.",
    )
    allowed_users: UserIds = setting((), "a list of user ids", _ALLOWED)
    allow_all: bool = setting(False, "true or false", "Serve everybody who finds the account.")


class ChatAccount(Account):
    """An account where people meet in groups, and bots among them."""

    groups: Literal["mention", "always"] = setting(
        "mention",
        "`mention` or `always`",
        "When it answers in groups: when mentioned, replied to or commanded, or always.",
    )
    chats: Annotated[dict[ChatId, Chat], BeforeValidator(_none_is_none)] = setting(
        {},
        'a mapping of chat ids to their settings, for example {"-1001": {groups: always}}',
        "Chats that differ from the account.",
    )
    allowed_bots: UserIds = setting(
        (),
        "a list of user ids",
        "Bots that are heard. They never speak long with each other: three messages in a row, twenty an hour and chat.",
    )


def _needed(value: _ValueT, info: ValidationInfo, origin: str) -> _ValueT:
    if value is None and info.data.get("enabled"):
        raise rule(f"is missing; an enabled account needs it ({origin})")
    return value


class TelegramAccount(ChatAccount):
    """A Telegram bot."""

    token: Secret = setting(None, "the token of the bot, or null", "Token of the bot, from @BotFather.")
    base_url: _WebAddress = setting(
        "https://api.telegram.org/bot",
        "an http(s) address, without the token",
        "Address of the Bot API, for those who run their own server.",
    )
    allowed_users: NumericUserIds = setting((), TELEGRAM_IDS, _ALLOWED)

    @field_validator("token")
    @classmethod
    def _token_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "@BotFather gives it")


class SlackAccount(ChatAccount):
    """A Slack app in one workspace."""

    identified_by: ClassVar[str] = "bot_token"

    bot_token: Secret = setting(None, "the bot token (`xoxb-...`), or null", "Bot token of the app.")
    app_token: Secret = setting(None, "the app-level token (`xapp-...`), or null", "App-level token, for Socket Mode.")
    base_url: _WebAddress = setting("https://slack.com/api/", "an http(s) address", "Address of the Web API.")
    reply_in_thread: bool = setting(
        True, "true or false", "Answer a post in a channel in the thread that it begins; each is a conversation then."
    )
    dm_threads: bool = setting(
        False,
        "true or false",
        "Let threads in direct messages be conversations of their own; Slack's assistant threads always are.",
    )
    allowed_users: UserIds = setting((), SLACK_IDS, _ALLOWED)

    @field_validator("bot_token", "app_token")
    @classmethod
    def _tokens_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "the settings page of the app shows it")


class DiscordAccount(ChatAccount):
    """A Discord bot."""

    token: Secret = setting(None, "the token of the bot, or null", "Token of the bot, from the developer portal.")
    api_url: _WebAddress = setting("https://discord.com/api/v10", "an http(s) address", "Address of the REST API.")
    gateway_url: _SocketAddress = setting(
        None, "a ws(s) address, or null", "Address of the gateway; null asks the API."
    )
    allowed_users: NumericUserIds = setting((), DISCORD_IDS, _ALLOWED)

    @field_validator("token")
    @classmethod
    def _token_if_enabled(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return _needed(token, info, "the developer portal gives it")


_HostName = Annotated[str | None, Field(pattern=r"^[A-Za-z0-9.:_-]+$", max_length=253)]
_Port = Annotated[Number, Field(ge=1, le=65535)]
_Tls = Literal["tls", "starttls", "none"]
_CommandLine = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=100)]
_PORT = "a whole number from 1 to 65535"
_TLS = "`tls`, `starttls` or `none`"


class EmailAccount(Account):
    """A mailbox that belongs to the gateway."""

    identified_by: ClassVar[str] = "address"

    address: MailAddress | None = setting(None, "a mail address, or null", "The address of the mailbox.")
    username: Annotated[str | None, Field(min_length=1, max_length=254)] = setting(
        None, "a name, or null", "The name to log in with; null is the address."
    )
    token_command: _CommandLine = setting(
        (),
        'a list of a program and its arguments, for example ["oama", "access", "me@example.org"]',
        "A command that prints an access token, instead of a password, for providers that want OAuth 2.",
    )
    password: Password = setting(
        None, "a password, or null", "The password of the mailbox; many providers want one made for this program."
    )
    imap_host: _HostName = setting(None, "a host name, or null", "The server that mail is read from.")
    imap_port: _Port = setting(993, _PORT, "The port of `imap_host`.")
    imap_tls: _Tls = setting(
        "tls", _TLS, "The encryption of `imap_host`: from the first byte, by STARTTLS, or none at all."
    )
    smtp_host: _HostName = setting(None, "a host name, or null", "The server that mail is sent through.")
    smtp_port: _Port = setting(465, _PORT, "The port of `smtp_host`.")
    smtp_tls: _Tls = setting(
        "tls", _TLS, "The encryption of `smtp_host`: from the first byte, by STARTTLS, or none at all."
    )
    folder: Annotated[str, Field(min_length=1, max_length=200)] = setting(
        "INBOX", "the name of a folder", "The folder whose mails are for the gateway."
    )
    allowed_users: MailAddresses = setting((), MAIL_ADDRESSES, _ALLOWED)
    authserv_id: Annotated[str | None, Field(pattern=r"^[^\s;]+$", max_length=253)] = setting(
        None,
        "a name, or null",
        "The name with which your receiving server begins its `Authentication-Results` headers; only authors that it "
        "vouches for are served.",
    )
    trust_from: bool = setting(
        False,
        "true or false",
        "Believe every `From` as it stands. Only for servers to which nobody else can send mail.",
    )

    @field_validator("address", "imap_host", "smtp_host")
    @classmethod
    def _facts_if_enabled(cls, value: Any, info: ValidationInfo) -> Any:
        return _needed(value, info, "your mail provider tells it")

    @field_validator("password")
    @classmethod
    def _one_secret(cls, password: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if not info.data.get("token_command"):
            return _needed(password, info, "your mail provider tells it; or set token_command")
        if password is not None:
            raise rule("is set beside token_command; an account has only one of them")
        return None

    @field_validator("trust_from")
    @classmethod
    def _some_proof(cls, trust: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - the signature is the library's
        if info.data.get("enabled") and not trust and info.data.get("authserv_id", "") is None:
            raise rule(
                "is false and authserv_id is missing; an enabled account needs one of them, or anybody could write in "
                "another's name"
            )
        return trust


def _as_list(value: Any) -> Any:
    if value is None:
        return ({},)
    return value if isinstance(value, list | tuple) else (value,)


def _settle(accounts: tuple[_AccountT, ...]) -> tuple[_AccountT, ...]:
    """Make the first account `main`; refuse what would make two accounts one."""
    names: set[str] = {spelled(MAIN), *(spelled(account.name) for account in accounts[:1])}
    known: set[object] = set()
    for index, account in enumerate(accounts):
        if index:
            if spelled(account.name) in names:
                raise rule(f"has account {index + 1} without a name of its own; the first one is always {MAIN!r}")
            names.add(spelled(account.name))
        identity: object | None = getattr(account, account.identified_by)
        if identity is not None:
            if identity in known:
                what = "an address" if account.identified_by == "address" else "a token"
                raise rule(f"has {what} twice; account {index + 1} ({account.name}) needs its own")
            known.add(identity)
    return tuple(account.model_copy(update={"name": MAIN}) for account in accounts[:1]) + accounts[1:]


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
    email: Annotated[tuple[EmailAccount, ...], BeforeValidator(_as_list), AfterValidator(_settle)] = setting(
        ({},), "a mapping, or a list of mappings for several accounts", "Mailboxes."
    )

    def enabled(self) -> Iterator[tuple[Platform, Account]]:
        """The accounts that shall be served, with their platform."""
        by_platform: dict[Platform, tuple[Account, ...]] = {
            "telegram": self.telegram,
            "slack": self.slack,
            "discord": self.discord,
            "email": self.email,
        }
        for platform, accounts in by_platform.items():
            for account in accounts:
                if account.enabled:
                    yield platform, account
