"""The processes that share this home, and whether they still live.

Contract: every process that may hold work registers once and beats every 10 seconds; its token is the holder's name in
leases, inbox and outbox rows. A process of this machine and pid namespace lives while its pid exists with the same
start time and its beat is younger than 60 s; of another namespace or host only the beat counts; after a reboot nobody
lives. All beats are read from the boot clock, which goes on while the machine sleeps and is not set by anybody.
Failure: a token that is not in the table is dead. A process that was forgotten while it slept is entered again by its
next beat. Limits: where there is no /proc only the pid is checked, so a reused pid counts until its beat is too old.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from session_store.jsontext import from_json, to_json
from session_store.rows import ProcessRow
from session_store.tx import Row, Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = [
    "BEAT_LIMIT",
    "ProcessIdentity",
    "Processes",
    "Registration",
    "boot_clock",
    "identity_of",
    "is_alive",
    "is_self",
    "token_alive",
]

BEAT_LIMIT = 60.0
"""Seconds on the boot clock after which a process that does not beat counts as dead."""

_FORGET_AFTER = 86_400.0
_CLOCK_SLACK = 1.0

_COLUMNS = "token, pid, pid_start, pid_ns, boot_id, host, role, accounts, detail, started_at, beat"
# One process entered, or entered again after it was forgotten.
REGISTER = f"""
INSERT INTO processes ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (token) DO UPDATE SET beat = excluded.beat
"""  # noqa: S608 - joined from constants
SET_DETAIL = "UPDATE processes SET detail = ? WHERE token = ?"
BEAT = "UPDATE processes SET beat = ? WHERE token = ?"
REMOVE = "DELETE FROM processes WHERE token = ?"
# All processes, oldest first.
LIST = f"SELECT {_COLUMNS} FROM processes ORDER BY rowid LIMIT 1000"  # noqa: S608 - joined from constants
ONE = f"SELECT {_COLUMNS} FROM processes WHERE token = ?"  # noqa: S608 - joined from constants


def boot_clock() -> float:
    """Seconds since boot, sleep included where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What tells one process from every other one, also from a later one with the same pid."""

    pid: int
    pid_start: int
    pid_ns: str
    boot_id: str
    host: str


@dataclass(frozen=True, slots=True)
class Registration:
    """A process as it is entered: its token, its identity, and what it tells about itself."""

    token: str
    identity: ProcessIdentity
    role: str
    accounts: tuple[str, ...]
    detail: str
    started_at: float


@functools.cache
def _machine() -> tuple[str, str, str]:
    """Pid namespace, boot id and host of this process; empty text where the system does not tell."""
    try:
        pid_ns = str(Path("/proc/self/ns/pid").readlink())
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        pid_ns, boot_id = "", ""
    return pid_ns, boot_id, socket.gethostname()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is there, but belongs to somebody else
    return True


def _started(pid: int) -> int | None:
    """Start time of a process in clock ticks; 0 where the system does not tell; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0 if not Path("/proc/self/stat").exists() and _exists(pid) else None
    # The name in parentheses may hold anything; the fields after it start with the state (field 3).
    fields = stat[stat.rindex(b")") + 2 :].split()
    dead = fields[0] in {b"Z", b"X", b"x"}
    return None if dead else int(fields[19])


def this_boot() -> str:
    """Return the id of this run of the machine; '' where the system does not tell."""
    return _machine()[1]


def identity_of(pid: int) -> ProcessIdentity:
    """Return the identity of a process of this machine and pid namespace."""
    pid_ns, boot_id, host = _machine()
    return ProcessIdentity(pid, _started(pid) or 0, pid_ns, boot_id, host)


def is_alive(row: Mapping[str, Any], boot_now: float) -> bool:
    """Judge a row of `processes` from this process at `boot_now` seconds on the boot clock."""
    pid_ns, boot_id, host = _machine()
    if row["boot_id"] != boot_id or row["beat"] > boot_now + _CLOCK_SLACK:
        return False  # the machine was started again since
    if (row["pid_ns"], row["host"]) == (pid_ns, host) and not _same_process(row):
        return False
    return bool(boot_now - row["beat"] <= BEAT_LIMIT)


def is_self(row: Mapping[str, Any]) -> bool:
    """Whether a row of `processes` is this very process, however late its beat is."""
    return (
        row["pid"] == os.getpid() and (row["pid_ns"], row["boot_id"], row["host"]) == _machine() and _same_process(row)
    )


def _same_process(row: Mapping[str, Any]) -> bool:
    started = _started(row["pid"])
    return started is not None and (started == row["pid_start"] or 0 in {started, row["pid_start"]})


def token_alive(rx: Rx, token: str, boot_now: float) -> bool:
    """Judge a process by its token; an unknown token is dead."""
    row = rx.one(ONE, (token,))
    return row is not None and is_alive(row, boot_now)


def register(tx: Tx, registration: Registration) -> None:
    """Enter a process with a fresh beat; again for the same token only the beat changes."""
    who = registration.identity
    accounts = to_json(registration.accounts)
    values = (registration.role, accounts, registration.detail, registration.started_at, tx.boot_now)
    tx.run(REGISTER, (registration.token, who.pid, who.pid_start, who.pid_ns, who.boot_id, who.host, *values))


def beat(tx: Tx, token: str) -> bool:
    """Renew a process's beat; False if it is not in the table."""
    return tx.run(BEAT, (tx.boot_now, token)) > 0


def forget_dead(tx: Tx) -> int:
    """Remove the rows of processes that will not come back; returns how many.

    One that may only be asleep stays: its pid still exists here, or it cannot be looked at and beat within a day.
    """
    gone = [row["token"] for row in tx.all(LIST) if _gone_for_good(row, tx.boot_now)]
    for token in gone:
        tx.run(REMOVE, (token,))
    return len(gone)


def _gone_for_good(row: Row, boot_now: float) -> bool:
    pid_ns, boot_id, host = _machine()
    if row["boot_id"] != boot_id or row["beat"] > boot_now + _CLOCK_SLACK:
        return True
    if (row["pid_ns"], row["host"]) == (pid_ns, host):
        return not _same_process(row)
    return bool(boot_now - row["beat"] > _FORGET_AFTER)


def _is_asleep(row: Row, boot_now: float) -> bool:
    here = (row["pid_ns"], row["boot_id"], row["host"]) == _machine()
    return here and not is_alive(row, boot_now) and not _gone_for_good(row, boot_now)


def _as_process(row: Row, boot_now: float) -> ProcessRow:
    decoded = {"accounts": from_json(row["accounts"]), "detail": from_json(row["detail"])}
    judged = {"alive": is_alive(row, boot_now), "asleep": _is_asleep(row, boot_now)}
    return cast("ProcessRow", row | decoded | judged)


class Processes:
    """The table of processes; remembers what this process registered, so that a beat can enter it again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mine: dict[str, Registration] = {}

    async def register(self, role: str, accounts: Sequence[str] = (), detail: Mapping[str, Any] | None = None) -> str:
        """Enter this process and return its new token. accounts: "platform/account" of each account it owns."""
        token, started_at, text = secrets.token_hex(16), time.time(), to_json(detail or {}) or "{}"

        def enter(tx: Tx) -> Registration:
            mine = Registration(token, identity_of(os.getpid()), role, tuple(accounts), text, started_at)
            register(tx, mine)
            return mine

        self._mine[token] = await self._engine.write(enter)
        return token

    async def set_detail(self, token: str, detail: Mapping[str, Any]) -> None:
        """Replace what a process tells about itself (JSON values only)."""
        text = to_json(detail)
        await self._engine.write(lambda tx: tx.run(SET_DETAIL, (text, token)))

    async def beat(self, token: str) -> None:
        """Renew the beat of a process of ours. Its leases have a beat of their own: see `Turns.beat`."""
        mine = self._mine.get(token)
        await self._engine.write(lambda tx: register(tx, mine) if mine is not None else beat(tx, token))

    async def remove(self, token: str) -> None:
        """Take a process out at its orderly end; what it still holds may then be taken over at once."""
        self._mine.pop(token, None)
        await self._engine.write(lambda tx: tx.run(REMOVE, (token,)))

    async def list(self) -> list[ProcessRow]:
        """All processes, each judged now, oldest first."""
        now = boot_clock()
        return await self._engine.read(lambda rx: [_as_process(row, now) for row in rx.all(LIST)])

    async def forget_dead(self) -> int:
        """Remove the rows of processes that will not come back; returns how many."""
        return await self._engine.write(forget_dead)
