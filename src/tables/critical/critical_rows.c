/* kymo_critical_path() and kymo_critical_idle(), the rows of the path and of idle time, computed on
   first use and kept with the session; and their sums. All have the same columns: in sums, `step`
   is the number of rows; of idle time, `kind` is the cause and `queue` the device. */
#include "tables/critical/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "tables/scan/table_function.h"

enum {
	PATH,
	STEP,
	RANK,
	PID,
	TID,
	KIND,
	NAME,
	START,
	DURATION,
	WIN,
	ALL_WIN,
	FUNCTION,
	FILE_NAME,
	LINE,
	MODULE,
	ZONE,
	QUEUE,
	HOST,
	COLUMNS
};
static const struct {
	const char *name;
	duckdb_type type;
} columns[COLUMNS] = {
	[PATH] = { "path", DUCKDB_TYPE_INTEGER },
	[STEP] = { "step", DUCKDB_TYPE_BIGINT },
	[RANK] = { "rank", DUCKDB_TYPE_INTEGER },
	[PID] = { "pid", DUCKDB_TYPE_INTEGER },
	[TID] = { "tid", DUCKDB_TYPE_INTEGER },
	[KIND] = { "kind", DUCKDB_TYPE_VARCHAR },
	[NAME] = { "name", DUCKDB_TYPE_VARCHAR },
	[START] = { "start_ns", DUCKDB_TYPE_BIGINT },
	[DURATION] = { "duration_ns", DUCKDB_TYPE_BIGINT },
	[WIN] = { "would_win_ns", DUCKDB_TYPE_BIGINT },
	[ALL_WIN] = { "all_win_ns", DUCKDB_TYPE_BIGINT },
	[FUNCTION] = { "function", DUCKDB_TYPE_VARCHAR },
	[FILE_NAME] = { "file", DUCKDB_TYPE_VARCHAR },
	[LINE] = { "line", DUCKDB_TYPE_INTEGER },
	[MODULE] = { "module", DUCKDB_TYPE_VARCHAR },
	[ZONE] = { "zone", DUCKDB_TYPE_VARCHAR },
	[QUEUE] = { "queue", DUCKDB_TYPE_VARCHAR },
	[HOST] = { "host", DUCKDB_TYPE_VARCHAR },
};

/* What a session keeps: the rows, and the threads that they name. */
struct critical {
	struct critical_result result;
	int32_t *tids; /* by thread */
	bool operators; /* the recording has operators */
};

/* ---- computing ----------------------------------------------------------------------------- */

static bool keep_tids(struct critical *critical, const struct critical_input *input)
{
	critical->tids = malloc((input->threads.count + 1) * sizeof(*critical->tids));
	for (size_t i = 0; critical->tids && i < input->threads.count; i++)
		critical->tids[i] = input->threads.list[i].tid;
	return critical->tids != NULL;
}

/* What is not needed any more is freed at once: a large trace takes hundreds of megabytes. */
static bool compute_path(struct critical *critical, const struct recording *recording)
{
	struct critical_result *result = &critical->result;
	struct critical_graph graph = { 0 };
	struct critical_input input;
	bool ok = critical_load(&input, recording, &result->too_large) &&
		  keep_tids(critical, &input) && critical_make_graph(&graph, &input) &&
		  critical_find_path(&graph, &input, result);

	free(graph.position);
	graph.position = NULL;
	ok = ok && critical_name_pieces(&input, result);
	free(result->pieces.list);
	free(input.zones.list);
	result->pieces.list = NULL;
	input.zones.list = NULL;
	ok = ok && critical_find_wins(&graph, &result->path);
	critical_graph_free(&graph);
	ok = ok && critical_find_idle(&input, result) && critical_sum(&result->path) &&
	     critical_sum(&result->idle);
	critical_input_free(&input);
	return ok;
}

static const char *why_none(const struct critical *critical)
{
	if (!critical || critical->result.failed)
		return "there is no critical path: it does not fit into memory; record fewer "
		       "steps";
	return critical->result.too_large
		       ? "the critical path takes at most 8 million operations and 32 million "
			 "zones; record or import fewer steps"
		       : NULL;
}

static struct critical *make_critical(struct tables *tables)
{
	struct critical *critical = calloc(1, sizeof(*critical));
	const struct recording *recording = tables->recording;

	if (!critical)
		return NULL;
	for (size_t i = 0; i < recording->name_count && !critical->operators; i++)
		critical->operators = recording->names[i].source == KYMO_SOURCE_OP;
	if (compute_path(critical, recording))
		return critical;
	critical_table_free(&critical->result.path);
	critical_table_free(&critical->result.idle);
	critical->result.path = critical->result.idle = (struct critical_table){ 0 };
	critical->result.failed = !critical->result.too_large;
	tables_add_problem(tables, why_none(critical));
	return critical;
}

static const struct critical *critical_get(struct tables *tables)
{
	const struct critical *critical;

	pthread_mutex_lock(&tables->dictionary_lock);
	if (!tables->critical)
		tables->critical = make_critical(tables);
	critical = tables->critical;
	pthread_mutex_unlock(&tables->dictionary_lock);
	return critical;
}

void critical_fini(struct tables *tables)
{
	if (!tables->critical)
		return;
	critical_table_free(&tables->critical->result.path);
	critical_table_free(&tables->critical->result.idle);
	free(tables->critical->tids);
	free(tables->critical);
	tables->critical = NULL;
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct run {
	const struct critical *critical;
	const struct recording *recording;
	const struct critical_span *rows;
	size_t count;
	const struct critical_label *labels;
	bool idle;
	size_t next;
	idx_t asked[COLUMNS];
	size_t asked_count;
};

static void critical_put_null(duckdb_vector out, idx_t row)
{
	duck.vector_ensure_validity_writable(out);
	duck.vector_get_validity(out)[row / 64] &= ~(1ull << (row % 64));
}

static void critical_put_text(duckdb_vector out, idx_t row, const char *text, size_t bytes)
{
	if (bytes)
		duck.vector_assign_string_element_len(out, row, text, bytes);
	else
		critical_put_null(out, row);
}

static void critical_put_name(const struct run *run, duckdb_vector out, idx_t row, uint32_t name)
{
	const struct store_name *text = &run->recording->names[name];

	critical_put_text(out, row, text->text, name ? text->text_bytes : 0);
}

/* A module of torch inside another one has its class in place of a file. */
static void critical_put_place(const struct run *run, duckdb_vector out, idx_t row, uint32_t name)
{
	const struct store_name *text = &run->recording->names[name];

	critical_put_text(out, row, text->file, name ? text->file_bytes : 0);
}

static void put_integer(duckdb_vector out, idx_t row, int64_t value, bool known)
{
	if (known)
		((int32_t *)duck.vector_get_data(out))[row] = (int32_t)value;
	else
		critical_put_null(out, row);
}

static void put_bigint(duckdb_vector out, idx_t row, int64_t value, bool known)
{
	if (known)
		((int64_t *)duck.vector_get_data(out))[row] = value;
	else
		critical_put_null(out, row);
}

static void critical_put_words(const struct run *run, duckdb_vector out, idx_t row,
			       const struct critical_label *piece)
{
	const char *const words[] = {
		[CRITICAL_GAP] = "between operations",
		[CRITICAL_STREAMS] = "between queues",
		[CRITICAL_LATE] = "launched, not started",
		[CRITICAL_UNMARKED] = run->critical->operators ? "between operators"
							       : "outside of zones",
	};

	if (piece->word == CRITICAL_NAMED)
		critical_put_name(run, out, row, piece->name);
	else
		critical_put_text(out, row, words[piece->word], strlen(words[piece->word]));
}

static void put_kind(const struct run *run, duckdb_vector out, idx_t row, uint8_t kind)
{
	static const char *const causes[] = {
		[CRITICAL_CAUSE_DATA] = "data",
		[CRITICAL_CAUSE_SYNCHRONISATION] = "synchronisation",
		[CRITICAL_CAUSE_LAUNCH] = "launch",
		[CRITICAL_CAUSE_HOST] = "host",
	};
	static const char *const words[] = {
		[CRITICAL_KIND_HOST] = "host",	   [CRITICAL_KIND_LAUNCH] = "launch",
		[CRITICAL_KIND_KERNEL] = "kernel", [CRITICAL_KIND_COPY] = "copy",
		[CRITICAL_KIND_WAIT] = "wait",	   [CRITICAL_KIND_COLLECTIVE] = "collective",
	};

	const char *word = run->idle ? causes[kind] : words[kind];

	critical_put_text(out, row, word, strlen(word));
}

static void put_cell(const struct run *run, int column, duckdb_vector out, idx_t row,
		     const struct critical_span *of)
{
	const struct critical_label *piece = &run->labels[of->label];
	const struct store_process *process = &run->recording->processes[piece->process];

	switch (column) {
	case PATH: put_integer(out, row, piece->path, true); break;
	case STEP: put_bigint(out, row, of->step, true); break;
	case RANK: put_integer(out, row, process->rank, process->rank >= 0); break;
	case PID: put_integer(out, row, process->pid, true); break;
	case TID:
		put_integer(out, row,
			    piece->thread == CRITICAL_NONE ? 0 : run->critical->tids[piece->thread],
			    piece->thread != CRITICAL_NONE);
		break;
	case KIND: put_kind(run, out, row, piece->kind); break;
	case NAME: critical_put_words(run, out, row, piece); break;
	case START: put_bigint(out, row, of->start_ns, true); break;
	case DURATION: put_bigint(out, row, of->duration_ns, true); break;
	case WIN: put_bigint(out, row, of->win_ns, true); break;
	case ALL_WIN: put_bigint(out, row, piece->all_win_ns, piece->all_win_ns >= 0); break;
	case FUNCTION: critical_put_name(run, out, row, piece->function); break;
	case FILE_NAME: critical_put_place(run, out, row, piece->function); break;
	case LINE:
		put_integer(out, row, run->recording->names[piece->function].line,
			    piece->function && run->recording->names[piece->function].line);
		break;
	case MODULE: critical_put_name(run, out, row, piece->module); break;
	case ZONE: critical_put_name(run, out, row, piece->zone); break;
	case QUEUE: critical_put_name(run, out, row, piece->queue); break;
	case HOST: critical_put_text(out, row, process->host, strlen(process->host)); break;
	default: break;
	}
}

/* ---- the function -------------------------------------------------------------------------- */

static void critical_bind(duckdb_bind_info info)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		duckdb_logical_type type = duck.create_logical_type(columns[i].type);

		duck.bind_add_result_column(info, columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
}

static void critical_begin(duckdb_init_info info, bool idle, bool sums)
{
	struct tables *tables = duck.init_get_extra_info(info);
	const struct critical *critical = critical_get(tables);
	/* Sums are for reports: these go on without a path, which is a problem of the tables. */
	const char *why = critical && sums ? NULL : why_none(critical);
	const struct critical_table *table;
	struct run *run = why ? NULL : calloc(1, sizeof(*run));

	if (!run || duck.init_get_column_count(info) > COLUMNS) {
		free(run);
		duck.init_set_error(info, why ? why : "no memory for the critical path");
		return;
	}
	table = idle ? &critical->result.idle : &critical->result.path;
	*run = (struct run){ .critical = critical,
			     .recording = tables->recording,
			     .rows = sums ? table->sums.list : table->rows.list,
			     .count = sums ? table->sums.count : table->rows.count,
			     .labels = table->labels.list,
			     .idle = idle,
			     .asked_count = duck.init_get_column_count(info) };
	for (size_t i = 0; i < run->asked_count; i++)
		run->asked[i] = duck.init_get_column_index(info, i);
	duck.init_set_max_threads(info, 1);
	duck.init_set_init_data(info, run, free);
}

static void begin_path(duckdb_init_info info)
{
	critical_begin(info, false, false);
}

static void begin_path_sums(duckdb_init_info info)
{
	critical_begin(info, false, true);
}

static void begin_idle(duckdb_init_info info)
{
	critical_begin(info, true, false);
}

static void begin_idle_sums(duckdb_init_info info)
{
	critical_begin(info, true, true);
}

static void critical_emit(duckdb_function_info info, duckdb_data_chunk output)
{
	struct run *run = duck.function_get_init_data(info);
	size_t count = run->count - run->next;

	if (count > duck.vector_size())
		count = duck.vector_size();
	for (size_t k = 0; k < run->asked_count; k++) {
		duckdb_vector out = duck.data_chunk_get_vector(output, k);

		for (size_t i = 0; i < count && run->asked[k] < COLUMNS; i++)
			put_cell(run, (int)run->asked[k], out, i, &run->rows[run->next + i]);
	}
	run->next += count;
	duck.data_chunk_set_size(output, count);
}

int critical_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	const struct table_function functions[] = {
		{ .name = "kymo_critical_path", .init = begin_path },
		{ .name = "kymo_critical_sums", .init = begin_path_sums },
		{ .name = "kymo_critical_idle", .init = begin_idle },
		{ .name = "kymo_critical_idle_sums", .init = begin_idle_sums },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !rc; i++) {
		struct table_function function = functions[i];

		function.extra = tables;
		function.bind = critical_bind;
		function.emit = critical_emit;
		function.some_columns = true;
		rc = table_function_register(connection, duck.create_table_function(), &function,
					     err);
	}
	return rc;
}
