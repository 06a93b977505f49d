-- Every statement of the PostgreSQL store, by name. A list of rows travels in one parameter, so that a batch of any size
-- is a handful of statements: as an array for each column, or, in the statements that every batch needs, as a JSON array
-- of rows with bytes in base64. JSON costs the client a seventh of the time, and the server no more. `mainspring.` stands
-- for the application's own schema.
--
-- Statistics of a queue are mostly those of another moment: after a vacuum of an empty outbox the planner would read all
-- of it for every row of the list. So the list is always walked first, and each of its rows finds its own by an index: a
-- LATERAL with OFFSET 0 cannot be planned in any other way, and neither can a `ctid`.


-- ---------------------------------------------------------------- opening

-- name: server
-- The server's major version, whether it loses what it has acknowledged, and in which encoding it keeps texts.
SELECT
    current_setting('server_version_num')::integer / 10000,
    current_setting('synchronous_commit') = 'off',
    current_setting('server_encoding');

-- name: feed_is_ahead
-- Whether the next transaction would get positions that are used already: after a move to another server.
SELECT (greatest(max(position), (SELECT purged FROM mainspring.feed)) >> 20) - (SELECT base FROM mainspring.feed)
    >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
FROM mainspring.events;

-- name: move_feed
-- Let positions go on behind those that are there.
UPDATE mainspring.feed AS f SET base = n.base
FROM (
    SELECT
        (greatest(max(position), (SELECT purged FROM mainspring.feed)) >> 20) + 1 - pg_current_xact_id()::text::bigint
            AS base
    FROM mainspring.events
) AS n
WHERE n.base > f.base;

-- name: has_schema
-- Whether there is a schema of this name. Asked of the tables themselves: `to_regnamespace` remembers what was not there.
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1);

-- name: has_ledger
-- Whether there is a schema of this name that knows of migrations.
SELECT EXISTS (
    SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'schema_migrations'
);

-- name: record_migration
-- It was applied in this transaction.
INSERT INTO mainspring.schema_migrations (version, name, applied_us)
VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

-- name: schema_version
-- The newest migration.
SELECT coalesce(max(version), 0) FROM mainspring.schema_migrations;


-- ---------------------------------------------------------------- commit: the checks

-- name: lock
-- Lock the worker (so that no worker relieves it meanwhile) and the named instances, in the order of their names so that two
-- batches never wait for each other. The first row is about the transaction: its number with the feed's base, the base,
-- the time, and the worker if it is known; the others are about instances: which name, key, version, position, and
-- whether it is suspended; a tombstone has a version that no writer expects. Everything else is read by a later statement:
-- this one, if it had to wait for a lock, sees other tables as they were before.
WITH worker AS MATERIALIZED (
    SELECT key FROM mainspring.workers WHERE key = $1 FOR KEY SHARE
), locked AS MATERIALIZED (
    SELECT n.place, i.key, CASE WHEN i.purged_us IS NULL THEN i.version ELSE -1 END AS version, i.position, i.status
    FROM jsonb_array_elements_text($2::jsonb) WITH ORDINALITY AS n (name, place)
    CROSS JOIN LATERAL (
        SELECT * FROM mainspring.instances WHERE name = decode(n.name, 'base64') FOR NO KEY UPDATE
    ) AS i
)
SELECT
    pg_current_xact_id()::text::bigint + f.base, f.base, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    (SELECT key FROM worker), false
FROM mainspring.feed AS f
UNION ALL
SELECT place, key, version, position, status = 'suspended' FROM locked;

-- name: bury_alone
-- Wait for the worker that buries messages that nothing takes: there is no row to lock for such a message.
SELECT pg_advisory_xact_lock($1::integer, $2::integer);

-- name: facts
-- All that a batch asks, in one snapshot behind the locks; a number says which question a row answers. Mostly nothing
-- but the last row comes back.
-- 1 inputs that are in their stream already · 2 inputs that wait in the inbox · 3 which of the inputs to be consumed are
-- there · 4 how many inputs wait for instances that want to be stepped directly, by timer key · 5 outputs that are not
-- this worker's, and those whose rows are wanted anyway · 6 messages that nothing took and that are kept already · 7 new
-- positions in the inbox and new keys of instances · 8 how many inputs that are not this worker's wait for instances for
-- which it wants to hold new ones, by timer key · 9 the first inputs that wait before the last of those to be consumed
-- and are none of them, by timer key
-- An input is looked up as the first in the order of its index: while the inbox is empty, any index by name is as good as
-- another to the planner, and the plan it makes then reads all that waits for an instance, for each of its inputs.
SELECT 1, n.place, NULL::bigint, NULL::bigint, NULL::text, e.type, NULL::text, e.body, NULL::bigint[], NULL::bigint[]
FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS n (row, place)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.events
    WHERE instance = (n.row ->> 0)::bigint AND hashtextextended(message_id, 0) = hashtextextended(n.row ->> 1, 0)
        AND message_id = n.row ->> 1
    OFFSET 0
) AS e
UNION ALL
SELECT 2, n.place, b.position, NULL, b.timer_key, b.type, NULL, b.body, NULL, NULL
FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS n (row, place)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.inbox
    WHERE name = decode(n.row ->> 0, 'base64') AND message >= decode(n.row ->> 1, 'base64')
    ORDER BY name, message LIMIT 1
) AS b
WHERE b.message = decode(n.row ->> 1, 'base64')
UNION ALL
SELECT 3, n.place, b.position, b.owner, b.timer_key, NULL, NULL, NULL, NULL, NULL
FROM jsonb_array_elements($3::jsonb) WITH ORDINALITY AS n (row, place)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.inbox
    WHERE name = decode(n.row ->> 1, 'base64') AND position >= (n.row ->> 0)::bigint
    ORDER BY name, position LIMIT 1
) AS b
WHERE b.position = (n.row ->> 0)::bigint
UNION ALL
SELECT 4, n.place, b.count, NULL, b.timer_key, NULL, NULL, NULL, NULL, NULL
FROM jsonb_array_elements_text($4::jsonb) WITH ORDINALITY AS n (name, place)
CROSS JOIN LATERAL (
    SELECT count(*) AS count, timer_key FROM mainspring.inbox WHERE name = decode(n.name, 'base64') GROUP BY timer_key
    OFFSET 0
) AS b
UNION ALL
SELECT 5, n.place, o.owner, o.priority, o.kind, o.destination, o.key, NULL, NULL, NULL
FROM jsonb_array_elements($5::jsonb) WITH ORDINALITY AS n (row, place)
LEFT JOIN LATERAL (
    SELECT * FROM mainspring.outbox WHERE instance = (n.row ->> 0)::bigint AND version = (n.row ->> 1)::bigint
    OFFSET 0
) AS o ON true
WHERE (n.row ->> 2)::boolean OR o.owner IS DISTINCT FROM $6::bigint
UNION ALL
SELECT 6, n.place, d.id, NULL, NULL, d.type, NULL, d.body, NULL, NULL
FROM jsonb_array_elements($7::jsonb) WITH ORDINALITY AS n (row, place)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.dead_letters
    WHERE hashtextextended(message_id, 0) = hashtextextended(n.row ->> 2, 0) AND output_kind IS NULL
        AND message_id = n.row ->> 2 AND instance = n.row ->> 1 AND workflow = n.row ->> 0
    OFFSET 0
) AS d
UNION ALL
SELECT
    7, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    ARRAY(SELECT nextval('mainspring.inbox_positions') FROM generate_series(1, $8::bigint)),
    ARRAY(SELECT nextval('mainspring.instance_keys') FROM generate_series(1, $9::bigint))
UNION ALL
SELECT 8, n.place, b.count, NULL, b.timer_key, NULL, NULL, NULL, NULL, NULL
FROM jsonb_array_elements_text($10::jsonb) WITH ORDINALITY AS n (name, place)
CROSS JOIN LATERAL (
    SELECT count(*) AS count, timer_key FROM mainspring.inbox
    WHERE name = decode(n.name, 'base64') AND owner IS DISTINCT FROM $6::bigint GROUP BY timer_key
    OFFSET 0
) AS b
UNION ALL
SELECT 9, n.place, b.position, NULL, b.timer_key, NULL, NULL, NULL, NULL, NULL
FROM (
    SELECT DISTINCT ON (c.row ->> 1) c.row ->> 1 AS name, (c.row ->> 0)::bigint AS last, c.place
    FROM jsonb_array_elements($3::jsonb) WITH ORDINALITY AS c (row, place)
    ORDER BY c.row ->> 1, (c.row ->> 0)::bigint DESC
) AS n
CROSS JOIN LATERAL (
    SELECT min(position) AS position, timer_key FROM mainspring.inbox
    WHERE name = decode(n.name, 'base64') AND position < n.last
        AND (position, name) NOT IN (
            SELECT (c.row ->> 0)::bigint, decode(c.row ->> 1, 'base64') FROM jsonb_array_elements($3::jsonb) AS c (row)
        )
    GROUP BY timer_key
    OFFSET 0
) AS b;


-- ---------------------------------------------------------------- commit: the changes

-- name: write
-- What almost every batch does, in one statement: outputs settled, instances begun and moved, events appended, outputs
-- recorded, ends noted (of instances that had not ended: all of the statement sees the rows as they were before it). No
-- row is touched twice. Returns how many outputs were settled: fewer than asked for means that another worker cancelled
-- some since the facts were read.
WITH settled AS (
    DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
        SELECT (
            SELECT ctid FROM mainspring.outbox
            WHERE instance = (n.row ->> 0)::bigint AND version = (n.row ->> 1)::bigint AND owner = $2::bigint
        )
        FROM jsonb_array_elements($1::jsonb) AS n (row)
    ))
    RETURNING 1
), begun AS (
    INSERT INTO mainspring.instances (
        name, key, workflow, id, version, status, state, error, definition_version, context, context_version, position,
        created_us, updated_us
    )
    SELECT
        decode(row ->> 0, 'base64'), (row ->> 1)::bigint, row ->> 2, row ->> 3, (row ->> 4)::bigint, row ->> 5,
        row ->> 6, row ->> 7, (row ->> 8)::bigint, decode(row ->> 9, 'base64'), (row ->> 10)::bigint,
        (row ->> 11)::bigint, $3::bigint, $3::bigint
    FROM jsonb_array_elements($4::jsonb) AS n (row)
), moved AS (
    UPDATE mainspring.instances AS i SET
        version = (n.row ->> 1)::bigint,
        status = n.row ->> 2,
        state = n.row ->> 3,
        error = n.row ->> 4,
        context_version = coalesce((n.row ->> 5)::bigint, i.context_version),
        position = (n.row ->> 6)::bigint,
        updated_us = $3::bigint
    FROM (
        SELECT u.row, (SELECT ctid FROM mainspring.instances WHERE key = (u.row ->> 0)::bigint) AS at
        FROM jsonb_array_elements($5::jsonb) AS u (row)
        OFFSET 0
    ) AS n
    WHERE i.ctid = n.at
), appended AS (
    INSERT INTO mainspring.events (
        position, instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context,
        actor, state, attempt, duration_us, checksum
    )
    SELECT
        $6::bigint + place, (row ->> 0)::bigint, (row ->> 1)::bigint, row ->> 2, (row ->> 3)::bigint, row ->> 4,
        (row ->> 5)::bigint, decode(row ->> 6, 'base64'), decode(row ->> 7, 'base64'), row ->> 8, row ->> 9,
        (row ->> 10)::bigint, decode(row ->> 11, 'base64'), row ->> 12, row ->> 13, (row ->> 14)::bigint,
        (row ->> 15)::bigint, (row ->> 16)::bigint
    FROM jsonb_array_elements($7::jsonb) WITH ORDINALITY AS n (row, place)
), recorded AS (
    INSERT INTO mainspring.outbox (
        instance, version, kind, destination, due_us, priority, key, owner, attempts, last_error
    )
    SELECT
        (row ->> 0)::bigint, (row ->> 1)::bigint, row ->> 2, row ->> 3, (row ->> 4)::bigint, (row ->> 5)::bigint,
        row ->> 6, (row ->> 7)::bigint, (row ->> 8)::bigint, row ->> 9
    FROM jsonb_array_elements($8::jsonb) AS n (row)
), ended AS (
    INSERT INTO mainspring.endings (workflow, ended_us, instance)
    SELECT n.row ->> 1, $3::bigint, (n.row ->> 0)::bigint
    FROM jsonb_array_elements($9::jsonb) AS n (row)
    WHERE coalesce(
        (SELECT i.status FROM mainspring.instances AS i WHERE i.key = (n.row ->> 0)::bigint), 'running'
    ) IN ('running', 'suspended', 'compensating')
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM settled;

-- name: append_events
-- Events of which the bodies are too large for JSON, a part of a batch at a time.
INSERT INTO mainspring.events (
    position, instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context,
    actor, state, attempt, duration_us, checksum
)
SELECT
    $18::bigint + place, instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause,
    context, actor, state, attempt, duration_us, checksum
FROM unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bytea[], $8::bytea[],
    $9::text[], $10::text[], $11::bigint[], $12::bytea[], $13::text[], $14::text[], $15::bigint[], $16::bigint[],
    $17::bigint[]
) WITH ORDINALITY AS n (
    instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context, actor, state,
    attempt, duration_us, checksum, place
);

-- name: delete_outputs
-- Settled before something is cancelled. Returns how many there were.
WITH settled AS (
    DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
        SELECT (SELECT ctid FROM mainspring.outbox WHERE instance = n.instance AND version = n.version AND owner = $3::bigint)
        FROM unnest($1::bigint[], $2::bigint[]) AS n (instance, version)
    ))
    RETURNING 1
)
SELECT count(*) FROM settled;

-- name: lock_work
-- The outputs and waiting inputs of instances in which something is about to be cancelled. A claim that is under way ends
-- first, and none begins before the commit: a row that another transaction has just changed is no longer at the place (`ctid`)
-- at which a statement found it, and would escape its cancellation.
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM unnest($1::bigint[]) AS n (instance)
        CROSS JOIN LATERAL (SELECT 1 FROM mainspring.outbox WHERE instance = n.instance OFFSET 0 FOR UPDATE) AS o
    ) AS outputs),
    (SELECT count(*) FROM (
        SELECT 1 FROM unnest($2::bytea[]) AS n (name)
        CROSS JOIN LATERAL (SELECT 1 FROM mainspring.inbox WHERE name = n.name OFFSET 0 FOR UPDATE) AS b
    ) AS inputs);

-- name: cancel_keys
-- Outputs with one of these keys: cancelled, whichever worker holds them.
DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bigint[], $2::text[]) AS n (instance, key)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.outbox WHERE instance = n.instance AND key = n.key OFFSET 0
    ) AS o
));

-- name: cancel_timers
-- All timers of these instances.
DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.outbox WHERE instance = n.instance AND kind = 'timer' OFFSET 0
    ) AS o
));

-- name: cancel_unclaimed
-- All outputs of these instances that no worker holds, those that are set aside (-2) too; said so that the index of all that
-- no worker holds is no way to them.
DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.outbox WHERE instance = n.instance AND coalesce(owner, -2) = -2 OFFSET 0
    ) AS o
));

-- name: cancel_forward
-- All timers of these instances, and those sends with a compensation that no worker holds.
DELETE FROM mainspring.outbox WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.outbox
        WHERE instance = n.instance AND (kind = 'timer' OR (key = '' AND coalesce(owner, -2) = -2))
        OFFSET 0
    ) AS o
));

-- name: retry_outputs
-- Free again, and due later; only an attempt clears what was lost. Returns how many there were.
WITH retried AS (
    UPDATE mainspring.outbox AS o
    SET
        owner = CASE WHEN o.lost >= 2 AND n.attempts <= o.attempts THEN -2 END,
        lost = CASE WHEN n.attempts <= o.attempts THEN o.lost ELSE 0 END,
        due_us = n.due_us, attempts = n.attempts, last_error = n.error
    FROM (
        SELECT u.*, (
            SELECT ctid FROM mainspring.outbox
            WHERE instance = u.instance AND version = u.version AND owner = $6::bigint
        ) AS at
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
            AS u (instance, version, due_us, attempts, error)
        OFFSET 0
    ) AS n
    WHERE o.ctid = n.at
    RETURNING 1
)
SELECT count(*) FROM retried;

-- name: delete_inputs
-- Consumed. Returns how many there were.
WITH consumed AS (
    DELETE FROM mainspring.inbox WHERE ctid = ANY (ARRAY(
        SELECT (SELECT ctid FROM mainspring.inbox WHERE name = n.name AND position = n.position)
        FROM unnest($1::bytea[], $2::bigint[]) AS n (name, position)
    ))
    RETURNING 1
)
SELECT count(*) FROM consumed;

-- name: cancel_fired
-- Timers that fired and wait for their step: those of a key, or all where it is NULL.
DELETE FROM mainspring.inbox WHERE ctid = ANY (ARRAY(
    SELECT b.ctid
    FROM unnest($1::bytea[], $2::text[]) AS n (name, key)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.inbox
        WHERE name = n.name AND timer_key IS NOT NULL AND (n.key IS NULL OR timer_key = n.key)
        OFFSET 0
    ) AS b
));

-- name: delete_dead_letters
-- Discarded.
DELETE FROM mainspring.dead_letters WHERE id = ANY ($1::bigint[]);

-- name: delete_handled
-- Of workflows, instances and versions: dead letters of outputs whose failure was taken.
DELETE FROM mainspring.dead_letters WHERE id = ANY (ARRAY(
    SELECT d.id FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (workflow, instance, version)
    CROSS JOIN LATERAL (
        SELECT id, workflow, instance, output_version FROM mainspring.dead_letters
        WHERE hashtextextended(instance, 0) = hashtextextended(n.instance, 0) OFFSET 0
    ) AS d
    WHERE d.workflow = n.workflow AND d.instance = n.instance AND d.output_version = n.version
));

-- name: await_instances
-- Inputs wait for instances of these names, which have not begun. A writer that begins one meanwhile violates the index, and
-- tries again.
INSERT INTO mainspring.instances (
    key, version, definition_version, created_us, updated_us, position, name, workflow, id, status, context
)
SELECT -nextval('mainspring.instance_keys'), 0, 0, $4::bigint, $4::bigint, 0, n.name, n.workflow, n.id, '', ''
FROM unnest($1::bytea[], $2::text[], $3::text[]) AS n (name, workflow, id);

-- name: stop_awaiting
-- They begin now.
DELETE FROM mainspring.instances WHERE key = ANY ($1::bigint[]);

-- name: insert_inputs
-- Accepted.
INSERT INTO mainspring.inbox (
    name, message, position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor,
    cause, timer_key, owner, checksum
)
SELECT * FROM unnest(
    $1::bytea[], $2::bytea[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::bytea[], $11::bigint[], $12::bytea[], $13::text[], $14::bigint[], $15::text[], $16::bigint[], $17::bigint[]
);

-- name: release_inputs
-- Given back by the worker that held them: to any worker, or, where the new owner says so, to none until a resumption. What
-- was lost too often is set aside.
UPDATE mainspring.inbox AS b SET owner = coalesce(n.owner, CASE WHEN b.lost >= 2 THEN -2 END)
FROM (
    SELECT u.owner, (
        SELECT ctid FROM mainspring.inbox WHERE name = u.name AND position = u.position AND owner = $4::bigint
    ) AS at
    FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (name, position, owner)
    OFFSET 0
) AS n
WHERE b.ctid = n.at;

-- name: park_inputs
-- Their instances are suspended: what no worker holds waits for the resumption. Said so that the index of all that no worker
-- holds is no way to it.
UPDATE mainspring.inbox SET owner = -1 WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bytea[]) AS n (name)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.inbox WHERE name = n.name AND coalesce(owner, -2) = -2 OFFSET 0
    ) AS o
));

-- name: unpark_inputs
-- Not suspended any more. What was lost is tried anew.
UPDATE mainspring.inbox SET owner = NULL, lost = 0 WHERE ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM unnest($1::bytea[]) AS n (name)
    CROSS JOIN LATERAL (
        SELECT ctid FROM mainspring.inbox
        WHERE name = n.name AND (owner < 0 OR (lost > 0 AND coalesce(owner, -2) = -2))
        OFFSET 0
    ) AS o
));

-- name: insert_dead_letters
-- Kept whole.
INSERT INTO mainspring.dead_letters (
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum
)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::bigint[], $9::bytea[],
    $10::text[], $11::text[], $12::bigint[], $13::text[], $14::bigint[], $15::bigint[], $16::text[], $17::text[],
    $18::bigint[], $19::text[], $20::bigint[]
);

-- name: renew_instances
-- They begin anew, or go on under another definition.
UPDATE mainspring.instances SET
    definition_version = ($2::bigint[])[array_position($1::bigint[], key)],
    context = ($3::bytea[])[array_position($1::bigint[], key)]
WHERE key = ANY ($1::bigint[]);

-- name: delete_attributes
-- These instances have others now, or were purged.
DELETE FROM mainspring.attributes WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (SELECT ctid FROM mainspring.attributes WHERE instance = n.instance OFFSET 0) AS a
));

-- name: insert_attempts
-- Attempts that failed.
INSERT INTO mainspring.attempts (instance, version, number, began_us, ended_us, worker, error)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]
)
ON CONFLICT DO NOTHING;

-- name: forget_attempts
-- Of these instances: all attempts but the latest so many of each command, and of all together.
DELETE FROM mainspring.attempts WHERE ctid = ANY (ARRAY(
    SELECT r.at FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (
        SELECT
            ctid AS at,
            row_number() OVER (PARTITION BY version ORDER BY ended_us DESC, number DESC) AS of_command,
            row_number() OVER (ORDER BY ended_us DESC, version DESC, number DESC) AS of_instance
        FROM mainspring.attempts WHERE instance = n.instance OFFSET 0
    ) AS r
    WHERE r.of_command > $2::bigint OR r.of_instance > $3::bigint
));

-- name: delete_attempts
-- Purged with their instances.
DELETE FROM mainspring.attempts WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM unnest($1::bigint[]) AS n (instance)
    CROSS JOIN LATERAL (SELECT ctid FROM mainspring.attempts WHERE instance = n.instance OFFSET 0) AS a
));

-- name: attempts
-- By what was sent, then by time.
SELECT instance, version, number, worker, began_us, ended_us, error FROM mainspring.attempts
WHERE instance = (SELECT key FROM mainspring.instances WHERE name = $1) ORDER BY version, ended_us, number LIMIT $2;

-- name: insert_attributes
-- What instances have from now on.
INSERT INTO mainspring.attributes (instance, name, kind, text, number)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::double precision[]);

-- name: replace_snapshots
-- The newest only.
INSERT INTO mainspring.snapshots (instance, version, fingerprint, type, type_version, body, checksum)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::bigint[]
)
ON CONFLICT (instance) DO UPDATE SET
    version = excluded.version,
    fingerprint = excluded.fingerprint,
    type = excluded.type,
    type_version = excluded.type_version,
    body = excluded.body,
    checksum = excluded.checksum;

-- name: trim_events
-- Behind a version up to another: what no message id, no person, no output, dead letter or waiting answer has to do with.
WITH wanted AS MATERIALIZED (
    SELECT n.instance, n.after, n.version, i.id, i.name
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (instance, after, version)
    CROSS JOIN LATERAL (SELECT id, name FROM mainspring.instances WHERE key = n.instance OFFSET 0) AS i
), pinned AS MATERIALIZED (
    SELECT w.instance, o.version FROM wanted AS w
    CROSS JOIN LATERAL (SELECT version FROM mainspring.outbox WHERE instance = w.instance OFFSET 0) AS o
    UNION
    SELECT w.instance, d.version FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT output_version AS version, output_instance FROM mainspring.dead_letters
        WHERE hashtextextended(instance, 0) = hashtextextended(w.id, 0) OFFSET 0
    ) AS d
    WHERE d.output_instance = w.instance
), needed AS MATERIALIZED (
    SELECT instance, version FROM pinned
    UNION ALL
    SELECT p.instance, e.cause FROM pinned AS p
    CROSS JOIN LATERAL (
        SELECT cause FROM mainspring.events WHERE instance = p.instance AND version = p.version OFFSET 0
    ) AS e
), answered AS MATERIALIZED (
    SELECT w.instance FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT FROM mainspring.inbox WHERE name = w.name AND kind = 'answer' LIMIT 1
    ) AS x
)
DELETE FROM mainspring.events WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT ctid, version, event FROM mainspring.events
        WHERE instance = w.instance AND version > w.after AND version <= w.version
            AND message_id IS NULL AND actor IS NULL
        OFFSET 0
    ) AS e
    WHERE NOT EXISTS (SELECT FROM needed AS n WHERE n.instance = w.instance AND n.version = e.version)
        AND NOT (
            e.event IN ('Asked', 'TaskClosed') AND EXISTS (SELECT FROM answered AS a WHERE a.instance = w.instance)
        )
));

-- name: replace_results
-- Remembered; the newest counts.
INSERT INTO mainspring.results (name, key, type, type_version, body, expires_us)
SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bigint[])
ON CONFLICT (name) DO UPDATE SET
    type = excluded.type,
    type_version = excluded.type_version,
    body = excluded.body,
    expires_us = excluded.expires_us;

-- name: sweep_results
-- Forget a few that have expired. Those that another transaction is at are left to it.
DELETE FROM mainspring.results WHERE name = ANY (ARRAY(
    SELECT name FROM mainspring.results
    WHERE expires_us <= $1 ORDER BY expires_us LIMIT 1000 FOR UPDATE SKIP LOCKED
));

-- name: outcome
-- What became of a transaction.
SELECT pg_xact_status($1::text::xid8);

-- name: end_transaction
-- End the session in which a transaction is still open, if there is one. It will never be committed. One that waits for a
-- synchronous standby is committed as soon as that has it; to end it would be to do without.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_xid = $1::text::xid8::xid AND wait_event IS DISTINCT FROM 'SyncRep';


-- ---------------------------------------------------------------- claiming

-- name: next_due
-- When the next output that no worker holds is due for these destinations; whether inputs of these workflows are free; the
-- time; whether the worker is known; whether messages were posted; and the transaction's number if it has changed anything.
-- One step through the index per destination and priority.
WITH RECURSIVE slots (destination, priority) AS (
    SELECT n.destination, (
        SELECT max(o.priority) FROM mainspring.outbox AS o WHERE o.owner IS NULL AND o.destination = n.destination
    )
    FROM (SELECT DISTINCT destination FROM unnest($1::text[]) AS u (destination)) AS n
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM mainspring.outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
)
SELECT
    (
        SELECT min((
            SELECT min(d.due_us) FROM mainspring.outbox AS d
            WHERE d.owner IS NULL AND d.destination = s.destination AND d.priority = s.priority
        ))
        FROM slots AS s WHERE s.priority IS NOT NULL
    ),
    EXISTS (
        SELECT 1 FROM unnest($2::text[]) AS w (workflow)
        WHERE EXISTS (SELECT 1 FROM mainspring.inbox AS b WHERE b.owner IS NULL AND b.workflow = w.workflow)
    ),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    EXISTS (SELECT 1 FROM mainspring.workers WHERE key = $3::bigint),
    EXISTS (SELECT 1 FROM mainspring.posted ORDER BY position LIMIT 1),
    pg_current_xact_id_if_assigned()::text::bigint;

-- name: hold_worker
-- The worker, if it is known. No worker relieves it before this transaction ends.
SELECT key FROM mainspring.workers WHERE key = $1 FOR KEY SHARE;

-- name: claim_outputs
-- Take the most urgent due outputs for these destinations, and return each with its message, the context of the last
-- input before it that had one, and the input that it was decided for. What another worker is about to take is left to
-- it. At most `$4` rows of each destination and priority are looked at: a long queue costs no more than a short one.
WITH RECURSIVE slots (destination, priority) AS (
    SELECT n.destination, (
        SELECT max(o.priority) FROM mainspring.outbox AS o WHERE o.owner IS NULL AND o.destination = n.destination
    )
    FROM (SELECT DISTINCT destination FROM unnest($2::text[]) AS u (destination)) AS n
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM mainspring.outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
), picked AS MATERIALIZED (
    SELECT d.ctid
    FROM slots AS s CROSS JOIN LATERAL (
        SELECT o.ctid, o.instance, o.version, o.due_us FROM mainspring.outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority = s.priority AND o.due_us <= $3::bigint
        ORDER BY o.due_us, o.instance, o.version LIMIT $4::bigint
        FOR UPDATE SKIP LOCKED
    ) AS d
    WHERE s.priority IS NOT NULL
    ORDER BY s.priority DESC, d.due_us, d.instance, d.version LIMIT $4::bigint
), owned AS (
    UPDATE mainspring.outbox AS o SET owner = $1::bigint
    WHERE o.ctid = ANY (ARRAY(SELECT ctid FROM picked))
    RETURNING o.instance, o.version, o.kind, o.destination, o.attempts, o.due_us, o.priority, o.last_error
)
SELECT
    o.instance, o.version, i.workflow, i.id, o.kind, o.destination, o.attempts, o.due_us, o.priority,
    coalesce(
        CASE WHEN i.context_version <= o.version THEN
            (SELECT c.context FROM mainspring.events AS c
             WHERE c.instance = o.instance AND c.version = i.context_version)
        ELSE
            (SELECT c.context FROM mainspring.events AS c
             WHERE c.instance = o.instance AND c.version <= o.version AND c.context IS NOT NULL
             ORDER BY c.version DESC LIMIT 1)
        END,
        i.context
    ),
    n.version, n.message_id, n.kind, n.cause,
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum,
    o.last_error
FROM owned AS o
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = o.instance OFFSET 0) AS i
LEFT JOIN LATERAL (
    SELECT * FROM mainspring.events WHERE instance = o.instance AND version = o.version OFFSET 0
) AS e ON true
LEFT JOIN LATERAL (
    SELECT * FROM mainspring.events WHERE instance = o.instance AND version = e.cause OFFSET 0
) AS n ON true
ORDER BY o.priority DESC, o.due_us, o.instance, o.version;

-- name: set_outputs_aside
-- Damaged: no worker's.
UPDATE mainspring.outbox SET owner = 0 WHERE ctid = ANY (ARRAY(
    SELECT (SELECT ctid FROM mainspring.outbox WHERE instance = n.instance AND version = n.version)
    FROM unnest($1::bigint[], $2::bigint[]) AS n (instance, version)
));

-- name: claim_inputs
-- Take the oldest free inputs of these workflows, except those behind an input that another worker holds or is about to
-- take: of each instance only a beginning of its queue. And but for what the worker leaves to others: inputs of these
-- types and versions with all behind them, and these instances.
WITH picked AS MATERIALIZED (
    SELECT f.ctid, f.position, f.name
    FROM unnest($2::text[]) AS w (workflow) CROSS JOIN LATERAL (
        SELECT b.ctid, b.position, b.name FROM mainspring.inbox AS b
        WHERE b.owner IS NULL AND b.workflow = w.workflow
            AND (
                SELECT h.position FROM mainspring.inbox AS h
                WHERE h.name = b.name AND h.position < b.position AND h.owner <> -1 AND h.owner <> $1::bigint
                LIMIT 1
            ) IS NULL
            AND (SELECT i.status FROM mainspring.instances AS i WHERE i.name = b.name) IS DISTINCT FROM 'suspended'
            AND ($4::text[] IS NULL OR NOT EXISTS (
                SELECT 1 FROM mainspring.inbox AS s
                WHERE s.name = b.name AND s.position <= b.position
                    AND (s.type, s.type_version) IN (
                        SELECT t.type, t.version FROM unnest($4::text[], $5::bigint[]) AS t (type, version)
                    )
            ))
            AND ($6::bytea[] IS NULL OR b.name <> ALL ($6::bytea[]))
        ORDER BY b.position LIMIT $3::bigint
        FOR UPDATE OF b SKIP LOCKED
    ) AS f
    ORDER BY f.position LIMIT $3::bigint
), queues AS MATERIALIZED (
    SELECT p.positions, p.places, (
        SELECT min(e.position) FROM mainspring.inbox AS e
        WHERE e.name = p.name AND e.position < p.last AND e.owner IS DISTINCT FROM $1::bigint
            AND e.position <> ALL (p.positions)
    ) AS blocked
    FROM (
        SELECT name, max(position) AS last, array_agg(position) AS positions, array_agg(ctid) AS places
        FROM picked GROUP BY name
    ) AS p
), owned AS (
    UPDATE mainspring.inbox AS b SET owner = $1::bigint
    WHERE b.ctid = ANY (ARRAY(
        SELECT p.place
        FROM queues AS q CROSS JOIN LATERAL unnest(q.positions, q.places) AS p (position, place)
        WHERE q.blocked IS NULL OR q.blocked > p.position
    ))
    RETURNING
        b.position, b.workflow, b.instance, b.message_id, b.kind, b.type, b.type_version, b.body, b.time_us, b.context,
        b.actor, b.cause, b.timer_key, b.owner, b.checksum, b.name
)
SELECT * FROM owned ORDER BY position;

-- name: set_inputs_aside
-- Damaged: no worker's. Those behind them are free again, and wait.
UPDATE mainspring.inbox AS b SET owner = n.owner
FROM (
    SELECT u.owner, (SELECT ctid FROM mainspring.inbox WHERE name = u.name AND position = u.position) AS at
    FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (name, position, owner)
    OFFSET 0
) AS n
WHERE b.ctid = n.at;

-- name: hold_instance
-- Hold the instance of a dead letter still, and return its version. Before the letter itself, as a step does that removes
-- it: a transaction that locked the two in another order could wait for one that waits for it.
SELECT version FROM mainspring.instances
WHERE key = (SELECT output_instance FROM mainspring.dead_letters WHERE id = $1) FOR NO KEY UPDATE;

-- name: dead_output
-- The outbox row that a dead letter was.
SELECT output_instance, output_version, output_kind, output_destination, output_priority, output_key
FROM mainspring.dead_letters WHERE id = $1 AND output_kind IS NOT NULL FOR UPDATE;

-- name: restore_output
-- Due now, with no attempts made. Returns the transaction's number.
INSERT INTO mainspring.outbox (instance, version, kind, destination, priority, key, due_us, attempts)
VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), 0)
RETURNING pg_current_xact_id()::text::bigint;


-- ---------------------------------------------------------------- workers

-- name: new_worker
-- A new epoch.
SELECT nextval('mainspring.worker_keys');

-- name: lock_worker
-- Say that this session's worker lives.
SELECT pg_advisory_lock($1::integer, $2::integer);

-- name: unlock_worker
-- It does not any more.
SELECT pg_advisory_unlock($1::integer, $2::integer);

-- name: insert_worker
-- From now on it can hold things. The time is the database's, where none is given; so it is below.
INSERT INTO mainspring.workers (key, name, lease_us, ends_us, session, knows, life)
VALUES ($1, $2, $3, $3 + coalesce($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), $5, $6, $7);

-- name: life
-- The server's life: sessions, and their locks, never outlast it. Another begins with a start of the server, with a
-- promotion (a timeline), and with a crash of one of its processes alone (which resets what it counts).
SELECT concat_ws(
    ' ', extract(epoch FROM pg_postmaster_start_time()), left(pg_walfile_name(pg_current_wal_lsn()), 8),
    extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())
)
-- For a worker: only if the lock that says that it lives is held there.
WHERE $2::bigint IS NULL OR EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint = $1::bigint AND objid::bigint = $2::bigint
);

-- name: workers
-- Who is registered, for people.
SELECT key, name, lease_us, ends_us, knows, held FROM mainspring.workers ORDER BY key;

-- name: extend_worker
-- Alive, what it holds back, and in which life of the server its lock was seen.
UPDATE mainspring.workers
SET ends_us = lease_us + coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    held = $3, life = $4
WHERE key = $1
RETURNING key;

-- name: newest
-- The time, and the newest migration: a worker must not go on with tables that it does not know.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, max(version) FROM mainspring.schema_migrations;

-- name: gone_workers
-- Workers out of their lease, and those whose session is gone. One that has not been seen in this life of the server may be
-- about to be back: its lease alone counts. The locks that are found free are kept until the transaction ends. One whose
-- row is in a transaction just now is left for the next look: it may be stopped there, and who looks must not wait with it.
SELECT key FROM mainspring.workers
WHERE ends_us <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) OR CASE
    WHEN NOT session OR key = ANY ($4::bigint[]) OR life <> $2 THEN false
    ELSE pg_try_advisory_xact_lock($3::integer, key::integer)
END
ORDER BY key FOR UPDATE SKIP LOCKED;

-- name: delete_workers
-- Forget them; their keys are never given again. First of all: it waits for what they are about to commit.
DELETE FROM mainspring.workers WHERE key = ANY ($1::bigint[]) RETURNING key, alone, pg_current_xact_id()::text::bigint;

-- name: lose_outputs
-- These workers are gone: count what each held, or only what it tried alone. A scan, like free_outputs.
UPDATE mainspring.outbox AS o SET lost = o.lost + 1
FROM unnest($1::bigint[], $2::text[]) AS w (key, alone)
WHERE o.owner = w.key AND (w.alone IS NULL OR w.alone = o.instance || '/' || o.version);

-- name: lose_inputs
-- These workers are gone: count what each held, or only what it tried alone.
UPDATE mainspring.inbox AS b SET lost = b.lost + 1
FROM unnest($1::bigint[], $2::text[]) AS w (key, alone)
WHERE b.owner = w.key AND (w.alone IS NULL OR w.alone = b.position::text);

-- name: free_outputs
-- Give back what these workers hold; what was lost too often is set aside. They are few and rarely gone: a scan is cheaper
-- than an index at every step.
UPDATE mainspring.outbox SET owner = CASE WHEN lost >= 2 THEN -2 END WHERE owner = ANY ($1::bigint[]);

-- name: free_inputs
-- Give back what these workers hold; what was lost too often is set aside.
UPDATE mainspring.inbox SET owner = CASE WHEN lost >= 2 THEN -2 END WHERE owner = ANY ($1::bigint[]);

-- name: output_alone
-- An output of an instance that is set aside; one that another worker is about to take is left to it.
SELECT o.instance, o.version, o.lost
FROM mainspring.instances AS i
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.outbox WHERE instance = i.key AND version = $2::bigint AND owner = -2
    FOR UPDATE SKIP LOCKED
) AS o
WHERE i.name = $1;

-- name: input_alone
-- An input that is set aside, if it is the first that waits for its instance, and that is not suspended.
SELECT b.name, b.position, b.lost FROM mainspring.inbox AS b
WHERE b.name = $1 AND b.position = $2::bigint AND b.owner = -2
    AND NOT EXISTS (SELECT 1 FROM mainspring.inbox AS e WHERE e.name = b.name AND e.position < b.position)
    AND (SELECT i.status FROM mainspring.instances AS i WHERE i.name = b.name) IS DISTINCT FROM 'suspended'
FOR UPDATE OF b SKIP LOCKED;

-- name: own_output
-- Now this worker's, or no worker's.
UPDATE mainspring.outbox SET owner = $3::bigint WHERE instance = $1 AND version = $2;

-- name: own_input
-- Now this worker's, or no worker's.
UPDATE mainspring.inbox SET owner = $3::bigint WHERE name = $1 AND position = $2
RETURNING
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum;

-- name: try_alone
-- What a worker tries alone; NULL: nothing.
UPDATE mainspring.workers SET alone = $2 WHERE key = $1;

-- name: suspects
-- What was lost with its workers, what was lost most first; but for inputs of suspended instances.
SELECT i.workflow, i.id, coalesce(e.type, ''), o.version, o.lost, o.destination, coalesce(o.owner = -2, false), coalesce(e.type_version, 1), NULL
FROM mainspring.outbox AS o
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = o.instance OFFSET 0) AS i
LEFT JOIN LATERAL (
    SELECT type, type_version FROM mainspring.events WHERE instance = o.instance AND version = o.version OFFSET 0
) AS e ON true
WHERE o.lost >= 2
UNION ALL
SELECT b.workflow, b.instance, b.type, NULL, b.lost, '', coalesce(b.owner = -2, false), b.type_version, b.position
FROM mainspring.inbox AS b
WHERE b.lost >= 2 AND b.owner IS DISTINCT FROM -1
ORDER BY 5 DESC LIMIT $1;

-- name: notify
-- Tell other processes that there is work which no worker holds.
SELECT pg_notify($1, '');


-- ---------------------------------------------------------------- reading

-- name: load_instances
-- The instances of these names, each with its snapshot if it has one. The first column says which of the list it is.
SELECT
    n.place - 1, i.key, i.workflow, i.id, i.version, i.status, i.state, i.error, i.definition_version, i.context,
    i.created_us, i.updated_us, i.purged_us,
    s.instance, s.version, s.fingerprint, s.type, s.type_version, s.body, s.checksum
FROM unnest($1::bytea[]) WITH ORDINALITY AS n (name, place)
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE name = n.name AND key > 0 OFFSET 0) AS i
LEFT JOIN LATERAL (SELECT * FROM mainspring.snapshots WHERE instance = i.key OFFSET 0) AS s ON true;

-- name: load_events
-- The events of instances behind a version and up to another.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (instance, after, last)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.events AS o
    WHERE o.instance = n.instance AND o.version > n.after AND o.version <= n.last ORDER BY o.version
) AS e;

-- name: stream
-- The events of one instance behind a version. Those that a purge has left are no worker's.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM mainspring.events AS e
WHERE e.instance = (SELECT key FROM mainspring.instances WHERE name = $1 AND purged_us IS NULL) AND e.version > $2
ORDER BY e.version LIMIT $3;

-- name: input_of_message
-- The input of an instance that waits under a message id.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
FROM mainspring.inbox WHERE name = $1 AND message = $2;

-- name: event_of_message
-- The input under a message id that is in the stream of an instance.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM mainspring.events AS e
WHERE e.instance = (SELECT key FROM mainspring.instances WHERE name = $1 AND purged_us IS NULL)
    AND hashtextextended(e.message_id, 0) = hashtextextended($2::text, 0) AND e.message_id = $2;

-- name: letters_of_message
-- The dead letters of an instance under a message id that were no outputs.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM (
    SELECT * FROM mainspring.dead_letters
    WHERE hashtextextended(message_id, 0) = hashtextextended($3::text, 0) AND output_kind IS NULL
        AND message_id = $3 AND instance = $2 AND workflow = $1
    OFFSET 0
) AS d
ORDER BY id;

-- name: feed
-- The events of all instances behind a position, of transactions before the oldest that has not ended: later ones get
-- higher positions, and the oldest itself does so too.
SELECT
    e.position, i.workflow, i.id,
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM mainspring.events AS e
CROSS JOIN LATERAL (
    SELECT workflow, id FROM mainspring.instances WHERE key = e.instance AND purged_us IS NULL OFFSET 0
) AS i
WHERE e.position > $1 AND e.position < (
    (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + base FROM mainspring.feed) << 20
)
ORDER BY e.position LIMIT $2;

-- name: outlines
-- The events of instances behind a version, without their bodies. `octet_length` fetches no body from where it is kept.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.kind, e.cause, e.state, e.attempt, e.duration_us, e.actor,
    coalesce(octet_length(e.body), 0) + coalesce(octet_length(e.detail), 0) + coalesce(octet_length(e.context), 0)
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS n (instance, after, place)
CROSS JOIN LATERAL (SELECT key FROM mainspring.instances WHERE key = n.instance AND purged_us IS NULL OFFSET 0) AS i
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.events AS o WHERE o.instance = i.key AND o.version > n.after ORDER BY o.version LIMIT $3
) AS e
ORDER BY n.place, e.version LIMIT $3;

-- name: trimmed
-- Up to which version the events of an instance may be gone.
SELECT version FROM mainspring.snapshots WHERE instance = $1 AND fingerprint = '';

-- name: inbox
-- What waits for an instance, in order.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
FROM mainspring.inbox WHERE name = $1 ORDER BY position LIMIT $2;

-- name: attributes
-- Those of one instance.
SELECT name, kind, text, number FROM mainspring.attributes
WHERE instance = (SELECT key FROM mainspring.instances WHERE name = $1) ORDER BY name;

-- name: instance_outputs
-- The outputs of one instance: timers, or all but timers; the next due first.
SELECT instance, version FROM mainspring.outbox
WHERE instance = (SELECT key FROM mainspring.instances WHERE name = $1) AND (kind = 'timer') = $2
ORDER BY due_us, instance, version LIMIT $3;

-- name: all_outputs
-- The outputs of all instances: timers, or all but timers; the next due first. A scan: for people, not for workers.
SELECT instance, version FROM mainspring.outbox
WHERE (kind = 'timer') = $1 ORDER BY due_us, instance, version LIMIT $2;

-- name: outputs
-- Outputs with their messages, as a claim returns them.
SELECT
    o.instance, o.version, i.workflow, i.id, o.kind, o.destination, o.attempts, o.due_us, o.priority,
    coalesce(
        (SELECT c.context FROM mainspring.events AS c
         WHERE c.instance = o.instance AND c.version <= o.version AND c.context IS NOT NULL
         ORDER BY c.version DESC LIMIT 1),
        i.context
    ),
    n.version, n.message_id, n.kind, n.cause,
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum,
    o.last_error
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w (instance, version, place)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.outbox WHERE instance = w.instance AND version = w.version OFFSET 0
) AS o
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = o.instance OFFSET 0) AS i
LEFT JOIN LATERAL (
    SELECT * FROM mainspring.events WHERE instance = o.instance AND version = o.version OFFSET 0
) AS e ON true
LEFT JOIN LATERAL (
    SELECT * FROM mainspring.events WHERE instance = o.instance AND version = e.cause OFFSET 0
) AS n ON true
ORDER BY w.place;

-- name: dead_letters
-- In the order of their arrival.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM mainspring.dead_letters WHERE id > $1 ORDER BY id LIMIT $2;

-- name: dead_letters_by_id
-- Those of a list, in the order of their arrival.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM mainspring.dead_letters WHERE id > $1 AND id = ANY ($3::bigint[]) ORDER BY id LIMIT $2;

-- name: remembered
-- A result that has not expired.
SELECT key, type, type_version, body, expires_us FROM mainspring.results WHERE name = $1 AND expires_us > $2;

-- name: holds
-- The outputs that a worker holds. A scan, like free_outputs.
SELECT instance, version FROM mainspring.outbox WHERE owner = $1 ORDER BY instance, version;

-- name: holds_inputs
-- The inputs that a worker holds, in their order. A scan of those that any worker holds.
SELECT workflow, instance, position FROM mainspring.inbox WHERE owner = $1 ORDER BY position;

-- name: status_counts
-- How many instances have each status, without the engine's own.
SELECT status, count(*) FROM mainspring.instances
WHERE key > 0 AND purged_us IS NULL AND left(workflow, 11) <> 'mainspring' || '.' GROUP BY status;

-- name: tally
-- How many instances each workflow has in each status, without the engine's own.
SELECT workflow, status, count(*) FROM mainspring.instances
WHERE key > 0 AND purged_us IS NULL AND left(workflow, 11) <> 'mainspring' || '.' GROUP BY workflow, status;

-- name: waiting
-- How many inputs of each type wait since before a time that no worker holds, and since when the oldest does.
SELECT b.workflow, b.type, b.type_version, count(*), min(b.time_us) FROM mainspring.inbox AS b
WHERE b.owner IS NULL AND b.time_us < $1
    AND (SELECT i.status FROM mainspring.instances AS i WHERE i.name = b.name) IS DISTINCT FROM 'suspended'
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: depths
-- How much waits, and since when the oldest due output does. What was posted is on its way into the inbox.
SELECT
    (SELECT count(*) FROM mainspring.inbox) + (SELECT count(*) FROM mainspring.posted),
    (SELECT count(*) FROM mainspring.outbox WHERE kind <> 'timer'),
    (SELECT count(*) FROM mainspring.outbox WHERE kind = 'timer'),
    (SELECT count(*) FROM mainspring.dead_letters),
    (SELECT min(due_us) FROM mainspring.outbox WHERE due_us <= $1),
    (SELECT count(*) FROM mainspring.workers);


-- ---------------------------------------------------------------- purging

-- name: purgeable
-- Ended instances of a workflow in the order of their ends, behind one of them, and whether each may be purged: nothing
-- has moved it since then, and nothing is kept for it. A tombstone is here because of the events that a purge has left.
SELECT
    e.ended_us, i.key, i.id, i.version, i.purged_us,
    i.purged_us IS NOT NULL OR (
        i.updated_us < $2 AND i.status NOT IN ('running', 'suspended', 'compensating')
        AND (SELECT o.version FROM mainspring.outbox AS o WHERE o.instance = i.key LIMIT 1) IS NULL
        AND (SELECT b.position FROM mainspring.inbox AS b WHERE b.name = i.name LIMIT 1) IS NULL
        AND (
            SELECT d.id FROM mainspring.dead_letters AS d
            WHERE hashtextextended(d.instance, 0) = hashtextextended(i.id, 0) AND d.instance = i.id
                AND d.workflow = i.workflow
            LIMIT 1
        ) IS NULL
    )
FROM mainspring.endings AS e
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = e.instance OFFSET 0) AS i
WHERE e.workflow = $1 AND e.ended_us < $2 AND (e.ended_us, e.instance) > ($3::bigint, $4::bigint)
ORDER BY e.ended_us, e.instance LIMIT $5;

-- name: lock_purgeable
-- Of instances: those that no other worker is at, to the end of this transaction. Nothing is accepted, recorded or buried for
-- them meanwhile, for all that locks the instance first.
SELECT i.key
FROM unnest($1::bigint[], $2::bigint[]) AS n (key, version)
CROSS JOIN LATERAL (
    SELECT key FROM mainspring.instances
    WHERE key = n.key AND (
        purged_us IS NOT NULL OR (version = n.version AND status NOT IN ('running', 'suspended', 'compensating'))
    )
    FOR UPDATE SKIP LOCKED
) AS i;

-- name: bury_instances
-- Tombstones from now on, if nothing is kept for them: asked behind the locks. Returns those that are.
UPDATE mainspring.instances AS i SET
    purged_us = coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    state = NULL, error = NULL, context = '{}', context_version = NULL
WHERE i.key = ANY ($1::bigint[]) AND i.purged_us IS NULL
    AND (SELECT o.version FROM mainspring.outbox AS o WHERE o.instance = i.key LIMIT 1) IS NULL
    AND (SELECT b.position FROM mainspring.inbox AS b WHERE b.name = i.name LIMIT 1) IS NULL
    AND (
        SELECT d.id FROM mainspring.dead_letters AS d
        WHERE hashtextextended(d.instance, 0) = hashtextextended(i.id, 0) AND d.instance = i.id
            AND d.workflow = i.workflow
        LIMIT 1
    ) IS NULL
RETURNING i.key;

-- name: delete_snapshots
-- There is nothing to fold any more.
DELETE FROM mainspring.snapshots WHERE instance = ANY ($1::bigint[]);

-- name: tombstones
-- Those of these instances that are tombstones.
SELECT key FROM mainspring.instances WHERE key = ANY ($1::bigint[]) AND purged_us IS NOT NULL;

-- name: purge_events
-- Remove so many events of these instances. Returns how many there were, and the last of their positions.
WITH purged AS (
    DELETE FROM mainspring.events WHERE ctid = ANY (ARRAY(
        SELECT e.ctid
        FROM unnest($1::bigint[]) AS n (instance)
        CROSS JOIN LATERAL (SELECT ctid FROM mainspring.events WHERE instance = n.instance OFFSET 0) AS e
        LIMIT $2
    ))
    RETURNING position
)
SELECT count(*), coalesce(max(position), 0) FROM purged;

-- name: with_events
-- Those of these instances that have events left.
SELECT n.instance FROM unnest($1::bigint[]) AS n (instance)
WHERE (SELECT e.version FROM mainspring.events AS e WHERE e.instance = n.instance LIMIT 1) IS NOT NULL;

-- name: delete_endings
-- Nothing is left of these to be purged.
DELETE FROM mainspring.endings WHERE ctid = ANY (ARRAY(
    SELECT (
        SELECT ctid FROM mainspring.endings
        WHERE workflow = n.workflow AND ended_us = n.ended_us AND instance = n.instance
    )
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (workflow, ended_us, instance)
));

-- name: remember_purged
-- No later event may have a position before that of one that is gone. Last of all: two purges wait here for each other.
UPDATE mainspring.feed SET purged = $1 WHERE purged < $1;


-- ---------------------------------------------------------------- projections

-- name: checkpoints
-- Every generation of all projections. There are few.
SELECT name, generation, version, status, position, updated_us, error FROM mainspring.checkpoints
ORDER BY name, generation;

-- name: checkpoints_of
-- Every generation of a projection.
SELECT name, generation, version, status, position, updated_us, error FROM mainspring.checkpoints
WHERE name = $1 ORDER BY generation;

-- name: lock_checkpoints
-- The same of some generations, which no other worker moves before this transaction ends.
SELECT name, generation, version, status, position, updated_us, error FROM mainspring.checkpoints
WHERE name = $1 AND generation = ANY ($2::bigint[]) ORDER BY generation FOR UPDATE;

-- name: begin_checkpoint
-- A new generation, unless another worker has just begun it.
INSERT INTO mainspring.checkpoints (name, generation, version, status, position, updated_us, error)
VALUES (
    $1, $2, $3, coalesce($4, 'live'), $5, coalesce($6::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    $7
)
ON CONFLICT DO NOTHING RETURNING generation;

-- name: move_checkpoint
-- Further on, or stopped by an error.
UPDATE mainspring.checkpoints SET
    status = coalesce($3, status), position = $4,
    updated_us = coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), error = $6
WHERE name = $1 AND generation = $2;

-- name: retire_checkpoints
-- These generations are no longer read.
UPDATE mainspring.checkpoints SET status = 'retired' WHERE name = $1 AND generation = ANY ($2::bigint[]);

-- name: delete_checkpoint
-- Nothing of it is left.
DELETE FROM mainspring.checkpoints WHERE name = $1 AND generation = $2;

-- name: replace_documents
-- Changed or new.
INSERT INTO mainspring.documents (projection, generation, key, type, type_version, body)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
ON CONFLICT (projection, generation, key) DO UPDATE
SET type = excluded.type, type_version = excluded.type_version, body = excluded.body;

-- name: delete_documents
-- There are none any more under these keys.
DELETE FROM mainspring.documents WHERE projection = $1 AND generation = $2 AND key = ANY ($3::text[]);

-- name: clear_documents
-- So many of a generation. Returns how many there were.
WITH cleared AS (
    DELETE FROM mainspring.documents WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mainspring.documents WHERE projection = $1 AND generation = $2 LIMIT $3
    ))
    RETURNING 1
)
SELECT count(*) FROM cleared;

-- name: documents
-- Those of a generation, or of the live one, under these keys.
SELECT key, type, type_version, body FROM mainspring.documents
WHERE projection = $1
    AND generation = coalesce(
        $2::bigint, (SELECT generation FROM mainspring.checkpoints WHERE name = $1 AND status = 'live')
    )
    AND key = ANY ($3::text[]);

-- name: list_documents
-- Those of the live generation behind a key, up to where the prefix ends.
SELECT key, type, type_version, body FROM mainspring.documents
WHERE projection = $1
    AND generation = (SELECT generation FROM mainspring.checkpoints WHERE name = $1 AND status = 'live')
    AND key > $2 AND key >= $3 AND ($4::text IS NULL OR key < $4)
ORDER BY key LIMIT $5;

-- name: behind
-- How many events the feed has behind a position, and when the first of them happened.
SELECT count(*), min(f.time_us) FROM (
    SELECT CASE WHEN row_number() OVER (ORDER BY e.position) = 1 THEN e.time_us END AS time_us
    FROM mainspring.events AS e
    CROSS JOIN LATERAL (SELECT purged_us FROM mainspring.instances WHERE key = e.instance OFFSET 0) AS i
    WHERE e.position > $1 AND i.purged_us IS NULL ORDER BY e.position LIMIT $2
) AS f;
