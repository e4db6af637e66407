/* SQL of clients: one SELECT, limited in time, memory, rows and bytes; it can be cancelled by
   id. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve/serve_inside.h"
#include "serve/json_read.h"
#include "views/query/json.h"
#include "views/query/output.h"

#define MEMORY_BYTES (UINT64_C(512) << 20)
#define SECONDS 10
#define SECONDS_MOST 300
#define ROWS 10000
#define ROWS_MOST 1000000
#define ANSWER_BYTES (UINT64_C(64) << 20)
#define SESSIONS 4 /* sessions of ended recordings, kept open */

/* The formats: their output format, MIME type and extension. NULL: columns, rows and figures,
   written here. */
static const struct query_format {
	const char *name, *writer, *type, *file;
} query_formats[] = {
	{ "json", NULL, "application/json", NULL },
	{ "arrow", "arrow", "application/vnd.apache.arrow.stream", "query.arrow" },
	{ "csv", "csv", "text/csv; charset=utf-8", "query.csv" },
	{ "parquet", "parquet", "application/vnd.apache.parquet", "query.parquet" },
	{ "objects", "json", "application/json", NULL },
	{ "table", "table", "text/plain; charset=utf-8", NULL },
};

struct asked {
	struct json_read json;
	const char *sql, *id;
	const struct query_format *about;
	const struct output_format *format; /* NULL: written here */
	int columns; /* of a table; 0: no limit */
	uint64_t limit;
	double seconds;
	struct target *target;
};

/* ---- sessions ------------------------------------------------------------------------------- */

/* Each query has its own session, since cancelling interrupts all queries of a session. */
static struct session {
	struct target *target;
	struct tables *tables;
	uint64_t used_at_ns;
} sessions[SESSIONS];
static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;

static struct tables *take_session(struct target *target)
{
	struct tables *tables = NULL;

	pthread_mutex_lock(&sessions_lock);
	for (size_t i = 0; i < SESSIONS && !tables; i++)
		if (sessions[i].tables && sessions[i].target == target) {
			tables = sessions[i].tables;
			sessions[i].tables = NULL;
		}
	pthread_mutex_unlock(&sessions_lock);
	return tables;
}

static void give_session(struct target *target, struct tables *tables)
{
	struct session *oldest = &sessions[0];
	struct tables *gone;

	pthread_mutex_lock(&sessions_lock);
	for (size_t i = 0; i < SESSIONS; i++)
		if (!sessions[i].tables ||
		    (oldest->tables && sessions[i].used_at_ns < oldest->used_at_ns))
			oldest = &sessions[i];
	gone = oldest->tables;
	*oldest = (struct session){ .target = target,
				    .tables = tables,
				    .used_at_ns = target_clock_ns() };
	pthread_mutex_unlock(&sessions_lock);
	tables_close(gone);
}

static int open_session(const struct asked *asked, struct tables **out, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = MEMORY_BYTES,
					  .timeout_ms = (uint32_t)(asked->seconds * 1000) };
	bool still = asked->target->entry.state != STORE_LIVE && asked->seconds == SECONDS;

	*out = still ? take_session(asked->target) : NULL;
	return *out ? 0 : target_open_tables(asked->target, &options, out, err);
}

static void close_session(const struct asked *asked, struct tables *tables, bool good)
{
	if (tables && good && asked->target->entry.state != STORE_LIVE && asked->seconds == SECONDS)
		give_session(asked->target, tables);
	else
		tables_close(tables);
}

/* ---- parameters ----------------------------------------------------------------------------- */

static bool read_limits(struct request *request, struct asked *asked)
{
	const char *limit = json_read_get(&asked->json, "limit"),
		   *seconds = json_read_get(&asked->json, "timeout_s");
	char *end = NULL;
	double number = limit ? strtod(limit, &end) : ROWS;

	if ((limit && (*end || end == limit)) || !(number >= 0) || number > ROWS_MOST) {
		answer_error(request, 400, NULL, "limit must be a number of rows from 0 to %d",
			     ROWS_MOST);
		return false;
	}
	asked->limit = (uint64_t)number;
	asked->seconds = seconds ? strtod(seconds, &end) : SECONDS;
	if ((seconds && (*end || end == seconds)) || !(asked->seconds >= 0.001) ||
	    asked->seconds > SECONDS_MOST) {
		answer_error(request, 400, NULL,
			     "timeout_s must be a number of seconds from 0.001 to %d",
			     SECONDS_MOST);
		return false;
	}
	return true;
}

static void find_format(struct asked *asked, const char *name)
{
	const char *columns = json_read_get(&asked->json, "columns");

	asked->columns = columns ? atoi(columns) : 0;
	for (size_t i = 0; i < sizeof(query_formats) / sizeof(query_formats[0]); i++)
		if (!strcmp(query_formats[i].name, name))
			asked->about = &query_formats[i];
	if (asked->about && asked->about->writer)
		asked->format = output_find(asked->about->writer);
}

static bool read_query(struct request *request, struct asked *asked)
{
	const char *format, *target;

	if (json_read_object(buf_get(&request->body), request->body.used, &asked->json)) {
		answer_error(request, 400, "{\"target\":\"latest\",\"sql\":\"FROM trace.regions\"}",
			     "the body is not a JSON object of texts and numbers");
		return false;
	}
	asked->sql = json_read_get(&asked->json, "sql");
	asked->id = json_read_get(&asked->json, "id");
	format = json_read_get(&asked->json, "format");
	find_format(asked, format ? format : "json");
	if (!asked->sql || !asked->sql[strspn(asked->sql, " \t\r\n;")]) {
		answer_error(request, 400, "\"sql\":\"FROM trace.regions\"", "the SQL is empty");
		return false;
	}
	if (!asked->about) {
		answer_error(request, 400, "json, arrow, csv, parquet, objects or table",
			     "unknown format %.40s", format);
		return false;
	}
	if ((asked->id && strlen(asked->id) >= sizeof(((struct running_query *)0)->id)) ||
	    !read_limits(request, asked))
		return false;
	target = json_read_get(&asked->json, "target");
	if (target && request->parameter_count < SERVE_PARAMETERS) {
		request->keys[request->parameter_count] = strdup("target");
		request->values[request->parameter_count] = strdup(target);
		if (request->keys[request->parameter_count] &&
		    request->values[request->parameter_count])
			request->parameter_count++;
	}
	asked->target = request_target(request);
	return asked->target;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void answer_query_add_columns(struct buf *out, struct tables_result *result)
{
	buf_text(out, "{\"columns\":[");
	for (size_t i = 0; i < tables_column_count(result); i++) {
		buf_text(out, i ? ",{\"name\":" : "{\"name\":");
		json_text(out, tables_column_name(result, i),
			  strlen(tables_column_name(result, i)));
		buf_text(out, ",\"type\":");
		json_text(out, tables_column_type(result, i),
			  strlen(tables_column_type(result, i)));
		buf_char(out, '}');
	}
	buf_text(out, "],\"rows\":[");
}

static void answer_query_add_row(struct buf *out, struct tables_result *result, size_t row)
{
	struct tables_cell cell;

	buf_char(out, '[');
	for (size_t i = 0; i < tables_column_count(result); i++) {
		tables_cell(result, i, row, &cell);
		buf_text(out, i ? "," : "");
		output_json_cell(out, &cell, output_is_number(tables_column_type(result, i)));
	}
	buf_char(out, ']');
}

static int answer_query_write_json(const struct asked *asked, struct tables_result *result,
				   struct buf *out, uint64_t began_ns, struct kymo_error *err)
{
	uint64_t count = 0;
	bool more = false;
	int64_t rows = 0;

	answer_query_add_columns(out, result);
	while (!more && (rows = tables_next(result, err)) > 0)
		for (size_t row = 0; row < (size_t)rows && !more; row++) {
			more = count == asked->limit || out->used > ANSWER_BYTES;
			if (more)
				break;
			buf_text(out, count++ ? ",\n" : "\n");
			answer_query_add_row(out, result, row);
		}
	if (rows < 0)
		return (int)rows;
	buf_print(out,
		  "],\"truncated\":%s,\"row_count\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64 ",\"id\":",
		  more ? "true" : "false", count, target_clock_ns() - began_ns);
	if (asked->id)
		json_text(out, asked->id, strlen(asked->id));
	else
		buf_text(out, "null");
	buf_text(out, "}\n");
	return 0;
}

/* The other formats are written to an unnamed temporary file. */
static int answer_query_write_file(const struct asked *asked, struct tables_result *result,
				   struct request *request, struct kymo_error *err)
{
	struct output_options options = {
		.limit = asked->limit,
		.style = { .utf8 = true,
			   .terminal = asked->columns > 0,
			   .columns = asked->columns > 0 ? asked->columns : 80 },
	};
	struct output_count count = { 0 };
	int fd = memfd_create("kymo-answer", MFD_CLOEXEC), mine = fd < 0 ? -1 : dup(fd);
	FILE *out = mine < 0 ? NULL : fdopen(mine, "w");
	int rc = out ? asked->format->write(result, &options, out, &count, err)
		     : error_set(err, ENOMEM, "out of memory for the answer");

	if (out && fclose(out) && !rc)
		rc = error_set(err, ENOMEM, "out of memory for the answer");
	else if (!out && mine >= 0)
		close(mine);
	request->fd = rc ? -1 : fd;
	if (rc && fd >= 0)
		close(fd);
	return rc;
}

static void answer_query_wrap_limit(const struct asked *asked, struct buf *out)
{
	bool binary = asked->format && asked->format->binary;
	size_t bytes = strlen(asked->sql);

	while (bytes && strchr(" \t\r\n;", asked->sql[bytes - 1]))
		bytes--;
	buf_text(out, binary ? "SELECT * FROM (" : "");
	buf_add(out, asked->sql, bytes);
	/* On a line of its own: the query may end with a comment. */
	if (binary)
		buf_print(out, "\n) LIMIT %" PRIu64, asked->limit);
}

static int answer_query_ask(const struct asked *asked, struct tables *tables,
			    struct request *request, struct kymo_error *err)
{
	uint64_t began_ns = target_clock_ns();
	struct tables_result *result = NULL;
	struct buf sql = { 0 };
	int rc;

	answer_query_wrap_limit(asked, &sql);
	rc = tables_query(tables, buf_get(&sql), &result, err);
	if (!rc)
		rc = asked->format ? answer_query_write_file(asked, result, request, err)
				   : answer_query_write_json(asked, result, &request->answer,
							     began_ns, err);
	tables_result_close(result);
	buf_fini(&sql);
	return rc;
}

static void name_file(const struct asked *asked, struct request *request)
{
	request->type = asked->about->type;
	if (asked->about->file)
		strcpy(request->file, asked->about->file);
}

static int open_and_ask(struct request *request, const struct asked *asked, struct tables **out,
			struct kymo_error *err)
{
	int rc = open_session(asked, out, err);

	/* Opening is not interrupted. */
	if (!running_queries_set(request, *out))
		rc = error_set(err, ECANCELED, "the query was cancelled");
	return rc ? rc : answer_query_ask(asked, *out, request, err);
}

static void answer_query_run(struct request *request, struct asked *asked)
{
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	int rc = open_and_ask(request, asked, &tables, &err);
	bool good = running_queries_set(request, NULL);

	/* An interrupted session is not reused: another interrupt may be pending. */
	close_session(asked, tables, good);
	if (rc && !good)
		rc = error_set(&err, ECANCELED, "the query was cancelled");
	if (rc)
		answer_failed(request, rc, &err);
	else
		name_file(asked, request);
}

void answer_query(struct request *request)
{
	struct asked asked = { .sql = NULL };

	if (read_query(request, &asked))
		answer_query_run(request, &asked);
	else if (request->status == 200)
		answer_error(request, 400, NULL, "an id has at most 63 characters");
	running_queries_leave(request);
	json_read_fini(&asked.json);
}

void answer_cancel(struct request *request)
{
	struct json_read json;
	const char *id = NULL;

	if (!json_read_object(buf_get(&request->body), request->body.used, &json))
		id = json_read_get(&json, "id");
	if (!id || !*id)
		answer_error(request, 400, "{\"id\":\"…\"}", "the id of the query is missing");
	else
		buf_print(&request->answer, "{\"cancelled\":%d}\n",
			  running_queries_cancel(request->serve, id));
	json_read_fini(&json);
}
