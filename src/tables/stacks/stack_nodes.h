/*
 * The stacks of samples. A sample names the node of its innermost frame, and a node its caller's
 * (python.frames): a stack is the way from a node to its root. Nodes are read once for a session,
 * into arrays; a way costs its length.
 *
 *	kymo_samples()	python.samples, with the stack of each as a list of texts that all rows share
 *	kymo_leaves()	each node that samples name, with its stack as one folded text
 *	kymo_sites()	each node of the stacks of allocations (alloc.frames), with its stack and what it is called by
 */
#ifndef KYMO_TABLES_STACKS_STACK_NODES_H
#define KYMO_TABLES_STACKS_STACK_NODES_H

#include "base/intern.h"
#include "tables/scan/meta.h"
#include "tables/session.h"

/* A function at a line. */
struct stack_nodes_label {
	uint32_t name; /* index of the recording's names */
	uint32_t line; /* 0: not known */
	duckdb_string_t text; /* function (file:line) */
};

struct stack_nodes_node {
	uint32_t parent; /* smaller than its own number; 0: none */
	uint32_t label; /* 0: there is no such node (any more) */
};

/* The nodes of one process that took samples. */
struct stack_nodes_tree {
	struct stack_nodes_node *nodes;
	uint32_t first; /* number of nodes[0] */
	uint32_t count;
};

struct stack_nodes {
	bool with_libraries; /* a frame without a line is of C, and its file a library */
	struct stack_nodes_tree *trees; /* by process */
	size_t tree_count;
	struct stack_nodes_label *labels; /* [0] is none */
	size_t label_count, label_room;
	struct intern label_index; /* of labels + 1 */
};

/* Those of the session's recording, made at the first call; NULL: no memory. Any thread. */
const struct stack_nodes *stack_nodes_get(struct tables *tables, enum callers_kind kind);
void stack_nodes_fini(struct tables *tables);
/* NULL: no such node. */
const struct stack_nodes_node *stack_nodes_find(const struct stack_nodes *callers, uint32_t process,
						uint32_t node);
/* The texts of a way up, the innermost first; how many. out: NULL only counts. */
size_t stack_nodes_way(const struct stack_nodes *callers, uint32_t process, uint32_t node,
		       duckdb_string_t *out);

/* Where rows of that stream have a column of that width; -1: they do not, as those of an older
   kymo. */
int32_t stack_nodes_offset(const struct store_stream *stream, const char *name, uint32_t bytes);
/* A process's own number of a name, as an index of the recording's; 0: none. */
uint32_t stack_nodes_name(const struct store_process *process, uint32_t name);

/* A row of python.samples. */
struct stack_nodes_sample {
	int64_t ts_ns;
	uint32_t process; /* that took it */
	uint32_t node;
	int32_t pid, tid;
	uint32_t thread, cause; /* indices of the recording's names */
	uint16_t state, gil;
};

/* Reads the samples of all streams in the order of their time, pid and tid. */
struct stack_nodes_cursor;
struct stack_nodes_cursor *stack_nodes_cursor_open(struct tables *tables);
/* False: there are no more. */
bool stack_nodes_cursor_next(struct stack_nodes_cursor *cursor, struct stack_nodes_sample *out);
void stack_nodes_cursor_close(struct stack_nodes_cursor *cursor);

int stack_nodes_register(struct tables *tables, duckdb_connection connection,
			 struct kymo_error *err);
/* callers_sites.c: kymo_sites(). */
int stack_nodes_register_sites(struct tables *tables, duckdb_connection connection,
			       struct kymo_error *err);
/* The last stacks that were taken of each process, as rows of kymo_meta('backtrace'). */
void stack_nodes_fill_last(struct meta_rows *rows, const struct tables *tables);

#endif
