/*
 * One trace while it is imported: events are taken one by one and kept in compact lists; when the
 * file has ended, trace_write() makes the processes of a recording of them. Memory follows the
 * events that become rows (40 to 64 bytes each), not the size of the file.
 */
#ifndef KYMO_IMPORT_TRACE_H
#define KYMO_IMPORT_TRACE_H

#include "base/intern.h"
#include "import/import.h"
#include "import/recording_writer.h"
#include "import/trace_event.h"

#define TRACE_NONE UINT32_MAX

/* What became of an event: a table, or the reason why it has no row. */
#define TRACE_OUTCOMES(X) \
	X(ZONE, "trace.zones", true) \
	X(OP, "device.ops", true) \
	X(MARK, "trace.marks", true) \
	X(COUNTER, "trace.counters", true) \
	X(MEMORY, "device.memory", true) \
	X(STEP, "trace.steps", true) \
	X(COLLECTIVE, "dist.collectives", true) \
	X(SAMPLE, "python.samples", true) \
	X(NATIVE_SAMPLE, "native.samples", true) \
	X(METADATA, "names of processes and threads", false) \
	X(FLOW, "link; the rows of both ends have it", false) \
	X(PAIRED, "end of a zone whose begin has the row", false) \
	X(MERGED, "the wait of the call with the same correlation", false) \
	X(PROFILER, "span of the profiler itself", false) \
	X(NO_TIME, "skipped: no time", false) \
	X(BAD_TIME, "skipped: a time out of range", false) \
	X(NOT_TRACK, "skipped: a packet without a track event", false) \
	X(UNMATCHED, "skipped: an end without a begin", false) \
	X(UNENDED, "skipped: a begin without an end", false) \
	X(UNKNOWN, "skipped: an unknown phase", false) \
	X(OVERLAP, "skipped: more than 256 overlapping zones of a thread", false) \
	X(NOT_EVENT, "skipped: not an event", false) \
	X(NO_FRAME, "skipped: a frame that the file does not name", false) \
	X(TOO_DEEP, "skipped: more than 4,194,304 different frames of stacks", false) \
	X(TOO_LONG, "skipped: longer than 64 MB", false) \
	X(NO_MEMORY, "skipped: no memory", false)
enum trace_outcome {
#define X(upper, text, kept) TRACE_##upper,
	TRACE_OUTCOMES(X)
#undef X
		TRACE_OUTCOME_COUNT
};

/* Categories decide what an event is. */
enum trace_class {
	TRACE_CLASS_OTHER,
	TRACE_CLASS_OPERATOR,
	TRACE_CLASS_ANNOTATION,
	TRACE_CLASS_PYTHON,
	TRACE_CLASS_RUNTIME,
	TRACE_CLASS_KERNEL,
	TRACE_CLASS_MEMCPY,
	TRACE_CLASS_MEMSET,
	TRACE_CLASS_DEVICE_SPAN, /* gpu_user_annotation */
	TRACE_CLASS_SYNC, /* cuda_sync */
	TRACE_CLASS_PROFILER, /* "Trace": the profiler's own span */
	TRACE_CLASS_OWN, /* a source, in an export of kymo: file, line and step are arguments */
	TRACE_CLASS_OWN_OP, /* a row of device.ops or device.waits there */
	TRACE_CLASS_OWN_STEP, /* a row of trace.steps there */
	TRACE_CLASS_COUNT
};

/* Categories of rows in exports of kymo, which are no zones; views/export writes them. */
#define TRACE_OWN_OPS "device_op"
#define TRACE_OWN_STEPS "step"
/* The argument of a zone that is cut at the end of the one around it: by how many ns. */
#define TRACE_OWN_CUT "cut_ns"

struct trace_category {
	struct json_text raw; /* in `texts` */
	enum trace_class class;
	uint32_t source; /* enum kymo_source of its zones */
	uint32_t name;
	uint64_t outcomes[128][TRACE_OUTCOME_COUNT]; /* by phase */
};

/* Flags of a name, found once for each. */
enum trace_name_flag {
	TRACE_NAME_SYNC = 1, /* a call that waits for the device */
	TRACE_NAME_GRAPH = 2, /* a call that launches a graph */
	TRACE_NAME_COMM = 4, /* communication */
	TRACE_NAME_STEP = 8, /* ProfilerStep#N */
	TRACE_NAME_MODULE = 16, /* nn.Module: X */
	TRACE_NAME_MEMORY = 32, /* [memory] */
	TRACE_NAME_PARAMS = 64, /* record_param_comms */
	TRACE_NAME_HOST_COMM = 128, /* gloo:all_reduce: a collective on the host */
};

struct trace_name {
	struct json_text raw;
	struct json_text file; /* as it stands in the trace, if it is not a part of `raw` */
	struct writer_name name;
	uint32_t class, asked; /* the source that it was looked up with; modules have another */
	uint32_t flags;
};

struct trace_process {
	struct json_number pid;
	uint64_t zones;
	char name[64];
	bool is_known; /* it has rows that only a recorder writes */
};

/* A thread of the trace. */
struct trace_track {
	uint32_t process;
	struct json_number tid;
	struct json_text raw_tid; /* in `texts`, if it is a text */
	char name[40];
	uint64_t zones;
	uint32_t first; /* of its zones in the sorted list */
	uint32_t lane; /* the thread of its first lane, in the recording */
};

struct trace_zone {
	int64_t start_ns;
	uint64_t dur_ns;
	uint32_t name, track;
	uint32_t external; /* 0: none; with TRACE_ZONE_CUT the ns that follow dur_ns */
	uint32_t link; /* operators: sequence number; launches: correlation */
	uint32_t step; /* + 1; 0: found by its time */
	uint32_t flags; /* TRACE_ZONE_* */
};
#define TRACE_ZONE_OPERATOR 1u
#define TRACE_ZONE_FORWARD 2u /* link is the sequence number of a forward operator */
#define TRACE_ZONE_BACKWARD 4u
#define TRACE_ZONE_LAUNCH 8u /* link is a correlation */
#define TRACE_ZONE_MODULE 16u
#define TRACE_ZONE_SYNC 32u
#define TRACE_ZONE_COMM 64u /* link is a number of `collectives` */
/* Where its event is counted, should it get no row: phase (X, else one of these) and category. */
#define TRACE_ZONE_BEGUN 128u
#define TRACE_ZONE_ASYNC 256u
#define TRACE_ZONE_CUT 512u
#define TRACE_ZONE_CATEGORY_SHIFT 24

struct trace_op {
	int64_t start_ns;
	uint64_t dur_ns;
	uint64_t bytes;
	uint32_t name, queue, correlation;
	uint32_t comm; /* number of `collectives` + 1; 0: none */
	uint32_t process; /* that launched it; TRACE_NONE: that of the launch */
	int32_t graph;
	uint16_t kind;
	uint16_t flags; /* SCHEMA_DEVICE_COMM */
};

struct trace_queue {
	int64_t device, context, stream;
	uint32_t device_name, name;
	bool other_context; /* an earlier one has the same device and stream */
};

struct trace_point { /* a mark or a counter */
	int64_t ts_ns;
	double value;
	uint32_t name, track;
	uint32_t step; /* + 1; 0: found by its time */
};

struct trace_memory {
	int64_t ts_ns, bytes, total_bytes;
	uint32_t track;
	int16_t device_type, device;
};

struct trace_step {
	int64_t start_ns;
	uint64_t dur_ns;
	uint64_t phase_ns[KYMO_PHASE_COUNT]; /* 0: unknown */
	uint32_t number, name, track;
};

/* A row of device.ops or device.waits in an export of kymo. Times are those of the trace. */
struct trace_own_op {
	struct schema_device_op_row row; /* without thread */
	uint32_t track; /* the thread that enqueued it */
};

struct trace_collective {
	uint32_t op, group, dtype, members; /* names */
	int64_t in_elements, out_elements, group_size, sequence;
	uint32_t zone; /* of record_param_comms, or of the call on the host; TRACE_NONE */
	bool done; /* a kernel has its row */
};

/* An entry of a flight recorder. */
struct trace_flight {
	int64_t created_ns, started_ns, ended_ns; /* 0: unknown */
	uint64_t seq, bytes;
	uint32_t op, group, dtype, zone; /* names */
	uint32_t track;
	uint32_t flags; /* SCHEMA_COLLECTIVE_* */
	int32_t peer; /* as a rank of the group; -1: none */
};

/* A process group of a flight recorder's dump. */
struct trace_group {
	uint32_t name, members; /* names; 0: none. Members: "0,1,2" */
	uint32_t size;
	bool is_world;
};

/* A frame of a stack, below its caller. */
struct trace_frame {
	uint32_t parent; /* its number; 0: none */
	uint32_t name, line; /* line: the one that ran; 0: unknown */
	uint32_t module; /* a name; 0: none */
};

/* A stack of a thread, of a profile. */
struct trace_sample {
	int64_t ts_ns; /* the end of the time that it stands for */
	uint64_t weight_ns;
	uint32_t node; /* of `frames`: the innermost; 0: none */
	uint32_t track;
};

/* A B event of a thread or an async begin that has not ended. Those of one thread or id are a
   stack. */
struct trace_open {
	int64_t ts_ns;
	uint64_t id; /* async: hash of category, id and name; 0: a B event */
	uint32_t name, track; /* track TRACE_NONE: the entry is free */
	uint32_t category, step, cut_ns;
	uint32_t before; /* the next of its stack, or of the free ones, + 1; 0: none */
	uint32_t stack; /* number of its stack */
};

struct trace_sync { /* a cuda_sync event */
	uint32_t correlation, queue;
};

/* Look-ups by hash: a file may hold any number of each. */
enum trace_index {
	TRACE_INDEX_NAMES,
	TRACE_INDEX_CATEGORIES,
	TRACE_INDEX_PROCESSES,
	TRACE_INDEX_TRACKS,
	TRACE_INDEX_QUEUES,
	TRACE_INDEX_STREAMS, /* device and stream, of all contexts */
	TRACE_INDEX_OPEN,
	TRACE_INDEX_SYNCS,
	TRACE_INDEX_GROUPS,
	TRACE_INDEX_COUNT
};

#define TRACE_LIST(type, name) \
	struct { \
		struct type *list; \
		size_t count, room; \
	} name

struct trace {
	const struct import_options *options;
	const char *path;
	int64_t base_ns; /* baseTimeNanoseconds */
	int32_t rank, ranks; /* -1: unknown */
	char host[64];
	uint64_t events;
	TRACE_LIST(trace_category, categories);
	struct intern indexes[TRACE_INDEX_COUNT];
	uint64_t seed; /* of hashes: a file cannot choose names that collide */
	uint64_t compared; /* entries that look-ups compared: the work, for tests */
	TRACE_LIST(trace_name, names); /* entry 0 is not used */
	TRACE_LIST(trace_process, processes);
	TRACE_LIST(trace_track, tracks);
	TRACE_LIST(trace_zone, zones);
	TRACE_LIST(trace_op, ops);
	TRACE_LIST(trace_queue, queues);
	TRACE_LIST(trace_point, marks);
	TRACE_LIST(trace_point, counters);
	TRACE_LIST(trace_memory, memory);
	TRACE_LIST(trace_step, steps);
	TRACE_LIST(trace_collective, collectives);
	TRACE_LIST(trace_open, open);
	uint32_t open_free; /* entry + 1; 0: none */
	struct {
		struct trace_open_head {
			uint64_t key; /* the track, or the id of an async event */
			uint32_t top; /* entry of `open` + 1; 0: empty */
			bool is_async;
		} * list;
		size_t count, room;
	} open_heads;
	TRACE_LIST(trace_sync, syncs);
	TRACE_LIST(trace_own_op, own_ops);
	TRACE_LIST(trace_flight, flights);
	TRACE_LIST(trace_group, groups);
	TRACE_LIST(trace_frame, frames); /* entry 0 is not used; callers come first */
	TRACE_LIST(trace_sample, samples);
	char *texts; /* copies of raw texts, in blocks that stay where they are */
	size_t texts_used, texts_room;
	uint64_t text_bytes, names_full;
	uint32_t last_category, last_track;
	bool any_module, any_backward;
	int64_t begins_ns, ends_ns; /* of a profile, which may be longer than its rows */
	bool has_span; /* these two are known */
	bool native_samples; /* the samples are of native code, not of Python */
	bool begins_at_base; /* the recording begins at base_ns, not at the first event */
};

void trace_begin(struct trace *trace, const struct import_options *options, const char *path);
void trace_end(struct trace *trace);
/* Takes an event and counts what became of it. */
void trace_take(struct trace *trace, const struct trace_event *event);
/* Writes its processes. taken: pids of earlier traces. */
int trace_write(struct trace *trace, struct recording_writer *writer, struct import_pids *taken,
		struct kymo_error *err);

/* trace_categories.c */
/* The number of a category. Beyond 256 all have the last one's; TRACE_NONE: no memory. */
uint32_t trace_category(struct trace *trace, const struct json_text *raw);
enum trace_class trace_class_of(struct trace *trace, const struct json_text *category);
void trace_count(struct trace *trace, const struct json_text *category, char phase,
		 enum trace_outcome outcome, int64_t events);
void trace_recount(struct trace *trace, uint32_t category, char phase, enum trace_outcome from,
		   enum trace_outcome to);

/* trace_names.c */
uint32_t trace_name(struct trace *trace, enum trace_class class, uint32_t source,
		    const struct json_text *raw);
uint32_t trace_name_text(struct trace *trace, uint32_t source, const char *text);
/* With a file and a line of its own. */
uint32_t trace_name_place(struct trace *trace, uint32_t source, const struct json_text *raw,
			  const struct json_text *file, int64_t line);
const char *trace_keep(struct trace *trace, const char *bytes, size_t count); /* NULL: no memory */

/* trace_tracks.c: all of these return a number, TRACE_NONE without memory. */
uint32_t trace_process(struct trace *trace, const struct json_number *pid);
uint32_t trace_owner(struct trace *trace, int64_t pid);
uint32_t trace_track(struct trace *trace, const struct trace_event *event);
uint32_t trace_queue(struct trace *trace, const struct trace_event *event);
void trace_name_thread(struct trace *trace, const struct trace_event *event, const char *text);
void trace_name_process(struct trace *trace, const struct trace_event *event, const char *text);
/* The innermost begin of a thread, or of an async event; NULL, false: no memory, none. */
struct trace_open *trace_open_add(struct trace *trace, uint32_t track, uint64_t id);
bool trace_open_take(struct trace *trace, uint32_t track, uint64_t id, struct trace_open *out);
void trace_sync_add(struct trace *trace, uint32_t correlation, uint32_t queue);
const struct trace_sync *trace_sync_find(struct trace *trace, uint32_t correlation);

/* trace_comm.c: "nccl:_allgather_base" is all_gather, "Float" float32 of 4 bytes; NULL: unknown. */
const char *trace_comm_operation(const char *text);
const char *trace_comm_type(const char *text, uint32_t *bytes);

/* trace_own.c: rows in exports of kymo. */
enum trace_outcome trace_own_take(struct trace *trace, const struct trace_event *event,
				  enum trace_class class);
/* A field by its name; numbers are ns, bytes or counts. */
struct trace_own_row {
	struct trace_own_op op;
	uint64_t phase_ns[KYMO_PHASE_COUNT];
	uint32_t step;
	int64_t tid, duration_ns;
};
void trace_own_text(struct trace *trace, struct trace_own_row *row, const struct json_text *key,
		    const struct json_text *text);
void trace_own_number(struct trace_own_row *row, const struct json_text *key, int64_t value);
enum trace_outcome trace_own_add(struct trace *trace, const struct trace_event *event,
				 enum trace_class class, struct trace_own_row *row);

/* trace_samples.c: false: no memory. */
bool trace_sample(struct trace *trace, const struct trace_sample *sample);

/* Makes room for one more entry and returns it, zeroed; NULL: no memory. */
#define TRACE_ADD(list_of) \
	(grow((void **)&(list_of)->list, &(list_of)->room, (list_of)->count, \
	      sizeof(*(list_of)->list)) \
		 ? memset(&(list_of)->list[(list_of)->count++], 0, sizeof(*(list_of)->list)) \
		 : NULL)

#endif
