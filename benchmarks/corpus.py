"""Chat messages that no two of are alike: English, Chinese and Russian by word frequency, identifiers, tool output.

Deterministic: the same seed gives the same messages. Word frequencies follow Zipf's law, so an index has common and
rare terms as in life.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

__all__ = ["messages"]

_ENGLISH = 20_000
_CHINESE = 8_000
_RUSSIAN = 8_000
#: Up to these chances a message is a tool's output, Chinese, Russian; the rest is English.
_TOOL, _HAN, _SLAVIC = 0.04, 0.34, 0.42
_COMMA = "\uff0c"
_LATIN = "etaoinshrdlcumwfgypbvk"
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"


def _vocabulary(chance: random.Random, size: int, letters: str, shortest: int, longest: int) -> list[str]:
    return ["".join(chance.choices(letters, k=chance.randint(shortest, longest))) for _ in range(size)]


def _zipf(size: int) -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, size + 1)))


def messages(seed: int) -> Iterator[str]:
    """An endless row of messages, about 700 characters in the mean, most of them shorter."""
    chance = random.Random(seed)  # noqa: S311 - repeatable text, not a secret
    han = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
    english = _vocabulary(chance, _ENGLISH, _LATIN, 2, 9)
    russian = _vocabulary(chance, _RUSSIAN, _CYRILLIC, 2, 10)
    chinese = ["".join(chance.choices(han, k=chance.randint(1, 4))) for _ in range(_CHINESE)]
    weights = {id(words): _zipf(len(words)) for words in (english, russian, chinese)}

    def pick(words: list[str], count: int) -> list[str]:
        return chance.choices(words, cum_weights=weights[id(words)], k=count)

    while True:
        kind = chance.random()
        if kind < _TOOL:
            lines = [f"{chance.getrandbits(160):040x} {' '.join(pick(english, 6))}" for _ in range(95)]
            yield "\n".join(lines)
        elif kind < _HAN:
            yield _COMMA.join("".join(pick(chinese, chance.randint(4, 12))) for _ in range(chance.randint(1, 12)))
        elif kind < _SLAVIC:
            yield " ".join(pick(russian, chance.randint(5, 100)))
        else:
            words = pick(english, chance.randint(5, 130))
            words.insert(chance.randrange(len(words)), f"req-{chance.getrandbits(48):x}")
            yield " ".join(words)
