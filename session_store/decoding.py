"""Stored messages as callers get them: content and JSON columns decoded.

Contract: pure. Content comes back as it was given, text byte for byte, lists and dicts by value; every value can be
written as JSON again, whatever other tools have put into the row.
"""

from __future__ import annotations

from typing import cast

from session_store.content import decode_content
from session_store.jsontext import from_json, plain
from session_store.rows import MessageRow
from session_store.tx import Row

__all__ = ["JSON_COLUMNS", "decode_message"]

JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")


def decode_message(row: Row) -> MessageRow:
    """Return a row of `messages` with content and JSON columns decoded; every value can be written as JSON."""
    decoded = {name: plain(value) if isinstance(value, bytes | float) else value for name, value in row.items()}
    decoded["content"] = plain(decode_content(decoded["content"]))
    for name in JSON_COLUMNS:
        decoded[name] = from_json(decoded[name])
    calls = decoded["tool_calls"]
    decoded["tool_calls"] = calls if calls is None or isinstance(calls, list) else [calls]
    return cast("MessageRow", decoded)
