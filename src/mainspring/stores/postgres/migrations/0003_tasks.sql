-- What people are asked to do.

-- One row per task, for as long as its instance is kept. `answers` and `excludes` are JSON arrays of texts; `due_us` is
-- 2^62 where a task is never due, so that it sorts behind all that are. `status` is open, answered or closed.
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
    answer_type text COLLATE "C",
    PRIMARY KEY (instance, version)
) WITH (fillfactor = 80);

-- What is open, by urgency.
CREATE INDEX tasks_open ON mainspring.tasks (due_us, instance, version) WHERE status = 'open';

-- What can be picked from a role's queue, by urgency.
CREATE INDEX tasks_free ON mainspring.tasks (role, due_us, instance, version) WHERE status = 'open' AND claimed_by IS NULL;
