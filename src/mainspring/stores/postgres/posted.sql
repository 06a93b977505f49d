-- Messages that other programs post in transactions of their own: see migration 0005. `posting.py` has the statement that posts,
-- which is written as each library of theirs wants it.

-- name: relay_alone
-- Whether no other worker is at it. The one that moves posted messages is alone until its transaction ends, so that they keep their
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
