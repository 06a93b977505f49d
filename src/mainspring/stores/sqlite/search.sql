-- Searching among instances, by name; see queries.sql for how lists travel. One look reads a bounded number of rows: those
-- between two keys, or those that an index has found to be few. A filter that is NULL does not filter.

-- part: instance
-- An instance, as its record has it.
    i.key, i.workflow, i.id, i.version, i.status, i.state, i.error, i.definition_version, i.context, i.created_us,
    i.updated_us, i.purged_us, i.born, i.moved

-- part: matching
-- What is asked of an instance besides; ?14 are attributes: [name, kind, text, low, high].
    AND (?2 IS NULL OR i.workflow = ?2)
    AND (?3 IS NULL OR i.status = ?3)
    AND (?4 IS NULL OR i.state = ?4)
    AND (?5 IS NULL OR substr(i.id, 1, length(?5)) = ?5)
    AND (?6 IS NULL OR instr(i.error, ?6) > 0)
    AND (?7 IS NULL OR i.created_us >= ?7)
    AND (?8 IS NULL OR i.created_us < ?8)
    AND (?9 IS NULL OR i.updated_us >= ?9)
    AND (?10 IS NULL OR i.updated_us < ?10)
    AND (?11 IS NULL OR i.definition_version = ?11)
    AND (?14 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?14) AS j WHERE NOT EXISTS (
            SELECT 1 FROM attributes AS b
            WHERE b.instance = i.key AND b.name = j.value ->> 0 AND b.kind = j.value ->> 1
                AND (b.text = j.value ->> 2 OR b.number BETWEEN j.value ->> 3 AND j.value ->> 4)
        )
    ))

-- name: search
-- Of the instances behind the key ?1 up to the key ?13: those that match, with the attributes ?14.
SELECT
    -- with: instance
FROM instances AS i
WHERE i.key > ?1 AND i.key <= ?13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key LIMIT ?12;

-- name: search_newest
-- The same, the newest first.
SELECT
    -- with: instance
FROM instances AS i
WHERE i.key < ?1 AND i.key >= ?13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key DESC LIMIT ?12;

-- name: search_keys
-- The same, of the instances with the keys ?13.
SELECT
    -- with: instance
FROM (SELECT DISTINCT value AS key FROM json_each(?13)) AS k CROSS JOIN instances AS i ON i.key = k.key
WHERE i.key > ?1 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key LIMIT ?12;

-- name: search_keys_newest
-- The same, the newest first.
SELECT
    -- with: instance
FROM (SELECT DISTINCT value AS key FROM json_each(?13)) AS k CROSS JOIN instances AS i ON i.key = k.key
WHERE i.key < ?1 AND i.purged_us IS NULL
    -- with: matching
ORDER BY i.key DESC LIMIT ?12;

-- name: search_by_text
-- The same, of the instances behind the key ?1 up to the key ?13 whose attribute ?15 is the text ?16.
SELECT
    -- with: instance
FROM attributes AS a INDEXED BY attributes_by_text CROSS JOIN instances AS i ON i.key = a.instance
WHERE a.name = ?15 AND a.text = ?16 AND a.instance > ?1 AND a.instance <= ?13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance LIMIT ?12;

-- name: search_by_text_newest
-- The same, the newest first.
SELECT
    -- with: instance
FROM attributes AS a INDEXED BY attributes_by_text CROSS JOIN instances AS i ON i.key = a.instance
WHERE a.name = ?15 AND a.text = ?16 AND a.instance < ?1 AND a.instance >= ?13 AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance DESC LIMIT ?12;

-- name: search_by_number
-- The same, of the instances behind the key ?1 up to the key ?13 with an attribute whose number lies between two.
SELECT
    -- with: instance
FROM attributes AS a INDEXED BY attributes_by_number CROSS JOIN instances AS i ON i.key = a.instance
WHERE a.name = ?15 AND a.kind = ?16 AND a.number BETWEEN ?17 AND ?18 AND a.instance > ?1 AND a.instance <= ?13
    AND i.purged_us IS NULL
    -- with: matching
ORDER BY a.instance LIMIT ?12;

-- name: nth_by_text
-- Behind the key ?1, the ?2-th instance but one whose attribute ?3 is the text ?4: how far a look goes.
SELECT instance FROM attributes INDEXED BY attributes_by_text
WHERE instance > ?1 AND name = ?3 AND text = ?4 ORDER BY instance LIMIT 1 OFFSET ?2;

-- name: nth_by_text_newest
-- The same, the newest first.
SELECT instance FROM attributes INDEXED BY attributes_by_text
WHERE instance < ?1 AND name = ?3 AND text = ?4 ORDER BY instance DESC LIMIT 1 OFFSET ?2;

-- name: keys_by_prefix
-- Instances of a workflow, or of each, whose ids lie between two; ?4 at most. One step through the index per workflow.
WITH RECURSIVE w (name) AS (
    SELECT coalesce(?1, (SELECT min(workflow) FROM instances))
    UNION ALL
    SELECT (SELECT min(n.workflow) FROM instances AS n WHERE n.workflow > w.name)
    FROM w WHERE ?1 IS NULL AND w.name IS NOT NULL
)
SELECT i.key
FROM w CROSS JOIN instances AS i INDEXED BY instances_by_name ON i.workflow = w.name AND i.id >= ?2 AND i.id < ?3
LIMIT ?4;

-- name: keys_by_number
-- Instances with an attribute whose number lies between two; ?5 at most.
SELECT instance FROM attributes INDEXED BY attributes_by_number
WHERE name = ?1 AND kind = ?2 AND number BETWEEN ?3 AND ?4 LIMIT ?5;

-- name: keys_by_status
-- Instances with a status that is not usual; ?2 at most.
SELECT key FROM instances INDEXED BY instances_by_status
WHERE status = ?1 AND status NOT IN ('running', 'completed') LIMIT ?2;

-- name: keys_by_error
-- Instances that have an error; ?1 at most.
SELECT key FROM instances INDEXED BY instances_with_error WHERE error IS NOT NULL LIMIT ?1;

-- name: attribute_names
-- By which names and kinds instances can be found; ?1 at most. One step through an index per name and kind.
WITH RECURSIVE texts (name) AS (
    SELECT min(name) FROM attributes WHERE text IS NOT NULL
    UNION ALL
    SELECT (SELECT min(a.name) FROM attributes AS a WHERE a.text IS NOT NULL AND a.name > texts.name)
    FROM texts WHERE texts.name IS NOT NULL
    LIMIT ?1
),
numbers (name) AS (
    SELECT min(name) FROM attributes WHERE number IS NOT NULL
    UNION ALL
    SELECT (SELECT min(a.name) FROM attributes AS a WHERE a.number IS NOT NULL AND a.name > numbers.name)
    FROM numbers WHERE numbers.name IS NOT NULL
    LIMIT ?1
),
kinds (kind) AS (VALUES ('flag'), ('number'), ('time'))
SELECT name, 'text' AS kind FROM texts WHERE name IS NOT NULL
UNION ALL
SELECT name, kind FROM numbers CROSS JOIN kinds WHERE EXISTS (
    SELECT 1 FROM attributes AS a
    WHERE a.number IS NOT NULL AND a.name = numbers.name AND a.kind = kinds.kind
)
ORDER BY name, kind LIMIT ?1;

-- name: free_timers
-- The timers that no worker holds, the next due first. One step through the index per destination and priority, and `?1` rows
-- at most of each.
WITH RECURSIVE destinations (name) AS (
    SELECT min(o.destination) FROM outbox AS o WHERE o.owner IS NULL
    UNION ALL
    SELECT (SELECT min(o.destination) FROM outbox AS o WHERE o.owner IS NULL AND o.destination > d.name)
    FROM destinations AS d WHERE d.name IS NOT NULL
),
slots (destination, priority) AS (
    SELECT d.name, (SELECT max(o.priority) FROM outbox AS o WHERE o.owner IS NULL AND o.destination = d.name)
    FROM destinations AS d WHERE d.name IS NOT NULL
    UNION ALL
    SELECT s.destination, (
        SELECT max(o.priority) FROM outbox AS o
        WHERE o.owner IS NULL AND o.destination = s.destination AND o.priority < s.priority
    )
    FROM slots AS s WHERE s.priority IS NOT NULL
)
SELECT o.instance, o.version
FROM slots AS s CROSS JOIN outbox AS o ON (o.instance, o.version) IN (
    SELECT d.instance, d.version FROM outbox AS d
    WHERE d.owner IS NULL AND d.destination = s.destination AND d.priority = s.priority AND d.kind = 'timer'
    ORDER BY d.due_us, d.instance, d.version LIMIT ?1
)
WHERE s.priority IS NOT NULL
ORDER BY o.due_us, o.instance, o.version LIMIT ?1;
