"""Discord, through discord.py: importing this package imports the SDK."""

from __future__ import annotations

from adapters.discord.client import DiscordAdapter
from adapters.discord.slash import SlashCommand

__all__ = ["DiscordAdapter", "SlashCommand"]
