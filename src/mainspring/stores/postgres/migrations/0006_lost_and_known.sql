-- Who takes workers down, what a worker can read, and what it holds back: known to all who look, and not to its log alone.

-- How often work was lost with the worker that held it.
ALTER TABLE mainspring.outbox ADD COLUMN lost bigint NOT NULL DEFAULT 0;
ALTER TABLE mainspring.inbox ADD COLUMN lost bigint NOT NULL DEFAULT 0;
CREATE INDEX outbox_lost ON mainspring.outbox (lost) WHERE lost >= 2;
CREATE INDEX inbox_lost ON mainspring.inbox (lost) WHERE lost >= 2;

-- What a worker can read, what it holds back, and what it tries by itself, if anything. `life` is that of the server in
-- which its session was last seen: another server, or the same one started anew, knows nothing of sessions before.
ALTER TABLE mainspring.workers ADD COLUMN knows text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE mainspring.workers ADD COLUMN held text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE mainspring.workers ADD COLUMN alone text COLLATE "C";
ALTER TABLE mainspring.workers ADD COLUMN life text COLLATE "C" NOT NULL DEFAULT '';
