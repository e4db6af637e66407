-- Idle time of the device that was idle longest for the cause {cause}: one row with idle_ns,
-- total_ns, device, steps, name (the costliest operator or call), name_ns, calls (how often
-- it was), and place with its share; none if no device was idle for it.
(
    WITH one AS (
        SELECT i.pid, i.device, sum(i.idle_ns) AS idle_ns, any_value(b.total_ns) AS total_ns
        FROM device.idle_sums i
        JOIN device.breakdown b ON b.pid = i.pid AND b.device = i.device
        WHERE i.cause = {cause}
        GROUP BY i.pid, i.device
        ORDER BY idle_ns DESC
        LIMIT 1
    ),
    rows_of AS (
        SELECT i.*, {include path_place name=name} AS place, i.idle_ns AS weight
        FROM device.idle_sums i
        SEMI JOIN one USING (pid, device)
        WHERE i.cause = {cause}
    ),
    named AS (
        SELECT name, sum(idle_ns) AS name_ns
        FROM rows_of
        GROUP BY name
        ORDER BY name_ns DESC
        LIMIT 1
    ),
    top AS (
        FROM {include top_place from=rows_of}
    )
    SELECT
        one.*,
        (
            SELECT count(DISTINCT i.step)
            FROM device.idle i
            SEMI JOIN one USING (pid, device)
            WHERE i.cause = {cause}
        ) AS steps,
        named.name,
        named.name_ns,
        (SELECT place FROM top) AS place,
        (SELECT share FROM top) AS share
    FROM one, named
)
