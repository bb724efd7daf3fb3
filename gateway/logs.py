"""Logging of the gateway: one line per event on stderr, our own and the libraries' alike.

Contract: nothing blocks the caller. A record goes into a bounded queue; a thread of its own formats it (which reads
source files for tracebacks) and writes it. Secrets given to `set_up_logs` are blotted out of every line, whoever wrote
it; libraries that log request addresses are raised to WARNING; tracebacks are printed without the values of variables.
Failure: when stderr does not take what is written, the queue fills and further lines are counted and dropped; the count
is told as soon as there is room. `Logs.close` writes what is queued, for `CLOSE_SECONDS` at most; a regular exit does
it too. Limits: `QUEUE` lines; once per process; colours only on a terminal.
"""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import queue
import sys
import threading
from collections.abc import Collection
from typing import TextIO
from urllib.parse import quote

import structlog

__all__ = ["Logs", "set_up_logs"]

QUEUE = 4096
CLOSE_SECONDS = 2.0

#: These write each request's address at INFO; Telegram's holds the bot's token.
_TALKATIVE = ("httpx", "httpcore", "telegram", "asyncio", "uvicorn", "uvicorn.error", "uvicorn.access")
#: Blots out nothing shorter: a word of a few letters would be found in ordinary text.
_SHORTEST_SECRET = 8
_BLOT = "<secret>"


class Logs:
    """The queue and its thread. Made by `set_up_logs`."""

    def __init__(self, stream: TextIO, secrets: Collection[str]) -> None:
        self._queue: queue.Queue[logging.LogRecord | None] = queue.Queue(QUEUE)
        self._output = logging.StreamHandler(stream)
        self._output.setFormatter(_Formatter(secrets, colors=stream.isatty()))
        self.handler = _Enqueue(self._queue)
        self._thread = threading.Thread(target=self._write, name="threadline-logs", daemon=True)
        self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what is queued and end the thread; waits `seconds` at most, also when stderr is stuck."""
        if self._thread.is_alive():
            try:
                self._queue.put(None, timeout=seconds)
            except queue.Full:
                return
            self._thread.join(seconds)

    def _write(self) -> None:
        while (record := self._queue.get()) is not None:
            if lost := self.handler.take_lost():
                self._output.handle(_told(f"{lost} log lines were dropped: stderr did not take them in time"))
            self._output.handle(record)


def set_up_logs(secrets: Collection[str] = (), stream: TextIO | None = None) -> Logs:
    """Route structlog and the standard library to `stream` (stderr) in one form. Called once per process."""
    logs = Logs(stream or sys.stderr, secrets)
    root = logging.getLogger()
    root.handlers = [logs.handler]
    root.setLevel(logging.INFO)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*_PREPARED, _caught_now, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    atexit.register(logs.close)
    return logs


class _Enqueue(logging.handlers.QueueHandler):
    """Hands records over as they are; formatting them is the thread's work."""

    def __init__(self, records: queue.Queue[logging.LogRecord | None]) -> None:
        super().__init__(records)
        self._records = records
        self._lost = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Leave the record alone."""
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue without waiting."""
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def take_lost(self) -> int:
        """How many records found no room since the last call."""
        self.acquire()
        try:
            lost, self._lost = self._lost, 0
        finally:
            self.release()
        return lost


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """One line per event, and what must not be seen blotted out."""

    def __init__(self, secrets: Collection[str], *, colors: bool) -> None:
        super().__init__(
            foreign_pre_chain=_PREPARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _without_nothing,
                structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback),
            ],
        )
        hidden = {form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""))}
        self._hidden = sorted((text for text in hidden if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Format, then blot."""
        line = super().format(record)
        for secret in self._hidden:
            line = line.replace(secret, _BLOT)
        return line


def _caught_now(
    _logger: structlog.typing.WrappedLogger, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Take hold of the exception being handled: the thread that formats it handles none."""
    if event.get("exc_info") is True:
        event["exc_info"] = sys.exc_info()
    return event


def _told(sentence: str) -> logging.LogRecord:
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, sentence, None, None)


def _without_nothing(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Leave out what has no value: `problem=None` reads like a problem."""
    return {name: value for name, value in event.items() if value is not None}


_PREPARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
]
