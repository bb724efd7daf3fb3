"""`threadline pair PLATFORM [--as NAME]`."""

from __future__ import annotations

from typing import Annotated

import typer

from config import Home
from gateway.cli.running import async_run, fail, settings_of_home
from gateway.pairing import CODE_TTL_SECONDS, PairingDesk
from gateway.phrases import one_line
from gateway.platforms import served_accounts
from session_store import SessionDB

__all__ = ["pair"]

PLATFORMS = ("telegram", "slack", "discord")


def pair(
    platform: Annotated[str, typer.Argument(help="telegram, slack or discord.")],
    *,
    name: Annotated[str | None, typer.Option("--as", help="Pair somebody else under this name, not yourself.")] = None,
) -> None:
    """Print a one-time code. Sent to the bot in a direct chat within an hour, it pairs that account."""
    if platform not in PLATFORMS:
        raise fail(f"There is no platform “{platform}”. Choose one of {', '.join(PLATFORMS)}.", code=2)
    home, settings = settings_of_home()
    wanted = one_line(name, 100) if name is not None else None
    if name is not None and not wanted:
        raise fail("The name after --as is empty.", code=2)
    code = async_run(_issue(home, platform, wanted))
    whose = f"becomes {wanted}'s" if wanted else "becomes yours"
    print(f"{code[:4]}-{code[4:]}")  # noqa: T201 - the result
    print(  # noqa: T201 - for the person
        f"Send this code to your {platform} bot in a direct chat within {CODE_TTL_SECONDS / 60:.0f} minutes; "
        f"the account that sends it {whose}. It works once."
    )
    if not any(served == platform for served, _ in served_accounts(settings)):
        print(f"Note: no {platform} account is enabled in {home.config_file} yet.")  # noqa: T201 - for the person


async def _issue(home: Home, platform: str, name: str | None) -> str:
    async with SessionDB(home.state_db) as db:
        return await PairingDesk(db).issue(platform, name)
