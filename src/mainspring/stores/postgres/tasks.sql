-- Every statement about tasks, by name; see queries.sql for how lists travel, and why they are walked first.

-- name: lock_tasks
-- Those of these instances that are open, and those of these versions: held still against those who take or delegate one.
SELECT
    t.instance,
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM unnest($1::bigint[], $2::bigint[]) AS n (instance, version)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.tasks
    WHERE instance = n.instance AND (status || '' = 'open' OR version = n.version) ORDER BY version FOR UPDATE
) AS t
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = n.instance OFFSET 0) AS i;

-- name: insert_tasks
-- New ones.
INSERT INTO mainspring.tasks (
    instance, version, key, title, answers, opened_us, role, person, excludes, reject, data, due_us, status,
    answered_by, answer_type, ended_us
)
SELECT * FROM unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::bytea[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::bigint[]
);

-- name: end_tasks
-- Answered or closed. They are locked: each is still where it is found.
UPDATE mainspring.tasks AS t SET status = n.status, answered_by = n.actor, answer_type = n.type, ended_us = n.ended_us
FROM (
    SELECT u.*, (SELECT ctid FROM mainspring.tasks WHERE instance = u.instance AND version = u.version) AS at
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[])
        AS u (instance, version, status, actor, type, ended_us)
    OFFSET 0
) AS n
WHERE t.ctid = n.at;

-- name: delete_tasks
-- Purged with their instances.
DELETE FROM mainspring.tasks WHERE instance = ANY ($1::bigint[]);

-- name: task
-- One, whatever became of it.
SELECT
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM mainspring.instances AS i
CROSS JOIN LATERAL (SELECT * FROM mainspring.tasks WHERE instance = i.key AND version = $2 OFFSET 0) AS t
WHERE i.name = $1;

-- name: lock_task
-- One that is to change hands, and the number of the transaction.
SELECT pg_current_xact_id()::text::bigint, t.instance
FROM mainspring.instances AS i
CROSS JOIN LATERAL (
    SELECT instance FROM mainspring.tasks WHERE instance = i.key AND version = $2 FOR UPDATE
) AS t
WHERE i.name = $1;

-- name: hand_task
-- In other hands.
UPDATE mainspring.tasks SET person = $3, claimed_by = $4, claimed_us = $5 WHERE instance = $1 AND version = $2;

-- name: pick_tasks
-- The next of a role that no worker holds and that do not exclude an actor, in the actor's hands from now on. What others are
-- just picking is passed over.
WITH picked AS MATERIALIZED (
    SELECT instance, version FROM mainspring.tasks
    WHERE role = $1 AND status = 'open' AND claimed_by IS NULL AND NOT jsonb_exists(excludes::jsonb, $2)
    ORDER BY due_us, instance, version LIMIT $4
    FOR UPDATE SKIP LOCKED
), own AS (
    UPDATE mainspring.tasks AS t SET claimed_by = $2, claimed_us = $3
    FROM (
        SELECT (SELECT ctid FROM mainspring.tasks WHERE instance = p.instance AND version = p.version) AS at
        FROM picked AS p
        OFFSET 0
    ) AS n
    WHERE t.ctid = n.at
    RETURNING t.*
)
SELECT
    pg_current_xact_id()::text::bigint,
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM own AS t
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = t.instance OFFSET 0) AS i
ORDER BY t.due_us, t.instance, t.version;

-- name: open_tasks
-- What is open, by urgency, behind the task of the instance named $6 at version $7. A filter that is NULL does not filter;
-- who looks is a list of roles and a person.
SELECT
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM mainspring.tasks AS t
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = t.instance OFFSET 0) AS i
WHERE t.status = 'open'
    AND (t.due_us, t.instance, t.version) > (
        SELECT a.due_us, a.instance, a.version
        FROM mainspring.instances AS n
        CROSS JOIN LATERAL (SELECT * FROM mainspring.tasks WHERE instance = n.key AND version = $7 OFFSET 0) AS a
        WHERE n.name = $6
        UNION ALL SELECT -1, 0, 0 WHERE $6::bytea IS NULL
    )
    AND ($1::text IS NULL OR i.workflow = $1)
    AND ($2::bigint IS NULL OR t.due_us < $2)
    AND ($3::text IS NULL OR (
        (t.claimed_by IS NULL OR t.claimed_by = $3) AND NOT jsonb_exists(t.excludes::jsonb, $3)
    ))
    AND (
        ($3::text IS NULL AND cardinality($4::text[]) = 0)
        OR t.role = ANY ($4::text[]) OR t.person = $3 OR t.claimed_by = $3
    )
ORDER BY t.due_us, t.instance, t.version LIMIT $5;
