-- Purging of ended instances.

-- When a purge made a tombstone of an instance: its identity, version, status and times are left, and nothing else. The
-- row stays for ever, so that a message that comes once more cannot begin the instance anew.
ALTER TABLE instances ADD COLUMN purged_us INTEGER;

-- Ended instances that have a stream still, by the time of their end: what a purge walks along. A table of its own and no
-- index of `instances`, for that row is rewritten by every step, and its end comes once: so an instance pays for one
-- entry in one tree, when it ends, and a step that ends nothing pays nothing. An entry goes when the last event has gone;
-- so the leftovers of a purge that was cut short are found here too.
CREATE TABLE endings (
    workflow TEXT NOT NULL,
    ended_us INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    PRIMARY KEY (workflow, ended_us, instance)
) STRICT, WITHOUT ROWID;

INSERT INTO endings (workflow, ended_us, instance)
SELECT workflow, updated_us, key FROM instances WHERE status NOT IN ('running', 'suspended');

-- Whether anything is kept for an instance: such a one is not purged. Dead letters are few.
CREATE INDEX dead_letters_by_instance ON dead_letters (workflow, instance);
