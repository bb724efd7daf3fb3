"""A model's reply put together from the pieces of its stream, and what it cost.

Contract: whatever a server sends, `Reply.add` takes it and never fails: fields of the wrong kind are passed over. Text
comes back piece by piece as it is added. Calls have ids that are unique among those known so far, and names. Reasoning
is kept in the fields in which it came, so that it can be given back unchanged. Of several reports of usage the last one
counts: some servers report running totals.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.agents.base import Reasoning, Usage
from session_store.conversation import UNNAMED, accepted_name, read_arguments
from session_store.text import clean_text

__all__ = ["Call", "Reply"]

#: Fields of a piece of structured reasoning that go on where the last piece ended.
_GROWING = ("text", "summary", "data")


@dataclass(slots=True)
class Call:
    """One tool call. arguments: JSON, as the model wrote it, valid or not."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""

    def parsed(self) -> dict[str, Any] | None:
        """The arguments; None when they are no JSON object."""
        return read_arguments(self.arguments or "{}")

    def stored(self) -> dict[str, Any]:
        """The call as it is kept, word for word."""
        return self._shaped(self.name, self.arguments or "{}")

    def replayed(self) -> dict[str, Any]:
        """The call as it is shown to the model again, in this turn as in later ones: always valid."""
        unreadable = self.parsed() is None
        arguments = json.dumps({"unreadable": self.arguments}, ensure_ascii=False) if unreadable else self.arguments
        return self._shaped(accepted_name(self.name), arguments or "{}")

    def _shaped(self, name: str, arguments: str) -> dict[str, Any]:
        return {"id": self.call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(slots=True)
class Reply:
    """One reply. finish_reason: why it ended, None while it has not. pieces: chunks so far; size: their characters."""

    pieces: int = 0
    size: int = 0
    calls: list[Call] = field(default_factory=list)
    finish_reason: str | None = None
    response_id: str = ""
    model: str = ""
    _said: list[str] = field(default_factory=list)
    _half: str = ""
    _thought: dict[str, list[str]] = field(default_factory=dict)
    _details: list[Any] = field(default_factory=list)
    _counts: Mapping[str, Any] | None = None
    _by_index: dict[Any, Call] = field(default_factory=dict)

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Take in a chunk; returns the text that it adds to the answer."""
        self.pieces += 1
        self.response_id = self.response_id or _text(chunk.get("id"))
        self.model = self.model or _text(chunk.get("model"))
        if isinstance(chunk.get("usage"), Mapping):
            self._counts = chunk["usage"]
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return ""
        choice = choices[0]
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
        delta = choice.get("delta")
        return self._take(delta) if isinstance(delta, Mapping) else ""

    def _take(self, delta: Mapping[str, Any]) -> str:
        for name in ("reasoning", "reasoning_content"):
            if isinstance(delta.get(name), str):
                self._thought.setdefault(name, []).append(delta[name])
                self.size += len(delta[name])
        for detail in _list(delta.get("reasoning_details")):
            self._add_detail(detail)
        for position, part in enumerate(_list(delta.get("tool_calls"))):
            if isinstance(part, Mapping):
                self._add_call(position, part)
        said = self._half + (_text(delta.get("content")) or _text(delta.get("refusal")))
        # A character of two halves may be cut between them; alone, neither can be shown or sent.
        self._half = said[-1:] if "\ud800" <= said[-1:] <= "\udbff" else ""
        added = clean_text(said.removesuffix(self._half))
        self._said.append(added)
        self.size += len(added)
        return added

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._said)

    def _add_call(self, position: int, part: Mapping[str, Any]) -> None:
        index, call_id = part.get("index"), _text(part.get("id"))
        key = index if isinstance(index, int) else position
        call = self._by_index.get(key)
        # Some servers send several whole calls under one index: another id is another call.
        if call is None or (call_id and call.call_id and call_id != call.call_id):
            call = self._by_index[key] = Call()
            self.calls.append(call)
        call.call_id = call.call_id or call_id
        function = part.get("function")
        if isinstance(function, Mapping):
            call.name += _text(function.get("name"))
            arguments = function.get("arguments")
            more = json.dumps(arguments) if isinstance(arguments, Mapping) else _text(arguments)
            call.arguments += more
            self.size += len(more)

    def _add_detail(self, detail: Any) -> None:
        last = self._details[-1] if self._details else None
        if not (isinstance(detail, Mapping) and isinstance(last, dict) and _goes_on(last, detail)):
            self._details.append(dict(detail) if isinstance(detail, Mapping) else detail)
            return
        for name, value in detail.items():
            if name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str):
                last[name] += value
            elif value is not None:
                last[name] = value

    def finish_calls(self, known: Iterable[str]) -> None:
        """Give each call an id that is none of those known, and a name."""
        taken = set(known)
        for call in self.calls:
            if not call.call_id or call.call_id in taken:
                call.call_id = f"call_{secrets.token_hex(8)}"
            taken.add(call.call_id)
            call.name = call.name or UNNAMED

    @property
    def reasoning(self) -> Reasoning | None:
        """What was thought, if the server told."""
        if not self._thought and not self._details:
            return None
        thought = self._thoughts()
        return Reasoning(thought.get("reasoning"), thought.get("reasoning_content"), self._details or None)

    def _thoughts(self) -> dict[str, str]:
        return {name: "".join(pieces) for name, pieces in self._thought.items()}

    @property
    def thought_only(self) -> bool:
        """Whether something was thought and nothing said or called."""
        return self.reasoning is not None and not self.text.strip() and not self.calls

    def as_message(self) -> dict[str, Any]:
        """The assistant message with which the conversation goes on in this turn."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, **self._thoughts()}
        if self._details:
            message["reasoning_details"] = self._details
        if self.calls:
            message["tool_calls"] = [call.replayed() for call in self.calls]
        return {name: _clean(value) for name, value in message.items()}

    def usage(self, model: str, provider: str, base_url: str) -> Usage:
        """What it cost. The id is the server's, made unique: small servers count from one after each start."""
        counts = self._counts or {}
        read, written = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
        given, made = counts.get("prompt_tokens_details"), counts.get("completion_tokens_details")
        cached = _count(given, "cached_tokens") or _count(counts, "prompt_cache_hit_tokens")
        kept = _count(given, "cache_write_tokens") or _count(counts, "cache_creation_input_tokens")
        thought = _count(made, "reasoning_tokens")
        if thought and _count(counts, "total_tokens") == read + written + thought:
            written += thought  # this server counts what was thought beside what was said
        return Usage(
            request_id=f"{self.response_id or 'call'}#{secrets.token_hex(8)}",
            model=self.model or model,
            input_tokens=max(read - cached - kept, 0),
            output_tokens=written,
            cache_read_tokens=cached,
            cache_write_tokens=kept,
            reasoning_tokens=min(thought, written),
            provider=provider,
            base_url=base_url,
        )


def _goes_on(last: Mapping[str, Any], detail: Mapping[str, Any]) -> bool:
    same = last.get("type") == detail.get("type") and last.get("index") == detail.get("index")
    return same and detail.get("index") is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _clean(value: Any) -> Any:
    """The same without halves of characters, which cannot be sent."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return {name: _clean(one) for name, one in value.items()} if isinstance(value, dict) else value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
