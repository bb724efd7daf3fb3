"""Whatever somebody types gives hits or one sentence, in a strict search and as a question; so does a damaged index."""

# ruff: noqa: RUF001 - characters that look like others are what is tested

from __future__ import annotations

import json

import pytest

from gateway.tools.session_search import SessionSearchTool
from session_store import QueryError, SessionDB, Visibility, index

SEEN = Visibility(frozenset({"owner"}))
ROWS = (
    "issue #123 is open",
    "see src/main.py",
    "I don't know",
    "mail a@b.example",
    "error:timeout again",
    "use chat-send",
    r"in C:\tmp\x",
    "50% done",
    "我们昨天讨论了部署脚本",
    "한국어docker배포",
    "party 🎉",
    "e\u0301tude, ｆｕｌｌ width, \u202eright to left\u202c",
)
FOUND = {
    "#123": 0,
    "src/main.py": 1,
    "don't": 2,
    "a@b.example": 3,
    "error:timeout": 4,
    "chat-send": 5,
    r"C:\tmp\x": 6,
    "50%": 7,
    "部署": 8,
    "docker": 9,
    "🎉": 10,
    "étude": 11,
    "full": 11,
    "ＦＵＬＬ": 11,
    "right to left": 11,
}
ODD = (
    "",
    " \t\n",
    '"unclosed',
    '"',
    '""',
    "AND",
    "AND OR NOT",
    "NOT NOT",
    "OR main",
    "*",
    "***",
    "( ) [ ] { } ^ ~ + - :",
    "NEAR(a b)",
    "content : x",
    "rowid:1 OR scope:owner",
    "' OR 1=1 --",
    "\0",
    "a\0b",
    "\ud83d",
    "x\udfffy",
    "\u0301\u0301",
    "\u202e\u2066\u200b",
    "🎉🎉🎉",
    "the of and to",
    "的 了 吗",
    "部署docker배포скрипт",
    "x" * 2048,
    "word " * 1000,
    "部署" * 2500,
    '"' * 5000,
    "NOT " * 1250,
    "(" * 5000,
)


async def fill(db: SessionDB) -> list[int]:
    """A session with all rows."""
    await db.create_session("s", "cli", owner="owner")
    return [await db.append_message("s", "user", row) for row in ROWS]


async def test_each_row_is_found_by_what_it_says(db: SessionDB) -> None:
    """Exactly that row, in both ways of searching."""
    ids = await fill(db)
    tool = SessionSearchTool(db, SEEN, None)
    for query, row in FOUND.items():
        assert [hit["id"] for hit in await db.search_messages(query)] == [ids[row]], query
        (result,) = json.loads(await tool.call({"query": query}))["results"]
        assert [match["id"] for match in result["matches"]] == [ids[row]], query


@pytest.mark.parametrize("query", ODD, ids=lambda query: ascii(query)[:30])
async def test_odd_queries_are_answered_or_explained(db: SessionDB, query: str) -> None:
    """Nothing else is raised, and a sentence says what to do."""
    await fill(db)
    try:
        hits = await db.search_messages(query, visible_to=SEEN)
    except QueryError as error:
        assert str(error).endswith(".")  # noqa: PT017 - hits are as good
    else:
        assert not hits.stopped
    result = json.loads(await SessionSearchTool(db, SEEN, None).call({"query": query}))
    assert result["success"] or result["error"].endswith(".")


@pytest.mark.parametrize("state", ["broken", "outdated", "half built", "missing"])
async def test_an_index_that_cannot_be_used_is_no_empty_answer(db: SessionDB, state: str) -> None:
    """The messages are read instead, strictly and for questions."""
    ids = await fill(db)
    steps = {
        "broken": lambda tx: index.mark_broken(tx, "a test"),
        "outdated": lambda tx: tx.run("UPDATE state_meta SET value = '0' WHERE key = 'fts_segmentation'"),
        "half built": index.start_rebuild,
        "missing": lambda tx: tx.run("DROP TABLE messages_fts"),
    }
    await db._store.write(steps[state])  # noqa: SLF001 - nothing public damages an index
    assert [hit["id"] for hit in await db.search_messages("src/main.py")] == [ids[1]]
    result = json.loads(await SessionSearchTool(db, SEEN, None).call({"query": "where were the scripts for 部署?"}))
    assert ids[8] in {match["id"] for found in result["results"] for match in found["matches"]}
