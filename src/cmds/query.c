#include "cmds/cmds.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmds/guard/guard.h"
#include "cmds/http_client.h"
#include "cmds/prompt/pager.h"
#include "cmds/prompt/prompt.h"
#include "base/spelling.h"
#include "store/store.h"
#include "tables/self_limits.h"
#include "tables/tables.h"
#include "base/files/atomic_file.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/query/output.h"
#include "views/term/text.h"
#include "views/term/target.h"

#define SQL_BYTES_MOST (1u << 20)
#define TIMEOUT_MS 600000 /* without --timeout */
#define REPEAT_LEAST_S 0.1
#define REPEAT_ROOM 5 /* lines of the screen for the header of a table and what is below it */

struct request {
	const char *target; /* NULL: latest */
	const char *latest; /* path of the latest recording, if it is to be printed; else NULL */
	const char *sql;
	struct buf text; /* storage of .sql if it was read or wrapped */
	const struct output_format *format;
	const char *file; /* NULL: stdout */
	bool force;
	uint64_t limit;
	struct tables_options tables;
	struct text_style style; /* of standard output, as it was before a pager */
	bool prompt; /* there is no SQL: it is typed on the terminal */
	bool untimed; /* the time is not printed */
	bool paged; /* standard output leads to a pager */
	double repeat_s; /* 0: the query runs once */
};

/* ---- the command line ----------------------------------------------------------------------- */

static int query_choose_format(struct request *request, const char *name)
{
	const char *names[16] = { NULL }, *suggestion;
	size_t count = 0;

	request->format = output_find(name);
	if (request->format)
		return -1;
	for (const struct output_format *format = output_formats; format->name && count < 15;
	     format++)
		names[count++] = format->name;
	suggestion = spelling_word(name, names);
	if (suggestion)
		return cmds_wrong("query", "unknown format %s; did you mean %s?", name, suggestion);
	return cmds_wrong("query", "unknown format %s; use table, json, csv, arrow or parquet",
			  name);
}

/* -1, or the exit status. */
static int query_take_option(void *context, struct cmds_args *args,
			     const struct cmds_option *option)
{
	struct request *request = context;
	int status = -1;
	double number;

	if (!strcmp(option->name, "format"))
		return query_choose_format(request, args->value);
	if (!strcmp(option->name, "output"))
		request->file = args->value;
	else if (!strcmp(option->name, "force"))
		request->force = true;
	else if (!strcmp(option->name, "unsafe"))
		request->tables.unsafe = true;
	else if (!strcmp(option->name, "limit") &&
		 cmds_number(args, option, 1e15, &number, &status))
		request->limit = (uint64_t)number;
	else if (!strcmp(option->name, "repeat") &&
		 cmds_number(args, option, 86400, &number, &status))
		request->repeat_s = number < REPEAT_LEAST_S ? REPEAT_LEAST_S : number;
	else if (!strcmp(option->name, "timeout") &&
		 cmds_number(args, option, 4e6, &number, &status))
		request->tables.timeout_ms = number > 0 && number < 0.001
						     ? 1
						     : (uint32_t)(number * 1000);
	return status;
}

static int read_stdin(struct request *request)
{
	char bytes[4096];
	size_t count;

	while ((count = fread(bytes, 1, sizeof(bytes), stdin)) > 0 &&
	       request->text.used < SQL_BYTES_MOST)
		buf_add(&request->text, bytes, count);
	if (request->text.used >= SQL_BYTES_MOST || request->text.failed)
		return cmds_wrong("query", "the SQL on standard input is longer than 1 MB");
	if (request->text.used && memchr(request->text.data, '\0', request->text.used))
		return cmds_wrong("query", "the SQL on standard input contains a NUL byte");
	request->sql = buf_get(&request->text);
	return -1;
}

/* One word that is a recording: the SQL was forgotten. No statement is one word. */
static bool is_target_alone(const char *word)
{
	char path[KYMO_PATH_BYTES];
	int32_t pid;

	return !word[strcspn(word, " \t\r\n")] &&
	       (store_is_pid(word, &pid) || !store_resolve(word, path, sizeof(path), NULL));
}

/* Without SQL a person on a terminal is asked for it. */
static bool query_is_typed(const struct request *request, const struct cmds_args *args)
{
	if (args->word_count > 1 || request->file || request->repeat_s > 0 ||
	    request->format->binary || !request->style.terminal || !isatty(STDIN_FILENO))
		return false;
	return !args->word_count ||
	       (strcmp(args->words[0], "-") && is_target_alone(args->words[0]));
}

static int query_take_words(struct request *request, const struct cmds_args *args)
{
	int status = -1;

	request->prompt = query_is_typed(request, args);
	if (request->prompt) {
		request->target = args->word_count ? args->words[0] : NULL;
		return -1;
	}
	if (!args->word_count)
		return cmds_wrong("query",
				  "no SQL given; for example: kymo query 'FROM trace.regions'");
	if (args->word_count > 2)
		return cmds_wrong(
			"query",
			"expected TARGET and SQL, got %zu arguments; put the SQL in quotes",
			args->word_count);
	if (args->word_count == 1 && strcmp(args->words[0], "-") && is_target_alone(args->words[0]))
		return cmds_wrong("query",
				  "no SQL given for %s; for example: kymo query %s 'FROM "
				  "trace.places'",
				  args->words[0], args->words[0]);
	request->target = args->word_count == 2 ? args->words[0] : NULL;
	request->sql = args->words[args->word_count - 1];
	if (!strcmp(request->sql, "-"))
		status = read_stdin(request);
	if (status < 0 && !request->sql[strspn(request->sql, " \t\r\n;")])
		return cmds_wrong("query", "the SQL is empty");
	return status;
}

static int query_parse(struct request *request, int argc, char **argv)
{
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "query", argc, argv);
	args.takes_sql = true;
	status = cmds_take_all(&args, query_take_option, request);
	if (status < 0)
		status = query_take_words(request, &args);
	if (status < 0 && request->repeat_s > 0 && (request->file || request->format->binary))
		return cmds_wrong("query", "--repeat prints text; it works without -o, and with "
					   "table, json or csv");
	if (status < 0 && request->format->binary && !request->file && request->style.terminal)
		return cmds_wrong("query", "cannot write %s to a terminal; use -o FILE or a pipe",
				  request->format->name);
	return status;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Formats that DuckDB writes itself need the limit in the query. */
static void query_wrap_limit(struct request *request)
{
	struct buf wrapped = { 0 };
	size_t bytes;

	if (!request->format->binary || request->limit == UINT64_MAX || !request->sql)
		return;
	bytes = strlen(request->sql);
	while (bytes && strchr(" \t\r\n;", request->sql[bytes - 1]))
		bytes--;
	buf_text(&wrapped, "SELECT * FROM (");
	buf_add(&wrapped, request->sql, bytes);
	/* On a line of its own: the query may end with a comment. */
	buf_print(&wrapped, "\n) LIMIT %" PRIu64, request->limit);
	buf_fini(&request->text);
	request->text = wrapped;
	request->sql = buf_get(&request->text);
}

static double query_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int query_write_file(const struct request *request, struct tables_result *result,
			    const struct output_options *options, struct output_count *count,
			    struct kymo_error *err)
{
	struct atomic_file output;
	int rc = atomic_file_open(&output, request->file, request->force, err);

	if (!rc)
		rc = request->format->write(result, options, output.file, count, err);
	if (!rc)
		return atomic_file_commit(&output, err);
	atomic_file_discard(&output);
	return rc;
}

static int write_result(const struct request *request, struct tables_result *result,
			struct output_count *count, struct kymo_error *err)
{
	struct output_options options = { .style = request->style, .limit = request->limit };

	if (!request->file)
		return request->format->write(result, &options, stdout, count, err);
	options.style = (struct text_style){ .utf8 = options.style.utf8,
					     .columns = options.style.columns };
	if (request->format->write_file)
		return request->format->write_file(result, request->file, err);
	return query_write_file(request, result, &options, count, err);
}

/* Where what is not the result goes: not beside a pager on the same terminal. */
static FILE *remarks(const struct request *request)
{
	return request->paged && isatty(STDERR_FILENO) ? stdout : stderr;
}

/* Explains why a table is empty. */
static void hint(const struct request *request)
{
	static const struct {
		const char *table, *sentence;
	} hints[] = {
		{ "python.torch_trace", "no torch modules recorded; use kymo run --torch -- python "
					"…, KYMO_TORCH=on or kymo.enable_torch_profiling()" },
		{ "trace.zones",
		  "no zones recorded; add KYMO_SCOPE(\"name\") in C or kymo.region(\"name\") in "
		  "Python, and start the program with kymo run" },
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcasestr(request->sql, hints[i].table))
			fprintf(remarks(request), "%s\n", hints[i].sentence);
}

/* True if a person did not choose the recording. */
static bool is_latest(const struct request *request)
{
	if (cmds_names_latest(request->target))
		return true;
	return isatty(STDERR_FILENO) && (!request->target || !strcmp(request->target, "latest"));
}

static void print_latest(const struct request *request)
{
	if (request->latest)
		text_line(remarks(request), "recording %s", request->latest);
}

static void print_footer(const struct request *request, const struct output_count *count, double ns)
{
	struct text_style style = text_style_of(stderr);
	FILE *out = remarks(request);

	if (request->format->footer && !request->file)
		fprintf(out, "%s row%s%s%s\n", format_count(count->rows).text,
			count->rows == 1 ? "" : "s", request->untimed ? "" : ", ",
			request->untimed ? "" : format_duration(ns, style.utf8).text);
	print_latest(request);
	if (!request->format->footer || request->file)
		return;
	if (count->hidden_count)
		text_line(out, "%zu columns do not fit this terminal and are left out: %s",
			  count->hidden_count, count->hidden);
	if (!count->rows && request->style.terminal)
		hint(request);
}

static int query_ask(const struct request *request, struct tables *tables, struct kymo_error *err)
{
	struct output_count count = { 0 };
	struct tables_result *result = NULL;
	double began_ns = query_now_ns();
	int rc = tables_query(tables, request->sql, &result, err);

	if (!rc)
		rc = write_result(request, result, &count, err);
	tables_result_close(result);
	if (!rc)
		print_footer(request, &count, query_now_ns() - began_ns);
	return rc;
}

/* What all cores can use within the time limit: the kernel ends a query that outlives the parent's
   look at the clock. */
static uint32_t query_cpu_seconds(uint32_t timeout_ms)
{
	uint64_t seconds = ((uint64_t)timeout_ms / 1000 + 1) * (uint64_t)get_nprocs();

	return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

static int query_answer(struct request *request, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	struct tables *tables = NULL;
	int rc = 0;

	/* Checked before the work. */
	if (request->file)
		rc = atomic_file_check(request->file, request->force, err);
	if (!rc)
		rc = target_resolve(request->target, path, sizeof(path), err);
	if (is_latest(request))
		request->latest = path;
	if (!rc)
		rc = tables_open(path, &request->tables, &tables, err);
	if (!rc && request->tables.timeout_ms)
		rc = self_limits_set(0, query_cpu_seconds(request->tables.timeout_ms), err);
	if (!rc) {
		cmds_interruptible(tables);
		rc = query_ask(request, tables, err);
		cmds_interruptible(NULL);
	}
	tables_close(tables);
	request->latest = NULL; /* path ends here */
	return rc;
}

/* ---- through kymo serve --------------------------------------------------------------------- */

#define REMOTE_ROWS 1000000
#define REMOTE_SECONDS 300

static void add_field(struct buf *body, const char *key, const char *text)
{
	buf_print(body, "\"%s\":", key);
	json_text(body, text, strlen(text));
	buf_char(body, ',');
}

static int query_ask_remote(const struct request *request)
{
	struct text_style style = request->style;
	bool json = !strcmp(request->format->name, "json");
	/* The server's own limit is lower than the default here. */
	bool most = !request->tables.timeout_ms || request->tables.timeout_ms == TIMEOUT_MS;
	double seconds = most ? REMOTE_SECONDS : request->tables.timeout_ms / 1000.0;
	struct buf body = { 0 };
	int status;

	if (request->tables.unsafe)
		return cmds_wrong("query",
				  "--unsafe does not work with kymo serve, which is read-only");
	buf_char(&body, '{');
	if (*http_client_name(request->target))
		add_field(&body, "target", http_client_name(request->target));
	add_field(&body, "sql", request->sql);
	/* Without a server, json is an array of objects. */
	add_field(&body, "format", json ? "objects" : request->format->name);
	buf_print(&body, "\"columns\":%d,\"limit\":%" PRIu64 ",\"timeout_s\":%g}",
		  style.terminal && !request->file ? style.columns : 0,
		  request->limit < REMOTE_ROWS ? request->limit : REMOTE_ROWS, seconds);
	status = http_client_print("query", request->target, "/api/query", &body, request->file,
				   request->force);
	buf_fini(&body);
	return status;
}

static int query_local(void *context)
{
	struct request *request = context;
	struct kymo_error err = { 0 };
	int status;

	query_wrap_limit(request);
	if (query_answer(request, &err)) {
		if (request->paged && err.code == EPIPE)
			return CMDS_OK; /* the reader has seen enough */
		status = cmds_fail("query", &err);
	} else {
		status = request->paged && fflush(stdout) ? CMDS_OK : cmds_finish("query");
	}
	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}

/* ---- once, or again and again ---------------------------------------------------------------- */

static int query_run_once(struct request *request)
{
	int status;

	if (http_client_is(request->target))
		return query_ask_remote(request);
	if (!request->file && !request->format->binary && !request->repeat_s)
		request->paged = pager_begin();
	if (request->paged) {
		guard_at_end(pager_end);
		signal(SIGPIPE, SIG_IGN); /* a pager may end before the result */
	}
	status = cmds_guarded("query", query_local, request);
	pager_end();
	return status;
}

/* Between two results: a new screen, or an empty line in a pipe. */
static void repeat_separate(const struct request *request, bool first)
{
	if (request->style.terminal)
		fputs("\033[H\033[2J", stdout);
	else if (!first)
		putchar('\n');
	fflush(stdout);
}

/* Ctrl-C ends it, during a query by the status of that. */
static int query_repeat(struct request *request)
{
	int status = CMDS_OK, lines = text_lines_of(stdout) - REPEAT_ROOM;

	if (request->style.terminal && lines > 0 && request->limit > (uint64_t)lines)
		request->limit = (uint64_t)lines;
	for (bool first = true; status == CMDS_OK; first = false) {
		struct timespec nap = { .tv_sec = (time_t)request->repeat_s };

		nap.tv_nsec = (long)((request->repeat_s - (double)nap.tv_sec) * 1e9);
		if (!first)
			nanosleep(&nap, NULL);
		repeat_separate(request, first);
		status = query_run_once(request);
	}
	return status;
}

/* A statement of the prompt, in a child of its own, as if it had been a command. */
static void query_typed(void *context, const char *sql)
{
	struct request *request = context;

	request->sql = sql;
	query_run_once(request);
	fflush(stdout);
}

/* The recording that is the latest now stays it until the end. */
static int query_prompt(struct request *request)
{
	char path[KYMO_PATH_BYTES];
	struct prompt_host host = { .run = query_typed,
				    .context = request,
				    .untimed = &request->untimed };
	struct kymo_error err = { 0 };

	if (store_resolve(request->target, path, sizeof(path), &err))
		return cmds_fail("query", &err);
	text_line(stdout, "recording %s", path);
	request->target = path;
	host.target = path;
	/* Inherited by the child of each statement: it ends with a status, also before its query
	   has begun, and not by the signal, which would be meant for the prompt, too. */
	cmds_interruptible(NULL);
	return prompt_run(&host);
}

int cmd_query(int argc, char **argv)
{
	struct request request = { .limit = UINT64_MAX,
				   .format = output_find("table"),
				   .style = text_style_of(stdout),
				   .tables = { .timeout_ms = TIMEOUT_MS } };
	int status = query_parse(&request, argc, argv);

	if (status < 0 && request.prompt)
		status = query_prompt(&request);
	else if (status < 0)
		status = request.repeat_s > 0 ? query_repeat(&request) : query_run_once(&request);
	buf_fini(&request.text);
	return status;
}
