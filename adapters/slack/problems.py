"""What keeps an account from working, in a sentence for the person who can mend it.

Contract: `final_problem` tells what only a changed configuration mends, and None for everything that may pass by
itself; `passing_problem` words the rest. No sentence quotes a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet

import aiohttp
from slack_sdk.errors import SlackApiError

from adapters.network import reason_of
from adapters.slack.connection import ServerTrouble, TooManyRequests, error_code

__all__ = ["TOKEN_REFUSED", "deaf_to", "final_problem", "missing_scope", "passing_problem"]

#: Words for: this token is not, or not any more, one that Slack lets in.
TOKEN_REFUSED = frozenset(
    {
        "access_denied",
        "account_inactive",
        "ekm_access_denied",
        "forbidden_team",
        "invalid_auth",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "team_disabled",
        "token_expired",
        "token_revoked",
        "user_removed_from_team",
    }
)
_WRITING = "chat:write"
#: Without one of these an app is told nothing at all.
_READING = {
    "im:history": "direct messages",
    "app_mentions:read": "mentions in channels",
    "channels:history": "public channels",
    "groups:history": "private channels",
    "mpim:history": "group direct messages",
}
_REINSTALL = "under OAuth & Permissions at api.slack.com/apps, then install the app again"


def final_problem(error: BaseException, account: str, key: str) -> str | None:
    """Return what must be changed; `key` names the token that was used: bot_token or app_token."""
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "The base_url under platforms.slack is no address of a Slack API: check it."
    if not isinstance(error, SlackApiError):
        return None
    code = error_code(error)
    if code == "missing_scope":
        if key == "app_token":
            return (
                f"The app-level token of Slack account {account!r} lacks the scope connections:write: make one that "
                "has it under Basic Information at api.slack.com/apps and put it into platforms.slack.app_token."
            )
        return missing_scope(error, account)
    if code not in TOKEN_REFUSED:
        return None
    form = "xoxb-..., from OAuth & Permissions" if key == "bot_token" else "xapp-..., from Basic Information"
    return (
        f"Slack refused the {key} of account {account!r} ({code}): put a valid one into platforms.slack.{key} "
        f"({form}), and see to it that Socket Mode is on and the app is installed."
    )


def missing_scope(error: SlackApiError, account: str) -> str:
    """Return which right is missing, as Slack names it."""
    scope = error.response.get("needed") or _WRITING
    return f"The Slack app of account {account!r} lacks the bot scope {scope}: add it {_REINSTALL}."


def deaf_to(scopes: AbstractSet[str], account: str) -> tuple[str | None, list[str]]:
    """Return what makes an account with these scopes useless, if anything does, and what it will not be told of."""
    if _WRITING not in scopes:
        return f"The Slack app of account {account!r} lacks the bot scope {_WRITING}: add it {_REINSTALL}.", []
    missing = [f"{what} ({scope})" for scope, what in _READING.items() if scope not in scopes]
    if len(missing) == len(_READING):
        return (
            f"The Slack app of account {account!r} has no scope to read messages: add im:history and app_mentions:read "
            f"{_REINSTALL}."
        ), missing
    return None, missing


def passing_problem(error: BaseException) -> str:
    """Return what keeps the account from receiving for now."""
    if isinstance(error, TooManyRequests):
        return "Slack asks this app to slow down; receiving goes on by itself."
    if isinstance(error, SlackApiError) and (code := error_code(error)):
        return f"Slack does not let the app connect ({code}); this is tried again until it works."
    if isinstance(error, SlackApiError):
        reason = "what answered is not Slack"
    elif isinstance(error, aiohttp.ClientError | ServerTrouble | asyncio.TimeoutError | OSError):
        reason = reason_of(error)
    else:
        return f"Receiving from Slack fails in an unforeseen way ({error!r}); this is tried again until it works."
    return f"Slack cannot be reached ({reason}); this is tried again until it works."
