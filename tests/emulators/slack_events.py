"""What happens in the emulated workspaces, as the events that Slack makes of it.

A post that mentions the app comes twice, as `message` and as `app_mention`, with different event ids and one time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tests.emulators.slack_state import Channel, Event, StoredFile, Workspace

__all__ = ["SlackEvents"]

_FIRST_SECOND = 1_790_000_000


class SlackEvents(ABC):
    """Makes events and keeps them; subclasses bring them to the app."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.channels: dict[str, Channel] = {}
        self.events: list[Event] = []
        self.files: dict[str, StoredFile] = {}
        self.echoes = True
        self.epoch = _FIRST_SECOND
        self.response_base = "http://127.0.0.1:9/"
        self._posts = 0

    @abstractmethod
    def queue(self, event: Event) -> None:
        """Bring an event to the app."""

    def next_ts(self) -> str:
        """Return the time of a new message: unique, and higher than all before."""
        self._posts += 1
        return f"{self.epoch + self._posts}.{self._posts % 1_000_000:06d}"

    def channel(self, name: str = "D1", **facts: Any) -> Channel:
        """Return the channel with this id; it is made when it is new."""
        if name not in self.channels:
            kind = {"D": "im", "G": "group"}.get(name[0], "channel")
            self.channels[name] = Channel(name, **{"kind": kind, "name": name.lower(), **facts})
        return self.channels[name]

    def file(self, data: bytes, name: str, mimetype: str = "text/plain", **facts: Any) -> StoredFile:
        """Keep a file; its `facts` are what a message says of it."""
        number = f"F{len(self.files) + 1}"
        told = {"id": number, "name": name, "mimetype": mimetype, "size": len(data), "mode": "hosted", **facts}
        self.files[number] = stored = StoredFile(number, data, told)
        return stored

    def say(  # noqa: PLR0913  (what a message can be, by name)
        self,
        text: str | None = None,
        *,
        channel: str = "D1",
        user: str | None = "U1",
        thread: str | None = None,
        workspace: Workspace | None = None,
        mention_only: bool = False,
        **more: Any,
    ) -> Event:
        """Let a person say something; returns its `message` event (or, with mention_only, its `app_mention`).

        `more` goes into the message as it is: subtype, bot_id, files, user_team, ...
        """
        where, here = self.channel(channel), workspace or self.workspace
        ts = self.next_ts()
        message: dict[str, Any] = {"type": "message", "channel": channel, "ts": ts, "event_ts": ts, "team": here.team}
        message |= {"channel_type": where.kind}
        if user is not None:
            message["user"] = user
        if text is not None:
            message["text"] = text
        if thread is not None:
            message["thread_ts"] = thread
            root = where.posts.get(thread, {})
            message |= {"parent_user_id": root["user"]} if root.get("user") else {}
        message |= more
        where.posts[ts] = message
        twin = {name: value for name, value in message.items() if name not in {"channel_type", "subtype"}}
        mentions = f"<@{here.user}>" in (text or "") and where.kind != "im"
        made = [] if mention_only else [message]
        made += [twin | {"type": "app_mention"}] if mentions else []
        first, *_ = [self.event(body, workspace=here) for body in made]
        return first

    def edit(self, ts: str, text: str, *, channel: str = "D1", **more: Any) -> Event:
        """Let a person change what they said."""
        before, at = self.channel(channel).posts[ts], self.next_ts()
        message = {**before, "text": text, "edited": {"user": before.get("user"), "ts": at}, **more}
        self.channel(channel).posts[ts] = message
        return self._hidden("message_changed", channel, at, message=message, previous_message=before)

    def delete(self, ts: str, *, channel: str = "D1") -> Event:
        """Let a person delete what they said."""
        before = self.channel(channel).posts.pop(ts)
        return self._hidden("message_deleted", channel, self.next_ts(), deleted_ts=ts, previous_message=before)

    def assistant_root(self, channel: str = "D1") -> str:
        """Make the root of an assistant thread, which nobody is told of as a message, and return its time."""
        ts = self.next_ts()
        root = {"type": "message", "subtype": "assistant_app_thread", "user": self.workspace.user, "ts": ts}
        self.channel(channel).posts[ts] = root
        return ts

    def open_assistant(self, channel: str = "D1", user: str = "U1") -> Event:
        """Let a person open an assistant thread."""
        ts = self.assistant_root(channel)
        thread = {"user_id": user, "channel_id": channel, "thread_ts": ts, "context": {}}
        event = self.event({"type": "assistant_thread_started", "assistant_thread": thread, "event_ts": ts})
        event.ts = ts
        return event

    def command(self, text: str, *, channel: str = "D1", user: str = "U1", **more: Any) -> Event:
        """Let a person use the slash command."""
        where, number = self.channel(channel), len(self.events) + 1
        payload = {
            "token": "emulated",
            "team_id": self.workspace.team,
            "channel_id": channel,
            "channel_name": {"im": "directmessage", "group": "privategroup"}.get(where.kind, where.name),
            "user_id": user,
            "user_name": self.workspace.names.get(user, user).lower(),
            "command": "/threadline",
            "text": text,
            "api_app_id": "A1",
            "is_enterprise_install": "false",
            "response_url": f"{self.response_base}{number}",
            "trigger_id": f"{number}.trigger",
        }
        return self.inject(payload | more, kind="slash_commands")

    def event(self, body: Mapping[str, Any], *, workspace: Workspace | None = None, **around: Any) -> Event:
        """Queue one event of the Events API; `around` replaces what stands around it."""
        here, number = workspace or self.workspace, len(self.events) + 1
        payload = {
            "token": "emulated",
            "team_id": here.team,
            "context_team_id": here.team,
            "context_enterprise_id": here.enterprise or None,
            "api_app_id": "A1",
            "event": dict(body),
            "type": "event_callback",
            "event_id": f"Ev{number}",
            "event_time": _FIRST_SECOND,
            "authorizations": [here.authorization],
            "is_ext_shared_channel": False,
            "event_context": f"4-{number}",
        }
        event = self.inject(payload | around)
        event.ts = str(body.get("ts", ""))
        return event

    def inject(self, payload: Any, *, kind: str = "events_api", echo: bool = False) -> Event:
        """Queue an envelope's content as it is, whatever it holds."""
        event = Event(len(self.events) + 1, kind, payload, echo=echo)
        self.events.append(event)
        self.queue(event)
        return event

    def echo(self, workspace: Workspace, channel: Channel, message: Mapping[str, Any]) -> None:
        """Tell the app of its own post."""
        body = {**message, "channel": channel.id, "channel_type": channel.kind, "event_ts": message["ts"]}
        self.event(body, workspace=workspace).echo = True

    def _hidden(self, subtype: str, channel: str, at: str, **facts: Any) -> Event:
        body = {"type": "message", "subtype": subtype, "hidden": True, "channel": channel, "ts": at, "event_ts": at}
        return self.event(body | {"channel_type": self.channel(channel).kind} | facts)
