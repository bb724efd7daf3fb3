"""What a search gives: booleans, filters, who sees what, exact pages, and everything that a hit tells."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from session_store.errors import InvalidArgument
from session_store.models import Visibility
from tests.unit.search.bench import Bench

ANN, ROOM = "p0000000000aa", "r0000000000aa"

#: Twenty thousand messages in one go.
MANY = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
INSERT INTO messages (session_id, role, content, timestamp) SELECT 's', 'user', 'common', n FROM numbers
"""


def seen_by(*owners: str, room: str | None = None) -> Visibility:
    """Whose sessions, and in which room the asker stands."""
    return Visibility(frozenset(owners), room)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("北京", ["both", "beijing"]),
        ("北京 上海", ["both"]),
        ("北京 AND 上海", ["both"]),
        ("北京 OR 上海", ["both", "shanghai", "beijing"]),
        ("北京 NOT 上海", ["beijing"]),
        ("京", ["both", "beijing"]),
        ("docker NOT 北京 OR 上海 NOT 北京", ["latin", "shanghai"]),
        ('"北京和上海"', ["both"]),
        ("docker OR 京和", ["latin", "both"]),
        ("Москва", ["russian"]),
        ("москва NOT docker", ["russian"]),
    ],
)
def test_booleans_hold_for_every_script(bench: Bench, query: str, expected: list[str]) -> None:
    """Decided per term, also for words of one and two characters."""
    bench.session()
    texts = {
        "beijing": "我在北京工作",
        "shanghai": "他去上海了",
        "both": "北京和上海都去过",
        "russian": "Москва слезам не верит",
        "latin": "docker runs",
    }
    ids = {bench.add(text): name for name, text in texts.items()}
    assert [ids[found] for found in bench.found(query)] == expected


def test_a_hit_tells_where_it_was_said(bench: Bench) -> None:
    """The documented fields, with one neighbour on each side, of the same session, cut."""
    bench.session()
    bench.session("other", source="telegram")
    bench.add("much earlier")
    bench.add(json.dumps("x") + "y" * 300, role="assistant", at=2.0)
    hit_id = bench.add("the deploy script", role="tool", name="terminal", at=3.0)
    bench.add("between, elsewhere", session="other")
    hidden = bench.add("taken back")
    bench.foreign("UPDATE messages SET rewound = 1 WHERE id = ?", hidden)
    bench.add(None, role="assistant", calls='[{"function": {"name": "look", "arguments": "{}"}}]')
    (hit,) = bench.search("deploy")
    assert hit == {
        "id": hit_id,
        "session_id": "s",
        "role": "tool",
        "timestamp": 3.0,
        "snippet": "the >>>deploy<<< script\nterminal",
        "tool_name": "terminal",
        "context": [{"role": "assistant", "content": '"x"' + "y" * 197}, {"role": "assistant", "content": "look"}],
        "source": "cli",
        "model": "a-model",
        "session_started": 5.0,
        "title": "title of s",
        "root_id": "s",
        "kind": "live",
        "approximate": False,
    }


def test_the_newest_hits_come_first_whatever_the_clock_says(bench: Bench) -> None:
    """Order is the order of storing."""
    bench.session()
    ids = [bench.add("word", at=at) for at in (5.0, 1.0, 3.0)]
    assert bench.found("word") == ids[::-1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [4, 3, 2, 1]),
        ({"source_filter": ["cli"]}, [2, 1]),
        ({"source_filter": ["cli", "slack"]}, [4, 2, 1]),
        ({"source_filter": "cli"}, [2, 1]),
        ({"source_filter": []}, []),
        ({"exclude_sources": ["telegram", "discord"]}, [4, 2, 1]),
        ({"exclude_sources": []}, [4, 3, 2, 1]),
        ({"role_filter": ["user"]}, [3, 1]),
        ({"role_filter": ["user"], "source_filter": ["cli"]}, [1]),
        ({"since": 2.0}, [4, 3, 2]),
        ({"until": 2.0}, [1]),
        ({"since": 2.0, "until": 4.0}, [3, 2]),
        ({"exclude_roots": ["t"]}, [2, 1]),
        ({"exclude_roots": ["s", "t"]}, []),
    ],
)
@pytest.mark.parametrize("query", ["word", "wor", "#word", "🤔"])
def test_filters_hold_however_something_is_found(
    bench: Bench, query: str, options: dict[str, Any], expected: list[int]
) -> None:
    """By the index, by its answer checked, inside words and by scanning."""
    bench.session("s")
    bench.session("t", source="telegram")
    bench.session("u", source="slack")
    bench.foreign("UPDATE sessions SET root_id = 't' WHERE id = 'u'")
    for session, role, at in (("s", "user", 1.0), ("s", "assistant", 2.0), ("t", "user", 3.0), ("u", "tool", 4.0)):
        bench.add("#word 🤔", session=session, role=role, at=at)
    assert bench.found(query, **options) == expected


@pytest.mark.parametrize(
    ("asker", "expected"),
    [
        (None, [6, 5, 4, 3, 2, 1]),
        (seen_by(), []),
        (seen_by("owner"), [1]),
        (seen_by(ANN), [4, 2]),
        (seen_by(ANN, ROOM), [4, 3, 2]),
        (seen_by("owner", ANN, ROOM), [4, 3, 2, 1]),
        (seen_by("nobody"), []),
        (seen_by(""), []),
        (seen_by("Owner"), []),
        (seen_by("odd id: x*"), [6]),
        (seen_by("owner", ANN, ROOM, room=ROOM), [4, 3]),
        (seen_by(ROOM, room=ROOM), [3]),
        (seen_by("owner", room=ROOM), []),
        (seen_by("owner", ANN, room="r0000000000bb"), []),
    ],
)
@pytest.mark.parametrize("query", ["word", "wor", "#word", "🤔"])
def test_everybody_sees_only_what_is_theirs(
    bench: Bench, query: str, asker: Visibility | None, expected: list[int]
) -> None:
    """However it is found; a blank owner is nobody's; inside a room only what lives there."""
    bench.session("private", owner="owner")
    bench.session("ann", owner=ANN)
    bench.session("room", owner=ROOM, room=ROOM)
    bench.session("ann in the room", owner=ANN, room=ROOM)
    bench.session("blank", owner=None)
    bench.session("odd", owner="odd id: x*")
    for session in ("private", "ann", "room", "ann in the room", "blank", "odd"):
        bench.add("#word 🤔", session=session)
    assert bench.found(query, visible_to=asker) == expected


def test_who_may_see_is_judged_on_the_session_as_it_is_now(bench: Bench) -> None:
    """A session that changed hands is seen by its new owner at once and no longer by the old one."""
    bench.session("s", owner="owner")
    found = bench.add("word")
    bench.foreign("UPDATE sessions SET owner = ? WHERE id = 's'", ANN)
    assert bench.found("word", visible_to=seen_by("owner")) == []
    assert bench.found("word", visible_to=seen_by(ANN)) == [found]
    bench.catch_up()
    assert bench.found("word", visible_to=seen_by("owner")) == []
    assert bench.found("word", visible_to=seen_by(ANN)) == [found]


def test_many_owners_are_no_trouble(bench: Bench) -> None:
    """Somebody who has spoken in a thousand rooms."""
    bench.session("s", owner="r000000000999")
    found = bench.add("word")
    rooms = [f"r{number:012}" for number in range(1000)]
    assert bench.found("word", visible_to=seen_by(ANN, *rooms)) == [found]


@pytest.mark.parametrize("query", ["word", "#word", "🤔", "wor", "word OR #word OR 🤔"])
def test_pages_fit_together_without_gap_or_overlap(bench: Bench, query: str) -> None:
    """Limit and offset are exact, also where hits are checked, scanned or hidden."""
    bench.session("s")
    bench.session("t", owner=ANN)
    ids = []
    for number in range(30):
        made = bench.add("a #word 🤔", session="s" if number % 3 else "t")
        bench.add("another thing, nearly a #wor", session="s")
        if number % 5 == 0:
            bench.foreign("UPDATE messages SET rewound = 1 WHERE id = ?", made)
        elif number % 3:
            ids.append(made)
    asker = seen_by("owner")
    whole = bench.found(query, visible_to=asker, limit=100)
    if query != "wor":
        assert whole == ids[::-1]
    pages = [bench.found(query, visible_to=asker, limit=7, offset=at) for at in range(0, len(whole) + 7, 7)]
    assert [one for page in pages for one in page] == whole
    assert pages[-1] == [] or len(pages[-1]) < 7


@pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (1001, 0), (20, -1)])
def test_impossible_pages_are_refused(bench: Bench, limit: int, offset: int) -> None:
    """In words, not by an odd answer."""
    with pytest.raises(InvalidArgument, match="0 to 1,000"):
        bench.found("word", limit=limit, offset=offset)


def test_no_hits_are_wanted(bench: Bench) -> None:
    """A limit of 0 gives nothing, a bad query is still told."""
    bench.session()
    bench.add("word")
    assert bench.found("word", limit=0) == []
    with pytest.raises(ValueError, match="nothing to search"):
        bench.found("", limit=0)


def test_rewound_messages_are_hidden_however_they_would_be_found(bench: Bench) -> None:
    """What was taken back is not quoted."""
    bench.session()
    hidden = bench.add("#word 🤔")
    bench.foreign("UPDATE messages SET rewound = 1 WHERE id = ?", hidden)
    for query in ("word", "#word", "🤔", "wor"):
        assert bench.found(query) == []


def test_names_and_arguments_of_tools_are_found(bench: Bench) -> None:
    """Also Chinese ones, escaped or not, and text inside multimodal parts."""
    bench.session()
    arguments = json.dumps({"query": "部署脚本", "path": "src/main.py"})
    call = bench.add(
        None,
        role="assistant",
        calls=json.dumps([{"id": "call_1", "function": {"name": "web_search", "arguments": arguments}}]),
    )
    result = bench.add("完成", role="tool", name="web_search")
    parts = bench.add(
        '\x1e[{"type": "text", "text": "\\u770b\\u56fe"}, {"type": "image_url", "image_url": {"url": "data:x,y"}}]'
    )
    assert bench.found("脚本") == [call]
    assert bench.found("src/main.py") == [call]
    assert bench.found("web_search") == [result, call]
    assert bench.found("看图") == [parts]
    assert bench.search("看图")[0]["snippet"] == ">>>看图<<<\n[image]"


def test_long_tool_output_is_found_by_head_and_tail(bench: Bench) -> None:
    """The middle of an output is left to scans; talk is indexed much further."""
    bench.session()
    filling = "filling " * 4000
    output = bench.add(f"headword {filling} middleword {filling} tailword", role="tool")
    talk = bench.add(f"headtalk {filling} middletalk {filling} tailtalk")
    for query, found, approximate in [
        ("headword", output, False),
        ("tailword", output, False),
        ("middleword", output, True),
        ("headtalk", talk, False),
        ("tailtalk", talk, False),
        ("middletalk", talk, False),
    ]:
        (hit,) = bench.search(query)
        assert (hit["id"], hit["approximate"]) == (found, approximate)
        assert f">>>{query}<<<" in hit["snippet"]


def test_a_search_that_takes_too_long_is_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives what it has until then, and says so: a part must not look like the whole."""
    bench.session()
    for _ in range(20):
        bench.add("near 50% miss")
    assert not bench.search("50%").stopped
    seconds = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds) / 2)
    hits = bench.search("50%")
    assert 0 < len(hits) < 20
    assert hits.stopped


def test_a_query_that_sqlite_works_at_for_long_is_interrupted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before there is a first row to look at."""
    bench.session()
    bench.write(lambda tx: tx.run(MANY))
    monkeypatch.setattr("session_store.search.SEARCH_TIME", 0.0)
    hits = bench.search("common", role_filter=["tool"])
    assert (list(hits), hits.stopped) == ([], True)


def test_odd_characters_are_searchable_around(bench: Bench) -> None:
    """NUL, ten thousand of them, and lone surrogates hide nothing and harm nothing."""
    bench.session()
    nul = bench.add("alpha\0omega", role="tool")
    many = bench.add(f"first{chr(0) * 10_000}second", role="tool")
    lone = bench.add("ok \ud83d end")
    pair = bench.add("pair \ud83e\udd84 here")
    assert bench.found("alpha") == bench.found("omega") == [nul]
    assert bench.found("first") == bench.found("second") == [many]
    assert bench.found("ok end") == [lone]
    assert bench.found("\ud83d end") == [lone]
    assert bench.found("🦄") == [pair]
    assert bench.found("alpha\0omega") == [nul]
    bench.check_integrity()


def test_hits_come_in_the_order_that_was_asked_for(bench: Bench) -> None:
    """Newest and oldest first by id; by relevance those that say more about it, equals newest first."""
    bench.session()
    twice = bench.add("tea, and tea once more")
    long = bench.add("tea among " + "many other words " * 40)
    short = bench.add("tea in short")
    again = bench.add("tea in short")
    assert bench.found("tea") == bench.found("tea", sort="newest") == [again, short, long, twice]
    assert bench.found("tea", sort="oldest") == [twice, long, short, again]
    assert bench.found("tea", sort="relevance") == [twice, again, short, long]
    assert bench.found("tea", sort="oldest", limit=2, offset=1) == [long, short]
    with pytest.raises(InvalidArgument, match="Use one of: relevance, newest, oldest"):
        bench.search("tea", sort="best")


def test_relevance_pages_neither_repeat_nor_leave_out(bench: Bench) -> None:
    """Beyond the hundred that are put in order the rest follows."""
    bench.session()
    ids = [bench.add("tea " * (1 + number % 3)) for number in range(130)]
    pages = [one for offset in range(0, 140, 20) for one in bench.found("tea", sort="relevance", offset=offset)]
    assert sorted(pages) == ids
    assert pages[100:] == ids[29::-1]


def test_oldest_first_holds_for_what_is_not_indexed_and_for_scans(bench: Bench) -> None:
    """Whichever way a message is found."""
    bench.session()
    one, other = bench.add("green tea"), bench.add("🍵 teapot")
    late = bench.foreign_add("foreign tea 🍵")
    assert bench.found("tea", sort="oldest") == [one, late]
    assert bench.found("🍵", sort="oldest") == [other, late]
    assert bench.found("eapo OR een", sort="oldest") == [one, other]


def test_sessions_and_persons_are_filters(bench: Bench) -> None:
    """A session by its id; a person's sessions, and what they said in those of others."""
    mine = bench.add("tea", session=bench.session("mine", owner=ANN))
    room = bench.session("room", owner=ROOM, room=ROOM)
    theirs = bench.add("tea", session=room)
    said = bench.add("tea", session=room)
    bench.foreign("UPDATE messages SET person_id = ? WHERE id = ?", ANN, said)
    assert bench.found("tea", sessions=["mine"]) == [mine]
    assert bench.found("tea", sessions=["room", "mine"]) == [said, theirs, mine]
    assert bench.found("tea", sessions=[]) == bench.found("tea", sessions=["nowhere"]) == []
    assert bench.found("tea", person=ANN) == [said, mine]
    assert bench.found("tea", person=ANN, visible_to=seen_by(ROOM)) == [said]
    assert bench.found("ea", sessions=["room"], sort="oldest") == [theirs, said]
