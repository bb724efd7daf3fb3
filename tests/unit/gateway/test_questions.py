"""What counts as a question, in which language, and what it is reduced to."""

# ruff: noqa: RUF001 - questions in other scripts on purpose
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.questions import asks, language_of, states, topic

ASKED = [
    # a question mark, anywhere a sentence ends
    "deploy script?",
    "Is it up? I think so.",
    "Really?!",
    "(ready?)",
    "有 deploy 脚本？在哪",
    "الملف؟",
    # a question word at the start, without a mark
    "where is the deploy script we talked about",
    "What's the wifi password",
    "in which file is the config",
    "上次我们讨论的那个 deploy 脚本在哪",
    "谁有钥匙",
    "密码是什么",
    "какой пароль от вайфая",
    "в каком файле конфиг",
    "wo liegt der Schlüssel",
    "mit wem war das besprochen",
    "où est l'adresse du dentiste",
    "quel est le code",
    "dónde está el script",
    "donde esta el script",
    "¿cuál es la clave",
    # a mark in front
    "? deploy script",
    "?deploy",
    "？部署",
]

TOLD = [
    "",
    "The deploy script is in scripts/deploy.sh",
    "How to deploy: run scripts/deploy.sh",
    "如何部署：运行 deploy.sh",
    "see https://example.org/?page=2 for the list",
    "use `what?` as the name",
    "```\nwhat?\n``` is the file",
    "obj?.name is what we use",
    "Whatever works",
    "Was told that the deploy moved to /opt",
    "Ou bien on reste ici",
    "部署脚本在 ops 目录里。",
    "Скрипт лежит в ops",
    "El script está en ops",
]


@pytest.mark.parametrize("text", ASKED)
def test_questions_ask(text: str) -> None:
    """A mark at the end of a sentence, a question word at the start or a mark in front make a question."""
    assert asks(text)


@pytest.mark.parametrize("text", TOLD)
def test_statements_ask_nothing(text: str) -> None:
    """Headings, addresses, code and words that only look like question words are something told."""
    assert not asks(text)
    assert states(text)


@pytest.mark.parametrize(
    ("text", "says_something"),
    [
        ("where is the deploy script we talked about", False),
        ("Where is it?", False),
        ("Thanks! Where is it?", False),
        ("? deploy script", False),
        ("上次的脚本在哪？", False),
        ("Did I say it? The deploy script is in /opt/deploy.sh now.", True),
        ("钥匙在抽屉里。你知道吗？", True),
        ("What we decided today is to wait", True),
        ("When the build is red, ask Ana", True),
        ("如果部署失败，谁在值班", True),
        ("where is the deploy script", False),
        ("What are we?, they said?", False),
        ("What a day\nThe server moved to rack four", True),
    ],
)
def test_a_question_that_also_states_something_is_kept_apart(text: str, *, says_something: bool) -> None:
    """Only what states something of some length may serve as an answer later."""
    assert states(text) is says_something


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("where is the deploy script we talked about", ["deploy", "script"]),
        ("上次我们讨论的那个 deploy 脚本在哪？", ["deploy", "脚本"]),
        ("服务器的登录密码是多少", ["服务器", "登录密码"]),
        ("我的deploy脚本在哪里", ["deploy", "脚本"]),
        ("Where's Anna's passport?", ["Anna", "passport"]),
        ("Где лежат ключи от гаража?", ["ключи", "гаража"]),
        ("Wo liegt der Ersatzschlüssel?", ["Ersatzschlüssel"]),
        ("Qu'est-ce que nous avons dit sur l'adresse du dentiste ?", ["adresse", "dentiste"]),
        ("Où avons-nous rangé la clé ?", ["rangé", "clé"]),
        ("¿Dónde está el script de despliegue?", ["script", "despliegue"]),
        ("what about #123 and src/main.py?", ["#123", "src/main.py"]),
        ("is C++ 50% faster?", ["C++", "50%", "faster"]),
        ("デプロイスクリプトはどこですか？", ["デプロイスクリプト"]),
        ("My server is called db7. What is its password?", ["password"]),
        ("The script moved. Where is it?", ["script", "moved"]),
        ("deploy Deploy DEPLOY?", ["deploy"]),
    ],
)
def test_a_question_is_reduced_to_its_topic(text: str, words: list[str]) -> None:
    """Question words, function words and talk about talking fall away; what is asked about stays as it is spelled."""
    found = topic(text)
    assert (list(found.words), found.weak) == (words, False)


@pytest.mark.parametrize(
    "text", ["what did we talk about last time?", "上次我们聊了什么？", "О чём мы говорили вчера?"]
)
def test_talk_about_talking_is_a_weak_topic(text: str) -> None:
    """For want of anything better the words about talking are kept, and marked."""
    assert topic(text).weak


@pytest.mark.parametrize("text", ["who are we?", "???", "？", "", "？！…"])
def test_nothing_to_search_for_is_an_empty_topic(text: str) -> None:
    """A question without any word of its own has no topic."""
    assert topic(text).words == ()


def test_a_long_question_is_cut_to_its_most_telling_words() -> None:
    """At most twelve words, the longest ones in their order, none longer than 80 characters."""
    words = [f"word{'x' * number}" for number in range(30)]
    found = topic(f"where is {' '.join(words)} {'y' * 500}?").words
    assert found == (*words[-11:], "y" * 80)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("where is the script", "en"),
        ("部署脚本在哪", "zh"),
        ("上次的 deploy 脚本", "zh"),
        ("what does 部署 mean for us", "en"),
        ("где скрипт", "ru"),
        ("де лежить скрипт і ключ", "en"),
        ("wo ist der Schlüssel", "de"),
        ("où est la clé", "fr"),
        ("dónde está la llave", "es"),
        ("スクリプトはどこ", "en"),
        ("wifi 42", "en"),
        ("y", "en"),
        ("N", "en"),
        ("", "en"),
    ],
)
def test_language_shows_in_script_and_small_words(text: str, language: str) -> None:
    """The six languages are told apart; what is not known is English."""
    assert language_of(text) == language


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_has_an_answer(text: str) -> None:
    """No text, lone surrogates included, breaks the judgement, and it is the same each time."""
    judged = (asks(text), states(text), language_of(text), topic(text))
    assert judged == (asks(text), states(text), language_of(text), topic(text))
    assert states(text) or asks(text)


@given(st.text(st.sampled_from("ab ?？.。哪的我在where is\n`'\""), max_size=60))
def test_a_topic_is_made_of_the_question(text: str) -> None:
    """Every word searched for stands in the question as it was written, each once."""
    words = topic(text).words
    assert all(word in text for word in words)
    assert len({word.casefold() for word in words}) == len(words)


def test_long_texts_are_judged_by_their_beginning() -> None:
    """A megabyte of text with many marks is no trouble."""
    assert asks("what is " + "a?b " * 300_000)
    assert topic("w " * 500_000 + "?").words == ("w",)
