"""A process whose files may not grow for a while. Run as a script with the path of a store."""

from __future__ import annotations

import asyncio
import resource
import sys

from session_store import SessionDB, StoreError


async def main(path: str) -> None:
    """Append until the limit is met, lift it, append once more."""
    async with SessionDB(path) as db:
        await db.create_session("limited", "cli")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 1024 * 1024, hard))
        try:
            for number in range(10_000):
                await db.append_message("limited", "user", f"{number} " + "text " * 2000, op_id=f"l{number}")
        except StoreError as error:
            print(type(error).__name__, error)  # noqa: T201 - the way to speak to the test
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await db.append_message("limited", "user", "after", op_id="after")
        print((await db.get_messages("limited"))[-1]["op_id"])  # noqa: T201 - the same


asyncio.run(main(sys.argv[1]))
