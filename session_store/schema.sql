-- The declared schema of state.db. schema.py creates it in one transaction and adds columns that are missing.
-- Rules: order is messages.id; times are Unix seconds for people; leases use the boot clock.
-- Tables sessions, messages, messages_fts, state_meta and schema_version keep their documented names and meaning.

CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);

CREATE TABLE IF NOT EXISTS state_meta (key TEXT PRIMARY KEY, value TEXT);

-- Who someone is over all platforms. The owner of the home has the id 'owner'.
CREATE TABLE IF NOT EXISTS people (
    id TEXT PRIMARY KEY,                -- 'owner' or p + 12 hex; also a search token, so letters and digits only
    name TEXT UNIQUE,                   -- the name in the config or given when pairing; null for a merely allowed user
    display TEXT,                       -- last seen display name, for people only
    created_at REAL NOT NULL
);

-- account is the identity's name space: '' where user ids are global (Telegram, Discord), the workspace where not.
CREATE TABLE IF NOT EXISTS identities (
    platform TEXT NOT NULL,
    account TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL,
    person_id TEXT NOT NULL REFERENCES people(id),
    via TEXT NOT NULL CHECK (via IN ('config', 'pairing', 'allowed')),
    created_at REAL NOT NULL,
    PRIMARY KEY (platform, account, user_id)
);

CREATE TABLE IF NOT EXISTS pairing_codes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    name TEXT,                          -- null: the code makes the sender the owner's identity
    code_hash TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL
);

CREATE TABLE IF NOT EXISTS pairing_failures (
    platform TEXT NOT NULL,
    account TEXT NOT NULL DEFAULT '',
    user_id TEXT NOT NULL,
    failures INTEGER NOT NULL,
    keys TEXT NOT NULL DEFAULT '[]',    -- JSON: dedupe keys of the counted attempts; a redelivery is not a second attempt
    locked_until REAL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (platform, account, user_id)
);

-- A delivery address. thread is '' outside threads and topics. parent: the chat that this one hangs on, if known.
CREATE TABLE IF NOT EXISTS places (
    id INTEGER PRIMARY KEY,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat_type TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL DEFAULT '',
    name TEXT,
    parent TEXT,
    created_at REAL NOT NULL,
    UNIQUE (platform, account, chat_type, chat, thread)
);

-- The scope of shared sessions: one room per group, channel or thread chat.
CREATE TABLE IF NOT EXISTS rooms (
    id TEXT PRIMARY KEY,                -- r + 12 hex
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    name TEXT,
    created_at REAL NOT NULL,
    UNIQUE (platform, account, chat)
);

CREATE TABLE IF NOT EXISTS room_members (
    room_id TEXT NOT NULL REFERENCES rooms(id),
    person_id TEXT NOT NULL REFERENCES people(id),
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (room_id, person_id)
);
CREATE INDEX IF NOT EXISTS idx_room_members_person ON room_members(person_id);

CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT,
    parent_session_id TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    api_call_count INTEGER DEFAULT 0,
    owner TEXT,                         -- person or room id; null only for rows made through the library
    room_id TEXT,                       -- the room it lives in, also when a person owns it; null in private places
    session_key TEXT,
    place_id INTEGER REFERENCES places(id),
    root_id TEXT,                       -- first session of the conversation; null (other tools' rows) means itself
    kind TEXT NOT NULL DEFAULT 'live',  -- live, branch, scheduled, tool
    context_from INTEGER,               -- first message of the conversation that is still seen beside the summary
    last_active REAL,
    archived INTEGER NOT NULL DEFAULT 0,
    title_key TEXT,                     -- NFC, case-folded title
    resumed_at REAL,                    -- when somebody last led a place to it; counts as activity for the reset policy
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC);
-- The filters of a list follow its order, so that what is filtered out costs no look at the row.
CREATE INDEX IF NOT EXISTS idx_sessions_active ON sessions
    (last_active DESC, archived, kind, source, room_id, end_reason, parent_session_id, title_key);
CREATE INDEX IF NOT EXISTS idx_sessions_root ON sessions(root_id);
CREATE INDEX IF NOT EXISTS idx_sessions_owner ON sessions
    (owner, last_active DESC, archived, kind, source, room_id, end_reason, parent_session_id, title_key);
CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_owner
    ON sessions(COALESCE(owner, ''), title_key) WHERE title_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_title ON sessions(title_key) WHERE title_key IS NOT NULL;
-- Titles written by other tools; hardly ever a row.
CREATE INDEX IF NOT EXISTS idx_sessions_title_foreign ON sessions(title) WHERE title IS NOT NULL AND title_key IS NULL;

CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    person_id TEXT,
    place_id INTEGER,
    platform_message_id TEXT,
    inbox_id INTEGER,
    op_id TEXT,
    turn_id TEXT,
    rewound INTEGER NOT NULL DEFAULT 0,
    edited_at REAL
);
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, id);
CREATE INDEX IF NOT EXISTS idx_messages_rewound ON messages(session_id) WHERE rewound = 1;
CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_inbox ON messages(inbox_id) WHERE inbox_id IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_op ON messages(op_id) WHERE op_id IS NOT NULL;

-- What the agent is told beside the text of a user message. Only where there is something to tell.
CREATE TABLE IF NOT EXISTS message_notes (
    message_id INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
    sender TEXT,                        -- who said it, in a shared session
    quoted TEXT,                        -- what it answers, as the platform told it
    quoted_name TEXT,
    parts TEXT                          -- JSON list of [inbox id, text]: the texts that the content was made of
);

-- What became of a message after it was claimed. `content` is the former text, in the form of messages.content.
CREATE TABLE IF NOT EXISTS message_versions (
    id INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('edit', 'delete')),
    content TEXT,                       -- null: nothing changed in the text, or it was to be forgotten
    told_after INTEGER NOT NULL,        -- the newest message then; the next question after it tells the agent
    changed_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_versions_message ON message_versions(message_id);
CREATE INDEX IF NOT EXISTS idx_versions_told ON message_versions(told_after);

-- Files that came with messages, each kept once under files/<first two digits>/<hash> beside the database.
CREATE TABLE IF NOT EXISTS attachments (
    hash TEXT PRIMARY KEY,              -- SHA-256 of the content, lower-case hex
    size INTEGER NOT NULL,              -- bytes
    media_type TEXT NOT NULL,           -- judged by content
    created_at REAL NOT NULL
);

-- What came with a message, in order. hash is null when the file was not fetched; problem says why.
CREATE TABLE IF NOT EXISTS message_attachments (
    message_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,                 -- made harmless
    kind TEXT NOT NULL,                 -- image, audio, voice, video, file
    hash TEXT,
    size INTEGER,
    media_type TEXT,
    problem TEXT,
    PRIMARY KEY (message_id, position)
);
CREATE INDEX IF NOT EXISTS idx_message_attachments_hash ON message_attachments(hash) WHERE hash IS NOT NULL;

-- Links go with their message, whoever deletes it; the file goes in the next sweep.
CREATE TRIGGER IF NOT EXISTS message_attachments_delete
AFTER DELETE ON messages
BEGIN
    DELETE FROM message_attachments WHERE message_id = old.id;
END;

-- session key -> session, with the place that replies go to.
CREATE TABLE IF NOT EXISTS routes (
    session_key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    place_id INTEGER NOT NULL REFERENCES places(id),
    person_id TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    linked INTEGER NOT NULL DEFAULT 0   -- above 0: copies of what is said elsewhere go there. 2: asked for by a person
);
CREATE INDEX IF NOT EXISTS idx_routes_session ON routes(session_id);

-- The last numbered list that somebody was shown, so that a number means what stood there. Kept for a day.
CREATE TABLE IF NOT EXISTS offered (
    asker TEXT PRIMARY KEY,             -- session key or entrance, and the person
    session_ids TEXT NOT NULL,          -- JSON list, in the order of the numbers
    offered_at REAL NOT NULL
);

-- A conversation on its way to a further place. At most one is open per conversation.
CREATE TABLE IF NOT EXISTS handoffs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    op_id TEXT NOT NULL UNIQUE,         -- a repeated request is known by it
    kind TEXT NOT NULL CHECK (kind IN ('handoff', 'link')),
    root_id TEXT NOT NULL,
    target_id INTEGER NOT NULL REFERENCES places(id),  -- the chat it goes to
    user_id TEXT,                       -- whose session there it becomes, where keys need a user
    person_id TEXT NOT NULL,            -- who asked
    asked_at_id INTEGER REFERENCES places(id),         -- where; that place is told when it comes to nothing
    state TEXT NOT NULL DEFAULT 'requested'
        CHECK (state IN ('requested', 'claimed', 'completed', 'failed', 'expired', 'cancelled')),
    stage TEXT,                         -- what its gateway does now, in words for people
    opening INTEGER NOT NULL DEFAULT 0, -- how often a thread was begun to be opened
    place_id INTEGER REFERENCES places(id),            -- where it will go on, once that is known
    note TEXT,                          -- what is different from what was asked
    holder TEXT,                        -- the gateway that works it
    attempts INTEGER NOT NULL DEFAULT 0,
    deadline REAL NOT NULL,             -- boot clock: until then it must be claimed, once claimed be completed
    boot_id TEXT NOT NULL,
    error TEXT,
    requested_at REAL NOT NULL,
    claimed_at REAL,
    ended_at REAL
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_handoffs_open ON handoffs(root_id) WHERE state IN ('requested', 'claimed');
CREATE INDEX IF NOT EXISTS idx_handoffs_root ON handoffs(root_id);

-- The chat that a person's conversations go to on a platform when no other is named, and who they are there.
CREATE TABLE IF NOT EXISTS home_places (
    person_id TEXT NOT NULL,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    place_id INTEGER NOT NULL REFERENCES places(id),
    user_id TEXT,
    set_at REAL NOT NULL,
    PRIMARY KEY (person_id, platform, account)
);

-- Where a conversation has lived, oldest first.
CREATE TABLE IF NOT EXISTS place_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root_id TEXT NOT NULL,
    how TEXT NOT NULL CHECK (how IN ('born', 'handoff', 'resume', 'link', 'unlink')),
    place_id INTEGER NOT NULL REFERENCES places(id),
    person_id TEXT,
    at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_place_history ON place_history(root_id, id);

-- What came in and is not yet handled. Payloads go when handled; keys stay 30 days.
CREATE TABLE IF NOT EXISTS inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    dedupe_key TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('message', 'edit', 'delete', 'command', 'button', 'migration', 'member')),
    place_id INTEGER NOT NULL REFERENCES places(id),
    session_key TEXT,                   -- null where sessions are chosen by id (terminal)
    session_id TEXT,                    -- the session chosen by id (terminal, web); null where the key decides
    lane TEXT NOT NULL,                 -- rows of one lane are worked one after another
    person_id TEXT,
    sender TEXT,                        -- JSON: user_id, name, is_bot
    payload TEXT,                       -- JSON: text, message id, attachments, reply reference
    received_at REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'taken', 'done', 'set_aside')),
    attempts INTEGER NOT NULL DEFAULT 0,
    turn_id TEXT,
    holder TEXT,                        -- the process that works it; set at accept for the terminal
    error TEXT,
    done_at REAL,
    UNIQUE (platform, account, dedupe_key)
);
CREATE INDEX IF NOT EXISTS idx_inbox_open ON inbox(platform, account, id) WHERE state IN ('new', 'taken');
CREATE INDEX IF NOT EXISTS idx_inbox_lane ON inbox(lane, id) WHERE state = 'new';
CREATE INDEX IF NOT EXISTS idx_inbox_aside ON inbox(id) WHERE state = 'set_aside';
CREATE INDEX IF NOT EXISTS idx_inbox_turn ON inbox(turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_inbox_done ON inbox(done_at) WHERE done_at IS NOT NULL;

-- Events that no adapter could read, each once, with how often it came; the newest only.
CREATE TABLE IF NOT EXISTS unreadable (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    digest TEXT NOT NULL,               -- of the raw form, so that a repeated delivery is known
    reason TEXT NOT NULL,
    raw TEXT NOT NULL,                  -- the beginning of it
    times INTEGER NOT NULL DEFAULT 1,
    first_at REAL NOT NULL,
    last_at REAL NOT NULL,
    UNIQUE (platform, account, digest)
);

-- Chats that live on under another id: whatever still comes from or goes to the old one belongs to the new one.
CREATE TABLE IF NOT EXISTS moved_chats (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    old_chat TEXT NOT NULL,
    new_chat TEXT NOT NULL,
    moved_at REAL NOT NULL,
    PRIMARY KEY (platform, account, old_chat)
);

-- How much bots have said in a chat: since a person spoke there, and within the present period.
CREATE TABLE IF NOT EXISTS bot_talk (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    depth INTEGER NOT NULL DEFAULT 0,
    spoken INTEGER NOT NULL DEFAULT 0,
    since REAL NOT NULL,
    PRIMARY KEY (platform, account, chat)
);

-- What must go out and is not yet sent. A row without `rendered` is the whole answer as Markdown; the owner of
-- the account replaces it by one row per part before the first send.
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    line INTEGER,                       -- id of the row that was split into parts; (line, part) is the order of a place
    op_id TEXT,                         -- natural key of rows that belong to no turn and no inbox row
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    place_id INTEGER NOT NULL REFERENCES places(id),
    session_id TEXT,
    message_id INTEGER,
    turn_id TEXT,
    inbox_id INTEGER,
    kind TEXT NOT NULL CHECK (kind IN ('answer', 'notice', 'mirror', 'handoff')),
    part INTEGER NOT NULL DEFAULT 1,
    parts INTEGER NOT NULL DEFAULT 1,
    body TEXT NOT NULL,
    rendered TEXT,                      -- JSON made by the adapter's formatter
    reply_to TEXT,                      -- platform message id that the first part answers
    finishes INTEGER,                   -- id of the row whose message this part takes the place of, by an edit
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'sending', 'sent', 'unknown', 'failed', 'dropped')),
    attempts INTEGER NOT NULL DEFAULT 0,
    resends INTEGER NOT NULL DEFAULT 0, -- times an unknown outcome was sent again
    next_at REAL NOT NULL DEFAULT 0,
    holder TEXT,
    platform_message_id TEXT,
    error TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    again_at REAL                       -- when a person last had it tried again; patience counts from then
);
CREATE INDEX IF NOT EXISTS idx_outbox_line ON outbox(platform, account, place_id, line, part)
    WHERE state IN ('waiting', 'sending');
CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_op ON outbox(op_id) WHERE op_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_outbox_turn ON outbox(turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_outbox_settled ON outbox(state, updated_at)
    WHERE state IN ('sent', 'unknown', 'failed', 'dropped');

-- One user input worked through to one answer.
CREATE TABLE IF NOT EXISTS turns (
    id TEXT PRIMARY KEY,
    root_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    session_key TEXT,
    place_id INTEGER,
    person_id TEXT,
    lane TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'interrupted', 'given_up')),
    attempt INTEGER NOT NULL DEFAULT 1,
    reason TEXT,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    created INTEGER NOT NULL DEFAULT 0, -- 1: the claim made the session
    reset_reason TEXT,                  -- why the claim ended the session before it
    previous_session_id TEXT,
    input_message_id INTEGER,           -- the user message
    final_message_id INTEGER,           -- the final answer, once there is one
    origin TEXT,                        -- who asked and where, in words for the copies at linked places
    started_at REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX IF NOT EXISTS idx_turns_running ON turns(root_id) WHERE state = 'running';
CREATE INDEX IF NOT EXISTS idx_turns_session ON turns(session_id);
CREATE INDEX IF NOT EXISTS idx_turns_place ON turns(place_id);

-- One row per conversation that ever had a turn; holder is null while it is free. fence only grows.
CREATE TABLE IF NOT EXISTS leases (
    root_id TEXT PRIMARY KEY,
    holder TEXT,
    turn_id TEXT,
    purpose TEXT,
    fence INTEGER NOT NULL,
    beat REAL NOT NULL,                 -- boot clock, seconds
    boot_id TEXT NOT NULL
);

-- Conversations whose compression failed since it last succeeded; next_at: when it may be tried by itself again.
CREATE TABLE IF NOT EXISTS compression_failures (
    root_id TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    next_at REAL NOT NULL,
    reason TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS processes (
    token TEXT PRIMARY KEY,             -- random, one per running process
    pid INTEGER NOT NULL,
    pid_start INTEGER NOT NULL,         -- start time in clock ticks, so that a reused pid is not taken for the process
    pid_ns TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    host TEXT NOT NULL,
    role TEXT NOT NULL,                 -- gateway, terminal, tool
    accounts TEXT NOT NULL DEFAULT '[]',-- JSON list of "platform/account"
    detail TEXT NOT NULL DEFAULT '{}',  -- JSON for status: address, state per account
    started_at REAL NOT NULL,
    beat REAL NOT NULL                  -- boot clock, seconds
);

-- What each call of a model cost, in tokens. The sums stand in sessions, changed in the same transaction.
CREATE TABLE IF NOT EXISTS usage (
    id INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,    -- told twice, a call counts once
    session_id TEXT NOT NULL,
    turn_id TEXT,
    purpose TEXT NOT NULL CHECK (purpose IN ('turn', 'summary', 'title', 'handoff')),
    model TEXT,
    provider TEXT,
    base_url TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0,       -- without those of the two cache columns
    output_tokens INTEGER NOT NULL DEFAULT 0,      -- with those of reasoning_tokens
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_usage_session ON usage(session_id, purpose);

-- Small messages between processes.
CREATE TABLE IF NOT EXISTS control (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('stop', 'cancel', 'wake')),
    root_id TEXT,
    turn_id TEXT,
    person_id TEXT,
    created_at REAL NOT NULL,
    done_at REAL
);
CREATE INDEX IF NOT EXISTS idx_control_open ON control(id) WHERE done_at IS NULL;

-- Old text that the contentless index must be told to forget; the writer drains it.
CREATE TABLE IF NOT EXISTS messages_fts_queue (
    message_id INTEGER PRIMARY KEY,
    indexed INTEGER NOT NULL,           -- 1: the columns below are what the index holds; 0: the index holds nothing
    role TEXT,
    content TEXT,
    tool_name TEXT,
    tool_calls TEXT,
    owner TEXT,
    room_id TEXT
);
