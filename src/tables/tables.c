#include "tables/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/scratch/child_notes.h"
#include "tables/self_limits.h"
#include "tables/critical/critical.h"
#include "tables/stacks/stack_nodes.h"
#include "tables/catalog/catalog.h"
#include "tables/catalog/session_views.h"
#include "tables/lake/attach_lake.h"
#include "tables/packed/attach_packed.h"
#include "tables/scan/cell.h"
#include "tables/scan/dictionary.h"
#include "tables/scan/meta.h"
#include "tables/sql_policy.h"
#include "tables/scan/scan.h"
#include "tables/query_watchdog.h"
#include "tables/words.h"
#include "tables_sql.h"

#define SAFE_MEMORY_BYTES (UINT64_C(1) << 30)
#define OWN_MEMORY_MOST (UINT64_C(4) << 30)
#define NAP_LEAST_NS 20000
#define NAP_MOST_NS 500000
#define CALLS_KEPT_MOST 1048576u /* rows of dist.collectives that a query may keep */

/* ---- opening ----------------------------------------------------------------------------- */

int tables_library(const char **out_version, struct kymo_error *err)
{
	int rc = duck_load(err);

	*out_version = rc ? "" : duck.library_version();
	return rc;
}

uint64_t tables_own_memory(void)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages / 4 * (uint64_t)page : 0;

	if (bytes < SAFE_MEMORY_BYTES)
		return SAFE_MEMORY_BYTES;
	return bytes < OWN_MEMORY_MOST ? bytes : OWN_MEMORY_MOST;
}

/* 0: DuckDB's own limit. */
static uint64_t session_memory(const struct tables_options *options)
{
	if (options->memory_limit_bytes || options->unsafe)
		return options->memory_limit_bytes;
	return SAFE_MEMORY_BYTES;
}

static void set_memory(duckdb_config config, const struct tables_options *options)
{
	uint64_t bytes = session_memory(options);
	char text[32];

	if (!bytes)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 "KiB", bytes >> 10);
	duck.set_config(config, "memory_limit", text);
}

static void set_options(duckdb_config config, const struct tables_options *options)
{
	/* A version without one of these settings also lacks the feature that it disables. */
	static const char *const safe[][2] = {
		{ "autoinstall_known_extensions", "false" },
		{ "autoload_known_extensions", "false" },
		{ "allow_community_extensions", "false" },
		{ "allow_persistent_secrets", "false" },
		{ "temp_directory", "" },
	};
	char threads[16];

	if (options->threads) {
		snprintf(threads, sizeof(threads), "%" PRIu32, options->threads);
		duck.set_config(config, "threads", threads);
	}
	set_memory(config, options);
	for (size_t i = 0; !options->unsafe && i < sizeof(safe) / sizeof(safe[0]); i++)
		duck.set_config(config, safe[i][0], safe[i][1]);
}

/* What a query reads twice, DuckDB reads once and keeps in memory, also where the SQL says NOT
   MATERIALIZED. The calls of 1,000 ranks do not fit: they are read again. */
static void set_optimizers(duckdb_config config, const struct recording *recording)
{
	uint64_t rows = 0;

	for (size_t i = 0; recording && i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "dist.collectives"))
			rows += recording->streams[i].kept;
	if (rows > CALLS_KEPT_MOST)
		duck.set_config(config, "disabled_optimizers", "common_subplan");
}

static int open_database(struct tables *tables, struct kymo_error *err)
{
	duckdb_config config = NULL;
	char *why = NULL;
	int rc = 0;

	duck.create_config(&config);
	set_options(config, &tables->options);
	set_optimizers(config, tables->recording);
	if (duck.open_ext(NULL, &tables->database, config, &why) == DuckDBError)
		rc = error_set(err, EIO, "cannot start DuckDB: %s", why ? why : "no reason given");
	if (why)
		duck.free(why);
	duck.destroy_config(&config);
	return rc;
}

/* A view that cannot be created (temp.x, …) is reported as a problem; the recording still opens. */
static void tables_add_user_tables(struct tables *tables, duckdb_connection connection)
{
	struct buf sql = { 0 };
	struct kymo_error why;

	for (size_t i = 0; i < tables->shapes.count; i++) {
		const struct table_shape *shape = &tables->shapes.shapes[i];

		buf_reset(&sql);
		if (!catalog_user_sql(&sql, shape, &tables->shapes.problems))
			continue;
		if (sql.failed || duck_run(connection, sql.data, "cannot create its view", &why))
			buf_print(&tables->shapes.problems, "%s: %.*s; kymo_scan can read it\n",
				  shape->table, (int)strcspn(why.text, "\n"), why.text);
	}
	buf_fini(&sql);
}

static int attach_store(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	int rc = scan_register(tables, connection, err);

	if (!rc)
		rc = meta_register(tables, connection, err);
	if (!rc)
		rc = stack_nodes_register(tables, connection, err);
	if (!rc)
		rc = stack_nodes_register_sites(tables, connection, err);
	if (!rc)
		rc = stack_nodes_register_own(tables, connection, err);
	if (!rc)
		rc = critical_register(tables, connection, err);
	if (rc)
		return rc;
	/* DuckDB does not know the rows of our functions, and would take an ASOF join of 300,000
	   samples for a small one: a join with all spans of a process. */
	rc = duck_run(connection,
		      "SET GLOBAL asof_loop_join_threshold = 0;\n"
		      "ATTACH ':memory:' AS rec; USE rec",
		      "cannot attach the recording", err);
	if (!rc)
		rc = session_views_init(tables, connection, err);
	if (!rc)
		tables_add_user_tables(tables, connection);
	return rc;
}

/* After this no statement can access files or change settings. */
static int lock_down(duckdb_connection connection, struct kymo_error *err)
{
	return duck_run(connection,
			"SET enable_external_access = false; SET lock_configuration = true",
			"cannot lock down DuckDB", err);
}

static int attach(struct tables *tables, const char *path, struct kymo_error *err)
{
	duckdb_connection connection = NULL;
	int rc;

	if (duck.connect(tables->database, &connection) == DuckDBError)
		return error_set(err, EIO, "cannot connect to DuckDB");
	if (tables->recording)
		rc = attach_store(tables, connection, err);
	else if (store_kind(path, NULL) == STORE_LAKE)
		rc = attach_lake(connection, path, tables->options.unsafe, &tables->shapes.problems,
				 err);
	else
		rc = attach_packed(connection, path, tables->options.unsafe, err);
	/* Files of others are attached when the session is locked already. */
	if (!rc && tables->recording && !tables->options.unsafe)
		rc = lock_down(connection, err);
	duck.disconnect(&connection);
	return rc;
}

static int open_recording(struct tables *tables, const char *path, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	enum store_kind kind = store_kind(path, &why);

	if (kind == STORE_NONE)
		return error_set(err, why.code ? why.code : EINVAL, "%s",
				 why.text[0] ? why.text : "not a kymo recording");
	if (store_kind_is_sql(kind))
		return 0;
	return store_open(path, &tables->recording, err);
}

static int shape_tables(struct tables *tables, struct kymo_error *err)
{
	if (tables->recording && table_shape_set_init(&tables->shapes, tables->recording))
		return error_set(err, ENOMEM, "no memory for the tables of %s", tables->path);
	return 0;
}

/* recording: one that is open already, the session's from here on; NULL: path is opened. */
static int tables_begin(const char *path, struct recording *recording,
			const struct tables_options *options, struct tables **out,
			struct kymo_error *err)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	int rc;

	*out = NULL;
	if (!tables) {
		store_close(recording);
		return error_set(err, ENOMEM, "no memory to open %s", path);
	}
	tables->recording = recording;
	if (options)
		tables->options = *options;
	snprintf(tables->path, sizeof(tables->path), "%s", path);
	child_notes_recording(path);
	pthread_mutex_init(&tables->dictionary_lock, NULL);
	pthread_mutex_init(&tables->progress_lock, NULL);
	pthread_mutex_init(&tables->views_lock, NULL);
	rc = query_watchdog_init(tables, err);
	if (!rc)
		rc = duck_load(err);
	if (!rc && !recording)
		rc = open_recording(tables, path, err);
	if (!rc)
		rc = shape_tables(tables, err);
	if (!rc)
		rc = open_database(tables, err);
	if (!rc && self_limits_armed())
		rc = self_limits_set(session_memory(&tables->options), 0, err);
	if (!rc)
		rc = attach(tables, path, err);
	if (!rc)
		*out = tables;
	else
		tables_close(tables);
	return rc;
}

int tables_open(const char *path, const struct tables_options *options, struct tables **out,
		struct kymo_error *err)
{
	return tables_begin(path, NULL, options, out, err);
}

int tables_open_recording(struct recording *recording, const struct tables_options *options,
			  struct tables **out, struct kymo_error *err)
{
	return tables_begin(recording->path, recording, options, out, err);
}

/* Views exist for the tables of the first look only. */
static bool same_tables(const struct table_shape_set *before, const struct table_shape_set *now)
{
	if (before->count != now->count)
		return false;
	for (size_t i = 0; i < now->count; i++)
		if (strcmp(before->shapes[i].table, now->shapes[i].table) ||
		    before->shapes[i].declared_count != now->shapes[i].declared_count)
			return false;
	return true;
}

/* What was derived from the recording. */
static void forget_recording(struct tables *tables)
{
	dictionary_fini(tables);
	stack_nodes_fini(tables);
	critical_fini(tables);
	table_shape_set_fini(&tables->shapes);
	store_close(tables->recording);
}

int tables_refresh(struct tables *tables, struct kymo_error *err)
{
	struct table_shape_set shapes = { 0 };
	struct recording *recording = NULL;
	int rc;

	if (!tables->recording)
		return error_set(err, EINVAL, "%s does not change", tables->path);
	rc = store_open(tables->path, &recording, err);
	if (rc)
		return rc;
	if (table_shape_set_init(&shapes, recording))
		rc = error_set(err, ENOMEM, "no memory for the tables of %s", tables->path);
	else if (!same_tables(&tables->shapes, &shapes))
		rc = error_set(err, ESTALE, "%s has new tables", tables->path);
	if (rc) {
		table_shape_set_fini(&shapes);
		store_close(recording);
		return rc;
	}
	forget_recording(tables);
	tables->recording = recording;
	tables->shapes = shapes;
	return 0;
}

void tables_close(struct tables *tables)
{
	if (!tables)
		return;
	query_watchdog_fini(tables);
	if (tables->database)
		duck.close(&tables->database);
	/* After the database, whose vectors may refer to these. */
	forget_recording(tables);
	pthread_mutex_destroy(&tables->dictionary_lock);
	pthread_mutex_destroy(&tables->progress_lock);
	pthread_mutex_destroy(&tables->views_lock);
	session_views_fini(tables);
	free(tables);
}

void tables_limit_time(struct tables *tables, uint32_t timeout_ms)
{
	tables->options.timeout_ms = timeout_ms;
}

void tables_watch(struct tables *tables, void (*progress)(uint64_t done, uint64_t all))
{
	tables->progress = progress;
	tables->progress_all = 0;
	kymo__store_relaxed(&tables->progress_done, 0);
}

const struct recording *tables_recording(const struct tables *tables)
{
	return tables->recording;
}

const char *tables_name(const struct tables *tables)
{
	const char *slash = strrchr(tables->path, '/');

	return slash && slash[1] ? slash + 1 : tables->path;
}

void tables_add_problem(struct tables *tables, const char *sentence)
{
	buf_print(&tables->shapes.problems, "%.*s\n", (int)strcspn(sentence, "\n"), sentence);
}

const char *tables_problems(const struct tables *tables)
{
	return buf_get(&tables->shapes.problems);
}

void tables_interrupt(struct tables *tables)
{
	kymo__fetch_add_seq_cst(&tables->interrupts, 1);
	sem_post(&tables->watch_wake);
}

/* ---- queries ----------------------------------------------------------------------------- */

/* DuckDB's message, or a better one where that would mislead. */
static int query_failed(const struct tables *tables, const char *why, struct kymo_error *err)
{
	static const struct {
		const char *begins, *sentence;
		int code;
	} meanings[] = {
		{ "Out of Memory Error",
		  "the query exceeds its memory limit; reduce it (WHERE, LIMIT, fewer columns), or "
		  "remove the limit (kymo query --unsafe)",
		  ENOMEM },
		{ "Permission Error",
		  "SQL over a recording has no access to files, settings or extensions; --unsafe "
		  "allows all statements",
		  EPERM },
		{ "TransactionContext Error: Cannot write",
		  "SQL over a recording is read only; --unsafe allows all statements", EPERM },
	};

	for (size_t i = 0;
	     why && !tables->options.unsafe && i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (!strncmp(why, meanings[i].begins, strlen(meanings[i].begins)))
			return error_set(err, meanings[i].code, "%s", meanings[i].sentence);
	error_set(err, EINVAL, "%s", why && *why ? why : "DuckDB gave no reason");
	if (err)
		words_trim(err->text);
	return -EINVAL;
}

static int run_in(struct tables_result *result, const char *sql, struct kymo_error *err)
{
	struct kymo_error why = { 0 };

	if (!duck_run(result->connection, sql, "", &why))
		return 0;
	return query_failed(result->tables, why.text + strspn(why.text, ": "), err);
}

/* Runs tasks of the statement until the first rows are there; false: it failed. While other threads
   have all tasks, duckdb_execute_prepared_streaming() asks for one again and again, which takes a
   whole core. */
static bool run_tasks(duckdb_pending_result pending)
{
	struct timespec nap = { .tv_nsec = NAP_LEAST_NS };
	duckdb_pending_state state = duck.pending_execute_task(pending);

	while (!duck.pending_execution_is_finished(state)) {
		if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE) {
			nanosleep(&nap, NULL);
			nap.tv_nsec = nap.tv_nsec < NAP_MOST_NS ? nap.tv_nsec * 2 : nap.tv_nsec;
		} else {
			nap.tv_nsec = NAP_LEAST_NS;
		}
		state = duck.pending_execute_task(pending);
	}
	return state != DUCKDB_PENDING_ERROR;
}

/* False: why->text has DuckDB's message. `out` is to be destroyed in any case. */
static bool execute_statement(duckdb_prepared_statement statement, duckdb_result *out,
			      struct kymo_error *why)
{
	duckdb_pending_result pending = NULL;
	const char *text = NULL;
	bool ok = duck.pending_prepared_streaming(statement, &pending) != DuckDBError &&
		  run_tasks(pending);

	if (!ok) {
		text = duck.pending_error(pending);
	} else {
		ok = duck.execute_pending(pending, out) != DuckDBError;
		text = ok ? NULL : duck.result_error(out);
	}
	snprintf(why->text, sizeof(why->text), "%s", text ? text : "");
	duck.destroy_pending(&pending);
	return ok;
}

/* With --unsafe there may be several statements; the rows are those of the last. */
static int run_all_but_last(struct tables_result *result, duckdb_extracted_statements statements,
			    idx_t count, struct kymo_error *err)
{
	struct kymo_error why;
	duckdb_result ignored;
	int rc = 0;

	for (idx_t i = 0; i + 1 < count && !rc; i++) {
		memset(&ignored, 0, sizeof(ignored));
		if (duck.prepare_extracted_statement(result->connection, statements, i,
						     &result->statement) == DuckDBError)
			rc = query_failed(result->tables, duck.prepare_error(result->statement),
					  err);
		else if (!execute_statement(result->statement, &ignored, &why))
			rc = query_failed(result->tables, why.text, err);
		duck.destroy_result(&ignored);
		duck.destroy_prepare(&result->statement);
	}
	return rc;
}

static int prepare_last(struct tables_result *result, duckdb_extracted_statements statements,
			idx_t count, struct kymo_error *err)
{
	if (duck.prepare_extracted_statement(result->connection, statements, count - 1,
					     &result->statement) == DuckDBError)
		return query_failed(result->tables, duck.prepare_error(result->statement), err);
	if (result->tables->options.unsafe)
		return 0;
	return sql_policy_check_statement(duck.prepared_statement_type(result->statement), err);
}

static int tables_prepare(struct tables_result *result, const char *sql, struct kymo_error *err)
{
	duckdb_extracted_statements statements = NULL;
	bool unsafe = result->tables->options.unsafe;
	idx_t count = duck.extract_statements(result->connection, sql, &statements);
	const char *why = count ? NULL : duck.extract_statements_error(statements);
	int rc = 0;

	if (why)
		rc = query_failed(result->tables, why, err);
	else if (!count)
		rc = error_set(err, EINVAL, "the SQL is empty; try: FROM trace.regions");
	else if (count > 1 && !unsafe)
		rc = error_set(err, EPERM,
			       "SQL over a recording must be one SELECT or EXPLAIN, not %" PRIu64
			       " statements; --unsafe allows all statements",
			       (uint64_t)count);
	if (!rc && unsafe)
		rc = run_all_but_last(result, statements, count, err);
	if (!rc)
		rc = prepare_last(result, statements, count, err);
	duck.destroy_extracted(&statements);
	return rc;
}

static int execute(struct tables_result *result, struct kymo_error *err)
{
	struct kymo_error why;

	if (!execute_statement(result->statement, &result->result, &why))
		return query_failed(result->tables, why.text, err);
	if (cell_columns_init(result))
		return error_set(err, ENOMEM, "no memory for the result");
	return 0;
}

/* Called between query_watchdog_enter() and query_watchdog_leave(). */
static int start_query(struct tables_result *result, const char *sql, struct kymo_error *err)
{
	int rc = run_in(result, "USE rec", err);

	/* Prevents EXPLAIN ANALYZE of a writing statement from changing what later queries see. */
	if (!rc && !result->tables->options.unsafe)
		rc = run_in(result, "BEGIN TRANSACTION READ ONLY", err);
	if (!rc)
		rc = tables_prepare(result, sql, err);
	if (!rc)
		rc = execute(result, err);
	return rc;
}

/* Names that the SQL puts together, or that are wrong: DuckDB then suggests similar ones. */
static bool lacks_a_view(const struct kymo_error *why, struct tables *tables)
{
	return (strstr(why->text, "does not exist") || strstr(why->text, "not found")) &&
	       session_views_complete(tables);
}

/* Runs the statement again to its end, for the reason of its failure only. */
static void run_again(struct tables_result *result, struct kymo_error *why)
{
	duckdb_result again = { 0 };
	duckdb_data_chunk chunk;
	const char *text;

	/* Ends the transaction of the previous attempt, which may have been interrupted. */
	duck_run(result->connection, "ROLLBACK", "", NULL);
	if (run_in(result, "BEGIN TRANSACTION READ ONLY", why))
		return;
	if (execute_statement(result->statement, &again, why)) {
		while ((chunk = duck.fetch_chunk(again)))
			duck.destroy_data_chunk(&chunk);
		text = duck.result_error(&again);
		snprintf(why->text, sizeof(why->text), "%s", text ? text : "");
	}
	duck.destroy_result(&again);
}

static bool is_masked(const char *why)
{
	return !strncmp(why, "INTERRUPT Error", strlen("INTERRUPT Error"));
}

/* If a worker thread of DuckDB fails just before rows are fetched, the fetching thread gets only
   "interrupted" and the reason is lost. A reading statement can be run again to get it. */
static int rows_failed(struct tables_result *result, const char *text, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc;

	snprintf(why.text, sizeof(why.text), "%s", text);
	for (int i = 0; i < 3 && is_masked(why.text) && !result->tables->options.unsafe; i++) {
		query_watchdog_settle(result);
		rc = query_watchdog_enter(result, err);
		if (rc)
			return rc;
		run_again(result, &why);
		rc = query_watchdog_leave(result, err);
		if (rc)
			return rc;
	}
	if (!*why.text || is_masked(why.text))
		return error_set(
			err, EIO,
			"the query failed in a thread of DuckDB, without a reason; run it again");
	return query_failed(result->tables, why.text, err);
}

static int watched_start(struct tables_result *result, const char *sql, struct kymo_error *err)
{
	struct kymo_error why = { 0 };
	int rc = query_watchdog_add(result, err), stopped;

	if (!rc)
		rc = query_watchdog_enter(result, err);
	if (rc)
		return rc;
	result->unsettled = true;
	rc = start_query(result, sql, &why);
	if (rc && lacks_a_view(&why, result->tables)) {
		duck_run(result->connection, "ROLLBACK", "", NULL);
		duck.destroy_prepare(&result->statement);
		rc = start_query(result, sql, &why);
	}
	if (rc && err)
		*err = why;
	/* A stopped query failed for that reason, whatever DuckDB reports; one that had already
	   succeeded did not fail. */
	stopped = query_watchdog_leave(result, rc ? err : NULL);
	return rc && stopped ? stopped : rc;
}

/* SHOW TABLES lists the tables of all schemas. */
static const char *replace_show_tables(const char *sql)
{
	static const char asked[] = "show tables";
	const char *at = sql + strspn(sql, " \t\r\n");

	if (strncasecmp(at, asked, sizeof(asked) - 1) != 0)
		return sql;
	at += sizeof(asked) - 1;
	return at[strspn(at, "; \t\r\n")] ? sql : sql_show_tables;
}

int tables_query(struct tables *tables, const char *sql, struct tables_result **out,
		 struct kymo_error *err)
{
	struct tables_result *result;
	int rc;

	*out = NULL;
	sql = replace_show_tables(sql);
	if (!tables->options.unsafe) {
		rc = sql_policy_check_functions(sql, err);
		if (rc)
			return rc;
	}
	rc = session_views_need(tables, sql, err);
	if (rc)
		return rc;
	result = calloc(1, sizeof(*result));
	if (!result)
		return error_set(err, ENOMEM, "no memory for the query");
	result->tables = tables;
	if (duck.connect(tables->database, &result->connection) == DuckDBError)
		rc = error_set(err, EIO, "cannot connect to DuckDB");
	else
		rc = watched_start(result, sql, err);
	if (!rc)
		*out = result;
	else
		tables_result_close(result);
	return rc;
}

void tables_result_close(struct tables_result *result)
{
	if (!result)
		return;
	cell_columns_fini(result);
	if (result->chunk)
		duck.destroy_data_chunk(&result->chunk);
	if (result->unsettled)
		query_watchdog_settle(result);
	query_watchdog_remove(result);
	duck.destroy_result(&result->result);
	if (result->statement)
		duck.destroy_prepare(&result->statement);
	if (result->connection)
		duck.disconnect(&result->connection);
	free(result);
}

size_t tables_column_count(const struct tables_result *result)
{
	return result->column_count;
}

const char *tables_column_name(const struct tables_result *result, size_t column)
{
	return result->columns[column].name;
}

const char *tables_column_type(const struct tables_result *result, size_t column)
{
	return result->columns[column].type_name;
}

int64_t tables_next(struct tables_result *result, struct kymo_error *err)
{
	const char *why;
	int rc;

	if (result->chunk)
		duck.destroy_data_chunk(&result->chunk);
	rc = query_watchdog_enter(result, err);
	if (rc)
		return rc;
	result->chunk = duck.fetch_chunk(result->result);
	rc = query_watchdog_leave(result, err);
	if (rc)
		return rc;
	why = result->chunk ? NULL : duck.result_error(&result->result);
	if (why && *why)
		return rows_failed(result, why, err);
	result->unsettled = result->chunk;
	if (!result->chunk)
		return 0;
	cell_chunk(result);
	return (int64_t)duck.data_chunk_get_size(result->chunk);
}

double tables_number(struct tables *tables, const char *sql, double fallback)
{
	struct tables_result *result = NULL;
	struct tables_cell cell = { 0 };
	double number = fallback;
	char *text;

	if (!tables_query(tables, sql, &result, NULL) && tables_next(result, NULL) > 0 &&
	    result->column_count)
		tables_cell(result, 0, 0, &cell);
	switch (cell.kind) {
	case TABLES_BOOL:
	case TABLES_INTEGER: number = (double)cell.integer; break;
	case TABLES_UNSIGNED: number = (double)cell.unsigned_integer; break;
	case TABLES_DOUBLE: number = cell.real; break;
	case TABLES_TEXT:
		/* HUGEINT and DECIMAL are returned as text. */
		text = strndup(cell.text, cell.text_bytes);
		number = text ? strtod(text, NULL) : fallback;
		free(text);
		break;
	default: break;
	}
	tables_result_close(result);
	return number;
}
