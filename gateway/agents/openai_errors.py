"""What went wrong with a model's server, as sentences that say what to do next.

Contract: pure. Nothing here ever shows the key: what servers say of a key that they refuse is not repeated, and in
what else they say the key is blotted out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from gateway.agents.quoting import inert
from gateway.phrases import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Broken", "refused", "sentence"]

_TOLD_LENGTH: Final = 300
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_TROUBLE: Final = 500

_TOO_LONG: Final = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum.{0,30}tokens|too (long|many tokens)|prompt.{0,20}exceeds",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"model.{0,80}(not found|does not exist|not exist|unknown|not available)|no such model", re.IGNORECASE
)
_PAID: Final = re.compile(r"insufficient.{0,3}(quota|funds|balance|credits)|billing|payment", re.IGNORECASE)
_FILTER: Final = re.compile(r"content.{0,3}(filter|management|policy)", re.IGNORECASE)


class Broken(Exception):
    """The line to the server broke in the middle of a reply."""


class Where(Protocol):
    """Whom it was that was asked."""

    base_url: str
    api_key: str | None
    model: str

    @property
    def host(self) -> str:
        """The server's name."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the server answered instead of a reply."""

    status: int
    told: str
    after: str


#: The first that fits is told; in the sentences stand the host, its address, the model and when to come again.
_MEANINGS: Final[tuple[tuple[Callable[[_Answer], object], str], ...]] = (
    (
        lambda answer: answer.status == _UNAUTHORIZED,
        "{host} does not accept the key. Set `agent.api_key` to one that is valid for it, and start again.",
    ),
    (
        lambda answer: answer.status in {402, _TOO_MANY} and _PAID.search(answer.told),
        "The account at {host} has no credit left. Top it up, or change `agent.model`.",
    ),
    (
        lambda answer: answer.status == _TOO_MANY,
        "{host} takes no more requests for now{after}. Send your message again then.",
    ),
    (
        lambda answer: _TOO_LONG.search(answer.told),
        "This conversation is too long for {model}. `/compress` shortens it, `/new` begins another.",
    ),
    (
        lambda answer: answer.status == _NOT_FOUND or _NO_MODEL.search(answer.told),
        "{host} does not know the model “{model}”, or `agent.base_url` is not its address. Mend one, then start again.",
    ),
    (
        lambda answer: answer.status == _FORBIDDEN,
        "{host} does not let this key use {model}. Choose another `agent.model` or `agent.api_key`.",
    ),
    (
        lambda answer: _FILTER.search(answer.told),
        "The content filter of {host} refused this. Say it in other words.",
    ),
    (
        lambda answer: answer.status >= _TROUBLE,
        "{host} has trouble of its own (error {status}). Send your message again in a while.",
    ),
)
#: What kept us from an answer, by the name of the SDK's error.
_SILENCE: Final = {
    "APITimeoutError": "{host} does not answer. Send your message again in a while.",
    "APIConnectionError": "{host} cannot be reached: no network, or nothing serves {base_url}. Check both, try again.",
}


def sentence(error: Exception, link: Where) -> str:
    """What an error of the SDK, or an answer that cannot be read, means to the person."""
    status, told = getattr(error, "status_code", None), _told(error)
    if status is None:
        words = _SILENCE.get(type(error).__name__)
        if words is None:
            return refused(link, "its answer cannot be read" if isinstance(error, ValueError) else told)
        return words.format(host=link.host, base_url=link.base_url)
    answer = _Answer(status, told, _after(error))
    words = next((words for fits, words in _MEANINGS if fits(answer)), None)
    if words is None:
        return refused(link, told)
    return words.format(host=link.host, model=link.model, status=status, after=answer.after)


def refused(link: Where, told: str) -> str:
    """The server does not take what we ask, and says why."""
    clean = inert(one_line(told.replace(link.api_key, "(key)") if link.api_key else told, _TOLD_LENGTH))
    return f"{link.host} could not be used: {clean.rstrip('.')}. Check `agent.base_url` and `agent.model`."


def _told(error: Exception) -> str:
    """What the server said, its code included."""
    body: Any = getattr(error, "body", None)
    fields = [body.get(name) for name in ("message", "code", "type")] if isinstance(body, dict) else []
    return " ".join(value for value in fields if isinstance(value, str)) or str(getattr(error, "message", error))


def _after(error: Exception) -> str:
    """When to come again, as the server said."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after", "") if response is not None else ""
    return f"; try in {value} seconds" if value.isascii() and value.isdecimal() and len(value) <= 6 else ""  # noqa: PLR2004
