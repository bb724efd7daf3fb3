"""A server that speaks OpenAI's chat protocol on 127.0.0.1, as strict as the strictest, with faults as a test wants.

`async with OpenAIServer() as server`: what comes next is `server.next(...)`, one `Says` per request; without one it
says `re: ` and the last words of the person. `server.asked` has the bodies of all requests. A history that strict
providers refuse is answered 400 and kept in `refusals`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

__all__ = ["KEY", "MODEL", "OpenAIServer", "Says", "fault_in"]

KEY = "sk-test-0123456789abcdef"
MODEL = "test-model"
_FIELDS = {
    *("role", "content", "tool_calls", "tool_call_id", "name"),
    *("reasoning", "reasoning_content", "reasoning_details"),
}
_SMALL = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Says:
    """What the server does with one request.

    pieces: of the text, each a chunk. calls: id, name, arguments of tool calls; split: characters of the arguments per
    chunk. deltas: further deltas, sent first. finish: None ends the stream without a word. usage: reported `times`
    times. status: another one than 200 comes with `error` as the body. garbage: sent in the place of the end.
    cut: reset the connection after so many chunks. gate: waited for after the first chunk. body: sent as it is,
    instead of a stream. lacks: a parameter that is refused with 400.
    """

    pieces: Sequence[str] = ()
    calls: Sequence[tuple[str, str, str]] = ()
    split: int = 7
    deltas: Sequence[Mapping[str, Any]] = ()
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = None
    times: int = 1
    status: int = 200
    error: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    garbage: str | None = None
    cut: int | None = None
    gate: asyncio.Event | None = None
    body: bytes | None = None
    lacks: str | None = None
    response_id: str = ""

    def chunks(self, model: str) -> list[str]:
        """The data of the events, in order."""
        deltas = [*self.deltas, *({"content": piece} for piece in self.pieces)]
        for index, (call_id, name, arguments) in enumerate(self.calls):
            deltas.append(
                {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": ""}}]}
            )
            for start in range(0, len(arguments), self.split):
                piece = arguments[start : start + self.split]
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        if self.garbage is None and self.finish is not None:
            choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if self.calls else self.finish})
        response_id = self.response_id or f"chatcmpl-{next(_NUMBERS)}"
        base = {"id": response_id, "object": "chat.completion.chunk", "created": 1, "model": model}
        told = [json.dumps(base | {"choices": [choice]}, ensure_ascii=False) for choice in choices]
        if self.usage is not None:
            told += [json.dumps(base | {"choices": [], "usage": self.usage})] * self.times
        if self.garbage is not None:
            told.append(self.garbage)
        return told if self.finish is None else [*told, "[DONE]"]


class OpenAIServer:
    """The server. key: what it accepts; strict: whether histories are judged.

    named: what it says to requests without tools, which are made beside turns; they are in `aside`, not in `asked`.
    """

    def __init__(self, *, key: str | None = KEY, strict: bool = True, named: str | None = None) -> None:
        self.key = key
        self.named = named
        self.aside: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.closed = asyncio.Event()
        self._strict = strict
        self._next: deque[Says] = deque()
        self._always: Says | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def next(self, *says: Says) -> None:
        """What the next requests get, in order."""
        self._next.extend(says)

    def always(self, says: Says) -> None:
        """What every further request gets."""
        self._always = says

    @property
    def base_url(self) -> str:
        """Its address."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def said(self, number: int = -1) -> list[tuple[str, Any]]:
        """Roles and contents of the messages of a request."""
        return [(message["role"], message["content"]) for message in self.asked[number]["messages"]]

    async def until_asked(self, count: int, seconds: float = 20.0) -> None:
        """Until so many requests have come."""
        async with asyncio.timeout(seconds):
            while len(self.asked) < count:  # noqa: ASYNC110 - requests come over a socket, from another process
                await asyncio.sleep(0.01)

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close, whatever is still under way."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            self.closed.set()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:] if line)
        }
        request = json.loads(await reader.readexactly(int(headers["content-length"])))
        says = self._judge(request, headers)
        if says.status != 200 or says.body is not None:
            body = (
                says.body if says.body is not None else json.dumps(says.error or {"error": {"message": "no"}}).encode()
            )
            lines = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            writer.write(_head(says.status, {**lines, **says.headers}) + body)
            await writer.drain()
            return
        kind = {"content-type": "text/event-stream", "transfer-encoding": "chunked", "connection": "close"}
        writer.write(_head(200, kind))
        gone = asyncio.ensure_future(reader.read())
        try:
            for number, data in enumerate(says.chunks(request["model"])):
                if says.cut is not None and number >= says.cut:
                    await writer.drain()
                    writer.transport.abort()
                    return
                event = f"data: {data}\n\n".encode("utf-8", "backslashreplace")
                writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                await writer.drain()
                if says.gate is not None and number == 0:
                    opened = asyncio.ensure_future(says.gate.wait())
                    await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
                    opened.cancel()
                    if gone.done():
                        return
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            gone.cancel()

    def _judge(self, request: dict[str, Any], headers: Mapping[str, str]) -> Says:
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            told = f"Incorrect API key provided: {headers.get('authorization', '')[7:]}."
            return Says(status=401, error={"error": {"message": told, "code": "invalid_api_key"}})
        fault = fault_in(request["messages"]) if self._strict else None
        if fault is not None:
            self.refusals.append(fault)
            return Says(status=400, error={"error": {"message": fault, "type": "invalid_request_error"}})
        if self.named is not None and "tools" not in request:
            self.aside.append(request)
            return Says([self.named], usage=_SMALL)
        self.asked.append(request)
        says = self._next.popleft() if self._next else self._always
        if says is None:
            words = next(message["content"] for message in reversed(request["messages"]) if message["role"] == "user")
            text = words if isinstance(words, str) else words[0]["text"]
            return Says(["re: ", text], usage=_SMALL)
        if says.lacks is not None and says.lacks in request:
            return Says(status=400, error={"error": {"message": f"{says.lacks} is not supported by this model"}})
        return says


def fault_in(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a strict provider refuses this history, None if it does not."""
    spoken = [message for message in messages if message["role"] != "system"]
    if not spoken or spoken[0]["role"] != "user":
        return "the first message must be from user"
    judged = _History()
    for message in messages:
        fault = judged.fault(message)
        if fault is not None:
            return fault
    return judged.unanswered()


@dataclass
class _History:
    """What is open while a history is read."""

    open_calls: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def fault(self, message: Mapping[str, Any]) -> str | None:
        """What is wrong with the next message."""
        strange = sorted(set(message) - _FIELDS)
        if strange:
            return f"additional properties: {strange}"
        if message["role"] == "tool":
            known = message["tool_call_id"] in self.open_calls
            self.open_calls.discard(message["tool_call_id"])
            return None if known else f"no call {message['tool_call_id']} is open"
        if self.open_calls:
            return self.unanswered()
        calls = message.get("tool_calls") or ()
        if not calls and not message.get("content"):
            return "content must not be empty"
        return next((fault for call in calls if (fault := self._call(call)) is not None), None)

    def _call(self, call: Mapping[str, Any]) -> str | None:
        if call["id"] in self.known:
            return f"the id {call['id']} was used before"
        self.known.add(call["id"])
        self.open_calls.add(call["id"])
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]):
            return f"the name {call['function']['name']} does not match the pattern"
        try:
            valid = isinstance(json.loads(call["function"]["arguments"], parse_constant=_no_json), dict)
        except ValueError:
            valid = False
        return None if valid else "arguments must be a JSON object"

    def unanswered(self) -> str | None:
        """What is missing."""
        missing = sorted(self.open_calls)
        return f"an assistant message with tool_calls must be followed by the results of {missing}" if missing else None


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Emulated\r\n{lines}\r\n".encode()
