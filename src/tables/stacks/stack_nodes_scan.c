/* kymo_samples() and kymo_leaves(), and python.backtrace of a program that has ended. */
#include "base/grow.h"
#include "base/schema.h"
#include "tables/stacks/stack_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/scan/table_function.h"

/* A chunk of deep stacks has fewer rows, to limit it to a few megabytes. */
#define FRAMES_AT_ONCE (256u << 10)
#define FOLDED_BYTES_AT_ONCE (4u << 20)

struct run {
	struct tables *tables;
	const struct stack_nodes *callers;
	const struct function *function;
	struct stack_nodes_cursor *cursor;
	struct stack_nodes_sample kept; /* valid if has_kept: it did not fit the previous chunk */
	bool has_kept;
	unsigned char **seen; /* leaves: a bit for each node, by process */
	size_t column_count;
	idx_t columns[16];
	duckdb_vector vectors[16]; /* of the chunk; NULL if not requested */
	size_t frames; /* in this chunk */
};

struct column {
	const char *name;
	duckdb_type type; /* DUCKDB_TYPE_LIST: of texts */
	/* row: of the chunk. */
	void (*put)(struct run *run, duckdb_vector out, idx_t row,
		    const struct stack_nodes_sample *);
};

/* ---- cells ----------------------------------------------------------------------------------- */

static void put_null(duckdb_vector out, idx_t row)
{
	duck.vector_ensure_validity_writable(out);
	duck.vector_get_validity(out)[row / 64] &= ~(1ull << (row % 64));
}

static void stack_nodes_scan_put_int(duckdb_vector out, idx_t row, int32_t value)
{
	((int32_t *)duck.vector_get_data(out))[row] = value;
}

static void put_name(struct run *run, duckdb_vector out, idx_t row, uint32_t name)
{
	const struct store_name *own = &run->tables->recording->names[name];

	if (!name || !own->text_bytes)
		put_null(out, row);
	else
		duck.vector_assign_string_element_len(out, row, own->text, own->text_bytes);
}

static void put_time(struct run *run, duckdb_vector out, idx_t row,
		     const struct stack_nodes_sample *s)
{
	(void)run;
	((int64_t *)duck.vector_get_data(out))[row] = s->ts_ns;
}

static void put_pid(struct run *run, duckdb_vector out, idx_t row,
		    const struct stack_nodes_sample *s)
{
	(void)run;
	stack_nodes_scan_put_int(out, row, s->pid);
}

static void put_tid(struct run *run, duckdb_vector out, idx_t row,
		    const struct stack_nodes_sample *s)
{
	(void)run;
	stack_nodes_scan_put_int(out, row, s->tid);
}

static void put_thread(struct run *run, duckdb_vector out, idx_t row,
		       const struct stack_nodes_sample *s)
{
	put_name(run, out, row, s->thread);
}

static void put_cause(struct run *run, duckdb_vector out, idx_t row,
		      const struct stack_nodes_sample *s)
{
	put_name(run, out, row, s->cause);
}

static void put_state(struct run *run, duckdb_vector out, idx_t row,
		      const struct stack_nodes_sample *s)
{
	char letter = (char)s->state;

	(void)run;
	if (s->state < ' ' || s->state > '~')
		put_null(out, row);
	else
		duck.vector_assign_string_element_len(out, row, &letter, 1);
}

static void put_gil(struct run *run, duckdb_vector out, idx_t row,
		    const struct stack_nodes_sample *s)
{
	(void)run;
	((bool *)duck.vector_get_data(out))[row] = s->gil != 0;
}

static void put_weight(struct run *run, duckdb_vector out, idx_t row,
		       const struct stack_nodes_sample *s)
{
	(void)run;
	if (s->weight_ns < 0)
		put_null(out, row);
	else
		((int64_t *)duck.vector_get_data(out))[row] = s->weight_ns;
}

static void put_activity(struct run *run, duckdb_vector out, idx_t row,
			 const struct stack_nodes_sample *s)
{
	put_name(run, out, row, s->activity);
}

static void put_waits_for(struct run *run, duckdb_vector out, idx_t row,
			  const struct stack_nodes_sample *s)
{
	put_name(run, out, row, s->waits_for);
}

static void put_rank(struct run *run, duckdb_vector out, idx_t row,
		     const struct stack_nodes_sample *s)
{
	int32_t rank = store_target_rank(run->tables->recording, s->process, s->pid);

	if (rank < 0)
		put_null(out, row);
	else
		stack_nodes_scan_put_int(out, row, rank);
}

static void put_host(struct run *run, duckdb_vector out, idx_t row,
		     const struct stack_nodes_sample *s)
{
	const char *host = run->tables->recording->processes[s->process].host;

	duck.vector_assign_string_element_len(out, row, host, strlen(host));
}

static void put_collector_id(struct run *run, duckdb_vector out, idx_t row,
			     const struct stack_nodes_sample *s)
{
	(void)run;
	stack_nodes_scan_put_int(out, row, (int32_t)s->process);
}

static void put_flags(struct run *run, duckdb_vector out, idx_t row,
		      const struct stack_nodes_sample *s)
{
	(void)run;
	stack_nodes_scan_put_int(out, row, (int32_t)s->flags);
}

static void put_native_activity(struct run *run, duckdb_vector out, idx_t row,
				const struct stack_nodes_sample *s)
{
	if (s->flags & SCHEMA_NATIVE_WAITING)
		put_name(run, out, row, s->activity);
	else
		duck.vector_assign_string_element_len(out, row, "running", 7);
}

static void put_holder(struct run *run, duckdb_vector out, idx_t row,
		       const struct stack_nodes_sample *s)
{
	(void)run;
	if (s->holder > 0)
		stack_nodes_scan_put_int(out, row, s->holder);
	else
		put_null(out, row);
}

static void put_collector(struct run *run, duckdb_vector out, idx_t row,
			  const struct stack_nodes_sample *s)
{
	stack_nodes_scan_put_int(out, row, run->tables->recording->processes[s->process].pid);
}

static void put_node(struct run *run, duckdb_vector out, idx_t row,
		     const struct stack_nodes_sample *s)
{
	(void)run;
	((int64_t *)duck.vector_get_data(out))[row] = s->node;
}

/* The texts are those of the labels; only their addresses are copied. */
static void stack_nodes_scan_put_stack(struct run *run, duckdb_vector out, idx_t row,
				       const struct stack_nodes_sample *s)
{
	size_t count = stack_nodes_way(run->callers, s->process, s->node, NULL);
	duckdb_list_entry *entry = (duckdb_list_entry *)duck.vector_get_data(out) + row;
	duckdb_string_t *texts;

	*entry = (duckdb_list_entry){ run->frames, count };
	if (!count) {
		put_null(out, row);
		return;
	}
	if (duck.list_vector_reserve(out, run->frames + count) == DuckDBError) {
		entry->length = 0;
		return;
	}
	texts = duck.vector_get_data(duck.list_vector_get_child(out));
	stack_nodes_way(run->callers, s->process, s->node, texts + run->frames);
	run->frames += count;
	duck.list_vector_set_size(out, run->frames);
}

/* The text is that of the label, as in stacks. */
static void put_place(struct run *run, duckdb_vector out, idx_t row,
		      const struct stack_nodes_sample *s)
{
	const struct stack_nodes_label *place = stack_nodes_place(run->callers, s->process,
								  s->node);

	if (place)
		((duckdb_string_t *)duck.vector_get_data(out))[row] = place->text;
	else
		put_null(out, row);
}

/* Functions, outermost first. */
static void put_folded(struct run *run, duckdb_vector out, idx_t row,
		       const struct stack_nodes_sample *s)
{
	const struct stack_nodes *callers = run->callers;
	const struct stack_nodes_node *at = stack_nodes_find(callers, s->process, s->node);
	size_t bytes = 0, used;
	char *text;

	for (; at; at = stack_nodes_find(callers, s->process, at->parent))
		bytes += callers->labels[at->label].function.value.inlined.length + 1u;
	text = bytes ? malloc(bytes) : NULL;
	if (!text) {
		put_null(out, row);
		return;
	}
	used = bytes;
	at = stack_nodes_find(callers, s->process, s->node);
	for (; at; at = stack_nodes_find(callers, s->process, at->parent)) {
		const duckdb_string_t *name = &callers->labels[at->label].function;
		uint32_t length = name->value.inlined.length;

		used -= length + 1u;
		memcpy(text + used,
		       length <= sizeof(name->value.inlined.inlined) ? name->value.inlined.inlined
								     : name->value.pointer.ptr,
		       length);
		text[used + length] = ';';
	}
	duck.vector_assign_string_element_len(out, row, text, bytes - 1);
	run->frames += bytes * FRAMES_AT_ONCE / FOLDED_BYTES_AT_ONCE;
	free(text);
}

/* ---- the functions --------------------------------------------------------------------------- */

static const struct column sample_columns[] = {
	{ "ts_ns", DUCKDB_TYPE_BIGINT, put_time },
	{ "pid", DUCKDB_TYPE_INTEGER, put_pid },
	{ "tid", DUCKDB_TYPE_INTEGER, put_tid },
	{ "thread", DUCKDB_TYPE_VARCHAR, put_thread },
	{ "stack", DUCKDB_TYPE_LIST, stack_nodes_scan_put_stack },
	{ "state", DUCKDB_TYPE_VARCHAR, put_state },
	{ "gil", DUCKDB_TYPE_BOOLEAN, put_gil },
	{ "cause", DUCKDB_TYPE_VARCHAR, put_cause },
	{ "place", DUCKDB_TYPE_VARCHAR, put_place },
	{ "weight_ns", DUCKDB_TYPE_BIGINT, put_weight },
	{ "activity", DUCKDB_TYPE_VARCHAR, put_activity },
	{ "waits_for", DUCKDB_TYPE_VARCHAR, put_waits_for },
	{ "rank", DUCKDB_TYPE_INTEGER, put_rank },
	{ "host", DUCKDB_TYPE_VARCHAR, put_host },
};

static const struct column native_columns[] = {
	{ "ts_ns", DUCKDB_TYPE_BIGINT, put_time },
	{ "pid", DUCKDB_TYPE_INTEGER, put_pid },
	{ "tid", DUCKDB_TYPE_INTEGER, put_tid },
	{ "thread", DUCKDB_TYPE_VARCHAR, put_thread },
	{ "stack", DUCKDB_TYPE_LIST, stack_nodes_scan_put_stack },
	{ "place", DUCKDB_TYPE_VARCHAR, put_place },
	{ "weight_ns", DUCKDB_TYPE_BIGINT, put_weight },
	{ "flags", DUCKDB_TYPE_INTEGER, put_flags },
	{ "rank", DUCKDB_TYPE_INTEGER, put_rank },
	{ "host", DUCKDB_TYPE_VARCHAR, put_host },
	{ "activity", DUCKDB_TYPE_VARCHAR, put_native_activity },
	{ "waits_for", DUCKDB_TYPE_VARCHAR, put_waits_for },
	{ "holder", DUCKDB_TYPE_INTEGER, put_holder },
};

static const struct column leaf_columns[] = {
	{ "collector", DUCKDB_TYPE_INTEGER, put_collector },
	{ "node", DUCKDB_TYPE_BIGINT, put_node },
	{ "folded", DUCKDB_TYPE_VARCHAR, put_folded },
	{ "collector_id", DUCKDB_TYPE_INTEGER, put_collector_id },
};

static bool every_sample(struct run *run, const struct stack_nodes_sample *sample)
{
	(void)run, (void)sample;
	return true;
}

static bool first_of_its_node(struct run *run, const struct stack_nodes_sample *sample)
{
	return stack_nodes_find(run->callers, sample->process, sample->node) &&
	       stack_nodes_is_first(run->callers, run->seen, sample);
}

static const struct function {
	const char *name;
	const struct column *columns;
	size_t column_count;
	bool (*wants)(struct run *run, const struct stack_nodes_sample *sample);
	enum stack_nodes_kind kind;
} functions[] = {
	{ "kymo_samples", sample_columns, sizeof(sample_columns) / sizeof(sample_columns[0]),
	  every_sample, STACK_NODES_SAMPLES },
	{ "kymo_leaves", leaf_columns, sizeof(leaf_columns) / sizeof(leaf_columns[0]),
	  first_of_its_node, STACK_NODES_SAMPLES },
	{ "kymo_native_samples", native_columns, sizeof(native_columns) / sizeof(native_columns[0]),
	  every_sample, STACK_NODES_NATIVE },
	{ "kymo_native_leaves", leaf_columns, sizeof(leaf_columns) / sizeof(leaf_columns[0]),
	  first_of_its_node, STACK_NODES_NATIVE },
};

struct registered {
	struct tables *tables;
	const struct function *function;
};

/* The parameter from_ns, so that a view of the last seconds does not read the samples of hours. */
static void bind_range(duckdb_bind_info info)
{
	duckdb_value value = duck.bind_get_named_parameter(info, "from_ns");
	int64_t *from_ns = malloc(sizeof(*from_ns));

	if (!from_ns) {
		duck.bind_set_error(info, "no memory for the stacks of samples");
		return;
	}
	*from_ns = value && !duck.is_null_value(value) ? duck.get_int64(value) : INT64_MIN;
	duck.bind_set_bind_data(info, from_ns, free);
	if (value)
		duck.destroy_value(&value);
}

static void stack_nodes_scan_bind(duckdb_bind_info info)
{
	const struct registered *own = duck.bind_get_extra_info(info);
	duckdb_logical_type text = duck.create_logical_type(DUCKDB_TYPE_VARCHAR);

	for (size_t i = 0; i < own->function->column_count; i++) {
		const struct column *column = &own->function->columns[i];
		duckdb_logical_type type = column->type == DUCKDB_TYPE_LIST
						   ? duck.create_list_type(text)
						   : duck.create_logical_type(column->type);

		duck.bind_add_result_column(info, column->name, type);
		duck.destroy_logical_type(&type);
	}
	duck.destroy_logical_type(&text);
	bind_range(info);
}

static void stack_nodes_scan_run_destroy(void *data)
{
	struct run *run = data;

	if (!run)
		return;
	for (size_t i = 0; run->seen && i < run->callers->tree_count; i++)
		free(run->seen[i]);
	free(run->seen);
	stack_nodes_cursor_close(run->cursor);
	free(run);
}

static void stack_nodes_scan_init(duckdb_init_info info)
{
	const struct registered *own = duck.init_get_extra_info(info);
	const int64_t *from_ns = duck.init_get_bind_data(info);
	struct run *run = calloc(1, sizeof(*run));

	if (run) {
		run->tables = own->tables;
		run->function = own->function;
		run->callers = stack_nodes_get(own->tables, own->function->kind);
		run->cursor = stack_nodes_cursor_open(own->tables, own->function->kind, *from_ns);
		run->column_count = duck.init_get_column_count(info);
	}
	if (run && run->callers)
		run->seen = calloc(run->callers->tree_count + 1, sizeof(*run->seen));
	if (!run || !run->callers || !run->cursor || !run->seen || run->column_count > 16) {
		stack_nodes_scan_run_destroy(run);
		duck.init_set_error(info, "no memory for the stacks of samples");
		return;
	}
	for (size_t i = 0; i < run->column_count; i++)
		run->columns[i] = duck.init_get_column_index(info, i);
	duck.init_set_max_threads(info, 1); /* they are ordered by time */
	duck.init_set_init_data(info, run, stack_nodes_scan_run_destroy);
}

static bool stack_nodes_scan_next(struct run *run, struct stack_nodes_sample *out)
{
	do
		if (!stack_nodes_cursor_next(run->cursor, out))
			return false;
	while (!run->function->wants(run, out));
	return true;
}

static void stack_nodes_scan_put_row(struct run *run, idx_t row,
				     const struct stack_nodes_sample *sample)
{
	for (size_t i = 0; i < run->column_count; i++)
		if (run->columns[i] < run->function->column_count)
			run->function->columns[run->columns[i]].put(run, run->vectors[i], row,
								    sample);
}

static void stack_nodes_scan_emit(duckdb_function_info info, duckdb_data_chunk output)
{
	struct run *run = duck.function_get_init_data(info);
	struct stack_nodes_sample sample;
	idx_t rows = 0;

	run->frames = 0;
	for (size_t i = 0; i < run->column_count; i++)
		run->vectors[i] = duck.data_chunk_get_vector(output, i);
	while (rows < duck.vector_size() && run->frames < FRAMES_AT_ONCE &&
	       stack_nodes_scan_next(run, &sample))
		stack_nodes_scan_put_row(run, rows++, &sample);
	duck.data_chunk_set_size(output, rows);
}

static duckdb_table_function create_with_range(void)
{
	duckdb_table_function made = duck.create_table_function();
	duckdb_logical_type number = duck.create_logical_type(DUCKDB_TYPE_BIGINT);

	duck.table_function_add_named_parameter(made, "from_ns", number);
	duck.destroy_logical_type(&number);
	return made;
}

int stack_nodes_register(struct tables *tables, duckdb_connection connection,
			 struct kymo_error *err)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct registered *own = malloc(sizeof(*own));
		struct table_function function = { .name = functions[i].name,
						   .extra = own,
						   .free_extra = free,
						   .bind = stack_nodes_scan_bind,
						   .init = stack_nodes_scan_init,
						   .emit = stack_nodes_scan_emit,
						   .some_columns = true };
		int rc;

		if (!own)
			return error_set(err, ENOMEM, "no memory for the tables");
		*own = (struct registered){ tables, &functions[i] };
		rc = table_function_register(connection, create_with_range(), &function, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the last ones --------------------------------------------------------------------------- */

struct last {
	struct stack_nodes_sample *samples; /* of the latest moment of each process */
	size_t count, room;
};

static bool is_of_process(const struct stack_nodes_sample *a, const struct stack_nodes_sample *b)
{
	return a->pid == b->pid && a->process == b->process;
}

/* A later sample of a process replaces the earlier ones. */
static bool take_last(struct last *last, const struct stack_nodes_sample *sample)
{
	const struct stack_nodes_sample *before = last->count ? &last->samples[last->count - 1]
							      : NULL;
	size_t kept = 0;

	if (before && is_of_process(before, sample) && before->ts_ns == sample->ts_ns)
		kept = last->count; /* the next thread of the same moment */
	for (size_t i = kept; i < last->count; i++)
		if (!is_of_process(&last->samples[i], sample) ||
		    last->samples[i].ts_ns == sample->ts_ns)
			last->samples[kept++] = last->samples[i];
	last->count = kept;
	if (!grow((void **)&last->samples, &last->room, last->count, sizeof(*last->samples)))
		return false;
	last->samples[last->count++] = *sample;
	return true;
}

static void stack_nodes_scan_fill_frame(struct meta_cell *cell, const struct recording *recording,
					const struct stack_nodes_sample *sample,
					const struct stack_nodes_label *label, int64_t depth)
{
	const struct store_name *function = &recording->names[label->name];
	const struct store_name *thread = &recording->names[sample->thread];
	int32_t rank;

	meta_number(&cell[0], sample->pid);
	meta_number(&cell[1], sample->tid);
	if (sample->thread)
		meta_text_bytes(&cell[2], thread->text, thread->text_bytes);
	meta_text_bytes(&cell[3], function->text, function->text_bytes);
	meta_text_bytes(&cell[4], function->file, function->file_bytes);
	if (label->line)
		meta_number(&cell[5], label->line);
	meta_number(&cell[6], depth);
	meta_text(&cell[7], "Python");
	meta_number(&cell[8], recording->duration_ns - sample->ts_ns);
	rank = store_target_rank(recording, sample->process, sample->pid);
	if (rank >= 0)
		meta_number(&cell[10], rank);
	meta_host(&cell[11], recording->processes[sample->process].host);
}

static void fill_last(struct meta_rows *rows, const struct recording *recording,
		      const struct stack_nodes *callers, const struct stack_nodes_sample *sample)
{
	const struct stack_nodes_node *at = stack_nodes_find(callers, sample->process,
							     sample->node);

	for (int64_t depth = 0; at; depth++) {
		stack_nodes_scan_fill_frame(meta_add(rows), recording, sample,
					    &callers->labels[at->label], depth);
		at = stack_nodes_find(callers, sample->process, at->parent);
	}
}

void stack_nodes_fill_last(struct meta_rows *rows, const struct tables *tables)
{
	struct tables *session = (struct tables *)tables; /* its caches are built on first use */
	const struct stack_nodes *callers = stack_nodes_get(session, STACK_NODES_SAMPLES);
	struct stack_nodes_cursor *cursor = stack_nodes_cursor_open(session, STACK_NODES_SAMPLES,
								    INT64_MIN);
	struct stack_nodes_sample sample;
	struct last last = { 0 };
	bool ok = callers && cursor;

	/* Samples without frames, as taken while a program exits, are skipped. */
	while (ok && stack_nodes_cursor_next(cursor, &sample))
		if (stack_nodes_find(callers, sample.process, sample.node))
			ok = take_last(&last, &sample);
	for (size_t i = 0; ok && i < last.count; i++)
		fill_last(rows, tables->recording, callers, &last.samples[i]);
	rows->failed = rows->failed || !ok;
	stack_nodes_cursor_close(cursor);
	free(last.samples);
}
