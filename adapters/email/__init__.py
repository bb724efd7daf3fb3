"""E-mail, by IMAP and SMTP. Not to be confused with the standard library's `email`: imports here are absolute."""

from __future__ import annotations

from adapters.email.account import MailAccount, Server
from adapters.email.client import EmailAdapter

__all__ = ["EmailAdapter", "MailAccount", "Server"]
