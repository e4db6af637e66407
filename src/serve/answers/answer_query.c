/* SQL of clients: one SELECT, limited in time, memory, rows and bytes. It runs in a child, and can
   be cancelled by id. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scratch/scratch.h"
#include "serve/children/children.h"
#include "serve/json_read.h"
#include "serve/serve_inside.h"

#define MEMORY_BYTES (UINT64_C(512) << 20)
#define SECONDS 10
#define SECONDS_MOST 300
#define ROWS 10000
#define ROWS_MOST 1000000
#define ANSWER_BYTES (UINT64_C(512) << 20) /* as a file; JSON ends at 64 MiB */

/* The formats: their output format, MIME type and extension. NULL: columns, rows and figures. */
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
	int columns; /* of a table; 0: no limit */
	uint64_t limit;
	double seconds;
	struct target *target;
};

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

static void name_file(const struct asked *asked, struct request *request)
{
	request->type = asked->about->type;
	if (asked->about->file)
		strcpy(request->file, asked->about->file);
}

/* A Parquet file is written to a directory first, which is removed here: the child may be
   killed. Returns a descriptor that locks it, or -1. */
static int make_scratch(const struct asked *asked, char *out, size_t out_bytes)
{
	const char *temporary = getenv("TMPDIR");

	if (strcmp(asked->about->name, "parquet") != 0)
		return -1;
	temporary = temporary && *temporary ? temporary : "/tmp";
	scratch_sweep_path(temporary, "kymo-answer-");
	snprintf(out, out_bytes, "%s/kymo-answer-XXXXXX", temporary);
	if (!mkdtemp(out))
		out[0] = '\0';
	return out[0] ? scratch_hold_folder(out) : -1;
}

static bool set_running(void *context, pid_t child)
{
	return running_queries_set(context, child);
}

static void answer_query_run(struct request *request, struct asked *asked)
{
	struct children_ask ask = {
		.question = { .kind = QUESTION_QUERY,
			      .timeout_ms = (uint32_t)(asked->seconds * 1000),
			      .memory_bytes = MEMORY_BYTES,
			      .answer_bytes = ANSWER_BYTES,
			      .background = true,
			      .columns = asked->columns,
			      .limit = asked->limit },
		.sql = asked->sql,
		.running = set_running,
		.context = request,
	};
	struct kymo_error err = { 0 };
	int rc, held;

	snprintf(ask.question.format, sizeof(ask.question.format), "%s",
		 asked->about->writer ? asked->about->writer : "");
	snprintf(ask.question.id, sizeof(ask.question.id), "%s", asked->id ? asked->id : "");
	held = make_scratch(asked, ask.question.scratch, sizeof(ask.question.scratch));
	rc = target_ask(asked->target, &ask, &err);
	if (ask.question.scratch[0])
		scratch_remove(AT_FDCWD, ask.question.scratch, 2);
	if (held >= 0)
		close(held);
	if (rc) {
		answer_failed(request, rc, &err);
		return;
	}
	request->fd = ask.fd;
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
