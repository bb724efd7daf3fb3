"""What a program of the kind `command` reads and writes.

Contract: `written_context` is the one JSON object that it reads. `Answer` takes what it writes, in pieces as they come,
and gives the events of the turn: plain text, or one JSON event per line, as the first line says. Pure.
Failure: a line that is no event, or an event without what it needs, is an AgentError that names it.
"""

from __future__ import annotations

import codecs
import json
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gateway.agents.base import AgentError, Final, TextDelta, ToolCalls, ToolResult, Usage
from gateway.agents.quoting import inert
from gateway.phrases import one_line

if TYPE_CHECKING:
    from gateway.agents.base import AgentContext, AgentEvent

__all__ = ["PROTOCOL", "Answer", "written_context"]

PROTOCOL = 1
_SHOWN = 120
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def written_context(context: AgentContext) -> bytes:
    """The context of a turn, as a program reads it."""
    told = {
        "protocol": PROTOCOL,
        "session_id": context.session_id,
        "turn_id": context.turn_id,
        "text": context.text,
        "conversation": list(context.conversation),
        "system_prompt": context.system_prompt,
        "attachments": [
            {"path": str(file.path), "name": file.name, "media_type": file.media_type, "size": file.size}
            for file in context.attachments
        ],
        "now": context.now,
        "timezone": context.timezone,
    }
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class Answer:
    """What a program has written so far. name: the program's, for sentences."""

    def __init__(self, name: str) -> None:
        self._name = inert(one_line(name, 80))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._events: bool | None = None
        self._rest = ""
        self._said: list[str] = []
        self._final: Final | None = None

    def take(self, piece: bytes) -> Iterator[AgentEvent]:
        """The events in what came next."""
        yield from self._take(self._decoder.decode(piece))

    def end(self) -> Iterator[AgentEvent]:
        """The events in what is left when the program has ended well, the answer last."""
        yield from self._take(self._decoder.decode(b"", final=True), whole=True)
        text = "".join(self._said).strip()
        final = self._final or (Final(text) if text else None)
        if final is None:
            raise AgentError(f"The program “{self._name}” gave no answer. Let it write one to stdout.")
        yield final

    def _take(self, text: str, *, whole: bool = False) -> Iterator[AgentEvent]:
        self._rest += text
        if self._events is None:
            first = self._rest.lstrip().partition("\n")
            if not (first[1] or whole or (first[0] and first[0][0] != "{")):
                return
            self._events = _event_in(first[0]) is not None
        if not self._events:
            if self._rest:
                self._said.append(self._rest)
                yield TextDelta(self._rest)
            self._rest = ""
            return
        *lines, self._rest = self._rest.split("\n")
        if whole:
            lines, self._rest = [*lines, self._rest], ""
        for line in lines:
            if line.strip():
                yield from self._line(line)

    def _line(self, line: str) -> Iterator[AgentEvent]:
        event = _event_in(line)
        if event is None:
            raise self._wrong(line)
        match event:
            case {"type": "text", "text": str(text)}:
                self._said.append(text)
                yield TextDelta(text)
            case {"type": "tool", "name": str(name), "result": str(result)}:
                call_id = str(event.get("id") or f"call_{secrets.token_hex(8)}")
                arguments = json.dumps(event.get("arguments") or {}, ensure_ascii=False)
                function = {"name": name, "arguments": arguments}
                said, self._said = "".join(self._said).strip(), []
                yield ToolCalls([{"id": call_id, "type": "function", "function": function}], said or None)
                yield ToolResult(call_id, name, result)
            case {"type": "usage"}:
                yield _usage(event, self._name)
            case {"type": "final", "text": str(text)} if text.strip():
                self._final = Final(text)
            case {"type": "error", "text": str(text)} if text.strip():
                raise AgentError(text)
            case _:
                raise self._wrong(line)

    def _wrong(self, line: str) -> AgentError:
        shown = inert(one_line(line, _SHOWN))
        return AgentError(f"The program “{self._name}” wrote a line that is no event: {shown}. Mend it and try again.")


def _event_in(line: str) -> dict[str, Any] | None:
    """The event that a line is, if it is one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def _usage(event: Mapping[str, Any], name: str) -> Usage:
    counts = {count: event[count] for count in _COUNTS if isinstance(event.get(count), int)}
    return Usage(
        request_id=str(event.get("request_id") or f"command#{secrets.token_hex(12)}"),
        model=str(event.get("model") or name),
        provider="command",
        **counts,
    )
