"""The agent `openai` with the real SDK against a server on loopback: turns, tools, reasoning, costs, pictures."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from gateway.agents.base import AttachedFile, Final, SummaryRequest, ToolCalls, ToolResult
from gateway.agents.openai import MAX_CALLS, MAX_ROUNDS
from tests.servers.openai_server import MODEL, OpenAIServer, Says
from tests.unit.agents.bench import FakeTools, agent_for, asked, context, events, text_of, usages

COUNTS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


async def test_the_text_comes_in_pieces_then_the_cost_then_the_whole(server: OpenAIServer) -> None:
    """And the request is what the session is, with its own prompt in front."""
    server.next(Says(["It ", "is ", "so."], usage=COUNTS))
    happened = await events(agent_for(server), context("why?", system_prompt="Be brief."))
    assert text_of(happened) == "It is so."
    assert happened[-1] == Final("It is so.", "stop")
    assert type(happened[-2]).__name__ == "Usage"
    assert server.said() == [("system", "Be brief."), ("user", "why?")]
    assert server.asked[0]["model"] == MODEL
    assert server.asked[0]["stream_options"] == {"include_usage": True}


async def test_tools_run_in_order_and_their_results_are_shown_to_the_model(server: OpenAIServer) -> None:
    """Two calls in one message, their arguments in many chunks, then a third in a second round."""
    server.next(
        Says(["Let me look."], calls=[("a", "look", '{"for": "ünder"}'), ("b", "look", "{}")], split=3),
        Says(calls=[("c", "look", '{"more": [1, 2]}')]),
        Says(["Found."]),
    )
    tools = FakeTools()
    happened = await events(agent_for(server), context(tools=tools))
    assert tools.calls == [("look", {"for": "ünder"}), ("look", {}), ("look", {"more": [1, 2]})]
    told = [event for event in happened if isinstance(event, ToolCalls | ToolResult | Final)]
    assert [type(event).__name__ for event in told] == [
        *("ToolCalls", "ToolResult", "ToolResult"),
        *("ToolCalls", "ToolResult", "Final"),
    ]
    assert told[0] == ToolCalls(
        [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"for": "ünder"}'}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
        "Let me look.",
    )
    roles = [message["role"] for message in server.asked[2]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert server.refusals == []


async def test_calls_that_no_provider_should_make_are_answered_and_stay_valid(server: OpenAIServer) -> None:
    """Arguments that are no JSON, no id, an id used before, no name; the model is told and goes on."""
    server.next(
        Says(calls=[("a", "look", '{"cut": "of'), ("", "look", "[1]"), ("a", "", "")]),
        Says(calls=[("a", "look", "{}")]),
        Says(["Done."]),
    )
    tools = FakeTools()
    happened = await events(agent_for(server), context(tools=tools))
    results = [event for event in happened if isinstance(event, ToolResult)]
    assert "no JSON object" in results[0].content
    assert "no JSON object" in results[1].content
    assert [name for name, _ in tools.calls] == ["unnamed", "look"]
    assert len({result.call_id for result in results}) == 4
    assert server.refusals == []
    assert happened[-1] == Final("Done.", "stop")


async def test_the_rounds_and_calls_of_a_turn_are_bounded(server: OpenAIServer) -> None:
    """In the end the model has to answer with what it knows; calls beyond the limit are not run."""
    for number in range(MAX_ROUNDS):
        server.next(Says(calls=[(f"c{number}.{call}", "look", "{}") for call in range(MAX_CALLS + 1)]))
    server.next(Says(["That is all."]))
    tools = FakeTools()
    happened = await events(agent_for(server), context(tools=tools))
    assert happened[-1] == Final("That is all.", "stop")
    assert len(tools.calls) == MAX_ROUNDS * MAX_CALLS
    assert [request.get("tool_choice") for request in server.asked[-2:]] == [None, "none"]
    assert len(usages(happened)) == MAX_ROUNDS + 1


async def test_a_model_that_never_stops_calling_ends_all_the_same(server: OpenAIServer) -> None:
    """Whatever it was told."""
    server.always(Says(["Hm. "], calls=[("x", "look", "{}")]))
    happened = await events(agent_for(server), context())
    assert happened[-1] == Final("Hm. ", "stop")
    assert len(server.asked) == MAX_ROUNDS + 1


async def test_reasoning_is_kept_in_its_fields_and_given_back(server: OpenAIServer) -> None:
    """Pieces are joined as they belong; empty stays empty; in the same turn and as later turns have it."""
    thinking: list[dict[str, Any]] = [
        {"reasoning": "First ", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "First "}]},
        {"reasoning": "this.", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "this."}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "sig"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "xyz"}]},
    ]
    server.next(
        Says(deltas=thinking, calls=[("a", "look", "{}")]),
        Says(["So."], deltas=[{"reasoning_content": ""}]),
    )
    happened = await events(agent_for(server), context())
    details = [
        {"type": "reasoning.text", "index": 0, "text": "First this.", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz"},
    ]
    called = next(event for event in happened if isinstance(event, ToolCalls))
    assert called.reasoning is not None
    assert (called.reasoning.text, called.reasoning.content) == ("First this.", None)
    assert called.reasoning.details == details
    final = happened[-1]
    assert isinstance(final, Final)
    assert final.reasoning is not None
    assert (final.reasoning.text, final.reasoning.content, final.reasoning.details) == (None, "", None)
    given_back = server.asked[1]["messages"][1]
    assert (given_back["reasoning"], given_back["reasoning_details"]) == ("First this.", details)
    assert "reasoning_content" not in given_back


async def test_the_stored_history_goes_back_without_what_is_ours(server: OpenAIServer) -> None:
    """Why an answer ended and the items of another protocol stay here; reasoning goes back as it came."""
    earlier = {
        "role": "assistant",
        "content": "Before.",
        "finish_reason": "stop",
        "reasoning_content": "thought",
        "codex_reasoning_items": [1],
    }
    await events(agent_for(server), context("and now?", asked("first"), earlier))
    assert server.asked[0]["messages"][1] == {"role": "assistant", "content": "Before.", "reasoning_content": "thought"}


async def test_sentences_about_failures_are_not_put_into_the_models_mouth(server: OpenAIServer) -> None:
    """What was asked then is asked with what is asked now; parts stay parts."""
    failed = {"role": "assistant", "content": "The host cannot be reached.", "finish_reason": "error"}
    parts = {"role": "user", "content": [{"type": "text", "text": "second"}]}
    earlier = [asked("first"), failed, parts, failed]
    await events(agent_for(server), context("third", *earlier))
    texts = [{"type": "text", "text": text} for text in ("first", "second", "third")]
    assert server.said() == [("user", texts)]
    await events(agent_for(server), context("third", asked("first"), failed))
    assert server.said() == [("user", "first\n\nthird")]


async def test_a_history_that_begins_with_the_agent_gets_a_word_in_front(server: OpenAIServer) -> None:
    """Strict providers want the person to begin."""
    await events(agent_for(server), context("yes", {"role": "assistant", "content": "Shall I?"}, system_prompt="p"))
    assert [role for role, _ in server.said()] == ["system", "user", "assistant", "user"]
    assert server.refusals == []


@pytest.mark.parametrize(
    ("counts", "spent"),
    [
        ({"prompt_tokens": 1000, "completion_tokens": 100}, (1000, 100, 0, 0, 0)),
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            (300, 100, 600, 100, 40),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 35,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            (10, 25, 0, 0, 20),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4}, (6, 5, 4, 0, 0)),
        ({"prompt_tokens": None, "completion_tokens": "many", "prompt_tokens_details": 7}, (0, 0, 0, 0, 0)),
        (None, (0, 0, 0, 0, 0)),
    ],
)
async def test_the_cost_is_what_the_server_says_in_our_columns(
    server: OpenAIServer, counts: dict[str, Any] | None, spent: tuple[int, ...]
) -> None:
    """The cache beside the input, reasoning inside the output; a server that tells nothing is a call all the same."""
    server.next(Says(["x"], usage=counts))
    (usage,) = usages(await events(agent_for(server), context()))
    assert spent == (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )
    assert (usage.model, usage.provider, usage.base_url) == (MODEL, "127.0.0.1", server.base_url)


async def test_usage_told_twice_counts_once_and_ids_told_twice_are_two_calls(server: OpenAIServer) -> None:
    """Some servers report running totals, some count their ids from one after each start."""
    server.next(Says(["x"], usage=COUNTS, times=2, response_id="chatcmpl-1"))
    server.next(Says(["y"], usage=COUNTS, response_id="chatcmpl-1"))
    agent = agent_for(server)
    first, second = [usages(await events(agent, context())) for _ in range(2)]
    assert [usage.input_tokens for usage in first] == [1000]
    assert first[0].request_id.startswith("chatcmpl-1#")
    assert first[0].request_id != second[0].request_id


async def test_pictures_are_shown_in_their_turn_only_and_only_if_wanted(server: OpenAIServer, tmp_path: Path) -> None:
    """What cannot be read or is no picture is left out."""
    picture = tmp_path / "picture"
    picture.write_bytes(b"\x89PNG")
    files = [
        AttachedFile(picture, "a.png", "image/png", 4),
        AttachedFile(tmp_path / "gone", "b.png", "image/png", 4),
        AttachedFile(picture, "c.pdf", "application/pdf", 4),
        AttachedFile(picture, "huge.png", "image/png", 50_000_000),
    ]
    await events(agent_for(server), context("look", attachments=files))
    assert server.said()[-1] == ("user", "look")
    await events(agent_for(server, images=True), context("look", attachments=files))
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
    assert server.said()[-1][1] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


async def test_what_is_said_meanwhile_is_taken_in_between_two_requests(server: OpenAIServer) -> None:
    """After the results of all calls, before the model is asked again."""

    class Said:
        async def take(self) -> list[str]:
            return ["also this", "and that"]

    server.next(Says(calls=[("a", "look", "{}")]), Says(["Both."]))
    await events(agent_for(server), context(steering=Said()))
    assert server.said(1)[-1] == ("user", "also this\n\nand that")


async def test_cancelling_closes_the_connection(server: OpenAIServer) -> None:
    """At once, in the middle of a reply."""
    server.next(Says(["one ", "two"], gate=asyncio.Event()))
    seen = asyncio.Event()

    async def work() -> None:
        async for _ in agent_for(server).run(context()):
            seen.set()

    task = asyncio.create_task(work())
    async with asyncio.timeout(10):
        await seen.wait()
        server.closed.clear()
        task.cancel()
        await asyncio.wait({task})
        await server.closed.wait()
    assert task.cancelled()


async def test_a_summary_is_asked_for_beside_the_turn(server: OpenAIServer) -> None:
    """The history goes as material; the limit holds; what it cost comes with it."""
    server.next(Says(["A summary, " * 10], usage=COUNTS))
    history = [
        asked("Where is the key?"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": "under the mat"},
    ]
    written = await agent_for(server).summarize(SummaryRequest("s", history, focus="the key", limit=30))
    assert written.text == "A summary, A summary, A summary, "[:30]
    assert written.usage[0].input_tokens == 1000
    told = server.said()
    assert [role for role, _ in told] == ["system", "user"]
    assert "the key" in told[0][1]
    assert "under the mat" in told[1][1]
    assert "tools" not in server.asked[0]


@pytest.mark.parametrize(
    ("said", "name"),
    [("“Where the key is.”\n", "Where the key is"), ("**Key**", "Key"), ("\n\n", None), ("x" * 300, "x" * 99 + "…")],
)
async def test_a_title_is_one_line_without_marks(server: OpenAIServer, said: str, name: str | None) -> None:
    """None when there is none."""
    server.next(Says([said]))
    written = await agent_for(server).title([asked("Where is the key?"), {"role": "assistant", "content": "There."}])
    assert (written.text if written is not None else None) == name
