"""Mails as people and programs send them, for tests."""

from __future__ import annotations

import itertools
from email.message import EmailMessage
from email.policy import SMTP

__all__ = ["letter"]

_count = itertools.count(1)


def letter(text: str, subject: str = "Notes", *, sender: str = "ann@example.org", **more: str) -> bytes:
    """A mail from `sender`; `more` are further headers, with `_` for `-` ("" leaves the header of that name out)."""
    headers = {
        "From": sender,
        "To": "agent@example.org",
        "Subject": subject,
        "Date": "Sun, 29 Nov 2026 10:00:00 +0000",
        "Message-ID": f"<{next(_count)}@mail.example.org>",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    message = EmailMessage(policy=SMTP)
    for name, value in headers.items():
        if value:
            message[name] = value
    message.set_content(text)
    return message.as_bytes()
