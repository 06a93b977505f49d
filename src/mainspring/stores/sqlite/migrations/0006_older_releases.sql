-- While a database is upgraded, workers of the older release go on until they see it. They write rows and know nothing of
-- their checksums, which would then tell of damage where there is none. So a row that changes without its checksum loses
-- it, and is believed. What this release writes never comes here: it writes a checksum with every change.

CREATE TRIGGER instances_moved_by_older AFTER UPDATE OF version, status, state, error, updated_us ON instances
WHEN OLD.moved IS NOT NULL AND NEW.moved IS OLD.moved
BEGIN
    UPDATE instances SET moved = NULL WHERE key = NEW.key;
END;

CREATE TRIGGER instances_renewed_by_older AFTER UPDATE OF definition_version, context ON instances
WHEN OLD.born IS NOT NULL AND NEW.born IS OLD.born
BEGIN
    UPDATE instances SET born = NULL WHERE key = NEW.key;
END;

CREATE TRIGGER outbox_delayed_by_older AFTER UPDATE OF due_us, attempts ON outbox
WHEN OLD.checksum IS NOT NULL AND NEW.checksum IS OLD.checksum
BEGIN
    UPDATE outbox SET checksum = NULL WHERE instance = NEW.instance AND version = NEW.version;
END;
