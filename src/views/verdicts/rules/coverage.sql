-- threshold: 0.90
-- weight: 0.02
-- least_s: 1
-- sentence: Zones explain little of this run: they cover {a} of {whole}.
-- evidence: {count} zones were recorded
-- advice: mark the outermost loops and calls too
-- tab: timeline
-- query: FROM trace.regions ORDER BY self_ns DESC
--
-- Open zones cover their time too. Without an age (the end of the program was not observed), until
-- the end of the recording.
SELECT
    {run_ns} - covered,
    {run_ns},
    '',
    n,
    covered,
    0
FROM (
    SELECT
        sum(count) AS n,
        sum(self_ns) + coalesce(
            (
                SELECT sum(coalesce(age_ns, {run_ns} - start_ns))
                FROM trace.open_zones
                WHERE depth = 0
            ),
            0
        ) AS covered
    FROM trace.regions
)
WHERE n > 0
