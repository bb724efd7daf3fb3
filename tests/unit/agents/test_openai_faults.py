"""What a person reads when the model's server does not do what it should; and what is kept then."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from pydantic import SecretStr

from gateway.agents.base import AgentError, Final, SummaryRequest, ToolCalls
from tests.servers.openai_server import KEY, OpenAIServer, Says, fault_in
from tests.unit.agents.bench import agent_for, asked, context, events, text_of, usages


def refusal(message: str, code: str | None = None) -> dict[str, Any]:
    """An error as servers write it."""
    return {"error": {"message": message, "code": code}}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK does not wait between its tries."""
    monkeypatch.setattr("openai._base_client.BaseClient._calculate_retry_timeout", lambda *_: 0.0)


async def sentence_of(server: OpenAIServer, **changes: Any) -> str:
    """What the person is told."""
    with pytest.raises(AgentError) as told:
        await events(agent_for(server, **changes), context())
    sentence = str(told.value)
    assert KEY not in sentence
    assert sentence.endswith(".")
    return sentence


async def test_a_wrong_key_is_told_and_not_shown(server: OpenAIServer) -> None:
    """Not even as the server repeats it."""
    sentence = await sentence_of(server, api_key=SecretStr("sk-wrong-key"))
    assert "does not accept the key" in sentence
    assert "`agent.api_key`" in sentence
    assert "sk-wrong" not in sentence


async def test_a_server_that_is_not_there(server: OpenAIServer) -> None:
    """The address is told, since it may be the fault."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        assert f"cannot be reached: no network, or nothing serves {address}" in await sentence_of(
            server, base_url=address
        )


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (404, refusal("The model `x` does not exist", "model_not_found"), "does not know the model “test-model”"),
        (404, None, "`agent.base_url` is not its address"),
        (400, refusal("model not found, try pulling it first"), "does not know the model"),
        (400, refusal("This model's maximum context length is 8192 tokens", "context_length_exceeded"), "`/compress`"),
        (400, refusal("the request exceeds the available context size"), "`/compress`"),
        (400, refusal("The response was filtered by the content management policy"), "content filter"),
        (400, refusal(f"strange parameter with {KEY}"), "strange parameter with (key)"),
        (403, refusal("no"), "does not let this key use test-model"),
        (429, refusal("You exceeded your current quota", "insufficient_quota"), "no credit left"),
        (402, refusal("Insufficient credits"), "no credit left"),
        (429, refusal("slow down"), "takes no more requests for now; try in 7 seconds"),
        (500, refusal("oops"), "has trouble of its own (error 500)"),
        (503, None, "has trouble of its own (error 503)"),
    ],
)
async def test_each_refusal_has_a_sentence_with_what_to_do(
    server: OpenAIServer, status: int, error: Any, words: str
) -> None:
    """Whatever the server calls it."""
    server.always(Says(status=status, error=error, headers={"retry-after": "7"}))
    assert words in await sentence_of(server)
    assert len(server.asked) <= 3


async def test_a_short_trouble_is_not_noticed(server: OpenAIServer) -> None:
    """Twice too many requests, then an answer."""
    server.next(Says(status=429, headers={"retry-after": "1"}), Says(status=500), Says(["There."]))
    assert (await events(agent_for(server), context()))[-1] == Final("There.", "stop")


async def test_an_empty_answer_says_so(server: OpenAIServer) -> None:
    """And one in which all was thinking says that."""
    server.next(Says(["  \n"]), Says(deltas=[{"reasoning_content": "Hm."}], finish="length"))
    assert "empty answer" in await sentence_of(server)
    assert "on thinking" in await sentence_of(server)


async def test_an_answer_that_was_cut_off_is_kept_and_says_so(server: OpenAIServer) -> None:
    """With what to say for the rest."""
    server.next(Says(["Once upon a"], finish="length"))
    final = (await events(agent_for(server), context()))[-1]
    assert isinstance(final, Final)
    assert final.finish_reason == "length"
    assert final.text.startswith("Once upon a\n\n(Cut off here")


async def test_a_content_filter_is_told(server: OpenAIServer) -> None:
    """With what was said before it, or alone."""
    server.next(Says(["So far"], finish="content_filter"), Says(finish="content_filter"))
    final = (await events(agent_for(server), context()))[-1]
    assert isinstance(final, Final)
    assert final.text.startswith("So far\n\n(The content filter")
    assert "content filter" in await sentence_of(server)


async def test_a_refusal_in_its_own_field_is_an_answer(server: OpenAIServer) -> None:
    """Some models say no there."""
    server.next(Says(deltas=[{"refusal": "I will not."}]))
    assert (await events(agent_for(server), context()))[-1] == Final("I will not.", "stop")


@pytest.mark.parametrize("fault", [{"cut": 2}, {"finish": None}, {"garbage": "{no json"}])
async def test_a_stream_that_breaks_in_the_middle_is_kept_and_says_so(
    server: OpenAIServer, fault: dict[str, Any]
) -> None:
    """Reset, ended without a word, or no JSON: what was shown is not shown again."""
    server.next(Says(["It was ", "a dark ", "and"], **fault))
    happened = await events(agent_for(server), context())
    final = happened[-1]
    assert isinstance(final, Final)
    assert final.finish_reason == "broken"
    shown = text_of(happened)
    assert shown.startswith("It was ")
    assert final.text.startswith(f"{shown.rstrip()}\n\n(The line to the model broke here")
    assert len(server.asked) == 1


@pytest.mark.parametrize("fault", [{"cut": 3}, {"finish": None}, {"garbage": "[1]"}, {"garbage": '{"error": {}}'}])
async def test_a_stream_that_breaks_before_anything_was_shown_is_asked_for_again(
    server: OpenAIServer, fault: dict[str, Any]
) -> None:
    """In the middle of a tool call, say; the half call is never run, and each request is counted."""
    server.next(Says(calls=[("a", "look", '{"for": "a long time"}')], **fault), Says(["Whole."]))
    happened = await events(agent_for(server), context())
    assert happened[-1] == Final("Whole.", "stop")
    assert not [event for event in happened if isinstance(event, ToolCalls)]
    assert len(usages(happened)) == len(server.asked) == 2


async def test_a_line_that_always_breaks_is_given_up(server: OpenAIServer) -> None:
    """After three tries."""
    server.always(Says(deltas=[{"role": "assistant"}], finish=None))
    assert "broke again and again" in await sentence_of(server)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "body", [b"<html>Welcome</html>", b'{"choices": []}', b"", b"data: {broken\n\n", b"data: 7\n\n"]
)
async def test_something_else_behind_the_address_is_told(server: OpenAIServer, body: bytes) -> None:
    """A page, an answer that is no stream, nothing at all, rubbish."""
    server.always(Says(body=body, headers={"content-type": "text/event-stream"}))
    sentence = await sentence_of(server)
    assert "could not be used" in sentence or "broke again" in sentence


@pytest.mark.parametrize(
    ("lacks", "told"),
    [("stream_options", "stream_options"), ("tools", "registry.example/gemma:2b does not support tools")],
)
async def test_what_a_server_does_not_take_is_left_out_from_then_on(
    server: OpenAIServer, lacks: str, told: str
) -> None:
    """One refused request, then none."""
    server.next(Says(status=400, error=refusal(told)))
    agent = agent_for(server)
    assert (await events(agent, context()))[-1] == Final("re: hello", "stop")
    assert (await events(agent, context()))[-1] == Final("re: hello", "stop")
    assert [lacks in request for request in server.asked] == [True, False, False]


async def test_reasoning_that_a_server_does_not_take_back_is_left_out(server: OpenAIServer) -> None:
    """As after a change of the model."""
    server.next(Says(status=400, error=refusal("reasoning_content is not permitted in input messages")))
    earlier = [asked("a"), {"role": "assistant", "content": "b", "reasoning_content": "thought"}]
    assert (await events(agent_for(server), context("c", *earlier)))[-1] == Final("re: c", "stop")
    assert ["reasoning_content" in request["messages"][1] for request in server.asked] == [True, False]


async def test_an_endless_answer_ends(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the model had reached its limit."""
    monkeypatch.setattr("gateway.agents.openai_link._MOST_CHARACTERS", 1000)
    server.next(Says(["word " * 50] * 100))
    final = (await events(agent_for(server), context()))[-1]
    assert isinstance(final, Final)
    assert final.finish_reason == "length"
    assert len(final.text) < 2000


async def test_a_summary_that_cannot_be_whole_is_none(server: OpenAIServer) -> None:
    """Broken, empty or refused: an error, nothing half."""
    server.next(Says(["Half a"], finish=None), Says([" "]), Says(status=401, error=refusal("no")))
    agent = agent_for(server)
    for _ in range(3):
        with pytest.raises(AgentError):
            await agent.summarize(SummaryRequest("s", [asked("x")]))


async def test_two_turns_at_once_have_a_line_each(server: OpenAIServer) -> None:
    """One that hangs does not hold up the other."""
    gate = asyncio.Event()
    server.next(Says(["slow ", "one"], gate=gate), Says(["fast one"]))
    agent = agent_for(server)
    slow = asyncio.create_task(events(agent, context("first")))
    await server.until_asked(1)
    assert text_of(await events(agent, context("second"))) == "fast one"
    gate.set()
    assert text_of(await slow) == "slow one"


def test_the_judge_of_histories_finds_faults() -> None:
    """What the other tests rely on."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": json.dumps({})}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    assert fault_in([asked("q"), called, result]) is None
    wrongs: list[list[dict[str, Any]]] = [
        [called, result],
        [asked("q"), called],
        [asked("q"), called, asked("r")],
        [asked("q"), result],
        [asked("q"), called, result, called, result],
        [asked("q"), {"role": "assistant", "content": ""}],
        [asked("q"), {"role": "assistant", "content": "x", "finish_reason": "stop"}],
    ]
    assert all(fault_in(wrong) is not None for wrong in wrongs)


async def test_a_call_with_a_name_that_servers_refuse_is_shown_to_them_mended(server: OpenAIServer) -> None:
    """Some models make up names and numbers that no JSON has; the conversation goes on all the same."""
    odd = [("a", "look at: it", "{}"), ("b", "l" * 70, "{}"), ("c", "look", '{"for": NaN}')]
    server.next(Says(calls=odd), Says(["There."]))
    happened = await events(agent_for(server), context())
    assert happened[-1] == Final("There.", "stop")
    assert server.refusals == []
    names = [call["function"]["name"] for call in server.asked[1]["messages"][1]["tool_calls"]]
    assert names == ["look_at_it", "l" * 64, "look"]


async def test_half_a_character_does_not_end_the_turn(server: OpenAIServer) -> None:
    """In a text and in a call, as servers send it that cut between the halves of an escaped character."""
    server.next(Says(["Well \ud83d", "\ude00 \ud83d"], calls=[("a", "look", '{"for": "\ud83d"}')]), Says(["There."]))
    happened = await events(agent_for(server), context())
    assert happened[-1] == Final("There.", "stop")
    assert text_of(happened) == "Well \N{GRINNING FACE} There."
    assert (
        server.asked[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
        == '{"for": "\N{REPLACEMENT CHARACTER}"}'
    )
