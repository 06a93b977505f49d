-- Messages that other programs post in transactions of their own: see migration 0005.

-- name: post
-- One of them, told to those who listen when its transaction commits. It is the program's connection that runs this: nothing
-- is written where that leads to another database than is meant.
INSERT INTO mainspring.posted (
    type_version, time_us, checksum, workflow, instance, message_id, kind, type, body, context, actor
)
SELECT
    CAST($1 AS bigint), CAST($2 AS bigint), CAST($3 AS bigint), CAST($4 AS text), CAST($5 AS text), CAST($6 AS text),
    CAST($7 AS text), CAST($8 AS text), CAST($9 AS bytea), CAST($10 AS bytea), CAST($11 AS text)
FROM pg_notify(CAST($12 AS text), '')
WHERE CAST(current_database() AS text) = coalesce(CAST($13 AS text), CAST(current_database() AS text));

-- name: relay_alone
-- Whether nobody else is at it. Who moves posted messages is alone until its transaction ends, so that they keep their
-- order.
SELECT pg_try_advisory_xact_lock($1::integer, $2::integer);

-- name: posted
-- The first of them: so many, and of so many bytes, but one at least.
SELECT
    position, workflow, instance, message_id, kind, type, type_version, body, time_us, context, actor, checksum
FROM (
    SELECT p.*, sum(octet_length(p.body)) OVER (ORDER BY p.position) - octet_length(p.body) AS before
    FROM (SELECT * FROM mainspring.posted ORDER BY position LIMIT $1::bigint) AS p
) AS first
WHERE before < $2::bigint ORDER BY position;

-- name: delete_posted
-- They are inputs now, or dead letters.
DELETE FROM mainspring.posted WHERE position = ANY ($1::bigint[]);
