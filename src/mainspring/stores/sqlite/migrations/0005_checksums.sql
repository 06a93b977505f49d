-- Checksums for the rows that say what an instance is and what it owes; events, inputs, dead letters and snapshots have
-- theirs. SQLite guards its log by checksums and its pages by none: a byte that changes on the disk is noticed here or
-- nowhere. Where there is none, the row is older than this migration and is believed.

-- Two for an instance, for a step knows where it moved and not what it was born with: `born` covers what a step leaves as
-- it is, `moved` what it writes. A tombstone has none.
ALTER TABLE instances ADD COLUMN born INTEGER;
ALTER TABLE instances ADD COLUMN moved INTEGER;

-- All but the owner, which changes often, and the last error, which only people read.
ALTER TABLE outbox ADD COLUMN checksum INTEGER;
