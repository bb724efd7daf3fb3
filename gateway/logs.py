"""Logging of the gateway: one line per event on stderr, our own and the libraries' alike.

Contract: secrets never reach a log (they are `SecretStr` in the settings); libraries that log request addresses with
tokens in them are raised to WARNING; tracebacks are printed without the values of variables.
Colours only on a terminal.
"""

from __future__ import annotations

import logging
import sys

import structlog

__all__ = ["set_up_logs"]

#: These write each request's address at INFO; Telegram's holds the bot's token.
_TALKATIVE = ("httpx", "httpcore", "telegram", "asyncio", "uvicorn", "uvicorn.error", "uvicorn.access", "sse_starlette")


def set_up_logs() -> None:
    """Route structlog and the standard library to stderr in one form. Called once per process."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.dev.ConsoleRenderer(
                    colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
                ),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
