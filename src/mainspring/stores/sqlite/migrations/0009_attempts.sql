-- Attempts at what instances sent that failed: of each the latest, until their instance is purged. Written in the commit that lets it
-- be tried again, so what goes well pays nothing.

CREATE TABLE attempts (
    instance INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    began_us INTEGER,
    ended_us INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (instance, version, ended_us, number)
) STRICT, WITHOUT ROWID;
