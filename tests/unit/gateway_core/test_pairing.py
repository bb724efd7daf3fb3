"""Pairing with a one-time code: who becomes whom, once, and how guessing is stopped."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from adapters.base import Verdict
from gateway import pairing
from gateway.access import Admission, Gate
from gateway.pairing import ALPHABET, CODE_LENGTH, PairingDesk, looks_like_code
from gateway.platforms import served_accounts
from session_store import SessionDB
from tests.conftest import Elsewhere
from tests.unit.gateway_core.fakes import event
from tests.unit.gateway_core.hall import Hall, settings

STRANGER: dict[str, Any] = {"chat": "66", "user": "66"}
WRONG = "AAAA-BBBB"


async def codes_for(db: SessionDB, name: str | None = None) -> str:
    """A fresh code for Telegram."""
    return await PairingDesk(db).issue("telegram", name)


async def test_codes_are_unambiguous_and_only_their_hash_is_stored(db: SessionDB, elsewhere: Elsewhere) -> None:
    """Eight characters without look-alikes; the row holds an argon2 hash."""
    code = await codes_for(db)
    assert re.fullmatch(f"[{ALPHABET}]{{{CODE_LENGTH}}}", code)
    assert not set("IO01") & set(ALPHABET)
    (row,) = elsewhere("SELECT * FROM pairing_codes")
    assert row["code_hash"].startswith("$argon2id$")
    assert code not in str(row)
    assert 3590 < row["expires_at"] - row["created_at"] <= 3600


@pytest.mark.parametrize(
    "form",
    [
        "{0}{1}",
        "{0}-{1}",
        "  {0} {1}\n",
        "/start {0}-{1}",
        "/pair {0}{1}",
        "/start@gatebot {0}{1}",
    ],
)
async def test_a_code_makes_the_sender_the_owner_and_says_so(hall: Hall, form: str) -> None:
    """However it is typed, in capitals or not; the welcome goes to the chat that the code came from."""
    code = await codes_for(hall.db)
    assert await hall.say(form.format(code[:4], code[4:]).lower(), kind="message", **STRANGER) is Verdict.DENIED
    async with hall.running():
        (welcome,) = await hall.sent(1)
    assert "yours" in welcome
    assert hall.adapter.sent[0].place.chat == "66"
    assert await hall.db.people.person_of("telegram", "", "66") == ("owner", "pairing")
    assert await hall.say("hello", **STRANGER) is Verdict.ACCEPTED


async def test_a_code_with_a_name_makes_the_sender_that_person(hall: Hall) -> None:
    """The named person of the settings is the same as the one named here."""
    code = await codes_for(hall.db, "colleague")
    await hall.say(code, **STRANGER)
    known = await hall.db.people.person_of("telegram", "", "66")
    named = await hall.db.people.person_of("telegram", "", "43")
    assert known is not None
    assert named is not None
    assert known[0] == named[0]
    async with hall.running():
        (welcome,) = await hall.sent(1)
    assert "colleague" in welcome


async def test_a_code_works_once(hall: Hall) -> None:
    """The second stranger with the same code stays a stranger."""
    code = await codes_for(hall.db)
    await hall.say(code, **STRANGER)
    assert await hall.say(code, chat="67", user="67") is Verdict.DENIED
    assert await hall.db.people.person_of("telegram", "", "67") is None


async def test_the_message_with_the_code_delivered_again_does_nothing(hall: Hall) -> None:
    """It is not a second welcome, not a wrong guess, and never a message to the agent."""
    code = await codes_for(hall.db)
    first = event(code, **STRANGER)
    await hall.told(first)
    assert await hall.told(first) is Verdict.DUPLICATE
    async with hall.running():
        await hall.quiet()
    assert len(hall.adapter.sent) == 1
    assert hall.agent.asked == []


async def test_an_expired_code_is_worth_nothing(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its hour it is like any other text of a stranger."""
    monkeypatch.setattr(pairing, "CODE_TTL_SECONDS", -1.0)
    code = await codes_for(hall.db)
    assert await hall.say(code, **STRANGER) is Verdict.DENIED
    assert await hall.db.people.person_of("telegram", "", "66") is None


async def test_five_wrong_codes_lock_a_sender_out_for_an_hour(hall: Hall, elsewhere: Elsewhere) -> None:
    """Then even the right one is not looked at; another identity is free to use it."""
    code = await codes_for(hall.db)
    for _ in range(5):
        await hall.say(WRONG, **STRANGER)
    assert await hall.say(code, **STRANGER) is Verdict.DENIED
    assert await hall.db.people.person_of("telegram", "", "66") is None
    (row,) = elsewhere("SELECT locked_until - updated_at AS seconds FROM pairing_failures")
    assert 3590 < row["seconds"] <= 3600
    await hall.say(code, chat="67", user="67")
    assert await hall.db.people.person_of("telegram", "", "67") == ("owner", "pairing")


async def test_four_wrong_codes_and_the_right_one_pair(hall: Hall) -> None:
    """Mistyping is forgiven."""
    code = await codes_for(hall.db)
    for _ in range(4):
        await hall.say(WRONG, **STRANGER)
    await hall.say(code, **STRANGER)
    assert await hall.db.people.person_of("telegram", "", "66") == ("owner", "pairing")


async def test_one_wrong_code_delivered_many_times_is_one_failure(hall: Hall) -> None:
    """A platform that repeats itself locks nobody out."""
    code = await codes_for(hall.db)
    wrong = event(WRONG, **STRANGER)
    for _ in range(8):
        await hall.told(wrong)
    await hall.say(code, **STRANGER)
    assert await hall.db.people.person_of("telegram", "", "66") == ("owner", "pairing")


async def test_without_an_open_code_nothing_is_counted(hall: Hall, elsewhere: Elsewhere) -> None:
    """Strangers whose words look like codes leave no trace while nobody is pairing."""
    for _ in range(6):
        await hall.say("answered", **STRANGER)
    assert elsewhere("SELECT * FROM pairing_failures") == []


async def test_codes_count_in_direct_chats_only(hall: Hall) -> None:
    """In a group everybody would read it; it stays open for the right place."""
    code = await codes_for(hall.db)
    await hall.say(code, chat="-5", chat_type="group", user="66")
    assert await hall.db.people.person_of("telegram", "", "66") is None
    await hall.say(code, **STRANGER)
    assert await hall.db.people.person_of("telegram", "", "66") == ("owner", "pairing")


async def test_an_edit_is_no_code(hall: Hall) -> None:
    """A message edited into a code pairs nobody."""
    code = await codes_for(hall.db)
    assert await hall.say(code, kind="edit", dedupe_key="e:66:1:1", **STRANGER) is Verdict.DENIED
    assert await hall.db.people.person_of("telegram", "", "66") is None


async def test_who_is_merely_allowed_can_become_the_owner(hall: Hall) -> None:
    """The code of somebody on the list of allowed users is redeemed, not answered."""
    code = await codes_for(hall.db)
    assert await hall.say(code, chat="44", user="44") is Verdict.DENIED
    assert await hall.db.people.person_of("telegram", "", "44") == ("owner", "pairing")
    async with hall.running():
        await hall.quiet()
    assert hall.agent.asked == []


async def test_words_like_a_code_from_somebody_allowed_are_a_message(hall: Hall) -> None:
    """With a code open, `answered` is still answered."""
    await codes_for(hall.db)
    assert await hall.say("answered", chat="44", user="44") is Verdict.ACCEPTED
    async with hall.running():
        await hall.quiet()
    assert hall.agent.texts == ["answered"]


async def test_words_like_a_code_from_the_owner_are_a_message(hall: Hall) -> None:
    """The owner pairs nobody by mistake."""
    code = await codes_for(hall.db, "colleague")
    assert await hall.say(code) is Verdict.ACCEPTED
    assert await hall.db.people.person_of("telegram", "", "42") == ("owner", "config")


async def test_pairing_in_one_process_counts_in_another_at_once(db: SessionDB) -> None:
    """A gate that was there before sees the pairing that another one made."""
    served = served_accounts(settings())
    one, other = Gate(served, db), Gate(served, db)
    assert not isinstance(await other.admit(event("hello", **STRANGER)), Admission)
    await one.admit(event(await codes_for(db), **STRANGER))
    assert await other.admit(event("hello", **STRANGER)) == Admission("owner")


@pytest.mark.parametrize(
    "text",
    ["", "hello", "ABCD-EFG", "ABCDEFGHJ", "ABCD EFGH please", "I0O1-ABCD", "/help ABCDEFGH", "ABCD\nEFGH"],
)
def test_other_texts_are_no_codes(text: str) -> None:
    """Too short, too long, with other words, with look-alikes."""
    assert looks_like_code(text) is None


async def test_many_guesses_at_once_are_hashed_two_at_a_time(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hash takes 19 MiB and a core."""
    await codes_for(hall.db)
    lock, now, most = threading.Lock(), 0, 0
    real = pairing._matches  # noqa: SLF001 - counted, not replaced

    def counted(code_hash: str, code: str) -> bool:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        try:
            return real(code_hash, code)
        finally:
            with lock:
                now -= 1

    monkeypatch.setattr(pairing, "_matches", counted)
    await asyncio.gather(*(hall.say(WRONG, chat=str(100 + n), user=str(100 + n)) for n in range(12)))
    assert most == 2
