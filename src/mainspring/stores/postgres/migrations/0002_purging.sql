-- Purging of ended instances.

-- When a purge made a tombstone of an instance: its identity, version, status and times are left, and nothing else. The
-- row stays for ever, so that a message that comes once more cannot begin the instance anew.
ALTER TABLE mainspring.instances ADD COLUMN purged_us bigint;

-- Ended instances that have a stream still, by the time of their end: what a purge walks along. A table of its own and no
-- index of `instances`: an index that holds `status` or a time would make every step, or at least every last one, write
-- its row anew in all indexes of `instances` instead of beside the old one (HOT). So an instance pays for one row and one
-- index entry, when it ends, and a step that ends nothing pays nothing. A row goes when the last event has gone; so the
-- leftovers of a purge that was cut short are found here too.
CREATE TABLE mainspring.endings (
    ended_us bigint NOT NULL,
    instance bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    PRIMARY KEY (workflow, ended_us, instance)
);

INSERT INTO mainspring.endings (workflow, ended_us, instance)
SELECT workflow, updated_us, key FROM mainspring.instances WHERE key > 0 AND status NOT IN ('running', 'suspended');

-- Whether anything is kept for an instance: such a one is not purged. Dead letters are few.
CREATE INDEX dead_letters_by_instance ON mainspring.dead_letters (hashtextextended(instance, 0));

-- The highest position of an event that was purged. No later event may get a lower one, on another server either.
ALTER TABLE mainspring.feed ADD COLUMN purged bigint NOT NULL DEFAULT 0;
