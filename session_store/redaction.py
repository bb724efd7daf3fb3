r"""Secrets in text: what they look like, and text without them.

Contract: `redact` replaces each secret that one of KINDS describes by `[redacted: <kind>]` and leaves everything else
as it is; it takes time linear in the text and never fails. `redact_value` does the same to every string in a JSON
value, names of keys excepted. Redacting twice changes nothing more, and JSON written into a string stays JSON.
Limits: a secret that looks like none of these is not recognised: a plain word said to be a password without the word
"password" beside it, a number of a bank account. Of a text that looks like a secret and is none, the words are lost.
"""

# ruff: noqa: RUF001 - punctuation of other scripts is what is looked for
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["KINDS", "SecretKind", "redact", "redact_value"]


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One kind of secret.

    name: as it stands in the text afterwards. what: for people. pattern: the secret is its group `secret`, or all of
    it. hints: one of these is in every text with such a secret, in lower case; most texts are decided by that.
    """

    name: str
    what: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]


def _kind(name: str, what: str, pattern: str, *hints: str) -> SecretKind:
    return SecretKind(name, what, re.compile(pattern), hints)


_END: Final = r"(?![A-Za-z0-9_-])"
_START: Final = r"(?<![A-Za-z0-9_-])"

KINDS: Final[tuple[SecretKind, ...]] = (
    _kind(
        "private key",
        "Private keys in PEM form, whole or cut off (RSA, EC, OpenSSH, PGP)",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,]{0,16384}"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        "private key",
    ),
    _kind(
        "password in an address",
        "The password in `scheme://user:password@host`",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@\"\\]{0,256}:(?P<secret>[^\s/@\"\\]{1,256})@",
        "://",
    ),
    _kind(
        "AWS key id",
        "Access key ids of AWS",
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + _END,
        "akia", "asia", "abia", "acca",
    ),
    _kind(
        "GitHub token",
        "Tokens of GitHub: `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_`, `github_pat_`",
        _START + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
        "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    ),
    _kind(
        "GitLab token",
        "Tokens of GitLab: `glpat-` and its kin",
        _START + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,255}",
        "gl",
    ),
    _kind(
        "Slack token",
        "Tokens of Slack (`xoxb-`, `xoxp-`, `xapp-`, ...) and addresses of its incoming webhooks",
        _START + r"(?:xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})"
        r"|hooks\.slack\.com/services/[A-Za-z0-9/_+-]{20,255}",
        "xox", "xapp-", "hooks.slack.com",
    ),
    _kind(
        "Discord token",
        "Bot tokens of Discord and addresses of its webhooks",
        _START + r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,60}" + _END
        + r"|discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[A-Za-z0-9_-]{30,255}",
        ".",
    ),
    _kind("Telegram token", "Bot tokens of Telegram", r"(?<![0-9])[0-9]{8,10}:[A-Za-z0-9_-]{35}" + _END, ":"),
    _kind(
        "API key",
        "Keys of model providers and services: `sk-`, `gsk_`, `xai-`, `AIza`, `hf_`, `npm_`, `pypi-`, `SG.`, "
        "`sk_live_`, `dop_v1_`",
        _START + r"(?:sk-[A-Za-z0-9_-]{20,255}|AIza[A-Za-z0-9_-]{35}|hf_[A-Za-z0-9]{30,255}|npm_[A-Za-z0-9]{36}|"
        r"pypi-[A-Za-z0-9_-]{50,255}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}|"
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}|gsk_[A-Za-z0-9]{40,255}|xai-[A-Za-z0-9]{40,255}|dop_v1_[a-f0-9]{64})",
        "sk-", "aiza", "hf_", "npm_", "pypi-", "sg.", "k_live_", "k_test_", "gsk_", "xai-", "dop_v1_",
    ),
    _kind(
        "JSON web token",
        "Signed tokens of three parts that begin with `eyJ`",
        _START + r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048}",
        "eyj",
    ),
    _kind(
        "authorization",
        "What follows `Authorization: Bearer`, `Basic` or `Token`",
        r"(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3})(?P<secret>[A-Za-z0-9._~+/=-]{8,4096})",
        "authorization",
    ),
    _kind(
        "password",
        "What is named password, passwd, pwd, secret, token, API key, access key and the like, with `:` or `=`; the "
        "same in German, French, Spanish, Russian and Chinese",
        r"(?i:(?:password|passwd|passphrase|\bpwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|"
        r"refresh[_-]?token|client[_-]?secret|\btoken|passwort|kennwort|mot de passe|contraseña|пароль|密码|密碼|口令)"
        r"[A-Za-z0-9_]{0,20}\\{0,3}[\"'`]?\s{0,3}(?:[:=：]|是)\s{0,3}\\{0,3}[\"'`]?)"
        r"(?P<secret>(?!\[redacted: )[^\s\\\"'`,;，；。]{4,512})",
        "pass", "pwd", "secret", "key", "token", "kennwort", "contrase", "пароль", "密", "口令",
    ),
)  # fmt: skip
"""All kinds, in the order in which they are looked for."""


def redact(text: str) -> str:
    """The text without its secrets."""
    lowered = text.lower()
    for kind in KINDS:
        if any(hint in lowered for hint in kind.hints):
            text = kind.pattern.sub(_replacement(kind), text)
    return text


def redact_value(value: Any) -> Any:
    """A JSON value without the secrets in its strings."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: redact_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    return value


def _replacement(kind: SecretKind) -> Callable[[re.Match[str]], str]:
    def replaced(found: re.Match[str]) -> str:
        group = "secret" if "secret" in kind.pattern.groupindex else 0
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return f"{found[0][:start]}[redacted: {kind.name}]{found[0][end:]}"

    return replaced
