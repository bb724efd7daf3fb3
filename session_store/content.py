"""Message content and tool calls: to stored text and back, and as plain text for people and for search.

Contract: plain text is stored byte for byte. Lists and mappings (multimodal parts) are stored as JSON behind the record
separator U+001E, the mark that JSON text sequences use, with characters as they are and not escaped. A plain text that
would itself read as such a record is stored as a record of a string, so that decoding always gives back what was
encoded. `plain_text` and `tool_calls_text` never fail: what they cannot understand they return as it is.
Failure: `encode_content` raises `InvalidArgument` for values that JSON cannot express.
Limits: binary data inside parts (data: addresses, long base64) is named in plain text, not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from session_store.jsontext import from_json, to_json

__all__ = ["as_text", "decode_content", "encode_content", "plain_text", "readable", "tool_calls_text"]

_MARK: Final = "\x1e"
_RECORD_STARTS: Final = (f"{_MARK}[", f"{_MARK}{{", f'{_MARK}"')
#: Keys under which parts of the known providers carry what a person reads.
_TEXT_KEYS: Final = ("text", "content", "output", "thinking", "refusal", "transcript")
#: Keys that say how a part is built and are read by nobody.
_SILENT_KEYS: Final = frozenset({"type", "id", "index", "role", "detail", "mime_type", "media_type", "cache_control"})
_KINDS: Final = ("image", "audio", "video", "file", "document")
_NAME_KEYS: Final = ("filename", "file_name", "name", "title")
_BLOB: Final = re.compile(r"data:[\w.+-]*/?[\w.+-]*[;,]|[A-Za-z0-9+/_-]{256,}={0,2}\Z")
_DEEPEST: Final = 32


def encode_content(content: Any) -> str | None:
    """What is stored for `content`: text, a list or mapping of multimodal parts, or None."""
    if content is None:
        return None
    if isinstance(content, str) and not content.startswith(_RECORD_STARTS):
        return content
    return f"{_MARK}{to_json(content)}"


def decode_content(stored: str | bytes | None) -> Any:
    """The content that was encoded. A record that is no JSON (another tool's text) comes back as text."""
    if stored is None:
        return None
    text = as_text(stored)
    if not text.startswith(_RECORD_STARTS):
        return text
    value = from_json(text[1:])
    return text if value == text[1:] else value


def as_text(stored: str | bytes) -> str:
    """A column as text: another tool may have stored a blob."""
    return stored if isinstance(stored, str) else bytes(stored).decode("utf-8", "replace")


def plain_text(stored: str | bytes | None) -> str:
    """Stored content as a person reads it: the texts of its parts, one per line, `[image]` and so on for the rest."""
    if not stored:
        return ""
    text = as_text(stored)
    if not text.startswith(_RECORD_STARTS):
        return text
    return "\n".join(_part_texts(decode_content(text), 0))


def tool_calls_text(stored: str | bytes | None) -> str:
    """Stored tool calls as text: each call's name, then its arguments as `key: value`, one per line."""
    if not stored:
        return ""
    calls = from_json(stored)
    if not isinstance(calls, list):
        calls = [calls]
    lines: list[str] = []
    for call in calls:
        function = call.get("function", call) if isinstance(call, Mapping) else call
        if not isinstance(function, Mapping):
            lines.extend(_values(function, 0))
            continue
        lines.append(str(function.get("name") or ""))
        given = function.get("arguments", function.get("input"))
        lines.extend(_values(from_json(given) if isinstance(given, str) else given, 0))
    return "\n".join(line for line in lines if line)


def readable(content: str | bytes | None, tool_name: str | bytes | None, tool_calls: str | bytes | None) -> str:
    """Everything of a message that search covers, as a person reads it."""
    if not tool_name and not tool_calls:
        return plain_text(content)
    texts = (plain_text(content), tool_calls_text(tool_calls), as_text(tool_name or ""))
    return "\n".join(text for text in texts if text)


def _part_texts(part: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for item in part:
            yield from _part_texts(item, depth + 1)
    elif isinstance(part, Mapping):
        kind = next((name for name in _KINDS if name in str(part.get("type", ""))), None)
        if kind is not None:
            yield _label(kind, part)
            return
        told = [part[key] for key in _TEXT_KEYS if part.get(key)]
        for item in told:
            yield from _part_texts(item, depth + 1)
        if not told:
            yield from _values(part, depth + 1)


def _label(kind: str, part: Mapping[str, Any]) -> str:
    """`[image]`, with the name or the address of what is attached if it has one."""
    attached = next((value for key, value in part.items() if isinstance(value, Mapping) and kind in key), part)
    name = next((attached[key] for key in _NAME_KEYS if isinstance(attached.get(key), str)), None)
    link = part.get(f"{kind}_url", attached.get("url"))
    link = link.get("url") if isinstance(link, Mapping) else link
    if name is None and isinstance(link, str) and _BLOB.match(link) is None:
        name = link
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def _values(value: Any, depth: int, key: str = "") -> Iterator[str]:
    """The leaves of a JSON value as lines, with the key that leads to each."""
    if depth > _DEEPEST or value is None:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            if depth == 0 or name not in _SILENT_KEYS:
                yield from _values(item, depth + 1, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, depth + 1, key)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        if _BLOB.match(text) is not None:
            text = "[data]"
        yield f"{key}: {text}" if key else text
