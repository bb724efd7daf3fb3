"""Mails as people and programs send them, for tests."""

from __future__ import annotations

import itertools
from email.message import EmailMessage
from email.policy import SMTP

__all__ = ["delivery_report", "letter"]

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


def delivery_report(
    message_id: str,
    *,
    action: str = "failed",
    reason: str = "smtp; 550 5.1.1 <ann@example.org>: User unknown",
    returned: str = "message/rfc822",
) -> bytes:
    """What a mail server writes when it could not deliver a mail; `returned`: as what it encloses that mail."""
    parts = [
        "Content-Type: text/plain\r\n\r\nI am sorry to inform you.",
        "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n"
        f"Final-Recipient: rfc822; ann@example.org\r\nAction: {action}\r\nStatus: 5.1.1\r\n"
        + (f"Diagnostic-Code: {reason}\r\n" if reason else ""),
        f"Content-Type: {returned}\r\n\r\nFrom: agent@example.org\r\nMessage-ID: <{message_id}>\r\n\r\nwords",
    ]
    head = (
        "From: Mail Delivery System <MAILER-DAEMON@mx.example.org>\r\nTo: agent@example.org\r\n"
        "Subject: Undelivered Mail Returned to Sender\r\nMessage-ID: <report@mx.example.org>\r\n"
        "Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="=_b"\r\n\r\n'
    )
    return (head + "".join(f"--=_b\r\n{part}\r\n" for part in parts) + "--=_b--\r\n").encode()
