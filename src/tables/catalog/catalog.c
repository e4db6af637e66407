#include "tables/catalog/catalog.h"

#include "base/format.h"

/* A column that is taken as it is, and one that is made of others. */
#define AS_IS(name, type, about) \
	{ \
		name, type, NULL, about \
	}
#define MADE(name, type, expression, about) \
	{ \
		name, type, expression, about \
	}

#define PID AS_IS("pid", "INTEGER", "the process")
#define TID AS_IS("tid", "INTEGER", "the thread's number in the kernel")
#define THREAD AS_IS("thread", "VARCHAR", "the thread's name")
#define RANK AS_IS("rank", "INTEGER", "rank of the process; NULL outside of a distributed run")
#define STEP AS_IS("step", "BIGINT", "the step that ran then; 0 before the first")
#define TS AS_IS("ts_ns", "BIGINT", "when, in ns since the recording began")
/* Counters of the kernel are unsigned in the row; nothing real exceeds a BIGINT. */
#define BYTES(name, about) \
	{ \
		name, "BIGINT", "TRY_CAST(" name " AS BIGINT)", about \
	}

#define ZONE_COLUMNS(source, file, line, span, span_about, instance) \
	{ "source", "VARCHAR", source, "who marked it: c, python, line, torch, device" }, \
		AS_IS("name", "VARCHAR", \
		      "the zone's name; NULL where the table of names was full"), \
		{ "file", "VARCHAR", file, \
		  "where it is in the code; of a torch module inside of another, its class" }, \
		{ "line", "INTEGER", line, "the line in that file" }, \
		AS_IS("start_ns", "BIGINT", "when it began, in ns since the recording began"), \
		AS_IS(span, "BIGINT", span_about), \
		AS_IS("depth", "INTEGER", "how many zones of its thread it is inside of"), PID, \
		TID, THREAD, RANK, STEP, \
	{ \
		"instance", "INTEGER", instance, \
			"number of the timer or collector; NULL for others" \
	}

static const struct catalog_column zones[] = {
	ZONE_COLUMNS("name_source", "name_file", "name_line", "duration_ns", "how long it took",
		     "name_instance"),
};

static const struct catalog_column open_zones[] = {
	ZONE_COLUMNS(NULL, NULL, NULL, "age_ns",
		     "how long it has been open, or was when its process ended", NULL),
};

static const struct catalog_column regions[] = {
	AS_IS("source", "VARCHAR", "who marked it: c, python, line, torch, device"),
	AS_IS("name", "VARCHAR", "the region's name"),
	AS_IS("count", "BIGINT", "zones that have ended, those no longer kept included"),
	AS_IS("total_ns", "BIGINT", "their time in all"),
	AS_IS("self_ns", "BIGINT", "that time without the zones inside of them"),
	AS_IS("min_ns", "BIGINT", "the shortest"),
	AS_IS("max_ns", "BIGINT", "the longest"),
	AS_IS("mean_ns", "DOUBLE", "the mean"),
	AS_IS("stddev_ns", "DOUBLE", "the standard deviation (n - 1); NULL for a single one"),
	AS_IS("p50_ns", "BIGINT",
	      "the median, from a histogram of 8 buckets to a power of two; NULL where none was "
	      "kept: beyond the first 256 "
	      "regions of a thread"),
	AS_IS("p90_ns", "BIGINT", "the 90th percentile, likewise"),
	AS_IS("p99_ns", "BIGINT", "the 99th percentile, likewise"),
	AS_IS("open", "BIGINT", "zones that are open now, or were when the process ended"),
	PID,
	AS_IS("instance", "INTEGER", "number of the timer or collector; NULL for others"),
	AS_IS("own_cost_ns", "BIGINT",
	      "what recording them cost in all: both ends of one and its part of the totals, as "
	      "measured at "
	      "start-up; "
	      "NULL where it was not measured"),
	AS_IS("file", "VARCHAR",
	      "where it is in the code; one of the places, if there are several. Functions of "
	      "Python in different files are rows of their own"),
	AS_IS("line", "INTEGER", "the line in that file"),
};

/* Texts come in parts; a thread counts its texts. */
#define JOINED_TEXT(kind, columns) \
	"(SELECT pid, thread_id, number, " columns "string_agg(text, '' ORDER BY part) AS text " \
	"FROM kymo_scan('trace.zone_text') WHERE kind " kind " GROUP BY ALL)"

static const struct catalog_column marks[] = {
	AS_IS("ts_ns", "BIGINT", "when, in ns since the recording began"),
	MADE("name", "VARCHAR", "m.name", "the mark's name"),
	MADE("text", "VARCHAR", "t.text", "its text; NULL where it has none"),
	MADE("step", "BIGINT", "m.step", "the step that ran then; 0 before the first"),
	MADE("pid", "INTEGER", "m.pid", "the process"),
	MADE("tid", "INTEGER", "m.tid", "the thread's number in the kernel"),
	MADE("thread", "VARCHAR", "m.thread", "the thread's name"),
	MADE("rank", "INTEGER", "m.rank", "rank of the process; NULL outside of a distributed run"),
};

static const struct catalog_column counters[] = {
	TS,
	AS_IS("name", "VARCHAR", "the counter's name"),
	AS_IS("value", "DOUBLE", "its value"),
	MADE("instance", "INTEGER", "name_instance",
	     "number of the timer or collector; NULL for others"),
	STEP,
	PID,
	TID,
	THREAD,
	RANK,
};

#define PHASE(name, about) \
	{ \
		name, "BIGINT", "nullif(" name ", 0)", about \
	}

static const struct catalog_column steps[] = {
	AS_IS("step", "BIGINT", "the step's number"),
	AS_IS("name", "VARCHAR", "the loop's name"),
	AS_IS("start_ns", "BIGINT", "when it began, in ns since the recording began"),
	AS_IS("duration_ns", "BIGINT", "how long it took"),
	PHASE("data_ns", "time spent waiting for data; NULL where not known"),
	PHASE("forward_ns", "time in forward; NULL where not known"),
	PHASE("backward_ns", "time in backward; NULL where not known"),
	PHASE("optimizer_ns", "time in the optimizer; NULL where not known"),
	PID,
	RANK,
};

static const struct catalog_column zone_text[] = {
	AS_IS("start_ns", "BIGINT", "when the zone began that it belongs to"),
	AS_IS("name", "VARCHAR", "that zone's name"),
	MADE("text", "VARCHAR", "CASE WHEN kind = 0 THEN text END", "the text; NULL for a value"),
	MADE("value", "UBIGINT", "CASE WHEN kind = 2 THEN value END", "the value; NULL for a text"),
	PID,
	TID,
	THREAD,
};

#define MEGABYTES(name, bytes, about) \
	{ \
		name, "DOUBLE", "CASE WHEN device >= 0 THEN " bytes " / 1048576.0 END", about \
	}

static const struct catalog_column torch_trace[] = {
	AS_IS("step", "BIGINT",
	      "finished optimizer steps, from 0; in inference root forwards; kymo.step() "
	      "overrides"),
	AS_IS("seq", "BIGINT", "order within the step, as rows were written: at their end"),
	AS_IS("module", "VARCHAR",
	      "qualified name, as layers.0.attn; for a step the optimizer's class; backward: the "
	      "call"),
	MADE("stage", "VARCHAR",
	     "CASE stage WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' WHEN 2 THEN 'step' END",
	     "forward, backward or step"),
	MEGABYTES("allocated", "allocated_bytes",
		  "MB (2^20 bytes) allocated on the device; NULL without one"),
	MEGABYTES("max_allocated", "peak_bytes", "its peak, in MB"),
	MEGABYTES("cached", "reserved_bytes", "MB held by the allocator"),
	MADE("duration", "DOUBLE", "duration_ns / 1e9", "seconds, by the host's clock"),
	TS,
	RANK,
	PID,
	TID,
	MADE("device", "VARCHAR", "CASE WHEN device >= 0 THEN 'cuda:' || device END",
	     "as cuda:0; NULL for the CPU"),
	MADE("self", "DOUBLE", "greatest(duration_ns - child_ns, 0) / 1e9",
	     "seconds without those of modules inside of it"),
	AS_IS("model", "VARCHAR", "the outermost module: its class, with #2 for a second one"),
	AS_IS("depth", "INTEGER", "how many modules it is inside of"),
	MADE("recomputed", "BOOLEAN", "flags % 2 = 1",
	     "a forward that a checkpoint repeats in backward"),
	MADE("raised", "BOOLEAN", "flags // 2 % 2 = 1", "it ended with an exception"),
	AS_IS("device_ns", "BIGINT",
	      "its time on the device, from the first of what it queued to the last; NULL where "
	      "that is not known"),
};

static const struct catalog_column backtrace[] = {
	PID,
	TID,
	THREAD,
	AS_IS("func", "VARCHAR", "the function"),
	AS_IS("file", "VARCHAR", "its file"),
	AS_IS("lineno", "INTEGER", "the line that runs"),
	AS_IS("depth", "INTEGER", "0 is the innermost frame"),
	AS_IS("frame_type", "VARCHAR", "Python or Native"),
	AS_IS("age_ns", "BIGINT",
	      "how long ago the stack was taken; of a program that has ended, how long before its "
	      "end"),
	AS_IS("task", "VARCHAR",
	      "asyncio's task that is suspended there, on no thread's stack; NULL: the stack of "
	      "the thread"),
};

static const struct catalog_column samples[] = {
	TS,
	PID,
	TID,
	THREAD,
	AS_IS("stack", "VARCHAR[]", "frames as function (file:line), the innermost first"),
	AS_IS("state", "VARCHAR", "what the kernel said of the thread: R runs, S waits, D, T"),
	AS_IS("gil", "BOOLEAN", "whether it held the GIL"),
	AS_IS("cause", "VARCHAR",
	      "why it was taken: period, slow zone: NAME, slow step: NUMBER, mark"),
};

static const struct catalog_column folded[] = {
	AS_IS("stack", "VARCHAR", "functions from the outermost in, parted by ;"),
	AS_IS("samples", "BIGINT", "how often it was seen, by period"),
	AS_IS("running", "BIGINT", "how often of those the thread ran"),
	PID,
	THREAD,
};

static const struct catalog_column frames[] = {
	AS_IS("node", "BIGINT", "number of the frame in its place: the same function has many"),
	AS_IS("parent", "BIGINT", "its caller's; 0: there is none"),
	MADE("func", "VARCHAR", "name", "the function"),
	MADE("file", "VARCHAR", "name_file", "its file"),
	MADE("lineno", "INTEGER", "lineno::INTEGER", "the line that ran"),
	MADE("collector", "INTEGER", "pid", "the kymo that took the samples; numbers are its own"),
};

static const struct catalog_column variables[] = {
	TS,
	STEP,
	AS_IS("func", "VARCHAR", "the function that the variable is in"),
	AS_IS("name", "VARCHAR", "the variable"),
	AS_IS("value", "VARCHAR", "its repr, cut to a length"),
	AS_IS("type", "VARCHAR", "its type"),
	PID,
};

#include "tables/catalog/catalog_device.h"

#include "tables/catalog/catalog_alloc.h"

static const struct catalog_column host_process[] = {
	TS,
	MADE("pid", "INTEGER", "target_pid", "the process"),
	MADE("cpu_pct", "DOUBLE", "round(cpu_pct, 1)",
	     "CPU time by wall time since the row before; 100 is one core"),
	BYTES("rss_bytes", "memory that is resident"),
	BYTES("vms_bytes", "memory that is mapped"),
	AS_IS("threads", "BIGINT", "its threads"),
	BYTES("minor_faults", "page faults without I/O, since the process began"),
	BYTES("major_faults", "page faults with I/O, since the process began"),
	BYTES("voluntary_switches", "context switches to wait, since the process began"),
	BYTES("involuntary_switches", "context switches forced on it, since the process began"),
};

static const struct catalog_column host_threads[] = {
	TS,
	MADE("pid", "INTEGER", "target_pid", "the process"),
	MADE("tid", "INTEGER", "target_tid", "the thread's number in the kernel"),
	MADE("thread", "VARCHAR", "target_thread", "the thread's name in the kernel"),
	MADE("cpu_pct", "DOUBLE", "round(cpu_pct, 1)",
	     "CPU time by wall time since the look before; 100 is one core"),
	AS_IS("state", "VARCHAR",
	      "running, sleeping, blocked (waits for I/O), stopped, traced, zombie"),
	BYTES("cpu_ns", "CPU time since the thread began"),
	BYTES("voluntary_switches", "context switches to wait, since the thread began"),
	BYTES("involuntary_switches", "context switches forced on it, since the thread began"),
};

/* What is below 0 is not known. */
#define SHARE(name, about) \
	{ \
		name, "DOUBLE", "CASE WHEN " name " >= 0 THEN round(" name ", 1) END", about \
	}

static const struct catalog_column host_cgroup[] = {
	TS,
	MADE("pid", "INTEGER", "target_pid", "a process that is in the group"),
	AS_IS("path", "VARCHAR", "the group"),
	BYTES("memory_bytes", "memory that the group uses, its file cache included"),
	MADE("memory_limit_bytes", "BIGINT", "TRY_CAST(nullif(memory_limit_bytes, 0) AS BIGINT)",
	     "the smallest limit of the group and those above it; NULL: none"),
	MADE("cpu_limit", "DOUBLE", "nullif(cpu_limit, 0)",
	     "cores that it may use, likewise; NULL: no limit"),
	BYTES("throttled_ns", "time that it was held back for its CPU limit, since it began"),
	BYTES("throttled_count", "how often"),
	SHARE("cpu_some_pct", "share of time in which some of it waited for a core; of the host "
			      "where groups do not tell"),
	SHARE("cpu_full_pct", "share of time in which all of it waited for a core"),
	SHARE("memory_some_pct", "share of time in which some of it waited for memory"),
	SHARE("memory_full_pct", "share of time in which all of it waited for memory"),
	SHARE("io_some_pct", "share of time in which some of it waited for I/O"),
	SHARE("io_full_pct", "share of time in which all of it waited for I/O"),
};

static const struct catalog_column host_cpu[] = {
	TS,
	MADE("cpu", "INTEGER", "CASE WHEN cpu >= 0 THEN cpu END", "the core; NULL: all together"),
	MADE("busy_pct", "DOUBLE", "round(busy_pct, 1)", "share of time that it worked"),
	MADE("iowait_pct", "DOUBLE", "round(iowait_pct, 1)",
	     "share of time that it waited for I/O"),
	MADE("pressure_pct", "DOUBLE", "round(pressure_pct, 1)",
	     "share of time that something waited for a core"),
};

static const struct catalog_column host_io[] = {
	TS,
	MADE("pid", "INTEGER", "target_pid", "the process"),
	BYTES("read_bytes", "read from storage, since the process began"),
	BYTES("write_bytes", "written to storage, since the process began"),
};

static const struct catalog_column host_network[] = {
	TS,
	AS_IS("interface", "VARCHAR", "the interface"),
	BYTES("rx_bytes", "received, since the machine began"),
	BYTES("tx_bytes", "sent, since the machine began"),
	MADE("pid", "INTEGER", "target_pid",
	     "a process that is in the network namespace of the interface"),
};

static const struct catalog_column host_gpu[] = {
	TS,
	MADE("device", "INTEGER", "device::INTEGER", "the GPU's number"),
	SHARE("util_pct", "share of time with a kernel running; NULL where the card does not tell"),
	BYTES("used_bytes", "memory in use"),
	BYTES("total_bytes", "memory in all"),
	SHARE("power_w", "power in watts; NULL where the card does not tell"),
};

static const struct catalog_column runs[] = {
	AS_IS("started_unix_ns", "BIGINT",
	      "when the recording began, in ns since 1970; all other *_ns count from it"),
	AS_IS("program", "VARCHAR", "the program's short name"),
	AS_IS("command", "VARCHAR", "its command line"),
	AS_IS("host", "VARCHAR", "the machine"),
	AS_IS("cwd", "VARCHAR", "its working directory"),
	AS_IS("pid", "INTEGER", "its process"),
	AS_IS("state", "VARCHAR",
	      "live, ended, killed, detached: kymo attach ended and the program ran on, or lost: "
	      "gone, and nobody saw how"),
	AS_IS("exit_code", "INTEGER", "its exit status; NULL where it has none or it is not known"),
	AS_IS("signal", "VARCHAR", "the signal that killed it, as SIGKILL"),
	AS_IS("duration_ns", "BIGINT", "from the beginning to the last moment known of"),
	AS_IS("kept", "VARCHAR", "all, or flight: the last rows of each stream"),
	AS_IS("version", "VARCHAR", "of kymo, when it was recorded"),
	AS_IS("clock", "VARCHAR", "tsc, cntvct or monotonic"),
	AS_IS("clock_error_ns", "BIGINT", "the stated error of times"),
	AS_IS("supervised", "BOOLEAN", "whether kymo run or kymo attach made it"),
	AS_IS("not_recorded", "BIGINT", "children that were seen and did not record"),
	AS_IS("path", "VARCHAR", "where it was read from"),
};

static const struct catalog_column processes[] = {
	PID,
	AS_IS("ppid", "INTEGER", "its parent"),
	AS_IS("program", "VARCHAR", "the program's short name"),
	AS_IS("command", "VARCHAR", "its command line"),
	RANK,
	AS_IS("ranks", "INTEGER", "how many ranks there are"),
	AS_IS("role", "VARCHAR",
	      "target; collector: kymo, which watches; command: kymo, which changed a setting"),
	AS_IS("state", "VARCHAR", "live, ended, killed, or lost: gone, and nobody saw how"),
	AS_IS("exit_code", "INTEGER", "its exit status; NULL where it has none or it is not known"),
	AS_IS("signal", "VARCHAR", "the signal that killed it, as SIGKILL"),
	AS_IS("started_ns", "BIGINT", "when it began to record"),
	AS_IS("ended_ns", "BIGINT", "the last moment known of"),
	AS_IS("clock", "VARCHAR", "tsc, cntvct or monotonic"),
	AS_IS("clock_error_ns", "BIGINT", "the stated error of its times"),
	AS_IS("names_full", "BIGINT", "names that no room was left for"),
	AS_IS("threads_full", "BIGINT", "threads that no room was left for"),
	AS_IS("totals_full", "BIGINT",
	      "zones that are in no total, since no room was left for their name"),
};

static const struct catalog_column threads[] = {
	AS_IS("thread_id", "INTEGER", "number in this recording; kymo_scan has it as thread_id"),
	PID,
	TID,
	THREAD,
	RANK,
	AS_IS("started_ns", "BIGINT", "its first row"),
	AS_IS("ended_ns", "BIGINT",
	      "when it ended; NULL while it runs, or where it died with the process"),
};

static const struct catalog_column streams[] = {
	AS_IS("table_name", "VARCHAR", "the table that the stream's rows belong to"),
	PID,
	AS_IS("emitted", "BIGINT",
	      "rows that the program had to say: kept + overwritten + dropped"),
	AS_IS("kept", "BIGINT", "rows that can be read"),
	AS_IS("overwritten", "BIGINT", "rows that newer ones took the place of"),
	AS_IS("dropped", "BIGINT", "rows that were never written"),
#define X(upper, lower, text) AS_IS("dropped_" #lower, "BIGINT", text),
	KYMO_DROP_CAUSES(X)
#undef X
};

static const struct catalog_column overhead[] = {
	AS_IS("source", "VARCHAR",
	      "c, python, line: zones of the program; torch, device: rows of python.torch_trace "
	      "and device.ops; "
	      "collector: kymo, which watches on a core of its own; sampler: its part that takes "
	      "stacks; others by what they measure themselves"),
	AS_IS("events", "BIGINT",
	      "zones or rows that were recorded; rounds of a collector, samples of a sampler"),
	AS_IS("cost_ns_per_event", "DOUBLE",
	      "what one costs, as measured when its source began, or over all; NULL where it was "
	      "not"),
	AS_IS("total_ns", "BIGINT", "of all of them"),
	AS_IS("pct", "DOUBLE",
	      "that as a share of the wall time of the processes that recorded them; of a "
	      "collector or "
	      "sampler, of one core"),
};

static const struct catalog_column costs[] = {
	TS,
	AS_IS("source", "VARCHAR", "who measured itself"),
	BYTES("events", "what it did, since it began"),
	BYTES("cost_ns", "CPU time that it took, since it began"),
	PID,
};

static const struct catalog_column config[] = {
	TS,
	AS_IS("key", "VARCHAR", "the setting"),
	AS_IS("old", "VARCHAR", "its value before"),
	AS_IS("new", "VARCHAR", "its value after"),
	AS_IS("by", "VARCHAR", "who changed it"),
};

static const struct catalog_column gaps[] = {
	AS_IS("start_ns", "BIGINT", "when it began, in ns since the recording began"),
	AS_IS("duration_ns", "BIGINT", "how long it lasted"),
	AS_IS("cause", "VARCHAR", "why nothing was seen: deep recursion, another tool's hook, …"),
	{ "events", "BIGINT", "TRY_CAST(events AS BIGINT)",
	  "how often that came about in this span" },
	PID,
	TID,
	THREAD,
};

static const struct catalog_column problems[] = {
	AS_IS("text", "VARCHAR", "what could not be read, and why"),
};

#define VIEW(schema, name, from, columns, about) \
	{ \
		schema, name, from, columns, sizeof(columns) / sizeof(columns[0]), about \
	}

const struct catalog_view catalog_views[] = {
	VIEW("python", "torch_trace", TORCH_FROM, torch_trace,
	     "Forward and backward of every torch module, and optimizer steps."),
	VIEW("python", "backtrace",
	     "(SELECT * FROM kymo_meta('backtrace') ORDER BY pid, tid, task NULLS FIRST, depth)",
	     backtrace,
	     "The Python stack of every thread, now or as last taken, and of asyncio's tasks."),
	VIEW("python", "samples", "kymo_samples()", samples, "Python stacks over time."),
	VIEW("python", "folded",
	     "(SELECT l.folded AS stack, sum(t.samples)::BIGINT AS samples, sum(t.running)::BIGINT "
	     "AS running, t.pid, "
	     "t.thread FROM (SELECT pid AS collector, node, target_pid AS pid, thread_name AS "
	     "thread, count(*) AS samples, "
	     "count(*) FILTER (state = ascii('R')) AS running FROM kymo_scan('python.samples') "
	     "WHERE cause = 'period' "
	     "GROUP BY ALL) t JOIN kymo_leaves() l ON l.collector = t.collector AND l.node = "
	     "t.node GROUP BY ALL "
	     "ORDER BY samples DESC)",
	     folded, "Python samples by stack, as flame graphs take them."),
	VIEW("python", "frames", "kymo_scan('python.frames')", frames,
	     "What the stacks of samples are made of."),
	VIEW("python", "variables", "kymo_scan('python.variables')", variables,
	     "Variables that were watched."),
	VIEW("trace", "zones", "kymo_scan('trace.zones')", zones,
	     "Zones that have ended, one row each."),
	VIEW("trace", "open_zones", "kymo_meta('open_zones')", open_zones,
	     "Zones that are open now, or were when their process ended."),
	VIEW("trace", "regions", "kymo_meta('regions')", regions,
	     "Exact totals of every region, whatever rows are still kept."),
	VIEW("trace", "marks",
	     "kymo_scan('trace.marks') m LEFT JOIN " JOINED_TEXT(
		     "= 1", "") " t ON m.text_number > 0 AND t.pid = m.pid AND t.thread_id = "
				"m.thread_id AND t.number = m.text_number",
	     marks, "Moments that the program named."),
	VIEW("trace", "counters", "kymo_scan('trace.counters')", counters,
	     "Values that the program recorded over time."),
	VIEW("trace", "steps", "kymo_scan('trace.steps')", steps,
	     "Steps of the program's main loop."),
	VIEW("trace", "zone_text",
	     JOINED_TEXT("<> 1", "kind, min(at_ns) AS start_ns, any_value(name) AS name, "
				 "any_value(value) AS value, "
				 "any_value(tid) AS tid, any_value(thread) AS thread, "),
	     zone_text, "Texts and values that belong to zones."),
	DEVICE_VIEWS,
	VIEW("alloc", "allocations", ALLOC_FROM_ALLOCATIONS, alloc_allocations,
	     "Allocations and frees: samples of them, or all."),
	VIEW("alloc", "timeline", ALLOC_FROM_TIMELINE, alloc_timeline,
	     "Allocated memory over time."),
	VIEW("alloc", "sites", ALLOC_FROM_SITES, alloc_sites,
	     "Where memory was allocated, what of it was live at the peak and is at the end."),
	VIEW("alloc", "live", ALLOC_FROM_LIVE, alloc_live,
	     "What was never freed, the largest first."),
	VIEW("alloc", "frames", "kymo_scan('alloc.frames')", alloc_frames,
	     "What the stacks of allocations are made of."),
	VIEW("alloc", "rows", "kymo_scan('alloc.rows')", alloc_rows,
	     "Allocations and frees as they were written."),
	VIEW("host", "process", "kymo_scan('host.process')", host_process,
	     "CPU, memory, faults and switches of each process, over time."),
	VIEW("host", "threads", "kymo_scan('host.threads')", host_threads,
	     "CPU of each thread that ran, over time; one that rests has a row of 0 % and then "
	     "none."),
	VIEW("host", "cpu", "kymo_scan('host.cpu')", host_cpu,
	     "How busy the machine was, over time."),
	VIEW("host", "io", "kymo_scan('host.io')", host_io,
	     "Bytes read and written by each process, over time."),
	VIEW("host", "network", "kymo_scan('host.network')", host_network,
	     "Bytes received and sent by each interface, over time."),
	VIEW("host", "cgroup", "kymo_scan('host.cgroup')", host_cgroup,
	     "What the control groups of the program may use, what they use and how they wait."),
	VIEW("host", "gpu", "kymo_scan('host.gpu')", host_gpu,
	     "Utilisation, memory and power of GPUs, over time."),
	VIEW("kymo", "runs", "kymo_meta('runs')", runs, "The recorded run: one row."),
	VIEW("kymo", "processes", "kymo_meta('processes')", processes, "The processes of the run."),
	VIEW("kymo", "threads", "kymo_meta('threads')", threads, "The threads that recorded."),
	VIEW("kymo", "streams", "kymo_meta('streams')", streams,
	     "What was recorded and what was lost: emitted = kept + overwritten + dropped, for "
	     "each stream."),
	VIEW("kymo", "overhead", "kymo_meta('overhead')", overhead,
	     "What recording cost, as measured."),
	VIEW("kymo", "costs", "kymo_scan('kymo.costs')", costs,
	     "What collectors and adapters have cost, over time, as they measured themselves."),
	VIEW("kymo", "config", "kymo_scan('kymo.config')", config, "Changes of the configuration."),
	VIEW("kymo", "gaps", "kymo_scan('kymo.gaps')", gaps,
	     "Spans in which calls went untraced, and why."),
	VIEW("kymo", "problems", "kymo_meta('problems')", problems,
	     "What of this recording could not be read, and why."),
};

const size_t catalog_view_count = sizeof(catalog_views) / sizeof(catalog_views[0]);
