-- What the doctor asks of a server, by name. Each runs in a read-only transaction with a short time limit, and may be
-- refused without harm. `mainspring.` stands for the application's own schema.

-- name: server
-- What the server is, and the settings that matter, as a new session of this user in this database has them.
SELECT
    current_setting('server_version_num')::integer / 10000 AS version,
    split_part(current_setting('server_version'), ' ', 1) AS full_version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby,
    current_setting('default_transaction_read_only') = 'on' AS read_only,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('autovacuum') AS autovacuum,
    current_setting('track_counts') AS track_counts,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_session_timeout') AS idle_session_ms,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'transaction_timeout') AS transaction_ms,
    current_setting('synchronous_standby_names') AS awaited_standbys,
    (SELECT count(*) FROM pg_stat_replication) AS standbys,
    current_user::text AS username,
    current_database()::text AS database;

-- name: place
-- Whether there are tables, and what this user may do where they are.
SELECT
    n.oid IS NOT NULL AS has_schema,
    EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = n.oid AND relname = 'schema_migrations') AS has_ledger,
    CASE
        WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
        ELSE has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE')
    END AS may_create,
    coalesce(has_schema_privilege(n.oid, 'USAGE'), false) AS may_use,
    ARRAY(
        SELECT relname::text FROM pg_class
        WHERE relnamespace = n.oid AND CASE
            WHEN relkind = 'S' THEN NOT has_sequence_privilege(oid, 'USAGE')
            WHEN relname = 'schema_migrations' THEN NOT has_table_privilege(oid, 'SELECT')
            WHEN relkind IN ('r', 'p') THEN NOT (
                has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
            )
            ELSE false
        END
        ORDER BY relname
    ) AS forbidden
FROM (SELECT 1) AS one LEFT JOIN pg_namespace AS n ON n.nspname = $1;

-- name: connections
-- The limits that a new connection meets: whose, how many there are, and how many there may be.
SELECT
    'max_connections' AS name, (SELECT sum(numbackends) FROM pg_stat_database)::bigint AS used,
    current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
        - coalesce(current_setting('reserved_connections', true), '0')::bigint AS allowed
UNION ALL
SELECT 'the limit of this database', (SELECT numbackends FROM pg_stat_database WHERE datid = d.oid), d.datconnlimit
FROM pg_database AS d WHERE datname = current_database() AND d.datconnlimit >= 0
UNION ALL
SELECT 'the limit of this user', (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid), r.rolconnlimit
FROM pg_roles AS r WHERE rolname = current_user AND r.rolconnlimit >= 0;

-- name: hidden_sessions
-- How many sessions of other users there are of which this user sees nothing.
SELECT count(*) FROM pg_stat_activity
WHERE datid IS NOT NULL AND NOT pg_has_role('pg_read_all_stats', 'USAGE')
    AND usesysid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);

-- name: transactions
-- The oldest transactions: of any database, for those that write hold back the feed too.
SELECT
    pid, coalesce(usename, '')::text AS username, coalesce(application_name, '') AS application,
    state LIKE 'idle in transaction%' AS idle, backend_xid IS NOT NULL AS writes,
    extract(epoch FROM clock_timestamp() - xact_start)::double precision AS seconds,
    to_char(query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS asked
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
    AND xact_start <= clock_timestamp() - make_interval(secs => $1::double precision)
ORDER BY xact_start LIMIT 5;

-- name: prepared_transactions
-- Transactions that were prepared and neither committed nor rolled back.
SELECT gid, owner::text AS username, extract(epoch FROM clock_timestamp() - prepared)::double precision AS seconds
FROM pg_prepared_xacts WHERE prepared <= clock_timestamp() - make_interval(secs => $1::double precision)
ORDER BY prepared LIMIT 5;

-- name: slots
-- What each replication slot holds back: bytes of the log, and row versions (in transactions).
SELECT
    slot_name::text AS name, active, wal_status,
    pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn
    )::bigint AS bytes,
    coalesce(greatest(age(xmin), age(catalog_xmin)), 0) AS transactions
FROM pg_replication_slots;

-- name: tables
-- How many dead rows each of our tables has, when it was last cleaned, and how large it and its indexes are.
SELECT
    s.relname::text AS name, s.n_live_tup AS live, s.n_dead_tup AS dead,
    extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::double precision AS seconds,
    pg_relation_size(s.relid) AS bytes, pg_indexes_size(s.relid) AS index_bytes,
    EXISTS (
        SELECT 1 FROM pg_class AS c CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
        WHERE c.oid = s.relid AND o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean
    ) AS unattended
FROM pg_stat_all_tables AS s WHERE s.schemaname = $1 ORDER BY s.relname;

-- name: workers
-- Each worker: how long its lease runs, and whether a session holds the lock that says that it lives.
SELECT
    w.name, w.session,
    (w.ends_us - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) / 1e6::double precision AS seconds_left,
    EXISTS (
        SELECT 1 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
            AND l.classid::bigint = $1::bigint AND l.objid::bigint = w.key
    ) AS present
FROM mainspring.workers AS w ORDER BY w.key;

-- name: overdue
-- What has been due, or accepted, for long, and no worker has taken it; and what was set aside because it is damaged.
SELECT 'output' AS kind, destination AS name, count(*) AS count, max(n.now_us - due_us) / 1e6::double precision AS seconds
FROM mainspring.outbox CROSS JOIN (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS n
WHERE owner IS NULL AND due_us <= n.now_us - $1::bigint * 1000000
GROUP BY destination
UNION ALL
SELECT 'input', workflow || ' (' || type || ')', count(*), max(n.now_us - time_us) / 1e6::double precision
FROM mainspring.inbox CROSS JOIN (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS n
WHERE owner IS NULL AND time_us <= n.now_us - $1::bigint * 1000000
GROUP BY workflow, type
UNION ALL
SELECT 'damaged', 'outbox', count(*), 0 FROM mainspring.outbox WHERE owner = 0 HAVING count(*) > 0
UNION ALL
SELECT 'damaged', 'inbox', count(*), 0 FROM mainspring.inbox WHERE owner = 0 HAVING count(*) > 0
ORDER BY 4 DESC LIMIT 20;

-- name: time
-- The server's time.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: session
-- Which of the server's processes answers.
SELECT pg_backend_pid();

-- name: ring
-- Send oneself a notification.
SELECT pg_notify($1, '');
