"""Which mails belong together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.threads import base_subject, message_id, message_ids, own_message_id, thread_of

IDS = st.from_regex(r"[A-Za-z0-9.+_-]{1,60}@[a-z0-9.-]{1,40}", fullmatch=True)


@pytest.mark.parametrize(
    ("references", "in_reply_to", "thread"),
    [
        ("", "", "own@x"),
        ("<root@x>", "<root@x>", "root@x"),
        ("<root@x> <mid@x>", "<mid@x>", "root@x"),
        ("<root@x>\t<mid@x>", "", "root@x"),
        ("", "<parent@x>", "parent@x"),
        ("", "Ann's mail of Monday <parent@x>", "parent@x"),
        ("no ids at all", "neither here", "own@x"),
        ("<root@x", "<par ent@x>", "own@x"),
    ],
)
def test_an_answer_belongs_to_the_oldest_mail_it_names(references: str, in_reply_to: str, thread: str) -> None:
    """A mail that names none begins a thread."""
    assert thread_of("own@x", references, in_reply_to) == thread


@given(IDS, IDS, st.text(), st.text())
def test_an_answer_to_one_of_ours_finds_its_thread_whatever_was_left_out(
    thread: str, stranger: str, key: str, content: str
) -> None:
    """Some mail programs name only the last mail, and some drop the first."""
    ours = own_message_id(key, content, thread, "example.org")

    assert thread_of("own@x", "", f"<{ours}>") == thread
    assert thread_of("own@x", f"<{ours}>", f"<{ours}>") == thread
    assert thread_of("own@x", f"<{stranger}> <{ours}>", "") == thread


@given(st.text(), st.text(), st.text())
def test_our_ids_can_be_written_and_read_back(key: str, content: str, thread: str) -> None:
    """Whatever the thread is called; and always the same for the same part."""
    ours = own_message_id(key, content, thread, "example.org")

    assert message_ids(f"<{ours}>") == [ours]
    assert own_message_id(key, content, thread, "example.org") == ours
    assert own_message_id(key, content + "x", thread, "example.org") != ours


@pytest.mark.parametrize("name", ["threadline.00.!!@x", f"threadline.{'0' * 24}._w@x", f"threadline.{'0' * 24}.A@x"])
def test_an_id_that_only_looks_like_ours_is_taken_as_it_is(name: str) -> None:
    """Anybody can make one up."""
    assert thread_of("own@x", "", f"<{name}>") == name


def test_ids_beyond_all_measure_are_none() -> None:
    """They would become keys of the store."""
    assert message_id(f"<{'x' * 401}@y>") is None


@pytest.mark.parametrize(
    ("subject", "base"),
    [
        ("Deploy", "Deploy"),
        ("Re: Deploy", "Deploy"),
        ("RE: AW: re[2]: Deploy", "Deploy"),
        ("Antw: Re：回复：Deploy", "Deploy"),  # noqa: RUF001
        ("Regarding: Deploy", "Regarding: Deploy"),
        ("  Re:\r\n Deploy \t now ", "Deploy now"),
        ("Re:", ""),
    ],
)
def test_marks_of_an_answer_are_no_part_of_the_subject(subject: str, base: str) -> None:
    """In any language, any number of them."""
    assert base_subject(subject) == base
