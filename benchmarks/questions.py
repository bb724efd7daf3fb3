"""How well questions find what was said: the share of questions whose evidence is among the first twenty hits.

    python -m benchmarks.questions [--write docs/benchmarks.md]

Two people talk in 70 sessions, half of them in English and half in Chinese: small talk, and things that they tell each
other once. Each question asks for one of these things in other words than it was told: other forms of the words, a word
less or more, sometimes only the neighbouring turn shares any. The ways of telling and asking are of two halves: the
search was adjusted while looking at one of them, the other was held out. Fixed seed; no model is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.report import machine, write
from benchmarks.telling import SMALL_TALK, TELLINGS, WORDS, Telling
from gateway.tools.finding import Finder
from session_store import QueryError, SessionDB, Visibility

SESSIONS: Final = 70
TOLD: Final = 6
FIRST: Final = 20
AIM: Final = 0.8
SEEN: Final = Visibility(frozenset({"owner"}))
ROLES: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, where it belongs, and the messages that answer it."""

    text: str
    language: str
    held_out: bool
    evidence: frozenset[int]


class Teller:
    """Makes up what is told, no two things alike."""

    def __init__(self) -> None:
        self._chance = random.Random(5)  # noqa: S311 - repeatable text
        self._used: set[tuple[str, ...]] = set()

    def session(self, language: str) -> Iterator[tuple[list[str], Telling | None, dict[str, str]]]:
        """The turns of one session, in groups: small talk, or something that is told, with its words."""
        tellings = [telling for telling in TELLINGS if telling.language == language]
        for telling in self._chance.sample(tellings, TOLD):
            for _ in range(self._chance.randint(1, 3)):
                yield list(self._chance.choice(SMALL_TALK[language])), None, {}
            words = self._words(telling)
            yield [turn.format(**words) for turn in telling.turns], telling, words

    def question(self, telling: Telling, words: dict[str, str]) -> str:
        """One way to ask for it."""
        return self._chance.choice(telling.questions).format(**words)

    def _words(self, telling: Telling) -> dict[str, str]:
        while True:
            words = {name: self._chance.choice(choice) for name, choice in WORDS[telling.language].items()}
            key = (telling.turns[0], *(words[name] for name in telling.known))
            if key not in self._used:
                self._used.add(key)
                return words


async def fill(db: SessionDB) -> list[Asked]:
    """Store the sessions; return the questions."""
    teller = Teller()
    asked: list[Asked] = []
    for number in range(SESSIONS):
        session = await db.create_session(f"talk-{number}", "cli", owner="owner")
        language = ("en", "zh")[number % 2]
        for turns, telling, words in teller.session(language):
            ids = [
                await db.append_message(session, ROLES[place % 2], turn, op_id=f"{number}-{len(asked)}-{place}-{turn}")
                for place, turn in enumerate(turns)
            ]
            if telling is not None:
                evidence = frozenset(ids[place] for place in telling.evidence)
                asked.append(Asked(teller.question(telling, words), language, telling.held_out, evidence))
    return asked


async def measure(path: Path, *, show: bool) -> dict[str, list[tuple[bool, bool]]]:
    """For each half of each language, whether strict and whether relaxed searches found the evidence."""
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    async with SessionDB(path) as db:
        for question in await fill(db):
            answer = await Finder(db, SEEN).find(question.text, ROLES)
            relaxed = {find.hit["id"] for find in answer.finds[:FIRST]}
            strict = await strictly(db, question.text)
            half = f"{question.language}, {'held out' if question.held_out else 'looked at'}"
            found[half].append((bool(question.evidence & strict), bool(question.evidence & relaxed)))
            if show and not question.evidence & relaxed:
                print(f"missed ({half}): {question.text}")
    return found


async def strictly(db: SessionDB, text: str) -> set[int]:
    """What all words together find."""
    try:
        return {hit["id"] for hit in await db.search_messages(text, visible_to=SEEN, limit=FIRST)}
    except QueryError:
        return set()


def table(found: dict[str, list[tuple[bool, bool]]]) -> str:
    """The whole section."""
    lines = [
        f"Measured {machine()}.",
        "",
        (
            f"{SESSIONS} made-up sessions, {sum(map(len, found.values()))} questions; the share of questions whose "
            f"evidence is among the first {FIRST} messages found, without a model."
        ),
        "",
        "| half | questions | all words (strict) | relaxed | aim |",
        "|---|---:|---:|---:|---:|",
    ]
    for half, results in sorted(found.items()):
        strict, relaxed = (sum(one[place] for one in results) / len(results) for place in (0, 1))
        lines.append(f"| {half} | {len(results)} | {strict:.0%} | {relaxed:.0%} | >= {AIM:.0%} |")
    return "\n".join(lines)


def main() -> None:
    """Make the sessions, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the questions whose evidence was missed")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="threadline-questions-") as folder:
        section = table(asyncio.run(measure(Path(folder) / "state.db", show=options.show)))
    print(section)
    if options.write is not None:
        write(options.write, "questions", "Finding what a question asks for", section)


if __name__ == "__main__":
    main()
