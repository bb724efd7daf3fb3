"""Mail addresses as identities: one spelling for one mailbox.

Contract: `canonical_address` is pure and idempotent. Letters are lower-cased in the whole address: the standard lets
servers tell `Ann@` from `ann@`, none in use does, and mail programs spell one mailbox in both ways. Nothing else is
folded: dots and `+tags` count.
Limits: ASCII only, so international domains as mail carries them (`xn--...`); no quoted local parts, no address
literals.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["canonical_address"]

_LONGEST: Final = 254
_LONGEST_LOCAL: Final = 64
_LOCAL: Final = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL: Final = r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def canonical_address(text: str) -> str:
    """Return the one spelling of an address; raises ValueError where it is none that we can tell apart from others."""
    local, _, domain = text.lower().rpartition("@")
    fitting = text.isascii() and len(text) <= _LONGEST and len(local) <= _LONGEST_LOCAL
    if not (fitting and _LOCAL.fullmatch(local) and _DOMAIN.fullmatch(domain)):
        raise ValueError("not a mail address")
    return f"{local}@{domain}"
