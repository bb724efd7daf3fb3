"""Looking a home over: what works, what does not, and what to do about it.

Contract: `examine` changes nothing: an older file is described, not taken over, and a missing one is not made. Each
finding is a sentence; a warning is something that works but deserves a look, a failure something that does not work.
Nothing is sent anywhere and no token is tried. Limits: the check of a large file is bounded in time by the store.
"""

from __future__ import annotations

import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio.to_thread

from config import ConfigError, load_settings
from gateway.phrases import amount
from session_store import SessionDB, StoreError
from session_store.health import library
from session_store.opening import examine as examine_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config import Home
    from session_store.health import StoreHealth
    from session_store.history import MigrationPlan

__all__ = ["Finding", "Report", "look_over"]

State = Literal["ok", "warning", "failed"]

#: Below this, in bytes, the disk will soon be full.
_LITTLE_ROOM = 500_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    about: str
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything found. migration: what opening an older file would do, None where there is none."""

    findings: tuple[Finding, ...]
    migration: MigrationPlan | None

    @property
    def failed(self) -> bool:
        """Whether anything does not work."""
        return any(finding.state == "failed" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """The report as JSON values."""
        plan = None if self.migration is None else asdict(self.migration)
        if plan is not None:
            plan["path"], plan["backup"] = str(plan["path"]), str(plan["backup"])
        return {"findings": [asdict(finding) for finding in self.findings], "migration": plan}


async def look_over(home: Home) -> Report:
    """Look at the program, the home, its settings and its store."""
    before = await anyio.to_thread.run_sync(_before_opening, home)
    if before.migration is not None or any(finding.about == "store" for finding in before.findings):
        return before
    try:
        async with SessionDB(home.state_db) as db:
            opened = [*_store(await db.health.check()), *await _queues(db), await _gateways(db)]
    except StoreError as error:
        opened = [Finding("store", "failed", str(error))]
    return Report((*before.findings, *opened), None)


def _before_opening(home: Home) -> Report:
    """All that can be told without opening the store; a finding about the store itself if it is not to be opened."""
    findings = [_program(), *_folder(home), _settings(home)]
    migration = None
    try:
        migration = examine_store(home.state_db)
    except StoreError as error:
        findings.append(Finding("store", "failed", str(error)))
    else:
        if migration is not None:
            findings.append(Finding("store", "warning", _older(migration)))
        elif not home.state_db.exists():
            findings.append(Finding("store", "ok", "There is no store yet; the first message makes it."))
    return Report(tuple(findings), migration)


def _program() -> Finding:
    name, version, safe = library()
    words = f"Python {platform.python_version()}, SQLite {version} ({name})."
    if safe:
        words += (
            " This SQLite can lose writes when several processes share a file, so that it is used in a slower, safe "
            f"way. Install pysqlite3 into {sys.prefix} or use a newer Python."
        )
    return Finding("program", "warning" if safe else "ok", words)


def _folder(home: Home) -> Iterator[Finding]:
    if not home.path.exists():
        yield Finding("home", "ok", f"{home.path} is not there yet; it is made when it is needed.")
        return
    open_to_others = home.path.stat().st_mode & 0o077
    if open_to_others:
        yield Finding("home", "warning", f"{home.path} is open to other users. Close it: chmod 700 {home.path}")
    else:
        yield Finding("home", "ok", f"{home.path}, for you alone.")
    free = shutil.disk_usage(home.path).free
    state: State = "ok" if free > _LITTLE_ROOM else "warning"
    yield Finding("disk", state, f"{amount(free)} free.")


def _settings(home: Home) -> Finding:
    try:
        load_settings(home)
    except ConfigError as error:
        return Finding("settings", "failed", str(error))
    where = home.config_file if home.config_file.exists() else "all at their defaults"
    return Finding("settings", "ok", f"{where}.")


def _older(migration: MigrationPlan) -> str:
    return (
        f"{migration.path} has the schema of another tool (version {migration.version}). It is taken over when it is "
        "first opened, after a copy of it was made. `threadline doctor --dry-run-migration` says what would be done."
    )


def _store(health: StoreHealth) -> Iterator[Finding]:
    if health.trouble is None:
        yield Finding("store", "warning", f"{amount(health.size)}, too large to be looked through now.")
    elif health.trouble:
        yield Finding("store", "failed", f"It is damaged; restore a backup. {' '.join(health.trouble)}")
    elif health.orphans:
        yield Finding("store", "warning", f"{health.orphans} messages belong to sessions that another tool deleted.")
    else:
        yield Finding("store", "ok", f"{amount(health.size)}, looked through and whole.")
    well = health.index in {"ok", "catching up", "being rebuilt"}
    advice = (
        ""
        if well
        else " Search reads the messages themselves meanwhile. Build it anew: threadline sessions repair --search"
    )
    yield Finding("search index", "ok" if well else "warning", f"{health.index}.{advice}")


async def _queues(db: SessionDB) -> list[Finding]:
    inbox, outbox = await db.inbox.counts(), await db.outbox.counts()
    found = []
    aside = inbox.get("set_aside", 0)
    if aside:
        found.append(Finding("inbox", "warning", f"{aside} set aside. Look at them: threadline inbox list"))
    stuck = {state: outbox.get(state, 0) for state in ("unknown", "failed") if outbox.get(state, 0)}
    if stuck:
        told = ", ".join(f"{number} {state}" for state, number in stuck.items())
        found.append(Finding("outbox", "warning", f"{told}. Look at them: threadline outbox list"))
    return found or [Finding("queues", "ok", "Nothing is set aside, unknown or failed.")]


async def _gateways(db: SessionDB) -> Finding:
    gateways = [row for row in await db.processes.list() if row["role"] == "gateway"]
    asleep = ", ".join(str(row["pid"]) for row in gateways if row["asleep"])
    if asleep:
        told = f"Process {asleep} gives no sign of life: `threadline gateway status` says what to do."
        return Finding("gateway", "warning", told)
    running = [row for row in gateways if row["alive"]]
    if not running:
        return Finding("gateway", "ok", "None is running; `threadline gateway run` starts one.")
    accounts = [
        f"{name}: {facts['problem']}" for row in running for name, facts in row["detail"].get("accounts", {}).items()
        if facts.get("problem")
    ]  # fmt: skip
    if accounts:
        return Finding("gateway", "warning", " ".join(accounts))
    return Finding("gateway", "ok", f"Running: process {', '.join(str(row['pid']) for row in running)}.")
