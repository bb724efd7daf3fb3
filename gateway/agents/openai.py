"""The agent `openai`: a model behind any address that speaks OpenAI's chat protocol.

Contract: see `gateway.agents.base`. The text is told as it comes; tools run one after another, each result stored
before the next; what is said meanwhile is taken in between two requests. What each request cost is told before what
came of it. A reply that broke in the middle is asked for again while nothing of it was shown; once something was, it
is kept, and says that it is not whole.
Failure: an AgentError with a sentence for the person. Limits: `MAX_ROUNDS` rounds of tools in a turn, `MAX_CALLS`
calls in a round; after that the model has to answer with what it knows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from gateway.agents import prompts
from gateway.agents.base import AgentError, Final, TextDelta, ToolCalls, ToolResult, Written
from gateway.agents.openai_errors import Broken
from gateway.agents.openai_link import Link
from gateway.agents.openai_reply import Reply
from gateway.agents.openai_request import request_messages
from gateway.phrases import one_line

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from config import Agent as AgentSettings
    from gateway.agents.base import AgentContext, AgentEvent, Birth, SummaryRequest, Usage
    from gateway.agents.openai_reply import Call

__all__ = ["MAX_CALLS", "MAX_ROUNDS", "OpenAIAgent"]

MAX_ROUNDS = 8
MAX_CALLS = 8
#: Times a reply is asked for again that broke before anything of it was shown.
_AGAIN = 2
_TITLE_LENGTH = 100

_EMPTY = "The model gave an empty answer. Ask again, or put it differently."
_ONLY_THOUGHT = "The model spent its whole answer on thinking and said nothing. Ask again, or ask for less at once."
_FILTERED = "The content filter of the model's provider refused an answer. Say it in other words."
_CUT = "(Cut off here: the model reached its limit for one answer. Say “go on” for the rest.)"
_HALF = "(The line to the model broke here; this is not the whole answer. Ask again for the rest.)"
_HALF_FILTERED = "(The content filter of the model's provider stopped the answer here.)"
_NOT_RUN = f"Not run: a message may call at most {MAX_CALLS} tools. Call fewer at once."
_UNREADABLE = "The arguments of this call are no JSON object. Call again with valid JSON."


class OpenAIAgent:
    """One model behind one address. settings: the section `agent`, complete for this kind."""

    steerable = True

    def __init__(self, settings: AgentSettings) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key is not None else None
        self.model = settings.model or ""
        self._link = Link(settings.base_url, key, self.model)
        self._images = settings.images
        self._instructions = settings.instructions

    def system_prompt(self, birth: Birth) -> str:
        """See `gateway.agents.base.Prompting`."""
        return prompts.system_prompt(birth, self._instructions)

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn."""
        messages = await request_messages(context, images=self._images)
        async with self._link.client() as client:
            for left in range(MAX_ROUNDS, -1, -1):
                reply = Reply()
                replying = self._replied(client, messages, context.tools.definitions, may_call=left > 0)
                async with aclosing(replying) as events:
                    async for event in events:
                        if isinstance(event, Reply):
                            reply = event
                        else:
                            yield event
                reply.finish_calls(_known_ids(messages))
                if not reply.calls or not left:
                    yield _final(reply)
                    return
                yield ToolCalls([call.stored() for call in reply.calls], reply.text or None, reply.reasoning)
                messages.append(reply.as_message())
                for number, call in enumerate(reply.calls):
                    result = await _result(context, call) if number < MAX_CALLS else _error(_NOT_RUN)
                    yield ToolResult(call.call_id, call.name, result)
                    messages.append({"role": "tool", "tool_call_id": call.call_id, "content": result})
                if context.steering is not None:
                    said = await context.steering.take()
                    messages += [{"role": "user", "content": "\n\n".join(said)}] if said else []

    async def summarize(self, request: SummaryRequest) -> Written:
        """See `gateway.agents.base.Agent`."""
        written = await self._written(prompts.summary_request(request))
        text = written.text.strip()
        if not text:
            raise AgentError(_EMPTY)
        return Written(text[: request.limit], written.usage)

    async def title(self, history: Sequence[Mapping[str, Any]]) -> Written | None:
        """See `gateway.agents.base.Titling`."""
        written = await self._written(prompts.title_request(history))
        lines = [line for line in written.text.splitlines() if line.strip()]
        name = one_line(lines[0], _TITLE_LENGTH).strip("\"'“”„«»*#`. ") if lines else ""
        return Written(name, written.usage) if name else None

    async def _written(self, messages: Sequence[Mapping[str, Any]]) -> Written:
        """A text beside a turn, whole or not at all."""
        reply = Reply()
        async with self._link.client() as client, aclosing(self._link.stream(client, messages, reply)) as pieces:
            try:
                async for _ in pieces:
                    pass
            except Broken as error:
                raise AgentError(f"The line to {self._link.host} broke. Try again in a while.") from error
        return Written(reply.text, [self._usage(reply)])

    async def _replied(
        self,
        client: AsyncOpenAI,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        may_call: bool,
    ) -> AsyncGenerator[TextDelta | Usage | Reply, None]:
        """One reply: its text as it comes, what it cost, then all of it. Asked again if nothing of it was shown yet."""
        for left in range(_AGAIN, -1, -1):
            reply = Reply()
            broken: Broken | None = None
            try:
                async with aclosing(self._link.stream(client, messages, reply, tools, may_call=may_call)) as pieces:
                    async for piece in pieces:
                        yield TextDelta(piece)
            except Broken as error:
                broken = error
            yield self._usage(reply)
            if broken is None:
                yield reply
                return
            if reply.text:
                reply.finish_reason = "broken"
                reply.calls.clear()
                yield reply
                return
            if not left:
                raise AgentError(f"The line to {self._link.host} broke again and again. Try in a while.") from broken

    def _usage(self, reply: Reply) -> Usage:
        return reply.usage(self.model, self._link.host, self._link.base_url)


async def _result(context: AgentContext, call: Call) -> str:
    arguments = call.parsed()
    return _error(_UNREADABLE) if arguments is None else await context.tools.call(call.name, arguments)


def _error(sentence: str) -> str:
    return json.dumps({"success": False, "error": sentence}, ensure_ascii=False)


def _known_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def _final(reply: Reply) -> Final:
    """The last reply of a turn as its answer.

    Raises:
        AgentError: there is nothing in it for the person.
    """
    reason = reply.finish_reason or "stop"
    if not reply.text.strip():
        if reason == "content_filter":
            raise AgentError(_FILTERED)
        raise AgentError(_ONLY_THOUGHT if reply.thought_only else _EMPTY)
    notes = {"length": _CUT, "broken": _HALF, "content_filter": _HALF_FILTERED}
    text = f"{reply.text.rstrip()}\n\n{notes[reason]}" if reason in notes else reply.text
    return Final(text, reason if reason in notes else "stop", reply.reasoning)
