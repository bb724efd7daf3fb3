"""Any Python string can be stored; it comes back as it was, but for surrogates, which no file can hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from session_store import SessionDB
from session_store.text import clean_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300) | st.sampled_from(
    [
        "",
        "\x00",
        "a\x00b",
        "\ud83d",
        "ok \ud83d end",
        "\ud83d\ude00",
        "\udc80\udcff",
        "\ufffe\uffff",
        "\u202e",
        "'",
        '"',
    ]
)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=30))
async def test_any_text_round_trips(texts: list[str]) -> None:
    """Through every column that callers fill, over a close and a reopening."""
    with tempfile.TemporaryDirectory() as folder:
        async with SessionDB(Path(folder) / "state.db") as db:
            await db.create_session("s", "cli", system_prompt=texts[0])
            for text in texts:
                await db.append_message("s", "user", text, reasoning=text, tool_name=text, finish_reason=text)
        async with SessionDB(Path(folder) / "state.db") as db:
            messages = await db.get_messages("s")
            session = await db.get_session("s")

    expected = [clean_text(text) for text in texts]
    assert [row["content"] for row in messages] == expected
    assert [row["reasoning"] for row in messages] == expected
    assert [row["tool_name"] for row in messages] == expected
    assert session is not None
    assert session["system_prompt"] == expected[0]


@given(ANY_TEXT)
def test_cleaning_changes_surrogates_only(text: str) -> None:
    """Pairs become the character they mean, lone ones the replacement character; the rest is untouched."""
    cleaned = clean_text(text)

    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text
