-- The search index and what keeps it true. Derived data: it can be rebuilt from messages at any time.
-- messages_fts has no copy of its text; index.py feeds it with segmented text and tells it the old text when a message
-- changes, which the triggers below keep in messages_fts_queue. Only ids up to the watermark are queued: what lies
-- above it is not indexed yet, and ids below 1, which no ordinary row has, never are.
-- There is no prefix index: it made writing 1.5 times slower and the index 1.4 times larger, and a prefix query takes
-- some 10 ms at 200,000 messages without it.

CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(
    content, scope, content='', tokenize='unicode61 remove_diacritics 2'
);

INSERT OR IGNORE INTO state_meta (key, value) VALUES
    ('fts_watermark', '0'),             -- every message up to this id is indexed, apart from those in the queue
    ('fts_segmentation', '1'),          -- the SEGMENTATION of segment.py that made the tokens
    ('fts_health', 'ok');               -- 'ok', or why the index is not used until it is rebuilt
-- While a new index is built beside the old one, 'fts_rebuild' holds how far it has come.
-- 'fts_schema' holds the schema cookie at which the index was last found to be ours.

-- The first entry of a message wins: it is what the index holds. (NOT EXISTS, since an INSERT OR REPLACE outside
-- would turn an INSERT OR IGNORE in here into a REPLACE.)
CREATE TRIGGER IF NOT EXISTS search_message_update
AFTER UPDATE OF id, session_id, role, content, tool_name, tool_calls ON messages
WHEN (old.id IS NOT new.id OR old.session_id IS NOT new.session_id OR old.role IS NOT new.role
    OR old.content IS NOT new.content OR old.tool_name IS NOT new.tool_name OR old.tool_calls IS NOT new.tool_calls)
BEGIN
    INSERT INTO messages_fts_queue (message_id, indexed, role, content, tool_name, tool_calls, owner, room_id)
        SELECT old.id, 1, old.role, old.content, old.tool_name, old.tool_calls, s.owner, s.room_id
        FROM (SELECT 1) LEFT JOIN sessions AS s ON s.id = old.session_id
        WHERE old.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                                     WHERE key IN ('fts_watermark', 'fts_rebuild'))
            AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = old.id);
    INSERT INTO messages_fts_queue (message_id, indexed)
        SELECT new.id, 0
        WHERE new.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                                     WHERE key IN ('fts_watermark', 'fts_rebuild'))
            AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = new.id);
    -- SQLite does not count an id given by UPDATE, and would hand it out again once the row is gone.
    UPDATE sqlite_sequence SET seq = new.id WHERE name = 'messages' AND seq < new.id;
END;

CREATE TRIGGER IF NOT EXISTS search_message_delete
AFTER DELETE ON messages
WHEN old.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                           WHERE key IN ('fts_watermark', 'fts_rebuild'))
BEGIN
    INSERT INTO messages_fts_queue (message_id, indexed, role, content, tool_name, tool_calls, owner, room_id)
        SELECT old.id, 1, old.role, old.content, old.tool_name, old.tool_calls, s.owner, s.room_id
        FROM (SELECT 1) LEFT JOIN sessions AS s ON s.id = old.session_id
        WHERE NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = old.id);
END;

-- A row put below the watermark, by its id or in place of another (REPLACE deletes without a DELETE trigger).
-- new.id is -1 here when SQLite is to choose the id.
CREATE TRIGGER IF NOT EXISTS search_message_insert
BEFORE INSERT ON messages
WHEN new.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                           WHERE key IN ('fts_watermark', 'fts_rebuild'))
BEGIN
    INSERT INTO messages_fts_queue (message_id, indexed, role, content, tool_name, tool_calls, owner, room_id)
        SELECT new.id, m.id IS NOT NULL, m.role, m.content, m.tool_name, m.tool_calls, s.owner, s.room_id
        FROM (SELECT 1) LEFT JOIN messages AS m ON m.id = new.id LEFT JOIN sessions AS s ON s.id = m.session_id
        WHERE NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = new.id);
END;

CREATE TRIGGER IF NOT EXISTS search_session_update
AFTER UPDATE OF id, owner, room_id ON sessions
WHEN (old.id IS NOT new.id OR old.owner IS NOT new.owner OR old.room_id IS NOT new.room_id)
BEGIN
    INSERT INTO messages_fts_queue (message_id, indexed, role, content, tool_name, tool_calls, owner, room_id)
        SELECT m.id, 1, m.role, m.content, m.tool_name, m.tool_calls, old.owner, old.room_id
        FROM messages AS m
        WHERE m.session_id IN (old.id, new.id)
            AND m.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                                     WHERE key IN ('fts_watermark', 'fts_rebuild'))
            AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = m.id);
END;

CREATE TRIGGER IF NOT EXISTS search_session_delete
BEFORE DELETE ON sessions
BEGIN
    INSERT INTO messages_fts_queue (message_id, indexed, role, content, tool_name, tool_calls, owner, room_id)
        SELECT m.id, 1, m.role, m.content, m.tool_name, m.tool_calls, old.owner, old.room_id
        FROM messages AS m
        WHERE m.session_id = old.id
            AND m.id BETWEEN 1 AND (SELECT max(CAST(value AS INTEGER)) FROM state_meta
                                     WHERE key IN ('fts_watermark', 'fts_rebuild'))
            AND NOT EXISTS (SELECT 1 FROM messages_fts_queue WHERE message_id = m.id);
END;
