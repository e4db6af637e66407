#include "views/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmds/cmds.h"
#include "views/compare/compare_by.h"
#include "views/report/report_file.h"
#include "views/term/text.h"

struct request {
	const char *a[COMPARE_RUNS_MOST], *b[COMPARE_RUNS_MOST];
	struct compare_options options;
	const struct format *format; /* NULL: not given */
	const char *file;
	bool all, force;
	int by; /* enum compare_by_part; -1: not given */
};

static int compare_write_text(const struct request *request, const struct compare *compare,
			      FILE *out, struct kymo_error *err);
static int compare_write_json(const struct request *request, const struct compare *compare,
			      FILE *out, struct kymo_error *err);
static int write_html(const struct request *request, const struct compare *compare, FILE *out,
		      struct kymo_error *err);

static const struct format {
	const char *name; /* also the extension of its files */
	/* a file that begins with this is replaced without --force; NULL: for terminals
		   only */
	const char *mark;
	int (*write)(const struct request *request, const struct compare *compare, FILE *out,
		     struct kymo_error *err);
} formats[] = {
	{ "text", NULL, compare_write_text },
	{ "json", COMPARE_JSON_MARK, compare_write_json },
	{ "html", REPORT_HTML_MARK, write_html },
};

static const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* Replaces the -- between the runs of A and B, so that options may follow it. Compared by
   address. */
static char divider[] = "|";

static int compare_add_target(struct request *request, bool b, const char *target)
{
	size_t *count = b ? &request->options.b_count : &request->options.a_count;

	/* The limit of the statistics applies to both sides together. */
	if (*count == COMPARE_RUNS_MOST / 2)
		return cmds_wrong("compare", "at most %d runs of each side are supported",
				  COMPARE_RUNS_MOST / 2);
	(b ? request->b : request->a)[(*count)++] = target;
	return -1;
}

/* "5%", "5 %" or "0.05". */
static int take_fail_above(struct request *request, const char *value)
{
	char *end = NULL;
	double number = strtod(value, &end);

	end += strspn(end, " ");
	if (end == value || !isfinite(number) || number < 0 || (*end && strcmp(end, "%")))
		return cmds_wrong("compare", "--fail-above needs a share such as 5%%, not %s",
				  value);
	/* 5 would mean 500 %, and a check that never fails. */
	if (!*end && number >= 1)
		return cmds_wrong("compare", "--fail-above %s is ambiguous; write %s%% or %g",
				  value, value, number / 100);
	request->options.fail_above = *end ? number / 100 : number;
	return -1;
}

static int compare_take_option(void *context, struct cmds_args *args,
			       const struct cmds_option *option)
{
	struct request *request = context;
	if (!strcmp(option->name, "a") || !strcmp(option->name, "b"))
		return compare_add_target(request, option->name[0] == 'b', args->value);
	if (!strcmp(option->name, "fail-above"))
		return take_fail_above(request, args->value);
	if (!strcmp(option->name, "by")) {
		request->by = compare_by_find(args->value);
		if (request->by < 0)
			return cmds_wrong("compare", "--by needs rank or attempt, not %s",
					  args->value);
	}
	if (!strcmp(option->name, "format")) {
		request->format = format_find(args->value);
		if (!request->format)
			return cmds_wrong("compare", "unknown format %s; use text, html or json",
					  args->value);
	} else if (!strcmp(option->name, "ranks")) {
		if (!rank_set_read(&request->options.ranks, args->value))
			return cmds_wrong("compare",
					  "--ranks needs a list such as 0,3,8-15, not %s",
					  args->value);
	} else if (!strcmp(option->name, "output")) {
		request->file = args->value;
	} else if (!strcmp(option->name, "force")) {
		request->force = true;
	} else if (!strcmp(option->name, "all")) {
		request->all = true;
	} else if (!strcmp(option->name, "total")) {
		request->options.total = true;
	} else if (!strcmp(option->name, "anyway")) {
		request->options.anyway = true;
	}
	return -1;
}

/* A B, or A1 A2 -- B1 B2. */
static int compare_take_words(struct request *request, const struct cmds_args *args)
{
	bool divided = false, b = false;
	int status = -1;

	for (size_t i = 0; i < args->word_count; i++)
		divided |= args->words[i] == divider;
	if (request->by >= 0 && args->word_count == 1 && !divided)
		return compare_add_target(request, false, args->words[0]);
	if (!divided && args->word_count && args->word_count != 2)
		return cmds_wrong("compare",
				  "expected two recordings A and B, or several of each separated "
				  "by --, got %zu",
				  args->word_count);
	for (size_t i = 0; i < args->word_count && status < 0; i++) {
		if (args->words[i] == divider)
			b = true;
		else
			status = compare_add_target(request, divided ? b : i == 1, args->words[i]);
	}
	if (status < 0 && request->by >= 0 && request->options.a_count)
		return status;
	if (status < 0 && (!request->options.a_count || !request->options.b_count))
		return cmds_wrong(
			"compare",
			"no recordings given; usage: kymo compare A B (kymo ls lists recordings)");
	return status;
}

/* Infers the format from the name of the file if -f is not given. */
static int settle_format(struct request *request)
{
	const char *dot = request->file ? strrchr(request->file, '.') : NULL;

	if (!request->format)
		request->format = dot ? format_find(dot + 1) : request->file ? NULL : &formats[0];
	if (!request->format || (request->file && !request->format->mark))
		return cmds_wrong("compare", "cannot infer the format of %s from its name; use -f",
				  request->file);
	if (!request->file && request->format->write == write_html && isatty(STDOUT_FILENO))
		return cmds_wrong("compare",
				  "cannot write html to a terminal; use -o compare.html");
	return -1;
}

/* Parts of one job, or of two. */
static int check_by(const struct request *request)
{
	if (request->by < 0)
		return -1;
	if (request->options.a_count > 1 || request->options.b_count > 1)
		return cmds_wrong("compare", "--by compares one job, or two");
	if (request->format->write == write_html)
		return cmds_wrong("compare", "--by works with text and json, not html");
	if (request->options.fail_above >= 0 || request->options.total)
		return cmds_wrong("compare", "--by works without --fail-above and --total");
	return -1;
}

static int compare_parse(struct request *request, int argc, char **argv)
{
	struct cmds_args args;
	int status;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			argv[i] = divider;
	cmds_args_init(&args, "compare", argc, argv);
	status = cmds_take_all(&args, compare_take_option, request);
	if (status < 0)
		status = compare_take_words(request, &args);
	if (status < 0)
		status = settle_format(request);
	return status < 0 ? check_by(request) : status;
}

/* Runs that are not comparable have no table; the caller reports the reason. */
static int compare_write_text(const struct request *request, const struct compare *compare,
			      FILE *out, struct kymo_error *err)
{
	struct text_style style = text_style_of(out);

	(void)err;
	if (compare->sentence[0])
		compare_print(compare, request->all, &style, out);
	return 0;
}

static int compare_write_json(const struct request *request, const struct compare *compare,
			      FILE *out, struct kymo_error *err)
{
	struct buf json = { 0 };
	int rc;

	(void)request;
	compare_json(compare, &json);
	rc = json.failed ? error_set(err, ENOMEM, "out of memory for the JSON") : 0;
	fwrite(buf_get(&json), 1, json.used, out);
	buf_fini(&json);
	return rc;
}

static int write_html(const struct request *request, const struct compare *compare, FILE *out,
		      struct kymo_error *err)
{
	(void)request;
	return compare_html(compare, out, err);
}

static int compare_write_file(const struct request *request, const struct compare *compare,
			      struct kymo_error *err)
{
	struct atomic_file output;
	int rc = report_file_open(&output, request->file, request->format->mark, request->force,
				  err);

	if (rc)
		return rc;
	rc = request->format->write(request, compare, output.file, err);
	if (!rc)
		return atomic_file_commit(&output, err);
	atomic_file_discard(&output);
	return rc;
}

static int cmds_compare_print(const struct request *request, const struct compare *compare)
{
	struct kymo_error err = { 0 };
	int status;

	if (request->file ? compare_write_file(request, compare, &err)
			  : request->format->write(request, compare, stdout, &err))
		return cmds_fail("compare", &err);
	status = cmds_finish("compare");
	if (request->file && status == CMDS_OK)
		cmds_say_file(request->file);
	if (compare->sentence[0])
		return compare->failed ? CMDS_FAILED : status;
	error_set(&err, EINVAL, "cannot compare: %s; use --anyway to override", compare->why);
	return cmds_fail("compare", &err);
}

/* ---- parts of jobs --------------------------------------------------------------------------- */

static int write_parts(const struct request *request, const struct compare_by *by, FILE *out,
		       struct kymo_error *err)
{
	struct text_style style = text_style_of(out);
	struct buf json = { 0 };
	int rc = 0;

	if (request->format->write == compare_write_text) {
		compare_by_print(by, request->all, &style, out);
		return 0;
	}
	compare_by_json(by, &json);
	rc = json.failed ? error_set(err, ENOMEM, "out of memory for the JSON") : 0;
	fwrite(buf_get(&json), 1, json.used, out);
	buf_fini(&json);
	return rc;
}

static int write_parts_file(const struct request *request, const struct compare_by *by,
			    struct kymo_error *err)
{
	struct atomic_file output;
	int rc = report_file_open(&output, request->file, request->format->mark, request->force,
				  err);

	if (rc)
		return rc;
	rc = write_parts(request, by, output.file, err);
	if (!rc)
		return atomic_file_commit(&output, err);
	atomic_file_discard(&output);
	return rc;
}

static int compare_local_parts(void *context)
{
	const struct request *request = context;
	const char *targets[2] = { request->a[0], request->b[0] };
	struct compare_by by;
	struct kymo_error err = { 0 };
	int status = CMDS_OK;
	int rc = compare_by_make((enum compare_by_part)request->by, targets,
				 request->options.b_count ? 2 : 1, &by, cmds_interruptible, &err);

	if (!rc)
		rc = request->file ? write_parts_file(request, &by, &err)
				   : write_parts(request, &by, stdout, &err);
	status = rc ? cmds_fail("compare", &err) : cmds_finish("compare");
	if (!rc && request->file && status == CMDS_OK)
		cmds_say_file(request->file);
	compare_by_fini(&by);
	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}

static int compare_local(void *context)
{
	const struct request *request = context;
	struct compare compare = { .runs = NULL };
	struct kymo_error err = { 0 };
	int status = compare_make(&request->options, &compare, cmds_interruptible, &err)
			     ? cmds_fail("compare", &err)
			     : cmds_compare_print(request, &compare);

	compare_fini(&compare);
	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}

int cmd_compare(int argc, char **argv)
{
	struct request request = { .options = { .fail_above = -1 }, .by = -1 };
	int status = compare_parse(&request, argc, argv);

	if (status >= 0)
		return status;
	request.options.a = request.a;
	request.options.b = request.b;
	return cmds_guarded("compare", request.by >= 0 ? compare_local_parts : compare_local,
			    &request);
}
