"""What the search index holds of a message: its segmented text and the scope in which it is found.

Contract: pure functions of a row. A message is the text of its content, then its tool calls, then the tool's name, with
a break between them so that no phrase crosses. The index forgets a message when it is told the same document again, so
equal rows give equal documents; a change of what they give must raise `SEGMENTATION` (segment.py).
Limits: of content the first 48 K and last 16 K characters are indexed; of tool output, tool calls and their arguments
the first 6 K and last 2 K. What lies between is found by scanning only.
"""

from __future__ import annotations

import functools
from typing import Final

from session_store.content import as_text, plain_text, tool_calls_text
from session_store.segment import BREAK, cap, segment
from session_store.tx import Row

__all__ = ["document", "scope_token"]

_TEXT: Final = (48 * 1024, 16 * 1024)
_OUTPUT: Final = (6 * 1024, 2 * 1024)
_NOBODY: Final = "nobody"


def document(row: Row) -> tuple[int, str, str]:
    """Id, text and scope of a row: a message's id, role, content and tools, its session's owner and room_id."""
    return row["id"], _text(row), _scope(row["owner"], row["room_id"])


def scope_token(person_or_room: str) -> str:
    """The token that stands for an owner or a room in the scope: one word for the tokenizer, whatever the id."""
    if person_or_room.isascii() and person_or_room.isalnum():
        return person_or_room
    return f"x{person_or_room.encode().hex()}"


@functools.lru_cache(1024)
def _scope(owner: str | None, room: str | None) -> str:
    return " ".join(scope_token(one) for one in (owner, room) if one) or _NOBODY


def _text(row: Row) -> str:
    content, name, calls = row["content"], row["tool_name"], row["tool_calls"]
    head, tail = _OUTPUT if row["role"] == "tool" else _TEXT
    text = segment(cap(plain_text(content), head, tail)) if content else ""
    if calls:
        text = f"{text} {BREAK} {segment(cap(tool_calls_text(calls), *_OUTPUT))}"
    if name:
        text = f"{text} {BREAK} {segment(cap(as_text(name), *_OUTPUT))}"
    return text
