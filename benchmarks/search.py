"""How fast a long history is searched, and how large its index is.

    python -m benchmarks.search [--messages 200000] [--rounds 8] [--write docs/benchmarks.md]

Builds a store in a temporary folder (benchmarks/history.py), then asks queries of each class in random order, each
through the public functions that people's searches use. Queries are drawn from the messages themselves with a fixed
seed: common words are among the twenty most frequent, rare ones occur at most twice in a sample of 20,000 messages.
With --messages 1000000 the aims are those of the large store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.corpus import messages
from benchmarks.history import LITERALS, OWNER, build
from benchmarks.report import machine, write
from gateway.tools.session_search import SessionSearchTool
from session_store import SessionDB, Visibility
from session_store.driver import connect
from session_store.segment import runs

Ask: TypeAlias = Callable[[SessionDB], Awaitable[Any]]

LARGE: Final = 1_000_000
QUERIES: Final = 12
SAMPLE: Final = 20_000
#: Longer texts are tool output, in which nobody looks for words.
LONGEST: Final = 3000
#: A rare word is found so often among the sample.
RARE: Final = 2
WORDS: Final = 5
LETTERS: Final = 4
SEEN: Final = Visibility(frozenset({OWNER}))
INDEX_AIM: Final = 800
FILE_AIM: Final = 2.2
#: Pages of the file by what they hold; the index's own tables.
INDEX_BYTES: Final = "SELECT sum(length(block)) FROM messages_fts_data"
DOCSIZE_BYTES: Final = "SELECT sum(length(sz) + 8) FROM messages_fts_docsize"


class Draw:
    """Queries drawn from what is stored."""

    def __init__(self, count: int) -> None:
        self._chance = random.Random(11)  # noqa: S311 - repeatable queries
        words: Counter[str] = Counter()
        han: Counter[str] = Counter()
        self._texts: list[str] = []
        for text in itertools.islice(messages(7), min(SAMPLE, count)):
            if len(text) > LONGEST:
                continue
            self._texts.append(text)
            for _, run, unspaced in runs(text):
                (han if unspaced else words)[run] += 1
        letters: Counter[str] = Counter("".join(han.elements()))
        pairs = Counter(run[at : at + 2] for run in han.elements() for at in range(len(run) - 1))
        plain = [(word, times) for word, times in words.most_common() if word.isalpha() and word.isascii()]
        self.common = [word for word, _ in plain[:20]]
        self.mid = [word for word, _ in plain[200:600]]
        self.rare = [word for word, times in plain if times <= RARE]
        self.letters = [letter for letter, _ in letters.most_common(400)]
        self.pairs = [pair for pair, _ in pairs.most_common(2000)]

    def any(self, words: list[str]) -> str:
        """One of them."""
        return self._chance.choice(words)

    def phrase(self) -> str:
        """Two or three words that stand side by side somewhere."""
        while True:
            words = self._chance.choice(self._texts).split()
            if len(words) > WORDS and words[0].isascii():
                at = self._chance.randrange(len(words) - 3)
                return '"' + " ".join(words[at : at + self._chance.choice((2, 3))]) + '"'

    def four(self) -> str:
        """Four characters that stand side by side somewhere."""
        while True:
            found = [
                run for _, run, unspaced in runs(self._chance.choice(self._texts)) if unspaced and len(run) >= LETTERS
            ]
            if found:
                return self._chance.choice(found)[:LETTERS]

    def literal(self) -> str:
        """An identifier of one of the shapes."""
        return self._chance.choice(LITERALS).format(self._chance.randrange(400))


def searches(draw: Draw) -> dict[str, list[Ask]]:
    """The queries of each class."""
    make: dict[str, Callable[[], str]] = {
        "one common word": lambda: draw.any(draw.common),
        "one rare word": lambda: draw.any(draw.rare),
        "two words, both common": lambda: f"{draw.any(draw.common)} {draw.any(draw.common)}",
        "two words, common and medium": lambda: f"{draw.any(draw.common)} {draw.any(draw.mid)}",
        "two words, one rare": lambda: f"{draw.any(draw.mid)} {draw.any(draw.rare)}",
        "OR of three": lambda: " OR ".join(draw.any(draw.mid) for _ in range(3)),
        "NOT": lambda: f"{draw.any(draw.mid)} NOT {draw.any(draw.common)}",
        "phrase": draw.phrase,
        "prefix of 3 letters": lambda: draw.any(draw.mid)[:3] + "*",
        "prefix of 5 letters": lambda: draw.any([word for word in draw.mid if len(word) > WORDS])[:WORDS] + "*",
        "1 Chinese character": lambda: draw.any(draw.letters),
        "2 Chinese characters": lambda: draw.any(draw.pairs),
        "4 Chinese characters": draw.four,
        "punctuation literal": draw.literal,
    }
    found: dict[str, list[Ask]] = {}
    for name, query in make.items():
        queries = [query() for _ in range(QUERIES)]
        found[name] = [partial(_ask, query=query) for query in queries]
        if name in {"one common word", "two words, common and medium", "1 Chinese character"}:
            found[f"{name}, one person's"] = [partial(_ask, query=query, visible_to=SEEN) for query in queries]
        if name == "one common word":
            found[f"{name}, by relevance"] = [partial(_ask, query=query, sort="relevance") for query in queries]
            found[f"{name}, oldest first"] = [partial(_ask, query=query, sort="oldest") for query in queries]
    return found


async def _ask(db: SessionDB, **options: Any) -> None:
    await db.search_messages(**options)


async def tool_calls(db: SessionDB, draw: Draw) -> dict[str, list[Ask]]:
    """Discovery with windows and bookends, and scrolling from what was found."""
    queries = [draw.any(draw.common) for _ in range(QUERIES // 2)] + [draw.any(draw.mid) for _ in range(QUERIES // 2)]
    hits = await db.search_messages(queries[0], visible_to=SEEN, limit=QUERIES)
    places = [{"session_id": hit["session_id"], "around_message_id": hit["id"]} for hit in hits]
    question = "what did we say about {} and when was {} changed"
    return {
        "session_search: discovery": [partial(_call, arguments={"query": query, "limit": 5}) for query in queries],
        "session_search: discovery, relaxed": [
            partial(_call, arguments={"query": question.format(draw.any(draw.mid), draw.any(draw.rare))})
            for _ in queries
        ],
        "session_search: scroll": [partial(_call, arguments=place) for place in places],
        "session_search: browse": [partial(_call, arguments={})],
    }


async def _call(db: SessionDB, arguments: dict[str, Any]) -> None:
    result = json.loads(await SessionSearchTool(db, SEEN, None).call(arguments))
    assert result["success"], result  # noqa: S101 - a measured failure would look fast


async def measure(path: Path, count: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of every query by class: on the clock, and of the processor."""
    draw = Draw(count)
    async with SessionDB(path) as db:
        classes = searches(draw) | await tool_calls(db, draw)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in classes}
        asked = [(name, ask) for name, asks in classes.items() for ask in asks]
        order = random.Random(3)  # noqa: S311 - repeatable order
        for number in range(rounds + 1):
            for name, ask in order.sample(asked, len(asked)):
                started, busy = time.perf_counter(), time.process_time()
                await ask(db)
                took, worked = time.perf_counter() - started, time.process_time() - busy
                if number:  # the first round warms the caches
                    times[name].append((took * 1000, worked * 1000))
    return times


def sizes(path: Path, count: int, text: int) -> str:
    """Bytes of the index and of the file."""
    connection = connect(path, "ro")
    held = sum(int(connection.execute(sql).fetchone()[0]) for sql in (INDEX_BYTES, DOCSIZE_BYTES))
    connection.close()
    file = path.stat().st_size
    return (
        f"Text {text / count:,.0f} bytes a message; index {held / count:,.0f} bytes a message (aim <= {INDEX_AIM}); "
        f"file {file / text:.2f} times the text (aim <= {FILE_AIM})."
    )


def aim(name: str, count: int) -> tuple[float, float | None]:
    """Milliseconds aimed at: the median and the slowest in a hundred."""
    if name.endswith(("discovery", "relaxed")) or count >= LARGE:
        return 20.0, None
    return (1.0, None) if name.endswith("scroll") else (5.0, 50.0)


def table(times: dict[str, list[tuple[float, float]]], count: int, size: str) -> str:
    """The whole section."""
    lines = [
        f"Measured {machine()}.",
        "",
        f"{count:,} messages, mixed English, Chinese, Russian and identifiers. {size}",
        "",
        "The time of the processor is what a search costs; on the clock it waits for others, too.",
        "",
        "| search | p50 | aim | p99 | aim | processor p50 | p99 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, taken in times.items():
        middle, slow = aim(name, count)
        (half, tail), (busy, busiest) = (
            (statistics.median(column), statistics.quantiles(column, n=100)[98]) for column in zip(*taken, strict=True)
        )
        lines.append(
            f"| {name} | {half:.1f} ms | <= {middle:g} | {tail:.1f} ms | {'' if slow is None else f'<= {slow:g}'} "
            f"| {busy:.1f} ms | {busiest:.1f} ms |"
        )
    lines += ["", f"The machine's load was {os.getloadavg()[0]:.1f} when it ended."]
    return "\n".join(lines)


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--keep", type=Path, help="a folder to build in, or to use again if it was built before")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="threadline-search-") as temporary:
        folder = options.keep or Path(temporary)
        path, noted = folder / f"{options.messages}.db", folder / f"{options.messages}.bytes"
        if not noted.exists():
            folder.mkdir(exist_ok=True, parents=True)
            noted.write_text(str(build(path, options.messages)), encoding="ascii")
        text = int(noted.read_text(encoding="ascii"))
        times = asyncio.run(measure(path, options.messages, options.rounds))
        section = table(times, options.messages, sizes(path, options.messages, text))
    print(section)
    if options.write is not None:
        write(options.write, f"search-{options.messages}", f"Searching {options.messages:,} messages", section)


if __name__ == "__main__":
    main()
