/* kymo_own_frames() and kymo_native_own_frames(): for each node that samples refer to, the
   functions of the program's own code in its stack, each once, at its innermost line. The first is
   the place of the samples. */
#include "tables/stacks/stack_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tables/scan/table_function.h"

enum { COLLECTOR, NODE, FUNCTION, FILE_NAME, LINE, SELF, COLUMNS };
static const struct {
	const char *name;
	duckdb_type type;
} columns[COLUMNS] = {
	[COLLECTOR] = { "collector_id", DUCKDB_TYPE_INTEGER },
	[NODE] = { "node", DUCKDB_TYPE_BIGINT },
	[FUNCTION] = { "function", DUCKDB_TYPE_VARCHAR },
	[FILE_NAME] = { "file", DUCKDB_TYPE_VARCHAR },
	[LINE] = { "line", DUCKDB_TYPE_INTEGER },
	[SELF] = { "self", DUCKDB_TYPE_BOOLEAN },
};

struct run {
	const struct recording *recording;
	const struct stack_nodes *callers;
	struct stack_nodes_cursor *cursor;
	unsigned char **seen; /* a bit for each node, by process */
	uint32_t *stamps; /* by name: the last stack that has it */
	uint32_t stack; /* counts stacks from 1 */
	uint32_t process, leaf;
	const struct stack_nodes_node *at; /* the next frame of the stack; NULL: the next stack */
	bool found; /* the stack had a frame of own code already */
	duckdb_vector vectors[COLUMNS]; /* of the chunk; NULL if not requested */
	idx_t asked[COLUMNS];
	size_t asked_count;
};

/* ---- frames ---------------------------------------------------------------------------------- */

static bool next_stack(struct run *run)
{
	struct stack_nodes_sample sample;

	while (stack_nodes_cursor_next(run->cursor, &sample)) {
		run->at = stack_nodes_find(run->callers, sample.process, sample.node);
		if (!run->at || !stack_nodes_is_first(run->callers, run->seen, &sample))
			continue;
		run->process = sample.process;
		run->leaf = sample.node;
		run->stack++;
		run->found = false;
		return true;
	}
	run->at = NULL;
	return false;
}

/* The next frame of own code whose function has not occurred in this stack; NULL at the end. */
static const struct stack_nodes_label *next_frame(struct run *run)
{
	while (run->at || next_stack(run)) {
		const struct stack_nodes_label *label = &run->callers->labels[run->at->label];

		run->at = label->worker
				  ? NULL
				  : stack_nodes_find(run->callers, run->process, run->at->parent);
		if (!label->own || run->stamps[label->name] == run->stack)
			continue;
		run->stamps[label->name] = run->stack;
		return label;
	}
	return NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void stack_nodes_own_put_text(duckdb_vector out, idx_t row, const char *text, size_t bytes)
{
	duck.vector_assign_string_element_len(out, row, bytes ? text : "?", bytes ? bytes : 1);
}

static void put_frame(struct run *run, idx_t row, const struct stack_nodes_label *label)
{
	const struct store_name *name = &run->recording->names[label->name];
	duckdb_vector *out = run->vectors;

	if (out[COLLECTOR])
		((int32_t *)duck.vector_get_data(out[COLLECTOR]))[row] = (int32_t)run->process;
	if (out[NODE])
		((int64_t *)duck.vector_get_data(out[NODE]))[row] = run->leaf;
	if (out[FUNCTION]) /* the text is that of the label */
		((duckdb_string_t *)duck.vector_get_data(out[FUNCTION]))[row] = label->function;
	if (out[FILE_NAME])
		stack_nodes_own_put_text(out[FILE_NAME], row, name->file, name->file_bytes);
	if (out[LINE])
		((int32_t *)duck.vector_get_data(out[LINE]))[row] = (int32_t)label->line;
	if (out[SELF])
		((bool *)duck.vector_get_data(out[SELF]))[row] = !run->found;
	run->found = true;
}

static void stack_nodes_own_emit(duckdb_function_info info, duckdb_data_chunk output)
{
	struct run *run = duck.function_get_init_data(info);
	const struct stack_nodes_label *label;
	idx_t rows = 0;

	memset(run->vectors, 0, sizeof(run->vectors));
	for (size_t i = 0; i < run->asked_count; i++)
		if (run->asked[i] < COLUMNS)
			run->vectors[run->asked[i]] = duck.data_chunk_get_vector(output, i);
	while (rows < duck.vector_size() && (label = next_frame(run)))
		put_frame(run, rows++, label);
	duck.data_chunk_set_size(output, rows);
}

/* ---- the function ---------------------------------------------------------------------------- */

static void stack_nodes_own_bind(duckdb_bind_info info)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		duckdb_logical_type type = duck.create_logical_type(columns[i].type);

		duck.bind_add_result_column(info, columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
}

static void stack_nodes_own_destroy(void *data)
{
	struct run *run = data;

	if (!run)
		return;
	for (size_t i = 0; run->seen && i < run->callers->tree_count; i++)
		free(run->seen[i]);
	free(run->seen);
	free(run->stamps);
	stack_nodes_cursor_close(run->cursor);
	free(run);
}

struct registered {
	struct tables *tables;
	enum stack_nodes_kind kind;
};

static bool stack_nodes_own_start(struct run *run, const struct registered *own)
{
	run->recording = own->tables->recording;
	run->callers = stack_nodes_get(own->tables, own->kind);
	run->cursor = stack_nodes_cursor_open(own->tables, own->kind, INT64_MIN);
	run->stamps = calloc(run->recording->name_count + 1, sizeof(*run->stamps));
	if (run->callers)
		run->seen = calloc(run->callers->tree_count + 1, sizeof(*run->seen));
	return run->callers && run->cursor && run->stamps && run->seen;
}

static void stack_nodes_own_init(duckdb_init_info info)
{
	const struct registered *own = duck.init_get_extra_info(info);
	struct run *run = calloc(1, sizeof(*run));

	if (!run || !stack_nodes_own_start(run, own) ||
	    duck.init_get_column_count(info) > COLUMNS) {
		stack_nodes_own_destroy(run);
		duck.init_set_error(info, "no memory for the stacks of samples");
		return;
	}
	run->asked_count = duck.init_get_column_count(info);
	for (size_t i = 0; i < run->asked_count; i++)
		run->asked[i] = duck.init_get_column_index(info, i);
	duck.init_set_max_threads(info, 1);
	duck.init_set_init_data(info, run, stack_nodes_own_destroy);
}

static int register_own(struct tables *tables, duckdb_connection connection, const char *name,
			enum stack_nodes_kind kind, struct kymo_error *err)
{
	struct registered *own = malloc(sizeof(*own));
	const struct table_function function = { .name = name,
						 .extra = own,
						 .free_extra = free,
						 .bind = stack_nodes_own_bind,
						 .init = stack_nodes_own_init,
						 .emit = stack_nodes_own_emit,
						 .some_columns = true };

	if (!own)
		return error_set(err, ENOMEM, "no memory for the tables");
	*own = (struct registered){ tables, kind };
	return table_function_register(connection, duck.create_table_function(), &function, err);
}

int stack_nodes_register_own(struct tables *tables, duckdb_connection connection,
			     struct kymo_error *err)
{
	int rc = register_own(tables, connection, "kymo_own_frames", STACK_NODES_SAMPLES, err);

	return rc ? rc
		  : register_own(tables, connection, "kymo_native_own_frames", STACK_NODES_NATIVE,
				 err);
}
