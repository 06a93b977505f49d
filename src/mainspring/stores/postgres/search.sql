-- Searching among instances, by name. One look reads a bounded number of rows: those between two keys. A filter that is NULL
-- does not filter.

-- part: instance
-- An instance, as its record has it.
    i.key, i.workflow, i.id, i.version, i.status, i.state, i.error, i.definition_version, i.context, i.created_us,
    i.updated_us

-- part: matching
-- What is asked of an instance besides; $14 are attributes: [name, kind, text, low, high].
    AND ($2::text IS NULL OR i.workflow = $2)
    AND ($3::text IS NULL OR i.status = $3)
    AND ($4::text IS NULL OR i.state = $4)
    AND ($5::text IS NULL OR starts_with(i.id, $5))
    AND ($6::text IS NULL OR strpos(i.error, $6) > 0)
    AND ($7::bigint IS NULL OR i.created_us >= $7)
    AND ($8::bigint IS NULL OR i.created_us < $8)
    AND ($9::bigint IS NULL OR i.updated_us >= $9)
    AND ($10::bigint IS NULL OR i.updated_us < $10)
    AND ($11::bigint IS NULL OR i.definition_version = $11)
    AND ($14::jsonb = '[]' OR NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements($14::jsonb) AS n (row)
        WHERE (
            SELECT b.instance FROM mainspring.attributes AS b
            WHERE b.instance = i.key AND b.name = n.row ->> 0 AND b.kind = n.row ->> 1 AND (
                b.text = n.row ->> 2 OR b.number BETWEEN (n.row ->> 3)::double precision AND (n.row ->> 4)::double precision
            )
        ) IS NULL
    ))

-- name: search
-- Of the instances behind the key $1 up to the key $13: those that match, with the attributes $14.
SELECT
    -- with: instance
FROM mainspring.instances AS i
WHERE i.key > $1 AND i.key <= $13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key LIMIT $12;

-- name: search_newest
-- The same, the newest first.
SELECT
    -- with: instance
FROM mainspring.instances AS i
WHERE i.key < $1 AND i.key >= $13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key DESC LIMIT $12;

-- name: search_by_text
-- The same, of the instances behind the key $1 up to the key $13 whose attribute $15 is the text $16.
SELECT
    -- with: instance
FROM mainspring.attributes AS a
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = a.instance OFFSET 0) AS i
WHERE a.name = $15 AND a.text = $16 AND a.instance > $1 AND a.instance <= $13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance LIMIT $12;

-- name: search_by_text_newest
-- The same, the newest first.
SELECT
    -- with: instance
FROM mainspring.attributes AS a
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = a.instance OFFSET 0) AS i
WHERE a.name = $15 AND a.text = $16 AND a.instance < $1 AND a.instance >= $13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance DESC LIMIT $12;

-- name: search_by_number
-- The same, of the instances behind the key $1 up to the key $13 with an attribute whose number lies between two.
SELECT
    -- with: instance
FROM mainspring.attributes AS a
CROSS JOIN LATERAL (SELECT * FROM mainspring.instances WHERE key = a.instance OFFSET 0) AS i
WHERE a.name = $15 AND a.kind = $16 AND a.number BETWEEN $17 AND $18 AND a.instance > $1 AND a.instance <= $13
    AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance LIMIT $12;

-- name: nth_by_text
-- Behind the key $1, the $2-th instance but one whose attribute $3 is the text $4: how far a look goes.
SELECT instance FROM mainspring.attributes
WHERE instance > $1 AND name = $3 AND text = $4 ORDER BY instance LIMIT 1 OFFSET $2;

-- name: nth_by_text_newest
-- The same, the newest first.
SELECT instance FROM mainspring.attributes
WHERE instance < $1 AND name = $3 AND text = $4 ORDER BY instance DESC LIMIT 1 OFFSET $2;

-- name: last_key
-- The highest key in use; 0 if there is none.
SELECT coalesce((SELECT key FROM mainspring.instances WHERE key > 0 ORDER BY key DESC LIMIT 1), 0);

-- name: attribute_names
-- By which names and kinds instances can be found; $1 at most. One step through an index per name and kind.
WITH RECURSIVE texts (name) AS (
    SELECT min(name) FROM mainspring.attributes WHERE text IS NOT NULL
    UNION ALL
    SELECT (SELECT min(a.name) FROM mainspring.attributes AS a WHERE a.text IS NOT NULL AND a.name > texts.name)
    FROM texts WHERE texts.name IS NOT NULL
),
numbers (name) AS (
    SELECT min(name) FROM mainspring.attributes WHERE number IS NOT NULL
    UNION ALL
    SELECT (SELECT min(a.name) FROM mainspring.attributes AS a WHERE a.number IS NOT NULL AND a.name > numbers.name)
    FROM numbers WHERE numbers.name IS NOT NULL
),
kinds (kind) AS (VALUES ('flag'), ('number'), ('time'))
SELECT name, 'text' AS kind FROM texts WHERE name IS NOT NULL
UNION ALL
SELECT name, kind FROM numbers CROSS JOIN kinds WHERE EXISTS (
    SELECT 1 FROM mainspring.attributes AS a
    WHERE a.number IS NOT NULL AND a.name = numbers.name AND a.kind = kinds.kind
)
ORDER BY name, kind LIMIT $1;

-- name: free_timers
-- The timers that no worker holds, the next due first. One step through the index per destination and priority, and `$1` rows
-- at most of each.
WITH RECURSIVE destinations (name) AS (
    SELECT min(o.destination) FROM mainspring.outbox AS o WHERE o.owner IS NULL
    UNION ALL
    SELECT (SELECT min(o.destination) FROM mainspring.outbox AS o WHERE o.owner IS NULL AND o.destination > d.name)
    FROM destinations AS d WHERE d.name IS NOT NULL
),
slots (destination, priority) AS (
    SELECT d.name, (
        SELECT max(o.priority) FROM mainspring.outbox AS o WHERE o.owner IS NULL AND o.destination = d.name
    )
    FROM destinations AS d WHERE d.name IS NOT NULL
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM mainspring.outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
)
SELECT o.instance, o.version
FROM slots AS s CROSS JOIN LATERAL (
    SELECT d.instance, d.version, d.due_us FROM mainspring.outbox AS d
    WHERE d.owner IS NULL AND d.destination = s.destination AND d.priority = s.priority AND d.kind = 'timer'
    ORDER BY d.due_us, d.instance, d.version LIMIT $1
) AS o
WHERE s.priority IS NOT NULL
ORDER BY o.due_us, o.instance, o.version LIMIT $1;
