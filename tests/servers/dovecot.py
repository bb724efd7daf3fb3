"""A real IMAP server: Dovecot from the system's packages, with a configuration and mailboxes of its own.

Contract: listens on 127.0.0.1 at ports of its own, plain and with TLS; any user may log in with `PASSWORD` and has an
empty mailbox. `deliver` puts a mail into a mailbox as a delivery agent would, so that whoever watches it is told.
Limits: needs the package `dovecot-imapd` and root (Dovecot gives up its rights by itself); `missing()` tells why it
cannot run here.
"""

from __future__ import annotations

import contextlib
import imaplib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PASSWORD", "Dovecot", "missing"]

PASSWORD = "correct-horse"  # noqa: S105  (of mailboxes that live as long as a test)
START_SECONDS = 10.0

_CONFIGURATION = """
base_dir = {home}/run
state_dir = {home}/run
log_path = {home}/log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{home}/certificate.pem
ssl_key = <{home}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain
auth_failure_delay = 0
mail_location = maildir:~/Maildir
mail_uid = dovecot
mail_gid = dovecot
first_valid_uid = 1
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=dovecot gid=dovecot home={home}/users/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
# Without this, a refused password makes the next login wait.
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
{more}
"""


def missing() -> str | None:
    """Why there can be no Dovecot here, or None."""
    if shutil.which("dovecot", path="/usr/sbin:/usr/bin") is None:
        return "needs Dovecot (Debian: apt-get install dovecot-imapd)"
    return None if os.geteuid() == 0 else "needs root, to start Dovecot"


class Dovecot:
    """One server with its mailboxes, as a context manager; `more` are further lines of its configuration."""

    def __init__(self, more: str = "") -> None:
        self._home = Path(tempfile.mkdtemp(prefix="threadline-dovecot-"))
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self.tls_port = _free_ports()
        self.certificate = self._home / "certificate.pem"

    def __enter__(self) -> Self:
        # Mail processes run as a user of their own and must get to the mailboxes.
        self._home.chmod(0o755)
        users = self._home / "users"
        users.mkdir()
        shutil.chown(users, "dovecot", "dovecot")
        _certify(self._home)
        (self._home / "dovecot.conf").write_text(
            _CONFIGURATION.format(
                home=self._home,
                password=PASSWORD,
                port=self.port,
                tls_port=self.tls_port,
                more=self._more,
            )
        )
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def start(self) -> None:
        """Start and wait until it answers."""
        # What a killed one left there would keep the next one from starting.
        shutil.rmtree(self._home / "run", ignore_errors=True)
        (self._home / "run").mkdir()
        self._process = subprocess.Popen(  # noqa: S603 - the system's server, on our own file
            ["/usr/sbin/dovecot", "-F", "-c", str(self._home / "dovecot.conf")], start_new_session=True
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                imaplib.IMAP4("127.0.0.1", self.port, timeout=1).shutdown()
            except (OSError, imaplib.IMAP4.error):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    log = self._home / "log"
                    raise AssertionError(log.read_text() if log.exists() else "Dovecot does not start") from None
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End it at once, with the processes that serve connections."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=START_SECONDS)
            # The others die a moment later, and hold the port until then.
            with contextlib.suppress(OSError):
                while True:
                    socket.create_connection(("127.0.0.1", self.port), timeout=1).close()

    def deliver(self, user: str, mail: bytes, age: float = 0.0) -> None:
        """Put a mail into a user's mailbox, as if it had come `age` seconds ago."""
        folder = self._maildir(user)
        name = f"{time.time_ns()}.{uuid.uuid4().hex}.here"
        draft = folder / "tmp" / name
        draft.write_bytes(mail)
        shutil.chown(draft, "dovecot", "dovecot")
        os.utime(draft, (time.time() - age,) * 2)
        draft.rename(folder / "new" / name)

    @contextlib.contextmanager
    def mailbox(self, user: str, folder: str = "INBOX") -> Iterator[imaplib.IMAP4]:
        """A look into a mailbox with the standard library's client."""
        with imaplib.IMAP4("127.0.0.1", self.port, timeout=START_SECONDS) as client:
            client.login(user, PASSWORD)
            client.select(folder)
            yield client

    def flags(self, user: str) -> list[set[str]]:
        """The flags of each mail in a user's mailbox, oldest first."""
        with self.mailbox(user) as client:
            _, lines = client.fetch("1:*", "(FLAGS)")
        return [set(_text(line).partition("FLAGS (")[2].partition(")")[0].split()) for line in lines if line]

    def mails(self, user: str) -> list[bytes]:
        """The mails in a user's mailbox, oldest first."""
        with self.mailbox(user) as client:
            _, lines = client.fetch("1:*", "(BODY.PEEK[])")
        return [line[1] for line in lines if isinstance(line, tuple)]

    def _maildir(self, user: str) -> Path:
        folder = self._home / "users" / user / "Maildir"
        for name in ("tmp", "new", "cur"):
            part = folder / name
            part.mkdir(parents=True, exist_ok=True)
        for made in (folder.parent, folder, *(folder / name for name in ("tmp", "new", "cur"))):
            shutil.chown(made, "dovecot", "dovecot")
        return folder


def _text(line: bytes | tuple[bytes, bytes]) -> str:
    return (line if isinstance(line, bytes) else line[0]).decode()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _certify(home: Path) -> None:
    """Make a certificate for localhost that vouches for itself."""
    subprocess.run(  # noqa: S603 - the system's tool
        [
            *(
                "/usr/bin/openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(home / "key.pem"), "-out", str(home / "certificate.pem"), "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
