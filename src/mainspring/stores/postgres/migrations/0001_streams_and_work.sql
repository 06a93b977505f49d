-- Streams, the work that comes out of them, and who does it. The tables of the SQLite store, with what many workers at
-- once need besides.
--
-- Times are microseconds since 1970 (UTC). Bodies, contexts and details are bytea: the exact bytes that were written.
-- Checksums are CRC-32 over a row's values. A `name` is a digest of workflow and id (16 bytes): a unique index over the
-- texts themselves would refuse long ones, and be larger. Columns of fixed width stand first, so that none is padded.
-- `mainspring.` stands for the application's own schema.

CREATE SEQUENCE mainspring.instance_keys;
CREATE SEQUENCE mainspring.inbox_positions;
CREATE SEQUENCE mainspring.worker_keys;

-- One row per instance, rewritten by every step: so it holds nothing large, and pages keep room for the next version
-- beside it. `context` is that of the input that began the instance; `context_version` is the version of the last event
-- with a context, from where its outputs have theirs; `position` is that of its last event in the feed.
-- A row with a negative key is no instance: inputs wait for one of this name, and this row is what to lock until then.
CREATE TABLE mainspring.instances (
    key bigint PRIMARY KEY,
    version bigint NOT NULL,
    definition_version bigint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    context_version bigint,
    position bigint NOT NULL,
    name bytea NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    state text COLLATE "C",
    error text COLLATE "C",
    context bytea NOT NULL
) WITH (fillfactor = 70);

-- Identity: finds an instance by name, and makes sure that there is one.
CREATE UNIQUE INDEX instances_by_name ON mainspring.instances (name);

-- The state of an instance at a version.
CREATE TABLE mainspring.snapshots (
    instance bigint PRIMARY KEY,
    version bigint NOT NULL,
    type_version bigint NOT NULL,
    checksum bigint NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL
);

-- Every event of every stream. `position` is the place in the global feed: the number of the transaction, and behind it
-- the place in that transaction (20 bits). Numbers from a sequence would not do: a lower one may be committed after a
-- higher one was read. Of transactions it is known which have ended.
CREATE TABLE mainspring.events (
    position bigint PRIMARY KEY,
    instance bigint NOT NULL,
    version bigint NOT NULL,
    time_us bigint NOT NULL,
    type_version bigint NOT NULL,
    cause bigint,
    attempt bigint,
    duration_us bigint,
    checksum bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    type text COLLATE "C",
    body bytea,
    detail bytea,
    kind text COLLATE "C",
    message_id text COLLATE "C",
    context bytea,
    actor text COLLATE "C",
    state text COLLATE "C"
);

-- The stream of an instance, and the last line of defence: two committers cannot both write a version.
CREATE UNIQUE INDEX events_by_version ON mainspring.events (instance, version);

-- Deduplication for the instance's life. Only inputs with an id of their own are in it: about one event in five.
CREATE INDEX events_by_message ON mainspring.events (instance, hashtextextended(message_id, 0))
WHERE message_id IS NOT NULL;

-- What is added to a transaction's number to make a position. More than 0 after the tables were moved to another
-- server, whose transactions have lower numbers than the positions that are there.
CREATE TABLE mainspring.feed (base bigint NOT NULL);
INSERT INTO mainspring.feed (base) VALUES (0);

-- Inputs accepted and not stepped yet; transient and mostly empty. By name and not by key: an input may wait for an
-- instance that has not begun. `owner` is a worker's key; NULL for anybody; 0 for nobody, because the row is damaged; -1
-- for nobody until the instance, which is suspended, is resumed.
CREATE TABLE mainspring.inbox (
    position bigint NOT NULL,
    type_version bigint NOT NULL,
    time_us bigint NOT NULL,
    cause bigint,
    owner bigint,
    checksum bigint NOT NULL,
    name bytea NOT NULL,
    message bytea NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    context bytea NOT NULL,
    actor text COLLATE "C",
    timer_key text COLLATE "C",
    -- Whether anything waits for an instance, and in which order.
    PRIMARY KEY (name, position)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);

-- A duplicate stops here. `message` is a digest of the message's id.
CREATE UNIQUE INDEX inbox_by_message ON mainspring.inbox (name, message);

-- Which inputs somebody holds: what comes behind another worker's input is not claimed.
CREATE INDEX inbox_held ON mainspring.inbox (name, position, owner) WHERE owner IS NOT NULL;

-- What can be claimed, in order, past what others hold, what is parked, and what is for workflows that nobody here knows.
CREATE INDEX inbox_free ON mainspring.inbox (workflow, position) WHERE owner IS NULL;

-- Outputs not carried out yet; the message stands in the event of the same version and is not copied. `owner` is a
-- worker's key, NULL for anybody, 0 for nobody (damaged).
CREATE TABLE mainspring.outbox (
    instance bigint NOT NULL,
    version bigint NOT NULL,
    due_us bigint NOT NULL,
    priority bigint NOT NULL,
    owner bigint,
    attempts bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    last_error text COLLATE "C",
    PRIMARY KEY (instance, version)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000);

-- What can be claimed, by urgency. Outputs that are born claimed never enter it.
CREATE INDEX outbox_unclaimed ON mainspring.outbox (destination, priority, due_us, instance, version)
WHERE owner IS NULL;

-- Messages that could not be carried out, whole. The `output_…` columns are the outbox row that it was, if it was one.
CREATE TABLE mainspring.dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type_version bigint NOT NULL,
    time_us bigint NOT NULL,
    attempts bigint NOT NULL,
    output_instance bigint,
    output_version bigint,
    output_priority bigint,
    checksum bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    context bytea NOT NULL,
    reason text COLLATE "C" NOT NULL,
    error text COLLATE "C",
    actor text COLLATE "C",
    output_kind text COLLATE "C",
    output_destination text COLLATE "C",
    output_key text COLLATE "C"
);

-- A message that nobody takes is kept once, however often it is sent.
CREATE INDEX dead_letters_by_message ON mainspring.dead_letters (hashtextextended(message_id, 0))
WHERE output_kind IS NULL;

-- What is remembered under a key until it expires: results under business keys, replies for callers, what each subscriber has
-- heard, pauses of sources. `name` is a digest of the key.
CREATE TABLE mainspring.results (
    name bytea PRIMARY KEY,
    expires_us bigint NOT NULL,
    type_version bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    type text COLLATE "C",
    body bytea NOT NULL
);

-- Expired results are swept a few at a time.
CREATE INDEX results_by_expiry ON mainspring.results (expires_us);

-- Live workers. The key is the worker's epoch, and that of a relieved one is dead for ever. `session` says that the
-- worker holds an advisory lock under its key while it lives.
CREATE TABLE mainspring.workers (
    key bigint PRIMARY KEY,
    lease_us bigint NOT NULL,
    ends_us bigint NOT NULL,
    session boolean NOT NULL,
    name text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
