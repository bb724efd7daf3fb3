"""Which found messages answer a question, and in which order."""

# ruff: noqa: RUF001 - words of other scripts on purpose
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.passages import Passage, coverage, other_forms, passages_in, rank, whole
from gateway.agents.phrasing import PHRASES
from gateway.agents.questions import Topic, topic


def passage(number: int, text: str, role: str = "user") -> Passage:
    """A passage of which only text, role and order matter."""
    return Passage(message_id=number, role=role, text=text, title="", source="cli", room="", when="")


def ranked(question: str, *texts: str | Passage) -> list[str]:
    """Texts that answer, best first; later ones were said later."""
    passages = [text if isinstance(text, Passage) else passage(number, text) for number, text in enumerate(texts)]
    return [found.text for found in rank(passages, question, topic(question), 10)]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (["deploy", "script"], "The Deploy script!", [1, 1]),
        (["deploy", "script"], "deploy it", [1, 0]),
        (["ключи"], "Ключ у соседа", [0.8]),
        (["passwords"], "the password is x", [0.8]),
        (["Schlüssel"], "zwei Schlusseln", [0.8]),
        (["deploy"], "redeploying", [0.8]),
        (["adresse"], "l'adresse", [1]),
        (["src/main.py"], "see src/main.py:12", [1]),
        (["#123"], "fixed in #123", [1]),
        (["life"], "the lift is broken", [0]),
        (["v12"], "v1", [0]),
        (["脚本"], "部署脚本在这里", [1]),
        (["登录密码"], "登录用的密码", [2 / 3]),
        (["脚本"], "本子", [0]),
        ([], "anything", []),
    ],
)
def test_coverage_knows_words_and_their_forms(words: list[str], text: str, expected: list[float]) -> None:
    """A word counts fully, another form of it nearly, a run without spaces by its pairs of characters."""
    assert coverage(words, text) == pytest.approx(expected)


def test_whole_accepts_other_forms_only() -> None:
    """Every word must be there in some form."""
    assert whole(["ключи", "гаража"], "Ключ от гаража у соседа")
    assert not whole(["ключи", "гаража"], "Ключ у соседа")
    assert not whole([], "anything")


def test_other_forms_are_beginnings() -> None:
    """Words become beginnings; what is no plain word, and scripts without spaces, stay as they are."""
    assert other_forms(["passwords", "key", "to", "v2", "脚本", "src/x"]) == [
        "passwo*",
        "key*",
        "to",
        "v2",
        "脚本",
        "src/x",
    ]


def test_more_of_the_question_comes_first_then_the_newest() -> None:
    """Ranked by cover, then by order of insertion; what covers far less than the best is left out."""
    assert ranked(
        "where is the deploy script for staging?",
        "deploy script for staging: a.sh",
        "the script to deploy",
        "deploy script for staging is b.sh now",
        "staging is slow",
    ) == ["deploy script for staging is b.sh now", "deploy script for staging: a.sh", "the script to deploy"]


def test_a_word_that_was_said_once_tells_more_than_common_ones() -> None:
    """One passage with the rare word beats many with the common ones."""
    common = [f"script {number} of the deploy" for number in range(10)]
    assert ranked("where is the kubeconfig for the deploy script?", "kubeconfig: ~/.kube/blue", *common) == [
        "kubeconfig: ~/.kube/blue"
    ]


def test_questions_and_own_sentences_are_no_answers() -> None:
    """Neither what was asked before nor what the agent said itself is quoted, even if there is nothing else."""
    own = [
        passage(9 + number, words.kept.format("the deploy script"), "assistant")
        for number, words in enumerate(PHRASES.values())
    ]
    assert (
        ranked("where is the deploy script?", "Where is our deploy script?", "where is the deploy script", *own) == []
    )


def test_statements_of_people_come_before_other_agents() -> None:
    """What a person stated stands above what another agent wrote, tool output is never quoted."""
    other = passage(7, "The deploy script is at /opt/x as far as I know", "assistant")
    tool = passage(8, "deploy script", "tool")
    assert ranked("where is the deploy script?", "my deploy script is /opt/y", other, tool) == [
        "my deploy script is /opt/y",
        other.text,
    ]


def test_the_same_words_are_quoted_once() -> None:
    """A text that was said twice is quoted once, as said last; the question itself never."""
    found = rank(
        [passage(1, "Tea is in the box"), passage(2, "tea is in the box "), passage(3, "? tea")],
        "? tea",
        topic("? tea"),
        10,
    )
    assert [entry.message_id for entry in found] == [2]


def test_a_weak_topic_needs_the_whole() -> None:
    """Words about talking alone find only what has all of them."""
    weak = Topic(("note", "week"), weak=True)
    said = [passage(1, "a note of this week"), passage(2, "a note")]
    assert [entry.message_id for entry in rank(said, "x?", weak, 10)] == [1]


def test_results_are_read_with_title_place_and_time() -> None:
    """Title, or the first words without one; the name of a room, but none of a direct chat."""
    result = {
        "results": [
            {
                "title": None,
                "preview": "first words",
                "source": "telegram",
                "place": {"platform": "telegram", "chat_type": "group", "name": "Ops"},
                "matches": [{"id": 4, "role": "user", "content": "x", "when": "2026-01-02 03:04"}],
            },
            {
                "title": "T",
                "source": "telegram",
                "place": {"chat_type": "dm", "name": "Ana"},
                "matches": [{"id": 5, "role": "user", "content": "y", "when": ""}],
            },
        ]
    }
    first, second = passages_in(result)
    assert first == Passage(4, "user", "x", "first words", "telegram", "Ops", "2026-01-02 03:04")
    assert (second.title, second.room) == ("T", "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "matches", "id", "content", "place", "title", "role"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["results", "x"]), json_values, max_size=2))
def test_a_result_of_the_wrong_shape_has_no_passages(result: dict[str, object]) -> None:
    """Whatever a tool returns is read without an error, and what comes out can be ranked."""
    rank(passages_in(result), "what?", Topic(("what",)), 3)


@given(words=st.lists(st.text(max_size=8), max_size=5), text=st.text(max_size=40))
def test_coverage_is_a_share_of_each_word(words: list[str], text: str) -> None:
    """Each word is covered between not at all and fully, and a text made of the words has all of them."""
    assert all(0.0 <= share <= 1.0 for share in coverage(words, text))
    plain = [word for word in words if word.isalnum()]
    if plain:
        assert whole(plain, " ".join(plain))
