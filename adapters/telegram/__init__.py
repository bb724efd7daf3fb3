"""Telegram, through python-telegram-bot: importing this package imports the SDK."""

from __future__ import annotations

from adapters.telegram.client import TelegramAdapter

__all__ = ["TelegramAdapter"]
