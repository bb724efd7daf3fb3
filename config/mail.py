"""Mail addresses as identities: one spelling for one mailbox.

Contract: `canonical_address` is pure and idempotent. ASCII letters are lower-cased in the whole address: the standard
lets servers tell `Ann@` from `ann@`, none in use does, and mail programs spell one mailbox in both ways. International
domains become their ASCII form, so that look-alikes stay different. Nothing else is folded: dots and `+tags` count.
Limits: no quoted local parts, no address literals, no letters beyond ASCII before the `@`.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["canonical_address"]

_LONGEST: Final = 254
_LONGEST_LOCAL: Final = 64
_LOCAL: Final = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
_LABEL: Final = r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


def canonical_address(text: str) -> str:
    """Return the one spelling of an address; raises ValueError where it is none that we can tell apart from others."""
    local, at, domain = text.rpartition("@")
    if len(text) > _LONGEST or not at:
        raise ValueError("not a mail address")
    # Only ASCII is lower-cased: other letters would change into each other in ways that domains do not.
    local = local.lower() if local.isascii() else local
    if not domain.isascii():
        # UnicodeError, which this raises, is a ValueError.
        domain = domain.encode("idna").decode("ascii")
    domain = domain.lower()
    if len(local) > _LONGEST_LOCAL or not _LOCAL.fullmatch(local) or not _DOMAIN.fullmatch(domain):
        raise ValueError("not a mail address")
    canonical = f"{local}@{domain}"
    if len(canonical) > _LONGEST:
        raise ValueError("not a mail address")
    return canonical
