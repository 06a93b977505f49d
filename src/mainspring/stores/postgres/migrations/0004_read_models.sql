-- Read models: how far projections are in the feed, the documents that they keep, and attributes to search by.

-- One row for each generation of a projection: the live one, perhaps one that is being built beside it, and those that
-- are being cleared away. `position` is that of the last event that is in it.
CREATE TABLE mainspring.checkpoints (
    generation bigint NOT NULL,
    version bigint NOT NULL,
    position bigint NOT NULL,
    updated_us bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    error text COLLATE "C",
    PRIMARY KEY (name, generation)
) WITH (fillfactor = 50);

-- What a projection keeps under a key.
CREATE TABLE mainspring.documents (
    generation bigint NOT NULL,
    type_version bigint NOT NULL,
    projection text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (projection, generation, key)
) WITH (fillfactor = 80);

-- What a workflow says of an instance's state: a text, or a number that also stands for a flag or a time.
CREATE TABLE mainspring.attributes (
    instance bigint NOT NULL,
    number double precision,
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    text text COLLATE "C",
    PRIMARY KEY (instance, name)
);

-- Searching. The instance comes last, so that those with the same text are found in the order of their beginning.
CREATE INDEX attributes_by_text ON mainspring.attributes (name, text, instance) WHERE text IS NOT NULL;
CREATE INDEX attributes_by_number ON mainspring.attributes (name, kind, number, instance) WHERE number IS NOT NULL;
