"""A gateway whose tools hang: the call of the number in the file `hold` of `$TEST_TOOLS_FOLDER` never returns there.

Calls are counted from one, over one life of the process; when one hangs, the file `hangs` is made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

from gateway.cli.main import run
from gateway.tools import TurnTools

_CALLS = count(1)
_REAL = TurnTools.call


async def held(tools: TurnTools, name: str, arguments: Mapping[str, Any]) -> str:
    """Run a tool, or hang."""
    folder = Path(os.environ["TEST_TOOLS_FOLDER"])
    number = next(_CALLS)
    hold = await asyncio.to_thread((folder / "hold").read_text, encoding="utf-8")
    if hold.strip() == str(number):
        await asyncio.to_thread((folder / "hangs").touch)
        await asyncio.Event().wait()
    return await _REAL(tools, name, arguments)


if __name__ == "__main__":
    with mock.patch.object(TurnTools, "call", held):
        run()
