"""Who a mail is really from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.email.authentication import Author, author, proven

US = "mx.example.net"
GOOD = (
    f"{US}; dkim=pass header.i=@example.org header.s=x; spf=pass ({US}: domain of ann@example.org designates 192.0.2.1 "
    "as permitted sender) smtp.mailfrom=ann@example.org; dmarc=pass (p=NONE sp=NONE) header.from=example.org"
)


@pytest.mark.parametrize(
    ("header", "who"),
    [
        ("ann@example.org", Author("ann@example.org", "")),
        ("Ann <Ann@Example.ORG>", Author("ann@example.org", "Ann")),
        ('"Ann, of Accounts" <ann@example.org>', Author("ann@example.org", "Ann, of Accounts")),
        ("=?utf-8?q?=C3=84nn?=\r\n <ann@example.org>", Author("ann@example.org", "Änn")),
        ("ann@example.org (Ann)", Author("ann@example.org", "")),
        ("<ann@bücher.example>", None),
        ("<ann@xn--bcher-kva.example>", Author("ann@xn--bcher-kva.example", "")),
        ('"boss@example.org" <eve@evil.test>', Author("eve@evil.test", "boss@example.org")),
        ("boss@example.org <eve@evil.test>", None),
        ("ann@example.org, eve@evil.test", None),
        ("boss@example.org)eve@evil.test", None),
        ("Team: ann@example.org;", None),
        ("Ann <>", None),
        ("undisclosed-recipients:;", None),
        ('"ann"@example.org', None),
        ('"a b"@example.org', None),
        ("ann@[192.0.2.1]", None),
        ("", None),
        ("x" * 5000 + "@example.org", None),
    ],
)
def test_a_from_header_names_one_person_or_nobody(header: str, who: Author | None) -> None:
    """What two programs could read in two ways is nobody's."""
    assert author([header]) == who


def test_two_from_headers_are_nobody_s() -> None:
    """A server may have checked the other one."""
    assert author(["ann@example.org", "ann@example.org"]) is None
    assert author([]) is None


@pytest.mark.parametrize(
    ("reports", "believed"),
    [
        ([GOOD], True),
        ([GOOD.upper().replace(US.upper(), US)], True),
        ([GOOD.replace(US, "mx.evil.test")], False),
        ([f"{US} 1; dmarc=pass header.from=example.org"], True),
        ([f"{US}; dmarc=pass header.from=other.org"], False),
        ([f"{US}; dmarc=pass"], False),
        ([f"{US}; dmarc=fail header.from=example.org", GOOD], False),
        ([f"{US}; spf=pass", GOOD], True),
        ([f"{US}; dmarc=none; dkim=pass header.d=example.org"], False),
        ([f"{US}; dkim=pass header.d=example.org"], True),
        ([f"{US}; dkim=fail header.d=example.org; dkim=pass header.i=@example.org"], True),
        ([f"{US}; dkim=pass header.d=evil.test"], False),
        ([f"{US}; dkim=pass header.d=mail.example.org"], False),
        ([f"{US}; dkim=pass header.d=org"], False),
        ([f"{US}; dkim=fail header.d=example.org", f"{US}; dkim=pass header.d=example.org"], False),
        ([f"{US}; spf=pass smtp.mailfrom=ann@example.org"], False),
        ([f"{US}; none"], False),
        ([US], False),
        ([], False),
        ([""], False),
        (["dmarc=pass header.from=example.org"], False),
    ],
)
def test_only_the_own_server_s_topmost_report_counts(reports: list[str], believed: bool) -> None:  # noqa: FBT001
    """DMARC decides; without it a signature of the domain itself, or of one above it."""
    assert proven("example.org", reports, US) is believed


def test_a_domain_above_may_sign_for_one_below() -> None:
    """Whoever runs example.org can write as lists.example.org."""
    assert proven("lists.example.org", [f"{US}; dkim=pass header.d=example.org"], US)


@pytest.mark.parametrize(
    "words",
    [
        "spf=fail (they say; dmarc=pass header.from=example.org)",
        "spf=fail (a (nested; dmarc=pass header.from=example.org) one)",
        'spf=fail (a quote " in it; dmarc=pass header.from=example.org; ")',
        "spf=fail (escaped \\); dmarc=pass header.from=example.org)",
        'spf=fail smtp.mailfrom="x; dmarc=pass header.from=example.org"',
        "spf=fail (never closed; dmarc=pass header.from=example.org",
        "spf=fail; dmarc=pass header.from=example.org; dmarc=fail header.from=example.org",
    ],
)
def test_words_of_the_sender_inside_a_report_win_nothing(words: str) -> None:
    """Servers quote what they were told; comments and quoted texts are not results."""
    assert not proven("example.org", [f"{US}; {words}"], US)


@given(st.text(), st.text(alphabet=f'{US};=() "\\dmarcps.header fom'))
def test_anything_at_all_is_judged_without_an_error(header: str, report: str) -> None:
    """And what is no report proves nothing."""
    author([header])

    proven("example.org", [report, header], US)
    assert not proven("example.org", [header], US)
