"""What a turn shows to the model while a conversation grows: how much, and how long it takes to find that out.

    python -m benchmarks.context [--messages 5000] [--write docs/benchmarks.md]

A conversation grows to so many messages of varied text, once left alone and once compressed at the threshold of the
default settings (with a summary of full length). At several lengths the context of the next turn is made a number of
times as the gateway makes it; reported are the bytes that are sent to the model and the median time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import messages
from benchmarks.report import machine, write
from config import Settings
from gateway.compression import first_kept
from gateway.context import Contexts
from gateway.window import exchanges
from session_store import Compress, SessionDB, Visibility

LENGTHS = (50, 200, 500, 1000, 2000, 3000, 4000, 5000)
TIMES = 15
OWNER = Visibility(frozenset({"owner"}))


@dataclass(frozen=True, slots=True)
class Look:
    """The next turn at some length. sent: bytes of the conversation; milliseconds: median to make the context."""

    length: int
    sent: int
    tokens: int
    milliseconds: float
    segments: int


async def _look(db: SessionDB, contexts: Contexts, session_id: str, length: int) -> Look:
    text = "What did we say about the harbour?"
    question = await db.append_message(session_id, "user", text)
    context = await contexts.build(session_id, "t", text, OWNER, question)
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await contexts.build(session_id, "t", text, OWNER, question)
        times.append(1000 * (time.perf_counter() - began))
    await db.append_message(session_id, "assistant", "That it freezes over.")
    seen = await contexts.seen(session_id)
    sent = len(json.dumps(list(context.conversation), ensure_ascii=False).encode())
    return Look(length, sent, seen.tokens, statistics.median(times), len(await db.conversation_of(session_id)))


async def _compress(db: SessionDB, contexts: Contexts, session_id: str, holder: str, number: int) -> None:
    """What the gateway does at the threshold, the summary being as long as it may be."""
    seen = await contexts.seen(session_id)
    parts = exchanges(seen.view.rows)
    kept = first_kept(parts, contexts.limit // 4, contexts.limit // 2)
    async with asyncio.timeout(10):
        held = await db.holding.take(session_id, holder, f"w{number}", "compression")
    if held.fence is not None and held.session is not None and kept:
        summary = "What was said before. " * (contexts.limit // 8 // 22)
        tip = held.session["id"]
        await db.compressions.compress(Compress(held.fence, tip, f"s{number}", summary, parts[kept].first_id))
        await db.holding.let_go(held.fence)


async def grow(folder: Path, most: int, *, compressing: bool) -> list[Look]:
    """Let a conversation grow to `most` messages; what each length shows."""
    settings = Settings()
    looks = []
    texts = messages(7)
    async with SessionDB(folder / f"{compressing}.db") as db:
        holder = await db.processes.register("gateway", [], {})
        contexts = Contexts(db, limit=settings.agent.context_tokens)
        await db.create_session("s", "cli", owner="owner", title="Long")
        due = contexts.limit * settings.compression.threshold // 100
        count = compressed = 0
        for length in (length for length in LENGTHS if length <= most):
            while count < length:
                await db.append_message("s", "user", next(texts))
                await db.append_message("s", "assistant", next(texts))
                count += 2
                if compressing and count % 20 == 0 and (await contexts.seen("s")).tokens >= due:
                    compressed += 1
                    await _compress(db, contexts, "s", holder, compressed)
            looks.append(await _look(db, contexts, "s", length))
    return looks


def report(alone: list[Look], compressed: list[Look], limit: int) -> str:
    """The section of the document."""
    lines = [
        f"Measured: {machine()}.",
        "",
        f"A budget of {limit:,} tokens, compression at {Settings().compression.threshold} %. Sent: what is shown",
        "of the conversation, as JSON, in UTF-8 bytes. Time: the median of making a context, reading included.",
        "",
        "| messages stored | sent, never compressed | time | sent, compressed by itself | time | sessions |",
        "|---|---|---|---|---|---|",
    ]
    for one, other in zip(alone, compressed, strict=True):
        lines.append(
            f"| {one.length:,} | {one.sent:,} | {one.milliseconds:.1f} ms "
            f"| {other.sent:,} | {other.milliseconds:.1f} ms | {other.segments} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone = asyncio.run(grow(Path(folder), given.messages, compressing=False))
        compressed = asyncio.run(grow(Path(folder), given.messages, compressing=True))
    section = report(alone, compressed, Settings().agent.context_tokens)
    print(section)
    if given.write is not None:
        write(given.write, "context", "What a turn shows to the model", section)


if __name__ == "__main__":
    main()
