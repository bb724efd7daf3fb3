"""The session_search tool over a real store: what is found, in which order, for whom, and what bad arguments get."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.agents.phrasing import PHRASES
from gateway.tools import SCHEMAS, TurnTools
from gateway.tools.session_search import SESSION_SEARCH_SCHEMA, SessionSearchTool
from session_store import PlaceRef, SessionDB, StartSession, StoreBusy, Visibility

UTC = ZoneInfo("UTC")
TOKYO = ZoneInfo("Asia/Tokyo")
OWNER = Visibility(frozenset({"owner"}))


async def say(db: SessionDB, session_id: str, *texts: str, owner: str = "owner", role: str = "user") -> list[int]:
    """Append messages, in a session that is made when it is missing; returns their ids."""
    if await db.get_session(session_id) is None:
        await db.create_session(session_id, "cli", owner=owner)
    return [await db.append_message(session_id, "assistant" if role == "assistant" else "user", text) for text in texts]


async def search(tool: SessionSearchTool, **arguments: Any) -> dict[str, Any]:
    """Call the tool and read its answer."""
    result: dict[str, Any] = json.loads(await tool.call(arguments))
    return result


def contents(result: dict[str, Any]) -> list[list[str]]:
    """The passages of each conversation."""
    return [[match["content"] for match in found["matches"]] for found in result["results"]]


@pytest.fixture
def tool(db: SessionDB) -> SessionSearchTool:
    """The owner's tool outside any conversation."""
    return SessionSearchTool(db, OWNER, None, zone=UTC)


async def test_a_result_tells_where_when_and_what(db: SessionDB, tool: SessionSearchTool) -> None:
    """One result per conversation with the fields that agents and commands read."""
    place = PlaceRef("telegram", "main", "group", "-100", name="Ops")
    await db.apply([StartSession("key", place, "telegram", "owner", "g1", title="Rollout")])
    await db.append_message("g1", "user", "first words of it", timestamp=1_700_000_000)
    found = await db.append_message("g1", "user", "the deploy script is x.sh", timestamp=1_700_000_060)
    await db.append_message("g1", "assistant", "understood", timestamp=1_700_000_120)
    result = await search(tool, query="deploy script")
    assert result == {
        "success": True,
        "mode": "discover",
        "query": "deploy script",
        "relaxed": False,
        "approximate": False,
        "stopped": False,
        "count": 1,
        "results": [
            {
                "session_id": "g1",
                "title": "Rollout",
                "preview": "first words of it",
                "when": "2023-11-14 22:14",
                "source": "telegram",
                "model": None,
                "place": {"platform": "telegram", "chat_type": "group", "name": "Ops"},
                "matched_role": "user",
                "match_message_id": found,
                "snippet": "the >>>deploy<<< >>>script<<< is x.sh",
                "matches": [
                    {
                        "id": found,
                        "role": "user",
                        "when": "2023-11-14 22:14",
                        "content": "the deploy script is x.sh",
                        "complete": True,
                    }
                ],
                "bookend_start": [],
                "messages": [
                    {"id": found - 1, "role": "user", "when": "2023-11-14 22:13", "content": "first words of it"},
                    {
                        "id": found,
                        "role": "user",
                        "when": "2023-11-14 22:14",
                        "content": "the deploy script is x.sh",
                        "anchor": True,
                    },
                    {"id": found + 1, "role": "assistant", "when": "2023-11-14 22:15", "content": "understood"},
                ],
                "bookend_end": [],
                "messages_before": 0,
                "messages_after": 0,
            }
        ],
    }


async def test_all_words_are_enough_when_something_has_them(db: SessionDB, tool: SessionSearchTool) -> None:
    """The strict answer is given alone, newest first, as long as it holds a statement."""
    await say(db, "a", "deploy script one", "only deploy", "deploy script two")
    result = await search(tool, query="deploy script")
    assert contents(result) == [["deploy script two", "deploy script one"]]
    assert result["relaxed"] is False


async def test_words_are_relaxed_when_nothing_has_them_all(db: SessionDB, tool: SessionSearchTool) -> None:
    """More words come first, then the newer message; the result says that it is relaxed."""
    await say(db, "a", "the deploy script", "a script for staging", "nothing here")
    result = await search(tool, query="deploy script staging")
    assert contents(result) == [["a script for staging", "the deploy script"]]
    assert result["relaxed"] is True
    assert not any(match["complete"] for match in result["results"][0]["matches"])


async def test_scripts_without_spaces_are_relaxed_to_pairs(db: SessionDB, tool: SessionSearchTool) -> None:
    """A run that nobody wrote in one piece is found by its parts."""
    await say(db, "a", "登录服务器用的密码是 abc", "天气很好")
    result = await search(tool, query="服务器登录密码")
    assert contents(result) == [["登录服务器用的密码是 abc"]]
    assert result["relaxed"] is True


async def test_a_question_alone_is_too_little(db: SessionDB, tool: SessionSearchTool) -> None:
    """When only questions have all words, statements with some of them come first; the questions stay behind them."""
    await say(db, "a", "deploy by hand is forbidden", "where is the deploy script?")
    result = await search(tool, query="deploy script")
    assert contents(result) == [["deploy by hand is forbidden", "where is the deploy script?"]]
    assert result["relaxed"] is False
    assert [match["complete"] for match in result["results"][0]["matches"]] == [False, True]


async def test_an_old_statement_is_found_behind_many_questions(db: SessionDB, tool: SessionSearchTool) -> None:
    """Questions that repeat the words do not push the one answer out of reach."""
    await say(db, "a", "the deploy script is x.sh", *[f"where is deploy script {number}?" for number in range(60)])
    result = await search(tool, query="deploy script")
    assert contents(result)[0][0] == "the deploy script is x.sh"


async def test_a_rare_word_is_found_behind_a_common_one(db: SessionDB, tool: SessionSearchTool) -> None:
    """What a common word finds newest does not hide the word that was said once, long ago."""
    await say(db, "a", "kubeconfig lies in the blue folder", *[f"path number {number}" for number in range(120)])
    result = await search(tool, query="kubeconfig path")
    assert contents(result)[0][0] == "kubeconfig lies in the blue folder"


async def test_all_but_one_word_are_found_behind_common_words(db: SessionDB, tool: SessionSearchTool) -> None:
    """An old message with most of the words beats many new ones with one of them."""
    await say(db, "a", "red path to the barn", *[f"red dot {number}" for number in range(60)])
    await say(db, "a", *[f"path {number}" for number in range(60)])
    result = await search(tool, query="red path garden")
    assert contents(result)[0][0] == "red path to the barn"


async def test_every_conversation_counts_once_and_limits_hold(db: SessionDB, tool: SessionSearchTool) -> None:
    """At most `limit` conversations, at most six passages of one; the limit is held within 1 to 10."""
    for number in range(12):
        await say(db, f"s{number}", *[f"tea {number} {cup}" for cup in range(8 if number == 11 else 1)])
    for limit, count in ((3, 3), (0, 1), (-5, 1), (99, 10), ("4", 4), (True, 5), ("x", 5), (None, 5), (2.5, 5)):
        result = await search(tool, query="tea", limit=limit)
        assert (result["count"], len(result["results"])) == (count, count)
    assert len(contents(await search(tool, query="tea"))[0]) == 6
    assert len({found["session_id"] for found in (await search(tool, query="tea", limit=10))["results"]}) == 10


async def test_a_compressed_conversation_is_one_result(db: SessionDB, tool: SessionSearchTool) -> None:
    """Segments of one conversation are told together, with the first words of the first one."""
    await say(db, "root", "beginning with tea")
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", owner="owner", parent_session_id="root")
    await db.append_message("tip", "user", "more tea")
    result = await search(tool, query="tea")
    assert contents(result) == [["more tea", "beginning with tea"]]
    assert result["results"][0]["preview"] == "beginning with tea"


async def test_sort_by_time(db: SessionDB, tool: SessionSearchTool) -> None:
    """Newest or oldest first on request; an unknown order is ignored."""
    for name in ("a", "b", "c"):
        await say(db, name, f"tea {name}")
    orders = {
        order: [found["session_id"] for found in (await search(tool, query="tea", sort=order))["results"]]
        for order in ("newest", "oldest", "odd")
    }
    assert orders == {"newest": ["c", "b", "a"], "oldest": ["a", "b", "c"], "odd": ["c", "b", "a"]}


async def test_roles_are_filtered(db: SessionDB, tool: SessionSearchTool) -> None:
    """People and agents by default, tool output only when named; unknown roles are as good as none."""
    await say(db, "a", "tea of a person")
    await say(db, "a", "tea of an agent", role="assistant")
    await db.append_message("a", "tool", "tea of a tool", tool_name="kettle", tool_call_id="1")
    for roles, expected in (
        (None, {"tea of a person", "tea of an agent"}),
        ("user", {"tea of a person"}),
        ("User, tool", {"tea of a person", "tea of a tool"}),
        (["assistant"], {"tea of an agent"}),
        ("nobody", {"tea of a person", "tea of an agent"}),
        (7, {"tea of a person", "tea of an agent"}),
    ):
        assert set(contents(await search(tool, query="tea", role_filter=roles))[0]) == expected


async def test_only_what_the_asker_may_see_is_found(db: SessionDB) -> None:
    """Another person's sessions are neither found nor listed, nor told around a match."""
    await say(db, "mine", "my tea")
    await say(db, "theirs", "their tea", owner="p2")
    tool = SessionSearchTool(db, OWNER, None)
    assert contents(await search(tool, query="tea")) == [["my tea"]]
    assert [found["session_id"] for found in (await search(tool))["results"]] == ["mine"]
    nobody = SessionSearchTool(db, Visibility(frozenset()), None)
    assert (await search(nobody, query="tea"))["results"] == []
    assert (await search(nobody))["results"] == []


async def test_the_question_itself_is_left_out_of_its_own_conversation(db: SessionDB) -> None:
    """The current conversation is left out; on request its earlier messages are found, but not the question."""
    await say(db, "a", "tea is in the box")
    (question,) = await say(db, "a", "tea please")
    await say(db, "a", "tea after it", role="assistant")
    await say(db, "b", "other tea")
    here = SessionSearchTool(db, OWNER, "a", question_id=question)
    assert contents(await search(here, query="tea")) == [["other tea"]]
    assert contents(await search(here, query="tea", include_current=True)) == [["other tea"], ["tea is in the box"]]
    elsewhere = SessionSearchTool(db, OWNER, None, question_id=question)
    assert "tea please" in contents(await search(elsewhere, query="tea"))[1]


async def test_having_looked_for_something_is_not_having_said_it(db: SessionDB, tool: SessionSearchTool) -> None:
    """Calls of this tool are no finds, however long; those of other tools are."""

    async def called(name: str, **arguments: Any) -> None:
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        await db.append_message("a", "assistant", None, tool_calls=[call])

    await say(db, "a", "hello")
    await called("session_search", query="vault", limit=10, role_filter="user")
    await called("session_search", query="in which of the many folders of the " * 20 + "vault", limit=10)
    assert contents(await search(tool, query="vault")) == []
    await called("terminal", command="open vault")
    found = await search(tool, query="vault")
    assert [result["snippet"] for result in found["results"]] == ["terminal\ncommand: open >>>vault<<<"]


async def test_own_confirmations_and_answers_are_left_out(db: SessionDB, tool: SessionSearchTool) -> None:
    """What the recall agent said only repeats what others said; a long answer is known by its beginning too."""
    await say(db, "a", "tea is in the box")
    for words in PHRASES.values():
        await say(db, "a", words.kept.format("tea"), words.found + "\n\n> " + "x " * 100 + "tea", role="assistant")
    await say(db, "a", "I like tea as well", role="assistant")
    assert contents(await search(tool, query="tea")) == [["I like tea as well", "tea is in the box"]]


async def test_a_long_passage_is_cut_around_the_words(db: SessionDB, tool: SessionSearchTool) -> None:
    """A result stays small: a passage of 600 characters with the words in it, less of what stands around."""
    await say(db, "a", "lorem " * 5000 + "the teapot is blue " + "ipsum " * 5000, "next " * 200)
    result = await search(tool, query="teapot")
    (passage,) = contents(result)[0]
    assert "the teapot is blue" in passage
    assert len(passage) <= 600
    assert all(len(message["content"]) <= 300 for message in result["results"][0]["messages"])


async def test_multimodal_content_is_told_as_text(db: SessionDB, tool: SessionSearchTool) -> None:
    """Parts are shown as a person reads them, not as JSON."""
    await db.create_session("a", "cli", owner="owner")
    await db.append_message(
        "a",
        "user",
        [
            {"type": "text", "text": "tea menu"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    )
    assert contents(await search(tool, query="menu")) == [["tea menu\n[image]"]]


async def test_without_a_query_the_latest_conversations_are_listed(db: SessionDB, tool: SessionSearchTool) -> None:
    """Last active first, with title, first words and size; blank or odd queries list as well."""
    await say(db, "a", "first of a")
    await say(db, "b", "first of b", "second of b")
    await db.set_session_title("a", "Title of a")
    for query in (None, "", "  ", 5):
        result = await search(tool, query=query, limit=2)
        assert (result["success"], result["mode"], result["count"]) == (True, "browse", 2)
        listed = [(row["session_id"], row["title"], row["preview"], row["message_count"]) for row in result["results"]]
        assert listed == [("b", None, "first of b", 2), ("a", "Title of a", "first of a", 1)]
    assert [row["session_id"] for row in (await search(tool, limit=1))["results"]] == ["b"]


async def test_a_conversation_with_nothing_but_the_question_is_not_listed(db: SessionDB) -> None:
    """Once more was said in it, the current conversation is listed too."""
    await say(db, "a", "tea")
    (question,) = await say(db, "b", "what did we say?")
    assert [
        row["session_id"] for row in (await search(SessionSearchTool(db, OWNER, "b", question_id=question)))["results"]
    ] == ["a"]
    (later,) = await say(db, "b", "and now?")
    assert [
        row["session_id"] for row in (await search(SessionSearchTool(db, OWNER, "b", question_id=later)))["results"]
    ] == ["b", "a"]


async def test_scrolling_shows_a_window_and_shares_its_boundary(db: SessionDB, tool: SessionSearchTool) -> None:
    """The messages around one, which is marked once; from the last of them the next window goes on."""
    ids = await say(db, "a", *[f"message {number}" for number in range(30)])
    first = await search(tool, session_id="a", around_message_id=ids[10], window=3)
    assert (first["success"], first["mode"], first["session_id"], first["window"]) == (True, "scroll", "a", 3)
    assert [message["id"] for message in first["messages"]] == ids[7:14]
    assert [message["id"] for message in first["messages"] if message.get("anchor")] == [ids[10]]
    assert (first["messages_before"], first["messages_after"]) == (7, 16)
    assert "bookend_start" not in first
    then = await search(tool, session_id="a", around_message_id=ids[13], window=3)
    assert then["messages"][3] == first["messages"][-1] | {"anchor": True}
    for window, count in ((0, 3), (99, 30), (None, 11), ("2", 5)):
        found = await search(tool, session_id="a", around_message_id=ids[15], window=window)
        assert len(found["messages"]) == count


async def test_scrolling_needs_a_message_of_that_session(db: SessionDB, tool: SessionSearchTool) -> None:
    """What is unknown, elsewhere or somebody else's is one plain sentence, and gives nothing away."""
    await say(db, "a", "tea")
    (other,) = await say(db, "b", "milk")
    (theirs,) = await say(db, "c", "secret", owner="p2")
    for session_id, anchor in (("a", other), ("a", theirs), ("a", 10**9), ("a", "x"), ("c", theirs), ("nowhere", 1)):
        result = await search(tool, session_id=session_id, around_message_id=anchor)
        assert result["success"] is False
        assert result["error"].startswith("There is no ")
        assert "secret" not in result["error"]
    hidden = await search(tool, session_id="c")
    unknown = await search(tool, session_id="d")
    assert hidden["error"].replace("“c”", "“d”") == unknown["error"]


async def test_a_message_of_a_continued_conversation_is_found_in_its_segment(
    db: SessionDB, tool: SessionSearchTool
) -> None:
    """Any id of the conversation leads there; the result says so."""
    (early,) = await say(db, "root", "early words")
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", owner="owner", parent_session_id="root")
    await db.append_message("tip", "user", "later words")
    found = await search(tool, session_id="tip", around_message_id=early)
    assert (found["session_id"], found["messages"][0]["content"]) == ("root", "early words")
    assert "root" in found["note"]


async def test_reading_shows_how_a_session_begins_and_ends(db: SessionDB, tool: SessionSearchTool) -> None:
    """All of a short one; twenty and ten messages of a long one, and how many were left out."""
    await say(db, "short", "one", "two")
    ids = await say(db, "long", *[f"message {number}" for number in range(50)])
    short, long = await search(tool, session_id="short", query="ignored"), await search(tool, session_id="long")
    assert (short["mode"], short["message_count"], short["left_out"]) == ("read", 2, 0)
    assert [message["content"] for message in short["messages"]] == ["one", "two"]
    assert (long["message_count"], long["left_out"]) == (50, 20)
    assert [message["id"] for message in long["messages"]] == [*ids[:20], *ids[40:]]
    assert long["session"]["source"] == "cli"


async def test_what_is_stored_is_told_with_its_calls(db: SessionDB, tool: SessionSearchTool) -> None:
    """Tool calls and results keep their names and ids; a text that is too long is cut and says how long it is."""
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
    await say(db, "a", "x" * 5000)
    await db.append_message("a", "assistant", None, tool_calls=[call])
    await db.append_message("a", "tool", "file.txt", tool_name="shell", tool_call_id="c1")
    long, called, told = (await search(tool, session_id="a"))["messages"]
    assert (len(long["content"]), long["cut"]) == (2000, 5000)
    assert called["tool_calls"] == [{"name": "shell", "arguments": '{"command": "ls"}'}]
    assert (told["content"], told["tool_name"], told["tool_call_id"]) == ("file.txt", "shell", "c1")


async def test_a_discovery_shows_how_the_session_began_and_ended(db: SessionDB, tool: SessionSearchTool) -> None:
    """Three messages at each end, never those of the window, with the counts of what lies before and after it."""
    ids = await say(db, "a", *["filler" if number != 20 else "the teapot" for number in range(40)])
    (result,) = (await search(tool, query="teapot"))["results"]
    assert [message["id"] for message in result["bookend_start"]] == ids[:3]
    assert [message["id"] for message in result["messages"]] == ids[15:26]
    assert [message["id"] for message in result["bookend_end"]] == ids[37:]
    assert (result["messages_before"], result["messages_after"]) == (15, 14)
    (bare,) = (await search(tool, query="teapot", window=0))["results"]
    assert not {"messages", "bookend_start", "bookend_end"} & set(bare)
    (near,) = (await search(tool, query="teapot", window=19))["results"]
    assert [message["id"] for message in near["bookend_start"]] == ids[:1]
    assert near["bookend_end"] == []


async def test_scheduled_and_tool_sessions_come_after_what_people_said(db: SessionDB, tool: SessionSearchTool) -> None:
    """However new they are; alone they are found as any other."""
    await say(db, "said", "tea")
    await db.create_session("cron", "cli", owner="owner", kind="scheduled")
    await say(db, "cron", "tea", "milk")
    assert [found["session_id"] for found in (await search(tool, query="tea"))["results"]] == ["said", "cron"]
    assert [found["session_id"] for found in (await search(tool, query="milk"))["results"]] == ["cron"]


async def test_a_title_is_found_too(db: SessionDB, tool: SessionSearchTool) -> None:
    """After what was said, as long as there is room; it shows how the session begins."""
    await say(db, "a", "hello there")
    await db.set_session_title("a", "Kitchen plans")
    await say(db, "b", "kitchen sink")
    results = (await search(tool, query="kitchen"))["results"]
    assert [(found["session_id"], found["matched_role"]) for found in results] == [
        ("b", "user"),
        ("a", "session_title"),
    ]
    assert results[1]["messages"][0]["content"] == "hello there"
    assert (await search(tool, query="kitchen", limit=1))["count"] == 1


async def test_a_question_is_answered_by_what_stands_beside_its_words(db: SessionDB, tool: SessionSearchTool) -> None:
    """Other forms of the words, and the turn after a question, count; said to be relaxed."""
    await say(db, "a", "did you adopt a dog?", "yes, on Monday, from the shelter", "nice weather")
    await say(db, "b", "we adopted a wonderful dog last spring")
    result = await search(tool, query="When were the dogs adopted?")
    assert result["relaxed"] is True
    found = {match["content"] for session in result["results"] for match in session["matches"]}
    assert {"we adopted a wonderful dog last spring", "yes, on Monday, from the shelter"} <= found


async def test_a_search_that_was_stopped_says_so(
    db: SessionDB, tool: SessionSearchTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it has until then."""
    await say(db, "a", "tea")
    monkeypatch.setattr("session_store.search.SEARCH_TIME", -1.0)
    result = await search(tool, query="tea")
    assert (result["success"], result["stopped"]) == (True, True)
    assert "two seconds" in result["note"]


async def test_times_are_written_in_the_zone_asked_for(db: SessionDB) -> None:
    """The same instant on another wall clock; a time that no clock can show is left blank."""
    await db.create_session("a", "cli", owner="owner")
    await db.append_message("a", "user", "tea", timestamp=1_700_000_000)
    tokyo = SessionSearchTool(db, OWNER, None, zone=TOKYO)
    assert (await search(tokyo, query="tea"))["results"][0]["when"] == "2023-11-15 07:13"
    await db.append_message("a", "user", "milk", timestamp=1e15)
    assert (await search(tokyo, query="milk"))["results"][0]["when"] == ""


@pytest.mark.parametrize("query", ["NOT", "NOT tea", "x" * 3000])
async def test_a_query_that_cannot_be_searched_is_explained(tool: SessionSearchTool, query: str) -> None:
    """The result says in a sentence what to write instead; nothing is raised."""
    result = await search(tool, query=query)
    assert result["success"] is False
    assert result["error"].endswith(".")


async def test_odd_characters_are_searched_or_explained(db: SessionDB, tool: SessionSearchTool) -> None:
    """Surrogates, NUL, quotes and emoji never break a search."""
    await say(db, "a", "path/to/file.py 50% #123 a@b.example don't 🎉")
    for query in (
        "path/to/file.py",
        "50%",
        "#123",
        "a@b.example",
        "don't",
        "🎉",
        '"path/to',
        "tea\x00",
        "\ud83d",
        "* ( )",
    ):
        assert "success" in await search(tool, query=query)
    assert contents(await search(tool, query="🎉"))


async def test_a_store_that_fails_is_told_in_its_words(
    db: SessionDB, tool: SessionSearchTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the store becomes the result's sentence, never an empty list."""

    async def busy(*_arguments: object, **_options: object) -> None:
        raise StoreBusy

    monkeypatch.setattr(db, "search_messages", busy)
    monkeypatch.setattr(db, "list_sessions", busy)
    assert await search(tool, query="tea") == {"success": False, "error": str(StoreBusy())}
    assert await search(tool) == {"success": False, "error": str(StoreBusy())}


async def test_the_toolbox_knows_its_tools(db: SessionDB) -> None:
    """The schema's tool is there; another one is an error that names those that are."""
    tools = TurnTools(db, OWNER, None)
    assert [schema["function"]["name"] for schema in SCHEMAS] == ["session_search"]
    assert json.loads(await tools.call("session_search", {}))["success"] is True
    answer = json.loads(await tools.call("shell", {"command": "x"}))
    assert answer["success"] is False
    assert "“shell”" in answer["error"]
    assert "session_search" in answer["error"]


def test_the_schema_names_every_argument_that_is_read() -> None:
    """What a model is told is what the tool understands."""
    properties = SESSION_SEARCH_SCHEMA["function"]["parameters"]["properties"]
    assert set(properties) == {
        "query",
        "limit",
        "sort",
        "role_filter",
        "include_current",
        "session_id",
        "around_message_id",
        "window",
    }
    assert (properties["limit"]["maximum"], properties["window"]["maximum"]) == (10, 20)
