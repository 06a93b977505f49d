-- Read models: how far projections are in the feed, the documents that they keep, and attributes to search by.

-- One row for each generation of a projection: the live one, perhaps one that is being built beside it, and those that
-- are being cleared away. `position` is that of the last event that is in it.
CREATE TABLE checkpoints (
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    position INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (name, generation)
) STRICT, WITHOUT ROWID;

-- What a projection keeps under a key.
CREATE TABLE documents (
    projection TEXT NOT NULL,
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    type TEXT NOT NULL,
    type_version INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (projection, generation, key)
) STRICT;

-- What a workflow says of an instance's state: a text, or a number that also stands for a flag or a time.
CREATE TABLE attributes (
    instance INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT,
    number REAL,
    PRIMARY KEY (instance, name)
) STRICT, WITHOUT ROWID;

-- Searching. The instance comes last, so that those with the same text are found in the order of their beginning.
CREATE INDEX attributes_by_text ON attributes (name, text, instance) WHERE text IS NOT NULL;
CREATE INDEX attributes_by_number ON attributes (name, kind, number, instance) WHERE number IS NOT NULL;
