"""How much bots may say in a chat before nobody listens any more.

Contract: judged and counted in the transaction that accepts the message, so that neither a restart nor a second process
forgets it. A message of a person sets the depth back; nothing sets the rate back but time. Messages without caps are
those of people.
"""

from __future__ import annotations

from session_store.models import BotCaps, NewInbox
from session_store.tx import Tx

__all__ = ["heard"]

TALK = "SELECT depth, spoken, since FROM bot_talk WHERE platform = ? AND account = ? AND chat = ?"
COUNT = """
INSERT INTO bot_talk (platform, account, chat, depth, spoken, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (platform, account, chat) DO UPDATE SET depth = ?4, spoken = ?5, since = ?6
"""
PERSON_SPOKE = "UPDATE bot_talk SET depth = 0 WHERE platform = ? AND account = ? AND chat = ? AND depth > 0"


def heard(tx: Tx, row: NewInbox) -> bool:
    """Whether this message is listened to; counts it if so."""
    chat = (row.place.platform, row.place.account, row.place.chat)
    caps: BotCaps | None = row.caps
    if caps is None:
        if row.kind in {"message", "command"}:
            tx.run(PERSON_SPOKE, chat)
        return True
    known = tx.one(TALK, chat) or {"depth": 0, "spoken": 0, "since": tx.now}
    # A clock that was put back begins a new period, too: it must not lock a bot out for years.
    over = not 0 <= tx.now - known["since"] < caps.seconds
    spoken, since = (0, tx.now) if over else (known["spoken"], known["since"])
    if known["depth"] >= caps.depth or spoken >= caps.spoken:
        return False
    tx.run(COUNT, (*chat, known["depth"] + 1, spoken + 1, since))
    return True
