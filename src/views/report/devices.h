/* What devices did, for a terminal: models with their latency, queues with what held them up. */
#ifndef KYMO_VIEWS_REPORT_DEVICES_H
#define KYMO_VIEWS_REPORT_DEVICES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* Operations as zones of lanes, one for each queue: pid, tid, depth, start_ns, duration_ns, source,
   name, file, line, thread, rank. Zones of one depth must not overlap: what is a part of an
   execution is one below it, and so is what ran beside another of its queue. Modules know how deep
   they are. */
#define DEVICES_LANES_SQL \
	"SELECT 0, -1, coalesce(depth, (execution IS NOT NULL AND kind <> 'execution')::INT + " \
	"(start_ns < coalesce(max(end_ns) OVER (PARTITION " \
	"BY pid, device, queue, kind = 'execution' ORDER BY start_ns, end_ns ROWS BETWEEN " \
	"UNBOUNDED PRECEDING AND 1 " \
	"PRECEDING), start_ns))::INT), start_ns, end_ns - start_ns, 'device', name, model, 0, " \
	"concat_ws(', ', queue, device), " \
	"NULL FROM device.ops WHERE start_ns IS NOT NULL AND end_ns >= start_ns"

/* device.queues of the stretch [$from, $to), as blocks.c has it: operations and gaps that reach
   over its ends are cut there. A piece is what an operation adds to the busy time of its queue. The
   views below it are tables in a packed file. */
#define DEVICES_QUEUES_WITHIN_SQL \
	"WITH work AS (SELECT pid, device, queue, greatest(start_ns, $from) AS a, least(end_ns, " \
	"$to) AS b FROM " \
	"device.ops WHERE kind NOT IN ('marker', 'barrier', 'execution', 'module') AND end_ns > " \
	"$from AND start_ns < " \
	"$to), pieces AS (SELECT pid, device, queue, greatest(a, coalesce(max(b) OVER (PARTITION " \
	"BY pid, device, queue " \
	"ORDER BY a, b ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), a)) AS a, b FROM " \
	"work), points AS (SELECT " \
	"device, t, sum(d) AS d FROM (SELECT device, a AS t, 1 AS d FROM pieces WHERE b > a " \
	"UNION ALL SELECT device, b, " \
	"-1 FROM pieces WHERE b > a) GROUP BY ALL), spans AS (SELECT device, t, CASE WHEN sum(d) " \
	"OVER w > 1 THEN lead(t) " \
	"OVER w - t ELSE 0 END AS ns FROM points WINDOW w AS (PARTITION BY device ORDER BY t)), " \
	"together AS (SELECT " \
	"device, t, coalesce(sum(ns) OVER (PARTITION BY device ORDER BY t ROWS BETWEEN UNBOUNDED " \
	"PRECEDING AND 1 " \
	"PRECEDING), 0) AS ns FROM spans), busy AS (SELECT p.pid, p.device, p.queue, sum(p.b - " \
	"p.a) AS ns, sum(y.ns - " \
	"x.ns) AS both_ns FROM pieces p JOIN together x ON x.device = p.device AND x.t = p.a " \
	"JOIN together y ON y.device " \
	"= p.device AND y.t = p.b WHERE p.b > p.a GROUP BY ALL), counted AS (SELECT pid, device, " \
	"queue, count(*) AS ops " \
	"FROM work GROUP BY ALL), gaps AS (SELECT pid, device, queue, cause, least(start_ns + " \
	"duration_ns, $to) - " \
	"greatest(start_ns, $from) AS ns FROM device.gaps WHERE start_ns + duration_ns > $from " \
	"AND start_ns < $to), held " \
	"AS (SELECT pid, device, queue, count(*) AS gaps, max(ns) AS longest_gap_ns, sum(ns) " \
	"FILTER (cause = 'host " \
	"late') AS host_late_ns, sum(ns) FILTER (cause = 'synchronisation') AS sync_ns, sum(ns) " \
	"FILTER (cause = " \
	"'dependency') AS dependency_ns, sum(ns) FILTER (cause = 'launch') AS launch_ns FROM " \
	"gaps GROUP BY ALL), lives " \
	"AS (SELECT device, greatest(least(max(last_ns), $to) - greatest(min(first_ns), $from), " \
	"0) AS ns FROM " \
	"device.queues GROUP BY 1) SELECT q.device, q.queue, coalesce(b.ns, 0)::BIGINT AS " \
	"busy_ns, (l.ns - " \
	"coalesce(b.ns, 0))::BIGINT AS idle_ns, coalesce(b.ns, 0) / nullif(l.ns, 0) AS " \
	"utilisation, b.both_ns / b.ns AS " \
	"overlap, coalesce(c.ops, 0) AS ops, coalesce(h.gaps, 0) AS gaps, " \
	"coalesce(h.longest_gap_ns, 0) AS " \
	"longest_gap_ns, coalesce(h.host_late_ns, 0)::BIGINT AS host_late_ns, " \
	"coalesce(h.sync_ns, 0)::BIGINT AS sync_ns, " \
	"coalesce(h.dependency_ns, 0)::BIGINT AS dependency_ns, coalesce(h.launch_ns, 0)::BIGINT " \
	"AS launch_ns FROM " \
	"device.queues q JOIN lives l USING (device) LEFT JOIN busy b USING (pid, device, queue) " \
	"LEFT JOIN counted c " \
	"USING (pid, device, queue) LEFT JOIN held h USING (pid, device, queue) ORDER BY " \
	"q.device, q.core LIMIT 500"

/* device.models of it: runs that begin there, whole. */
#define DEVICES_MODELS_WITHIN_SQL \
	"WITH named AS (SELECT DISTINCT pid, model FROM device.ops WHERE kind = 'execution' AND " \
	"model IS NOT NULL), runs " \
	"AS (SELECT o.model, o.device, o.core, o.pid, o.start_ns AS t, o.end_ns - o.start_ns AS " \
	"ns FROM device.ops o " \
	"LEFT JOIN named n ON n.pid = o.pid AND n.model = o.model WHERE o.model IS NOT NULL AND " \
	"(o.kind = 'execution' OR " \
	"(o.kind = 'kernel' AND n.model IS NULL)) UNION ALL SELECT t.model, m.device, m.core, " \
	"t.pid, t.ts_ns, " \
	"(t.duration * 1e9)::BIGINT FROM python.torch_trace t JOIN device.models m ON m.pid = " \
	"t.pid AND m.model = " \
	"t.model AND m.device = coalesce(t.device, 'cpu') ANTI JOIN named n ON n.pid = t.pid AND " \
	"n.model = t.model WHERE " \
	"t.stage = 'forward' AND t.depth = 0 AND NOT t.recomputed) SELECT model, device, core, " \
	"count(*) AS executions, " \
	"quantile_disc(ns, 0.5) AS p50_ns, quantile_disc(ns, 0.99) AS p99_ns, min(ns) AS min_ns, " \
	"max(ns) AS max_ns, " \
	"sum(ns)::BIGINT AS total_ns FROM runs WHERE t >= $from AND t < $to AND ns IS NOT NULL " \
	"GROUP BY model, device, " \
	"core, pid ORDER BY total_ns DESC, model, core LIMIT 500"

/* At most so many rows each. How many were printed, or a negative errno; nothing at all where there
   are none. */
int devices_print_models(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
int devices_print_queues(struct tables *tables, size_t most, FILE *out,
			 const struct text_style *style, struct kymo_error *err);
/*
 * For summaries: a line on the busiest queue, and where models is set one on the model that took
 * most. What cannot be said is left out.
 */
void devices_print_lines(struct tables *tables, bool models, FILE *out,
			 const struct text_style *style);

#endif
