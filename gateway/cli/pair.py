"""`threadline pair PLATFORM [--as NAME]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.options import sub_command
from gateway.cli.output import write
from gateway.cli.running import async_run, fail, settings_of_home
from gateway.pairing import CODE_TTL_SECONDS, PairingDesk
from gateway.phrases import entrance, one_line
from gateway.platforms import served_accounts
from session_store import SessionDB

if TYPE_CHECKING:
    from config import Home

__all__ = ["app", "pair"]

PLATFORMS = ("telegram", "slack", "discord", "email")

app = sub_command()


@app.command()
def pair(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="telegram, slack, discord or email.")],
    *,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Pair somebody else under this name, not yourself.")
    ] = None,
) -> None:
    """Print a one-time code; sent to the bot in a direct chat within an hour, it pairs the account that sends it."""
    if platform not in PLATFORMS:
        raise fail(f"There is no platform “{platform}”. Choose one of {', '.join(PLATFORMS)}.", code=2)
    wanted = one_line(name, 100) if name is not None else None
    if name is not None and not wanted:
        raise fail("The name after --as is empty.", code=2)
    home, settings = settings_of_home()
    code = async_run(_issue(home, platform, wanted))
    write(f"{code[:4]}-{code[4:]}")
    whose = f"becomes {wanted}'s" if wanted else "becomes yours"
    where = "in a mail to the gateway" if platform == "email" else f"to your {entrance(platform)} bot in a direct chat"
    _note(
        f"Send this code {where} within {CODE_TTL_SECONDS / 60:.0f} minutes; "
        f"the account that sends it {whose}. It works once."
    )
    if not any(served == platform for served, _ in served_accounts(settings)):
        _note(f"Note: no {entrance(platform)} account is enabled in {home.config_file} yet.")


def _note(sentence: str) -> None:
    """For the person, beside the code."""
    typer.echo(sentence, file=sys.stderr)


async def _issue(home: Home, platform: str, name: str | None) -> str:
    async with SessionDB(home.state_db) as db:
        return await PairingDesk(db).issue(platform, name)
