-- Messages that other programs write in transactions of their own, beside their own rows. Whoever inserts here takes no lock
-- of an instance, asks nothing and is refused nothing: a worker moves what was committed into the inbox, in its order, under
-- all the rules there are for inputs, and removes it here in the same transaction.
--
-- It needs no index but its key, and its rows are never changed. `checksum` covers all but the position.
CREATE TABLE mainspring.posted (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type_version bigint NOT NULL,
    time_us bigint NOT NULL,
    checksum bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    context bytea NOT NULL,
    actor text COLLATE "C"
);
