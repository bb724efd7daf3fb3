"""Which accounts this gateway serves, and the adapter of each.

SDKs are imported here, and only when their platform is enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from gateway.commands import default_registry

if TYPE_CHECKING:
    from pydantic import SecretStr

    from adapters.base import Adapter
    from config import ChatAccount, EmailAccount, Settings, SlackAccount

__all__ = ["Served", "make_adapters", "served_accounts"]


@dataclass(frozen=True, slots=True)
class Served:
    """One enabled account: its secret, who may use it, and when it answers in groups."""

    token: str
    base_url: str
    allowed_users: frozenset[str]
    allow_all: bool
    groups: Literal["mention", "always"]
    #: Chats that differ from the account, by their id.
    chats: Mapping[str, Literal["mention", "always"]] = field(default_factory=dict)
    allowed_bots: frozenset[str] = frozenset()
    gateway_url: str | None = None
    slack: SlackAccount | None = None
    mailbox: EmailAccount | None = None

    def groups_in(self, chat: str) -> Literal["mention", "always"]:
        """When it answers in this chat. A chat of a workspace may be named without the workspace."""
        return self.chats.get(chat) or self.chats.get(chat.rpartition("/")[2], self.groups)


def served_accounts(settings: Settings) -> dict[tuple[str, str], Served]:
    """The enabled accounts that this version has an adapter for, by (platform, account)."""
    telegram = {
        ("telegram", account.name): _served(account, account.token, account.base_url)
        for account in settings.platforms.telegram
        if account.enabled and account.token is not None
    }
    slack = {
        ("slack", account.name): replace(_served(account, account.bot_token, account.base_url), slack=account)
        for account in settings.platforms.slack
        if account.enabled and account.bot_token is not None
    }
    discord = {
        ("discord", account.name): _served(account, account.token, account.api_url, account.gateway_url)
        for account in settings.platforms.discord
        if account.enabled and account.token is not None
    }
    email = {
        ("email", account.name): Served(
            # What locks the account: two gateways must not share a folder, whatever the password is.
            token=f"{account.imap_host}/{account.username or account.address}/{account.folder}",
            base_url="",
            allowed_users=frozenset(account.allowed_users),
            allow_all=account.allow_all,
            # Every mail is a direct chat.
            groups="mention",
            mailbox=account,
        )
        for account in settings.platforms.email
        if account.enabled
    }
    return telegram | slack | discord | email


def _served(account: ChatAccount, token: SecretStr, base_url: str, gateway_url: str | None = None) -> Served:
    return Served(
        token=token.get_secret_value(),
        base_url=base_url,
        allowed_users=frozenset(account.allowed_users),
        allow_all=account.allow_all,
        groups=account.groups,
        chats={chat: facts.groups for chat, facts in account.chats.items() if facts.groups is not None},
        allowed_bots=frozenset(account.allowed_bots),
        gateway_url=gateway_url,
    )


def make_adapters(served: Mapping[tuple[str, str], Served]) -> dict[tuple[str, str], Adapter]:
    """One adapter per account, by (platform, account)."""
    adapters: dict[tuple[str, str], Adapter] = {}
    for (platform, account), facts in served.items():
        if platform == "telegram":
            from adapters.telegram import TelegramAdapter  # noqa: PLC0415 - heavy, and only needed when enabled

            adapters[platform, account] = TelegramAdapter(account, facts.token, facts.base_url)
        elif facts.slack is not None:
            adapters[platform, account] = _slack(account, facts, facts.slack)
        elif platform == "discord":
            adapters[platform, account] = _discord(account, facts)
        elif facts.mailbox is not None:
            adapters[platform, account] = _email(account, facts.mailbox)
    return adapters


def _slack(account: str, facts: Served, settings: SlackAccount) -> Adapter:
    from adapters.slack import SlackAdapter  # noqa: PLC0415 - heavy, and only needed when enabled

    return SlackAdapter(
        account,
        facts.token,
        # The settings of an enabled account have it.
        settings.app_token.get_secret_value() if settings.app_token is not None else "",
        facts.base_url,
        reply_in_thread=settings.reply_in_thread,
        dm_threads=settings.dm_threads,
    )


def _discord(account: str, facts: Served) -> Adapter:
    from adapters.discord import DiscordAdapter, SlashCommand  # noqa: PLC0415 - heavy, and only needed when enabled

    commands = [
        SlashCommand(command.name, command.summary, _argument(command.usage)) for command in default_registry().commands
    ]
    return DiscordAdapter(account, facts.token, facts.base_url, facts.gateway_url, commands)


def _email(account: str, mailbox: EmailAccount) -> Adapter:
    from adapters.email import EmailAdapter, MailAccount, Server  # noqa: PLC0415 - only needed when enabled

    # The settings of an enabled account have all of these.
    address, password = mailbox.address or "", mailbox.password
    facts = MailAccount(
        address=address,
        username=mailbox.username or address,
        password=password.get_secret_value() if password is not None else "",
        imap=Server(mailbox.imap_host or "", mailbox.imap_port, mailbox.imap_tls),
        smtp=Server(mailbox.smtp_host or "", mailbox.smtp_port, mailbox.smtp_tls),
        folder=mailbox.folder,
        authserv_id=mailbox.authserv_id,
        trust_from=mailbox.trust_from,
        token_command=mailbox.token_command,
    )
    return EmailAdapter(account, facts)


def _argument(usage: str) -> str | None:
    """What follows a command, as its usage tells: `/title [text]` takes a `text`."""
    _, _, rest = usage.partition(" ")
    return rest.strip("[]<> ") or None
