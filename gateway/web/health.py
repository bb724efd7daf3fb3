"""`/health`: is the gateway well? For service managers and `threadline gateway status`, without a token.

Contract: 200 when the status is "ok", else 503. Says only state words, never text, names of people or paths.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gateway.web.replies import SafeJSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["health_reply"]

_WORD = re.compile(r"[a-z_]{1,32}\Z")
_ACCOUNT = re.compile(r"[A-Za-z0-9_.-]{1,64}/[A-Za-z0-9_.-]{1,64}\Z")


def health_reply(facts: Mapping[str, Any]) -> SafeJSONResponse:
    """Answer with the part of `facts` that anybody may know."""
    status = facts.get("status")
    word = status if isinstance(status, str) and _WORD.match(status) else "unknown"
    accounts = facts.get("accounts") or {}
    states = {
        name: state for name, state in sorted(accounts.items()) if _ACCOUNT.match(str(name)) and _WORD.match(str(state))
    }
    return SafeJSONResponse({"status": word, "accounts": states}, 200 if word == "ok" else 503)
