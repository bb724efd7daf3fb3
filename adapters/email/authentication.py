"""Who a mail is really from: the From header, and what the receiving server says about it.

Contract: anybody can write any From, so it counts only when the receiving server reports, under the name that the
settings give, that it checked: DMARC passed for exactly the domain of the From, or, where its reports say nothing of
DMARC, a DKIM signature passed of that domain or one above it. Of several reports the topmost decides, since servers
write theirs above what came with the mail (and remove what pretends to be theirs); reports under other names are only
words of the sender. A From header that is missing, doubled, names several people or cannot be read is nobody's. Pure;
anything malformed is no pass.
Limits: a report proves the domain; that users of one domain cannot write in each other's names is its servers' matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import policy
from typing import Final

from config.mail import canonical_address

__all__ = ["Author", "author", "proven"]

_LONGEST_FROM: Final = 2000
_LONGEST_REPORT: Final = 10_000
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[;=]|[^\s;="]+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Author:
    """Whom a From header names. address: in canonical form."""

    address: str
    name: str

    @property
    def domain(self) -> str:
        """The domain of the address."""
        return self.address.rpartition("@")[2]


def author(headers: Sequence[str]) -> Author | None:
    """Return the one person that the From headers name, or None."""
    if len(headers) != 1 or len(headers[0]) > _LONGEST_FROM:
        return None
    try:
        text = " ".join(headers[0].split())
        (found,) = policy.default.header_factory("From", text).addresses
        if not _ends_with(text, found.addr_spec):
            return None
        return Author(canonical_address(found.addr_spec), " ".join(str(found.display_name or "").split()))
    except Exception:  # noqa: BLE001  (the parser fails in many ways on what no mail program writes)
        return None


def _ends_with(text: str, address: str) -> bool:
    """Tell whether the address is all of the header, or stands in brackets at its end: then nobody reads another."""
    spelled = re.escape(address)
    return re.search(rf"(?:\A{spelled}|<\s*{spelled}\s*>)\s*(?:\([^()]*\))?\Z", text, re.IGNORECASE) is not None


def proven(domain: str, reports: Sequence[str], authserv_id: str) -> bool:
    """Tell whether the server named `authserv_id` vouches for `domain`; `reports` in the order of the mail."""
    ours = [list(_results(report, authserv_id)) for report in reports]
    if dmarc := _topmost(ours, "dmarc"):
        # All, so that a second result that the sender smuggled into a careless server's report wins nothing.
        return all(result.passed and result.properties.get("header.from", "").lower() == domain for result in dmarc)
    return any(result.passed and _covers(result.properties, domain) for result in _topmost(ours, "dkim"))


@dataclass(frozen=True, slots=True)
class _Result:
    method: str
    passed: bool
    properties: dict[str, str]


def _topmost(reports: Sequence[Sequence[_Result]], method: str) -> list[_Result]:
    """Return the results of a method in the first report that has any."""
    found = ([result for result in report if result.method == method] for report in reports)
    return next((results for results in found if results), [])


def _covers(properties: dict[str, str], domain: str) -> bool:
    signed = properties.get("header.d", "").lower() or properties.get("header.i", "").lower().rpartition("@")[2]
    return "." in signed and (domain == signed or domain.endswith(f".{signed}"))


def _results(report: str, authserv_id: str) -> Iterator[_Result]:
    """Yield what a report says; nothing when it is not this server's."""
    if len(report) > _LONGEST_REPORT:
        return
    sections = _sections(report)
    if not sections or not sections[0] or sections[0][0].lower() != authserv_id.lower():
        return
    for tokens in sections[1:]:
        pairs = list(_pairs(tokens))
        if not pairs:
            continue
        method, result = pairs[0]
        properties: dict[str, str] = {}
        for name, value in pairs[1:]:
            properties.setdefault(name.lower(), value)
        yield _Result(method.partition("/")[0].lower(), result.lower() == "pass", properties)


def _pairs(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index in range(1, len(tokens) - 1):
        if tokens[index] == "=":
            yield tokens[index - 1], tokens[index + 1].strip('"')


def _sections(report: str) -> list[list[str]]:
    """Return the tokens of a report between its semicolons."""
    sections: list[list[str]] = [[]]
    for piece in _TOKEN.findall(_without_comments(report)):
        if piece == ";":
            sections.append([])
        else:
            sections[-1].append(piece)
    return sections


def _without_comments(report: str) -> str:
    """Leave out what stands in parentheses; it may hold words of anybody, and quotes mean nothing in it."""
    kept: list[str] = []
    depth = 0
    quoted = False
    characters = iter(report)
    for character in characters:
        whole = character + next(characters, "") if character == "\\" and (quoted or depth) else character
        if not depth:
            quoted ^= character == '"'
        if character == "(" and not quoted:
            depth += 1
            kept.append(" ")
        elif character == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(whole)
    return "".join(kept)
