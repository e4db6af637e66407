/*
 * The critical path of a recording: what the run's end waited for, moment by moment, through host
 * threads, launches, queues of devices, synchronisation and collectives of ranks.
 *
 * The graph has points (the start or the end of an operation, a launch, the return of a wait, …) in
 * the order of time, and edges between them, each with the least time that it takes. Every point
 * but the first of its process has one edge that explains its time exactly: the one that could not
 * have come later. The path follows these edges backwards from the last point.
 *
 *	critical_load()		rows of the recording	→ struct critical_input
 *	critical_graph()	points and edges	→ struct critical_graph
 *	critical_find_path()	the path, and wins	→ struct critical_piece[]
 *	critical_name_pieces()	functions, modules, zones	→ struct critical_span[]
 */
#ifndef KYMO_TABLES_CRITICAL_CRITICAL_H
#define KYMO_TABLES_CRITICAL_CRITICAL_H

#include "base/intern.h"
#include "tables/session.h"

#define CRITICAL_NONE UINT32_MAX
#define CRITICAL_OPS_MOST 8000000u /* more are refused */
#define CRITICAL_ZONES_MOST 32000000u

/* A thread of a process; those that an import made of one thread are one. */
struct critical_thread {
	uint32_t process;
	int32_t tid;
	uint32_t first, zone_count; /* of zones */
	bool drives; /* it launches, waits or counts steps */
};

struct critical_queue {
	uint32_t process, device, name; /* names */
};

struct critical_op {
	int64_t queued_ns; /* INT64_MIN: not known */
	int64_t start_ns, end_ns;
	uint32_t call_ns; /* saturated */
	uint32_t queue, thread, name, call, module, zone;
	uint32_t collective; /* CRITICAL_NONE: none */
	uint32_t point; /* serial of its start; + 1: its end, + 2: its launch, + 3: its return */
	uint16_t kind, flags;
};
#define CRITICAL_COMM 1u /* flags: communicates */

/* A wait of the host for a queue, or for any of the process. */
struct critical_wait {
	int64_t start_ns, end_ns;
	uint32_t thread, queue, name;
	uint32_t point; /* serial of its start; + 1: its end */
};

struct critical_step {
	int64_t start_ns, end_ns;
	uint32_t thread, step, process;
	uint32_t point;
};

/* The part of one rank in a collective: an operation of a device, or a call on a thread. */
struct critical_part {
	uint64_t seq;
	int64_t start_ns, end_ns;
	uint32_t group, process, name;
	uint32_t op; /* CRITICAL_NONE: a call on the host */
	uint32_t thread;
	uint32_t point; /* serial of its start; + 1: its end */
	uint32_t meeting; /* serial: all ranks have arrived; CRITICAL_NONE: not paired */
};

struct critical_zone {
	int64_t start_ns, end_ns;
	uint32_t thread, name;
};

/* Thread `from` started what thread `to` did from then on, or `to` waited for `from` until then. */
struct critical_handover {
	int64_t ns;
	uint32_t from, to;
	bool waited; /* `to` waited since its last point; else it was idle before */
	uint32_t point; /* of `from`; + 1: of `to` */
};

#define CRITICAL_LIST(type, name) \
	struct { \
		struct type *list; \
		size_t count, room; \
	} name

struct critical_input {
	const struct recording *recording;
	CRITICAL_LIST(critical_thread, threads);
	CRITICAL_LIST(critical_queue, queues);
	CRITICAL_LIST(critical_op, ops); /* by start */
	CRITICAL_LIST(critical_wait, waits); /* by end */
	CRITICAL_LIST(critical_step, steps); /* by process and start */
	CRITICAL_LIST(critical_part, parts); /* by group and seq */
	CRITICAL_LIST(critical_zone, zones); /* by thread and start, longest first */
	CRITICAL_LIST(critical_handover, handovers);
	/* By process: the first start and the last end of its steps; to_ns below from_ns: none. */
	struct critical_range {
		int64_t from_ns, to_ns;
	} * ranges;
	uint32_t *thread_of; /* thread of the recording -> one of threads, or CRITICAL_NONE */
};

enum critical_edge_kind {
	CRITICAL_HOST, /* a thread goes on; ref: thread */
	CRITICAL_HANDOVER, /* from one thread to another */
	CRITICAL_LAUNCH, /* from the call to the start; ref: operation */
	CRITICAL_RUN, /* from start to end; ref: operation */
	CRITICAL_ORDER, /* from the operation before it on its queue; ref: operation */
	CRITICAL_DEPEND, /* from an operation of another queue; ref: operation */
	CRITICAL_RETURN, /* from an operation to the return of its call; ref: operation */
	CRITICAL_SYNC, /* from an operation to the return of a wait; ref: wait */
	CRITICAL_MEET, /* from a rank's arrival to that of the last, and on to the end; ref: part */
};

/* Eight bytes: the graph of a large trace has millions. Its end is the point that lists it, and its
   least time follows from its kind: see critical_edge_ns(). */
struct critical_edge {
	uint32_t from; /* point, before the one that it leads to */
	uint32_t ref : 27;
	uint32_t kind : 4;
	uint32_t whole : 1; /* takes all of the time between the two points */
};
#define CRITICAL_REF_MOST (1u << 27)

struct critical_graph {
	int64_t *ns; /* of points, ascending */
	uint32_t *process; /* of points */
	uint32_t *position; /* by serial */
	size_t count;
	struct critical_edge *edges; /* by the point that they lead to */
	size_t edge_count, edge_room;
	/* By point, and one more: its first edge, the one that explains its time. */
	uint32_t *first_edge;
	int64_t *latency_ns; /* by process: the shortest time from a launch to its start */
	bool failed;
};

/* The least time of an edge that leads to the point. */
static inline int64_t critical_edge_ns(const struct critical_graph *graph,
				       const struct critical_edge *edge, uint32_t to)
{
	const int64_t apart_ns = graph->ns[to] - graph->ns[edge->from];
	const int64_t latency_ns = graph->latency_ns[graph->process[to]];

	if (edge->whole)
		return apart_ns;
	if (edge->kind != CRITICAL_LAUNCH)
		return 0;
	return latency_ns < apart_ns ? latency_ns : apart_ns;
}

/* Whether an edge leads to the point: the first one explains its time. */
static inline bool critical_has_edge(const struct critical_graph *graph, uint32_t point)
{
	return graph->first_edge[point] < graph->first_edge[point + 1];
}

enum critical_kind {
	CRITICAL_KIND_HOST,
	CRITICAL_KIND_LAUNCH,
	CRITICAL_KIND_KERNEL,
	CRITICAL_KIND_COPY,
	CRITICAL_KIND_WAIT,
	CRITICAL_KIND_COLLECTIVE,
};

/* A part of the path that one edge explains, before its names are found. */
struct critical_piece {
	int64_t start_ns, duration_ns, win_ns;
	uint32_t process, thread; /* thread: CRITICAL_NONE if it is a device's */
	int64_t asked_ns; /* the moment whose zones give function and module */
	uint32_t name, module, zone, queue; /* names; 0: none */
	uint32_t step;
	uint32_t point; /* of the graph, at which its edge ends */
	uint32_t path; /* the first process of those that collectives connect */
	uint8_t kind;
	uint8_t word; /* enum critical_word: instead of a name */
};

/* What many rows have in common. */
struct critical_label {
	uint32_t process, thread;
	uint32_t name, function, module, zone; /* names; 0: none */
	uint32_t queue; /* a name; of idle time: the device */
	uint32_t path;
	uint8_t kind; /* enum critical_kind; of idle time: enum critical_cause */
	uint8_t word;
	int64_t all_win_ns; /* -1: not known */
};

/* A row of the path or of idle time; in sums, `step` is the number of rows. */
struct critical_span {
	int64_t start_ns, duration_ns, win_ns;
	uint32_t label, step, point;
};

enum critical_word {
	CRITICAL_NAMED,
	CRITICAL_GAP, /* between operations of a queue */
	CRITICAL_STREAMS, /* between queues */
	CRITICAL_LATE, /* launched, and nothing recorded explains why it did not start */
	CRITICAL_UNMARKED,
};

enum critical_cause {
	CRITICAL_CAUSE_DATA,
	CRITICAL_CAUSE_SYNCHRONISATION,
	CRITICAL_CAUSE_LAUNCH,
	CRITICAL_CAUSE_HOST,
};

/* Rows, and the sums of those with one label. */
struct critical_table {
	CRITICAL_LIST(critical_span, rows);
	CRITICAL_LIST(critical_span, sums);
	CRITICAL_LIST(critical_label, labels);
	struct intern index; /* of labels */
};

struct critical_result {
	CRITICAL_LIST(critical_piece, pieces); /* until their names are found */
	struct critical_table path;
	struct critical_table idle;
	bool failed; /* no memory */
	bool too_large; /* more operations or zones than this takes */
};

/* Each returns false if out of memory. */
bool critical_load(struct critical_input *input, const struct recording *recording,
		   bool *too_large);
void critical_input_free(struct critical_input *input);
bool critical_load_zones(struct critical_input *input, bool *too_large);
bool critical_find_handovers(struct critical_input *input);
/* The thread of a process that has the most zones of those that drive it; CRITICAL_NONE: none. */
uint32_t critical_main_of(const struct critical_input *input, uint32_t process);
/* Those of all processes, to be freed; NULL: no memory. */
uint32_t *critical_find_mains(const struct critical_input *input);

bool critical_make_graph(struct critical_graph *graph, struct critical_input *input);
void critical_graph_free(struct critical_graph *graph);

/* The paths of all processes, as pieces in the order of time. */
bool critical_find_path(struct critical_graph *graph, const struct critical_input *input,
			struct critical_result *out);
/* Makes rows of the pieces: splits those of threads by zones, and finds functions and modules. */
bool critical_name_pieces(const struct critical_input *input, struct critical_result *result);
/* Fills all_win_ns of the costliest names of each path. */
bool critical_find_wins(const struct critical_graph *graph, struct critical_table *path);
/* Idle time of devices on the path. */
bool critical_find_idle(const struct critical_input *input, struct critical_result *result);

/* The number of a label, which is added if it is new; CRITICAL_NONE: no memory. */
uint32_t critical_label(struct critical_table *table, const struct critical_label *label);
bool critical_sum(struct critical_table *table);
void critical_table_free(struct critical_table *table);

/* The step of a process at a moment; false: none. */
bool critical_step_at(const struct critical_input *input, uint32_t process, int64_t ns,
		      uint32_t *out_step);
/* Whether it has steps; from and to are the first start and the last end. */
bool critical_steps_of(const struct critical_input *input, uint32_t process, int64_t *from_ns,
		       int64_t *to_ns);

/* Registers kymo_critical_path(), kymo_critical_idle() and their sums. */
int critical_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err);
void critical_fini(struct tables *tables);

#endif
