"""What a stored message says, in plain text. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.phrases import one_line
from session_store.content import encode_content, plain_text

if TYPE_CHECKING:
    from session_store import MessageRow

__all__ = ["text_of", "tool_names"]


def text_of(row: MessageRow) -> str:
    """The text of a message; parts that are no text are named (`[image]`)."""
    content = row["content"]
    if content is None or isinstance(content, str):
        return content or ""
    return plain_text(encode_content(content))


def tool_names(row: MessageRow) -> list[str]:
    """Names of the tools that a message calls, in order."""
    names = []
    for call in row["tool_calls"] or ():
        function = call.get("function") if isinstance(call, dict) else None
        names.append(one_line(str(function.get("name") or "?"), 60) if isinstance(function, dict) else "?")
    return names
