"""What the agent reads beside a user message: who spoke, what is quoted, what was changed since.

Contract: pure. Each note is one line in square brackets before the text; what people wrote stands in it as a JSON
string on that line, cut to `QUOTED_CHARACTERS`, so that it can neither end the note nor begin another. A line of the
text itself that looks like a note gets a backslash. The stored text has none of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gateway.phrases import harmless

if TYPE_CHECKING:
    from session_store import ChangeRow, MessageRow, NoteRow

__all__ = ["QUOTED_CHARACTERS", "annotated"]

NAME_CHARACTERS = 64
QUOTED_CHARACTERS = 1500

_LOOKS_LIKE_A_NOTE = re.compile(
    r"^([^\S\n]*)(?=\[(?:from|in reply to|changed|deleted)\b)", re.IGNORECASE | re.MULTILINE
)


def annotated(message: MessageRow, note: NoteRow | None, changes: Sequence[ChangeRow]) -> Any:
    """The content of a user message as the agent is to see it."""
    lines = [_change(change) for change in changes]
    if note is not None and note["quoted"] is not None:
        whose = f" {_said(note['quoted_name'], NAME_CHARACTERS)}" if note["quoted_name"] else ""
        lines.append(f"[in reply to{whose}: {_said(note['quoted'], QUOTED_CHARACTERS)}]")
    if note is not None and note["sender"]:
        lines.append(f"[from {_said(note['sender'], NAME_CHARACTERS)}]")
    content = message["content"]
    if not lines:
        return content
    if isinstance(content, list):
        return [{"type": "text", "text": "\n".join(lines)}, *(_escaped_part(part) for part in content)]
    return "\n".join([*lines, _escaped(content)]) if isinstance(content, str) else content


def _change(change: ChangeRow) -> str:
    before, now = change["before"], change["now"]
    if change["kind"] == "delete":
        what = f" It was: {_said(now, QUOTED_CHARACTERS)}." if now else ""
        return f"[deleted by its author: an earlier message.{what}]"
    former = f" before: {_said(before, QUOTED_CHARACTERS)};" if before else ""
    present = _said(now, QUOTED_CHARACTERS)
    return f"[changed by its author after you had read it: an earlier message;{former} now: {present}]"


def _said(text: str | None, limit: int) -> str:
    """Somebody's words as one JSON string."""
    words = harmless(text or "").strip()
    return json.dumps(words if len(words) <= limit else words[: limit - 1] + "…", ensure_ascii=False)


def _escaped(text: str) -> str:
    return _LOOKS_LIKE_A_NOTE.sub(r"\1\\", text)


def _escaped_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {**part, "text": _escaped(part["text"])}
    return part
