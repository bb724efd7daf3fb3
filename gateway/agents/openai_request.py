"""From what an agent sees of a turn to the messages of a request.

Contract: the same context gives the same messages, byte for byte, so that providers find in their caches what they
have read before. The session's system prompt stands in front. What a provider does not take (why an answer ended, the
items of another protocol) is left out; reasoning goes back as it came. Sentences that told of a failure were ours, not
the model's, and are left out, too: what was asked then stands before what is asked now. Pictures are shown only in
their own turn.
Failure: a picture that cannot be read is left out; its name is in the text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import anyio

from gateway.agents.prompts import begun_by_you

if TYPE_CHECKING:
    from gateway.agents.base import AgentContext, AttachedFile

__all__ = ["request_messages"]

_KEPT: Final = (
    *("role", "content", "tool_calls", "tool_call_id", "name"),
    *("reasoning", "reasoning_content", "reasoning_details"),
)
_SHOWN_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_LARGEST_IMAGE: Final = 10_000_000
_LARGEST_TOGETHER: Final = 20_000_000


async def request_messages(context: AgentContext, *, images: bool) -> list[dict[str, Any]]:
    """The messages of a turn's first request."""
    messages: list[dict[str, Any]] = []
    for message in context.conversation:
        if not _is_failure(message):
            _add(messages, _kept(message))
    if context.system_prompt:
        if messages and messages[0]["role"] == "system":
            told = messages.pop(0)
            messages.insert(0, {"role": "system", "content": f"{context.system_prompt}\n\n{told['content']}"})
        else:
            messages.insert(0, {"role": "system", "content": context.system_prompt})
    first = next((number for number, message in enumerate(messages) if message["role"] != "system"), None)
    if first is not None and messages[first]["role"] != "user":
        messages.insert(first, {"role": "user", "content": begun_by_you()})
    if images:
        await _show(messages, context.attachments)
    return messages


def _is_failure(message: Mapping[str, Any]) -> bool:
    return message["role"] == "assistant" and message.get("finish_reason") == "error" and not message.get("tool_calls")


def _add(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Append a message; what the person said twice in a row is one message, as the strictest servers want it."""
    before = messages[-1] if messages else None
    if before is None or message["role"] != "user" or before["role"] != "user":
        messages.append(message)
    elif isinstance(before["content"], str) and isinstance(message["content"], str):
        before["content"] += f"\n\n{message['content']}"
    else:
        before["content"] = [*_parts(before["content"]), *_parts(message["content"])]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _kept(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: message[name] for name in _KEPT if name in message}
    if kept["role"] == "tool":
        kept.pop("name", None)
    return kept


async def _show(messages: list[dict[str, Any]], attachments: Sequence[AttachedFile]) -> None:
    """Put the pictures into the message that they came with, the last one of the person."""
    parts: list[dict[str, Any]] = []
    room = _LARGEST_TOGETHER
    for file in attachments:
        if file.media_type not in _SHOWN_TYPES or file.size > min(_LARGEST_IMAGE, room):
            continue
        try:
            data = await anyio.Path(file.path).read_bytes()
        except OSError:
            continue
        room -= len(data)
        url = f"data:{file.media_type};base64,{base64.b64encode(data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    asked = next((message for message in reversed(messages) if message["role"] == "user"), None)
    if parts and asked is not None:
        asked["content"] = [*_parts(asked["content"]), *parts]
