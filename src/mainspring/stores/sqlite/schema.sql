CREATE TABLE attempts (
    instance INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    began_us INTEGER,
    ended_us INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (instance, version, ended_us, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE attributes (
    instance INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT,
    number REAL,
    PRIMARY KEY (instance, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX attributes_by_number ON attributes (name, kind, number, instance) WHERE number IS NOT NULL;

CREATE INDEX attributes_by_text ON attributes (name, text, instance) WHERE text IS NOT NULL;

CREATE TABLE checkpoints (
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    position INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (name, generation)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX dead_letters_by_instance ON dead_letters (workflow, instance);

CREATE INDEX dead_letters_by_message ON dead_letters (workflow, instance, message_id) WHERE output_kind IS NULL;

CREATE TABLE documents (
    projection TEXT NOT NULL,
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (projection, generation, key)
) STRICT;

CREATE TABLE endings (
    workflow TEXT NOT NULL,
    ended_us INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    PRIMARY KEY (workflow, ended_us, instance)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX events_by_message ON events (instance, message_id) WHERE message_id IS NOT NULL;

CREATE UNIQUE INDEX events_by_version ON events (instance, version);

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
, lost INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX inbox_by_instance ON inbox (workflow, instance);

CREATE INDEX inbox_by_owner ON inbox (owner) WHERE owner IS NOT NULL;

CREATE INDEX inbox_free ON inbox (owner) WHERE owner IS NULL;

CREATE INDEX inbox_lost ON inbox (lost) WHERE lost >= 2;

CREATE UNIQUE INDEX inbox_by_message ON inbox (workflow, instance, message_id);

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
, purged_us INTEGER, born INTEGER, moved INTEGER) STRICT;

CREATE INDEX instances_by_status ON instances (status, key) WHERE status NOT IN ('running', 'completed');

CREATE INDEX instances_with_error ON instances (key) WHERE error IS NOT NULL;

CREATE UNIQUE INDEX instances_by_name ON instances (workflow, id);

CREATE TRIGGER instances_moved_by_older AFTER UPDATE OF version, status, state, error, updated_us ON instances
WHEN OLD.moved IS NOT NULL AND NEW.moved IS OLD.moved
BEGIN
    UPDATE instances SET moved = NULL WHERE key = NEW.key;
END;

CREATE TRIGGER instances_renewed_by_older AFTER UPDATE OF definition_version, context ON instances
WHEN OLD.born IS NOT NULL AND NEW.born IS OLD.born
BEGIN
    UPDATE instances SET born = NULL WHERE key = NEW.key;
END;

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
    last_error TEXT, checksum INTEGER, lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_lost ON outbox (lost) WHERE lost >= 2;

CREATE INDEX outbox_unclaimed ON outbox (destination, priority, due_us) WHERE owner IS NULL;

CREATE TRIGGER outbox_delayed_by_older AFTER UPDATE OF due_us, attempts ON outbox
WHEN OLD.checksum IS NOT NULL AND NEW.checksum IS OLD.checksum
BEGIN
    UPDATE outbox SET checksum = NULL WHERE instance = NEW.instance AND version = NEW.version;
END;

CREATE TABLE results (
    key TEXT PRIMARY KEY,
    type TEXT,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;

CREATE INDEX results_by_expiry ON results (expires_us);

CREATE TABLE schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_us INTEGER NOT NULL
) STRICT;

CREATE TABLE snapshots (
    instance INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE tasks (
    instance INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key TEXT NOT NULL,
    title TEXT NOT NULL,
    answers TEXT NOT NULL,
    opened_us INTEGER NOT NULL,
    role TEXT,
    person TEXT,
    excludes TEXT NOT NULL,
    reject TEXT,
    data BLOB NOT NULL,
    due_us INTEGER NOT NULL,
    status TEXT NOT NULL,
    claimed_by TEXT,
    claimed_us INTEGER,
    answered_by TEXT,
    answer_type TEXT,
    ended_us INTEGER,
    PRIMARY KEY (instance, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_free ON tasks (role, due_us, instance, version) WHERE status = 'open' AND claimed_by IS NULL;

CREATE INDEX tasks_open ON tasks (due_us, instance, version) WHERE status = 'open';

CREATE TABLE workers (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    lease_us INTEGER NOT NULL,
    ends_us INTEGER NOT NULL
, knows TEXT NOT NULL DEFAULT '', held TEXT NOT NULL DEFAULT '', alone TEXT) STRICT;
