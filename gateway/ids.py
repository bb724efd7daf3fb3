"""Ids that Threadline makes. Random parts come from the operating system; a clash fails at the unique key, loudly."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Literal

__all__ = ["new_session_id", "new_turn_id"]


def new_session_id(born: Literal["terminal", "gateway"], now: float) -> str:
    """`YYYYMMDD_HHMMSS_` (UTC) and 6 hex digits for the terminal, 8 for the gateway. `now` is Unix seconds."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d_%H%M%S")
    return f"{stamp}_{secrets.token_hex(3 if born == 'terminal' else 4)}"


def new_turn_id() -> str:
    """A fresh turn id: `t` and 24 hex digits."""
    return f"t{secrets.token_hex(12)}"
