"""The line to a server that speaks OpenAI's chat protocol: one streamed reply per call, errors as sentences.

Contract: `Link.stream` yields the pieces of a reply's text and fills the `Reply`. Everything that can go wrong is an
`AgentError` with a sentence for the person, or `Broken` when the line broke in the middle; neither ever holds the key.
What a server turns out not to take (`stream_options`, tools, reasoning given back) is left out from then on.
Cancelling closes the connection.
Limits: before the first byte the SDK tries again at most twice and waits as the server asks; at most 4 million
characters of one reply are read; a server that is silent for five minutes is given up. The SDK is imported, and
the certificates are read, once per process and off the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel

from gateway.agents.base import AgentError
from gateway.agents.openai_errors import Broken, refused, sentence

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from gateway.agents.openai_reply import Reply

__all__ = ["Link"]

_RETRIES: Final = 2
_CONNECT_SECONDS: Final = 10.0
_SILENCE_SECONDS: Final = 300.0
_MOST_CHARACTERS: Final = 4_000_000

#: What may be left out, and the words by which a server says that it does not take it.
_OPTIONAL: Final = {
    "stream_options": ("stream_options", "include_usage"),
    "tools": ("support tool", "tool use", "tool choice", "tools param", "tools is not", "function calling"),
    "reasoning": ("reasoning",),
}
_NOT_ABOUT_THE_REQUEST: Final = frozenset({401, 402, 403, 429})
_REASONING: Final = ("reasoning", "reasoning_content", "reasoning_details")


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked. may_call: whether the model may call tools now."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    may_call: bool


@dataclass(slots=True)
class Link:
    """One address with its key and model."""

    base_url: str
    api_key: str | None
    model: str
    _left_out: set[str] = field(default_factory=set)
    _certificates: ssl.SSLContext | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def host(self) -> str:
        """The server's name, for people and for the records."""
        return urlsplit(self.base_url).hostname or self.base_url

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncOpenAI]:
        """A client for the calls of one turn."""
        async with self._lock:
            made = await asyncio.to_thread(self._made)
        async with made as client:
            yield client

    def _made(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout  # noqa: PLC0415 - heavy, and only needed here

        if self._certificates is None:
            self._certificates = ssl.create_default_context()
        timeout = Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)
        return AsyncOpenAI(
            # The SDK insists on a key; a server without one does not look.
            api_key=self.api_key or "none",
            base_url=self.base_url,
            max_retries=_RETRIES,
            timeout=timeout,
            http_client=DefaultAsyncHttpxClient(verify=self._certificates, timeout=timeout),
        )

    async def stream(
        self,
        client: AsyncOpenAI,
        messages: Sequence[Mapping[str, Any]],
        reply: Reply,
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str, None]:
        """Ask once; yield the text as it comes. `reply` is whole when this ends.

        tools: those that the model knows; without `may_call` it has to answer in words.
        """
        request = _Request(messages, tools, may_call)
        import openai  # noqa: PLC0415 - it is there by now, see `client`

        while True:
            try:
                async for piece in self._asked(client, request, reply):
                    yield piece
            except openai.APIStatusError as error:
                if error.status_code in _NOT_ABOUT_THE_REQUEST or not self._leaves_out(str(error.message)):
                    raise AgentError(sentence(error, self)) from error
            except (openai.APIError, ValueError) as error:
                if reply.pieces:
                    raise Broken(self.host) from error
                raise AgentError(sentence(error, self)) from error
            else:
                break
        if not reply.pieces:
            raise AgentError(refused(self, "its answer is no stream of OpenAI's protocol"))
        if reply.finish_reason is None:
            raise Broken(self.host)

    async def _asked(self, client: AsyncOpenAI, request: _Request, reply: Reply) -> AsyncIterator[str]:
        stream = await client.chat.completions.create(**self._parameters(request))
        async with stream:
            async for chunk in stream:
                # What a server sends may be no chunk at all; the SDK passes it on as it is.
                known = isinstance(chunk, BaseModel)
                piece = reply.add(chunk.model_dump(exclude_unset=True, warnings=False) if known else {})
                if piece:
                    yield piece
                if reply.size > _MOST_CHARACTERS:
                    reply.finish_reason = "length"
                    return

    def _parameters(self, request: _Request) -> dict[str, Any]:
        parameters: dict[str, Any] = {"model": self.model, "messages": list(request.messages), "stream": True}
        if "reasoning" in self._left_out:
            parameters["messages"] = [_without(message, _REASONING) for message in request.messages]
        if request.tools and "tools" not in self._left_out:
            parameters["tools"] = list(request.tools)
            if not request.may_call:
                parameters["tool_choice"] = "none"
        if "stream_options" not in self._left_out:
            parameters["stream_options"] = {"include_usage": True}
        return parameters

    def _leaves_out(self, told: str) -> bool:
        """Whether the server refused something that it can be asked without, from now on."""
        told = told.casefold()
        for name, words in _OPTIONAL.items():
            if name not in self._left_out and any(word in told for word in words):
                self._left_out.add(name)
                return True
        return False


def _without(message: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}
