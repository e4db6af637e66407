#include "import/import.h"
#include "views/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "cmds/browser.h"
#include "cmds/cmds.h"
#include "cmds/http_client.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/term/progress.h"
#include "views/term/target.h"
#include "views/report/report_file.h"
#include "views/term/text.h"

struct request {
	const char *target, *file;
	const char *const *traces; /* several, which are one target; NULL: none */
	size_t trace_count;
	const struct report_format *format; /* NULL: text */
	bool force, subtract_overhead, open;
	struct report_options options;
	char page[KYMO_PATH_BYTES]; /* of --open without FILE */
};

static struct progress progress;

static void report_show_progress(uint64_t done, uint64_t all)
{
	progress_at(&progress, done, all);
}

static int report_write(struct tables *tables, struct request *request, FILE *out,
			struct kymo_error *err)
{
	struct text_style style = text_style_of(stdout);

	if (request->format)
		return request->format->write(tables, &request->options, out, err);
	return report_print(tables, request->subtract_overhead, &style, out, err);
}

static void print_gathered(const struct request *request, const char *text, size_t bytes)
{
	if (request->format && isatty(STDOUT_FILENO))
		text_lines(stdout, text, bytes);
	else
		fwrite(text, 1, bytes, stdout); /* not foreign: escaped by report_print() */
}

/* Written at the end, so that it does not mix with the progress line on a terminal. */
static int gather_report(struct tables *tables, struct request *request, struct kymo_error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int rc;

	if (!out)
		return error_set(err, ENOMEM, "out of memory for the report");
	rc = report_write(tables, request, out, err);
	progress_end(&progress);
	if (!fclose(out) && text)
		print_gathered(request, text, bytes);
	free(text);
	return rc;
}

static int watched_report(struct tables *tables, struct request *request, struct kymo_error *err)
{
	int rc;

	progress_begin(&progress, "reading", "rows");
	tables_watch(tables, report_show_progress);
	rc = request->file ? report_file_write(tables, request->format, request->file,
					       request->force, &request->options, err)
			   : gather_report(tables, request, err);
	tables_watch(tables, NULL);
	progress_end(&progress);
	return rc;
}

/* Reports are sent to others, who may not be meant to have the source. */
static void report_say_source(const struct request *request)
{
	size_t texts = request->options.texts;

	if (texts && request->file)
		fprintf(stderr,
			"kymo: the report holds the text of %zu source %s; "
			"--no-source leaves it out\n",
			texts, texts == 1 ? "file" : "files");
}

static int make_report(struct request *request, struct kymo_error *err)
{
	struct tables *tables = NULL;
	char imported[KYMO_PATH_BYTES];
	int rc = 0;

	if (request->traces) {
		rc = target_resolve_files(request->traces, request->trace_count, imported,
					  sizeof(imported), err);
		request->target = imported;
	}
	if (!rc)
		rc = cmds_open(request->target, &tables, err);
	if (!rc)
		rc = watched_report(tables, request, err);
	if (!rc)
		report_say_source(request);
	cmds_close(tables);
	return rc;
}

/* A report of kymo, which is JSON as well and may be written again. */
static bool is_own_report(const char *path)
{
	char begin[sizeof(REPORT_JSON_MARK)] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	if (!fgets(begin, sizeof(begin), file))
		begin[0] = '\0';
	fclose(file);
	return !strcmp(begin, REPORT_JSON_MARK);
}

/* kymo report rank*.json.gz: traces that exist are no file to write, unless that is forced. */
static bool take_traces(const struct cmds_args *args, struct request *request)
{
	for (size_t i = 0; i < args->word_count; i++)
		if (!import_is_trace(args->words[i]) || is_own_report(args->words[i]))
			return false;
	if (args->word_count < 2 || request->force)
		return false;
	request->traces = (const char *const *)args->words;
	request->trace_count = args->word_count;
	return true;
}

/* Words: [TARGET] [FILE]. A single word with the extension of a report is the file, unless it is a
   trace: kymo report trace.json. */
static int report_take_words(struct cmds_args *args, struct request *request)
{
	size_t count = args->word_count;

	if (take_traces(args, request))
		return CMDS_OK;
	if (count && !request->file && report_format_of(args->words[count - 1]) &&
	    !(count == 1 && import_is_trace(args->words[0])))
		request->file = args->words[--count];
	if (count > 1 && !request->file && request->format)
		request->file = args->words[--count];
	if (count > 1)
		return cmds_wrong("report", "expected one TARGET, got %zu", count);
	request->target = count ? args->words[0] : NULL;
	return CMDS_OK;
}

/* A page that is only looked at is kept in one file of the user's state directory. */
static int choose_page(struct request *request)
{
	struct kymo_error err = { 0 };
	char state[KYMO_PATH_BYTES - 16];

	if (!request->open || request->file)
		return CMDS_OK;
	if (paths_state(state, sizeof(state), &err))
		return cmds_fail("report", &err);
	snprintf(request->page, sizeof(request->page), "%s/report.html", state);
	request->file = request->page;
	request->force = true;
	return CMDS_OK;
}

static int report_check(struct request *request)
{
	if (request->open && request->format && strcmp(request->format->name, "html"))
		return cmds_wrong("report", "--open works with html, not %s",
				  request->format->name);
	if (choose_page(request))
		return CMDS_FAILED;
	if (!request->format && request->file)
		request->format = report_format_of(request->file);
	if (!request->format && request->file)
		return cmds_wrong("report", "cannot infer the format of %s from its name; use -f",
				  request->file);
	if (request->options.no_source &&
	    (!request->format || strcmp(request->format->name, "html")))
		return cmds_wrong("report", "--no-source works with html only");
	if (request->format && request->subtract_overhead)
		return cmds_wrong("report", "--subtract-overhead works with text only");
	if (request->format && !strcmp(request->format->name, "html") && !request->file &&
	    isatty(STDOUT_FILENO))
		return cmds_wrong("report", "cannot write html to a terminal; use -o report.html");
	return CMDS_OK;
}

static int read_option(const struct cmds_option *option, const char *value, struct request *request)
{
	if (!strcmp(option->name, "subtract-overhead"))
		request->subtract_overhead = true;
	else if (!strcmp(option->name, "force"))
		request->force = true;
	else if (!strcmp(option->name, "open"))
		request->open = true;
	else if (!strcmp(option->name, "no-source"))
		request->options.no_source = true;
	else if (!strcmp(option->name, "output"))
		request->file = value;
	else if (strcmp(value, "text") && !(request->format = report_format_find(value)))
		return cmds_wrong("report", "unknown format %s; use text, html, json or csv",
				  value);
	return CMDS_OK;
}

/* Made by a kymo serve. */
static int remote_report(const struct request *request)
{
	struct buf path = { 0 };
	int status;

	buf_text(&path, "/api/report");
	http_client_add(&path, "format", request->format ? request->format->name : "text");
	if (request->options.no_source)
		http_client_add(&path, "source", "0");
	status = http_client_print("report", request->target, buf_get(&path), NULL, request->file,
				   request->force);
	buf_fini(&path);
	return status;
}

static int local_report(void *context)
{
	struct request *request = context;
	struct kymo_error err = { 0 };
	int status = make_report(request, &err) ? cmds_fail("report", &err) : cmds_finish("report");

	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}

int cmd_report(int argc, char **argv)
{
	struct request request = { 0 };
	const struct cmds_option *option;
	struct cmds_args args;
	int status, wrong = CMDS_OK;

	cmds_args_init(&args, "report", argc, argv);
	while (!wrong && (option = cmds_next(&args, &status)))
		wrong = read_option(option, args.value, &request);
	if (wrong || status >= 0)
		return wrong ? wrong : status;
	wrong = report_take_words(&args, &request);
	wrong = wrong ? wrong : report_check(&request);
	if (wrong)
		return wrong;
	status = http_client_is(request.target) ? remote_report(&request)
						: cmds_guarded("report", local_report, &request);
	if (request.file && status == CMDS_OK)
		cmds_say_file(request.file);
	if (request.open && status == CMDS_OK && !browser_open(request.file))
		fputs("kymo report: no desktop here (DISPLAY and WAYLAND_DISPLAY are not set); "
		      "open the file in a browser\n",
		      stderr);
	return status;
}
