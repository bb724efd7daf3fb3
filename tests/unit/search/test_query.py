"""Reading queries: operators, quoting, what is ignored, and what is refused with which words."""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_store.errors import QueryError, StoreError
from session_store.query import MAX_QUERY, Clause, Haystack, parse
from tests.unit.search.bench import Bench


def literals(query: str) -> list[tuple[list[str], list[str]]]:
    """Wanted and unwanted literals of each clause."""
    return [
        ([t.literal for t in clause.wanted], [t.literal for t in clause.unwanted]) for clause in parse(query).clauses
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Docker Deploy", [(["docker", "deploy"], [])]),
        ("docker AND deploy", [(["docker", "deploy"], [])]),
        ("docker OR kubernetes deploy", [(["docker"], []), (["kubernetes", "deploy"], [])]),
        ("python NOT java", [(["python"], ["java"])]),
        ("NOT java python", [(["python"], ["java"])]),
        ("python AND NOT java ruby", [(["python", "ruby"], ["java"])]),
        ("a NOT b OR c NOT d", [(["a"], ["b"]), (["c"], ["d"])]),
        ("hello AND", [(["hello"], [])]),
        ("OR hello OR OR world NOT", [(["hello"], []), (["world"], [])]),
        ("AND OR NOT hello", None),
        ("and or not", [(["and", "or", "not"], [])]),
        ("docker ИЛИ kubernetes", [(["docker", "или", "kubernetes"], [])]),
        ("docker UND ODER", [(["docker", "und", "oder"], [])]),
        ('"exact phrase" word', [(["exact phrase", "word"], [])]),
        ('"NOT a AND b"', [(["not a and b"], [])]),
        ('word "unclosed phrase', [(["word", "unclosed phrase"], [])]),
        ('glued"to a"phrase', [(["glued", "to a", "phrase"], [])]),
        ("Wo, ist (das) 'Skript'?!", [(["wo", "ist", "das", "skript"], [])]),
        ("部署脚本在哪？", [(["部署脚本在哪"], [])]),
        ("deploy - script — now !", [(["deploy", "script", "now"], [])]),
        ("main() f(x) (docker k8s)", [(["main()", "f(x)", "docker", "k8s"], [])]),
        ("**bold** *x", [(["bold", "x"], [])]),
        ("a\0b", [(["a", "b"], [])]),
        ("ＡＢＣ　Ｄ", [(["abc", "d"], [])]),
    ],
)
def test_a_query_is_read_as(query: str, expected: list[tuple[list[str], list[str]]] | None) -> None:
    """Operators are three English words in capitals; all else is text."""
    if expected is None:
        with pytest.raises(QueryError):
            parse(query)
    else:
        assert literals(query) == expected


@pytest.mark.parametrize("query", ["", "   ", "\0", "AND", "OR NOT", "*", "**", '"', '""', '" "', "AND *", "\u200b"])
def test_nothing_to_search_for_is_said(query: str) -> None:
    """No term: the answer is a sentence that says what to type."""
    with pytest.raises(QueryError, match="nothing to search for"):
        parse(query)


@pytest.mark.parametrize("query", ["NOT java", "python OR NOT java", "AND NOT x"])
def test_only_what_to_leave_out_is_no_query(query: str) -> None:
    """A list of everything else is not what a search gives, and the opposite would be wrong."""
    with pytest.raises(QueryError, match="only what to leave out"):
        parse(query)


def test_a_query_that_is_too_long_is_refused_with_its_length() -> None:
    """Nothing is cut silently."""
    parse("x" * MAX_QUERY)
    with pytest.raises(QueryError, match="5,000 characters; at most 2,048"):
        parse("x" * 5000)


def test_query_errors_are_store_errors_and_value_errors() -> None:
    """Callers may catch either."""
    with pytest.raises(ValueError, match="nothing"):
        parse("")
    assert issubclass(QueryError, StoreError)


@pytest.mark.parametrize(
    ("query", "prefix"),
    [
        ("deploy*", True),
        ("deploy", False),
        ("de*ploy", False),
        ("**deploy**", False),
        ('"the deplo"*', True),
        ("部署*", False),
    ],
)
def test_a_star_at_the_end_makes_a_prefix(query: str, prefix: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Only at the end of a word; characters of unspaced scripts are prefixes anyway."""
    assert parse(query).clauses[0].wanted[0].prefix is prefix


def test_prefixes_find_longer_words(bench: Bench) -> None:
    """Also within a phrase and with punctuation before it."""
    bench.session()
    one, two = bench.add("the deployment of src/main.py"), bench.add("deploy the thing; source main")
    assert bench.found("deplo*") == [two, one]
    assert bench.found('"the deplo"*') == [one]
    assert bench.found("src/ma*") == [one]
    assert bench.found("部署*") == []
    han = bench.add("我们部署脚本")
    assert bench.found("部署*") == [han]


def test_relaxed_wants_any_word() -> None:
    """Phrases fall into words, unspaced runs into pairs, spelled words stay; what was left out stays left out."""
    relaxed = parse('"deploy script" src/main.py 部署脚本 k8s NOT java').relaxed()
    assert [[term.literal for term in clause.wanted] for clause in relaxed.clauses] == [
        ["deploy"],
        ["script"],
        ["src/main.py"],
        ["部署"],
        ["署脚"],
        ["脚本"],
        ["k8s"],
    ]
    assert all([term.literal for term in clause.unwanted] == ["java"] for clause in relaxed.clauses)


def test_relaxed_is_bounded() -> None:
    """A long text does not become hundreds of index look-ups."""
    assert len(parse(" ".join(f"w{number}" for number in range(300))).relaxed().clauses) == 64


def test_relaxed_finds_what_strict_does_not(bench: Bench) -> None:
    """The question as people ask it finds the message about it."""
    bench.session()
    wanted = bench.add("部署脚本放在 scripts 目录")
    strict = parse("上次我们讨论的那个 deploy 脚本在哪？")
    assert bench.found(strict) == []
    assert bench.found(strict.relaxed()) == [wanted]


@given(st.text(max_size=60))
@example("\x1b\u00b4")
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    """No input reaches the caller as another error, and whatever is wanted can be told."""
    try:
        query = parse(text)
    except QueryError:
        return
    assert all(term.literal for term in query.wanted)
    assert query.relaxed().clauses


@given(st.text(alphabet=st.sampled_from(list("aé部ｱ\"*()'-:/NOTANDOR \0🤔\u0e01\u0e34%_")), min_size=1, max_size=30))
def test_any_query_is_answered_by_the_index(text: str) -> None:
    """Whatever people type, the index gets a query that it understands."""
    bench = Bench()
    try:
        bench.session()
        bench.add("a é 部")
        bench.search(text)
    except QueryError:
        pass
    finally:
        bench.close()


def test_a_thousand_words_are_answered(bench: Bench) -> None:
    """The longest query there can be, with as many terms as fit into it."""
    bench.session()
    found = bench.add("a b c")
    assert bench.found(" ".join("abc"[number % 3] for number in range(1000))) == [found]
    assert bench.found(" OR ".join("abc"[number % 3] for number in range(400))) == [found]
    assert bench.found("a" + " NOT x" * 300) == [found]


def test_clauses_judge_a_text_as_the_index_does() -> None:
    """What is not in the index yet is compared word for word, not letter for letter."""
    clause = parse('docker "deploy script" NOT java').clauses[0]
    assert clause.holds(Haystack("Docker: deploy, script"))
    assert not clause.holds(Haystack("dockers deploy script"))
    assert not clause.holds(Haystack("docker deploy script in Java"))
    assert clause.holds(Haystack("docker deploy script in javascript"))


def test_a_clause_without_indexable_terms_cannot_be_asked() -> None:
    """Then it goes to the texts."""
    assert [clause.match for clause in parse("🤔 OR docker").clauses] == [None, '("docker")']
    assert isinstance(parse("x").clauses[0], Clause)
