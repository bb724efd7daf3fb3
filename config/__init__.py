"""The settings of Threadline: typed models read from `config.yaml`, `.env` and `THREADLINE_*` variables, and the home.

Use: `home = Home().ensure()`, then `settings = load_settings(home)`. It imports nothing else of Threadline.
"""

from __future__ import annotations

from config.agent import Agent
from config.errors import ConfigError, Problem
from config.home import Home
from config.load import load_settings
from config.platforms import (
    Account,
    ChatAccount,
    DiscordAccount,
    EmailAccount,
    Platforms,
    SlackAccount,
    TelegramAccount,
)
from config.sections import Delivery, Display, Identities, Platform, SessionReset, Web
from config.settings import Settings

__all__ = [
    "Account",
    "Agent",
    "ChatAccount",
    "ConfigError",
    "Delivery",
    "DiscordAccount",
    "Display",
    "EmailAccount",
    "Home",
    "Identities",
    "Platform",
    "Platforms",
    "Problem",
    "SessionReset",
    "Settings",
    "SlackAccount",
    "TelegramAccount",
    "Web",
    "load_settings",
]
