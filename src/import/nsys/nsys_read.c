/* Reads the tables of an nsys export with SQLite, in the child. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/nsys/nsys.h"
#include "import/nsys/nsys_trace.h"
#include "import/nsys/sqlite_api.h"

#define HEAP_BYTES (256 << 20)
#define TABLE_COLUMNS_MOST 512

/* ---- tables -------------------------------------------------------------------------------- */

/* clang-format off */
/* Columns of tables whose rows are spans of a thread, and of those of a stream. */
#define SPAN_OF_THREAD [NSYS_START] = "start", [NSYS_END] = "end", [NSYS_TID] = "globalTid"
#define SPAN_ON_STREAM \
	[NSYS_START] = "start", [NSYS_END] = "end", [NSYS_PID] = "globalPid", \
	[NSYS_CORRELATION] = "correlationId", [NSYS_DEVICE] = "deviceId", \
	[NSYS_CONTEXT] = "contextId", [NSYS_STREAM] = "streamId"
/* clang-format on */

/* Those that are read, in this order: strings come first. The others of a file, among them the
   environment, are not touched. */
static const struct nsys_table {
	const char *name;
	const char *columns[NSYS_COLUMN_COUNT]; /* NULL: it has none */
	void (*take)(struct nsys_trace *trace, const struct nsys_row *row);
} nsys_tables[] = {
	{ "StringIds", { [NSYS_NAME] = "id", [NSYS_TEXT] = "value" }, nsys_take_string },
	{ "TARGET_INFO_SESSION_START_TIME", { [NSYS_START] = "utcEpochNs" }, nsys_take_session },
	{ "PROCESSES", { [NSYS_PID] = "globalPid", [NSYS_TEXT] = "name" }, nsys_take_process },
	{ "ThreadNames", { [NSYS_TID] = "globalTid", [NSYS_NAME] = "nameId" }, nsys_take_thread },
	{ "CUPTI_ACTIVITY_KIND_RUNTIME",
	  { SPAN_OF_THREAD, [NSYS_NAME] = "nameId", [NSYS_CORRELATION] = "correlationId",
	    [NSYS_KIND] = "eventClass" },
	  nsys_take_call },
	{ "NVTX_EVENTS",
	  { SPAN_OF_THREAD, [NSYS_TEXT] = "text", [NSYS_NAME] = "textId",
	    [NSYS_KIND] = "eventType" },
	  nsys_take_range },
	{ "OSRT_API", { SPAN_OF_THREAD, [NSYS_NAME] = "nameId" }, nsys_take_library },
	{ "CUDNN_EVENTS", { SPAN_OF_THREAD, [NSYS_NAME] = "nameId" }, nsys_take_library },
	{ "CUBLAS_EVENTS", { SPAN_OF_THREAD, [NSYS_NAME] = "nameId" }, nsys_take_library },
	{ "PROFILER_OVERHEAD", { SPAN_OF_THREAD, [NSYS_NAME] = "nameId" }, nsys_take_overhead },
	{ "CUPTI_ACTIVITY_KIND_KERNEL",
	  { SPAN_ON_STREAM, [NSYS_NAME] = "demangledName", [NSYS_OTHER_NAME] = "shortName",
	    [NSYS_GRAPH] = "graphId" },
	  nsys_take_kernel },
	{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	  { SPAN_ON_STREAM, [NSYS_GRAPH] = "graphId" },
	  nsys_take_graph },
	{ "CUPTI_ACTIVITY_KIND_MEMCPY",
	  { SPAN_ON_STREAM, [NSYS_BYTES] = "bytes", [NSYS_KIND] = "copyKind",
	    [NSYS_FROM_MEMORY] = "srcKind", [NSYS_TO_MEMORY] = "dstKind" },
	  nsys_take_copy },
	{ "CUPTI_ACTIVITY_KIND_MEMSET",
	  { SPAN_ON_STREAM, [NSYS_BYTES] = "bytes", [NSYS_TO_MEMORY] = "memKind" },
	  nsys_take_fill },
	{ "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	  { SPAN_ON_STREAM, [NSYS_KIND] = "syncType" },
	  nsys_take_wait },
	{ "CUDA_GPU_MEMORY_USAGE_EVENTS",
	  { [NSYS_START] = "start",
	    [NSYS_PID] = "globalPid",
	    [NSYS_DEVICE] = "deviceId",
	    [NSYS_BYTES] = "bytes",
	    [NSYS_KIND] = "memoryOperationType" },
	  nsys_take_memory },
};
#define TABLE_COUNT (sizeof(nsys_tables) / sizeof(nsys_tables[0]))

/* ---- opening ------------------------------------------------------------------------------- */

/* Reading of the known tables and of the schema is all that is allowed: no functions, no views, no
   pragmas but one. */
static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	(void)context;
	(void)second;
	(void)database;
	if (trigger) /* a view or a trigger asks */
		return SQLITE_DENY;
	if (action == SQLITE_SELECT)
		return SQLITE_OK;
	if (action == SQLITE_PRAGMA)
		return !strcmp(first, "table_xinfo") ? SQLITE_OK : SQLITE_DENY;
	if (action != SQLITE_READ)
		return SQLITE_DENY;
	if (!strcmp(first, "sqlite_master"))
		return SQLITE_OK;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (!strcasecmp(first, nsys_tables[i].name))
			return SQLITE_OK;
	return SQLITE_DENY;
}

static void defend(sqlite3 *db)
{
	static const struct {
		int option, value;
	} options[] = {
		{ SQLITE_DBCONFIG_DEFENSIVE, 1 },      { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
		{ SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 }, { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
		{ SQLITE_DBCONFIG_DQS_DML, 0 },	       { SQLITE_DBCONFIG_DQS_DDL, 0 },
		{ SQLITE_DBCONFIG_ENABLE_FKEY, 0 },
	};
	static const struct {
		int which, most;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, 16 << 20 },
		{ SQLITE_LIMIT_SQL_LENGTH, 1 << 20 },
		{ SQLITE_LIMIT_COLUMN, TABLE_COLUMNS_MOST },
		{ SQLITE_LIMIT_EXPR_DEPTH, 100 },
		{ SQLITE_LIMIT_COMPOUND_SELECT, 10 },
		{ SQLITE_LIMIT_VDBE_OP, 25000 },
		{ SQLITE_LIMIT_FUNCTION_ARG, 8 },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50 },
		{ SQLITE_LIMIT_VARIABLE_NUMBER, 10 },
		{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		sqlite_api.db_config(db, options[i].option, options[i].value, NULL);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite_api.limit(db, limits[i].which, limits[i].most);
	sqlite_api.hard_heap_limit64(HEAP_BYTES);
	sqlite_api.set_authorizer(db, authorize, NULL);
}

/* Immutable: SQLite looks for no journal beside it, and locks nothing. */
static char *file_uri(const char *path)
{
	static const char hex[] = "0123456789abcdef";
	char *uri = malloc(strlen(path) * 3 + 64), *to = uri;

	if (!uri)
		return NULL;
	to += sprintf(to, "file:%s", *path == '/' ? "" : "./");
	for (; *path; path++)
		if (strchr("%?#", *path) || (unsigned char)*path < 0x20) {
			*to++ = '%';
			*to++ = hex[(unsigned char)*path >> 4];
			*to++ = hex[*path & 15];
		} else {
			*to++ = *path;
		}
	strcpy(to, "?mode=ro&immutable=1");
	return uri;
}

static int nsys_open_file(const char *path, sqlite3 **out, struct kymo_error *err)
{
	char *uri = file_uri(path);
	int code = uri ? sqlite_api.open_v2(uri, out,
					    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
						    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
					    NULL)
		       : SQLITE_NOMEM;

	free(uri);
	if (code)
		return error_set(err, EIO, "SQLite cannot open it: %s",
				 *out ? sqlite_api.errmsg(*out) : "no memory");
	defend(*out);
	return 0;
}

/* ---- schema -------------------------------------------------------------------------------- */

/* 1: it is a plain table, 0: it is not there. */
static int nsys_find_table(sqlite3 *db, const char *name, struct kymo_error *err)
{
	sqlite3_stmt *statement = NULL;
	int found = 0, code;

	code = sqlite_api.prepare_v2(db,
				     "SELECT type, rootpage FROM sqlite_master WHERE name = ?1 "
				     "COLLATE NOCASE AND type IN ('table', 'view')",
				     -1, &statement, NULL);
	if (!code)
		code = sqlite_api.bind_text(statement, 1, name, -1, SQLITE_STATIC);
	if (!code)
		code = sqlite_api.step(statement);
	if (code == SQLITE_ROW) {
		const char *type = (const char *)sqlite_api.column_text(statement, 0);

		found = type && !strcmp(type, "table") && sqlite_api.column_int64(statement, 1) > 0;
		if (!found)
			found = error_set(
				err, EPERM,
				"its %s is not a plain table; nsys writes no views and no "
				"virtual tables",
				name);
	} else if (code != SQLITE_DONE) {
		found = error_set(err, EPROTO, "SQLite cannot read it: %s", sqlite_api.errmsg(db));
	}
	sqlite_api.finalize(statement);
	return found;
}

/* Which of the columns the table has, as stored ones: versions differ. */
static int find_columns(sqlite3 *db, const struct nsys_table *table, uint32_t *out,
			struct kymo_error *err)
{
	char sql[160];
	sqlite3_stmt *statement = NULL;
	int code, rc = 0;

	*out = 0;
	snprintf(sql, sizeof(sql), "PRAGMA table_xinfo(\"%s\")", table->name);
	code = sqlite_api.prepare_v2(db, sql, -1, &statement, NULL);
	while (!code && !rc && (code = sqlite_api.step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite_api.column_text(statement, 1);

		for (int i = 0; name && i < NSYS_COLUMN_COUNT; i++) {
			if (!table->columns[i] || strcasecmp(name, table->columns[i]) != 0)
				continue;
			*out |= 1u << i;
			if (sqlite_api.column_int64(statement, 6)) /* hidden */
				rc = error_set(err, EPERM,
					       "column %s of its %s is computed; nsys writes none",
					       table->columns[i], table->name);
		}
		code = SQLITE_OK;
	}
	if (!rc && code != SQLITE_DONE)
		rc = error_set(err, EPROTO, "SQLite cannot read it: %s", sqlite_api.errmsg(db));
	sqlite_api.finalize(statement);
	return rc;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void select_sql(const struct nsys_table *table, uint32_t columns, char *out, size_t bytes)
{
	size_t at = (size_t)snprintf(out, bytes, "SELECT ");

	for (int i = 0; i < NSYS_COLUMN_COUNT; i++)
		at += (size_t)snprintf(out + at, bytes - at,
				       columns >> i & 1 ? "%s\"%s\"" : "%sNULL", i ? ", " : "",
				       table->columns[i] ? table->columns[i] : "");
	snprintf(out + at, bytes - at, " FROM \"%s\"", table->name);
}

/* A value of another type counts as none. */
static void nsys_take_row(sqlite3_stmt *statement, struct nsys_row *row)
{
	row->has = 0;
	for (int i = 0; i < NSYS_COLUMN_COUNT; i++) {
		const int type = sqlite_api.column_type(statement, i);

		if (i == NSYS_TEXT ? type != SQLITE_TEXT : type != SQLITE_INTEGER)
			continue;
		row->has |= 1u << i;
		row->values[i] = i == NSYS_TEXT ? 0 : sqlite_api.column_int64(statement, i);
		if (i != NSYS_TEXT)
			continue;
		row->text = (const char *)sqlite_api.column_text(statement, i);
		row->text_bytes = row->text ? (size_t)sqlite_api.column_bytes(statement, i) : 0;
		if (!row->text)
			row->has &= ~(1u << i);
	}
}

static int read_table(struct nsys_trace *trace, sqlite3 *db, const struct nsys_table *table,
		      uint32_t columns, struct kymo_error *damage)
{
	struct nsys_row row = { 0 };
	sqlite3_stmt *statement = NULL;
	char sql[1024];
	int code;

	select_sql(table, columns, sql, sizeof(sql));
	code = sqlite_api.prepare_v2(db, sql, -1, &statement, NULL);
	while (!code && (code = sqlite_api.step(statement)) == SQLITE_ROW && !trace->failed) {
		nsys_take_row(statement, &row);
		table->take(trace, &row);
		code = SQLITE_OK;
	}
	if (code && code != SQLITE_DONE && code != SQLITE_ROW)
		error_set(damage, EPROTO, "its table %s can be read only in part: %s", table->name,
			  sqlite_api.errmsg(db));
	sqlite_api.finalize(statement);
	return 0;
}

static int read_tables(struct nsys_trace *trace, sqlite3 *db, struct kymo_error *damage,
		       struct kymo_error *err)
{
	uint32_t columns[TABLE_COUNT] = { 0 };
	size_t found = 0;

	/* The whole schema is checked before a row is read. */
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		int rc = nsys_find_table(db, nsys_tables[i].name, err);

		if (rc > 0)
			rc = find_columns(db, &nsys_tables[i], &columns[i], err);
		if (rc)
			return rc;
		found += columns[i] != 0 && i > 0;
	}
	if (!found)
		return error_set(err, EINVAL,
				 "it has no tables of nsys; use nsys export --type sqlite");
	for (size_t i = 0; i < TABLE_COUNT && !trace->failed; i++)
		if (columns[i])
			read_table(trace, db, &nsys_tables[i], columns[i], damage);
	return 0;
}

int nsys_write(int fd, const char *path, struct kymo_error *damage, struct kymo_error *err)
{
	struct nsys_trace trace;
	sqlite3 *db = NULL;
	int rc = nsys_open_file(path, &db, err);

	nsys_trace_begin(&trace, fd);
	if (!rc)
		rc = read_tables(&trace, db, damage, err);
	if (!rc)
		nsys_trace_end(&trace);
	nsys_trace_fini(&trace);
	sqlite_api.close(db);
	return rc;
}
