"""Where one was: the last exchanges of a conversation in short.

Contract: at most `EXCHANGES` exchanges, oldest first. What a person said takes one line of `QUESTION` characters, an
answer `ANSWER` characters or `ANSWER_LINES` lines, the last answer is whole; tool calls are folded to count and names
and stand before the answer they led to. Results of tools, what a model thought, system prompts and rewound messages are
left out; nothing in it can act on a terminal. How many messages came before is counted.
Limits: the last `LOOKED_AT` messages are looked at, so a recap costs the same however long the conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gateway.phrases import age, folded, harmless, inert, one_line, plural, spoken_at
from gateway.said import text_of, tool_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_store import MessageRow, SessionDB, SessionRow

__all__ = ["EXCHANGES", "Entry", "Recap", "recap_of", "told"]

EXCHANGES: Final = 10
QUESTION: Final = 300
ANSWER: Final = 200
ANSWER_LINES: Final = 3
LOOKED_AT: Final = 1_000
_PAGE: Final = 100
_TOLD_EXCHANGES: Final = 2
_TOLD_QUESTION: Final = 140


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a recap. whole: the last answer, as it is stored (Markdown)."""

    kind: Literal["said", "answered", "tools"]
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Recap:
    """A conversation in short. messages: of all its segments; earlier: those before the first entry."""

    session: SessionRow
    messages: int
    earlier: int
    entries: Sequence[Entry]

    def head(self, now: float) -> str:
        """The conversation in one line."""
        name = f"“{self.session['title']}”" if self.session["title"] else self.session["id"]
        last = age(self.session["last_active"] or self.session["started_at"], now)
        return f"Going on with {name}: {plural(self.messages, 'message')}, the last one {last}."

    def before(self) -> str:
        """How much came before, '' when nothing did."""
        return f"... {plural(self.earlier, 'earlier message')}" if self.earlier > 0 else ""


async def recap_of(db: SessionDB, session_id: str, exchanges: int = EXCHANGES) -> Recap | None:
    """The recap of a conversation, given by any of its sessions; None for an unknown one."""
    ids = await db.conversation_of(session_id)
    segments = [segment for one in ids if (segment := await db.get_session(one)) is not None]
    if not segments:
        return None
    rows = await _last_rows(db, ids, exchanges)
    messages = sum(segment["message_count"] for segment in segments)
    shown = [row for row in rows if not row["rewound"] and row["role"] in {"user", "assistant"}]
    asked = [number for number, row in enumerate(shown) if row["role"] == "user"]
    shown = shown[asked[-exchanges] :] if len(asked) > exchanges else shown
    covered = sum(row["id"] >= shown[0]["id"] and not row["rewound"] for row in rows) if shown else 0
    return Recap(segments[-1], messages, messages - covered, _entries(shown))


def told(recap: Recap, now: float) -> str:
    """The recap as Markdown for a chat: what it is, where it was begun, the last exchanges."""
    name = f"“{inert(recap.session['title'])}”" if recap.session["title"] else f"`{recap.session['id']}`"
    last = age(recap.session["last_active"] or recap.session["started_at"], now)
    born = spoken_at(recap.session["source"])
    lines = [f"Going on with {name} (begun {born}): {plural(recap.messages, 'message')}, the last one {last}."]
    for entry in recap.entries:
        if entry.kind == "said":
            lines.append(f"\n> {inert(one_line(entry.text, _TOLD_QUESTION))}\n")
        elif entry.kind == "answered":
            lines.append(inert(_brief(entry.text)))
    return "\n".join(lines)


async def _last_rows(db: SessionDB, ids: Sequence[str], exchanges: int) -> list[MessageRow]:
    """The end of the conversation, far enough back to hold so many exchanges and one more question."""
    rows: list[MessageRow] = []
    for session_id in reversed(ids):
        more = True
        while more and len(rows) < LOOKED_AT:
            before = min((row["id"] for row in rows if row["session_id"] == session_id), default=2**62)
            page = await db.get_messages_before(session_id, before, _PAGE)
            rows = page + rows
            more = len(page) == _PAGE
            if sum(row["role"] == "user" and not row["rewound"] for row in rows) > exchanges:
                return rows
    return rows


def _entries(shown: Sequence[MessageRow]) -> list[Entry]:
    last = next((row["id"] for row in reversed(shown) if row["role"] == "assistant" and text_of(row).strip()), None)
    entries: list[Entry] = []
    tools: list[str] = []
    for row in shown:
        text = harmless(text_of(row)).strip()
        if row["role"] == "user":
            tools = _fold(entries, tools)
            entries.append(Entry("said", one_line(text, QUESTION)))
            continue
        tools += tool_names(row)
        if text:
            tools = _fold(entries, tools)
            whole = row["id"] == last
            entries.append(Entry("answered", text if whole else _brief(text), whole=whole))
    _fold(entries, tools)
    return entries


def _fold(entries: list[Entry], tools: list[str]) -> list[str]:
    """Add what tools were called since, if any; returns that none are open."""
    if tools:
        entries.append(Entry("tools", f"[{folded(tools)}]"))
    return []


def _brief(text: str) -> str:
    """The beginning of an answer, without its empty lines, quoted ones too."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip(" >\t\r")]
    brief = "\n".join(lines[:ANSWER_LINES])
    if len(brief) > ANSWER:
        return brief[: ANSWER - 1].rstrip() + "…"
    return f"{brief} …" if len(lines) > ANSWER_LINES else brief
