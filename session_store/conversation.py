"""Stored rows to what a model provider is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from session_store.rows import MessageRow

__all__ = ["replay"]


def replay(rows: Sequence[MessageRow]) -> list[dict[str, Any]]:
    """Rows to provider messages."""
    return [{"role": row["role"], "content": row["content"]} for row in rows]
