/* The part of catalog.c that is about devices: included by it alone, after its macros. */
#ifndef KYMO_TABLES_CATALOG_CATALOG_DEVICE_H
#define KYMO_TABLES_CATALOG_CATALOG_DEVICE_H

#include <kymo/device.h>

/* Bits of flags (base/schema.h). */
#define KNOWN(time, bit) "CASE WHEN (flags & " bit ") > 0 THEN " time " END"
#define QUEUED_NS KNOWN("queued_ns", "256")
#define BOTH_ENDS "(flags & 3072) = 3072"
/* Rows of the stream by kind: operations, executions among them, and waits. */
#define IS_OP "kind <> 13"
#define IS_EXECUTION "kind = 12"
#define IS_WAIT "kind = 13"
#define IS_MODULE "kind = 14"
#define IS_WORK "kind < 12 AND kind NOT IN (8, 9)" /* markers and barriers are none */

#define X(upper, word) "'" word "', "
#define KIND_WORD "[" KYMO_DEVICE_KINDS(X) "'?'][kind + 1]"
static const char kind_word[] = KIND_WORD;
#undef X

/*
 * What all views of queues begin with. An island is a span in which a queue always had something
 * running; a gap is what is between two of them; its cause is that of its longer part, before the
 * operation that ends it was queued or after. together(t): for how long until t more than one queue
 * of the device was busy.
 */
#define DEVICE_ISLANDS \
	"WITH work AS MATERIALIZED (SELECT pid, device, queue, core, thread_id, name, flags, " \
	"start_ns, greatest(end_ns, " \
	"start_ns) AS end_ns, " QUEUED_NS \
	" AS queued_ns FROM kymo_scan('device.ops') WHERE " IS_WORK " AND " BOTH_ENDS \
	"), placed AS MATERIALIZED (SELECT *, max(end_ns) OVER (PARTITION BY pid, device, queue " \
	"ORDER BY start_ns, end_ns " \
	"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS free_ns FROM work), " \
	"gaps AS MATERIALIZED (SELECT * FROM placed WHERE start_ns > free_ns), " \
	"waits AS MATERIALIZED (SELECT pid, thread_id, start_ns AS wait_ns, end_ns AS waited_ns " \
	"FROM " \
	"kymo_scan('device.ops') WHERE " IS_WAIT "), " \
	"caused AS MATERIALIZED (SELECT g.*, g.start_ns - g.free_ns AS gap_ns, CASE " \
	"WHEN g.queued_ns - g.free_ns < g.start_ns - g.queued_ns AND (g.flags & 1) > 0 THEN " \
	"'dependency' " \
	"WHEN g.queued_ns - g.free_ns < g.start_ns - g.queued_ns THEN 'launch' " \
	"WHEN w.waited_ns >= g.free_ns AND w.wait_ns <= g.free_ns AND g.queued_ns - w.waited_ns " \
	"<= (g.start_ns - " \
	"g.free_ns) / 2 THEN 'synchronisation' ELSE 'host late' END AS cause FROM gaps g ASOF " \
	"LEFT JOIN waits w ON " \
	"g.pid = w.pid AND g.thread_id = w.thread_id AND g.queued_ns >= w.waited_ns) "
#define DEVICE_OVERLAP \
	", islands AS MATERIALIZED (SELECT pid, device, queue, min(start_ns) AS start_ns, " \
	"max(end_ns) AS end_ns FROM (SELECT " \
	"*, sum((start_ns > coalesce(free_ns, start_ns - 1))::INT) OVER (PARTITION BY pid, " \
	"device, queue ORDER BY start_ns, " \
	"end_ns) AS island FROM placed) GROUP BY pid, device, queue, island), " \
	"points AS (SELECT device, t, sum(d) AS d FROM (SELECT device, start_ns AS t, 1 AS d " \
	"FROM islands UNION ALL SELECT " \
	"device, end_ns, -1 FROM islands) GROUP BY device, t), " \
	"spans AS (SELECT device, t, CASE WHEN sum(d) OVER w > 1 THEN lead(t) OVER w - t ELSE 0 " \
	"END AS both_ns FROM points " \
	"WINDOW w AS (PARTITION BY device ORDER BY t)), " \
	"together AS MATERIALIZED (SELECT device, t, coalesce(sum(both_ns) OVER (PARTITION BY " \
	"device ORDER BY t ROWS BETWEEN " \
	"UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS both_ns FROM spans), " \
	"busy AS (SELECT i.pid, i.device, i.queue, sum(i.end_ns - i.start_ns)::BIGINT AS " \
	"busy_ns, sum(b.both_ns - " \
	"a.both_ns) AS both_ns FROM islands i JOIN together a ON a.device = i.device AND a.t = " \
	"i.start_ns JOIN together b ON " \
	"b.device = i.device AND b.t = i.end_ns GROUP BY ALL), " \
	"device_spans AS (SELECT device, min(start_ns) AS from_ns, max(end_ns) AS to_ns FROM " \
	"work GROUP BY 1), " \
	"counted AS (SELECT pid, device, queue, any_value(core) AS core, count(*) AS ops, " \
	"median(end_ns - start_ns)::BIGINT " \
	"AS p50_ns, min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM work GROUP BY pid, " \
	"device, queue), " \
	"causes AS (SELECT pid, device, queue, count(*) AS gaps, max(gap_ns) AS " \
	"longest_gap_ns, " CAUSED("host late", "host_late_ns") ", " CAUSED( \
		"dependency", \
		"dependency_ns") ", " CAUSED("synchronisation", \
					     "sync_ns") ", " CAUSED("launch", \
								    "launch_ns") " FROM caused " \
										 "GROUP BY pid, " \
										 "device, queue) "
#define CAUSED(word, column) \
	"coalesce(sum(gap_ns) FILTER (cause = '" word "'), 0)::BIGINT AS " column

#define QUEUES_FROM \
	"(" DEVICE_ISLANDS DEVICE_OVERLAP \
	"SELECT c.*, b.busy_ns, d.to_ns - d.from_ns - b.busy_ns AS idle_ns, round(b.busy_ns / " \
	"nullif(d.to_ns - d.from_ns, 0), 4) AS " \
	"utilisation, round(b.both_ns / nullif(b.busy_ns, 0), 4) AS overlap, coalesce(g.gaps, 0) " \
	"AS gaps, " \
	"coalesce(g.longest_gap_ns, 0) AS longest_gap_ns, coalesce(g.host_late_ns, 0) AS " \
	"host_late_ns, coalesce(g.dependency_ns, 0) AS dependency_ns, coalesce(g.sync_ns, 0) AS " \
	"sync_ns, " \
	"coalesce(g.launch_ns, 0) AS launch_ns FROM counted c JOIN busy b ON b.pid = c.pid AND " \
	"b.device = c.device AND " \
	"b.queue = c.queue JOIN device_spans d ON d.device = c.device LEFT JOIN causes g ON " \
	"g.pid = c.pid AND g.device = " \
	"c.device AND g.queue = c.queue ORDER BY c.pid, c.core)"

/* A model's executions: as told; where none are, its kernels, or the outermost modules of torch. */
#define RUNS_OF_MODELS \
	"(WITH told AS (SELECT model, device, core, start_ns, end_ns, pid, kind, execution FROM " \
	"kymo_scan('device.ops') " \
	"WHERE model IS NOT NULL AND kind IN (0, 12) AND " BOTH_ENDS \
	"), named AS (SELECT DISTINCT pid, model FROM told WHERE " IS_EXECUTION \
	") SELECT model, device, core, start_ns, end_ns - start_ns AS ns, pid FROM told " \
	"WHERE " IS_EXECUTION " UNION ALL SELECT t.model, t.device, t.core, t.start_ns, t.end_ns " \
			      "- t.start_ns, t.pid FROM told t ANTI JOIN named n " \
	"ON n.pid = t.pid AND n.model = t.model WHERE t.kind = 0 UNION ALL SELECT r.model, CASE " \
	"WHEN r.device >= 0 THEN " \
	"'cuda:' || r.device ELSE 'cpu' END, CASE WHEN r.device >= 0 THEN r.device ELSE 0 END, " \
	"r.ts_ns, r.duration_ns, r.pid " \
	"FROM kymo_scan('python.torch_trace') r ANTI JOIN named n ON n.pid = r.pid AND n.model = " \
	"r.model WHERE r.stage = 0 AND " \
	"r.depth = 0 AND r.flags % 2 = 0 AND r.model IS NOT NULL)"
/* What a module took on a device was queued by the thread of its row when that begins. */
#define TORCH_FROM \
	"kymo_scan('python.torch_trace') LEFT JOIN (SELECT pid AS op_pid, thread_id AS " \
	"op_thread, queued_ns AS op_ns, name AS " \
	"op_name, max(end_ns - start_ns) AS device_ns FROM kymo_scan('device.ops') WHERE " \
	"(" IS_EXECUTION " OR " IS_MODULE ") AND " BOTH_ENDS \
	" GROUP BY ALL) ON op_pid = pid AND op_thread = thread_id AND op_ns = ts_ns AND op_name " \
	"= module"
/* The first execution compiles and loads what the others find: up to a hundred of them, it is the
   99th percentile. */
#define MODELS_FROM \
	"(SELECT model, device, core, count(*) AS executions, quantile_disc(ns, 0.5)::BIGINT AS " \
	"p50_ns, quantile_disc(ns, " \
	"0.99)::BIGINT AS p99_ns, sum(ns)::BIGINT AS total_ns, min(ns)::BIGINT AS min_ns, " \
	"max(ns)::BIGINT AS max_ns, " \
	"min(start_ns) AS first_ns, (min(ns) FILTER (n = 1))::BIGINT AS first_run_ns, " \
	"(quantile_disc(ns, 0.99) FILTER (n > " \
	"1))::BIGINT AS warm_p99_ns, pid FROM (SELECT *, row_number() OVER (PARTITION BY model, " \
	"device, core, pid ORDER BY " \
	"start_ns) AS n FROM " RUNS_OF_MODELS \
	") GROUP BY model, device, core, pid ORDER BY total_ns DESC, model, core)"

/*
 * Who launched what: for the zone that queued an operation, every zone that it was inside of. Zones
 * of one thread and depth never overlap, so that the one of each depth is the last that had begun;
 * of those that a coarse clock lets begin together, all but the last have no length. An open zone
 * holds all that came after.
 */
#define LAUNCHES_FROM \
	"(WITH ops AS MATERIALIZED (SELECT *, CASE WHEN zone IS NOT NULL THEN zone_start_ns END " \
	"AS launch_ns FROM " \
	"kymo_scan('device.ops') WHERE " IS_OP \
	"), launches AS MATERIALIZED (SELECT DISTINCT thread_id, launch_ns, zone_id FROM ops " \
	"WHERE launch_ns IS NOT NULL), " \
	"zones AS MATERIALIZED (FROM (SELECT thread_id, depth::BIGINT AS depth, start_ns, " \
	"start_ns + duration_ns AS end_ns, " \
	"name_id FROM kymo_scan('trace.zones') UNION ALL SELECT thread_id, depth, start_ns, " \
	"9223372036854775807, name_id " \
	"FROM kymo_meta('open_zones')) SEMI JOIN launches USING (thread_id)), " \
	"deepest AS (SELECT thread_id, max(depth) AS depth FROM zones GROUP BY thread_id), " \
	"launching AS MATERIALIZED (SELECT l.*, coalesce(max(z.depth), max(d.depth) + 1, 0) AS " \
	"depth FROM launches l LEFT " \
	"JOIN zones z ON z.thread_id = l.thread_id AND z.start_ns = l.launch_ns AND z.name_id = " \
	"l.zone_id LEFT JOIN deepest " \
	"d ON d.thread_id = l.thread_id GROUP BY ALL), " \
	"begun AS (SELECT v.*, z.start_ns FROM (SELECT thread_id, launch_ns, zone_id, " \
	"unnest(range(depth)) AS depth FROM " \
	"launching) v ASOF JOIN zones z ON z.thread_id = v.thread_id AND z.depth = v.depth AND " \
	"z.start_ns <= v.launch_ns), " \
	"around AS (SELECT b.* EXCLUDE (start_ns), arg_max(z.name_id, z.end_ns) AS name_id FROM " \
	"begun b JOIN zones z USING " \
	"(thread_id, depth, start_ns) WHERE z.end_ns >= b.launch_ns GROUP BY ALL UNION ALL BY " \
	"NAME SELECT *, zone_id AS " \
	"name_id FROM launching), " \
	"paths AS (SELECT thread_id, launch_ns, zone_id, list(name ORDER BY depth) AS path, " \
	"arg_max(name, depth) FILTER " \
	"(source = 'torch') AS module, arg_max({'name': name, 'file': file, 'line': line}, " \
	"depth) FILTER (source = " \
	"'python') AS function FROM around JOIN kymo_meta('names') USING (name_id) GROUP BY ALL) " \
	"SELECT o.*, p.path, p.module, p.function.name AS function, p.function.file AS file, " \
	"p.function.line AS line " \
	"FROM ops o LEFT JOIN paths p ON p.thread_id = o.thread_id AND p.launch_ns = o.launch_ns " \
	"AND p.zone_id = o.zone_id)"

#define DEVICE AS_IS("device", "VARCHAR", "the device")
#define QUEUE AS_IS("queue", "VARCHAR", "the queue or stream")

static const struct catalog_column device_ops[] = {
	DEVICE,
	QUEUE,
	AS_IS("model", "VARCHAR", "the model or program that it belongs to"),
	MADE("kind", "VARCHAR", kind_word,
	     "kernel, read, write, copy, fill, map, unmap, migrate, marker, barrier, native or "
	     "other; execution: a "
	     "model's run as a whole; module: a part of one"),
	AS_IS("name", "VARCHAR", "the operation's name"),
	MADE("queued_ns", "BIGINT", QUEUED_NS, "when the host queued it"),
	MADE("submit_ns", "BIGINT", KNOWN("submit_ns", "512"), "when it was given to the device"),
	MADE("start_ns", "BIGINT", KNOWN("start_ns", "1024"), "when the device began"),
	MADE("end_ns", "BIGINT", KNOWN("end_ns", "2048"), "when the device was done"),
	BYTES("bytes", "what it moved"),
	AS_IS("zone", "VARCHAR", "the zone of the host that queued it; NULL: none was open"),
	MADE("zone_start_ns", "BIGINT", "CASE WHEN zone IS NOT NULL THEN zone_start_ns END",
	     "when that zone began: with tid, its row in trace.zones"),
	AS_IS("core", "INTEGER", "the core, or the queue's number in order of creation"),
	AS_IS("error_ns", "BIGINT", "how far the four times may be off the host's clock"),
	MADE("status", "INTEGER", "status", "0, or the runtime's error"),
	MADE("depends", "BOOLEAN", "(flags & 1) > 0", "it had to wait for other operations"),
	MADE("blocking", "BOOLEAN", "(flags & 4) > 0",
	     "the call that queued it waited for its end"),
	MADE("execution", "BIGINT", "TRY_CAST(nullif(execution, 0) AS BIGINT)",
	     "number of the model's execution that it is a part of"),
	MADE("correlation", "UBIGINT", "nullif(correlation, 0)", "the runtime's own number"),
	MADE("depth", "INTEGER", "CASE WHEN " IS_MODULE " THEN (flags // 65536 % 256)::INTEGER END",
	     "of a module: how many others it is inside of"),
	STEP,
	PID,
	TID,
	THREAD,
};

static const struct catalog_column device_launches[] = {
	STEP,
	AS_IS("module", "VARCHAR",
	      "the innermost torch module that it was launched in, or another part of torch: "
	      "backward, AdamW.step, DataLoader.next"),
	AS_IS("function", "VARCHAR",
	      "the innermost Python function or region; functions by kymo run --python"),
	AS_IS("file", "VARCHAR", "where that function is"),
	AS_IS("line", "INTEGER", "its line in that file"),
	AS_IS("zone", "VARCHAR", "the zone that queued it; NULL: none was open"),
	AS_IS("path", "VARCHAR[]",
	      "all zones that were open, the outermost first, as far as they are kept: path[-1] is "
	      "zone, path[-2] what is around it"),
	MADE("kind", "VARCHAR", kind_word, "kernel, read, write, …, as in device.ops"),
	AS_IS("name", "VARCHAR", "the operation's name"),
	DEVICE,
	QUEUE,
	MADE("queued_ns", "BIGINT", QUEUED_NS, "when the host queued it"),
	MADE("start_ns", "BIGINT", KNOWN("start_ns", "1024"), "when the device began"),
	MADE("duration_ns", "BIGINT", "CASE WHEN " BOTH_ENDS " THEN end_ns - start_ns END",
	     "how long it took the device"),
	BYTES("bytes", "what it moved"),
	MADE("zone_start_ns", "BIGINT", "CASE WHEN zone IS NOT NULL THEN zone_start_ns END",
	     "when that zone began: with tid, its row in trace.zones"),
	PID,
	TID,
	THREAD,
};

static const struct catalog_column device_waits[] = {
	AS_IS("start_ns", "BIGINT", "when the host began to wait"),
	MADE("duration_ns", "BIGINT", "end_ns - start_ns", "how long it waited"),
	DEVICE,
	QUEUE,
	AS_IS("zone", "VARCHAR", "the zone of the host that waited; NULL: none was open"),
	STEP,
	PID,
	TID,
	THREAD,
};

static const struct catalog_column device_queues[] = {
	DEVICE,
	QUEUE,
	AS_IS("busy_ns", "BIGINT", "time with an operation running"),
	AS_IS("idle_ns", "BIGINT",
	      "time without, from the device's first operation to its last, of any queue"),
	AS_IS("utilisation", "DOUBLE", "busy by both, 0 to 1"),
	AS_IS("overlap", "DOUBLE",
	      "share of busy time that other queues of the device were busy too"),
	AS_IS("ops", "BIGINT", "operations; markers and barriers are none"),
	AS_IS("gaps", "BIGINT", "spans between its operations in which nothing ran"),
	AS_IS("longest_gap_ns", "BIGINT", "the longest of them"),
	AS_IS("host_late_ns", "BIGINT", "of those, time in which the host had queued nothing"),
	AS_IS("sync_ns", "BIGINT", "time in which it had not, since it had waited for the device"),
	AS_IS("dependency_ns", "BIGINT",
	      "time in which what was queued waited for other operations"),
	AS_IS("launch_ns", "BIGINT", "time that device and driver took to begin what was queued"),
	AS_IS("p50_ns", "BIGINT", "the median operation"),
	AS_IS("first_ns", "BIGINT", "when its first operation began"),
	AS_IS("last_ns", "BIGINT", "when its last one ended"),
	AS_IS("core", "INTEGER", "the core, or the queue's number in order of creation"),
	PID,
};

static const struct catalog_column device_gaps[] = {
	MADE("start_ns", "BIGINT", "free_ns", "when the queue had nothing to do any more"),
	MADE("duration_ns", "BIGINT", "gap_ns", "until it began the next operation"),
	AS_IS("cause", "VARCHAR", "host late, synchronisation, dependency or launch"),
	DEVICE,
	QUEUE,
	MADE("next", "VARCHAR", "name", "the operation that ended it"),
	PID,
};

static const struct catalog_column device_memory[] = {
	TS,
	DEVICE,
	MADE("kind", "VARCHAR", "CASE WHEN bytes >= 0 THEN 'allocation' ELSE 'free' END",
	     "allocation or free"),
	MADE("bytes", "BIGINT", "abs(bytes)", "its size"),
	AS_IS("live_bytes", "BIGINT", "allocated after it"),
	MADE("pool", "VARCHAR", "kind", "buffer, image, svm, …"),
	PID,
};

static const struct catalog_column device_models[] = {
	AS_IS("model", "VARCHAR", "the model, program or outermost module"),
	DEVICE,
	AS_IS("core", "INTEGER", "the core, or the queue's number in order of creation"),
	AS_IS("executions", "BIGINT",
	      "how often it ran; of a program of which no more is known, its kernels"),
	AS_IS("p50_ns", "BIGINT",
	      "the median latency, from its start to its end, of all executions"),
	AS_IS("p99_ns", "BIGINT",
	      "the 99th percentile of all: of fewer than a hundred it is the longest, often the "
	      "first"),
	AS_IS("total_ns", "BIGINT", "the time in all"),
	AS_IS("min_ns", "BIGINT", "the shortest"),
	AS_IS("max_ns", "BIGINT", "the longest"),
	AS_IS("first_ns", "BIGINT", "when the first one began"),
	AS_IS("first_run_ns", "BIGINT",
	      "how long the first one took: it may compile and load what the others find"),
	AS_IS("warm_p99_ns", "BIGINT",
	      "the 99th percentile without the first one; NULL where it is the only one"),
	PID,
};

static const struct catalog_column device_clocks[] = {
	TS,
	DEVICE,
	BYTES("device_ns", "the device's clock then"),
	AS_IS("error_ns", "BIGINT", "by how much the two readings may be apart"),
	MADE("drift_ppm", "DOUBLE", "round(drift_ppm, 3)",
	     "how much faster the device's clock runs, in millionths"),
	AS_IS("miss_ns", "BIGINT", "how far off the readings before had foretold this one"),
	PID,
};

#define DEVICE_VIEWS \
	VIEW("device", "ops", "kymo_scan('device.ops') WHERE " IS_OP, device_ops, \
	     "Operations of devices, in times of the host."), \
		VIEW("device", "launches", LAUNCHES_FROM, device_launches, \
		     "Who launched each operation: the step, the torch module, the Python " \
		     "function and the zones around."), \
		VIEW("device", "queues", QUEUES_FROM, device_queues, \
		     "How busy the queues of devices were, and why not."), \
		VIEW("device", "gaps", \
		     "(" DEVICE_ISLANDS "SELECT * FROM caused ORDER BY free_ns)", device_gaps, \
		     "Spans in which a queue had nothing to do, and why."), \
		VIEW("device", "waits", "kymo_scan('device.ops') WHERE " IS_WAIT, device_waits, \
		     "The host, waiting for a device."), \
		VIEW("device", "memory", "kymo_scan('device.memory')", device_memory, \
		     "Memory of devices over time."), \
		VIEW("device", "models", MODELS_FROM, device_models, \
		     "Executions of models on devices."), \
		VIEW("device", "clocks", "kymo_scan('device.clocks')", device_clocks, \
		     "Clocks of devices, read beside the host's.")

#endif
