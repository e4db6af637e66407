#include "views/verdicts/rules.h"

#include <string.h>

#include "views/verdicts/facts.h"

/* Steps with their number from 1 in order, how many, and their median. The first twentieth (1 to
   10) is warm-up. */
#define NUMBERED_STEPS \
	"(SELECT *, row_number() OVER (ORDER BY start_ns) AS n, count(*) OVER () AS c, " \
	"median(duration_ns) OVER () AS usual, " \
	"least(10, greatest(1, c // 20)) AS warm FROM " FACTS_STEPS_SQL ")"

/* A module that is imported, by Python or by a region that says so. */
#define IS_LOAD "(name = '_find_and_load' OR starts_with(name, 'import '))"

const struct rules_row rules[] = {
	{ "data", 0.10, 1.0, 0,
	  "SELECT sum(data_ns), sum(duration_ns), '', count(*), median(data_ns), "
	  "avg(data_ns) FILTER (duration_ns >= slow) FROM (SELECT *, quantile_cont(duration_ns, "
	  "0.98) OVER () AS slow "
	  "FROM " FACTS_STEPS_SQL ")",
	  "Data loading holds up training: it takes {share} of step time ({won} of {whole}).",
	  "the wait is {a} of a typical step, {b} of the slowest 2 %",
	  "more loader workers, or decode ahead; at most {share} to gain", "timeline",
	  "SELECT step, data_ns, duration_ns FROM trace.steps ORDER BY data_ns DESC" },
	/* What differed: the zone that takes most longer in slow steps than in others, the
	   innermost of those nearly alike. Zones are many: they are looked at only where there is
	   something to say, and of the usual steps some two thousand do. */
	{ "spread", 0.15, 0.5, 0,
	  "WITH s AS (SELECT *, duration_ns > 2 * usual AS slow, slow OR n % greatest(1, c // "
	  "2000) = 0 AS taken FROM " NUMBERED_STEPS
	  " WHERE n > warm), w AS (SELECT * FROM s WHERE taken AND (SELECT bool_or(slow) AND "
	  "sum(greatest(duration_ns - "
	  "usual, 0)) > 0.1 * sum(duration_ns) FROM s)), z AS (SELECT name, max(depth) AS depth, "
	  "sum(z.duration_ns) FILTER (slow) / nullif((SELECT count(*) FROM w WHERE slow), 0) - "
	  "coalesce(sum(z.duration_ns) FILTER (NOT slow) / nullif((SELECT count(*) FROM w WHERE "
	  "NOT slow), 0), 0) AS more "
	  "FROM (SELECT step, pid, name, depth, duration_ns FROM trace.zones) z JOIN (SELECT step, "
	  "pid, duration_ns, slow "
	  "FROM w) w ON z.step = w.step AND z.pid = w.pid AND z.duration_ns <= w.duration_ns GROUP "
	  "BY 1) SELECT "
	  "sum(greatest(duration_ns - usual, 0)), sum(duration_ns), (SELECT arg_max(name, depth) "
	  "FROM z WHERE more > 0.8 * "
	  "(SELECT max(more) FROM z)), count(*) FILTER (slow), any_value(usual), max(duration_ns) "
	  "FROM s HAVING count(*) >= "
	  "20 AND count(*) FILTER (slow) > 0",
	  "Some steps take much longer than others: what is above the median adds up to {share} of "
	  "step time ({won} of "
	  "{whole})[, and it is {name} that differs].",
	  "{count} steps take more than twice the median of {a}, the slowest {b}",
	  "look at what the slowest steps have in common[: {name} first]; kymo report lists them",
	  "timeline",
	  "SELECT step, start_ns, duration_ns FROM trace.steps ORDER BY duration_ns DESC" },
	{ "warmup", 0.05, 0.6, 0,
	  "SELECT sum(greatest(duration_ns - usual, 0)) FILTER (n <= warm), sum(duration_ns), '', "
	  "any_value(warm), "
	  "max(duration_ns) FILTER (n <= warm), any_value(usual) FROM " NUMBERED_STEPS
	  " HAVING count(*) >= 10 AND max(duration_ns) FILTER (n <= warm) > 3 * any_value(usual)",
	  "Warm-up is part of this measurement: the first steps take {won} more than usual, "
	  "{share} of step time.",
	  "steps of warm-up: {count}; the slowest takes {a}, a usual one {b}",
	  "warm up before the loop (compile, fill caches), and leave the first steps out of "
	  "comparisons",
	  "timeline", "SELECT step, duration_ns FROM trace.steps ORDER BY start_ns LIMIT 20" },
	{ "region", 0.20, 0.25, 0,
	  "SELECT sum(self_ns) AS self, {run_ns}, name, sum(count), arg_max(p50_ns, count), "
	  "arg_max(p99_ns, count) "
	  "FROM " FACTS_REGIONS_SQL " WHERE NOT coalesce(contains(file, '" FACTS_IMPORT_FILE
	  "'), false) AND NOT coalesce(starts_with(name, '" FACTS_GC
	  "'), false) GROUP BY name ORDER BY "
	  "self DESC LIMIT 1",
	  "The costliest region is {name}: {won} of its own, {share} of the run, in {count} "
	  "call{s}.",
	  "a call takes {a} at the median, {b} at the 99th percentile",
	  "make it cheaper, or call it less often", "flame",
	  "FROM trace.regions ORDER BY self_ns DESC" },
	/* The model itself is the module without a dot that holds the others; a pass as a whole has
	   no forward. A first call loads and tunes what all later ones use, whichever module it
	   falls to: it is left out where there are enough of them. Of a model that hardly runs,
	   what takes most is who was interrupted. */
	{ "module", 0.25, 0.3, 0,
	  "WITH p AS (SELECT module, stage, sum(duration) AS s, CASE WHEN count(*) >= 10 THEN "
	  "arg_min(duration, ts_ns) ELSE 0 "
	  "END AS first, count(*) AS n, median(duration) AS each FROM python.torch_trace WHERE "
	  "stage <> 'step' AND module <> '' "
	  "GROUP BY module, stage, pid), m AS (SELECT module, sum(s - first) * 1e9 AS ns, "
	  "sum(first) * 1e9 AS first, (sum(n) "
	  "FILTER (stage = 'forward'))::BIGINT AS calls, median(each) FILTER (stage = 'forward') * "
	  "1e9 AS each FROM p GROUP BY "
	  "1 HAVING calls > 0), root AS (SELECT module, ns, first FROM m WHERE NOT "
	  "contains(module, '.') ORDER BY ns DESC LIMIT "
	  "1), o AS (SELECT m.*, ns - coalesce((SELECT sum(k.ns) FROM m k WHERE "
	  "starts_with(k.module, m.module || '.') AND NOT "
	  "contains(k.module[len(m.module) + 2:], '.')), 0) AS self FROM m WHERE module NOT IN "
	  "(SELECT module FROM root)) "
	  "SELECT self, (SELECT ns FROM root), coalesce(label, module), calls, each, (SELECT first "
	  "FROM root) FROM o "
	  "LEFT JOIN " FACTS_MODULE_LABELS_SQL
	  " ON name = module WHERE (SELECT count(*) FROM o) > 2 AND self >= {run_ns} * 0.01 ORDER "
	  "BY self DESC LIMIT 1",
	  "One module takes most of the model's time: {name}, {share} of it ({won} of {whole}).",
	  "it ran {count} time{s}, {a} at the median in forward; first calls left out: {b}",
	  "make it cheaper, fuse it, or give it less to do", "torch",
	  "SELECT module, stage, count(*), sum(duration) FROM python.torch_trace GROUP BY ALL "
	  "ORDER BY 4 DESC" },
	{ "function", 0.30, 0.25, 1,
	  "SELECT {run_ns} * n / total, {run_ns}, f, n, 0, 0 FROM (SELECT regexp_replace(stack[1], "
	  "':[0-9]+\\)$', ')') AS f, "
	  "count(*) AS n, sum(count(*)) OVER () AS total FROM python.samples WHERE state = 'R' AND "
	  "len(stack) > 0 GROUP BY "
	  "1) WHERE total >= 50 ORDER BY n DESC LIMIT 1",
	  "One function takes most of the time: {name} is where {share} of all samples are.",
	  "{count} samples show it", "make it cheaper, or call it less often", "flame?of=samples",
	  "SELECT stack[1], count(*) FROM python.samples GROUP BY 1 ORDER BY 2 DESC" },
	{ "tiny", 0.25, 0.5, 0,
	  "SELECT sum(total_ns), {run_ns}, arg_max(name, total_ns), sum(count), sum(total_ns) / "
	  "sum(count), 0 FROM "
	  "trace.regions WHERE count >= 2000 AND mean_ns < 20000 AND self_ns > 0.8 * total_ns",
	  "Much time goes into many tiny operations: {count} calls of {a} each take {share} of the "
	  "run.",
	  "[most of them are {name}; ]each is so short that calling it costs as much as its work",
	  "do more in each call: larger batches, fused operations, vectorised code, torch.compile",
	  "flame", "FROM trace.regions WHERE mean_ns < 20000 ORDER BY count DESC" },
	{ "lock", 0.10, 0.8, 0,
	  "SELECT sum(self_ns) AS self, {run_ns}, arg_max(name, self_ns), sum(count), max(max_ns), "
	  "0 FROM trace.regions WHERE "
	  "regexp_matches(name, "
	  "'(^|[^a-z])(lock|rlock|mutex|acquire|semaphore|barrier|condition)([^a-z]|$)', 'i')",
	  "Threads wait for locks: {won} in all, {share} of the run, most of it in {name}.",
	  "{count} wait{s}, the longest {a}",
	  "hold the lock for less, or give each thread data of its own", "timeline",
	  "SELECT name, count, self_ns, max_ns FROM trace.regions WHERE name ILIKE '%lock%'" },
	/* Threads that all compute and take turns: each waits while another holds the lock, and it
	   is always held. Those that join, or wait for a queue or a socket, wait for something
	   else. */
	{ "gil", 0.20, 0.6, 1,
	  "WITH t AS (SELECT any_value(thread) AS thread, avg(gil::INT) AS held, avg((NOT gil AND "
	  "state = 'S')::INT) AS "
	  "waits, count(*) AS n FROM python.samples WHERE NOT regexp_matches(stack[1], "
	  "'(threading|queue|selectors|socket|ssl|subprocess|connection|events)\\.py:') GROUP BY "
	  "pid, tid HAVING count(*) >= "
	  "20) SELECT {run_ns} * max(waits), "
	  "{run_ns}, arg_max(thread, waits), count(*), {run_ns} * sum(held), 0 FROM t WHERE held "
	  "BETWEEN 0.05 AND 0.9 "
	  "HAVING count(*) >= 2 AND sum(held) >= 0.8",
	  "Python threads wait for each other: {name} waits for the interpreter's lock for {share} "
	  "of the run.",
	  "{count} threads share it, and it is held for {a} of {whole}",
	  "processes instead of threads, or work that releases the lock (NumPy, torch, I/O)",
	  "flame?of=samples",
	  "SELECT thread, gil, state, count(*) FROM python.samples GROUP BY ALL" },
	{ "io", 0.15, 0.7, 1,
	  "SELECT {run_ns} * greatest(coalesce((SELECT max(a) FROM (SELECT avg((state = "
	  "'blocked')::INT) AS a FROM "
	  "host.threads GROUP BY pid, tid HAVING count(*) >= 3)), 0), coalesce((SELECT max(a) FROM "
	  "(SELECT avg((state = "
	  "'D')::INT) AS a FROM python.samples GROUP BY pid, tid HAVING count(*) >= 20)), 0)), "
	  "{run_ns}, '', 0, "
	  "(SELECT sum(b) FROM (SELECT max(read_bytes) - min(read_bytes) AS b FROM host.io GROUP "
	  "BY pid)), "
	  "(SELECT sum(b) FROM (SELECT max(write_bytes) - min(write_bytes) AS b FROM host.io GROUP "
	  "BY pid))",
	  "The program waits for storage: a thread was blocked in I/O for {share} of the run "
	  "({won}).",
	  "{a_bytes} were read from storage and {b_bytes} written",
	  "read ahead in another thread, keep data in memory or on faster storage, write less "
	  "often",
	  "metrics", "SELECT tid, state, count(*) FROM host.threads GROUP BY ALL" },
	{ "throttled", 0.05, 1.0, 0,
	  "SELECT least(max(throttled_ns) - min(throttled_ns), {run_ns}), {run_ns}, path, "
	  "max(throttled_count) - "
	  "min(throttled_count), 0, 0 FROM host.cgroup GROUP BY path ORDER BY 1 DESC LIMIT 1",
	  "The CPU limit holds the program back: its group was throttled for {share} of the run "
	  "({won}).",
	  "{count} time{s}[, group {name}]",
	  "raise the group's CPU limit, or start fewer threads (OMP_NUM_THREADS)", "metrics",
	  "FROM host.cgroup" },
	/* The pressure is the whole machine's. It is this program's doing where more of its own
	   threads were seen on a core or waiting for one, at the mean of all looks, than there are
	   cores; else others hold them, and no change of it helps. */
	{ "crowded", 0.20, 0.5, 1,
	  "SELECT {run_ns} * least(p.pressure, 100) / 100, {run_ns}, '', h.switches, 0, 0 FROM "
	  "(SELECT avg(pressure_pct) FILTER (cpu "
	  "IS NULL) AS pressure, avg(busy_pct) FILTER (cpu IS NULL) AS busy, count(*) FILTER (cpu "
	  "IS NULL) AS n, count(DISTINCT cpu) "
	  "AS cores FROM host.cpu) p, (SELECT count(*) AS seen FROM host.threads WHERE state = "
	  "'running') t, (SELECT "
	  "max(involuntary_switches) - min(involuntary_switches) AS switches, (max(ts_ns) - "
	  "min(ts_ns)) / 1e9 AS s FROM "
	  "host.process GROUP BY pid ORDER BY max(rss_bytes) DESC LIMIT 1) h WHERE p.n >= 3 AND "
	  "p.busy > 90 AND h.switches > "
	  "50 * h.s AND t.seen > p.cores * p.n",
	  "More threads want to run than there are cores: for {share} of the run something waited "
	  "for one.",
	  "the program was interrupted {count} time{s}",
	  "start fewer threads (OMP_NUM_THREADS, loader workers), or run less beside it", "metrics",
	  "SELECT ts_ns, busy_pct, pressure_pct FROM host.cpu WHERE cpu IS NULL" },
	{ "swap", 0.10, 0.9, 1,
	  "SELECT least({run_ns}, f * 2e5), {run_ns}, '', f, 0, 0 FROM (SELECT max(major_faults) - "
	  "min(major_faults) AS f, "
	  "(max(ts_ns) - min(ts_ns)) / 1e9 AS s FROM host.process GROUP BY pid ORDER BY 1 DESC "
	  "LIMIT 1) WHERE f > 200 * s",
	  "Memory comes back from storage: {count} page fault{s} needed I/O, about {won} of "
	  "waiting.",
	  "at 0.2 ms a fault; swapped out, or files mapped and read for the first time",
	  "use less memory (smaller batches, fewer workers), or a machine with more", "memory",
	  "SELECT ts_ns, pid, major_faults FROM host.process" },
	{ "gc", 0.05, 0.8, 0,
	  "SELECT sum(self_ns), {run_ns}, arg_max(name, self_ns), sum(count), max(max_ns), 0 FROM "
	  "trace.regions WHERE "
	  "regexp_matches(name, '^(gc|garbage collection)($|[^a-z])|[.:]gc_?collect$', 'i')",
	  "Garbage collection takes {share} of the run ({won}).",
	  "{count} collection{s}, the longest {a}",
	  "gc.freeze() after start-up, a higher gc.set_threshold(), fewer objects made in the loop",
	  "timeline",
	  "SELECT name, count, total_ns, max_ns FROM trace.regions WHERE name LIKE 'gc %'" },
	/* Traced: the outermost loads, each by the file that ran longest in it; what the program's
	   own file does is no import. Zones are many: they are looked at only where loads take
	   long. Sampled: stacks inside of a load, by the file that the program asked for; its word
	   counts where most zones are gone. */
	{ "import", 0.10, 0.5, 2,
	  "WITH z AS (SELECT pid, tid, name, file, start_ns, start_ns + duration_ns AS end_ns, "
	  "duration_ns AS ns, depth, name = "
	  "'<module>' AS module FROM trace.zones SEMI JOIN (SELECT pid FROM trace.regions "
	  "WHERE " IS_LOAD " GROUP BY pid HAVING sum(total_ns) > 5e8) USING (pid) WHERE name = "
			   "'<module>' OR " IS_LOAD
	  "), l AS (SELECT *, coalesce(max(end_ns) FILTER (NOT module) OVER (PARTITION BY pid, tid "
	  "ORDER BY start_ns, depth ROWS "
	  "BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) AS until FROM z), n AS (SELECT *, NOT "
	  "module AND until <= start_ns AS "
	  "outermost, sum(outermost::INT) OVER (PARTITION BY pid, tid ORDER BY start_ns, depth) AS "
	  "load FROM l), t AS (SELECT pid, "
	  "max(ns) FILTER (outermost) AS ns, coalesce(arg_max(file, ns) FILTER (module AND end_ns "
	  "<= until), any_value(name) "
	  "FILTER (outermost AND starts_with(name, 'import '))) AS file FROM n GROUP BY pid, tid, "
	  "load), r AS (SELECT sum(sum) AS ns, "
	  "arg_max(file, sum) AS which, max(sum) AS most FROM (SELECT pid, file, sum(ns) AS sum "
	  "FROM t GROUP BY pid, file) WHERE sum "
	  "> 0 GROUP BY pid ORDER BY 1 DESC LIMIT 1), f AS (SELECT contains(array_to_string(stack, "
	  "';'), '_find_and_load') AS inside, "
	  "nullif(regexp_extract(array_to_string(list_reverse(stack), ';'), '_find_and_load "
	  ".*?;<module> \\((.*?):[0-9]+\\)(;|$)', "
	  "1), '') AS file, count(*) AS k FROM python.samples WHERE tid = pid GROUP BY 1, 2), s AS "
	  "(SELECT "
	  "{run_ns} * sum(k) FILTER (inside) / sum(k) AS ns, arg_max(file, k) FILTER (inside AND "
	  "file IS NOT NULL) AS which, "
	  "{run_ns} * max(k) FILTER (inside AND file IS NOT NULL) / sum(k) AS most FROM f HAVING "
	  "sum(k) >= 20), x AS (SELECT "
	  "coalesce(r.ns, 0) AS a, coalesce(s.ns, 0) AS b, CASE WHEN b > 2 * a THEN s.which ELSE "
	  "r.which END AS which, CASE WHEN b > 2 * a "
	  "THEN s.most ELSE r.most END AS most FROM (SELECT 1) LEFT JOIN r ON true LEFT JOIN s ON "
	  "true) SELECT greatest(a, b), "
	  "{run_ns}, regexp_extract(which, '([^/]+/)?[^/]*$'), 0, most, 0 FROM x WHERE greatest(a, "
	  "b) > 5e8",
	  "Importing modules takes {share} of the run ({won})[; the costliest is {name} with {a}].",
	  "imports run before any step",
	  "import only where it is needed, and less: python -X importtime lists them",
	  "flame?of=samples",
	  "SELECT stack, count(*) FROM python.samples GROUP BY 1 ORDER BY 2 DESC" },
	/* No time is won, but a run that ends by the OOM killer is lost: it ranks low unless
	   nothing else is found. What is given back as it ends is left out. */
	{ "growth", 0.30, 0.03, 2,
	  "SELECT {run_ns} * (late - early) / late, {run_ns}, '', n, early, late FROM (SELECT "
	  "regr_r2(rss_bytes, ts_ns) "
	  "FILTER (ts_ns <= calm) AS r2, "
	  "regr_slope(rss_bytes, ts_ns) FILTER (ts_ns <= calm) AS slope, arg_min(rss_bytes, ts_ns) "
	  "AS early, "
	  "arg_max(rss_bytes, ts_ns) AS late, "
	  "count(*) AS n FROM (SELECT *, min(ts_ns) OVER w + (max(ts_ns) OVER w - min(ts_ns) OVER "
	  "w) / 5 AS settled, "
	  "max(ts_ns) OVER w - (max(ts_ns) OVER w - min(ts_ns) OVER w) / 20 AS calm FROM "
	  "host.process WINDOW w AS (PARTITION BY pid)) WHERE ts_ns >= settled GROUP BY pid ORDER "
	  "BY late DESC LIMIT 1) WHERE "
	  "n >= 5 AND slope > 0 AND r2 > 0.8 AND late - early > 16e6",
	  "Memory grows all the time: from {a_bytes} after start-up to {b_bytes} at the end.",
	  "{count} looks lie on a rising line",
	  "find what is kept: lists of losses that hold graphs (use .item()), caches without a "
	  "bound",
	  "memory", "SELECT ts_ns, pid, rss_bytes FROM host.process" },
	/* Work, not waiting for the others: where phases are known, data and forward. */
	{ "rank", 0.05, 0.9, 0,
	  "WITH w AS (SELECT step, rank, coalesce(nullif(coalesce(data_ns, 0) + "
	  "coalesce(forward_ns, 0), 0), duration_ns) AS "
	  "ns FROM trace.steps WHERE rank IS NOT NULL), m AS (SELECT step, max(ns) AS most, "
	  "median(ns) AS usual, arg_max(rank, "
	  "ns) AS late FROM w GROUP BY step HAVING count(*) > 1), l AS (SELECT late, count(*) AS n "
	  "FROM m GROUP BY 1 ORDER BY "
	  "2 DESC LIMIT 1) SELECT sum(most - usual), sum(most), any_value(l.late)::VARCHAR, "
	  "any_value(l.n), median(most), "
	  "median(usual) FROM m, l HAVING count(*) >= 5 AND any_value(l.n) > 0.6 * count(*)",
	  "Rank {name} is late: the others wait for it for {share} of step time ({won} of "
	  "{whole}).",
	  "it is the slowest in {count} step{s}, with {a} where others take {b}",
	  "look at that rank's machine and data: kymo report on its own recording", "timeline",
	  "SELECT step, rank, data_ns, forward_ns, duration_ns FROM trace.steps ORDER BY step, "
	  "rank" },
	/* Queueing ahead hides at most what the device takes: where that is next to nothing, it is
	   another thing to say. */
	{ "device_idle", 0.15, 0.8, 0,
	  "SELECT host_late_ns, {run_ns}, queue, gaps, busy_ns, idle_ns FROM device.queues WHERE "
	  "busy_ns > 0.05 * {run_ns} "
	  "ORDER BY busy_ns DESC LIMIT 1",
	  "The device waits for the host: for {share} of the run ({won}) {name} had nothing to do, "
	  "since nothing was queued.",
	  "it was busy for {a} and idle for {b}; {count} time{s} it ran out of work",
	  "queue further ahead: prepare and copy the next batch while the device works, in another "
	  "thread or queue",
	  "devices", "SELECT cause, sum(duration_ns) FROM device.gaps GROUP BY 1" },
	{ "device_unused", 0.15, 0.1, 0,
	  "SELECT host_late_ns, {run_ns}, queue, ops, busy_ns, 0 FROM (FROM device.queues ORDER BY "
	  "busy_ns DESC LIMIT 1) WHERE "
	  "busy_ns BETWEEN 1 AND 0.05 * {run_ns}",
	  "The device is hardly used: {name} was busy for {a}, and for {share} of the run ({won}) "
	  "it waited for the host to queue "
	  "something.",
	  "{count} operation{s} in {whole}",
	  "the time goes into the host: make it quicker, or give more of its work to the device; "
	  "queueing ahead wins at most {a}",
	  "devices", "FROM device.queues ORDER BY busy_ns DESC" },
	/* From 80 % on, what is left to the host is no more than the gaps that any program has.
	   Where the host waits for less than a fifth of that time the two are about even, and
	   mending the device alone brings little; and what is a fifth of the run is told as a
	   region of that size is. A model's execution is a wait, too: the call comes back with its
	   end. */
	{ "device_bound", 0.80, 0.35, 0,
	  "WITH q AS (SELECT * FROM device.queues ORDER BY busy_ns DESC LIMIT 1), w AS (SELECT "
	  "max(ns) AS waited FROM (SELECT "
	  "sum(ns) AS ns FROM (SELECT pid, tid, device, duration_ns AS ns FROM device.waits UNION "
	  "ALL SELECT pid, tid, device, "
	  "end_ns - start_ns FROM device.ops WHERE kind = 'execution') SEMI JOIN q USING (pid, "
	  "device) GROUP BY tid)), k AS "
	  "(SELECT name, count(*) AS n, sum(end_ns - start_ns) AS ns FROM device.ops SEMI JOIN q "
	  "USING "
	  "(pid, device, queue) WHERE kind NOT IN ('execution', 'module') GROUP BY 1 ORDER BY ns "
	  "DESC NULLS LAST LIMIT 1) SELECT "
	  "busy_ns, busy_ns + idle_ns, queue, k.n, least(waited, busy_ns + idle_ns), k.ns, k.name "
	  "FROM q, w, k WHERE busy_ns > 0.2 * {run_ns} AND waited > "
	  "0.2 * (busy_ns + idle_ns)",
	  "The device is the bottleneck: {name} was busy for {share} of the time that the device "
	  "was in use ({won} of {whole}), mostly "
	  "with {which}, and the host waited for it.",
	  "the host waited for {a}; {which} took {b} in {count} run{s}",
	  "make {which} cheaper or the work smaller, or use a faster device; a faster host wins "
	  "nothing",
	  "devices",
	  "SELECT name, count(*), sum(end_ns - start_ns) FROM device.ops WHERE kind <> 'execution' "
	  "GROUP BY 1 ORDER BY 3 DESC" },
	{ "device_sync", 0.10, 0.9, 0,
	  "SELECT sync_ns, {run_ns}, queue, (SELECT count(*) FROM device.waits), busy_ns, (SELECT "
	  "median(duration_ns) FROM "
	  "device.waits) FROM device.queues ORDER BY sync_ns DESC LIMIT 1",
	  "The host waits for the device piece by piece: {name} stood still for {share} of the run "
	  "({won}) until it was given the "
	  "next.",
	  "the host waited {count} time{s}, {b} at the median; the queue was busy for {a}",
	  "wait less often: queue several pieces before a wait, read results later and without "
	  "blocking",
	  "devices", "SELECT zone, count(*), sum(duration_ns) FROM device.waits GROUP BY 1" },
	/* Where milliseconds lie between two of them, it is not for launching them. */
	{ "device_tiny", 0.10, 0.7, 0,
	  "SELECT launch_ns + sync_ns + host_late_ns AS apart_ns, {run_ns}, queue, ops, p50_ns, "
	  "apart_ns / greatest(gaps, 1) FROM "
	  "device.queues WHERE ops >= 1000 AND p50_ns < 20000 AND apart_ns < 1e6 * gaps ORDER BY "
	  "ops DESC LIMIT 1",
	  "Operations of the device are tiny: what is between those of {name} adds up to {share} "
	  "of the run ({won}).",
	  "{count} operations of {a} at the median, and {b} between two of them",
	  "fuse kernels, batch more into one, or record the sequence once and launch it as a whole",
	  "devices",
	  "SELECT name, count(*), median(end_ns - start_ns) FROM device.ops GROUP BY 1" },
	/* Hung, or nearly: of all processes none has begun or ended anything, and some are inside
	   of zones. Those that ended by themselves were not, nor is one that works within a zone
	   around all of it. Zones are many: they are looked at only where what is open began long
	   ago. */
	{ "stuck", 0.20, 0.5, 1,
	  "WITH o AS (SELECT z.*, start_ns + age_ns AS until FROM trace.open_zones z SEMI JOIN "
	  "(SELECT pid FROM "
	  "kymo.processes WHERE state <> 'ended') USING (pid) WHERE age_ns IS NOT NULL), n AS "
	  "(SELECT max(until) AS now, "
	  "max(start_ns) AS began, count(*) AS n FROM o HAVING now - began > 0.1 * {run_ns}), e AS "
	  "(SELECT max(ended) AS ended FROM "
	  "(SELECT max(start_ns + duration_ns) AS ended FROM trace.zones SEMI JOIN (SELECT pid "
	  "FROM kymo.processes, n) USING (pid) "
	  "UNION ALL SELECT max(start_ns + duration_ns) FROM trace.steps)), w AS (SELECT "
	  "avg(cpu_pct) AS pct FROM (FROM host.process "
	  "SEMI JOIN o USING (pid)), n WHERE ts_ns >= began) SELECT now - greatest(began, "
	  "coalesce(ended, 0)), {run_ns}, coalesce(name, "
	  "'a zone'), n, age_ns, pid FROM o, n, e, w WHERE ended IS NOT NULL OR coalesce(pct, 0) < "
	  "50 ORDER BY until < now - 1e9, tid "
	  "<> pid, tid, depth DESC LIMIT 1",
	  "Inside of {name} no zone has begun or ended for the last {won}, {share} of the run.",
	  "that zone is open for {a}; zones that are open in all: {count}",
	  "while it runs, kymo backtrace --why {pid} says what it waits for; kymo backtrace shows "
	  "where it was last",
	  "timeline", "FROM trace.open_zones" },
	{ "waiting", 0.60, 0.2, 2,
	  "SELECT {run_ns} * (1 - avg(cpu_pct) / 100), {run_ns}, '', count(*), avg(cpu_pct) * "
	  "{run_ns} / 100, pid "
	  "FROM host.process GROUP BY pid HAVING count(*) >= 3 ORDER BY max(rss_bytes) DESC LIMIT "
	  "1",
	  "The program mostly waits: for {share} of the run it used no processor.",
	  "{a} of processor time in {whole}",
	  "look at what it waits for: I/O, a lock, a device, or a processor that others hold; kymo "
	  "backtrace shows "
	  "where it was last, and while it runs kymo backtrace --why {pid} what it waits for",
	  "metrics", "SELECT ts_ns, pid, cpu_pct FROM host.process" },
	/* What is open covers its time, too: until the last moment known of where nobody saw the
	   end. */
	{ "coverage", 0.90, 0.02, 1,
	  "SELECT {run_ns} - covered, {run_ns}, '', n, covered, 0 FROM (SELECT sum(count) AS n, "
	  "sum(self_ns) + coalesce((SELECT "
	  "sum(coalesce(age_ns, {run_ns} - start_ns)) FROM trace.open_zones WHERE depth = 0), 0) "
	  "AS covered FROM trace.regions) "
	  "WHERE n > 0",
	  "Zones explain little of this run: they cover {a} of {whole}.",
	  "{count} zones were recorded", "mark the outermost loops and calls, too", "timeline",
	  "FROM trace.regions ORDER BY self_ns DESC" },
	{ "overhead", 0.05, 1.0, 1,
	  "SELECT sum(total_ns), {run_ns}, '', sum(events), 0, 0 FROM kymo.overhead WHERE source "
	  "NOT IN ('collector', 'sampler')",
	  "Recording itself is costly: it takes {share} of the run ({won} of {whole}).",
	  "{count} rows were recorded", "mark fewer or larger zones", "streams",
	  "FROM kymo.overhead" },
};

const size_t rules_count = sizeof(rules) / sizeof(rules[0]);

/* ---- the page -------------------------------------------------------------------------------- */

/* Templates become prose: {share} is a share, and so on; a bar would end the cell. */
static void add_prose(struct buf *out, const char *text)
{
	static const struct {
		const char *word, *said;
	} words[] = {
		{ "{share}", "16 %" },	 { "{won}", "34.5 s" },	    { "{whole}", "211 s" },
		{ "{name}", "NAME" },	 { "{count}", "404" },	    { "{a}", "1.2 ms" },
		{ "{b}", "24.9 ms" },	 { "{a_bytes}", "320 MB" }, { "{b_bytes}", "770 MB" },
		{ "{which}", "KERNEL" }, { "{pid}", "PID" },	    { "{s}", "s" },
	};

	while (*text) {
		size_t i = 0, count = sizeof(words) / sizeof(words[0]);

		while (i < count && strncmp(text, words[i].word, strlen(words[i].word)) != 0)
			i++;
		if (i < count) {
			buf_text(out, words[i].said);
			text += strlen(words[i].word);
			continue;
		}
		if (*text == '|')
			buf_char(out, '\\');
		if (*text != '[' && *text != ']')
			buf_char(out, *text);
		text++;
	}
}

void rules_docs(struct buf *out)
{
	buf_text(out, "| name | what is said, by example | said from | try | the same by hand |\n"
		      "|---|---|---|---|---|\n");
	for (size_t i = 0; i < rules_count; i++) {
		buf_print(out, "| %s | ", rules[i].name);
		add_prose(out, rules[i].sentence);
		buf_print(out, " | %.0f %%", 100 * rules[i].threshold);
		if (rules[i].least_s > 0)
			buf_print(out, ", runs of %g s", rules[i].least_s);
		buf_text(out, " | ");
		add_prose(out, rules[i].advice);
		buf_print(out, " | `%s` |\n", rules[i].query);
	}
}
