/* The tool source: the files that a recording names, or lines of one with what was measured there.
   A file that the recording does not name is never opened. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmds/cmds.h"
#include "cmds/mcp/mcp_tools.h"
#include "tables/tables.h"
#include "views/source/source_files.h"
#include "views/source/source_text.h"
#include "views/term/format.h"
#include "views/term/text.h"

#define SECONDS 60
#define FILES_SHOWN 40
#define LINES_USUAL 60
#define LINES_MOST 400

/* ---- the list -------------------------------------------------------------------------------- */

static void add_figure(struct buf *out, const char *what, struct format_text figure)
{
	buf_print(out, "%s%s %s", out->used ? ", " : "", figure.text, what);
}

/* What was measured of a file or of a line; "" if nothing was. */
static void mcp_source_figures(struct buf *out, const double *values)
{
	static const struct {
		enum source_value value;
		const char *what;
	} times[] = { { SOURCE_TOTAL_NS, "sampled" },
		      { SOURCE_LINE_NS, "in lines" },
		      { SOURCE_CALLS_NS, "in calls" } };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (values[times[i].value] > 0)
			add_figure(out, times[i].what,
				   format_duration(values[times[i].value], true));
	if (values[SOURCE_CALLS] > 0)
		add_figure(out, "calls", format_count((uint64_t)values[SOURCE_CALLS]));
	if (values[SOURCE_ALLOC_BYTES] > 0)
		add_figure(out, "allocated", format_bytes(values[SOURCE_ALLOC_BYTES]));
}

static void mcp_source_list(const struct source_files *files)
{
	size_t shown = files->count < FILES_SHOWN ? files->count : FILES_SHOWN;
	struct buf figures = { 0 };

	for (size_t i = 0; i < shown; i++) {
		const struct source_file *file = &files->list[i];

		buf_reset(&figures);
		mcp_source_figures(&figures, file->values);
		text_line(stdout, "%s: %s%s", file->own ? "own" : "library", file->name, "");
		text_line(stdout, "  %s", figures.used ? buf_get(&figures) : "no time measured");
	}
	if (!files->count)
		puts("no source files: samples, Python calls or memory were not recorded");
	if (shown < files->count)
		fprintf(stderr, "%zu files with less time are left out\n", files->count - shown);
	buf_fini(&figures);
}

/* ---- lines of a file ------------------------------------------------------------------------- */

static double cost(const double *values)
{
	return values[SOURCE_TOTAL_NS] + values[SOURCE_LINE_NS] + values[SOURCE_CALLS_NS];
}

/* The line with the most time; that with the most memory if no time was measured. */
static uint32_t costliest(const struct source_file *file)
{
	const struct source_line *most = NULL;

	for (size_t i = 0; i < file->line_count; i++) {
		const struct source_line *line = &file->lines[i];

		if (line->line &&
		    (!most || cost(line->values) > cost(most->values) ||
		     (cost(line->values) == cost(most->values) &&
		      line->values[SOURCE_ALLOC_BYTES] > most->values[SOURCE_ALLOC_BYTES])))
			most = line;
	}
	return most ? most->line : 1;
}

static const struct source_line *line_of(const struct source_file *file, uint64_t number)
{
	for (size_t i = 0; i < file->line_count; i++)
		if (file->lines[i].line == number)
			return &file->lines[i];
	return NULL;
}

static void mcp_source_line(const struct source_file *file, uint64_t number, const char *text,
			    size_t bytes)
{
	const struct source_line *line = line_of(file, number);
	struct buf figures = { 0 }, shown = { 0 };

	if (line)
		mcp_source_figures(&figures, line->values);
	for (size_t i = 0; i < bytes; i++)
		if (text[i] == '\t')
			buf_text(&shown, "    ");
		else
			buf_char(&shown, text[i]);
	text_line(stdout, "%5" PRIu64 " [%s] %s", number, buf_get(&figures), buf_get(&shown));
	buf_fini(&figures);
	buf_fini(&shown);
}

/* Returns the number of lines of the file. */
static uint64_t print_lines(const struct source_file *file, const char *text, uint64_t from,
			    uint64_t count)
{
	uint64_t number = 0;

	while (*text) {
		size_t bytes = strcspn(text, "\n");

		number++;
		if (number >= from && number - from < count)
			mcp_source_line(file, number, text, bytes);
		text += bytes + (text[bytes] == '\n');
	}
	return number;
}

/* Only the figures: the text cannot be read. */
static void print_measured(const struct source_file *file, const char *why)
{
	for (size_t i = 0; i < file->line_count; i++)
		if (file->lines[i].line)
			mcp_source_line(file, file->lines[i].line, "", 0);
	text_line(stderr, "the text of the file is left out: %s", why);
}

static void mcp_source_lines(const struct mcp_arguments *arguments,
			     const struct source_files *files, const struct source_file *file)
{
	uint64_t lines = mcp_tools_number(arguments, "lines", LINES_USUAL, LINES_MOST), all;
	uint64_t middle = costliest(file), from = middle > lines / 2 ? middle - lines / 2 : 1;
	struct source_text text = { .read = false };
	const char *why = files->from_elsewhere ? "the recording comes from another machine" : NULL;

	from = mcp_tools_number(arguments, "from", from, UINT32_MAX);
	if (!why)
		source_text_read(&text, file->name, files->cwd, files->started_unix_ns);
	if (text.read) {
		all = print_lines(file, buf_get(&text.text), from ? from : 1, lines);
		fprintf(stderr, "the file has %" PRIu64 " lines\n", all);
	} else {
		print_measured(file, why ? why : text.why);
	}
	if (text.newer)
		fputs("the file was changed after the recording began: lines may have moved\n",
		      stderr);
	source_text_fini(&text);
}

/* ---- the tool -------------------------------------------------------------------------------- */

static int mcp_source_answer(const struct mcp_arguments *arguments, struct tables *tables,
			     struct kymo_error *err)
{
	const char *name = json_read_get(&arguments->json, "file");
	const struct source_file *file;
	struct source_files files = { .list = NULL };
	int rc = source_files_gather(tables, NULL, &files, err);

	file = !rc && name && *name ? source_files_find(&files, name) : NULL;
	if (!rc && name && *name && !file)
		rc = error_set(err, ENOENT,
			       "the recording names no source file %s; without the argument file "
			       "the tool lists them",
			       name);
	if (!rc && file)
		mcp_source_lines(arguments, &files, file);
	else if (!rc)
		mcp_source_list(&files);
	source_files_fini(&files);
	return rc;
}

static int mcp_source_local(void *context)
{
	struct tables *tables = NULL;
	struct kymo_error err = { 0 };
	const char *target;
	int rc;

	if (!mcp_tools_target(context, "target", &target))
		return CMDS_FAILED;
	rc = mcp_tools_open(target, SECONDS * 1000, &tables, &err);
	if (!rc)
		rc = mcp_source_answer(context, tables, &err);
	cmds_close(tables);
	return rc ? cmds_fail("source", &err) : CMDS_OK;
}

int mcp_source(const struct mcp_arguments *arguments)
{
	if (arguments->no_source)
		return cmds_wrong("source", "kymo mcp was started with --no-source");
	return cmds_guarded("source", mcp_source_local, (void *)arguments);
}
