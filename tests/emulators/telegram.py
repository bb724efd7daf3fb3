"""An emulated Bot API server on 127.0.0.1 for tests: in the test's own loop, or as a process of its own.

In a test:

    async with TelegramEmulator() as telegram:
        adapter = TelegramAdapter("main", telegram.token, telegram.base_url)
        number = telegram.say("hello")
        await telegram.until(lambda: telegram.updates[number].confirmed)

As a process: `python -m tests.emulators.telegram --port 0` prints one JSON line with `base_url`, `control` and `token`;
`tests.emulators.telegram_control` tells what can be asked of it.

Contract: updates are kept until a getUpdates with a higher offset confirms them; every delivery and confirmation is
counted. What is sent is checked as the real server checks it (length, text, topic, entities) and kept in `sent` in
order, as it shows now; `edits` has each text that was put in the place of another. A second reader ends the first one's
long poll with a conflict. `fail` lays faults in the way of coming requests.
Files are given out as the real server does: getFile tells a path, up to 20 MB, and the bytes come from `/file/bot...`.
Limits: nothing is uploaded by bots, no flood control of its own, one webhook-less bot per token.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from tests.emulators.telegram_control import control
from tests.emulators.telegram_edits import edit_text
from tests.emulators.telegram_rules import (
    MAX_TOPIC_NAME,
    MAX_UNITS,
    Refusal,
    entities_of,
    read_entities,
    structure,
    units,
    whole_number,
)
from tests.emulators.telegram_state import Bot, Chat, Fault, FaultAction, Sent, StoredFile, Update
from tests.emulators.wire import Answer, Request, WireServer

__all__ = ["TOKEN", "Fault", "Sent", "StoredFile", "TelegramEmulator", "Update", "described", "main"]

TOKEN = "1000:emulated-token"  # noqa: S105  (opens nothing but the emulator)
#: Bots get no larger files.
MAX_FILE = 20_000_000
#: What is waited for may also change on the client's side, which rings no bell here.
_LOOK_SECONDS = 0.02
_DEFAULT_TYPES = ("message", "edited_message", "channel_post", "edited_channel_post", "callback_query")


class TelegramEmulator:
    """The server. Everything is reachable in process; see the module's text."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.bots = {TOKEN: Bot(1000, "gatebot")}
        self.chats: dict[int, Chat] = {}
        self.updates: dict[int, Update] = {}
        self.sent: list[Sent] = []
        self.edits: list[Sent] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[Fault] = []
        self.files: dict[str, StoredFile] = {}
        self._next_update = 5000
        self._news = asyncio.Event()
        self._server = WireServer(self._handle)

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen; nothing that is known is forgotten, so stop and start are an outage."""
        await self._server.start(port)

    async def stop(self) -> None:
        """Cut every connection and close the port."""
        await self._server.stop()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._server.port

    @property
    def base_url(self) -> str:
        """What an adapter is given as `base_url`."""
        return f"http://127.0.0.1:{self.port}/bot"

    async def until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Return when `condition` holds; it is looked at after every request and injection, and now and then."""
        async with asyncio.timeout(seconds):
            while not condition():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)

    def _ring(self) -> None:
        """Wake everyone who waits for news; who comes later waits for the next."""
        self._news.set()
        self._news = asyncio.Event()

    # --- what tests do -----------------------------------------------------------------------------------------------

    def add_bot(self, token: str, bot_id: int, username: str) -> None:
        """Know one more bot."""
        self.bots[token] = Bot(bot_id, username)

    def chat(self, chat_id: int = 42, chat_type: str = "private", *, forum: bool = False, title: str = "") -> Chat:
        """Return the chat with this number; it is made when it is new."""
        if chat_id not in self.chats:
            # In a forum, the number 1 is General's.
            self.chats[chat_id] = Chat(chat_id, chat_type, title or None, forum, last_message=int(forum))
        return self.chats[chat_id]

    def say(  # noqa: PLR0913  (what a message can be, by name)
        self,
        text: str | None = None,
        *,
        chat_id: int = 42,
        chat_type: str = "private",
        forum: bool = False,
        user_id: int | None = 42,
        name: str = "Ann",
        topic: int | None = None,
        reply_thread: int | None = None,
        token: str = TOKEN,
        kind: str = "message",
        **more: Any,
    ) -> int:
        """Let a person say something; returns the number of the update.

        topic: a real topic message. reply_thread: a thread id as replies outside topics carry it. `more` goes into the
        message as it is: reply_to_message, sender_chat, photo, caption, entities, edit_date, ...
        """
        chat = self.chat(chat_id, chat_type, forum=forum)
        message: dict[str, Any] = {"message_id": chat.next_message(), "date": int(time.time()), "chat": chat.as_json()}
        if user_id is not None:
            message["from"] = {"id": user_id, "is_bot": False, "first_name": name}
        if text is not None:
            message |= {"text": text, "entities": entities_of(text)}
        if topic is not None:
            chat.topics.add(topic)
            message |= {"message_thread_id": topic, "is_topic_message": True}
        if reply_thread is not None:
            message["message_thread_id"] = reply_thread
        return self.inject({kind: message | more}, token=token)

    def file(self, data: bytes, path: str = "", *, size: int | None = None, slow: float = 0.0) -> StoredFile:
        """Keep a file; what a message says of it begins with its `file_id`."""
        number = len(self.files) + 1
        stored = StoredFile(f"file-{number}", path or f"documents/file_{number}", data, size or len(data), slow)
        self.files[stored.file_id] = stored
        return stored

    def send_document(self, data: bytes, name: str, *, caption: str | None = None, **more: Any) -> StoredFile:
        """Let a person send a document; `more` as for `say`, and `size`, `slow` as for `file`."""
        stored = self.file(data, size=more.pop("size", None), slow=more.pop("slow", 0.0))
        document = described(stored) | {"file_name": name, "mime_type": "application/octet-stream"}
        words: dict[str, Any] = (
            {} if caption is None else {"caption": caption, "caption_entities": entities_of(caption)}
        )
        self.say(None, document=document, **words, **more)
        return stored

    def inject(self, body: Mapping[str, Any], *, token: str = TOKEN) -> int:
        """Queue an update as it is, whatever it holds; returns its number."""
        self._next_update += 1
        number = self._next_update
        update = Update(number, {"update_id": number, **body})
        for value in body.values():
            if isinstance(value, dict) and isinstance(value.get("chat"), dict):
                update.chat_id, update.message_id = value["chat"].get("id"), value.get("message_id")
        self.updates[number] = update
        self.bots[token].waiting.append(number)
        self._ring()
        return number

    def fail(self, method: str, action: FaultAction, **how: Any) -> Fault:
        """Lay a fault in the way of coming calls; see `Fault`. Returns it, so that it can be ended with `times = 0`."""
        fault = Fault(method, action, **how)
        self.faults.append(fault)
        return fault

    def flood(self, retry_after: int, *, times: int | None = 1, method: str = "sendMessage", **how: Any) -> Fault:
        """Answer with flood control."""
        return self.fail(
            method,
            "refuse",
            times=times,
            status=429,
            description=f"Too Many Requests: retry after {retry_after}",
            parameters={"retry_after": retry_after},
            **how,
        )

    # --- the server --------------------------------------------------------------------------------------------------

    async def _handle(self, request: Request) -> Answer | None:
        if request.path.startswith("/control/"):
            return await control(self, request)
        if request.path.startswith("/file/bot"):
            return await self._download(request)
        token, _, method = request.path.removeprefix("/bot").rpartition("/")
        bot = self.bots.get(token)
        if bot is None:
            return _refused(Refusal("Unauthorized", 401))
        fields = request.fields
        self.calls.append((method, fields))
        try:
            return await self._call(bot, method, fields)
        except Refusal as refusal:
            return _refused(refusal)
        finally:
            self._ring()

    async def _download(self, request: Request) -> Answer | None:
        token, _, path = unquote(request.path.removeprefix("/file/bot")).partition("/")
        stored = next((file for file in self.files.values() if file.path == path), None)
        if token not in self.bots or stored is None:
            return _refused(Refusal("Not Found", 404))
        stored.fetched += 1
        self._ring()
        fault = next((fault for fault in self.faults if fault.meets("file", {})), None)
        if fault is None:
            return Answer(stored.data, headers={"content-type": "application/octet-stream"}, slow=stored.slow)
        if fault.action == "hang":
            await asyncio.Event().wait()
        refusal = Refusal(fault.description or "Internal Server Error", fault.status, fault.parameters)
        return None if fault.action == "drop" else _refused(refusal)

    def _get_file(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        stored = self.files.get(str(fields.get("file_id", "")))
        if stored is None:
            raise Refusal("Bad Request: wrong file_id or the file is temporarily unavailable")
        stored.asked += 1
        if len(stored.data) > MAX_FILE:
            raise Refusal("Bad Request: file is too big")
        return described(stored) | {"file_path": stored.path}

    async def _call(self, bot: Bot, method: str, fields: Mapping[str, Any]) -> Answer | None:
        fault = next((fault for fault in self.faults if fault.meets(method, fields)), None)
        if fault is None:
            return await self._carry_out(bot, method, fields)
        answer = await self._carry_out(bot, method, fields) if fault.processed else None
        self._ring()
        if fault.action == "delay":
            await asyncio.sleep(fault.seconds)
            return answer or await self._carry_out(bot, method, fields)
        if fault.action == "drop":
            return None
        if fault.action in {"garbage", "stranger"}:
            status = fault.status if fault.action == "stranger" else 200
            return Answer(b"<html>this is no answer</html>", status=status)
        if fault.action == "hang":
            await asyncio.Event().wait()
        raise Refusal(fault.description or "Internal Server Error", fault.status, fault.parameters)

    async def _carry_out(  # noqa: PLR0911  (one per method)
        self, bot: Bot, method: str, fields: Mapping[str, Any]
    ) -> Answer:
        if method == "getUpdates":
            return _result(await self._get_updates(bot, fields))
        if method == "getMe":
            return _result({**bot.as_json(), "can_join_groups": True, "can_read_all_group_messages": False})
        if method == "deleteWebhook":
            return _result(True)  # noqa: FBT003  (the answer of the real server)
        if method == "sendMessage":
            return _result(self._send_message(bot, fields))
        if method == "editMessageText":
            return _result(edit_text(self, self._known_chat(fields), fields))
        if method == "sendChatAction":
            self._known_chat(fields).check_topic(whole_number(fields, "message_thread_id"))
            return _result(True)  # noqa: FBT003  (the answer of the real server)
        if method == "getFile":
            return _result(self._get_file(fields))
        if method == "createForumTopic":
            return _result(self._create_topic(bot, fields))
        raise Refusal("Not Found", 404)

    async def _get_updates(self, bot: Bot, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        bot.poll = mine = object()
        offset = whole_number(fields, "offset")
        if offset is not None:
            for number in [number for number in bot.waiting if number < offset]:
                bot.waiting.remove(number)
                self.updates[number].confirmed = True
        limit = whole_number(fields, "limit") or 100
        allowed = structure(fields, "allowed_updates") or _DEFAULT_TYPES
        ending = asyncio.get_running_loop().time() + (whole_number(fields, "timeout") or 0)
        self._ring()
        while not (wanted := self._wanted(bot, allowed)[:limit]):
            left = ending - asyncio.get_running_loop().time()
            if left <= 0:
                return []
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
            if bot.poll is not mine:
                raise Refusal(
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                    409,
                )
        for number in wanted:
            self.updates[number].deliveries += 1
        return [self.updates[number].body for number in wanted]

    def _wanted(self, bot: Bot, allowed: Sequence[str]) -> list[int]:
        """Return what waits for a bot; kinds that it did not ask for are let go, others that nobody knows are kept."""
        for number in list(bot.waiting):
            kinds = self.updates[number].body.keys() - {"update_id"}
            if kinds and kinds <= set(_DEFAULT_TYPES) - set(allowed):
                bot.waiting.remove(number)
        return list(bot.waiting)

    def _known_chat(self, fields: Mapping[str, Any]) -> Chat:
        chat = self.chats.get(whole_number(fields, "chat_id") or 0)
        if chat is None:
            raise Refusal("Bad Request: chat not found")
        if chat.moved_to is not None:
            raise Refusal(
                "Bad Request: group chat was upgraded to a supergroup chat",
                parameters={"migrate_to_chat_id": chat.moved_to},
            )
        return chat

    def _send_message(self, bot: Bot, fields: Mapping[str, Any]) -> dict[str, Any]:
        chat = self._known_chat(fields)
        text = str(fields.get("text", ""))
        if not text.strip():
            raise Refusal("Bad Request: message text is empty")
        if units(text) > MAX_UNITS:
            raise Refusal("Bad Request: message is too long")
        thread = whole_number(fields, "message_thread_id")
        chat.check_topic(thread)
        entities = read_entities(fields, text)
        reply = (structure(fields, "reply_parameters") or {}).get("message_id")
        sent = Sent(chat.id, chat.next_message(), text, thread, entities, reply, time.time())
        self.sent.append(sent)
        message = {
            "message_id": sent.message_id,
            "date": int(sent.at),
            "chat": chat.as_json(),
            "from": bot.as_json(),
            "text": text,
            "entities": entities,
        }
        if thread is None or chat.swallows_topics:
            return message
        return message | {"message_thread_id": thread, "is_topic_message": True}

    def _create_topic(self, bot: Bot, fields: Mapping[str, Any]) -> dict[str, Any]:
        chat = self._known_chat(fields)
        name = str(fields.get("name", ""))
        if not chat.forum and chat.type != "private":
            raise Refusal("Bad Request: the chat is not a forum")
        if not 1 <= len(name) <= MAX_TOPIC_NAME:
            raise Refusal("Bad Request: TOPIC_TITLE_INVALID")
        thread = chat.next_message()
        chat.topics.add(thread)
        self.inject(
            {
                "message": {
                    "message_id": thread,
                    "date": int(time.time()),
                    "chat": chat.as_json(),
                    "from": bot.as_json(),
                    "message_thread_id": thread,
                    "is_topic_message": True,
                    "forum_topic_created": {"name": name, "icon_color": 7322096},
                }
            },
            token=next(token for token, known in self.bots.items() if known is bot),
        )
        return {"message_thread_id": thread, "name": name, "icon_color": 7322096}


def described(stored: StoredFile) -> dict[str, Any]:
    """Return a file as messages carry it."""
    return {"file_id": stored.file_id, "file_unique_id": f"u-{stored.file_id}", "file_size": stored.size}


def _result(value: Any) -> Answer:
    return Answer({"ok": True, "result": value})


def _refused(refusal: Refusal) -> Answer:
    value: dict[str, Any] = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    if refusal.parameters:
        value["parameters"] = refusal.parameters
    return Answer(value, refusal.status)


async def _serve(port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    emulator = TelegramEmulator()
    await emulator.start(port)
    told = {
        "base_url": emulator.base_url,
        "control": f"http://127.0.0.1:{emulator.port}/control",
        "token": emulator.token,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await ended.wait()
    await emulator.stop()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="An emulated Telegram Bot API server on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (the default) takes a free one")
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
