"""Slack, through slack_bolt in Socket Mode: importing this package imports the SDK."""

from __future__ import annotations

from adapters.slack.client import SlackAdapter

__all__ = ["SlackAdapter"]
