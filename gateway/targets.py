"""Where a conversation may be brought: `<platform>[:<chat>]` as a person types it, to a chat and who they are there.

Contract: reads only. Without a chat it is the person's home on that platform (`/sethome`). A chat is named by its id or
its name and must be known, that is, somebody has written there. Into a shared place only the owner of the home brings
anything; into a direct chat, only whose chat it is, and who is still known on that platform. `cli` and `web` are local:
every session may be taken up there by the owner, and no gateway is needed.
Failure: HandoffRefused with a sentence that says what to do instead. What the asker may not use is not confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.keys import shared
from gateway.owner import OWNER
from gateway.phrases import entrance, inert, one_line
from gateway.places import LOCAL_PLATFORMS, place_of_ref
from session_store import HandoffRefused, Home

if TYPE_CHECKING:
    from config import Settings
    from session_store import PlaceRef, SessionDB

__all__ = ["Target", "find_target", "local_target"]

_LOCAL = {"terminal": "cli"}
_PLATFORMS = ("telegram", "discord", "slack", "email")


@dataclass(frozen=True, slots=True)
class Target:
    """A chat to go to, with the user that the person is there. shared: others will see what is said."""

    home: Home
    shared: bool

    @property
    def where(self) -> str:
        """The chat in words (Markdown)."""
        place = self.home.place
        name = f" “{inert(one_line(place.name, 60))}”" if place.name else ""
        kind = "a direct chat" if place.chat_type == "dm" else f"the {place.chat_type}"
        return f"{kind}{name} on {entrance(place.platform)}"


def local_target(text: str) -> str | None:
    """The local entrance that `text` names, `cli` or `web`; None if it names a platform."""
    name = text.strip().casefold()
    name = _LOCAL.get(name, name)
    return name if name in LOCAL_PLATFORMS else None


async def find_target(db: SessionDB, settings: Settings, text: str, person_id: str | None) -> Target:
    """Find the chat that `text` means for this person; see the module for what is refused."""
    if person_id is None:
        raise HandoffRefused("Only somebody this Threadline knows can move a conversation. Ask its owner to pair you.")
    platform, _, chat = text.strip().partition(":")
    platform, chat = platform.strip().casefold(), chat.strip()
    _check_platform(settings, platform)
    home = await (_chat(db, platform, chat, person_id) if chat else _home(db, platform, person_id))
    if (platform, home.place.account) not in {(name, account.name) for name, account in settings.platforms.enabled()}:
        raise HandoffRefused(
            f"The {entrance(platform)} account “{home.place.account}” is not enabled any more. "
            "Choose another chat, or enable it in config.yaml."
        )
    place = place_of_ref(home.place)
    groups, threads = settings.group_sessions_per_user, settings.thread_sessions_per_user
    mine = not shared(place, "somebody", group_sessions_per_user=groups, thread_sessions_per_user=threads)
    if mine and not place.private and home.user_id is None:
        raise HandoffRefused("In that chat everybody has a session of their own. Say `/sethome` there first.")
    return Target(home, shared=not place.private)


def _check_platform(settings: Settings, platform: str) -> None:
    if platform not in _PLATFORMS:
        known = ", ".join(f"`{name}`" for name in ("cli", "web", *_PLATFORMS))
        raise HandoffRefused(f"There is no platform “{inert(one_line(platform, 40))}”. There are {known}.")
    if platform not in {name for name, _ in settings.platforms.enabled()}:
        raise HandoffRefused(
            f"{entrance(platform)} is not enabled here. Enable `platforms.{platform}` in config.yaml and start the "
            "gateway anew."
        )


async def _home(db: SessionDB, platform: str, person_id: str) -> Home:
    homes = await db.home_places.of_person(person_id, platform)
    if not homes:
        raise HandoffRefused(
            f"You have no home on {entrance(platform)} yet. Say `/sethome` in the chat there that shall be it, "
            f"or name a chat: `{platform}:CHAT`."
        )
    return homes[0]


async def _chat(db: SessionDB, platform: str, chat: str, person_id: str) -> Home:
    found = [place for place in await db.home_places.known(platform, chat) if await _may_use(db, place, person_id)]
    if not found:
        raise HandoffRefused(
            f"No chat “{inert(one_line(chat, 60))}” of yours is known on {entrance(platform)}. "
            "Write something there first, or say `/sethome` there and leave the chat out."
        )
    if len(found) > 1:
        listed = ", ".join(f"`{platform}:{place.chat}`" for place in found)
        raise HandoffRefused(f"Several chats are called so; name one by its id: {listed}.")
    homes = [home for home in await db.home_places.of_person(person_id, platform) if home.place == found[0]]
    users = await db.home_places.identities(person_id, platform)
    user = homes[0].user_id if homes else users[0] if len(users) == 1 else None
    return Home(found[0], user)


async def _may_use(db: SessionDB, place: PlaceRef, person_id: str) -> bool:
    if place.chat_type != "dm":
        return person_id == OWNER
    served_there = await db.home_places.identities(person_id, place.platform)
    return bool(served_there) and person_id in await db.home_places.people_at(place)
