-- What people are asked to do.

-- One row per task, for as long as its instance is kept. `answers` and `excludes` are JSON arrays of texts; `due_us` is
-- 2^62 where a task is never due, so that it sorts behind all that are. `status` is open, answered or closed.
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

-- What is open, by urgency.
CREATE INDEX tasks_open ON tasks (due_us, instance, version) WHERE status = 'open';

-- What can be picked from a role's queue, by urgency.
CREATE INDEX tasks_free ON tasks (role, due_us, instance, version) WHERE status = 'open' AND claimed_by IS NULL;
