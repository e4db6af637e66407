-- CPU time of each process within the recording, and the time in which its threads were ready to
-- run but had no core. Recordings of earlier versions have the CPU usage between rows alone. A
-- process that began before the recording (kymo attach) counts from its first row on: before that
-- it cannot have used more than the time that had passed, per core.
(
    SELECT
        host,
        pid,
        count(*) AS n,
        max(rss_bytes) AS rss_bytes,
        coalesce(
            nullif(max(cpu_ns), 0) - min(cpu_ns) + least(min(cpu_ns), greatest(min(ts_ns), 0)),
            avg(cpu_pct) / 100 * (max(ts_ns) - least(min(ts_ns), 0))
        )::DOUBLE AS cpu_ns,
        coalesce(
            max(cpu_ns + children_cpu_ns) - min(cpu_ns + children_cpu_ns)
            + least(min(cpu_ns + children_cpu_ns), greatest(min(ts_ns), 0)),
            0
        )::DOUBLE AS tree_cpu_ns,
        coalesce(
            max(run_delay_ns) - min(run_delay_ns)
            + least(min(run_delay_ns), greatest(min(ts_ns), 0)),
            0
        )::DOUBLE AS run_delay_ns,
        max(involuntary_switches) - min(involuntary_switches) AS switches
    FROM host.process
    GROUP BY host, pid
)
