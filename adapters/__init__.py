"""Adapters: one module or package per platform, and the protocol they share (`adapters.base`).

A platform's SDK is imported by its own package only, which the gateway imports when the platform is enabled.
"""

from __future__ import annotations

__all__: list[str] = []
