-- Every statement about tasks, by name; see queries.sql for how lists travel.

-- name: insert_tasks
-- New ones.
INSERT INTO tasks (
    instance, version, key, title, answers, opened_us, role, person, excludes, reject, data, due_us, status,
    answered_by, answer_type, ended_us
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_tasks
-- Of [instance, version, status, actor, type, ended_us]: answered, closed, or open again.
UPDATE tasks SET status = e.status, answered_by = e.actor, answer_type = e.type, ended_us = e.ended_us
FROM (
    SELECT value ->> 0 AS instance, value ->> 1 AS version, value ->> 2 AS status, value ->> 3 AS actor,
        value ->> 4 AS type, value ->> 5 AS ended_us
    FROM json_each(?1)
) AS e
WHERE tasks.instance = e.instance AND tasks.version = e.version;

-- name: delete_tasks
-- Of instances: purged with them.
DELETE FROM tasks WHERE instance IN (SELECT value FROM json_each(?1));

-- name: task
-- One, whatever became of it.
SELECT
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM instances AS i CROSS JOIN tasks AS t ON t.instance = i.key AND t.version = ?3
WHERE i.workflow = ?1 AND i.id = ?2;

-- name: lock_tasks
-- Of [instance, version]: the task of that version, and all of the instance that are open. Who writes is alone.
SELECT
    t.instance,
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM json_each(?1) AS j
CROSS JOIN tasks AS t ON t.instance = j.value ->> 0 AND (t.version = j.value ->> 1 OR +t.status = 'open')
CROSS JOIN instances AS i ON i.key = t.instance
ORDER BY t.instance, t.version;

-- name: hand_task
-- In other hands.
UPDATE tasks SET person = ?4, claimed_by = ?5, claimed_us = ?6
WHERE instance = (SELECT key FROM instances WHERE workflow = ?1 AND id = ?2) AND version = ?3;

-- name: pick_tasks
-- The next of a role that no worker holds and that do not exclude an actor, in the actor's hands from now on.
UPDATE tasks SET claimed_by = ?2, claimed_us = ?3
WHERE (instance, version) IN (
    SELECT instance, version FROM tasks INDEXED BY tasks_free
    WHERE role = ?1 AND status = 'open' AND claimed_by IS NULL
        AND NOT EXISTS (SELECT 1 FROM json_each(excludes) WHERE value = ?2)
    ORDER BY due_us, instance, version LIMIT ?4
)
RETURNING instance, version;

-- name: tasks_by_key
-- Of [instance, version]: by urgency.
SELECT
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM json_each(?1) AS j
CROSS JOIN tasks AS t ON t.instance = j.value ->> 0 AND t.version = j.value ->> 1
CROSS JOIN instances AS i ON i.key = t.instance
ORDER BY t.due_us, t.instance, t.version;

-- name: open_tasks
-- What is open, by urgency, behind the task of the instance ?6/?7 at version ?8. A filter that is NULL does not filter;
-- who looks is a list of roles and a person.
SELECT
    i.workflow, i.id, t.version, t.key, t.title, t.answers, t.opened_us, t.role, t.person, t.excludes, t.reject, t.data,
    t.due_us, t.status, t.claimed_by, t.claimed_us, t.answered_by, t.answer_type, t.ended_us, i.context
FROM tasks AS t INDEXED BY tasks_open
CROSS JOIN instances AS i ON i.key = t.instance
WHERE t.status = 'open'
    AND (t.due_us, t.instance, t.version) > (
        SELECT a.due_us, a.instance, a.version
        FROM instances AS n CROSS JOIN tasks AS a ON a.instance = n.key AND a.version = ?8
        WHERE n.workflow = ?6 AND n.id = ?7
        UNION ALL SELECT -1, 0, 0 WHERE ?6 IS NULL
    )
    AND (?1 IS NULL OR i.workflow = ?1)
    AND (?2 IS NULL OR t.due_us < ?2)
    AND (?3 IS NULL OR (
        (t.claimed_by IS NULL OR t.claimed_by = ?3)
        AND NOT EXISTS (SELECT 1 FROM json_each(t.excludes) WHERE value = ?3)
    ))
    AND (
        (?3 IS NULL AND ?4 = '[]') OR t.role IN (SELECT value FROM json_each(?4)) OR t.person = ?3 OR t.claimed_by = ?3
    )
ORDER BY t.due_us, t.instance, t.version LIMIT ?5;
