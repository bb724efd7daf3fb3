"""`threadline gateway run|status|stop`.

Contract: `status` tells what the store says of the gateways of this home and what each one's health endpoint answers;
exit code 1 when none runs, or those that are there give no sign of life. `stop` asks the gateways of this machine and
waits until they have ended; one that runs elsewhere (another machine, another container) is told and left alone.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import anyio
import typer

from gateway.bell import Bell
from gateway.cli.options import AsJson, sub_command
from gateway.cli.output import write, write_json
from gateway.cli.running import async_run, fail, our_home, own_command, settings_of_home
from gateway.garbage import spare_what_is_there
from gateway.phrases import age, plural
from gateway.platforms import served_accounts
from session_store import SessionDB
from session_store.processes import ProcessIdentity, identity_of

if TYPE_CHECKING:
    from config import Home, Settings
    from session_store import ProcessRow

__all__ = ["app"]

STOP_SECONDS = 12.0
LOOK_SECONDS = 0.5

app = sub_command("Run the gateway, see how it is, stop it.")


@app.command()
def run() -> None:
    """Serve the web chat and the platforms until Ctrl-C or SIGTERM; what runs is finished first (10 s at most)."""
    from gateway.daemon import Daemon  # noqa: PLC0415 - the web server is heavy and only needed here
    from gateway.logs import set_up_logs  # noqa: PLC0415 - belongs to the daemon

    home, settings = settings_of_home()
    set_up_logs(settings.secrets())

    def announce(address: str) -> None:
        for line in _welcome(home, settings, address):
            typer.echo(line)
        spare_what_is_there()

    async_run(Daemon(home, settings).run(announce))


def _welcome(home: Home, settings: Settings, address: str) -> list[str]:
    lines = [
        "Threadline is running.",
        "",
        f"  Web chat:  {address}",
        f"  Home:      {home.path}",
        "",
        "Open the address in a browser (it holds your token; keep it to yourself), or talk in a terminal:",
        f"  {own_command()}",
    ]
    if not served_accounts(settings):
        init = f"{own_command()} config init"
        lines.append(f"To add Telegram, Slack, Discord or e-mail, set it up in {home.config_file} (`{init}` makes it).")
    lines.append("Stop with Ctrl-C; nothing is lost.")
    return lines


@app.command()
def status(*, as_json: AsJson = False) -> None:
    """Show the running gateways of this home, their accounts, and what waits to be worked or sent."""
    report = async_run(_status(our_home()))
    if as_json:
        write_json(report)
    else:
        write("\n".join(_status_lines(report)))
    if all(gateway["asleep"] for gateway in report["gateways"]):
        raise typer.Exit(1)


async def _gateways(db: SessionDB) -> list[ProcessRow]:
    """Those that run, and those of this machine that are there but asleep: they still hold their accounts."""
    return [row for row in await db.processes.list() if row["role"] == "gateway" and (row["alive"] or row["asleep"])]


async def _status(home: Home) -> dict[str, Any]:
    async with SessionDB(home.state_db) as db:
        gateways = [
            {
                "pid": row["pid"],
                "host": row["host"],
                "started_at": row["started_at"],
                "address": row["detail"].get("address"),
                "accounts": row["detail"].get("accounts", {}),
                "refused": row["detail"].get("refused", {}),
                "answers": not row["asleep"] and await _answers(row["detail"].get("address")),
                "asleep": row["asleep"],
            }
            for row in await _gateways(db)
        ]
        return {"gateways": gateways, "inbox": await db.inbox.counts(), "outbox": await db.outbox.counts()}


async def _answers(address: str | None) -> bool:
    """Whether the health endpoint at `address` says that all is well."""
    if not address:
        return False
    import httpx  # noqa: PLC0415 - only this command asks over HTTP

    try:
        async with httpx.AsyncClient(timeout=2.0, trust_env=False) as client:
            answer = await client.get(f"{address}/health")
            return answer.status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _status_lines(report: dict[str, Any]) -> list[str]:
    lines = []
    for gateway in report["gateways"]:
        health = "answers" if gateway["answers"] else "does not answer"
        lines.append(f"Gateway, process {gateway['pid']}, started {age(gateway['started_at'], time.time())}.")
        lines.append(f"  web: {gateway['address'] or 'starting'} ({health})")
        if gateway["asleep"]:
            lines.append(f"  It gives no sign of life: it was stopped, or hangs. {_way_out(gateway['pid'])}")
            continue
        for name, facts in gateway["accounts"].items():
            problem = f": {facts['problem']}" if facts.get("problem") else ""
            refused = gateway["refused"].get(name, 0)
            strangers = f" ({plural(refused, 'event')} of others refused)" if refused else ""
            lines.append(f"  {name}: {facts['state']}{strangers}{problem}")
    if not lines:
        lines.append("No gateway is running for this home. Start one with `threadline gateway run`.")
    for name, counts in (("inbox", report["inbox"]), ("outbox", report["outbox"])):
        shown = ", ".join(f"{state} {count}" for state, count in sorted(counts.items()) if count) or "empty"
        lines.append(f"{name}: {shown}")
    return lines


@app.command()
def stop() -> None:
    """Ask the gateways of this home to stop and wait until they have (12 s at most)."""
    async_run(_stop(our_home(), identity_of(os.getpid())))


async def _stop(home: Home, me: ProcessIdentity) -> None:
    async with SessionDB(home.state_db) as db:
        running = await _gateways(db)
        if not running:
            raise fail("No gateway is running for this home.")
        here = [row for row in running if _is_beside(me, row)]
        for row in here:
            try:
                os.kill(row["pid"], signal.SIGTERM)
            except ProcessLookupError:
                continue  # it ended by itself meanwhile
            except PermissionError as error:
                raise fail(f"Process {row['pid']} belongs to another user, who must stop it.") from error
        await _until_gone(db, {row["token"] for row in here})
    if here:
        write(f"Stopped: process {', '.join(str(row['pid']) for row in here)}.")
    elsewhere = [row for row in running if not _is_beside(me, row)]
    if elsewhere:
        places = ", ".join(f"{row['host']} (process {row['pid']})" for row in elsewhere)
        raise fail(f"A gateway of this home runs on another machine or in another container; stop it there: {places}.")


def _way_out(pid: int) -> str:
    return f"Wake it with `kill -CONT {pid}`, or end it with `kill -KILL {pid}`; what it has accepted is not lost."


def _is_beside(me: ProcessIdentity, row: ProcessRow) -> bool:
    """Whether a process id means the same process for both."""
    return (row["host"], row["pid_ns"], row["boot_id"]) == (me.host, me.pid_ns, me.boot_id)


async def _until_gone(db: SessionDB, tokens: set[str]) -> None:
    bell = Bell(db)
    with anyio.move_on_after(STOP_SECONDS):
        while tokens & {row["token"] for row in await _gateways(db)}:
            await bell.wait(LOOK_SECONDS)
        return
    asleep = [row["pid"] for row in await _gateways(db) if row["token"] in tokens and row["asleep"]]
    if asleep:
        raise fail(f"Process {asleep[0]} gives no sign of life. {_way_out(asleep[0])}")
    raise fail("It is still busy ending its work. Look again with `threadline gateway status`.")
