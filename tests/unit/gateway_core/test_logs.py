"""What the gateway logs, and what it never shows. Each in a process of its own: logging is set up once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(body: str, *, code: int = 0) -> tuple[str, str]:
    """Run a program that logs; returns what it wrote to stdout and stderr."""
    head = """
    import logging, sys
    import structlog
    from gateway.logs import set_up_logs
    """
    done = subprocess.run(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(body)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_our_events_and_the_libraries_look_alike_and_go_to_stderr() -> None:
    """One line each, in order, and all of them are there after a regular exit."""
    out, err = run(
        """
        set_up_logs()
        for number in range(200):
            structlog.get_logger("ours").info("happened", number=number)
        logging.getLogger("theirs").warning("it %s", "did")
        logging.getLogger("theirs").info("told")
        logging.getLogger("theirs").debug("too much")
        """
    )
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 202
    assert [line.rpartition("number=")[2] for line in lines[:200]] == [str(number) for number in range(200)]
    assert "it did" in lines[-2]
    assert "\\x1b" not in err


def test_the_exception_that_was_handled_is_shown_without_values() -> None:
    """The traceback of the place that logged, not of the thread that writes."""
    _, err = run(
        """
        set_up_logs()
        def deep():
            password = "hunter2hunter2"
            raise ValueError("the reason")
        try:
            deep()
        except ValueError:
            structlog.get_logger("ours").exception("broken", why="test")
        """
    )
    assert "broken" in err
    assert "in deep" in err
    assert "ValueError: the reason" in err
    assert "hunter2" not in err.replace('password = "hunter2hunter2"', "")


def test_secrets_are_blotted_out_whoever_writes_them() -> None:
    """In events, in foreign messages, in tracebacks and causes, also percent-encoded."""
    _, err = run(
        """
        set_up_logs(["12345:secret/token", "short"])
        structlog.get_logger("ours").info("asked", url="https://host/bot12345:secret/token/getMe", word="short")
        logging.getLogger("theirs").warning("GET %s", "https://host/?t=12345%3Asecret%2Ftoken")
        try:
            try:
                raise OSError("cannot reach bot12345:secret/token")
            except OSError as error:
                raise RuntimeError("failed") from error
        except RuntimeError:
            structlog.get_logger("ours").exception("failed")
        """
    )
    assert "secret" not in err.replace("<secret>", "")
    assert err.count("<secret>") == 3
    assert "word=short" in err


def test_libraries_that_log_addresses_are_quiet() -> None:
    """Their INFO holds the token of the bot."""
    _, err = run(
        """
        set_up_logs()
        for name in ("httpx", "httpcore.http11", "telegram.ext", "uvicorn.access", "asyncio"):
            logging.getLogger(name).info("GET https://host/bot1:x/getMe")
            logging.getLogger(name).warning("trouble")
        """
    )
    assert "GET" not in err
    assert err.count("trouble") == 5


def test_a_stuck_stderr_holds_nobody_up() -> None:
    """Nobody reads it: logging goes on, the queue is bounded, the exit comes."""
    out, _ = run(
        """
        import os, threading, time
        import gateway.logs as logs
        logs.CLOSE_SECONDS = 0.2
        read, write = os.pipe()
        stuck = os.fdopen(write, "w")
        made = set_up_logs(stream=stuck)
        log = structlog.get_logger("ours")
        began = time.monotonic()
        for number in range(20_000):
            log.info("happened", text="x" * 100)
        print("logged", flush=True)
        made.close(0.2)
        print("closed", made.handler.take_lost() > 0, flush=True)
        os._exit(0)
        """
    )
    assert out.split() == ["logged", "closed", "True"]


def test_dropped_lines_are_counted_and_told() -> None:
    """As soon as there is room again."""
    _, err = run(
        """
        import gateway.logs as logs
        logs.QUEUE = 10
        made = set_up_logs()
        made._output.acquire()
        for number in range(100):
            structlog.get_logger("ours").info("happened", number=number)
        made._output.release()
        """
    )
    assert "log lines were dropped" in err
    assert 10 <= err.count("happened") <= 20


def test_formatting_a_record_is_not_the_callers_work() -> None:
    """A traceback is read from source files, which blocks: it is done by the thread that writes."""
    out, _ = run(
        """
        import threading
        made = set_up_logs()
        formatting = []
        real = made._output.formatter.format
        def seen(record):
            formatting.append(threading.current_thread() is threading.main_thread())
            return real(record)
        made._output.formatter.format = seen
        try:
            raise ValueError("x")
        except ValueError:
            structlog.get_logger("ours").exception("broken")
        made.close()
        print(formatting)
        """
    )
    assert out.strip() == "[False]"


def test_what_has_no_value_is_left_out() -> None:
    """Only None: an empty text or a zero is a value."""
    _, err = run(
        """
        set_up_logs()
        structlog.get_logger().info("state", problem=None, count=0, state="connected")
        """
    )
    assert "problem" not in err
    assert "count=0" in err
    assert "state=connected" in err
