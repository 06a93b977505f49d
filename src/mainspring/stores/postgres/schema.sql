CREATE TABLE mainspring.attempts (
    instance bigint NOT NULL,
    version bigint NOT NULL,
    number bigint NOT NULL,
    began_us bigint,
    ended_us bigint NOT NULL,
    worker text COLLATE "C" NOT NULL,
    error text COLLATE "C"
);

CREATE UNIQUE INDEX attempts_pkey ON mainspring.attempts USING btree (instance, version, ended_us, number);

CREATE TABLE mainspring.attributes (
    instance bigint NOT NULL,
    number double precision,
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    text text COLLATE "C"
);

CREATE INDEX attributes_by_number ON mainspring.attributes USING btree (name, kind, number, instance) WHERE (number IS NOT NULL);

CREATE INDEX attributes_by_text ON mainspring.attributes USING btree (name, text, instance) WHERE (text IS NOT NULL);

CREATE UNIQUE INDEX attributes_pkey ON mainspring.attributes USING btree (instance, name);

CREATE TABLE mainspring.checkpoints (
    generation bigint NOT NULL,
    version bigint NOT NULL,
    "position" bigint NOT NULL,
    updated_us bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    error text COLLATE "C"
);

CREATE UNIQUE INDEX checkpoints_pkey ON mainspring.checkpoints USING btree (name, generation);

CREATE TABLE mainspring.dead_letters (
    id bigint NOT NULL,
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

CREATE INDEX dead_letters_by_instance ON mainspring.dead_letters USING btree (hashtextextended(instance, (0)::bigint));

CREATE INDEX dead_letters_by_message ON mainspring.dead_letters USING btree (hashtextextended(message_id, (0)::bigint)) WHERE (output_kind IS NULL);

CREATE UNIQUE INDEX dead_letters_pkey ON mainspring.dead_letters USING btree (id);

CREATE SEQUENCE mainspring.dead_letters_id_seq;

CREATE TABLE mainspring.documents (
    generation bigint NOT NULL,
    type_version bigint NOT NULL,
    projection text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL
);

CREATE UNIQUE INDEX documents_pkey ON mainspring.documents USING btree (projection, generation, key);

CREATE TABLE mainspring.endings (
    ended_us bigint NOT NULL,
    instance bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX endings_pkey ON mainspring.endings USING btree (workflow, ended_us, instance);

CREATE TABLE mainspring.events (
    "position" bigint NOT NULL,
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

CREATE INDEX events_by_message ON mainspring.events USING btree (instance, hashtextextended(message_id, (0)::bigint)) WHERE (message_id IS NOT NULL);

CREATE UNIQUE INDEX events_by_version ON mainspring.events USING btree (instance, version);

CREATE UNIQUE INDEX events_pkey ON mainspring.events USING btree ("position");

CREATE TABLE mainspring.feed (
    base bigint NOT NULL,
    purged bigint NOT NULL
);

CREATE TABLE mainspring.inbox (
    "position" bigint NOT NULL,
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
    lost bigint NOT NULL
);

CREATE INDEX inbox_free ON mainspring.inbox USING btree (workflow, "position") WHERE (owner IS NULL);

CREATE INDEX inbox_held ON mainspring.inbox USING btree (name, "position", owner) WHERE (owner IS NOT NULL);

CREATE INDEX inbox_lost ON mainspring.inbox USING btree (lost) WHERE (lost >= 2);

CREATE UNIQUE INDEX inbox_by_message ON mainspring.inbox USING btree (name, message);

CREATE UNIQUE INDEX inbox_pkey ON mainspring.inbox USING btree (name, "position");

CREATE SEQUENCE mainspring.inbox_positions;

CREATE SEQUENCE mainspring.instance_keys;

CREATE TABLE mainspring.instances (
    key bigint NOT NULL,
    version bigint NOT NULL,
    definition_version bigint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    context_version bigint,
    "position" bigint NOT NULL,
    name bytea NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    state text COLLATE "C",
    error text COLLATE "C",
    context bytea NOT NULL,
    purged_us bigint
);

CREATE UNIQUE INDEX instances_by_name ON mainspring.instances USING btree (name);

CREATE UNIQUE INDEX instances_pkey ON mainspring.instances USING btree (key);

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
    lost bigint NOT NULL
);

CREATE INDEX outbox_lost ON mainspring.outbox USING btree (lost) WHERE (lost >= 2);

CREATE INDEX outbox_unclaimed ON mainspring.outbox USING btree (destination, priority, due_us, instance, version) WHERE (owner IS NULL);

CREATE UNIQUE INDEX outbox_pkey ON mainspring.outbox USING btree (instance, version);

CREATE TABLE mainspring.posted (
    "position" bigint NOT NULL,
    type_version bigint NOT NULL,
    time_us bigint NOT NULL,
    checksum bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    context bytea NOT NULL,
    actor text COLLATE "C"
);

CREATE UNIQUE INDEX posted_pkey ON mainspring.posted USING btree ("position");

CREATE SEQUENCE mainspring.posted_position_seq;

CREATE TABLE mainspring.results (
    name bytea NOT NULL,
    expires_us bigint NOT NULL,
    type_version bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    type text COLLATE "C",
    body bytea NOT NULL
);

CREATE INDEX results_by_expiry ON mainspring.results USING btree (expires_us);

CREATE UNIQUE INDEX results_pkey ON mainspring.results USING btree (name);

CREATE TABLE mainspring.schema_migrations (
    version bigint NOT NULL,
    applied_us bigint NOT NULL,
    name text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX schema_migrations_pkey ON mainspring.schema_migrations USING btree (version);

CREATE TABLE mainspring.snapshots (
    instance bigint NOT NULL,
    version bigint NOT NULL,
    type_version bigint NOT NULL,
    checksum bigint NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL
);

CREATE UNIQUE INDEX snapshots_pkey ON mainspring.snapshots USING btree (instance);

CREATE TABLE mainspring.tasks (
    instance bigint NOT NULL,
    version bigint NOT NULL,
    opened_us bigint NOT NULL,
    due_us bigint NOT NULL,
    claimed_us bigint,
    ended_us bigint,
    key text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    answers text COLLATE "C" NOT NULL,
    role text COLLATE "C",
    person text COLLATE "C",
    excludes text COLLATE "C" NOT NULL,
    reject text COLLATE "C",
    data bytea NOT NULL,
    status text COLLATE "C" NOT NULL,
    claimed_by text COLLATE "C",
    answered_by text COLLATE "C",
    answer_type text COLLATE "C"
);

CREATE INDEX tasks_free ON mainspring.tasks USING btree (role, due_us, instance, version) WHERE ((status = 'open'::text) AND (claimed_by IS NULL));

CREATE INDEX tasks_open ON mainspring.tasks USING btree (due_us, instance, version) WHERE (status = 'open'::text);

CREATE UNIQUE INDEX tasks_pkey ON mainspring.tasks USING btree (instance, version);

CREATE SEQUENCE mainspring.worker_keys;

CREATE TABLE mainspring.workers (
    key bigint NOT NULL,
    lease_us bigint NOT NULL,
    ends_us bigint NOT NULL,
    session boolean NOT NULL,
    name text COLLATE "C" NOT NULL,
    knows text COLLATE "C" NOT NULL,
    held text COLLATE "C" NOT NULL,
    alone text COLLATE "C",
    life text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX workers_pkey ON mainspring.workers USING btree (key);
