"""The garbage collector of a process that runs for long: no pause that its event loop would feel.

Contract: `spare_what_is_there` is called once, when everything has been imported and made. What is there then stays
until the end and is never looked through again; with the libraries of a gateway those are 150,000 objects, through
which a full collection takes a tenth of a second or more, several times a minute. What comes later is collected as
ever, in larger portions.
Limits: garbage in cycles of what was made before is not freed any more, so it is freed first.
"""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["spare_what_is_there"]

#: New objects between two collections of the youngest: turns leave little in cycles, and each collection has its price.
YOUNG: Final = 5_000


def spare_what_is_there() -> None:
    """Free what is garbage now, and leave everything else out of later collections."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
