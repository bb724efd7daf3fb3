"""The built-in agent: a searchable notebook over all entrances, without a key and without a network.

Contract: deterministic. What it is told it confirms, naming what was kept (the message itself is in the store already,
with the words of the text files that came with it; a question in such a file is not asked of it).
What it is asked it answers from what was said in the sessions that the asker may see: it calls the `session_search`
tool, quotes the best passages with session, place and date, or says plainly that there is nothing. First all words of
the question are looked for, which the tool itself relaxes to any of them; if nothing matches the whole question, once
more other forms of the words. A question without a topic ("what did we talk about?") lists the
latest conversations. It answers in the language of the message where it knows it.

Failure: a search that fails is an AgentError with the tool's sentence. Limits: two searches per question, four quotes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from gateway.agents.base import (
    AgentContext,
    AgentError,
    AgentEvent,
    Final,
    SummaryRequest,
    TextDelta,
    ToolCalls,
    ToolResult,
    Written,
)
from gateway.agents.digest import digest
from gateway.agents.languages import Language
from gateway.agents.passages import Passage, other_forms, passages_in, rank, whole
from gateway.agents.phrasing import PHRASES, source_name
from gateway.agents.questions import Topic, asks, language_of, topic
from gateway.agents.quoting import block, excerpt, inert
from gateway.phrases import one_line

__all__ = ["RecallAgent"]

SEARCH_TOOL = "session_search"

_QUOTES = 4
_QUOTE_LENGTH = 500
_EXCERPT_LENGTH = 120
_TITLE_LENGTH = 60
_CONVERSATIONS = 10
_LISTED = 5
#: Everything may have been said in this very conversation; only the passages are needed.
_WHERE = {"limit": _CONVERSATIONS, "include_current": True, "window": 0}


class RecallAgent:
    """See the module. Holds no state: one object serves any number of turns at once."""

    @property
    def model(self) -> str:
        """Name stored in `sessions.model`."""
        return "recall"

    @property
    def needs_history(self) -> bool:
        """It searches the history instead of reading it."""
        return False

    async def run(self, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Work one turn: confirm what was told, or search and answer."""
        said = context.text if context.words is None else context.words
        language = language_of(said)
        if not asks(said):
            answer = _confirmation(context.text, language)
        else:
            wanted = topic(said)
            passages: list[Passage] = []
            results: list[Mapping[str, Any]] = []
            for number, arguments in enumerate(_searches(wanted)):
                call_id = _call_id(context, number)
                yield _tool_call(call_id, arguments)
                content = await context.tools.call(SEARCH_TOOL, arguments)
                yield ToolResult(call_id, SEARCH_TOOL, content)
                results.append(_read(content, language))
                passages = rank([*passages, *passages_in(results[-1])], said, wanted, _QUOTES)
                if passages and whole(wanted.words, passages[0].text):
                    break
            answer = _answer(passages, results[-1], wanted, language)
        for piece in _pieces(answer):
            yield TextDelta(piece)
        yield Final(answer)

    async def summarize(self, request: SummaryRequest) -> Written:
        """Summarise in the conversation's own words."""
        return Written(digest(request.history, limit=request.limit, focus=request.focus))


def _searches(wanted: Topic) -> Iterator[dict[str, Any]]:
    """Arguments of the searches for a topic, each to be tried if those before it found no whole match."""
    if wanted.words:
        words = " ".join(_term(word) for word in wanted.words)
        yield {"query": words, "role_filter": "user", **_WHERE}
    if wanted.words and not wanted.weak:
        forms = " ".join(_term(word) for word in other_forms(wanted.words))
        yield {"query": forms, "role_filter": "user,assistant", **_WHERE}
    else:
        yield {"limit": _LISTED}


def _term(word: str) -> str:
    """Write a word so that the query syntax takes it as nothing else."""
    if word.removesuffix("*").isalnum() and word not in {"AND", "OR", "NOT"}:
        return word
    return '"' + word.replace('"', " ") + '"'


def _call_id(context: AgentContext, number: int) -> str:
    """Return an id that no other call of any turn has, also when an interrupted turn is run again."""
    name = hashlib.sha256(context.turn_id.encode("utf-8", "replace")).hexdigest()[:16]
    used = {call.get("id") for message in context.conversation for call in message.get("tool_calls") or ()}
    attempt = 0
    while (call_id := f"call_{name}_{attempt}_{number}") in used:
        attempt += 1
    return call_id


def _tool_call(call_id: str, arguments: Mapping[str, Any]) -> ToolCalls:
    function = {"name": SEARCH_TOOL, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return ToolCalls([{"id": call_id, "type": "function", "function": function}])


def _read(content: str, language: Language) -> Mapping[str, Any]:
    """Read the tool's JSON; raises AgentError when the search failed."""
    try:
        result = json.loads(content)
    except ValueError:
        result = None
    if isinstance(result, dict) and result.get("success"):
        return result
    reason = result.get("error") if isinstance(result, dict) else None
    raise AgentError(PHRASES[language].failed.format(inert(str(reason or content)[:_QUOTE_LENGTH])))


def _confirmation(text: str, language: Language) -> str:
    kept = inert(one_line(text, _EXCERPT_LENGTH))
    return PHRASES[language].kept.format(kept) if kept else PHRASES[language].noted


def _answer(passages: list[Passage], last: Mapping[str, Any], wanted: Topic, language: Language) -> str:
    phrases = PHRASES[language]
    if passages:
        complete = whole(wanted.words, passages[0].text)
        quotes = [_quote(passage, wanted, language) for passage in passages]
        return "\n\n".join([phrases.found if complete else phrases.close, *quotes])
    if not wanted.words or wanted.weak:
        listed = [line for found in last.get("results") or () if (line := _listed(found, language))]
        return "\n".join([phrases.recent, "", *listed]) if listed else phrases.empty
    return phrases.nothing.format(inert(one_line(" ".join(wanted.words), _EXCERPT_LENGTH)))


def _quote(passage: Passage, wanted: Topic, language: Language) -> str:
    room = f", {passage.room}" if passage.room else ""
    said = [passage.title, f"{source_name(passage.source, language)}{room}", passage.when]
    source = inert(" · ".join(one_line(part, _TITLE_LENGTH) for part in said if part))
    return block(excerpt(passage.text, wanted.words, _QUOTE_LENGTH), f"— {source}")


def _listed(found: Any, language: Language) -> str:
    if not isinstance(found, Mapping):
        return ""
    name = one_line(str(found.get("title") or found.get("preview") or found.get("session_id") or ""), _TITLE_LENGTH)
    details = [source_name(str(found.get("source") or ""), language), str(found.get("when") or "")]
    return "- " + inert(f"{name} ({', '.join(detail for detail in details if detail)})")


def _pieces(answer: str) -> Iterator[str]:
    """Cut an answer into the paragraphs that are shown one after another."""
    paragraphs = answer.split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        yield paragraph if number == 0 else f"\n\n{paragraph}"
