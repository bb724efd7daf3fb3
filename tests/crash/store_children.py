"""Starting and watching the processes of store_child.py, and looking at what they left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Elsewhere

CHILD = Path(__file__).with_name("store_child.py")
ROOT = CHILD.parents[2]

#: Each must give no row.
INCONSISTENT = {
    "counter differs from rows": """
        SELECT s.id FROM sessions AS s
        WHERE s.message_count <> (SELECT count(*) FROM messages AS m WHERE m.session_id = s.id) LIMIT 5
    """,
    "message twice": "SELECT op_id FROM messages GROUP BY op_id HAVING count(*) > 1 LIMIT 5",
    "message not in the index": """
        SELECT id FROM messages WHERE id NOT IN (SELECT id FROM messages_fts_docsize)
            AND id <= (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'fts_watermark') LIMIT 5
    """,
    "index entry without message": """
        SELECT id FROM messages_fts_docsize WHERE id NOT IN (SELECT id FROM messages) LIMIT 5
    """,
    "index behind": """
        SELECT max(id) AS newest FROM messages
        HAVING newest > (SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = 'fts_watermark')
    """,
    "index in trouble": "SELECT value FROM state_meta WHERE key = 'fts_health' AND value <> 'ok'",
}


class Child:
    """One process. Its lines are read as they come; leaving the block kills it if it still runs."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
            [sys.executable, str(CHILD), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.lines: list[str] = []

    def line(self) -> str:
        """The next line; '' when the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            self.lines.append(line.strip())
        return line.strip()

    def until(self, start: str) -> str:
        """Read on to the line that starts so."""
        while True:
            line = self.line()
            if line.startswith(start):
                return line
            if not line:
                raise AssertionError(f"ended without {start!r}; last lines: {self.lines[-5:]}")

    def rest(self) -> list[str]:
        """Read to the end of the process; all of its lines."""
        while self.line():
            pass
        self.process.wait(30)
        return self.lines

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def go_on(self) -> None:
        """Write the line that it waits for."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def acknowledged(self) -> list[str]:
        """Operations whose commit it was told of."""
        return [line.split()[1] for line in self.lines if line.startswith("ack ") and len(line.split()) == 2]

    @property
    def failures(self) -> list[str]:
        """Lines about errors."""
        return [line for line in self.lines if line.startswith("failed")]


@contextmanager
def child(*arguments: object) -> Iterator[Child]:
    """Start a process; it does not outlive the block."""
    started = Child(*arguments)
    try:
        yield started
    finally:
        started.send(signal.SIGCONT)
        started.process.kill()
        started.rest()
        for pipe in (started.process.stdin, started.process.stdout):
            assert pipe is not None
            pipe.close()


def assert_consistent(elsewhere: Elsewhere) -> None:
    """Whatever happened: no half operation, no double one, counters and index right, the file whole."""
    assert elsewhere("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert elsewhere("PRAGMA foreign_key_check") == []
    for what, query in INCONSISTENT.items():
        assert elsewhere(query) == [], what
    elsewhere("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")


def stored(elsewhere: Elsewhere, session: str) -> list[str]:
    """Ids of a session's operations, in order."""
    rows = elsewhere("SELECT op_id FROM messages WHERE session_id = ? ORDER BY id", session)
    return [row["op_id"] for row in rows]
