"""The new words of a mail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.hypertext import plain_of
from adapters.email.words import divided, unflowed


def new_words(text: str, *, answer: bool) -> str:
    """What the sender wrote."""
    return divided(text, answer=answer)[0]


QUOTE = "> where is it?\n>\n> I looked everywhere\n"


@pytest.mark.parametrize(
    "history",
    [
        f"On Sun, 29 Nov 2026 at 10:00, Agent <agent@example.org> wrote:\n{QUOTE}",
        f"On Sun, Nov 29, 2026 at 10:00 AM A Very Long Name Indeed\n<agent@example.org> wrote:\n\n{QUOTE}",
        f"Am 29.11.2026 um 10:00 schrieb Agent:\n{QUOTE}",
        f"Le dim. 29 nov. 2026 à 10:00, Agent <agent@example.org> a écrit :\n{QUOTE}",
        f"вс, 29 нояб. 2026 г. в 10:00, Agent <agent@example.org> пишет:\n{QUOTE}",  # noqa: RUF001
        f"Agent <agent@example.org> 于2026年11月29日周日 10:00写道：\n{QUOTE}",  # noqa: RUF001
        f"agent@example.org wrote:\n{QUOTE}",
        QUOTE,
        f"-----Original Message-----\nFrom: Agent\nSent: Sunday\n\n{QUOTE.replace('> ', '')}",
        "____________________\nFrom: Agent <agent@example.org>\nSent: Sunday\nTo: Ann\nSubject: Re: it\n\nold",
        "Von: Agent\nGesendet: Sonntag\nAn: Ann\nBetreff: AW: es\n\nalt",
        "*From:* Agent\n*Date:* Sunday\n*To:* Ann\n\nold",
        "差出人: Agent\n送信日時: 日曜日\n宛先: Ann\n件名: それ\n\n古い",
    ],
)
@pytest.mark.parametrize("signature", ["", "-- \nAnn\nAccounts\n\n"])
def test_history_and_signature_are_left_out_of_an_answer(history: str, signature: str) -> None:
    """In the forms that mail programs give them."""
    assert new_words(f"In the drawer.\n\nReally.\n\n{signature}{history}", answer=True) == "In the drawer.\n\nReally."


@pytest.mark.parametrize(
    "text",
    [
        f"See below:\n\n{QUOTE}\nin the drawer\n\n> and the key?\n\nunder the mat",
        f"{QUOTE}\nIn the drawer.",
        "The plan for 2026:\n- a\n- b",
        "I said at 10:00:\nfine",
        "From: here\nto there",
        "---\na rule\n---",
        "--\nnot a signature, since much follows\n" + "line\n" * 10,
        "a\n---------- Forwarded message ---------\nFrom: Bob\nDate: Monday\nSubject: x\nTo: Ann\n\n> words\n-- \nBob",
        "Begin forwarded message:\n\nFrom: Bob\nDate: Monday\nSubject: x\n\nwords",
        f"{QUOTE}",
        "-- \nonly a signature",
    ],
)
def test_what_is_not_clearly_history_stays(text: str) -> None:
    """Answers between quotes need them; forwarded mails are the matter itself; something is better than nothing."""
    assert new_words(text, answer=True) == text.strip()


def test_the_line_before_a_quote_stays_when_it_is_the_sender_s_own() -> None:
    """Only what mail programs write is cut."""
    assert new_words(f"I found this at 10:00:\n{QUOTE}", answer=True) == "I found this at 10:00:"


def test_in_a_new_mail_quotes_are_content() -> None:
    """There is no history yet."""
    text = f"Look:\n\nOn Sun, 29 Nov 2026 Bob wrote:\n{QUOTE}"

    assert new_words(text + "-- \nAnn", answer=False) == text.strip()


def test_the_history_is_kept_apart() -> None:
    """As it stands below the words, with the line that introduces it."""
    history = f"On Sun, 29 Nov 2026 at 10:00, Bob wrote:\n{QUOTE}"

    assert divided(f"Yes.\n-- \nAnn\n\n{history}", answer=True) == ("Yes.", history.strip())
    assert divided("Yes.", answer=True) == ("Yes.", "")
    assert divided(history, answer=True) == (history.strip(), "")


@given(st.text(), st.booleans())
def test_words_are_only_ever_cut_never_changed(text: str, answer: bool) -> None:  # noqa: FBT001
    """And something is left of everything."""
    words = new_words(text, answer=answer)

    assert words in text.replace("\r\n", "\n").replace("\r", "\n")
    assert bool(words) == bool(text.strip())


@given(st.lists(st.sampled_from(["> q", ">", "On 2026 a@b wrote:", "-- ", "", "words", "From: a", "Sent: b", "To: c"])))
def test_words_before_the_first_mark_are_never_lost(lines: list[str]) -> None:
    """Whatever marks follow in whatever order."""
    text = "\n".join(["first words", "", *lines])

    assert new_words(text, answer=True).startswith("first words")


def test_lines_broken_for_old_screens_are_joined() -> None:
    """format=flowed: a space at the end goes on; quotes and signatures do not."""
    text = "This is one \nparagraph.\n> a quote \n> goes on\n From stuffed\n-- \nAnn"

    assert unflowed(text, delete_space=False) == "This is one paragraph.\n> a quote \n> goes on\nFrom stuffed\n-- \nAnn"
    assert unflowed("日本 \n語", delete_space=True) == "日本語"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two<br>three</p>", "one\n\ntwo\nthree"),
        ("<div>a</div><div>b</div><div><br></div><div>c</div>", "a\nb\n\nc"),
        ("<ul><li>x<li>y</ul>after", "- x\n- y\n\nafter"),
        ('see <a href="https://example.org/x">this</a>', "see this (https://example.org/x)"),
        ('<a href="https://example.org/">https://example.org</a>', "https://example.org"),
        ('<a href="mailto:a@b">a@b</a> <a>no</a>', "a@b no"),
        ("<head><title>t</title><style>p{}</style></head><body><script>x</script>words", "words"),
        ("<pre>a  b\n  c</pre>", "a  b\n  c"),
        ("a&nbsp;&amp;&nbsp;b &lt;c&gt; &#x4e2d;", "a & b <c> 中"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a\nb"),
        ('<img src="x" alt="a cat"><img src="y">', "a cat"),
        ("one\n  two\t three", "one two three"),
        ("<blockquote>old<blockquote>older</blockquote></blockquote>new", "> old\n> >\n> > older\n\nnew"),
        ("</p></blockquote></a></ul>x", "x"),
        ("zero\u200bwidth", "zerowidth"),
        ("", ""),
    ],
)
def test_html_reads_as_it_is_seen(html: str, text: str) -> None:
    """Blocks are lines, quotes are marked, what is hidden is left out."""
    assert plain_of(html) == text


def test_the_history_of_an_html_answer_is_left_out() -> None:
    """As the common mail programs mark it."""
    gmail = (
        '<div dir="ltr">In the drawer.</div><br><div class="gmail_quote"><div class="gmail_attr">On Sun, Nov 29, 2026 '
        'at 10:00 AM Agent &lt;<a href="mailto:agent@example.org">agent@example.org</a>&gt; wrote:<br></div>'
        '<blockquote class="gmail_quote"><div>where is it?</div></blockquote></div>'
    )
    outlook = (
        '<p>In the drawer.</p><hr><div id="divRplyFwdMsg"><b>From:</b> Agent<br><b>Sent:</b> Sunday<br><b>To:</b> Ann'
        "<br><b>Subject:</b> it</div><div>where is it?</div>"
    )

    assert [new_words(plain_of(html), answer=True) for html in (gmail, outlook)] == ["In the drawer."] * 2


@given(st.text(alphabet='<>/abp "=&#;!-\n\u00a0li?'))
def test_any_markup_is_read_without_an_error(html: str) -> None:
    """However broken; behind a quote that is never closed nobody can tell what is markup, so it is read as words."""
    plain = plain_of(f"{html}<script>x</script>")
    assert '"' in html or "<script" not in plain
