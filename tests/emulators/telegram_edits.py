"""What the emulated Bot API does with edits of a bot's own messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.emulators.telegram_rules import MAX_UNITS, Refusal, read_entities, units, whole_number

if TYPE_CHECKING:
    from tests.emulators.telegram import TelegramEmulator
    from tests.emulators.telegram_state import Chat

__all__ = ["edit_text"]


def edit_text(emulator: TelegramEmulator, chat: Chat, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Put another text in the place of what a bot has sent; what changes nothing is refused."""
    number, text = whole_number(fields, "message_id"), str(fields.get("text", ""))
    here = [sent.chat_id == chat.id and sent.message_id == number for sent in emulator.sent]
    if not any(here) or number in chat.removed:
        raise Refusal("Bad Request: message to edit not found")
    if not text.strip():
        raise Refusal("Bad Request: message text is empty")
    if units(text) > MAX_UNITS:
        raise Refusal("Bad Request: MESSAGE_TOO_LONG")
    position = here.index(True)
    before = emulator.sent[position]
    after = replace(before, text=text, entities=read_entities(fields, text))
    if after == before:
        raise Refusal(
            "Bad Request: message is not modified: specified new message content and reply markup are exactly the same "
            "as a current content and reply markup of the message"
        )
    emulator.sent[position] = after
    emulator.edits.append(after)
    return {"message_id": number, "date": int(before.at), "chat": chat.as_json(), "text": text, "edit_date": 1}
