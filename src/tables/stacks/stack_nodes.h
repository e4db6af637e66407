/*
 * Stacks of samples and allocations. A sample refers to the node of its innermost frame, and a node
 * to that of its caller (python.frames): a stack is the path from a node to its root. Nodes are
 * read once per session, into arrays.
 *
 *	kymo_samples(from_ns :=)	python.samples, each with its stack as a list of texts
 *			that all rows share
 *	kymo_leaves()	each node that samples refer to, with its stack as one folded text
 *	kymo_own_frames()	the functions of the program's own code in each of these stacks
 *	kymo_sites()	each node of alloc.frames, with its stack and the name of its site
 *
 * kymo_native_samples(), kymo_native_leaves() and kymo_native_own_frames() are the same for
 * native.samples.
 */
#ifndef KYMO_TABLES_STACKS_STACK_NODES_H
#define KYMO_TABLES_STACKS_STACK_NODES_H

#include "base/intern.h"
#include "tables/scan/meta.h"
#include "tables/session.h"

/* A function at a line. */
struct stack_nodes_label {
	uint32_t name; /* index of the recording's names */
	uint32_t line; /* 0 if not known */
	uint32_t module; /* of native code: the index of its path; 0 if not known */
	bool own; /* the program's own code */
	bool worker; /* a worker process begins here: its callers are not its own code */
	duckdb_string_t text; /* function (file:line) */
	duckdb_string_t function; /* demangled */
};

struct stack_nodes_node {
	uint32_t parent; /* smaller than its own number; 0 for none */
	uint32_t label; /* 0 if there is no such node */
};

/* The nodes of one process. */
struct stack_nodes_tree {
	struct stack_nodes_node *nodes;
	uint32_t first; /* number of nodes[0] */
	uint32_t count;
};

struct stack_nodes {
	bool with_libraries; /* a frame without a line is native, and its file is a library */
	bool native; /* whether code is the program's own depends on its module */
	struct stack_nodes_tree *trees; /* by process */
	size_t tree_count;
	struct stack_nodes_label *labels; /* [0] is unused */
	size_t label_count, label_room;
	struct intern label_index; /* of labels + 1 */
};

/* The nodes of the session's recording, read on the first call; NULL if there is no memory. Any
   thread may call it. */
const struct stack_nodes *stack_nodes_get(struct tables *tables, enum stack_nodes_kind kind);
void stack_nodes_fini(struct tables *tables);
/* NULL if there is no such node. */
const struct stack_nodes_node *stack_nodes_find(const struct stack_nodes *callers, uint32_t process,
						uint32_t node);
/* The texts of the frames from a node to its root, innermost first. Returns their number; with
   out NULL it only counts. */
size_t stack_nodes_way(const struct stack_nodes *callers, uint32_t process, uint32_t node,
		       duckdb_string_t *out);

/* The innermost frame of the program's own code; NULL if there is none. */
const struct stack_nodes_label *stack_nodes_place(const struct stack_nodes *callers,
						  uint32_t process, uint32_t node);

/* The offset of a column of that width in rows of the stream; -1 if there is none, for example
   in a recording of an older kymo. */
int32_t stack_nodes_offset(const struct store_stream *stream, const char *name, uint32_t bytes);
/* Converts a process's number of a name to an index of the recording's names; 0 if there is
   none. */
uint32_t stack_nodes_name(const struct store_process *process, uint32_t name);

/* A row of python.samples or native.samples. */
struct stack_nodes_sample {
	int64_t ts_ns;
	uint32_t process; /* the collector */
	uint32_t node;
	int32_t pid, tid;
	uint32_t thread, cause; /* indices of the recording's names */
	uint16_t state, gil;
	int64_t weight_ns; /* -1: not known, as in a recording of an older kymo */
	uint32_t activity, waits_for; /* names; 0: not known */
	uint32_t flags; /* SCHEMA_NATIVE_* */
	int32_t holder; /* of the lock; 0: not known */
};

/* Reads the samples of all streams, ordered by time, pid and tid, from from_ns on; INT64_MIN:
   all. */
struct stack_nodes_cursor;
struct stack_nodes_cursor *stack_nodes_cursor_open(struct tables *tables,
						   enum stack_nodes_kind kind, int64_t from_ns);
/* False at the end. */
bool stack_nodes_cursor_next(struct stack_nodes_cursor *cursor, struct stack_nodes_sample *out);
void stack_nodes_cursor_close(struct stack_nodes_cursor *cursor);

/* Whether the sample is the first of its node; notes it. seen: a pointer for each tree, NULL at
   first, to be freed by the caller. False: seen before, or out of memory. */
bool stack_nodes_is_first(const struct stack_nodes *callers, unsigned char **seen,
			  const struct stack_nodes_sample *sample);

int stack_nodes_register(struct tables *tables, duckdb_connection connection,
			 struct kymo_error *err);
/* stack_nodes_sites.c: kymo_sites(). */
int stack_nodes_register_sites(struct tables *tables, duckdb_connection connection,
			       struct kymo_error *err);
/* stack_nodes_own.c: kymo_own_frames() and kymo_native_own_frames(). */
int stack_nodes_register_own(struct tables *tables, duckdb_connection connection,
			     struct kymo_error *err);
/* The last stacks of each process, as rows of kymo_meta('backtrace'). */
void stack_nodes_fill_last(struct meta_rows *rows, const struct tables *tables);

#endif
