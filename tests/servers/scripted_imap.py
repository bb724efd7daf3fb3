"""An IMAP server that says exactly what a test wants: what real servers may say, and seldom do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from adapters.email import Server

__all__ = ["DEFAULT", "Script", "serving"]

READY = b"* OK ready\r\n"


@dataclass
class Script:
    """Answers by command word; `{tag}` stands for the command's tag, None cuts the connection, b'' says nothing."""

    answers: dict[str, bytes | None] = field(default_factory=dict)
    greeting: bytes = READY
    heard: list[bytes] = field(default_factory=list)
    sessions: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client."""
        self.sessions[asyncio.current_task()] = writer
        writer.write(self.greeting)
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                self.heard.append(line.strip())
                tag, _, command = line.strip().partition(b" ")
                words = command.removeprefix(b"UID ").split() or [tag]
                word = words[0].decode("ascii", "replace")
                answer = self.answers.get(word, DEFAULT.get(word, b"{tag} OK done\r\n"))
                if answer is None:
                    break
                writer.write(answer.replace(b"{tag}", tag))
        writer.close()


DEFAULT: dict[str, bytes | None] = {
    "CAPABILITY": b"* CAPABILITY IMAP4rev1 IDLE\r\n{tag} OK done\r\n",
    "SELECT": b"* OK [UIDVALIDITY 7]\r\n* OK [PERMANENTFLAGS (\\Seen \\*)]\r\n* 0 EXISTS\r\n{tag} OK [READ-WRITE]\r\n",
    "DONE": b"t3 OK idled\r\n",
    "IDLE": b"+ idling\r\n",
}


@contextlib.asynccontextmanager
async def serving(script: Script) -> AsyncIterator[Server]:
    """Listen."""
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Server("127.0.0.1", port, "none")
    finally:
        server.close()
        for writer in script.sessions.values():
            writer.transport.abort()
        await asyncio.gather(*(task for task in script.sessions if task is not None))
