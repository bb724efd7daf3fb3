"""The built-in agent: what it confirms, how it searches, what it quotes; over a scripted tool and over a real store."""

# ruff: noqa: RUF001 - messages in other scripts on purpose
from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gateway.agents.base import AgentContext, AgentError, AgentEvent, Final, TextDelta, ToolCalls, ToolResult
from gateway.agents.phrasing import PHRASES, is_own
from gateway.agents.recall import RecallAgent
from gateway.context import Contexts
from session_store import SessionDB, Visibility

OWNER = Visibility(frozenset({"owner"}))
NOTHING_FOUND = json.dumps({"success": True, "results": []})


def found(*texts: str, title: str | None = "Notes", role: str = "user") -> str:
    """A result of the tool: one conversation with these passages."""
    matches = [
        {"id": number, "role": role, "when": "2026-03-04 05:06", "content": text} for number, text in enumerate(texts)
    ]
    return json.dumps({"success": True, "results": [{"title": title, "source": "cli", "matches": matches}]})


@dataclass
class ScriptedTools:
    """Answers the calls one after another, and remembers their arguments."""

    answers: Sequence[str] = (NOTHING_FOUND,)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    definitions: Sequence[Mapping[str, Any]] = ()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Give the next answer; the last one for ever."""
        self.calls.append((name, arguments))
        return self.answers[min(len(self.calls), len(self.answers)) - 1]


async def events_of(
    text: str, tools: ScriptedTools, conversation: Sequence[Mapping[str, Any]] = ()
) -> list[AgentEvent]:
    """All events of one turn."""
    context = AgentContext(
        session_id="s", turn_id="turn", text=text, conversation=conversation, tools=tools, now=1_700_000_000.0
    )
    return [event async for event in RecallAgent().run(context)]


async def answer_to(text: str, *answers: str) -> str:
    """The final answer of one turn."""
    final = (await events_of(text, ScriptedTools(answers or (NOTHING_FOUND,))))[-1]
    assert isinstance(final, Final)
    return final.text


@pytest.mark.parametrize(
    ("text", "confirmation"),
    [
        ("The deploy script is in ops/deploy_prod.sh", "Kept: The deploy script is in ops/deploy_prod.sh"),
        ("部署脚本在 ops 目录", "已记下：部署脚本在 ops 目录"),
        ("Ключ от гаража у соседа", "Записано: Ключ от гаража у соседа"),
        ("Der Schlüssel liegt unter der Matte", "Notiert: Der Schlüssel liegt unter der Matte"),
        ("L'adresse du dentiste est notée ici", "C’est noté : L'adresse du dentiste est notée ici"),
        ("La contraseña del wifi es tortuga", "Anotado: La contraseña del wifi es tortuga"),
        ("  two\n lines ", "Kept: two lines"),
        ("**bold** <b>x</b>", "Kept: \\*\\*bold\\*\\* \\<b>x\\</b>"),
        ("", "Kept."),
    ],
)
async def test_what_is_told_is_confirmed_in_its_language(text: str, confirmation: str) -> None:
    """The confirmation names what was kept, as inert text, and no tool is called."""
    tools = ScriptedTools()
    events = await events_of(text, tools)
    assert events == [TextDelta(confirmation), Final(confirmation)]
    assert tools.calls == []


async def test_a_long_message_is_confirmed_by_its_beginning() -> None:
    """The confirmation stays short."""
    answer = await answer_to("word " * 200)
    assert len(answer) < 140
    assert answer.startswith("Kept: word word")
    assert answer.endswith("…")


async def test_a_question_calls_the_tool_for_real() -> None:
    """The call is yielded with an id and its arguments before it runs, its result after it, the quote at last."""
    tools = ScriptedTools([found("The deploy script is ops/deploy.sh")])
    events = await events_of("where is the deploy script we talked about", tools)
    calls, result, *deltas, final = events
    assert isinstance(calls, ToolCalls)
    (call,) = calls.calls
    assert call["type"] == "function"
    assert call["function"]["name"] == "session_search"
    assert json.loads(call["function"]["arguments"]) == tools.calls[0][1]
    arguments = {"query": "deploy script", "limit": 10, "role_filter": "user", "include_current": True, "window": 0}
    assert tools.calls == [("session_search", arguments)]
    assert result == ToolResult(call["id"], "session_search", tools.answers[0])
    assert isinstance(final, Final)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == final.text
    assert final.text == (
        "I found this:\n\n> The deploy script is ops/deploy.sh\n>\n> — Notes · terminal · 2026-03-04 05:06"
    )


async def test_it_searches_again_for_other_forms_when_nothing_matches_the_whole() -> None:
    """The second search takes beginnings of the words, and what other agents said; a better match is then quoted."""
    tools = ScriptedTools([found("passwords are bad"), found("the wifi password is x")])
    final = (await events_of("what are the wifi passwords?", tools))[-1]
    assert [arguments["query"] for _, arguments in tools.calls] == ["wifi passwords", "wif* passwo*"]
    assert tools.calls[1][1]["role_filter"] == "user,assistant"
    assert isinstance(final, Final)
    assert final.text.startswith("I found this:\n\n> the wifi password is x\n")


async def test_a_partial_match_is_called_one() -> None:
    """What covers only a part of the question is introduced as the closest."""
    answer = await answer_to("where is the deploy script?", found("deploy is on Friday"))
    assert answer.startswith("Nothing matches all of it; this comes closest:\n\n> deploy is on Friday\n")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("where is the deploy script?", "I found nothing about “deploy script”."),
        ("部署脚本在哪里？", "没有找到关于“部署脚本”的内容。"),
        ("Где ключи от гаража?", "Ничего не нашлось по словам «ключи гаража»."),
        ("Wo ist der Schlüssel?", "Ich habe nichts zu „Schlüssel“ gefunden."),
        ("Où est la clé ?", "Je n’ai rien trouvé sur « clé »."),
        ("¿Dónde está la llave?", "No encontré nada sobre «llave»."),
    ],
)
async def test_it_says_plainly_that_there_is_nothing(question: str, answer: str) -> None:
    """One sentence in the language of the question, which names what was looked for."""
    assert await answer_to(question) == answer


async def test_a_question_without_a_topic_lists_the_latest_conversations() -> None:
    """There is nothing to search for, so the tool is asked for what was active last."""
    listed = {
        "title": None,
        "preview": "tea *box*",
        "source": "telegram",
        "when": "2026-03-04 05:06",
        "session_id": "s1",
    }
    tools = ScriptedTools([json.dumps({"success": True, "results": [listed, "odd"]})])
    final = (await events_of("who are we?", tools))[-1]
    assert tools.calls == [("session_search", {"limit": 5})]
    assert final == Final("The latest conversations:\n\n- tea \\*box\\* (Telegram, 2026-03-04 05:06)")
    assert await answer_to("who are we?") == PHRASES["en"].empty


async def test_a_failed_search_is_told_with_its_reason() -> None:
    """The tool's sentence reaches the person, whatever the tool returned."""
    for content, reason in (
        (json.dumps({"success": False, "error": "The disk is full."}), "The disk is full."),
        ("oops", "oops"),
    ):
        with pytest.raises(AgentError, match=reason):
            await answer_to("where is it kept, the tea?", content)


async def test_call_ids_are_new_when_an_interrupted_turn_is_run_again() -> None:
    """An id that the conversation already has is not used twice, and ids do not depend on chance."""
    tools = ScriptedTools([found("tea is here")])
    first = (await events_of("where is tea?", tools))[0]
    again = (await events_of("where is tea?", tools))[0]
    assert isinstance(first, ToolCalls)
    assert first == again
    history: list[Mapping[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": list(first.calls)},
    ]
    second = (await events_of("where is tea?", tools, history))[0]
    assert isinstance(second, ToolCalls)
    assert second.calls[0]["id"] != first.calls[0]["id"]


async def test_quoted_text_cannot_format_the_answer() -> None:
    """Fences, headings, links and HTML in a quote are shown as text, and a long quote is cut."""
    nasty = "tea\n```\n# head\n[x](http://evil)\n<script>\n> q\n" + "y " * 2000
    answer = await answer_to("where is the tea?", found(nasty, title="**T** [a](b)"))
    kinds = {
        child.type
        for token in MarkdownIt("commonmark").parse(answer)
        for child in [token, *(token.children or ())]
        if child.type not in {"inline", "paragraph_open", "paragraph_close", "softbreak", "hardbreak"}
    }
    assert kinds == {"blockquote_open", "blockquote_close", "text"}
    assert len(answer) < 1200


def test_own_sentences_are_recognised_and_others_are_not() -> None:
    """Each beginning is known, so that answers are never quoted as sources."""
    for words in PHRASES.values():
        for sentence in (words.kept, words.noted, words.found, words.close, words.nothing, words.recent, words.empty):
            assert is_own(sentence.format("anything"))
    assert not is_own("The deploy script is in ops")
    assert not is_own("")


@given(
    text=st.text(st.characters(codec=None), max_size=40) | st.text(st.sampled_from("?？哪里 where is*\n`"), max_size=30)
)
def test_no_text_makes_it_raise_and_it_always_says_the_same(text: str) -> None:
    """Any message ends in one non-empty Final, equal each time, and its pieces add up to it."""

    async def twice() -> tuple[list[AgentEvent], list[AgentEvent]]:
        answers = [found("tea is here"), found("more tea")]
        return await events_of(text, ScriptedTools(answers)), await events_of(text, ScriptedTools(answers))

    first, second = asyncio.run(twice())
    assert first == second
    assert isinstance(first[-1], Final)
    assert first[-1].text
    assert "".join(event.text for event in first if isinstance(event, TextDelta)) == first[-1].text
    assert sum(isinstance(event, Final) for event in first) == 1


# --- over a real store ------------------------------------------------------------------------------------------------

NOTES = {
    "ops": [
        "The deploy script is in ops/deploy_prod.sh, run it with --dry-run first",
        "The staging server is called bluebird",
    ],
    "zh": ["部署的时候用 deploy 脚本，放在 ops 目录", "登录服务器用的密码是 abc123"],
    "home": ["Ключ от гаража у соседа Пети", "Der Ersatzschlüssel liegt unter der Fußmatte"],
    "city": ["L'adresse du dentiste : 12 rue des Lilas", "La contraseña del wifi es tortuga"],
}


async def tell(db: SessionDB, session_id: str, text: str) -> str:
    """Run one turn as the gateway does: user message, steps and answer are stored."""
    message_id = await db.append_message(session_id, "user", text)
    context = await Contexts(db, limit=32_000).build(session_id, f"t{message_id}", text, OWNER, message_id)
    answer = ""
    async for event in RecallAgent().run(context):
        if isinstance(event, ToolCalls):
            await db.append_message(session_id, "assistant", tool_calls=event.calls)
        elif isinstance(event, ToolResult):
            await db.append_message(session_id, "tool", event.content, tool_name=event.name, tool_call_id=event.call_id)
        elif isinstance(event, Final):
            answer = event.text
            await db.append_message(session_id, "assistant", answer)
    return answer


@pytest.fixture
async def notebook(db: SessionDB) -> SessionDB:
    """Several sessions of the owner with notes in six languages, and one of somebody else."""
    for name, notes in NOTES.items():
        await db.create_session(name, "cli", "recall", owner="owner", title=None if name == "home" else f"Notes {name}")
        for note in notes:
            await tell(db, name, note)
    await db.create_session("other", "telegram", "recall", owner="p2")
    await db.append_message("other", "user", "The deploy script of somebody else is secret")
    await db.create_session("now", "web", "recall", owner="owner")
    return db


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("where is the deploy script we talked about", "> The deploy script is in ops/deploy_prod.sh"),
        ("上次我们讨论的那个 deploy 脚本在哪？", "> 部署的时候用 deploy 脚本，放在 ops 目录"),
        ("服务器的登录密码是多少", "> 登录服务器用的密码是 abc123"),
        ("Где ключи от гаража?", "> Ключ от гаража у соседа Пети"),
        ("Wo liegen die Ersatzschlüssel?", "> Der Ersatzschlüssel liegt unter der Fußmatte"),
        ("Quelle est l’adresse du dentiste ?", "> L'adresse du dentiste : 12 rue des Lilas"),
        ("cuál es la contrasena del wifi", "> La contraseña del wifi es tortuga"),
        ("? bluebird", "> The staging server is called bluebird"),
        ("how is the staging box called", "> The staging server is called bluebird"),
    ],
)
async def test_notes_are_found_from_another_session_in_any_language(
    notebook: SessionDB, question: str, quoted: str
) -> None:
    """The best passage is quoted first, asked twice alike: earlier questions and answers do not get in the way."""
    first = await tell(notebook, "now", question)
    again = await tell(notebook, "now", question)
    assert first.split("\n\n")[1].startswith(quoted)
    assert again == first
    assert "secret" not in first


async def test_a_single_session_is_a_notebook_of_its_own(db: SessionDB) -> None:
    """On a fresh machine everything was said in the session in which it is asked."""
    await db.create_session("one", "cli", "recall", owner="owner")
    assert await tell(db, "one", "what did we talk about?") == PHRASES["en"].empty
    for number in range(30):
        await tell(db, "one", f"Script number {number} does nothing for the deploy of part {number}")
    await tell(db, "one", "The kubeconfig of the cluster is in ~/.kube/blue")
    for _ in range(2):
        await tell(db, "one", "where is the kubeconfig for the deploy script?")
    answer = await tell(db, "one", "where is the kubeconfig for the deploy script?")
    assert "> The kubeconfig of the cluster is in ~/.kube/blue" in answer
    assert "where is" not in answer
    assert (await tell(db, "one", "what did we talk about?")).startswith("The latest conversations:\n\n- what did we")


async def test_titles_first_words_place_and_date_are_named(notebook: SessionDB) -> None:
    """A titled session by its title, another by its first words; the entrance and the day."""
    titled = await tell(notebook, "now", "? bluebird")
    assert "> — Notes ops · terminal · 20" in titled
    untitled = await tell(notebook, "now", "Wo ist der Ersatzschlüssel?")
    assert "> — Ключ от гаража у соседа Пети · Terminal · 20" in untitled


async def test_the_call_and_its_result_are_in_the_history(notebook: SessionDB) -> None:
    """The stored conversation is valid for providers: call, result, answer, in this order."""
    await tell(notebook, "now", "where is the deploy script?")
    roles = [message["role"] for message in await notebook.get_messages_as_conversation("now")]
    assert roles == ["user", "assistant", "tool", "assistant"]
