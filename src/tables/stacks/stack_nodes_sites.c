/* kymo_sites(): the stacks of allocations, each with its name in a report. */
#include "tables/stacks/stack_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tables/scan/dictionary.h"
#include "tables/scan/table_function.h"

#define FRAMES_AT_ONCE (256u << 10) /* as in stack_nodes_scan.c */

enum { PROCESS_ID, NODE, STACK, SITE, TENSOR, COLUMNS };
static const struct {
	const char *name;
	duckdb_type type;
} columns[COLUMNS] = {
	[PROCESS_ID] = { "process_id", DUCKDB_TYPE_INTEGER },
	[NODE] = { "node", DUCKDB_TYPE_INTEGER },
	[STACK] = { "stack", DUCKDB_TYPE_LIST },
	[SITE] = { "site", DUCKDB_TYPE_VARCHAR },
	[TENSOR] = { "tensor", DUCKDB_TYPE_BOOLEAN },
};

struct run {
	const struct recording *recording;
	const struct stack_nodes *callers;
	uint32_t process, at; /* the next node */
	size_t frames; /* in this chunk */
	duckdb_vector vectors[COLUMNS]; /* of the chunk; NULL if not requested */
	idx_t asked[COLUMNS];
	size_t asked_count;
};

/* ---- a site ---------------------------------------------------------------------------------- */

static const struct store_name *stack_nodes_sites_name_of(const struct run *run,
							  const struct stack_nodes_node *node)
{
	return &run->recording->names[run->callers->labels[node->label].name];
}

static const struct stack_nodes_node *caller(const struct run *run,
					     const struct stack_nodes_node *node)
{
	return stack_nodes_find(run->callers, run->process, node->parent);
}

/* The mangled names of the variants of operator new. */
static bool is_operator_new(const struct store_name *name)
{
	return name->text_bytes > 4 &&
	       (!memcmp(name->text, "_Znw", 4) || !memcmp(name->text, "_Zna", 4));
}

static void add_file_name(struct buf *out, const struct store_name *name)
{
	const char *slash = memrchr(name->file, '/', name->file_bytes);
	size_t skip = slash ? (size_t)(slash + 1 - name->file) : 0;

	buf_add(out, name->file + skip, name->file_bytes - skip);
}

static void stack_nodes_sites_add_function(struct buf *out, const struct store_name *name)
{
	char *plain = dictionary_demangled(name);

	if (plain)
		buf_text(out, plain);
	else
		buf_add(out, name->text, name->text_bytes);
	free(plain);
}

/* The innermost Python line, or without Python the innermost function other than operator new. */
static void add_site(struct buf *out, const struct run *run, const struct stack_nodes_node *leaf)
{
	const struct stack_nodes_node *function = leaf;

	for (const struct stack_nodes_node *at = leaf; at; at = caller(run, at)) {
		uint32_t line = run->callers->labels[at->label].line;

		if (line && stack_nodes_sites_name_of(run, at)->file_bytes) {
			add_file_name(out, stack_nodes_sites_name_of(run, at));
			buf_print(out, ":%u", line);
			return;
		}
	}
	while (function && is_operator_new(stack_nodes_sites_name_of(run, function)))
		function = caller(run, function);
	stack_nodes_sites_add_function(out,
				       stack_nodes_sites_name_of(run, function ? function : leaf));
}

static bool stack_nodes_sites_is_tensor(const struct run *run, const struct stack_nodes_node *at)
{
	static const char library[] = "/libc10.so";
	const size_t bytes = sizeof(library) - 1;

	for (; at; at = caller(run, at)) {
		const struct store_name *name = stack_nodes_sites_name_of(run, at);

		if (name->file_bytes >= bytes &&
		    !memcmp(name->file + name->file_bytes - bytes, library, bytes))
			return true;
	}
	return false;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_site(struct run *run, idx_t row, const struct stack_nodes_node *node)
{
	struct buf text = { 0 };

	add_site(&text, run, node);
	duck.vector_assign_string_element_len(run->vectors[SITE], row, buf_get(&text), text.used);
	buf_fini(&text);
}

/* The texts are those of the labels; only their addresses are copied. */
static void stack_nodes_sites_put_stack(struct run *run, idx_t row, uint32_t node)
{
	duckdb_vector out = run->vectors[STACK];
	size_t count = stack_nodes_way(run->callers, run->process, node, NULL);
	duckdb_list_entry *entry = (duckdb_list_entry *)duck.vector_get_data(out) + row;
	duckdb_string_t *texts;

	*entry = (duckdb_list_entry){ run->frames, 0 };
	if (duck.list_vector_reserve(out, run->frames + count) == DuckDBError)
		return;
	entry->length = count;
	texts = duck.vector_get_data(duck.list_vector_get_child(out));
	stack_nodes_way(run->callers, run->process, node, texts + run->frames);
	run->frames += count;
	duck.list_vector_set_size(out, run->frames);
}

static void stack_nodes_sites_put_row(struct run *run, idx_t row, uint32_t number,
				      const struct stack_nodes_node *node)
{
	duckdb_vector *out = run->vectors;

	if (out[PROCESS_ID])
		((int32_t *)duck.vector_get_data(out[PROCESS_ID]))[row] = (int32_t)run->process;
	if (out[NODE])
		((int32_t *)duck.vector_get_data(out[NODE]))[row] = (int32_t)number;
	if (out[STACK])
		stack_nodes_sites_put_stack(run, row, number);
	if (out[SITE])
		put_site(run, row, node);
	if (out[TENSOR])
		((bool *)duck.vector_get_data(out[TENSOR]))[row] = stack_nodes_sites_is_tensor(
			run, node);
}

/* The next existing node; NULL at the end. */
static const struct stack_nodes_node *stack_nodes_sites_next(struct run *run, uint32_t *number)
{
	for (; run->process < run->callers->tree_count; run->process++, run->at = 0) {
		const struct stack_nodes_tree *tree = &run->callers->trees[run->process];

		while (run->at < tree->count) {
			*number = tree->first + run->at++;
			if (tree->nodes[*number - tree->first].label)
				return &tree->nodes[*number - tree->first];
		}
	}
	return NULL;
}

static void stack_nodes_sites_emit(duckdb_function_info info, duckdb_data_chunk output)
{
	struct run *run = duck.function_get_init_data(info);
	const struct stack_nodes_node *node;
	uint32_t number;
	idx_t rows = 0;

	run->frames = 0;
	memset(run->vectors, 0, sizeof(run->vectors));
	for (size_t i = 0; i < run->asked_count; i++)
		if (run->asked[i] < COLUMNS)
			run->vectors[run->asked[i]] = duck.data_chunk_get_vector(output, i);
	while (rows < duck.vector_size() && run->frames < FRAMES_AT_ONCE &&
	       (node = stack_nodes_sites_next(run, &number)))
		stack_nodes_sites_put_row(run, rows++, number, node);
	duck.data_chunk_set_size(output, rows);
}

/* ---- the function ---------------------------------------------------------------------------- */

static void stack_nodes_sites_bind(duckdb_bind_info info)
{
	duckdb_logical_type text = duck.create_logical_type(DUCKDB_TYPE_VARCHAR);

	for (size_t i = 0; i < COLUMNS; i++) {
		duckdb_logical_type type = columns[i].type == DUCKDB_TYPE_LIST
						   ? duck.create_list_type(text)
						   : duck.create_logical_type(columns[i].type);

		duck.bind_add_result_column(info, columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
	duck.destroy_logical_type(&text);
}

static void stack_nodes_sites_init(duckdb_init_info info)
{
	struct tables *tables = duck.init_get_extra_info(info);
	struct run *run = calloc(1, sizeof(*run));

	if (run) {
		run->recording = tables->recording;
		run->callers = stack_nodes_get(tables, STACK_NODES_ALLOCATIONS);
		run->asked_count = duck.init_get_column_count(info);
	}
	if (!run || !run->callers || run->asked_count > COLUMNS) {
		free(run);
		duck.init_set_error(info, "no memory for the stacks of allocations");
		return;
	}
	for (size_t i = 0; i < run->asked_count; i++)
		run->asked[i] = duck.init_get_column_index(info, i);
	duck.init_set_max_threads(info, 1);
	duck.init_set_init_data(info, run, free);
}

int stack_nodes_register_sites(struct tables *tables, duckdb_connection connection,
			       struct kymo_error *err)
{
	const struct table_function function = { .name = "kymo_sites",
						 .extra = tables,
						 .bind = stack_nodes_sites_bind,
						 .init = stack_nodes_sites_init,
						 .emit = stack_nodes_sites_emit,
						 .some_columns = true };

	return table_function_register(connection, duck.create_table_function(), &function, err);
}
