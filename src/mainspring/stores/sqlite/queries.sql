-- Every statement of the SQLite store, by name. A list of values travels as one JSON array in one parameter, so that a
-- batch of any size is a handful of statements. Inserts have one row here and get many (`sql.py`, Ladder).


-- ---------------------------------------------------------------- commit: the checks, which return misfits only

-- name: misfits
-- What every batch asks, in one statement: each would be one more turn at the interpreter lock. NULL is an empty list.
-- 0: how many of the workers (?1) are alive, whether anything waits in the inbox (mostly not, and then nothing else of
-- it is looked at), and whether for a resumption.
SELECT 0, (SELECT count(*) FROM workers WHERE key IN (SELECT value FROM json_each(?1))),
    EXISTS (SELECT 1 FROM inbox), EXISTS (SELECT 1 FROM inbox WHERE owner = -1), NULL
-- 1: of [key, version, workflow, id], the keys whose instance is at another version, is another one, or a tombstone.
UNION ALL
SELECT 1, j.value ->> 0, NULL, NULL, NULL
FROM json_each(?2) AS j LEFT JOIN instances AS i ON i.key = j.value ->> 0
WHERE i.version IS NOT j.value ->> 1 OR i.id IS NOT j.value ->> 3 OR i.workflow IS NOT j.value ->> 2
    OR i.purged_us IS NOT NULL
-- 2: of [instance, version, worker], the outputs that are not this worker's, with who holds them, or not there.
UNION ALL
SELECT 2, j.value ->> 0, j.value ->> 1, o.owner, o.kind
FROM json_each(?3) AS j LEFT JOIN outbox AS o ON o.instance = j.value ->> 0 AND o.version = j.value ->> 1
WHERE o.owner IS NOT j.value ->> 2
-- 3: of [instance, message_id], the inputs that are in their stream already.
UNION ALL
SELECT 3, e.instance, e.message_id, e.type, e.body
FROM json_each(?4) AS j
CROSS JOIN events AS e INDEXED BY events_by_message ON e.instance = j.value ->> 0 AND e.message_id = j.value ->> 1;

-- name: hold_worker
-- The worker, if it is known. No worker relieves it before this transaction ends.
SELECT key FROM workers WHERE key = ?1;

-- name: registered_workers
-- Which of these workers are alive.
SELECT key FROM workers WHERE key IN (SELECT value FROM json_each(?1));

-- name: instances_by_name
-- Of [workflow, id]: those that exist. A tombstone has a version that no writer expects.
SELECT i.workflow, i.id, i.key, CASE WHEN i.purged_us IS NULL THEN i.version ELSE -1 END
FROM json_each(?1) AS j CROSS JOIN instances AS i ON i.workflow = j.value ->> 0 AND i.id = j.value ->> 1;

-- name: last_key
-- The highest key in use.
SELECT coalesce(max(key), 0) FROM instances;

-- name: output_rows
-- Of [instance, version]: the outbox rows of those that are there.
SELECT o.instance, o.version, o.owner, o.checksum, o.due_us, o.attempts, o.kind, o.destination, o.priority, o.key
FROM json_each(?1) AS j CROSS JOIN outbox AS o ON o.instance = j.value ->> 0 AND o.version = j.value ->> 1;

-- name: taken_messages
-- Of [instance, message_id]: those that are in the stream already.
SELECT e.instance, e.message_id, e.type, e.body
FROM json_each(?1) AS j
CROSS JOIN events AS e INDEXED BY events_by_message ON e.instance = j.value ->> 0 AND e.message_id = j.value ->> 1;

-- name: dead_messages
-- Of [workflow, instance, message_id]: those that were not taken before, and that are kept already.
SELECT d.workflow, d.instance, d.message_id, d.id, d.type, d.body
FROM json_each(?1) AS j
CROSS JOIN dead_letters AS d INDEXED BY dead_letters_by_message
ON d.workflow = j.value ->> 0 AND d.instance = j.value ->> 1 AND d.message_id = j.value ->> 2
WHERE d.output_kind IS NULL;

-- name: waiting_messages
-- Of [workflow, instance, message_id]: those that wait in the inbox.
SELECT b.workflow, b.instance, b.message_id, b.position, b.timer_key, b.type, b.body
FROM json_each(?1) AS j
CROSS JOIN inbox AS b INDEXED BY inbox_by_message
ON b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1 AND b.message_id = j.value ->> 2;

-- name: inputs_at
-- Of [position, workflow, instance]: those where this instance has an input, with its timer key and who holds it.
SELECT b.position, b.workflow, b.instance, b.timer_key, b.owner
FROM json_each(?1) AS j CROSS JOIN inbox AS b ON b.position = j.value ->> 0
WHERE b.instance = j.value ->> 2 AND b.workflow = j.value ->> 1;

-- name: left_behind
-- Of [position, workflow, instance]: the instances that have inputs before the last of these which are not among them,
-- with the first of those, by timer key.
WITH asked AS (SELECT value ->> 0 AS position, value ->> 1 AS workflow, value ->> 2 AS instance FROM json_each(?1)),
lasts AS (SELECT workflow, instance, max(position) AS last FROM asked GROUP BY workflow, instance)
SELECT l.workflow, l.instance, b.timer_key, min(b.position)
FROM lasts AS l CROSS JOIN inbox AS b INDEXED BY inbox_by_instance
ON b.workflow = l.workflow AND b.instance = l.instance AND b.position < l.last
WHERE (b.position, b.workflow, b.instance) NOT IN (SELECT position, workflow, instance FROM asked)
GROUP BY l.workflow, l.instance, b.timer_key;

-- name: with_waiting_inputs
-- Of [workflow, instance]: those that inputs wait for.
SELECT j.value ->> 0, j.value ->> 1
FROM json_each(?1) AS j
WHERE EXISTS (SELECT 1 FROM inbox AS b WHERE b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1);

-- name: waiting_inputs
-- Of [workflow, instance]: how many inputs wait for those, by timer key.
SELECT b.workflow, b.instance, b.timer_key, count(*)
FROM json_each(?1) AS j
CROSS JOIN inbox AS b INDEXED BY inbox_by_instance ON b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1
GROUP BY b.workflow, b.instance, b.timer_key;

-- name: with_inputs_of_others
-- Of [workflow, instance, worker]: those for which inputs wait that this worker does not hold.
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2
FROM json_each(?1) AS j
WHERE EXISTS (
    SELECT 1 FROM inbox AS b
    WHERE b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1 AND b.owner IS NOT j.value ->> 2
);

-- name: inputs_of_others
-- Of [workflow, instance, worker]: how many inputs wait that this worker does not hold, by timer key.
SELECT b.workflow, b.instance, j.value ->> 2, b.timer_key, count(*)
FROM json_each(?1) AS j
CROSS JOIN inbox AS b INDEXED BY inbox_by_instance ON b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1
WHERE b.owner IS NOT j.value ->> 2
GROUP BY b.workflow, b.instance, j.value ->> 2, b.timer_key;

-- name: last_number
-- The last number that a table with AUTOINCREMENT gave away.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1;


-- ---------------------------------------------------------------- commit: the changes

-- name: retry_outputs
-- Of [instance, version, due_us, attempts, error, checksum]: free again, and due later. Only an attempt clears what was lost.
UPDATE outbox SET
    owner = CASE WHEN lost >= 2 AND r.attempts <= outbox.attempts THEN -2 END,
    lost = CASE WHEN r.attempts <= outbox.attempts THEN lost ELSE 0 END,
    due_us = r.due_us, attempts = r.attempts, last_error = r.error, checksum = r.checksum
FROM (
    SELECT value ->> 0 AS instance, value ->> 1 AS version, value ->> 2 AS due_us, value ->> 3 AS attempts,
        value ->> 4 AS error, value ->> 5 AS checksum
    FROM json_each(?1)
) AS r
WHERE outbox.instance = r.instance AND outbox.version = r.version;

-- name: delete_outputs
-- Of [instance, version]: settled.
DELETE FROM outbox WHERE (instance, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1));

-- name: cancel_keys
-- Of [instance, key]: cancelled, whichever worker holds them.
DELETE FROM outbox WHERE (instance, version) IN (
    SELECT o.instance, o.version
    FROM json_each(?1) AS j CROSS JOIN outbox AS o ON o.instance = j.value ->> 0 AND o.key = j.value ->> 1
);

-- name: cancel_timers
-- Of instances: all their timers.
DELETE FROM outbox WHERE instance IN (SELECT value FROM json_each(?1)) AND kind = 'timer';

-- name: cancel_unclaimed
-- Of instances: all their outputs that no worker holds; also those that are set aside.
DELETE FROM outbox WHERE instance IN (SELECT value FROM json_each(?1)) AND (owner IS NULL OR owner = -2);

-- name: cancel_forward
-- Of instances: all their timers, and those sends with a compensation that no worker holds.
DELETE FROM outbox WHERE instance IN (SELECT value FROM json_each(?1)) AND (kind = 'timer' OR (key = '' AND (owner IS NULL OR owner = -2)));

-- name: release_inputs
-- Of [position, worker]: given back by the worker that held them.
UPDATE inbox SET owner = coalesce((
    SELECT -1 FROM instances AS i WHERE i.workflow = inbox.workflow AND i.id = inbox.instance AND i.status = 'suspended'
), CASE WHEN lost >= 2 THEN -2 END)
WHERE (position, owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1));

-- name: park_inputs
-- Of [workflow, instance]: where that is suspended, free inputs from a position on wait for its resumption.
UPDATE inbox SET owner = -1 WHERE position IN (
    SELECT b.position
    FROM json_each(?1) AS j
    CROSS JOIN instances AS i ON i.workflow = j.value ->> 0 AND i.id = j.value ->> 1 AND i.status = 'suspended'
    CROSS JOIN inbox AS b INDEXED BY inbox_by_instance
    ON b.workflow = i.workflow AND b.instance = i.id AND b.position >= ?2
    WHERE b.owner IS NULL OR b.owner = -2
);

-- name: unpark_inputs
-- Of [workflow, instance]: not suspended any more. What was lost is tried anew.
UPDATE inbox SET owner = NULL, lost = 0 WHERE position IN (
    SELECT b.position
    FROM json_each(?1) AS j
    CROSS JOIN inbox AS b INDEXED BY inbox_by_instance
    ON b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1
    WHERE b.owner = -1
);

-- name: delete_inputs
-- Of positions: consumed.
DELETE FROM inbox WHERE position IN (SELECT value FROM json_each(?1));

-- name: cancel_fired
-- Of [workflow, instance, key or null for all]: timers that fired and wait for their step.
DELETE FROM inbox WHERE position IN (
    SELECT b.position
    FROM json_each(?1) AS j
    CROSS JOIN inbox AS b INDEXED BY inbox_by_instance
    ON b.workflow = j.value ->> 0 AND b.instance = j.value ->> 1
    WHERE b.timer_key IS NOT NULL AND (j.value ->> 2 IS NULL OR b.timer_key = j.value ->> 2)
);

-- name: delete_dead_letters
-- Of ids: discarded.
DELETE FROM dead_letters WHERE id IN (SELECT value FROM json_each(?1));

-- name: delete_handled
-- Of [workflow, instance, version]: dead letters of outputs whose failure was taken.
DELETE FROM dead_letters WHERE id IN (
    SELECT d.id FROM json_each(?1) AS j CROSS JOIN dead_letters AS d INDEXED BY dead_letters_by_instance
    ON d.workflow = j.value ->> 0 AND d.instance = j.value ->> 1
    WHERE d.output_version = j.value ->> 2
);

-- name: insert_endings
-- Of [key, workflow]: ended now, and not before. To be asked before the instances are written.
INSERT OR IGNORE INTO endings (workflow, ended_us, instance)
SELECT j.value ->> 1, ?2, j.value ->> 0
FROM json_each(?1) AS j LEFT JOIN instances AS i ON i.key = j.value ->> 0
WHERE i.key IS NULL OR i.status IN ('running', 'suspended', 'compensating');

-- name: insert_instances
-- Begun.
INSERT INTO instances (
    key, workflow, id, version, status, state, error, definition_version, context, created_us, updated_us,
    context_version, born, moved
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: renew_instance
-- It begins anew, or goes on under another definition.
UPDATE instances SET definition_version = ?2, context = ?3, born = ?4 WHERE key = ?1;

-- name: created
-- When an instance began first.
SELECT created_us FROM instances WHERE key = ?1;

-- name: update_instances
-- Of [key, version, status, state, error, context_version or null for unchanged, checksum]: moved.
UPDATE instances SET
    version = u.version,
    status = u.status,
    state = u.state,
    error = u.error,
    updated_us = ?2,
    context_version = coalesce(u.context_version, instances.context_version),
    moved = u.moved
FROM (
    SELECT value ->> 0 AS key, value ->> 1 AS version, value ->> 2 AS status, value ->> 3 AS state,
        value ->> 4 AS error, value ->> 5 AS context_version, value ->> 6 AS moved
    FROM json_each(?1)
) AS u
WHERE instances.key = u.key;

-- name: insert_events
-- Appended. The position follows.
INSERT INTO events (
    instance, version, event, time_us, type, type_version, body, detail, kind, message_id, cause, context, actor, state,
    attempt, duration_us, checksum
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_outputs
-- Recorded, and claimed at once where a worker is given.
INSERT INTO outbox (
    instance, version, kind, destination, due_us, priority, key, owner, attempts, last_error, checksum
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_inputs
-- Accepted.
INSERT INTO inbox (
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_dead_letters
-- Kept whole.
INSERT INTO dead_letters (
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: replace_results
-- Remembered; the newest counts.
INSERT OR REPLACE INTO results (key, type, type_version, body, expires_us) VALUES (?, ?, ?, ?, ?);

-- name: sweep_results
-- Forget a few that have expired.
DELETE FROM results WHERE key IN (SELECT key FROM results WHERE expires_us <= ?1 ORDER BY expires_us LIMIT 1000);

-- name: delete_attributes
-- Of instances: they have others now, or were purged.
DELETE FROM attributes WHERE instance IN (SELECT value FROM json_each(?1));

-- name: replace_attempts
-- Attempts that failed.
INSERT OR REPLACE INTO attempts (instance, version, number, worker, began_us, ended_us, error) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: forget_attempts
-- Of instances: all attempts but the latest so many of each command, and of all together.
DELETE FROM attempts WHERE (instance, version, ended_us, number) IN (
    SELECT instance, version, ended_us, number
    FROM (
        SELECT
            instance, version, ended_us, number,
            row_number() OVER (PARTITION BY instance, version ORDER BY ended_us DESC, number DESC) AS of_command,
            row_number() OVER (PARTITION BY instance ORDER BY ended_us DESC, version DESC, number DESC) AS of_instance
        FROM attempts WHERE instance IN (SELECT value FROM json_each(?1))
    )
    WHERE of_command > ?2 OR of_instance > ?3
);

-- name: delete_attempts
-- Of instances: purged with them.
DELETE FROM attempts WHERE instance IN (SELECT value FROM json_each(?1));

-- name: attempts
-- By what was sent, then by time.
SELECT a.instance, a.version, a.number, a.worker, a.began_us, a.ended_us, a.error
FROM instances AS i CROSS JOIN attempts AS a ON a.instance = i.key
WHERE i.workflow = ?1 AND i.id = ?2 ORDER BY a.version, a.ended_us, a.number LIMIT ?3;

-- name: insert_attributes
-- What instances have from now on.
INSERT INTO attributes (instance, name, kind, text, number) VALUES (?, ?, ?, ?, ?);

-- name: replace_snapshots
-- The newest only.
INSERT OR REPLACE INTO snapshots (instance, version, fingerprint, type, type_version, body, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?);


-- name: trim_events
-- Behind a version up to another: what no message id, no person, no output, dead letter or waiting answer has to do with.
WITH pinned (version) AS MATERIALIZED (
    SELECT version FROM outbox WHERE instance = ?1
    UNION
    SELECT d.output_version FROM instances AS i CROSS JOIN dead_letters AS d INDEXED BY dead_letters_by_instance
    ON d.workflow = i.workflow AND d.instance = i.id
    WHERE i.key = ?1 AND d.output_instance = ?1
)
DELETE FROM events INDEXED BY events_by_version
WHERE instance = ?1 AND version > ?2 AND version <= ?3 AND message_id IS NULL AND actor IS NULL
    AND version NOT IN (SELECT version FROM pinned)
    AND version NOT IN (
        SELECT e.cause FROM pinned AS p CROSS JOIN events AS e INDEXED BY events_by_version
        ON e.instance = ?1 AND e.version = p.version
        WHERE e.cause IS NOT NULL
    )
    AND NOT (
        event IN ('Asked', 'TaskClosed')
        AND EXISTS (
            SELECT 1 FROM instances AS i CROSS JOIN inbox AS x INDEXED BY inbox_by_instance
            ON x.workflow = i.workflow AND x.instance = i.id
            WHERE i.key = ?1 AND x.kind = 'answer'
        )
    );

-- ---------------------------------------------------------------- claiming

-- name: claimable_outputs
-- The most urgent due outputs for these destinations. One step through the index per destination and priority, and
-- `?3` rows at most of each: a long queue of due work costs no more than a short one.
WITH RECURSIVE slots (destination, priority) AS (
    SELECT j.value, (SELECT max(o.priority) FROM outbox AS o WHERE o.owner IS NULL AND o.destination = j.value)
    FROM (SELECT DISTINCT value FROM json_each(?1)) AS j
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
)
SELECT o.instance, o.version
FROM slots AS s CROSS JOIN outbox AS o ON (o.instance, o.version) IN (
    SELECT d.instance, d.version FROM outbox AS d
    WHERE d.owner IS NULL AND d.destination = s.destination AND d.priority = s.priority AND d.due_us <= ?2
    ORDER BY d.due_us, d.instance, d.version LIMIT ?3
)
WHERE s.priority IS NOT NULL
ORDER BY o.priority DESC, o.due_us, o.instance, o.version LIMIT ?3;

-- name: next_due
-- When the next output that no worker holds is due, for these destinations.
WITH RECURSIVE slots (destination, priority) AS (
    SELECT j.value, (SELECT max(o.priority) FROM outbox AS o WHERE o.owner IS NULL AND o.destination = j.value)
    FROM (SELECT DISTINCT value FROM json_each(?1)) AS j
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
)
SELECT min((
    SELECT min(d.due_us) FROM outbox AS d
    WHERE d.owner IS NULL AND d.destination = s.destination AND d.priority = s.priority
))
FROM slots AS s WHERE s.priority IS NOT NULL;

-- name: own_outputs
-- Of [instance, version]: now this owner's.
UPDATE outbox SET owner = ?2 WHERE (instance, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1));

-- name: outputs
-- Of [instance, version]: the output, its message, the context of the last input before it that had one, and the input
-- that it was decided for.
SELECT
    o.key, o.checksum,
    o.instance, o.version, i.workflow, i.id, o.kind, o.destination, o.attempts, o.due_us, o.priority,
    coalesce(
        CASE WHEN i.context_version <= o.version THEN
            (SELECT c.context FROM events AS c WHERE c.instance = o.instance AND c.version = i.context_version)
        ELSE
            (SELECT c.context FROM events AS c INDEXED BY events_by_version
             WHERE c.instance = o.instance AND c.version <= o.version AND c.context IS NOT NULL
             ORDER BY c.version DESC LIMIT 1)
        END,
        i.context
    ),
    n.version, n.message_id, n.kind, n.cause,
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum,
    o.last_error
FROM json_each(?1) AS j
CROSS JOIN outbox AS o ON o.instance = j.value ->> 0 AND o.version = j.value ->> 1
CROSS JOIN instances AS i ON i.key = o.instance
LEFT JOIN events AS e ON e.instance = o.instance AND e.version = o.version
LEFT JOIN events AS n ON n.instance = o.instance AND n.version = e.cause
ORDER BY j.key;

-- name: claimable_inputs
-- The oldest free inputs of these workflows, except those behind another's input. Those of suspended instances are parked.
-- And but for what the worker leaves to others: inputs of [type, version] with all behind them, and [workflow, instance].
WITH others (workflow, instance, first) AS MATERIALIZED (
    SELECT workflow, instance, min(position) FROM (
        SELECT workflow, instance, position FROM inbox INDEXED BY inbox_by_owner WHERE owner >= 0 AND owner <> ?2
        UNION ALL
        SELECT workflow, instance, position FROM inbox INDEXED BY inbox_by_owner WHERE owner = -2
    )
    GROUP BY 1, 2
)
SELECT
    b.position, b.workflow, b.instance, b.message_id, b.kind, b.type, b.type_version, b.body, b.time_us, b.context,
    b.actor, b.cause, b.timer_key, b.owner, b.checksum
FROM inbox AS b INDEXED BY inbox_free
LEFT JOIN others AS o ON o.workflow = b.workflow AND o.instance = b.instance
WHERE b.owner IS NULL
    AND b.workflow IN (SELECT value FROM json_each(?1))
    AND (o.first IS NULL OR b.position < o.first)
    AND (?4 IS NULL OR NOT EXISTS (
        SELECT 1 FROM inbox AS s INDEXED BY inbox_by_instance
        WHERE s.workflow = b.workflow AND s.instance = b.instance AND s.position <= b.position
            AND (s.type, s.type_version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?4))
    ))
    AND (?5 IS NULL OR (b.workflow, b.instance) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(?5)))
ORDER BY b.position LIMIT ?3;

-- name: own_inputs
-- Of positions: now this owner's.
UPDATE inbox SET owner = ?2 WHERE position IN (SELECT value FROM json_each(?1));

-- name: dead_output
-- The outbox row that a dead letter was, if its instance is at a version; at any, where none is expected.
SELECT output_instance, output_version, output_kind, output_destination, output_priority, output_key
FROM dead_letters WHERE id = ?1 AND output_kind IS NOT NULL
    AND (?2 IS NULL OR ?2 = (SELECT version FROM instances WHERE key = output_instance));


-- ---------------------------------------------------------------- workers

-- name: insert_worker
-- A new epoch.
INSERT INTO workers (name, lease_us, ends_us, knows) VALUES (?1, ?2, ?3, ?4) RETURNING key;

-- name: extend_worker
-- Alive, and what it holds back.
UPDATE workers SET ends_us = lease_us + ?2, held = ?3 WHERE key = ?1 RETURNING key;

-- name: workers
-- Who is registered, for people.
SELECT key, name, lease_us, ends_us, knows, held FROM workers ORDER BY key;

-- name: worker_leases
-- Until when each worker said it would be back.
SELECT key, ends_us FROM workers;

-- name: commands_from_later
-- What no worker holds and was decided at a moment that is still to come, with that moment; but for timers, which are for a
-- time of day, and for what was tried by the new time and is due before.
SELECT o.instance, o.version, o.kind, o.destination, o.due_us, o.priority, o.key, o.attempts, o.checksum, e.time_us
FROM outbox AS o
CROSS JOIN events AS e ON e.instance = o.instance AND e.version = o.version
WHERE o.owner IS NULL AND o.kind <> 'timer' AND o.due_us > ?1 AND e.time_us > ?1 AND o.due_us >= e.time_us;

-- name: move_output
-- Let an output be due at another time.
UPDATE outbox SET due_us = ?3, checksum = ?4 WHERE instance = ?1 AND version = ?2;

-- name: free_outputs
-- Give back what these workers hold; what was lost too often is set aside. They are few and rarely gone: a scan is cheaper
-- than an index at every step.
UPDATE outbox SET owner = CASE WHEN lost >= 2 THEN -2 END WHERE owner IN (SELECT value FROM json_each(?1));

-- name: free_inputs
-- Give back what these workers hold; what was lost too often is set aside.
UPDATE inbox SET owner = coalesce((
    SELECT -1 FROM instances AS i WHERE i.workflow = inbox.workflow AND i.id = inbox.instance AND i.status = 'suspended'
), CASE WHEN lost >= 2 THEN -2 END)
WHERE owner IN (SELECT value FROM json_each(?1));

-- name: lose_outputs
-- These workers are gone: count what each held, or only what it tried alone. A scan, like free_outputs.
UPDATE outbox SET lost = lost + 1 WHERE owner IN (SELECT value FROM json_each(?1)) AND (
    SELECT w.alone IS NULL OR w.alone = outbox.instance || '/' || outbox.version FROM workers AS w WHERE w.key = outbox.owner
);

-- name: lose_inputs
-- These workers are gone: count what each held, or only what it tried alone.
UPDATE inbox SET lost = lost + 1 WHERE owner IN (SELECT value FROM json_each(?1)) AND (
    SELECT w.alone IS NULL OR w.alone = CAST(inbox.position AS TEXT) FROM workers AS w WHERE w.key = inbox.owner
);

-- name: output_alone
-- An output of an instance that is set aside.
SELECT o.instance, o.version, o.lost
FROM instances AS i CROSS JOIN outbox AS o ON o.instance = i.key AND o.version = ?3
WHERE i.workflow = ?1 AND i.id = ?2 AND o.owner = -2;

-- name: input_alone
-- An input that is set aside, if it is the first that waits for its instance. Those of suspended instances are parked.
SELECT b.workflow, b.instance, b.position, b.lost FROM inbox AS b
WHERE b.position = ?3 AND b.workflow = ?1 AND b.instance = ?2 AND b.owner = -2 AND NOT EXISTS (
    SELECT 1 FROM inbox AS e INDEXED BY inbox_by_instance
    WHERE e.workflow = b.workflow AND e.instance = b.instance AND e.position < b.position
);

-- name: own_output
-- Now this worker's, or no worker's.
UPDATE outbox SET owner = ?3 WHERE instance = ?1 AND version = ?2;

-- name: own_input
-- Now this worker's, or no worker's.
UPDATE inbox SET owner = ?4 WHERE position = ?3 AND workflow = ?1 AND instance = ?2
RETURNING
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum;

-- name: try_alone
-- What a worker tries alone; NULL: nothing.
UPDATE workers SET alone = ?2 WHERE key = ?1;

-- name: suspects
-- What was lost with its workers, what was lost most first; but for inputs of suspended instances.
SELECT i.workflow, i.id, coalesce(e.type, ''), o.version, o.lost, o.destination, o.owner IS -2, coalesce(e.type_version, 1), NULL
FROM outbox AS o INDEXED BY outbox_lost
CROSS JOIN instances AS i ON i.key = o.instance
LEFT JOIN events AS e ON e.instance = o.instance AND e.version = o.version
WHERE o.lost >= 2
UNION ALL
SELECT b.workflow, b.instance, b.type, NULL, b.lost, '', b.owner IS -2, b.type_version, b.position FROM inbox AS b INDEXED BY inbox_lost
WHERE b.lost >= 2 AND b.owner IS NOT -1
ORDER BY 5 DESC LIMIT ?1;

-- name: delete_workers
-- Forget them; their keys are never given again.
DELETE FROM workers WHERE key IN (SELECT value FROM json_each(?1));


-- ---------------------------------------------------------------- reading

-- name: load_instances
-- Of [workflow, id]: the instance, and its snapshot if it has one. The first column says which of the list it is.
SELECT
    j.key, i.key, i.workflow, i.id, i.version, i.status, i.state, i.error, i.definition_version, i.context,
    i.created_us, i.updated_us, i.purged_us, i.born, i.moved,
    s.instance, s.version, s.fingerprint, s.type, s.type_version, s.body, s.checksum
FROM json_each(?1) AS j
CROSS JOIN instances AS i ON i.workflow = j.value ->> 0 AND i.id = j.value ->> 1
LEFT JOIN snapshots AS s ON s.instance = i.key;

-- name: load_events
-- Of [instance, version, last]: the events behind that version, to the last one if it is not null. They come in the
-- index's order; sorting a long stream once more would only cost time, and their reader checks that none is missing
-- or out of place.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM json_each(?1) AS j
CROSS JOIN events AS e INDEXED BY events_by_version
    ON e.instance = j.value ->> 0 AND e.version > j.value ->> 1
    AND e.version <= coalesce(j.value ->> 2, 9223372036854775807);

-- name: stream
-- The events of one instance behind a version. Those that a purge has left are no worker's.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM events AS e INDEXED BY events_by_version
WHERE e.instance = (SELECT key FROM instances WHERE workflow = ?1 AND id = ?2 AND purged_us IS NULL) AND e.version > ?3
ORDER BY e.version LIMIT ?4;

-- name: stream_end
-- The last version of an instance that has not been purged.
SELECT key, version FROM instances WHERE workflow = ?1 AND id = ?2 AND purged_us IS NULL;

-- name: input_of_message
-- The input of an instance that waits under a message id.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
FROM inbox INDEXED BY inbox_by_message WHERE workflow = ?1 AND instance = ?2 AND message_id = ?3;

-- name: event_of_message
-- The input under a message id that is in the stream of an instance.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM events AS e INDEXED BY events_by_message
WHERE e.instance = (SELECT key FROM instances WHERE workflow = ?1 AND id = ?2 AND purged_us IS NULL) AND e.message_id = ?3;

-- name: letters_of_message
-- The dead letters of an instance under a message id that were no outputs.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM dead_letters INDEXED BY dead_letters_by_message
WHERE workflow = ?1 AND instance = ?2 AND message_id = ?3 AND output_kind IS NULL ORDER BY id;

-- name: feed
-- The events of all instances behind a position. There is one writer at a time, so none can still appear before.
SELECT
    e.position, i.workflow, i.id,
    e.instance, e.version, e.event, e.time_us, e.type, e.type_version, e.body, e.detail, e.kind, e.message_id, e.cause,
    e.context, e.actor, e.state, e.attempt, e.duration_us, e.checksum
FROM events AS e CROSS JOIN instances AS i ON i.key = e.instance
WHERE e.position > ?1 AND i.purged_us IS NULL
ORDER BY e.position LIMIT ?2;

-- name: outlines
-- Of [instance, version]: the events behind that version, without their bodies. `length` of a blob reads none of it.
SELECT
    e.instance, e.version, e.event, e.time_us, e.type, e.kind, e.cause, e.state, e.attempt, e.duration_us, e.actor,
    ifnull(length(e.body), 0) + ifnull(length(e.detail), 0) + ifnull(length(e.context), 0)
FROM json_each(?1) AS j
CROSS JOIN instances AS i ON i.key = j.value ->> 0 AND i.purged_us IS NULL
CROSS JOIN events AS e INDEXED BY events_by_version ON e.instance = i.key AND e.version > j.value ->> 1
LIMIT ?2;

-- name: trimmed
-- Up to which version the events of an instance may be gone.
SELECT version FROM snapshots WHERE instance = ?1 AND fingerprint = '';

-- name: inbox
-- What waits for an instance, in order.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, cause, timer_key,
    owner, checksum
FROM inbox INDEXED BY inbox_by_instance WHERE workflow = ?1 AND instance = ?2 ORDER BY position LIMIT ?3;

-- name: attributes
-- Those of one instance.
SELECT name, kind, text, number FROM attributes
WHERE instance = (SELECT key FROM instances WHERE workflow = ?1 AND id = ?2) ORDER BY name;

-- name: instance_outputs
-- The outputs of one instance: timers, or all but timers; the next due first.
SELECT instance, version FROM outbox
WHERE instance = (SELECT key FROM instances WHERE workflow = ?1 AND id = ?2) AND (kind = 'timer') = ?3
ORDER BY due_us, instance, version LIMIT ?4;

-- name: all_outputs
-- The outputs of all instances: timers, or all but timers; the next due first. A scan: for people, not for workers.
SELECT instance, version FROM outbox WHERE (kind = 'timer') = ?1 ORDER BY due_us, instance, version LIMIT ?2;

-- name: dead_letters
-- In the order of their arrival.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM dead_letters WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: dead_letters_by_id
-- Of ids: in the order of their arrival.
SELECT
    workflow, instance, message_id, kind, type, type_version, body, time_us, context, reason, error, attempts, actor,
    output_instance, output_version, output_kind, output_destination, output_priority, output_key, checksum, id
FROM dead_letters WHERE id > ?1 AND id IN (SELECT value FROM json_each(?3)) ORDER BY id LIMIT ?2;

-- name: remembered
-- A result that has not expired.
SELECT key, type, type_version, body, expires_us FROM results WHERE key = ?1 AND expires_us > ?2;

-- name: holds
-- The outputs that a worker holds. A scan, like free_outputs.
SELECT instance, version FROM outbox WHERE owner = ?1 ORDER BY instance, version;

-- name: holds_inputs
-- The inputs that a worker holds, in their order.
SELECT workflow, instance, position FROM inbox WHERE owner = ?1 ORDER BY position;

-- name: status_counts
-- How many instances have each status, without the engine's own.
SELECT status, count(*) FROM instances
WHERE purged_us IS NULL AND substr(workflow, 1, 11) <> 'mainspring.' GROUP BY status;

-- name: tally
-- How many instances each workflow has in each status, without the engine's own. By rows as they lie there: the index by
-- name has no statuses.
SELECT workflow, status, count(*) FROM instances
WHERE purged_us IS NULL AND substr(workflow, 1, 11) <> 'mainspring.' GROUP BY +workflow, status;

-- name: waiting
-- How many inputs of each type wait since before a time that no worker holds, and since when the oldest does.
SELECT workflow, type, type_version, count(*), min(time_us) FROM inbox INDEXED BY inbox_free
WHERE owner IS NULL AND time_us < ?1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: depths
-- How much waits, and since when the oldest due output does.
SELECT
    (SELECT count(*) FROM inbox),
    (SELECT count(*) FROM outbox WHERE kind <> 'timer'),
    (SELECT count(*) FROM outbox WHERE kind = 'timer'),
    (SELECT count(*) FROM dead_letters),
    (SELECT min(due_us) FROM outbox WHERE due_us <= ?1),
    (SELECT count(*) FROM workers);


-- ---------------------------------------------------------------- purging

-- name: purgeable
-- Ended instances of a workflow in the order of their ends, behind one of them, and whether each may be purged: nothing
-- has moved it since then, and nothing is kept for it. A tombstone is here because of the events that a purge has left.
SELECT
    e.ended_us, i.key, i.id, i.version, i.purged_us,
    i.purged_us IS NOT NULL OR (
        i.updated_us < ?2 AND i.status NOT IN ('running', 'suspended', 'compensating')
        AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.instance = i.key)
        AND NOT EXISTS (SELECT 1 FROM inbox AS b WHERE b.workflow = i.workflow AND b.instance = i.id)
        AND NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.workflow = i.workflow AND d.instance = i.id)
    )
FROM endings AS e CROSS JOIN instances AS i ON i.key = e.instance
WHERE e.workflow = ?1 AND e.ended_us < ?2 AND (e.ended_us, e.instance) > (?3, ?4)
ORDER BY e.ended_us, e.instance LIMIT ?5;

-- name: lock_purgeable
-- Of [key, version]: those that have not moved since they were seen, and tombstones. Who writes is alone: nothing is locked.
SELECT i.key FROM json_each(?1) AS j CROSS JOIN instances AS i ON i.key = j.value ->> 0
WHERE i.purged_us IS NOT NULL
    OR (i.version = j.value ->> 1 AND i.status NOT IN ('running', 'suspended', 'compensating'));

-- name: bury_instances
-- Of keys: tombstones from now on, if nothing is kept for them. Returns those that are.
UPDATE instances SET
    purged_us = ?2, state = NULL, error = NULL, context = CAST('{}' AS BLOB), context_version = NULL, born = NULL,
    moved = NULL
WHERE key IN (
    SELECT i.key FROM json_each(?1) AS j CROSS JOIN instances AS i ON i.key = j.value
    WHERE i.purged_us IS NULL
        AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.instance = i.key)
        AND NOT EXISTS (SELECT 1 FROM inbox AS b WHERE b.workflow = i.workflow AND b.instance = i.id)
        AND NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.workflow = i.workflow AND d.instance = i.id)
)
RETURNING key;

-- name: delete_snapshots
-- Of instances: there is nothing to fold any more.
DELETE FROM snapshots WHERE instance IN (SELECT value FROM json_each(?1));

-- name: tombstones
-- Of keys: those that are tombstones.
SELECT key FROM instances WHERE key IN (SELECT value FROM json_each(?1)) AND purged_us IS NOT NULL;

-- name: purge_events
-- Of instances: so many of their events. Returns how many there were.
DELETE FROM events WHERE position IN (
    SELECT e.position
    FROM json_each(?1) AS j CROSS JOIN events AS e INDEXED BY events_by_version ON e.instance = j.value
    LIMIT ?2
);
SELECT changes();

-- name: with_events
-- Of instances: those that have events left.
SELECT value FROM json_each(?1) WHERE EXISTS (SELECT 1 FROM events AS e WHERE e.instance = value);

-- name: delete_endings
-- Of [workflow, ended_us, instance]: nothing is left of them to be purged.
DELETE FROM endings WHERE (workflow, ended_us, instance) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?1)
);


-- ---------------------------------------------------------------- projections

-- name: checkpoints
-- Every generation of all projections. There are few.
SELECT name, generation, version, status, position, updated_us, error FROM checkpoints ORDER BY name, generation;

-- name: checkpoints_of
-- Every generation of a projection.
SELECT name, generation, version, status, position, updated_us, error FROM checkpoints WHERE name = ?1
ORDER BY generation;

-- name: lock_checkpoints
-- The same of some generations. Who writes is alone: nothing is locked.
SELECT name, generation, version, status, position, updated_us, error FROM checkpoints
WHERE name = ?1 AND generation IN (SELECT value FROM json_each(?2)) ORDER BY generation;

-- name: begin_checkpoint
-- A new generation.
INSERT INTO checkpoints (name, generation, version, status, position, updated_us, error)
VALUES (?1, ?2, ?3, coalesce(?4, 'live'), ?5, ?6, ?7) RETURNING generation;

-- name: move_checkpoint
-- Further on, or stopped by an error.
UPDATE checkpoints SET status = coalesce(?3, status), position = ?4, updated_us = ?5, error = ?6
WHERE name = ?1 AND generation = ?2;

-- name: retire_checkpoints
-- Of generations: they are no longer read.
UPDATE checkpoints SET status = 'retired' WHERE name = ?1 AND generation IN (SELECT value FROM json_each(?2));

-- name: delete_checkpoint
-- Nothing of it is left.
DELETE FROM checkpoints WHERE name = ?1 AND generation = ?2;

-- name: replace_documents
-- Changed or new.
INSERT OR REPLACE INTO documents (projection, generation, key, type, type_version, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: delete_documents
-- Of keys: there are none any more.
DELETE FROM documents WHERE projection = ?1 AND generation = ?2 AND key IN (SELECT value FROM json_each(?3));

-- name: clear_documents
-- So many of a generation. Returns how many there were.
DELETE FROM documents WHERE rowid IN (
    SELECT rowid FROM documents WHERE projection = ?1 AND generation = ?2 LIMIT ?3
);
SELECT changes();

-- name: documents
-- Of keys: those of a generation, or of the live one.
SELECT key, type, type_version, body FROM documents
WHERE projection = ?1
    AND generation = coalesce(?2, (SELECT generation FROM checkpoints WHERE name = ?1 AND status = 'live'))
    AND key IN (SELECT value FROM json_each(?3));

-- name: list_documents
-- Those of the live generation behind a key, up to where the prefix ends.
SELECT key, type, type_version, body FROM documents
WHERE projection = ?1
    AND generation = (SELECT generation FROM checkpoints WHERE name = ?1 AND status = 'live')
    AND key > ?2 AND key >= ?3 AND (?4 IS NULL OR key < ?4)
ORDER BY key LIMIT ?5;

-- name: behind
-- How many events the feed has behind a position, and when the first of them happened.
SELECT count(*), (
    SELECT e.time_us FROM events AS e CROSS JOIN instances AS i ON i.key = e.instance
    WHERE e.position > ?1 AND i.purged_us IS NULL ORDER BY e.position LIMIT 1
)
FROM (
    SELECT 1 FROM events AS e CROSS JOIN instances AS i ON i.key = e.instance
    WHERE e.position > ?1 AND i.purged_us IS NULL LIMIT ?2
);
