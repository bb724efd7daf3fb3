"""Stored rows to the messages that a model provider is given.

Contract: whatever is stored, the result is what strict providers accept, and the same every time. Nothing is written
back: rows stay as they are, the repair is made again at each load.

- Order is insertion. Rows taken back are left out, and so are rows of roles that providers do not know.
- Each call of an assistant message is answered once, right behind that message. A result that came later is moved
  there; a call without one is answered `INTERRUPTED`; a result without a call, and a second one, are left out.
- Calls have unique ids, a name and arguments that are a JSON object. A repeated id gets a number, a missing one is
  made up, a missing name reads `UNNAMED`, what providers refuse in a name is a `_`, unreadable arguments are passed on
  as `{"unreadable": ...}`.
- Neighbours of one role are made one message: texts joined by an empty line, parts put behind each other. So `user` and
  `assistant` take turns, apart from calls and their results.
- `system` stands in front; a later system row speaks as a `user` message marked `NOTE`.
- The summary of what is not seen any more stands in front, as a `system` message under the heading `SUMMARY`.
- Nothing is empty: a user message without text reads `EMPTY`; an assistant message with neither text, calls nor
  reasoning is left out. Content that is neither text nor a list of typed parts is given as JSON text.

Limits: a history that begins with the assistant begins so here too, and a user message may follow a tool result
(the turn was interrupted); providers that refuse this need a word put in front by whoever talks to them. Reasoning and
`finish_reason` are on assistant messages, as they were stored; what a provider does not take, its agent leaves out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

from session_store.rows import MessageRow

__all__ = ["EMPTY", "INTERRUPTED", "NOTE", "SUMMARY", "UNNAMED", "accepted_name", "read_arguments", "replay"]

INTERRUPTED = "interrupted, effect unknown"
EMPTY = "(empty message)"
NOTE = "[system note]"
UNNAMED = "unnamed"
SUMMARY = "[summary of the conversation up to here; the whole of it is kept and can be searched]"

Content: TypeAlias = str | list[dict[str, Any]] | None

_REASONING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items")
_BLANK_LINE = "\n\n"
# A name with anything else in it, or a longer one, is refused, and the whole request with it.
_REFUSED_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 64


@dataclass(slots=True)
class _Call:
    """One tool call: how the row names it, what the provider is given, and its answer."""

    stored_id: str | None
    given: dict[str, Any]
    result: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return str(self.given["function"]["name"])

    def answer(self) -> dict[str, Any]:
        answer = {"role": "tool", "tool_call_id": self.given["id"], "name": self.name}
        return answer | (self.result or {"content": INTERRUPTED})


@dataclass(slots=True)
class _Entry:
    """One message to be, with the calls that it makes."""

    role: str
    content: Content
    extra: dict[str, Any] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)

    def messages(self) -> Iterable[dict[str, Any]]:
        message = {"role": self.role, "content": self.content} | self.extra
        if self.calls:
            message["tool_calls"] = [call.given for call in self.calls]
        yield message
        for call in self.calls:
            yield call.answer()

    def absorb(self, later: _Entry) -> None:
        """Take in the neighbour that follows."""
        self.content = _joined(self.content, later.content)
        self.extra = _joined_reasoning(self.extra, later.extra)
        self.calls = later.calls


class _Replay:
    """The entries so far, and which calls are still to be answered."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self._ids: set[str] = set()
        # By stored id: the calls of the last message that used the id, since models count from one in every message.
        self._calls: dict[str | None, list[_Call]] = {}

    def add(self, row: MessageRow) -> None:
        content = _content(row["content"])
        match row["role"]:
            case "user":
                self._put(_Entry("user", EMPTY if _is_blank(content) else content))
            case "assistant":
                self._add_assistant(row, content)
            case "tool":
                self._add_result(row, content)
            case "system" | "developer" if not _is_blank(content):
                begins = all(entry.role == "system" for entry in self.entries)
                self._put(_Entry("system", content) if begins else _Entry("user", _noted(content)))
            case _:
                pass

    def _add_assistant(self, row: MessageRow, content: Content) -> None:
        extra = _extra(row)
        calls = self._made_calls(row)
        if _is_blank(content) and not calls:
            if not any(name in extra for name in _REASONING):
                return
            content = EMPTY
        self._put(_Entry("assistant", content, extra, calls))
        for stored_id in {call.stored_id for call in calls}:
            self._calls[stored_id] = [call for call in calls if call.stored_id == stored_id]

    def _made_calls(self, row: MessageRow) -> list[_Call]:
        made = []
        for position, stored in enumerate(row["tool_calls"] or []):
            if isinstance(stored, dict):
                stored_id = stored["id"] if isinstance(stored.get("id"), str) and stored["id"] else None
                call_id = self._unique(stored_id or f"call_{row['id']}_{position}")
                made.append(_Call(stored_id, _given(stored, call_id)))
        return made

    def _unique(self, call_id: str) -> str:
        unique, number = call_id, 2
        while unique in self._ids:
            unique, number = f"{call_id}_{number}", number + 1
        self._ids.add(unique)
        return unique

    def _add_result(self, row: MessageRow, content: Content) -> None:
        stored_id, name = row["tool_call_id"] or None, row["tool_name"]
        for call in self._calls.get(stored_id, ()):
            if call.result is None and (stored_id is not None or not name or accepted_name(name) == call.name):
                call.result = {"content": content or ""} | ({"name": accepted_name(name)} if name else {})
                return

    def _put(self, entry: _Entry) -> None:
        last = self.entries[-1] if self.entries else None
        if last is not None and last.role == entry.role and not last.calls:
            last.absorb(entry)
        else:
            self.entries.append(entry)


def replay(rows: Sequence[MessageRow], *, summary: str | None = None) -> list[dict[str, Any]]:
    """Return the provider messages of these rows, which are decoded and of one conversation.

    summary: of what came before the rows.
    """
    made = _Replay()
    if summary is not None:
        made.entries.append(_Entry("system", f"{SUMMARY}\n\n{summary}"))
    for row in sorted(rows, key=lambda row: row["id"]):
        if not row["rewound"]:
            made.add(row)
    return [message for entry in made.entries for message in entry.messages()]


def _content(value: Any) -> Content:
    if value is None or isinstance(value, str):
        return value
    parts = [value] if isinstance(value, dict) else value
    if isinstance(parts, list) and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return [part for part in parts if part["type"] != "text" or str(part.get("text") or "").strip()]
    return json.dumps(value, ensure_ascii=False)


def _is_blank(content: Content) -> bool:
    return not (content.strip() if isinstance(content, str) else content)


def _noted(content: Content) -> Content:
    return f"{NOTE} {content}" if isinstance(content, str) else [{"type": "text", "text": NOTE}, *(content or [])]


def _joined(first: Content, second: Content) -> Content:
    if _is_blank(first) or _is_blank(second):
        return second if _is_blank(first) else first
    if isinstance(first, str) and isinstance(second, str):
        return first + _BLANK_LINE + second
    return [*_parts(first), *_parts(second)]


def _parts(content: Content) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else (content or [])


def _extra(row: MessageRow) -> dict[str, Any]:
    """Return what only assistant messages carry; an empty `reasoning_content` means something to some providers."""
    extra: dict[str, Any] = {name: row[name] for name in ("finish_reason", "reasoning") if row[name]}
    for name in _REASONING[1:]:
        if row[name] is not None:  # type: ignore[literal-required]
            extra[name] = row[name]  # type: ignore[literal-required]
    return extra


def _joined_reasoning(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    joined = first | second
    for name in first.keys() & second.keys() & set(_REASONING):
        earlier, later = first[name], second[name]
        if isinstance(earlier, str) and isinstance(later, str):
            joined[name] = _BLANK_LINE.join(text for text in (earlier, later) if text)
        elif isinstance(earlier, list) and isinstance(later, list):
            joined[name] = [*earlier, *later]
    return joined


def _given(stored: dict[str, Any], call_id: str) -> dict[str, Any]:
    """Return the call as providers want it; one that was stored flat (`name`, `arguments`) is folded."""
    function = stored["function"] if isinstance(stored.get("function"), dict) else {}
    name = function.get("name") or stored.get("name")
    arguments = function["arguments"] if "arguments" in function else stored.get("arguments")
    folded = {"name": accepted_name(name), "arguments": _arguments(arguments)}
    others = {key: value for key, value in stored.items() if key not in {"name", "arguments"}}
    return others | {"type": stored.get("type") or "function", "id": call_id, "function": function | folded}


def _arguments(stored: Any) -> str:
    """Return arguments as the text of a JSON object, unchanged where they are one."""
    if stored is None or (isinstance(stored, str) and not stored.strip()):
        return "{}"
    if not isinstance(stored, str):
        return json.dumps(stored if isinstance(stored, dict) else {"unreadable": stored}, ensure_ascii=False)
    return stored if read_arguments(stored) is not None else json.dumps({"unreadable": stored}, ensure_ascii=False)


def accepted_name(name: object) -> str:
    """The name of a tool as every provider takes it, unchanged where it is one."""
    return _REFUSED_IN_NAMES.sub("_", name)[:_LONGEST_NAME] if isinstance(name, str) and name else UNNAMED


def read_arguments(text: str) -> dict[str, Any] | None:
    """The JSON object that a call's arguments are; None when they are none, also where only Python would read them."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
