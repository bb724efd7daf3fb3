"""The hall in which promises are kept: see `tests/unit/gateway_core`."""

from __future__ import annotations

from tests.unit.gateway_core.conftest import agent, chosen, hall, logged

__all__ = ["agent", "chosen", "hall", "logged"]
