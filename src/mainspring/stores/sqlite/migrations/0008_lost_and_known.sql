-- Who takes workers down, what a worker can read, and what it holds back: known to all who look, and not to its log alone.
-- `lost` counts how often work was lost with the worker that held it, and `alone` names what a worker tries by itself.

ALTER TABLE outbox ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;

ALTER TABLE inbox ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;

CREATE INDEX outbox_lost ON outbox (lost) WHERE lost >= 2;

CREATE INDEX inbox_lost ON inbox (lost) WHERE lost >= 2;

ALTER TABLE workers ADD COLUMN knows TEXT NOT NULL DEFAULT '';

ALTER TABLE workers ADD COLUMN held TEXT NOT NULL DEFAULT '';

ALTER TABLE workers ADD COLUMN alone TEXT;
