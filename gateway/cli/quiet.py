"""What the parts of the gateway log, in a process that somebody sits in front of.

Contract: what concerns the person is told by the chat itself, in sentences. Of the logs only errors are shown, on
stderr, one line and, for a failure of the agent, its traceback; nothing goes to stdout.
"""

from __future__ import annotations

import logging
import sys

import structlog

__all__ = ["quiet_logs"]


def quiet_logs() -> None:
    """Let only errors through. Called once per process."""
    logging.disable(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=_to_stderr,
    )


def _to_stderr(*_: object) -> structlog.PrintLogger:
    """A logger to what is stderr at this moment: the prompt takes it over while it is shown."""
    return structlog.PrintLogger(sys.stderr)
