-- Attempts at what instances sent that failed: of each the latest, until their instance is purged. Written in the commit that lets it
-- be tried again, so what goes well pays nothing.
CREATE TABLE mainspring.attempts (
    instance bigint NOT NULL,
    version bigint NOT NULL,
    number bigint NOT NULL,
    began_us bigint,
    ended_us bigint NOT NULL,
    worker text COLLATE "C" NOT NULL,
    error text COLLATE "C",
    PRIMARY KEY (instance, version, ended_us, number)
);
