"""Mailboxes of the settings become adapters."""

from __future__ import annotations

from adapters.base import AdapterState
from adapters.email import EmailAdapter
from config import Settings
from gateway.platforms import make_adapters, served_accounts

MAILBOX = {
    "enabled": True,
    "address": "Agent@example.org",
    "password": "secret",
    "imap_host": "imap.example.org",
    "smtp_host": "smtp.example.org",
    "authserv_id": "mx.example.org",
    "allowed_users": ["Ann@example.org"],
}


def test_an_enabled_mailbox_is_served() -> None:
    """Under its name, for those it allows, and locked by what it reads, not by its password."""
    second = MAILBOX | {"name": "work", "address": "work@example.org"}
    settings = Settings.model_validate({"platforms": {"email": [MAILBOX, second, {"name": "old"}]}})
    served = served_accounts(settings)
    adapters = make_adapters(served)

    assert set(adapters) == set(served) == {("email", "main"), ("email", "work")}
    assert served["email", "main"].allowed_users == {"ann@example.org"}
    assert served["email", "main"].token == "imap.example.org/agent@example.org/INBOX"  # noqa: S105  (no secret)
    for (platform, account), adapter in adapters.items():
        assert isinstance(adapter, EmailAdapter)
        assert (adapter.platform, adapter.account, adapter.state) == (platform, account, AdapterState.STOPPED)
