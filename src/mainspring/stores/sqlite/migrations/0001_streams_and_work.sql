-- Streams, the work that comes out of them, and who does it.
--
-- Tables are STRICT: a value of the wrong type is an error here and not a surprise at the next read. Times are
-- microseconds since 1970 (UTC). Bodies, contexts and details are BLOBs: the exact bytes that were written. Checksums
-- are CRC-32 over a row's values (`rows.py`).

-- One row per instance, rewritten by every step: so it holds nothing large. `context` is that of the input that began
-- the instance; `context_version` is the version of the last event with a context, from where its outputs have theirs.
CREATE TABLE instances (
    key INTEGER PRIMARY KEY,
    workflow TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    state TEXT,
    error TEXT,
    definition_version INTEGER NOT NULL,
    context BLOB NOT NULL,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    context_version INTEGER
) STRICT;

-- Identity: finds an instance by name, and makes sure that there is one.
CREATE UNIQUE INDEX instances_by_name ON instances (workflow, id);

-- The state of an instance at a version. Not in `instances`, because SQLite writes a whole row anew at every update.
CREATE TABLE snapshots (
    instance INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- Every event of every stream, in the order of their commits: `position` is the global feed. AUTOINCREMENT: a position
-- is never used twice, or a projection would miss what stands there now.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    instance INTEGER NOT NULL,
    version INTEGER NOT NULL,
    event TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    type TEXT,
    type_version INTEGER NOT NULL,
    body BLOB,
    detail BLOB,
    kind TEXT,
    message_id TEXT,
    cause INTEGER,
    context BLOB,
    actor TEXT,
    state TEXT,
    attempt INTEGER,
    duration_us INTEGER,
    checksum INTEGER NOT NULL
) STRICT;

-- The stream of an instance, and the last line of defence: two committers cannot both write a version.
CREATE UNIQUE INDEX events_by_version ON events (instance, version);

-- Deduplication for the instance's life. Only inputs with an id of their own are in it: about one event in five.
CREATE INDEX events_by_message ON events (instance, message_id) WHERE message_id IS NOT NULL;

-- Inputs accepted and not stepped yet; transient and mostly empty. By name and not by key: an input may wait for an
-- instance that has not begun. AUTOINCREMENT: whoever consumes a position must never take another input that got it later.
-- `owner` is a worker's key; NULL for anybody; 0 for nobody, because the row is damaged; -1 for nobody until the instance,
-- which is suspended, is resumed: a suspended instance with a long queue must not be waded through at every claim.
CREATE TABLE inbox (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow TEXT NOT NULL,
    instance TEXT NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    time_us INTEGER NOT NULL,
    context BLOB NOT NULL,
    actor TEXT,
    cause INTEGER,
    timer_key TEXT,
    owner INTEGER,
    checksum INTEGER NOT NULL
) STRICT;

-- Whether anything waits for an instance, and in which order (the position is the index's hidden last column).
CREATE INDEX inbox_by_instance ON inbox (workflow, instance);

-- A duplicate stops here.
CREATE UNIQUE INDEX inbox_by_message ON inbox (workflow, instance, message_id);

-- Who holds inputs: what comes behind another worker's input is not claimed.
CREATE INDEX inbox_by_owner ON inbox (owner) WHERE owner IS NOT NULL;

-- What can be claimed, in order (again by the hidden position): past the rows that others hold or that are parked.
CREATE INDEX inbox_free ON inbox (owner) WHERE owner IS NULL;

-- Outputs not carried out yet; the message stands in the event of the same version and is not copied. An instance's
-- timers are found by the primary key's first column. `owner` is a worker's key, NULL for anybody, 0 for nobody (damaged).
CREATE TABLE outbox (
    instance INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    destination TEXT NOT NULL,
    due_us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    key TEXT,
    owner INTEGER,
    attempts INTEGER NOT NULL,
    last_error TEXT,
    PRIMARY KEY (instance, version)
) STRICT, WITHOUT ROWID;

-- What can be claimed, by urgency. Outputs that are born claimed never enter it.
CREATE INDEX outbox_unclaimed ON outbox (destination, priority, due_us) WHERE owner IS NULL;

-- Messages that could not be carried out, whole. The `output_…` columns are the outbox row that it was, if it was one.
-- AUTOINCREMENT: a discarded id is never another letter's.
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow TEXT NOT NULL,
    instance TEXT NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    time_us INTEGER NOT NULL,
    context BLOB NOT NULL,
    reason TEXT NOT NULL,
    error TEXT,
    attempts INTEGER NOT NULL,
    actor TEXT,
    output_instance INTEGER,
    output_version INTEGER,
    output_kind TEXT,
    output_destination TEXT,
    output_priority INTEGER,
    output_key TEXT,
    checksum INTEGER NOT NULL
) STRICT;

-- A message that nobody takes is kept once, however often it is sent.
CREATE INDEX dead_letters_by_message ON dead_letters (workflow, instance, message_id) WHERE output_kind IS NULL;

-- What is remembered under a key until it expires: results under business keys, replies for callers, what each subscriber has
-- heard, pauses of sources.
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    type TEXT,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;

-- Expired results are swept a few at a time.
CREATE INDEX results_by_expiry ON results (expires_us);

-- Live workers. AUTOINCREMENT: the key is the worker's epoch, and that of a relieved one is dead for ever.
CREATE TABLE workers (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    lease_us INTEGER NOT NULL,
    ends_us INTEGER NOT NULL
) STRICT;
