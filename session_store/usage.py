"""What models cost: one row per call, and the sums that sessions carry.

Contract: a row and the sums of its session (`input_tokens`, `output_tokens`, ..., `api_call_count`) change in one
transaction; a request id that is known changes nothing. `output_tokens` include `reasoning_tokens`; `input_tokens`
include neither cache column, so that the total is input + both cache columns + output. The first call of a turn fixes
the session's model, provider and address as they really were. Calls beside a turn (summaries, titles) count as well.
What a call that compression overtook cost is the live tip's.
Failure: an unknown session raises `NotFound`. Limits: counts below zero or beyond 2**40 are cut: they are a server's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from session_store.insights import insights
from session_store.lineage import conversation_of, live_tip
from session_store.models import Purpose, Usage, Visibility
from session_store.rows import Insights, ModelUsage, UsageRow, UsageTotals
from session_store.tx import Rx, Tx

if TYPE_CHECKING:
    from session_store.engine import Engine

__all__ = ["UsageLog", "calls_after", "record_usage", "totals"]

_MOST_TOKENS = 2**40

_INSERT = """
INSERT INTO usage (request_id, session_id, turn_id, purpose, model, provider, base_url, input_tokens, output_tokens,
                   cache_read_tokens, cache_write_tokens, reasoning_tokens, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (request_id) DO NOTHING
"""

_ADD = """
UPDATE sessions SET
    input_tokens = COALESCE(input_tokens, 0) + ?1, output_tokens = COALESCE(output_tokens, 0) + ?2,
    cache_read_tokens = COALESCE(cache_read_tokens, 0) + ?3, cache_write_tokens = COALESCE(cache_write_tokens, 0) + ?4,
    reasoning_tokens = COALESCE(reasoning_tokens, 0) + ?5, api_call_count = COALESCE(api_call_count, 0) + 1
WHERE id = ?6
"""

# The session's first call in a turn tells what it really runs on.
_ROUTE = """
UPDATE sessions SET model = COALESCE(?1, model), billing_provider = COALESCE(?2, billing_provider),
    billing_base_url = COALESCE(?3, billing_base_url)
WHERE id = ?4 AND (SELECT COUNT(*) FROM usage WHERE session_id = ?4 AND purpose = 'turn') = 1
"""

# Sums over sessions, from their own columns: rows of other tools have them as well.
_SUMS = """
SELECT COALESCE(SUM(api_call_count), 0) AS calls,
    COALESCE(SUM(input_tokens), 0) AS input_tokens, COALESCE(SUM(output_tokens), 0) AS output_tokens,
    COALESCE(SUM(cache_read_tokens), 0) AS cache_read_tokens,
    COALESCE(SUM(cache_write_tokens), 0) AS cache_write_tokens,
    COALESCE(SUM(reasoning_tokens), 0) AS reasoning_tokens
FROM sessions /*of*/
"""

_BY_MODEL = """
SELECT model, COUNT(*) AS calls, SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS read_tokens,
    SUM(output_tokens) AS output_tokens
FROM usage /*of*/
GROUP BY model ORDER BY read_tokens + SUM(output_tokens) DESC, model LIMIT 100
"""

# The same for the sessions of a JSON array only.
_SUMS_OF = _SUMS.replace("/*of*/", "WHERE id IN (SELECT value FROM json_each(?))")
_BY_MODEL_OF = _BY_MODEL.replace("/*of*/", "WHERE session_id IN (SELECT value FROM json_each(?))")

_ROWS = "SELECT * FROM usage WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?"


def record_usage(
    tx: Tx, session_id: str, calls: Sequence[Usage], purpose: Purpose = "turn", turn_id: str | None = None
) -> int:
    """Store what calls cost and add it to their session; returns how many were new.

    Raises:
        NotFound: no such session.
    """
    if not calls:
        return 0
    tip = live_tip(tx, session_id)
    return sum(_record(tx, tip, call, purpose, turn_id) for call in calls)


def _record(tx: Tx, session_id: str, call: Usage, purpose: Purpose, turn_id: str | None) -> bool:
    given = (
        call.input_tokens,
        call.output_tokens,
        call.cache_read_tokens,
        call.cache_write_tokens,
        call.reasoning_tokens,
    )
    tokens = tuple(min(max(count, 0), _MOST_TOKENS) for count in given)
    route = (call.model, call.provider, call.base_url)
    if not tx.run(_INSERT, (call.request_id, session_id, turn_id, purpose, *route, *tokens, tx.now)):
        return False
    tx.run(_ADD, (*tokens, session_id))
    if purpose == "turn":
        tx.run(_ROUTE, (*route, session_id))
    return True


def totals(rx: Rx, session_ids: Sequence[str] | None = None) -> UsageTotals:
    """Return the sums over these sessions, or over all."""
    ids = () if session_ids is None else (json.dumps(session_ids),)
    sums = rx.all(_SUMS_OF if ids else _SUMS, ids)[0]
    read = sums["input_tokens"] + sums["cache_read_tokens"] + sums["cache_write_tokens"]
    models = [cast("ModelUsage", row) for row in rx.all(_BY_MODEL_OF if ids else _BY_MODEL, ids)]
    return cast("UsageTotals", {**sums, "total_tokens": read + sums["output_tokens"], "models": models})


def calls_after(rx: Rx, session_id: str, after_id: int, limit: int) -> list[UsageRow]:
    """Return the calls of this very session that came after one that is known, oldest first."""
    return [cast("UsageRow", row) for row in rx.all(_ROWS, (session_id, after_id, limit))]


class UsageLog:
    """What models cost and how the store was used; each method is one query or one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def record(self, session_id: str, calls: Sequence[Usage], purpose: Purpose) -> int:
        """Count calls that belong to no step of a turn (a title, a summary); returns how many were new.

        Raises:
            NotFound: no such session.
        """
        return await self._engine.write(lambda tx: record_usage(tx, session_id, calls, purpose))

    async def of_conversation(self, session_id: str) -> UsageTotals:
        """The sums over all sessions of the conversation, the calls of each model beside them.

        Raises:
            NotFound: no such session.
        """
        return await self._engine.read(lambda rx: totals(rx, conversation_of(rx, session_id)))

    async def insights(
        self, since: float, source: str | None = None, *, visible_to: Visibility | None = None
    ) -> Insights:
        """How the store was used since a moment (Unix seconds); see `session_store.insights`."""
        return await self._engine.read(lambda rx: insights(rx, since, source, visible_to))
