-- What the doctor reads when it looks for damage: every record with its checksum. Each is a scan, for people.

-- name: every_event
-- As `read_event` takes them.
SELECT
    instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context, actor, state,
    attempt, duration_us, checksum
FROM events;

-- name: every_input
-- As `read_input` takes them.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
FROM inbox;

-- name: every_dead_letter
-- As `read_dead_letter` takes them.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM dead_letters;

-- name: every_instance
-- As `read_instance` takes them.
SELECT
    key, workflow, id, version, status, state, error, definition_version, context, created_us, updated_us, purged_us,
    born, moved
FROM instances;

-- name: every_output
-- As `check_output` takes them.
SELECT instance, version, kind, destination, due_us, priority, key, attempts, checksum FROM outbox;

-- name: every_snapshot
-- As `read_snapshot` takes them.
SELECT instance, version, fingerprint, type, type_version, body, checksum FROM snapshots;

-- name: every_half_stream
-- Instances whose last event is not there.
SELECT i.key, i.version FROM instances AS i
WHERE i.purged_us IS NULL AND i.version > 0
    AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.instance = i.key AND e.version = i.version);
