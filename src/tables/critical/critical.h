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
 *	critical_path()		the path, and wins	→ struct critical_piece[]
 *	critical_name()		functions, modules, zones of its pieces
 */
#ifndef KYMO_TABLES_CRITICAL_CRITICAL_H
#define KYMO_TABLES_CRITICAL_CRITICAL_H

#include "tables/session.h"

#define CRITICAL_NONE UINT32_MAX
#define CRITICAL_OPS_MOST 8000000u /* about 3 GB of graph; more are refused */
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

struct critical_edge {
	int64_t ns; /* least time */
	uint32_t from, to; /* points, from < to */
	uint32_t ref;
	uint32_t kind;
};

struct critical_graph {
	int64_t *ns; /* of points, ascending */
	uint32_t *process; /* of points */
	uint32_t *position; /* by serial */
	size_t count;
	struct critical_edge *edges; /* by `to` */
	size_t edge_count, edge_room;
	bool failed;
};

enum critical_kind {
	CRITICAL_KIND_HOST,
	CRITICAL_KIND_LAUNCH,
	CRITICAL_KIND_KERNEL,
	CRITICAL_KIND_COPY,
	CRITICAL_KIND_WAIT,
	CRITICAL_KIND_COLLECTIVE,
};

/* A row of the path. */
struct critical_piece {
	int64_t start_ns, duration_ns, win_ns, all_win_ns;
	uint32_t process, thread; /* thread: CRITICAL_NONE if it is a device's */
	int64_t asked_ns; /* the moment whose zones give function and module */
	uint32_t name, function, module, zone, queue; /* names; 0: none */
	uint32_t step;
	uint32_t edge; /* of the graph */
	uint32_t path; /* the first process of those that collectives connect */
	uint8_t kind;
	uint8_t word; /* enum critical_word: instead of a name */
};

enum critical_word {
	CRITICAL_NAMED,
	CRITICAL_GAP, /* between operations of a queue */
	CRITICAL_STREAMS, /* between queues */
	CRITICAL_LATE, /* launched, and nothing recorded explains why it did not start */
	CRITICAL_UNMARKED,
};

struct critical_pieces {
	CRITICAL_LIST(critical_piece, rows);
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

bool critical_make_graph(struct critical_graph *graph, struct critical_input *input);
void critical_graph_free(struct critical_graph *graph);

/* The paths of all processes, in the order of time. */
bool critical_find_path(struct critical_graph *graph, const struct critical_input *input,
			struct critical_pieces *out);
/* Splits pieces of threads by zones, and finds functions and modules. */
bool critical_name_pieces(const struct critical_input *input, struct critical_pieces *pieces);
/* Fills all_win_ns of the costliest names of each path. */
bool critical_find_wins(const struct critical_graph *graph, struct critical_pieces *pieces);

/* The step of a process at a moment; false: none. */
bool critical_step_at(const struct critical_input *input, uint32_t process, int64_t ns,
		      uint32_t *out_step);
/* Whether it has steps; from and to are the first start and the last end. */
bool critical_steps_of(const struct critical_input *input, uint32_t process, int64_t *from_ns,
		       int64_t *to_ns);

/* Registers kymo_critical_path(). */
int critical_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err);
void critical_fini(struct tables *tables);

#endif
