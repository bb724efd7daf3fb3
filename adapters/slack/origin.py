"""Whose an event is: which workspace it reached us through, and in which name space its ids live.

Contract: pure. One Slack app may be installed in several workspaces and share its sockets among them, so an event may
come in where it does not belong; `belongs` tells. `team_of` names the workspace of a channel, the same for every kind
of event there: for an app of one workspace always that one, for an app of a whole organization the workspace that the
event names, else the organization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.slack.fields import MalformedEvent, as_id, as_list, as_mapping

__all__ = ["Me", "belongs", "realm_of", "team_of"]

#: Ids of users that an organization gave, not one of its workspaces, begin so.
_ORGANIZATION_USER = "W"


@dataclass(frozen=True, slots=True)
class Me:
    """The app's own identity in one installation, as auth.test told it.

    team: id of the workspace, or of the organization where the app is installed for all of it (`org_wide`).
    enterprise: id of the organization that the workspace belongs to, or ''. user and bot: the two ids that the app's
    own messages carry; name: what people call it after the @.
    """

    team: str
    user: str
    bot: str = ""
    name: str = ""
    enterprise: str = ""
    org_wide: bool = False


def belongs(body: Mapping[str, Any], me: Me) -> bool:
    """Tell whether this installation is the one that the event is for; one that names none is taken as ours."""
    named = False
    for installation in _installations(body):
        team, enterprise = as_id(installation, "team_id"), as_id(installation, "enterprise_id")
        if team is None and enterprise is None:
            continue
        named = True
        if team is not None and team == me.team:
            return True
        if me.org_wide and enterprise is not None and enterprise == me.enterprise:
            return True
    return not named


def team_of(body: Mapping[str, Any], me: Me) -> str:
    """Return the workspace (or organization) part of the chat's id."""
    if not me.org_wide:
        return me.team
    for installation in _installations(body):
        if team := as_id(installation, "team_id"):
            return team
    return as_id(body, "context_team_id") or as_id(body, "team_id") or me.enterprise or me.team


def realm_of(user: str, event: Mapping[str, Any], me: Me) -> str:
    """Return the name space of a user's id: the workspace or the organization; of guests, their own workspace."""
    if me.enterprise:
        return me.enterprise if me.org_wide or user.startswith(_ORGANIZATION_USER) else me.team
    return as_id(event, "user_team") or as_id(event, "team") or me.team


def _installations(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what names the installations an event is for: Slack's own list, else the event itself."""
    listed = as_list(body, "authorizations")
    if any(not isinstance(entry, dict) for entry in listed):
        raise MalformedEvent("its 'authorizations' are no objects")
    if listed:
        return listed
    team = body.get("team")
    if isinstance(team, dict):
        # Buttons and dialogs name their workspace so.
        return [{"team_id": as_id(team, "id"), "enterprise_id": (as_mapping(body, "enterprise") or {}).get("id")}]
    return [body]
