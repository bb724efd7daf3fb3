"""Shapes of the rows that the store returns: plain dicts, typed. Columns are those of schema.sql."""

from __future__ import annotations

from session_store.rows.found import MessageWindow, SearchContext, SearchHit, SearchHits
from session_store.rows.sessions import (
    AttachmentRow,
    ChangeRow,
    MessageRow,
    NoteRow,
    PersonRow,
    PruneKept,
    SessionExport,
    SessionListRow,
    SessionRow,
    SessionStats,
)
from session_store.rows.usage import (
    Insights,
    ModelInsight,
    ModelUsage,
    Moment,
    NotableSession,
    SourceInsight,
    ToolInsight,
    UsageRow,
    UsageTotals,
)
from session_store.rows.work import (
    ControlRow,
    HandoffRow,
    HistoryRow,
    InboxRow,
    OutboxRow,
    ProcessRow,
    RouteRow,
    TurnRow,
    UnreadableRow,
)

__all__ = [
    "AttachmentRow",
    "ChangeRow",
    "ControlRow",
    "HandoffRow",
    "HistoryRow",
    "InboxRow",
    "Insights",
    "MessageRow",
    "MessageWindow",
    "ModelInsight",
    "ModelUsage",
    "Moment",
    "NotableSession",
    "NoteRow",
    "OutboxRow",
    "PersonRow",
    "ProcessRow",
    "PruneKept",
    "RouteRow",
    "SearchContext",
    "SearchHit",
    "SearchHits",
    "SessionExport",
    "SessionListRow",
    "SessionRow",
    "SessionStats",
    "SourceInsight",
    "ToolInsight",
    "TurnRow",
    "UnreadableRow",
    "UsageRow",
    "UsageTotals",
]
